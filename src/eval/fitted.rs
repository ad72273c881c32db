//! A fitted density in the coordinates of its data: log-densities, samples and figures.
//!
//! Flows work in standardized coordinates; users work in pixels, or in the units of their points. This module
//! converts between the two. Points of any dimension are rows of one flat slice; functions for points in the
//! plane use pairs of coordinates.

use super::draws::Draws;
use super::measure::{DRAW_TOLERANCE, LogDensity, PART, Sampler};
use super::{EvalError, Frames, ImageFrame, PointsFrame};
use crate::cnf::config::Flow;
use crate::data::{PixelTransform, Standardizer};
use crate::error::{Error, Result};
use crate::heatmap::{ColorScale, Extent, Heatmap};
use crate::ode::{Outcome, SolveError, Tolerance};
use crate::tensor::{Key, Tensor};
#[cfg(feature = "plot")]
use {
    super::figures::on_cells,
    crate::plot::{Figure, extra::Plane},
    std::path::Path,
};

/// Log-densities are not evaluated farther than this many standard deviations from the mean of the data. A
/// normal density is exp(-5000) at this distance, and a solve takes thousands of steps.
pub const FAR: f64 = 100.0;

/// A flow in the coordinates of the data that it was fitted to.
#[derive(Debug)]
#[non_exhaustive]
pub struct Fitted {
    /// The flow with its averaged weights, in standardized coordinates.
    pub flow: Flow,
    /// The frames of the data.
    pub frames: Frames,
    /// The pixel transform, if the data are an image set.
    pub(crate) pixels: Option<PixelTransform>,
}

/// Log-densities per square pixel (for points, per unit area) on a grid of `size` x `size` cells.
#[derive(Debug)]
pub struct DensityGrid {
    /// Row-major, first row on top, `[size, size]`.
    pub log_density: Vec<f64>,
    /// Cells along each side.
    pub size: usize,
    /// The extent of the grid, in pixel coordinates (for points, in the units of the data).
    pub frame: Extent,
    /// The color scale.
    pub scale: ColorScale,
    /// The names of the axes.
    pub names: [String; 2],
}

impl Fitted {
    pub(crate) fn new(flow: Flow, frames: &Frames, pixels: Option<PixelTransform>) -> Fitted {
        Fitted { flow, frames: frames.clone(), pixels }
    }

    /// The frame of the image or, for points in the plane, of the window over them. `what` names the request
    /// in the error.
    ///
    /// # Errors
    /// [`EvalError::NoPlane`] for an image set and for points of another dimension than 2.
    pub fn plane(&self, what: &'static str) -> Result<&ImageFrame> {
        let dim = self.dim();
        self.frames.image.as_ref().ok_or_else(|| EvalError::NoPlane { what, dim }.into())
    }

    /// Number of coordinates of a point.
    pub fn dim(&self) -> usize {
        self.flow.base.dim
    }

    /// The transform between standardized coordinates and the coordinates of the data: pixels, or the units
    /// of points.
    fn standard(&self) -> Standardizer {
        self.frames.standard(self.dim())
    }

    /// Names of the coordinates: the data's columns, or x and y of an image.
    pub fn columns(&self) -> Vec<String> {
        let plane = || vec!["x".to_owned(), "y".to_owned()];
        self.frames.points.as_ref().map_or_else(plane, |points| points.columns.clone())
    }

    /// n samples of any dimension, row-major `[n, d]`, in the units of the data (pixels for an image), as an
    /// iterator of parts. With the same key a longer draw starts with the samples of a shorter one. A part is
    /// an error if its solve ended early or a sample is not finite in the units of the data.
    pub fn sample_rows<'a>(&'a self, n: usize, key: &'a Key) -> impl Iterator<Item = Result<Vec<f64>>> + 'a {
        self.rows_of(Sampler::new(), n, key)
    }

