//! An image as a density over the plane: a pixel's probability is proportional to its darkness, and points
//! are jittered around pixel centers.
//!
//! Defines the image, the two rules for sampling training points, and the exact values that follow from them
//! (entropy, best Gaussian, density on a grid). A sample is `x = position_i + jitter_std * normal` where
//! pixel i is drawn with probability `probabilities[i]`. This is a finite mixture of normals, so its entropy
//! exists; it is computed by quadrature. The KL divergence of a model from this density is then an absolute
//! score that needs no second model.

use super::{
    DataError, Grid,
    alias::AliasTable,
    gray::Gray,
    quadrature::{Blur, Taps, at_points},
};
use crate::io::Fnv;
use rand::{Rng, RngExt};
use rand_distr::StandardNormal;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;
use std::path::Path;

/// Standard deviation of the normal jitter that turns a pixel into points of the plane, in pixels.
pub const JITTER_PIXELS: f64 = 0.5;
/// Width of the border around the image in quadratures, in standard deviations of the blur.
const QUADRATURE_MARGIN: f64 = 8.0;

/// How training points are sampled from a density proportional to the darkness `1 - gray / max gray`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
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

/// An image as a density over the plane, with the tables for sampling from it.
///
/// # Shapes and units
/// The n pixels in use (the support) are in row-major order from the top left. `positions` `[n, 2]` are
/// standardized; `probabilities` `[n]` sums to 1. To sample a training point, take a uniform bucket b of 0..n
/// and `u` uniform in [0, 1) from separate random numbers (the 24 random bits of one f32 are too few for both),
/// `i = if u < alias_prob[b] { b } else { alias_index[b] }`, then `x = positions[i] + jitter_std * normal`,
/// with weight `weight[i]` in the loss.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ImageDensity {
    /// The name used in messages: the path, or the given name.
    pub name: String,
    /// The rule that turned gray values into probabilities.
    pub rule: Rule,
    /// Columns of the image.
    pub width: usize,
    /// Rows of the image.
    pub height: usize,
    /// Centers of the support's pixels `[n, 2]`, x to the right and y down, standardized.
    pub positions: Vec<[f32; 2]>,
    /// Probability of each pixel `[n]`, proportional to its darkness; sums to 1.
    pub probabilities: Vec<f64>,
    /// Weight of a sampled point in the loss `[n]`: 1, or the darkness with [`Rule::Uniform`].
    pub weight: Vec<f32>,
    /// Mean of these weights: 1, or the mean darkness of the support. `loss = mean_weight * NLL`.
    pub mean_weight: f64,
    /// Origin of the standardized coordinates, in pixel coordinates.
    pub mean: [f64; 2],
    /// Unit of the standardized coordinates, in pixels.
    pub std: [f64; 2],
    /// Standard deviation of the jitter in standardized coordinates, `0.5 / std`.
    pub jitter_std: [f64; 2],
    /// Probability that a bucket's own pixel is the sample `[n]`.
    pub alias_prob: Vec<f32>,
    /// The pixel that is the sample otherwise `[n]`, an index into `positions`.
    pub alias_index: Vec<i32>,
    /// Row-major indices of the support's pixels.
    pixels: Vec<u32>,
    gray: Gray,
}

