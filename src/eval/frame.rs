//! Frames: the properties of the training data that a fitted density stores, such as size, units and entropy.
//!
//! Every checkpoint stores them, so that figures, samples and log-densities in pixel coordinates or in the
//! units of points need only the run folder. Figures use one type of plane for images and points: points get
//! a window that is divided into cells as an image is divided into pixels, in the data's own coordinates with
//! y upward.

use super::PointsFrame;
use crate::data::{ImageDensity, Points, SamplingRule};
use crate::heatmap::{ColorScale, Extent, Heatmap};
use crate::triangular::{below, log_det, times};
use serde::{Deserialize, Deserializer, Serialize};
use std::path::Path;

/// The frame of an image, or the window over points in the plane, in the units of the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ImageFrame {
    /// Columns of the image.
    pub width: usize,
    /// Rows of the image.
    pub height: usize,
    /// Center of standardized coordinates, in pixel coordinates.
    pub mean: [f64; 2],
    /// Unit of standardized coordinates, in pixels.
    #[serde(rename = "sd")]
    pub std: [f64; 2],
    /// The lower triangular factor of the standardized coordinates of points `[2, 2]`, row-major
    /// ([`Standardizer::factor`](crate::data::Standardizer::factor)); empty if there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub factor: Vec<f64>,
    /// Entropy: of an image in standardized coordinates; of points in their units, 0 if unknown.
    pub entropy_nats: f64,
    /// Density per square pixel, or per unit area, of the lightest color: from the target density or, for
    /// points of a table, from their histogram.
    pub density_max: f64,
    /// The rule by which points are sampled from the image.
    #[serde(default, alias = "documented_rule", deserialize_with = "rule")]
    pub rule: SamplingRule,
    /// A hash of the image or of the points, hexadecimal; the name of a toy density.
    pub fingerprint: String,
    /// The window over points, in the units of the points; `None` for an image, whose coordinates are pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units: Option<Units>,
}

/// A window over points in the plane: its upper left corner, and the size of a pixel, in the units of the data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Units {
    /// The upper left corner.
    pub origin: [f64; 2],
    /// Distance from one pixel to the next on the right, and to the next below; the second is negative,
    /// because y points up.
    pub pixel: [f64; 2],
}