    /// [`Fitted::sample_rows`] in `steps` steps of fixed cost
    /// ([`Cnf::push_forward_in_steps`](crate::cnf::Cnf::push_forward_in_steps)): 2 evaluations of the vector field per
    /// step. With the same key, the samples approach those of `sample_rows`.
    ///
    /// # Panics
    /// When there are no steps.
    #[track_caller]
    pub fn sample_rows_in_steps<'a>(
        &'a self,
        n: usize,
        steps: usize,
        key: &'a Key,
    ) -> impl Iterator<Item = Result<Vec<f64>>> + 'a {
        assert!(steps > 0, "steps is 0, but a sample needs at least one step");
        self.rows_of(Sampler::in_steps(steps), n, key)
    }

    fn rows_of<'a>(
        &'a self,
        sampler: Sampler,
        n: usize,
        key: &'a Key,
    ) -> impl Iterator<Item = Result<Vec<f64>>> + 'a {
        let (standard, d, mut drawn) = (self.standard(), self.dim(), 0);
        sampler.draw(&self.flow, n, key).map(move |part| {
            let rows = standard.inverse_transform(&part?);
            let before = drawn;
            drawn += rows.len() / d;
            if let Some(i) = rows.chunks_exact(d).position(|row| !row.iter().all(|x| x.is_finite())) {
                let (row, value) = (before + i + 1, format!("{:?}", &rows[i * d..(i + 1) * d]));
                return Err(EvalError::Overflow { row, value }.into());
            }
            Ok(rows)
        })
    }

    /// n samples in pixel coordinates, x to the right and y down; for points in the plane, in the units of the
    /// data.
    ///
    /// # Errors
    /// A solve that ended early, a sample that is not finite in the units of the data.
    ///
    /// # Panics
    /// If the data have another dimension than 2.
    pub fn sample(&self, n: usize, key: &Key) -> Result<Vec<[f64; 2]>> {
        assert!(self.dim() == 2, "points must have 2 coordinates, got {}", self.dim());
        let parts: Vec<_> = self.sample_rows(n, key).collect::<Result<_>>()?;
        Ok(parts.concat().as_chunks::<2>().0.to_vec())
    }

    /// n samples and their log-densities in nats, both in standardized coordinates
    /// ([`Standardizer`], for a table decorrelated).
    ///
    /// # Errors
    /// A solve that ended early.
    pub fn sample_with_log_prob(&self, n: usize, key: &Key) -> Result<(Tensor, Tensor)> {
        let flow = self.flow.clone().rtol(DRAW_TOLERANCE).atol(DRAW_TOLERANCE);
        flow.sample_with_log_prob(n, key)
    }

    /// The log-density per square pixel at points in pixel coordinates; for points in the plane, per unit area.
    ///
    /// # Errors
    /// Tolerances out of range; a point that is not finite, or farther than [`FAR`] standard deviations from
    /// the mean of the data; a solve that ended early.
    ///
    /// # Panics
    /// If the data do not have two coordinates: use [`Fitted::log_prob_parts`].
    pub fn log_prob(&self, points: &[[f64; 2]], rtol: f64, atol: f64) -> Result<Vec<f64>> {
        let d = self.dim();
        assert!(d == 2, "the data have {d} coordinates, not two: use `log_prob_parts`");
        let parts: Vec<_> = self.log_prob_parts(points.as_flattened(), rtol, atol)?.collect::<Result<_>>()?;
        Ok(parts.concat())
    }

    /// [`Fitted::log_prob`] for rows of any dimension, as an iterator of parts. A part whose solve ended early is an
    /// error.
    ///
    /// # Errors
    /// Tolerances out of range; a point that is not finite, or farther than [`FAR`] standard deviations from
    /// the mean.
    ///
    /// # Panics
    /// If the length is not a multiple of the dimension.
    pub fn log_prob_parts<'a>(
        &'a self,
        points: &'a [f64],
        rtol: f64,
        atol: f64,
    ) -> Result<impl Iterator<Item = Result<Vec<f64>>> + 'a> {
        self.densities(points, (rtol, atol), None)
    }

    /// The log-density of a run with `dequantize` averaged over the rounding of its columns, in parts like
    /// [`Fitted::log_prob_parts`]: `log((1/K) sum_k q(x + h (u_k - 1/2)))` over K = `draws` uniform draws u_k per
    /// row, with the steps h of the columns.
    ///
    /// In expectation over the draws it is at most the logarithm of the mean density over one step around x, by
    /// Jensen's inequality, and it tends to it with many draws. Plus `sum ln h` over the columns with noise it is a
    /// log-probability of the rounded values. Without such columns it is the log-density at x. The draws
    /// are a function of `seed` and the number of the row.
    ///
    /// # Errors
    /// As [`Fitted::log_prob_parts`].
    ///
    /// # Panics
    /// If the length is not a multiple of the dimension, or `draws` is 0.
    pub fn dequantized_log_prob_parts<'a>(
        &'a self,
        points: &'a [f64],
        (draws, seed): (usize, u64),
        (rtol, atol): (f64, f64),
    ) -> Result<impl Iterator<Item = Result<Vec<f64>>> + 'a> {
        assert!(draws > 0, "a mean over 0 draws does not exist; give at least 1");
        let rounding = self.frames.points.as_ref().and_then(PointsFrame::rounding);
        self.densities(points, (rtol, atol), rounding.map(|rounding| Draws { rounding, count: draws, seed }))
    }

    fn densities<'a>(
        &'a self,
        points: &'a [f64],
        (rtol, atol): (f64, f64),
        draws: Option<Draws>,
    ) -> Result<impl Iterator<Item = Result<Vec<f64>>> + 'a> {
        check_tolerances(rtol, atol)?;
        let d = self.dim();
        assert!(
            points.len().is_multiple_of(d),
            "{} coordinates are not a multiple of the dimension {d}",
            points.len()
        );
        let (n, whose) = (points.len() / d, if self.frames.points.is_some() { DATA } else { IMAGE });
        check_rows(points, &self.standard(), whose, |i| format!("point {}", i + 1))?;
        let (density, rows) = (LogDensity::for_points(n, rtol, atol), LogDensity::rows_for(n));
        let (frame, shift) = (self.standard(), self.standard().log_jacobian());
        let solve = move |part: usize, points: &[f64]| -> Result<Vec<f64>> {
            let standard: Vec<f32> = frame.transform(points).into_iter().map(|x| x as f32).collect();
            let found = density.eval_rows(&self.flow, &standard, d).map_err(|e| match e {
                Error::Solve(SolveError::Incomplete { outcome, .. }) => {
                    self.unsolved(part * rows, points, outcome)
                }
                e => e,
            })?;
            Ok(found.into_iter().map(|x| f64::from(x) + shift).collect())
        };
        let of_part = move |(part, points): (usize, &[f64])| match &draws {
            None => solve(part, points),
            Some(draws) => draws.mean((points, d), part * rows, |points| solve(part, points)),
        };
        Ok(points.chunks(rows * d).enumerate().map(of_part))
    }

    fn unsolved(&self, first: usize, points: &[f64], outcome: Outcome) -> Error {
        let (d, standard) = (self.dim(), self.standard());
        let out = |p: &&[f64]| deviations(&standard, p);
        let farthest = points.chunks_exact(d).max_by(|a, b| out(a).total_cmp(&out(b))).unwrap_or_default();
        let n = points.len() / d;
        let place = match n {
            1 => format!("point {}", first + 1),
            n => format!("points {} to {}", first + 1, first + n),
        };
        let rows = [first, first + n - 1];
        EvalError::Unsolved { place, rows, value: in_brief(farthest), outcome }.into()
    }

    /// The log-density at the centers of `size` x `size` cells over the image grown by `margin` pixels on all sides,
    /// solved to `tolerance`, relative and absolute.
    ///
    /// # Errors
    /// As [`plane`](Self::plane); a solve that ended early.
    pub fn log_grid(&self, size: usize, margin: f64, tolerance: f64) -> Result<DensityGrid> {
        let parts: Vec<_> = self.log_grid_parts(size, margin, tolerance)?.collect::<Result<_>>()?;
        self.grid_of(parts.concat(), size, margin)
    }

    /// A grid from the values of [`log_grid_parts`](Self::log_grid_parts).
    ///
    /// # Errors
    /// As [`plane`](Self::plane).
    pub fn grid_of(&self, log_density: Vec<f64>, size: usize, margin: f64) -> Result<DensityGrid> {
        let frame = self.plane("a grid")?.grown(margin);
        let values: Vec<f64> = log_density.iter().map(|x| x.exp()).collect();
        let scale = self.frames.color_scale(&Heatmap { values: &values, rows: size, cols: size, frame });
        Ok(DensityGrid { log_density, size, frame, scale, names: self.frames.axis_names() })
    }

    /// [`Fitted::log_grid`] in parts, row-major, first row on top; beyond [`FAR`] standard deviations the
    /// log-density is -inf. A part whose solve ended early is an error.
    ///
    /// # Errors
    /// As [`plane`](Self::plane).
    pub fn log_grid_parts(
        &self,
        size: usize,
        margin: f64,
        tolerance: f64,
    ) -> Result<impl Iterator<Item = Result<Vec<f64>>> + '_> {
        let plane = self.plane("a grid")?;
        let density = LogDensity::for_points(size * size, tolerance, tolerance).within(FAR);
        let (center, shift) = (plane.centers(margin, size, size), plane.log_jacobian());
        Ok((0..size * size).step_by(PART).map(move |start| {
            let centers: Vec<[f32; 2]> = (start..(start + PART).min(size * size)).map(&center).collect();
            let found = density.eval(&self.flow, &centers)?;
            Ok(found.into_iter().map(|x| f64::from(x) + shift).collect())
        }))
    }

    /// The density over the image, `size` cells along its longer side.
    #[cfg(feature = "plot")]
    fn over_image(&self, size: usize) -> Result<(Vec<f64>, usize, usize)> {
        let image = self.plane("a figure of the density")?;
        let count = |side: usize| (side * size).div_ceil(image.side()).max(2);
        let cells = image.cells(0.0, count(image.height), count(image.width));
        let log_density = LogDensity::new(DRAW_TOLERANCE, DRAW_TOLERANCE);
        Ok((on_cells(&log_density, &self.flow, image, &cells)?, cells.rows, cells.cols))
    }

    /// Plots the density over the image, or the window over points, with `size` cells along the longer side.
    ///
    /// # Errors
    /// As [`density_figure`](Self::density_figure); a file that cannot be written.
    #[cfg(feature = "plot")]
    pub fn plot_density(&self, path: impl AsRef<Path>, size: usize) -> Result<()> {
        Ok(self.density_figure(size)?.save(path)?)
    }

    /// The figure of [`plot_density`](Self::plot_density).
    ///
    /// # Errors
    /// A solve that ended early, a density that is not defined over the plane.
    #[cfg(feature = "plot")]
    pub fn density_figure(&self, size: usize) -> Result<Figure> {
        let (values, rows, cols) = self.over_image(size)?;
        let plane = self.plane("a figure of the density")?;
        let map = Heatmap { values: &values, rows, cols, frame: plane.window() };
        let names = self.frames.axis_names();
        let scale = self.frames.color_scale(&map);
        let plane = Plane { frame: plane.window(), names: [&names[0], &names[1]], scale };
        Ok(plane.density("Learned density", &map)?)
    }
}

