//! What a run leaves behind: a flow in the frame of its image, from the end of a run or from its folder.
//!
//! Flows work in standardised coordinates; people and other programs speak of pixels. This is where the two meet.

use super::evaluate::{DRAW_TOLERANCE, LogDensity, PART, Sampler, on_cells};
use super::folder::MODEL_FILE;
use super::model::Flow;
use super::run::Header;
use super::state::TrainState;
use super::{ImageFrame, Report, TrainError};
use crate::cnf::Cnf;
use crate::error::{Error, Result};
use crate::io::read_checkpoint;
use crate::nn::DriftNet;
use crate::ode::Outcome;
use crate::plot::{self, DensityMap, Scale};
use crate::tensor::{Key, Tensor};
use std::path::Path;

/// Deviations from the image's centre of mass beyond which no log-density is told: there are no data within 90 of them, a
/// normal density would be exp(-5000), and a solve takes thousands of steps.
pub const FAR: f64 = 100.0;

/// A learned density of an image.
#[derive(Debug)]
#[non_exhaustive]
pub struct Learned {
    /// The flow with its averaged weights, in standardised coordinates.
    pub flow: Flow,
    /// What the checkpoint says: options, recipe, image.
    pub header: Header,
    /// Updates done.
    pub update: u64,
    /// The run in numbers; none where it was only read.
    pub report: Option<Report>,
}

/// Log-densities per square pixel on a square grid.
#[derive(Debug)]
pub struct LogGrid {
    /// Row-major, first row on top, [size, size].
    pub log_density: Vec<f64>,
    /// Cells along each side.
    pub size: usize,
    /// What the cells cover, in pixel coordinates.
    pub frame: plot::Frame,
    /// The colour scale of the run's pictures.
    pub scale: Scale,
}

impl Learned {
    pub(super) fn new(state: TrainState, header: Header, report: Option<Report>) -> Learned {
        Learned { flow: state.ema, header, update: state.update.item() as u64, report }
    }

    /// Reads a run folder.
    ///
    /// # Errors
    /// No checkpoint, a damaged one, one of another version.
    pub fn open(folder: impl AsRef<Path>) -> Result<Learned> {
        let checkpoint = read_checkpoint::<Header>(folder.as_ref().join(MODEL_FILE))?;
        let like = checkpoint.header.recipe.model.build(&Key::new(0))?;
        let flow = checkpoint.part("ema", &like)?;
        let update = checkpoint.part("update", &Tensor::from(0u32))?.item() as u64;
        Ok(Learned { flow, header: checkpoint.header, update, report: None })
    }

    /// The image's size, units and entropy.
    pub fn image(&self) -> &ImageFrame {
        &self.header.image
    }

    /// n draws in pixel coordinates, x to the right and y down.
    ///
    /// # Errors
    /// A solve that ended early.
    pub fn sample(&self, n: usize, key: &Key) -> Result<Vec<[f64; 2]>> {
        let parts: Vec<_> = self.sample_parts(n, key).collect::<Result<_>>()?;
        Ok(parts.concat())
    }