/// The name of the data in a checkpoint: the last component of the path, so that it does not depend on how
/// the path was typed.
pub(crate) fn file_name(name: &str) -> String {
    let path = Path::new(name);
    // `.` and `..` get the name of the folder.
    let whole = if path.file_name().is_none() { path.canonicalize().ok() } else { None };
    let path = whole.as_deref().unwrap_or(path);
    path.file_name().map_or_else(|| name.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// The largest number of cells of an image on which a density is evaluated.
const CELLS: usize = 1 << 17;
/// Cells along the longer side of the figures of an image with more cells.
const FIGURE: usize = 320;

/// A grid over the image grown by a margin, row-major, first row on top.
#[derive(Clone, Debug)]
pub struct Cells {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// The extent of the grid, in pixel coordinates.
    pub frame: Extent,
    /// Centers in standardized coordinates.
    pub centers: Vec<[f32; 2]>,
    /// Area of a cell in square pixels.
    pub area: f64,
}

impl ImageFrame {
    /// The frame of an image.
    pub fn of(data: &ImageDensity) -> ImageFrame {
        ImageFrame {
            width: data.width,
            height: data.height,
            mean: data.mean,
            std: data.std,
            factor: Vec::new(),
            entropy_nats: data.entropy_nats(),
            density_max: scale_of(data).max,
            rule: data.rule,
            fingerprint: format!("{:016x}", data.fingerprint()),
            units: None,
        }
    }

    /// The window over points in the plane: the extent of nearly all points plus a tenth on each side, with
    /// square cells if the axes have comparable units. The caller sets the color scale.
    pub(crate) fn of_points(train: &Points, frame: &PointsFrame) -> ImageFrame {
        let ends: [[f64; 2]; 2] = std::array::from_fn(|a| ends(train, a));
        let extent = ends.map(|[from, to]| to - from);
        let ratio = extent[0] / extent[1];
        let pixel = if (0.4..=2.5).contains(&ratio) {
            [extent[0].max(extent[1]) / WINDOW; 2]
        } else {
            extent.map(|e| e / WINDOW)
        };
        // Minus a rounding error, so that the longer side has the intended number of cells.
        let count = |a: usize| (extent[a] / pixel[a] - 1e-9).ceil().max(1.0);
        let (width, height) = (count(0), count(1));
        // The window is a whole number of cells; the excess is divided between both sides.
        let from = |a: usize, n: f64| 0.5 * (ends[a][0] + ends[a][1] - n * pixel[a]);
        let top = from(1, height) + height * pixel[1];
        ImageFrame {
            width: width as usize,
            height: height as usize,
            mean: [frame.mean[0], frame.mean[1]],
            std: [frame.std[0], frame.std[1]],
            factor: frame.factor.clone(),
            entropy_nats: frame.entropy_nats.unwrap_or(0.0),
            density_max: 1.0,
            rule: SamplingRule::Default,
            fingerprint: frame.fingerprint.clone(),
            units: Some(Units { origin: [from(0, width), top], pixel: [pixel[0], -pixel[1]] }),
        }
    }

    /// The data's coordinate along axis `a` at `p` pixels from the left or upper edge.
    fn seen(&self, a: usize, p: f64) -> f64 {
        self.units.map_or(p, |units| units.origin[a] + units.pixel[a] * p)
    }

    /// The inverse of [`seen`](Self::seen): pixels from the left or upper edge.
    fn pixels(&self, a: usize, seen: f64) -> f64 {
        self.units.map_or(seen, |units| (seen - units.origin[a]) / units.pixel[a])
    }

    /// Distance in pixels from the left and the upper edge, for a point in the data's coordinates.
    pub(crate) fn place(&self, p: [f64; 2]) -> [f64; 2] {
        std::array::from_fn(|a| self.pixels(a, p[a]))
    }

    /// Converts standardized to pixel coordinates; for points, to the units of the data.
    pub fn to_pixels(&self, x: [f64; 2]) -> [f64; 2] {
        let z = self.correlated(x);
        std::array::from_fn(|a| self.mean[a] + self.std[a] * z[a])
    }

    /// Converts pixel to standardized coordinates; for points, from the units of the data.
    pub fn to_standard(&self, p: [f64; 2]) -> [f64; 2] {
        self.decorrelated(self.scaled(p))
    }

    /// `(p - mean) / std`: standardized coordinates without the factor, in which a window is a rectangle.
    pub(crate) fn scaled(&self, p: [f64; 2]) -> [f64; 2] {
        std::array::from_fn(|a| (p[a] - self.mean[a]) / self.std[a])
    }

    /// Converts scaled to standardized coordinates.
    pub(crate) fn decorrelated(&self, z: [f64; 2]) -> [f64; 2] {
        if self.factor.is_empty() { z } else { pair(&below(&self.factor, z.to_vec(), 2)) }
    }

    /// Converts standardized to scaled coordinates.
    pub(crate) fn correlated(&self, x: [f64; 2]) -> [f64; 2] {
        if self.factor.is_empty() { x } else { pair(&times(&self.factor, x.to_vec(), 2)) }
    }

    /// Subtract this from a log-density in standardized coordinates to get that in scaled coordinates.
    pub(crate) fn log_factor(&self) -> f64 {
        if self.factor.is_empty() { 0.0 } else { log_det(&self.factor, 2) }
    }

    /// Add this to a log-density in standardized coordinates to get the log-density per square pixel; for
    /// points, per unit area.
    pub fn log_jacobian(&self) -> f64 {
        -self.std[0].ln() - self.std[1].ln() - self.log_factor()
    }

    /// The color scale of the run's figures.
    pub fn scale(&self) -> ColorScale {
        ColorScale { max: self.density_max }
    }

    /// Distance, in standard deviations, from the center of standardized coordinates to the farthest corner of the
    /// image grown by `margin` pixels on all sides.
    pub fn reach(&self, margin: f64) -> f64 {
        let ends = |a: usize, side: usize| [-margin, side as f64 + margin].map(|x| self.seen(a, x));
        let (x, y) = (ends(0, self.width), ends(1, self.height));
        let far = |p: [f64; 2]| {
            let [x, y] = self.to_standard(p);
            x.hypot(y)
        };
        x.into_iter().flat_map(|x| y.map(|y| far([x, y]))).fold(0.0, f64::max)
    }

    /// The largest margin in whole pixels with all corners within this many standard deviations; 0 if the image itself
    /// reaches farther.
    pub fn margin_within(&self, deviations: f64) -> f64 {
        let std = |a: usize| self.std[a] / self.units.map_or(1.0, |units| units.pixel[a].abs());
        // The factor of a correlation stretches by less than 2.
        let stretch = if self.factor.is_empty() { 1.0 } else { 2.0 };
        let least = stretch * deviations * std(0).max(std(1)) + 1.0;
        // Both are whole numbers. Beyond 2^53 pixels, neighboring numbers differ by more than 1.
        let (mut fits, mut reaches) = (0.0, least.ceil().min(f64::MAX));
        while reaches - fits > (f64::EPSILON * fits).max(1.0) {
            let middle = (0.5 * fits + 0.5 * reaches).floor();
            *(if self.reach(middle) <= deviations { &mut fits } else { &mut reaches }) = middle;
        }
        fits
    }

    /// Cells per pixel in the final figure and for the total probability. For an image 2 to 8, chosen so that
    /// the longer side has at least 256 cells if possible. With 2, a cell is as wide as the standard deviation of the
    /// jitter, and the sum over the cells of a mixture of such normals is exact to 1e-8. For a window over points 2, so
    /// the longer side has 200 cells: a cell is then about half the smallest standard deviation of a toy density.
    pub(crate) fn cells_per_pixel(&self) -> usize {
        if self.units.is_some() { 2 } else { 256usize.div_ceil(self.side()).clamp(2, 8) }
    }

    /// Whether the cells of [`cells_per_pixel`](Self::cells_per_pixel) are too many. Then figures have fewer cells, and the
    /// total probability comes from points.
    pub(crate) fn is_large(&self) -> bool {
        self.width * self.height * self.cells_per_pixel().pow(2) > CELLS
    }

    /// Cells along the longer side in the final figure.
    pub(crate) fn finest(&self) -> usize {
        if self.is_large() { FIGURE } else { self.side() * self.cells_per_pixel() }
    }

    /// The longer side in pixels.
    pub fn side(&self) -> usize {
        self.width.max(self.height)
    }

    /// The extent of the image.
    pub fn window(&self) -> Extent {
        self.grown(0.0)
    }

    /// The extent of the image grown by `margin` pixels.
    pub fn grown(&self, margin: f64) -> Extent {
        self.grown_by([margin; 2])
    }

    fn grown_by(&self, margins: [f64; 2]) -> Extent {
        let ends = |a: usize, side: usize| [-margins[a], side as f64 + margins[a]].map(|p| self.seen(a, p));
        Extent { x: ends(0, self.width), y: ends(1, self.height) }
    }

    /// `rows` x `cols` cells over the image grown by `margin` pixels on all sides.
    pub fn cells(&self, margin: f64, rows: usize, cols: usize) -> Cells {
        self.cells_on(self.grown(margin), rows, cols)
    }

    fn cells_on(&self, frame: Extent, rows: usize, cols: usize) -> Cells {
        let center = self.centers(frame, [rows, cols]);
        Cells {
            rows,
            cols,
            frame,
            centers: (0..rows * cols).map(|i| center([i / cols, i % cols])).collect(),
            area: ((frame.x[1] - frame.x[0]) / cols as f64 * ((frame.y[1] - frame.y[0]) / rows as f64)).abs(),
        }
    }

    /// Centers of the cells of a grid over `frame` by row and column, first row on top, in standardized coordinates. Rows
    /// and columns beyond the last continue the grid.
    pub fn centers(&self, frame: Extent, shape: [usize; 2]) -> impl Fn([usize; 2]) -> [f32; 2] + use<'_> {
        let at = |[from, to]: [f64; 2], i: usize, n: usize| from + (to - from) * (i as f64 + 0.5) / n as f64;
        move |[row, col]| {
            let p = [at(frame.x, col, shape[1]), at(frame.y, row, shape[0])];
            self.to_standard(p).map(|x| x as f32)
        }
    }

    /// The row and the column, of a grid over `frame`, of a point in standardized coordinates; `None` if it lies outside.
    pub fn cell_of(&self, frame: Extent, shape: [usize; 2], point: [f64; 2]) -> Option<[usize; 2]> {
        let p = self.to_pixels(point);
        let index = |[from, to]: [f64; 2], p: f64, n: usize| {
            let i = (p - from) / (to - from) * n as f64;
            (i >= 0.0 && i < n as f64).then_some(i as usize)
        };
        Some([index(frame.y, p[1], shape[0])?, index(frame.x, p[0], shape[1])?])
    }

    /// A grid of nearly square cells: `side` cells along the longer side of the image, and around the image
    /// enough cells to cover `margin` pixels on each side. Returns the grid, and the numbers of rows and of
    /// columns added on each side.
    pub fn cells_around(&self, side: usize, margin: usize) -> (Cells, [usize; 2]) {
        let count = |pixels: usize| (pixels * side).div_ceil(self.side());
        let (rows, cols) = (count(self.height), count(self.width));
        let around = [margin * rows, margin * cols];
        let around = [around[0].div_ceil(self.height), around[1].div_ceil(self.width)];
        let reach = |around: usize, pixels: usize, cells: usize| (around * pixels) as f64 / cells as f64;
        let margins = [reach(around[1], self.width, cols), reach(around[0], self.height, rows)];
        (self.cells_on(self.grown_by(margins), rows + 2 * around[0], cols + 2 * around[1]), around)
    }
}

fn pair(x: &[f64]) -> [f64; 2] {
    [x[0], x[1]]
}

/// The sampling rule. Older runs recorded a boolean instead: whether the rule was the uniform one of
/// `--preset documented`.
fn rule<'de, D: Deserializer<'de>>(from: D) -> Result<SamplingRule, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Told {
        Before(bool),
        Now(SamplingRule),
    }
    Ok(match Told::deserialize(from)? {
        Told::Before(false) => SamplingRule::Default,
        Told::Before(true) => SamplingRule::Uniform { below: 254 },
        Told::Now(rule) => rule,
    })
}