/// What the coordinates of points are, in messages: numbers of a table, or pixels of an image.
pub(crate) const DATA: &str = "data";
const IMAGE: &str = "image";

/// Refuses rows at which no log-density is evaluated: a coordinate is not finite, or the row is farther than [`FAR`]
/// standard deviations from the mean. `place` names a row, from 0.
///
/// # Errors
/// [`EvalError::Point`] for the first such row.
pub(crate) fn check_rows(
    rows: &[f64],
    standard: &Standardizer,
    whose: &str,
    place: impl Fn(usize) -> String,
) -> Result<(), EvalError> {
    let is_near = |p: &[f64]| deviations(standard, p) <= FAR;
    let Some((row, p)) = rows.chunks_exact(standard.mean.len()).enumerate().find(|(_, p)| !is_near(p)) else {
        return Ok(());
    };
    let reason = if p.iter().all(|x| x.is_finite()) {
        format!(
            "it is {} standard deviations from the {whose}'s center of mass, but densities are evaluated only within {FAR} standard deviations; leave it out",
            in_short(deviations(standard, p))
        )
    } else {
        let of = if whose == IMAGE { " of pixels" } else { "" };
        format!("coordinates must be finite numbers{of}")
    };
    Err(EvalError::Point { place: place(row), row, value: in_brief(p), reason })
}

