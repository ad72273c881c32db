//! What a run leaves behind: a flow in the frame of its image, from the end of a run or from its folder.
//!
//! Flows work in standardised coordinates; people and other programs speak of pixels. This is where the two meet.

use super::evaluate::{DRAW_TOLERANCE, LogDensity, Sampler, on_cells};
use super::folder::MODEL_FILE;
use super::model::Flow;
use super::run::Header;
use super::state::TrainState;
use super::{ImageFrame, Report, TrainError};
use crate::cnf::Cnf;
use crate::error::Result;
use crate::io::read_checkpoint;
use crate::nn::DriftNet;
use crate::plot::{self, DensityMap, Scale};
use crate::tensor::{Key, Tensor};
use std::path::Path;

/// Cells along the longer side where only the colour scale is wanted.
const SCALE_CELLS: usize = 128;

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
        let points = Sampler::new().draw(&self.flow, n, key)?;
        Ok(points.into_iter().map(|p| self.image().to_pixels(p)).collect())
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
    /// Tolerances out of range, a point that is not finite, a solve that ended early.
    pub fn log_prob(&self, points: &[[f64; 2]], rtol: f64, atol: f64) -> Result<Vec<f64>> {
        super::check_tolerances(rtol, atol)?;
        if let Some(i) = points.iter().position(|p| !p.iter().all(|x| x.is_finite())) {
            let value = format!("{:?}", points[i]);
            return Err(TrainError::Point { row: i + 1, value }.into());
        }
        let image = self.image();
        let standard: Vec<[f32; 2]> =
            points.iter().map(|&p| image.to_standard(p).map(|x| x as f32)).collect();
        let log_probs = LogDensity::new(rtol, atol).eval(&self.flow, &standard)?;
        Ok(log_probs.into_iter().map(|x| f64::from(x) + image.log_jacobian()).collect())
    }

    /// The log-density at the centres of `size` x `size` cells over the image grown by `margin` pixels on all sides,
    /// solved to `tolerance`, relative and absolute.
    ///
    /// # Errors
    /// A solve that ended early.
    pub fn log_grid(&self, size: usize, margin: f64, tolerance: f64) -> Result<LogGrid> {
        let cells = self.image().cells(margin, size, size);
        let log_probs = LogDensity::new(tolerance, tolerance).eval(&self.flow, &cells.centres)?;
        let shift = self.image().log_jacobian();
        let log_density = log_probs.into_iter().map(|x| f64::from(x) + shift).collect();
        Ok(LogGrid { log_density, size, frame: cells.frame })
    }

    /// The colour scale of the learned density over its image.
    ///
    /// # Errors
    /// A solve that ended early.
    pub fn scale(&self) -> Result<Scale> {
        let (values, rows, cols) = self.over_image(SCALE_CELLS)?;
        Ok(Scale::of(&DensityMap { values: &values, rows, cols, frame: self.image().window() }))
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
        Ok(plot::density("learned density", &map, Scale::of(&map))?.save(path)?)
    }
}

impl LogGrid {
    /// Draws the density.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn plot(&self, path: impl AsRef<Path>) -> Result<()> {
        let values: Vec<f64> = self.log_density.iter().map(|x| x.exp()).collect();
        let map = DensityMap { values: &values, rows: self.size, cols: self.size, frame: self.frame };
        Ok(plot::density("learned density", &map, Scale::of(&map))?.save(path)?)
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