/// Cells along the longer side of a window over points.
const WINDOW: f64 = 100.0;
/// Fraction of the points that the extent of a window ignores at each end; and the margin of the window, as a
/// fraction of this extent.
const BEYOND: f64 = 0.001;
const ROOM: f64 = 0.1;

/// The ends of a window over points along an axis.
fn ends(points: &Points, axis: usize) -> [f64; 2] {
    let mut along: Vec<f64> = points.values().iter().skip(axis).step_by(points.dim()).copied().collect();
    along.sort_by(f64::total_cmp);
    let most = along.len() - 1;
    let ignored = (BEYOND * most as f64).round() as usize;
    let [mut from, mut to] = [along[ignored], along[most - ignored]];
    if from == to {
        // Nearly all are equal: use the extent of all points.
        (from, to) = (along[0], along[most]);
    }
    [from - ROOM * (to - from), to + ROOM * (to - from)]
}

/// The largest number of cells from which the color scale of an image is computed.
const SCALE_CELLS: usize = 1 << 19;

/// The color scale of the image's own density, at two cells per pixel, one, or at most [`SCALE_CELLS`] cells.
fn scale_of(data: &ImageDensity) -> ColorScale {
    let pixels = data.width * data.height;
    let per_pixel = match data.width.max(data.height) {
        _ if pixels > SCALE_CELLS => (SCALE_CELLS as f64 / pixels as f64).sqrt(),
        1001.. => 1.0,
        _ => 2.0,
    };
    let [rows, cols] = [data.height, data.width].map(|n| ((n as f64 * per_pixel) as usize).max(1));
    let values = data.density_on(&data.grid_with_shape(0.0, rows, cols));
    let frame = Extent { x: [0.0, data.width as f64], y: [0.0, data.height as f64] };
    ColorScale::of(&Heatmap { values: &values, rows, cols, frame })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_lie_as_the_image_does() {
        let frame = ImageFrame {
            width: 4,
            height: 2,
            mean: [2.0, 1.0],
            std: [2.0, 0.5],
            factor: Vec::new(),
            entropy_nats: 0.0,
            density_max: 1.0,
            rule: SamplingRule::Default,
            fingerprint: String::new(),
            units: None,
        };
        let (cells, around) = frame.cells_around(8, 1);
        assert_eq!(around, [2, 2]);
        assert_eq!((cells.rows, cells.cols, cells.area), (8, 12, 0.25));
        assert_eq!(frame.to_pixels(cells.centers[0].map(f64::from)), [-0.75, -0.75]);
        assert_eq!(frame.to_pixels(cells.centers[12 * 8 - 1].map(f64::from)), [4.75, 2.75]);
        assert!((frame.log_jacobian() - 0.0).abs() < 1e-15);
        // The corners are 1 and 2 standard deviations away, 1.5 and 4 with a margin of one pixel.
        assert_eq!((frame.reach(0.0), frame.reach(1.0)), (5f64.sqrt(), (1.5f64 * 1.5 + 16.0).sqrt()));
        let margin = frame.margin_within(10.0);
        assert!(frame.reach(margin) <= 10.0 && frame.reach(margin + 1.0) > 10.0, "{margin}");
        assert_eq!(frame.margin_within(1.0), 0.0);
    }

    #[test]
    fn frames_of_before_and_of_now_tell_their_rule() {
        let png = include_bytes!("../../assets/flowlines.png");
        let image = ImageDensity::from_bytes(png, "flowlines").unwrap();
        let uniform = SamplingRule::Uniform { below: 254 };
        for (rule, was) in [(SamplingRule::Default, false), (uniform, true)] {
            let mut frame = ImageFrame::of(&image);
            frame.rule = rule;
            let mut file = serde_json::to_value(&frame).unwrap();
            assert_eq!(file["sd"][0].as_f64(), Some(frame.std[0]), "files say sd");
            assert_eq!(serde_json::from_value::<ImageFrame>(file.clone()).unwrap(), frame);
            let fields = file.as_object_mut().unwrap();
            fields.remove("rule").unwrap();
            fields.insert("documented_rule".into(), was.into());
            assert_eq!(serde_json::from_value::<ImageFrame>(file).unwrap(), frame);
        }
    }

    #[test]
    fn a_window_of_points_has_their_units_with_y_upward_and_the_same_mass() {
        let corners = [[0.0, 10.0], [2.0, 10.0], [0.0, 13.0], [2.0, 13.0]];
        let points = Points::from_rows(corners).unwrap();
        let frame = ImageFrame::of_points(&points, &PointsFrame::of(&points, String::new()));
        let window = frame.window();
        assert!((frame.height, frame.width) == (100, 67) && window.is_upward());
        assert!((window.y[0] - 13.3).abs() < 1e-9 && (window.y[1] - 9.7).abs() < 1e-9, "{window:?}");
        assert!((window.x[0] + window.x[1] - 2.0).abs() < 1e-9 && window.x[0] <= -0.2, "{window:?}");
        let (cells, _) = frame.cells_around(200, 1);
        assert!((cells.area - 0.018 * 0.018).abs() < 1e-12, "{}", cells.area);
        let first = frame.to_pixels(cells.centers[0].map(f64::from));
        assert!(first[1] > 13.3 && first[0] < window.x[0], "{first:?}");
        let place = frame.place([1.0, 13.3]);
        assert!((place[0] - 33.5).abs() < 1e-9 && place[1].abs() < 1e-9, "{place:?}");
        assert!((frame.log_jacobian() + (1.0f64 * 1.5).ln()).abs() < 1e-12);
        let margin = frame.margin_within(30.0);
        assert!(frame.reach(margin) <= 30.0 && frame.reach(margin + 1.0) > 30.0, "{margin}");
        let odd = Points::from_rows([[0.0, 1.0], [1e6, 2.0], [3e5, 1.5]]).unwrap();
        let odd = ImageFrame::of_points(&odd, &PointsFrame::of(&odd, String::new()));
        assert_eq!((odd.width, odd.height), (100, 100));
    }
}
