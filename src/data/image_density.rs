//! An image as a density over the plane: a pixel's probability is proportional to its darkness, and points
//! are jittered around pixel centers.
//!
//! Defines the image, the two rules for sampling training points ([`draws`]), and the exact values that follow from them
//! ([`values`]: entropy, best Gaussian, density on a grid). A sample is `x = position_i + jitter_std * normal` where
//! pixel i is drawn with its probability. This is a finite mixture of normals, so its entropy exists; it is computed by
//! quadrature. The KL divergence of a model from this density is then an absolute score that needs no second model.
//!
//! Only the decoded pixels are kept. Probabilities and positions are computed when they are read, in the order of the
//! pixels, so an image of 4,096 x 4,096 pixels needs 16 MB (8-bit grays) to 128 MB (16-bit colors with alpha).

mod cover;
mod draws;
mod values;

use super::{DataError, Grid, gray::Gray};
use crate::io::Fnv;
pub(crate) use cover::Cover;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::Path;

/// Standard deviation of the normal jitter that turns a pixel into points of the plane, in pixels.
pub const JITTER_PIXELS: f64 = 0.5;

/// How training points are sampled from a density proportional to the darkness `1 - gray / max gray`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SamplingRule {
    /// Samples every pixel except those with the lightest gray, in proportion to its darkness. Points are
    /// standardized by the darkness-weighted mean and standard deviation; each point has weight 1 in the
    /// loss.
    #[default]
    Default,
    /// Importance-weighted: samples the pixels darker than `below` uniformly, and a point's weight in the
    /// loss is its darkness. Points are standardized by the unweighted mean and standard deviation of these
    /// pixels.
    Uniform {
        /// Only pixels darker than this gray are used.
        below: u8,
    },
}

/// An image as a density over the plane.
///
/// # Shapes and units
/// The n pixels in use (the support) are in row-major order from the top left. [`positions`](Self::positions) are
/// standardized; [`probabilities`](Self::probabilities) sum to 1.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ImageDensity {
    /// The name used in messages: the path, or the given name.
    pub name: String,
    /// The rule that turned gray values into probabilities.
    pub rule: SamplingRule,
    /// Columns of the image.
    pub width: usize,
    /// Rows of the image.
    pub height: usize,
    /// Number of pixels in use.
    pub support: usize,
    /// Mean weight of the training points in the loss: 1, or the mean darkness of the support.
    /// `loss = mean_weight * NLL`.
    pub mean_weight: f64,
    /// Origin of the standardized coordinates, in pixel coordinates.
    pub mean: [f64; 2],
    /// Unit of the standardized coordinates, in pixels.
    pub std: [f64; 2],
    /// Standard deviation of the jitter in standardized coordinates, `0.5 / std`.
    pub jitter_std: [f64; 2],
    /// Sum of the darkness of the support, and sums up to the end of each block of pixels.
    darkness: f64,
    up_to: Vec<f64>,
    /// Only pixels darker than this are in use.
    below: f64,
    gray: Gray,
}

impl SamplingRule {
    /// The weight with which a pixel of this darkness is drawn.
    fn drawn(self, dark: f64) -> f64 {
        match self {
            SamplingRule::Default => dark,
            SamplingRule::Uniform { .. } => 1.0,
        }
    }
}