/// The distance of a point from the data's mean, in standard deviations.
fn deviations(standard: &Standardizer, p: &[f64]) -> f64 {
    standard.transform(p).into_iter().fold(0.0, f64::hypot)
}

/// The coordinates of a point in a message: at most the first 6.
fn in_brief(p: &[f64]) -> String {
    match p.len() {
        0..=6 => format!("{p:?}"),
        d => {
            let first: Vec<String> = p[..6].iter().map(|x| format!("{x:?}")).collect();
            format!("[{}, ... {d} coordinates]", first.join(", "))
        }
    }
}

/// Formats a number of any magnitude in a few digits.
fn in_short(x: f64) -> String {
    if x < 1e9 { format!("{x:.0}") } else { format!("{x:.1e}") }
}

#[cfg(feature = "plot")]
impl DensityGrid {
    /// Plots the density.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn plot(&self, path: impl AsRef<Path>) -> Result<()> {
        let values: Vec<f64> = self.log_density.iter().map(|x| x.exp()).collect();
        let map = Heatmap { values: &values, rows: self.size, cols: self.size, frame: self.frame };
        let names = self.names.each_ref().map(String::as_str);
        let plane = Plane { frame: self.frame, names, scale: self.scale };
        Ok(plane.density("Learned density", &map)?.save(path)?)
    }
}

/// Refuses tolerances that are negative, not finite, or both zero, and an rtol of 1 or more.
///
/// # Errors
/// [`ConfigError::Tolerance`](crate::ode::ConfigError::Tolerance).
pub fn check_tolerances(rtol: f64, atol: f64) -> Result<(), Error> {
    Ok(Tolerance::new(rtol, atol).check()?)
}