    /// [`Learned::sample`] in parts, for more points than memory holds; a longer draw by the same key begins with the points
    /// of a shorter one. A part whose solve ended early is an error.
    pub fn sample_parts<'a>(
        &'a self,
        n: usize,
        key: &'a Key,
    ) -> impl Iterator<Item = Result<Vec<[f64; 2]>>> + 'a {
        let to_pixels = |part: Vec<[f64; 2]>| part.into_iter().map(|p| self.image().to_pixels(p)).collect();
        Sampler::new().draw(&self.flow, n, key).map(move |part| part.map(to_pixels))
    }

    /// n draws and their log-densities in nats, both in standardised coordinates.
    ///
    /// # Errors
    /// A solve that ended early.
    pub fn sample_with_log_prob(&self, n: usize, key: &Key) -> Result<(Tensor, Tensor)> {
        let flow = self.flow.clone().tolerances(DRAW_TOLERANCE, DRAW_TOLERANCE);
        flow.sample_with_log_prob(n, key)
    }

    /// The log-density per square pixel of points in pixel coordinates.
    ///
    /// # Errors
    /// Tolerances out of range, a point that is not finite or farther than [`FAR`] from the image, a solve that ended early.
    pub fn log_prob(&self, points: &[[f64; 2]], rtol: f64, atol: f64) -> Result<Vec<f64>> {
        let parts: Vec<_> = self.log_prob_parts(points, rtol, atol)?.collect::<Result<_>>()?;
        Ok(parts.concat())
    }

    /// [`Learned::log_prob`] in parts as they are solved. A part whose solve ended early is an error.
    ///
    /// # Errors
    /// Tolerances out of range, a point that is not finite or farther than [`FAR`] from the image.
    pub fn log_prob_parts<'a>(
        &'a self,
        points: &'a [[f64; 2]],
        rtol: f64,
        atol: f64,
    ) -> Result<impl Iterator<Item = Result<Vec<f64>>> + 'a> {
        super::check_tolerances(rtol, atol)?;
        for (i, &p) in points.iter().enumerate() {
            self.check_point(p).map_err(|reason| {
                let place = format!("point {}", i + 1);
                TrainError::Point { place, row: i, value: format!("{p:?}"), reason }
            })?;
        }
        let (density, rows) =
            (LogDensity::for_points(points.len(), rtol, atol), LogDensity::rows_for(points.len()));
        let shift = self.image().log_jacobian();
        let solve = move |(part, points): (usize, &[[f64; 2]])| {
            let standard: Vec<[f32; 2]> =
                points.iter().map(|&p| self.image().to_standard(p).map(|x| x as f32)).collect();
            let found = density.eval(&self.flow, &standard).map_err(|e| match e {
                Error::Solve { outcome } => self.unsolved(part * rows, points, outcome),
                e => e,
            })?;
            Ok(found.into_iter().map(|x| f64::from(x) + shift).collect())
        };
        Ok(points.chunks(rows).enumerate().map(solve))
    }

    /// What is wrong with a point.
    fn check_point(&self, p: [f64; 2]) -> Result<(), String> {
        if !p.iter().all(|x| x.is_finite()) {
            return Err("coordinates must be finite numbers of pixels".to_owned());
        }
        let [x, y] = self.image().to_standard(p);
        let out = x.hypot(y);
        if out > FAR {
            return Err(format!(
                "it lies {out:.0} deviations from the image's centre of mass, densities are told within {FAR}; leave it out"
            ));
        }
        Ok(())
    }

    fn unsolved(&self, first: usize, points: &[[f64; 2]], outcome: Outcome) -> Error {
        let out = |p: &[f64; 2]| {
            let [x, y] = self.image().to_standard(*p);
            x.hypot(y)
        };
        let farthest = points.iter().max_by(|a, b| out(a).total_cmp(&out(b))).copied().unwrap_or_default();
        let place = match points.len() {
            1 => format!("point {}", first + 1),
            n => format!("points {} to {}", first + 1, first + n),
        };
        let rows = [first, first + points.len() - 1];
        TrainError::Unsolved { place, rows, value: format!("{farthest:?}"), outcome }.into()
    }

    /// The log-density at the centres of `size` x `size` cells over the image grown by `margin` pixels on all sides,
    /// solved to `tolerance`, relative and absolute.
    ///
    /// # Errors
    /// A solve that ended early.
    pub fn log_grid(&self, size: usize, margin: f64, tolerance: f64) -> Result<LogGrid> {
        let parts: Vec<_> = self.log_grid_parts(size, margin, tolerance).collect::<Result<_>>()?;
        let (frame, scale) = (self.image().grown(margin), self.image().scale());
        Ok(LogGrid { log_density: parts.concat(), size, frame, scale })
    }

    /// [`Learned::log_grid`] in parts, row-major, first row on top; what lies farther out than [`FAR`] has log-density -inf. A
    /// part whose solve ended early is an error.
    pub fn log_grid_parts(
        &self,
        size: usize,
        margin: f64,
        tolerance: f64,
    ) -> impl Iterator<Item = Result<Vec<f64>>> + '_ {
        let density = LogDensity::for_points(size * size, tolerance, tolerance).within(FAR);
        let (centre, shift) = (self.image().centres(margin, size, size), self.image().log_jacobian());
        (0..size * size).step_by(PART).map(move |start| {
            let centres: Vec<[f32; 2]> = (start..(start + PART).min(size * size)).map(&centre).collect();
            let found = density.eval(&self.flow, &centres)?;
            Ok(found.into_iter().map(|x| f64::from(x) + shift).collect())
        })
    }

    /// The density over the image, `size` cells along its longer side.
    fn over_image(&self, size: usize) -> Result<(Vec<f64>, usize, usize)> {
        let image = self.image();
        let count = |side: usize| (side * size).div_ceil(image.side()).max(2);
        let cells = image.cells(0.0, count(image.height), count(image.width));
        let log_density = LogDensity::new(DRAW_TOLERANCE, DRAW_TOLERANCE);
        Ok((on_cells(&log_density, &self.flow, image, &cells)?, cells.rows, cells.cols))
    }

    /// Draws the density over the image on a grid of `size` cells along its longer side.
    ///
    /// # Errors
    /// A solve that ended early, a file that cannot be written.
    pub fn plot_density(&self, path: impl AsRef<Path>, size: usize) -> Result<()> {
        let (values, rows, cols) = self.over_image(size)?;
        let map = DensityMap { values: &values, rows, cols, frame: self.image().window() };
        Ok(plot::density("learned density", &map, self.image().scale())?.save(path)?)
    }
}

impl LogGrid {
    /// Draws the density on the colour scale of the run.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn plot(&self, path: impl AsRef<Path>) -> Result<()> {
        let values: Vec<f64> = self.log_density.iter().map(|x| x.exp()).collect();
        let map = DensityMap { values: &values, rows: self.size, cols: self.size, frame: self.frame };
        Ok(plot::density("learned density", &map, self.scale)?.save(path)?)
    }
}

impl Cnf<DriftNet> {
    /// The flow of a run folder, with its averaged weights.
    ///
    /// # Errors
    /// No checkpoint, a damaged one, one of another version.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self> {
        Ok(Learned::open(folder)?.flow)
    }
}