impl ImageDensity {
    /// Reads an image with the default rule.
    ///
    /// # Errors
    /// [`DataError`] if the file cannot be read or decoded, if the image has fewer than 2 x 2 or more than
    /// 2^24 pixels or more than 2^16 along a side, or if it has no density (a single gray, dark pixels in a single row or column).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DataError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let gray = match std::fs::read(path) {
            Ok(bytes) => Gray::decode(&bytes, &name)?,
            Err(source) => return Err(DataError::Unreadable { name, source }),
        };
        Self::build(gray, name, SamplingRule::Default)
    }

    /// Decodes an image file in memory (PNG, JPEG, BMP, GIF or WebP), with the default rule; `name` is used
    /// in messages.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_bytes(bytes: &[u8], name: &str) -> Result<Self, DataError> {
        Self::build(Gray::decode(bytes, name)?, name.to_owned(), SamplingRule::Default)
    }

    /// The project's logo: flow lines around vortices.
    pub fn embedded() -> Self {
        Self::from_bytes(include_bytes!("../../assets/flowlines.png"), "flowlines")
            .unwrap_or_else(|error| panic!("invariant: the embedded image is a density: {error}"))
    }

    /// The same image with another rule.
    ///
    /// # Errors
    /// [`DataError::NoDarkPixels`] or [`DataError::Line`] if the rule leaves too few pixels.
    pub fn with_rule(self, rule: SamplingRule) -> Result<Self, DataError> {
        if rule == self.rule { Ok(self) } else { Self::build(self.gray, self.name, rule) }
    }

    fn build(gray: Gray, name: String, rule: SamplingRule) -> Result<Self, DataError> {
        let below = match rule {
            SamplingRule::Default => gray.lightest,
            SamplingRule::Uniform { below } => f64::from(below),
        };
        let (mut support, mut darkness, mut up_to) = (0, 0.0, Vec::new());
        for first in (0..gray.count()).step_by(draws::BLOCK) {
            for (_, dark) in in_use(&gray, below, first..(first + draws::BLOCK).min(gray.count())) {
                (support, darkness) = (support + 1, darkness + dark);
            }
            up_to.push(darkness);
        }
        if darkness <= 0.0 {
            let (darkest, lightest) = (gray.darkest, gray.lightest);
            return Err(DataError::NoDarkPixels { name, below, darkest, lightest });
        }
        let drawn = || {
            let all = in_use(&gray, below, 0..gray.count());
            all.map(|(pixel, dark)| (center(pixel, gray.width), rule.drawn(dark)))
        };
        let (mean, std) = moments(drawn);
        check_extent(&name, mean, std)?;
        let mean_weight = match rule {
            SamplingRule::Default => 1.0,
            SamplingRule::Uniform { .. } => darkness / support as f64,
        };
        let (width, height, jitter_std) = (gray.width, gray.height, std.map(|s| JITTER_PIXELS / s));
        Ok(Self {
            name,
            rule,
            width,
            height,
            support,
            mean_weight,
            mean,
            std,
            jitter_std,
            darkness,
            up_to,
            below,
            gray,
        })
    }

    /// Centers of the support's pixels, x to the right and y down, standardized.
    pub fn positions(&self) -> impl Iterator<Item = [f32; 2]> + '_ {
        self.in_use(0..self.gray.count()).map(|(pixel, _)| self.position(pixel))
    }

    /// Probability of each pixel of the support, proportional to its darkness; they sum to 1.
    pub fn probabilities(&self) -> impl Iterator<Item = f64> + '_ {
        self.in_use(0..self.gray.count()).map(|(_, dark)| dark / self.darkness)
    }

    /// The pixels of a range that are in use, with their darkness.
    fn in_use(&self, pixels: Range<usize>) -> impl Iterator<Item = (usize, f64)> + '_ {
        in_use(&self.gray, self.below, pixels)
    }

    /// The standardized center of a pixel.
    fn position(&self, pixel: usize) -> [f32; 2] {
        self.to_standard(center(pixel, self.width)).map(|x| x as f32)
    }

    /// Converts standardized to pixel coordinates.
    pub fn to_pixels(&self, x: [f64; 2]) -> [f64; 2] {
        std::array::from_fn(|a| self.mean[a] + self.std[a] * x[a])
    }

    /// Converts pixel to standardized coordinates.
    pub fn to_standard(&self, p: [f64; 2]) -> [f64; 2] {
        std::array::from_fn(|a| (p[a] - self.mean[a]) / self.std[a])
    }

    /// Add this to a log-density in standardized coordinates to get the log-density per square pixel:
    /// `-ln(std_x std_y)`.
    pub fn log_jacobian(&self) -> f64 {
        -(self.std[0] * self.std[1]).ln()
    }

    /// Square cells over the image extended by `margin` pixels on all sides, `cells_per_pixel` along each
    /// axis.
    pub fn grid(&self, margin: f64, cells_per_pixel: usize) -> Grid {
        let cells =
            |pixels: usize| ((pixels as f64 + 2.0 * margin) * cells_per_pixel as f64).round() as usize;
        self.grid_with_shape(margin, cells(self.height), cells(self.width))
    }

    /// `rows` x `cols` cells over the image extended by `margin` pixels on all sides.
    pub fn grid_with_shape(&self, margin: f64, rows: usize, cols: usize) -> Grid {
        let x = [-margin, self.width as f64 + margin];
        let y = [-margin, self.height as f64 + margin];
        Grid::new(rows, cols, x, y, |p| self.to_standard(p), self.std[0] * self.std[1])
    }

    /// A fingerprint of the image (FNV-1a, 64 bit, of size and gray values): equal pixels have equal
    /// fingerprints in any file format.
    pub fn fingerprint(&self) -> u64 {
        let size = [self.width as u64, self.height as u64];
        let words = size.into_iter().chain(self.gray.values(0..self.gray.count()).map(f64::to_bits));
        Fnv::of(words.flat_map(u64::to_le_bytes)).number()
    }
}

/// Center of a pixel in pixel coordinates.
fn center(pixel: usize, width: usize) -> [f64; 2] {
    [(pixel % width) as f64 + 0.5, (pixel / width) as f64 + 0.5]
}

/// The pixels of a range that are darker than `below`, with their darkness.
fn in_use(gray: &Gray, below: f64, pixels: Range<usize>) -> impl Iterator<Item = (usize, f64)> + '_ {
    let lightest = gray.lightest;
    let all = pixels.clone().zip(gray.values(pixels));
    all.filter(move |(_, value)| *value < below).map(move |(pixel, value)| (pixel, 1.0 - value / lightest))
}

/// Weighted mean and standard deviation along each axis, of points that are computed twice.
fn moments<P: Iterator<Item = ([f64; 2], f64)>>(points: impl Fn() -> P) -> ([f64; 2], [f64; 2]) {
    let (mut total, mut sum, mut squares) = (0.0, [0.0; 2], [0.0; 2]);
    for (p, w) in points() {
        total += w;
        (0..2).for_each(|a| sum[a] += w * p[a]);
    }
    let mean = sum.map(|sum| sum / total);
    for (p, w) in points() {
        (0..2).for_each(|a| squares[a] += w * (p[a] - mean[a]).powi(2));
    }
    (mean, squares.map(|square: f64| (square / total).sqrt()))
}

/// Checks that the image covers more than one row and more than one column.
fn check_extent(name: &str, mean: [f64; 2], std: [f64; 2]) -> Result<(), DataError> {
    for (a, line, axis) in [(0, "column", "x"), (1, "row", "y")] {
        if std[a] < 1e-6 {
            return Err(DataError::Line { name: name.to_owned(), line, index: mean[a] as usize, axis });
        }
    }
    Ok(())
}