impl ImageDensity {
    /// Reads an image with the default rule.
    ///
    /// # Errors
    /// [`DataError`] if the file cannot be read or decoded, if the image has fewer than 2 x 2 or more than
    /// 2^24 pixels, or if it has no density (a single gray, dark pixels in a single row or column).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DataError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        match std::fs::read(path) {
            Ok(bytes) => Self::from_bytes(&bytes, &name),
            Err(source) => Err(DataError::Unreadable { name, source }),
        }
    }

    /// Decodes an image file in memory (PNG, JPEG, BMP, GIF or WebP), with the default rule; `name` is used
    /// in messages.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_bytes(bytes: &[u8], name: &str) -> Result<Self, DataError> {
        Self::build(Gray::decode(bytes, name)?, name.to_owned(), Rule::Default)
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
    pub fn with_rule(self, rule: Rule) -> Result<Self, DataError> {
        if rule == self.rule { Ok(self) } else { Self::build(self.gray, self.name, rule) }
    }

    fn build(gray: Gray, name: String, rule: Rule) -> Result<Self, DataError> {
        let below = match rule {
            Rule::Default => gray.lightest,
            Rule::Uniform { below } => f64::from(below),
        };
        let pixels: Vec<u32> =
            (0..gray.values.len()).filter(|&i| gray.values[i] < below).map(|i| i as u32).collect();
        let darkness: Vec<f64> = pixels.iter().map(|&i| gray.darkness(i as usize)).collect();
        let total: f64 = darkness.iter().sum();
        if total <= 0.0 {
            let (darkest, lightest) = (gray.darkest, gray.lightest);
            return Err(DataError::NoDarkPixels { name, below, darkest, lightest });
        }
        let drawn = match rule {
            Rule::Default => darkness.clone(),
            Rule::Uniform { .. } => vec![1.0; pixels.len()],
        };
        let centers: Vec<[f64; 2]> = pixels.iter().map(|&i| center(i as usize, gray.width)).collect();
        let (mean, std) = moments(&centers, &drawn);
        check_extent(&name, mean, std)?;
        let table = AliasTable::new(&drawn);
        let (weight, mean_weight) = match rule {
            Rule::Default => (vec![1.0; pixels.len()], 1.0),
            Rule::Uniform { .. } => {
                (darkness.iter().map(|&d| d as f32).collect(), total / pixels.len() as f64)
            }
        };
        Ok(Self {
            positions: centers
                .iter()
                .map(|p| std::array::from_fn(|a| ((p[a] - mean[a]) / std[a]) as f32))
                .collect(),
            probabilities: darkness.iter().map(|d| d / total).collect(),
            jitter_std: std.map(|s| JITTER_PIXELS / s),
            alias_prob: table.prob,
            alias_index: table.index,
            width: gray.width,
            height: gray.height,
            name,
            rule,
            weight,
            mean_weight,
            mean,
            std,
            pixels,
            gray,
        })
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

    /// Entropy of the density in standardized coordinates, in nats: the minimal mean NLL of any model.
    ///
    /// `H = -integral p ln p`, by the midpoint rule on 8 x 8 cells per pixel (4 x 4 or 2 x 2 for images with
    /// more than 2^18 or 2^22 pixels), accurate to 1e-6 for a mixture of normals half a pixel wide.
    pub fn entropy_nats(&self) -> f64 {
        let (mass, cells) = (self.pixel_probabilities(), self.quadrature_cells());
        let mut blur = self.blur(&mass, JITTER_PIXELS, QUADRATURE_MARGIN * JITTER_PIXELS, cells);
        let row_sum = |row: &[f64]| row.iter().filter(|p| **p > 0.0).map(|p| p * p.ln()).sum::<f64>();
        let sum: f64 = (0..blur.rows()).map(|i| row_sum(blur.row(i))).sum();
        self.log_jacobian() - sum / (cells * cells) as f64
    }

    /// KL divergence of a model that blurs the density by a normal of `std` pixels, in nats:
    /// `KL(p || p * N(0, std^2))`, where `*` is a convolution.
    ///
    /// It measures the amount of fine structure: it is close to 0 for a smooth image.
    pub fn blur_cost_nats(&self, std: f64) -> f64 {
        let wide = JITTER_PIXELS.hypot(std);
        let (mass, cells, margin) =
            (self.pixel_probabilities(), self.quadrature_cells(), QUADRATURE_MARGIN * wide);
        let mut sharp = self.blur(&mass, JITTER_PIXELS, margin, cells);
        let mut blurred = self.blur(&mass, wide, margin, cells);
        let mut sum = 0.0;
        for i in 0..sharp.rows() {
            for (&p, &q) in sharp.row(i).iter().zip(blurred.row(i)).filter(|(p, _)| **p > 0.0) {
                sum += p * (p / q.max(f64::MIN_POSITIVE)).ln();
            }
        }
        sum / (cells * cells) as f64
    }

    /// Mean NLL of the best single Gaussian, in nats and standardized coordinates:
    /// `ln(2 pi e) + ln(det C) / 2`.
    ///
    /// C is the full covariance of the density, including jitter. A flow with a higher NLL has learned less
    /// than one Gaussian.
    pub fn gaussian_nats(&self) -> f64 {
        let centers: Vec<[f64; 2]> = self.pixels.iter().map(|&i| center(i as usize, self.width)).collect();
        let (mean, std) = moments(&centers, &self.probabilities);
        let covariance: f64 = centers
            .iter()
            .zip(&self.probabilities)
            .map(|(p, m)| m * (p[0] - mean[0]) * (p[1] - mean[1]))
            .sum();
        let [xx, yy] = std.map(|s| s * s + JITTER_PIXELS * JITTER_PIXELS);
        (2.0 * PI).ln() + 1.0 + 0.5 * (xx * yy - covariance * covariance).ln() + self.log_jacobian()
    }

    /// n independent points from the density, in standardized coordinates.
    ///
    /// Meant for held-out points: give a generator that training does not use, so that the points are
    /// independent of the training points.
    pub fn sample<R: Rng + ?Sized>(&self, n: usize, rng: &mut R) -> Vec<[f32; 2]> {
        let table = AliasTable::new(&self.probabilities);
        (0..n)
            .map(|_| {
                let position = self.positions[table.draw(rng)];
                std::array::from_fn(|a| {
                    let z: f64 = rng.sample(StandardNormal);
                    (f64::from(position[a]) + self.jitter_std[a] * z) as f32
                })
            })
            .collect()
    }

    /// The exact log-density at points, both in standardized coordinates. The sum covers all pixels within 8
    /// standard deviations; the result is -infinity at a point without such pixels.
    ///
    /// Its mean under the density is `-entropy_nats()`.
    pub fn log_probs(&self, points: &[[f32; 2]]) -> Vec<f64> {
        let taps = |a: usize, pixels: usize| {
            let centers = points.iter().map(move |x| self.mean[a] + self.std[a] * f64::from(x[a]));
            Taps::new(centers, pixels, JITTER_PIXELS)
        };
        let (xs, ys) = (taps(0, self.width), taps(1, self.height));
        let per_pixel = at_points(&self.pixel_probabilities(), self.width, &xs, &ys);
        per_pixel.into_iter().map(|p| p.ln() - self.log_jacobian()).collect()
    }

    /// Square cells over the image extended by `margin` pixels on all sides, `cells_per_pixel` along each
    /// axis.
    pub fn grid(&self, margin: f64, cells_per_pixel: usize) -> Grid {
        let cells =
            |pixels: usize| ((pixels as f64 + 2.0 * margin) * cells_per_pixel as f64).round() as usize;
        self.grid_of(margin, cells(self.height), cells(self.width))
    }

    /// `rows` x `cols` cells over the image extended by `margin` pixels on all sides.
    pub fn grid_of(&self, margin: f64, rows: usize, cols: usize) -> Grid {
        let x = [-margin, self.width as f64 + margin];
        let y = [-margin, self.height as f64 + margin];
        Grid::new(rows, cols, x, y, |p| self.to_standard(p), self.std[0] * self.std[1])
    }

    /// The exact density per square pixel at the centers of a grid, row-major, top row first.
    pub fn density_on(&self, grid: &Grid) -> Vec<f64> {
        let taps = |n: usize, center: &dyn Fn(usize) -> f64, pixels| {
            Taps::new((0..n).map(center), pixels, JITTER_PIXELS)
        };
        let xs = taps(grid.cols, &|i| grid.col_center(i), self.width);
        let ys = taps(grid.rows, &|i| grid.row_center(i), self.height);
        let mass = self.pixel_probabilities();
        let mut blur = Blur::new(&mass, self.width, xs, ys);
        (0..grid.rows).flat_map(|i| blur.row(i).to_vec()).collect()
    }

    /// A fingerprint of the image (FNV-1a, 64 bit, of size and gray values): equal pixels have equal
    /// fingerprints in any file format.
    pub fn fingerprint(&self) -> u64 {
        let size = [self.width as u64, self.height as u64];
        let words = size.into_iter().chain(self.gray.values.iter().map(|v| v.to_bits()));
        Fnv::of(words.flat_map(u64::to_le_bytes)).number()
    }

    /// Probability of each pixel of the image, row-major, zero outside the support.
    pub(super) fn pixel_probabilities(&self) -> Vec<f64> {
        let mut mass = vec![0.0; self.width * self.height];
        for (&pixel, &m) in self.pixels.iter().zip(&self.probabilities) {
            mass[pixel as usize] = m;
        }
        mass
    }

    fn quadrature_cells(&self) -> usize {
        match self.width * self.height {
            0..=0x4_0000 => 8,
            0x4_0001..=0x40_0000 => 4,
            _ => 2,
        }
    }

    /// The density with a jitter of `std` pixels on the image extended by `margin` pixels (rounded up), with
    /// `cells` cells per pixel along each axis.
    fn blur<'a>(&self, mass: &'a [f64], std: f64, margin: f64, cells: usize) -> Blur<'a> {
        let margin = margin.ceil();
        let taps = |pixels: usize| {
            let n = (pixels + 2 * margin as usize) * cells;
            Taps::new((0..n).map(|i| (i as f64 + 0.5) / cells as f64 - margin), pixels, std)
        };
        Blur::new(mass, self.width, taps(self.width), taps(self.height))
    }
}

/// Center of a pixel in pixel coordinates.
fn center(pixel: usize, width: usize) -> [f64; 2] {
    [(pixel % width) as f64 + 0.5, (pixel / width) as f64 + 0.5]
}

/// Weighted mean and standard deviation along each axis.
fn moments(points: &[[f64; 2]], weights: &[f64]) -> ([f64; 2], [f64; 2]) {
    let total: f64 = weights.iter().sum();
    let average =
        |f: &dyn Fn(&[f64; 2]) -> f64| points.iter().zip(weights).map(|(p, w)| w * f(p)).sum::<f64>() / total;
    let mean = std::array::from_fn(|a| average(&|p| p[a]));
    let std = std::array::from_fn(|a| average(&|p| (p[a] - mean[a]).powi(2)).sqrt());
    (mean, std)
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
