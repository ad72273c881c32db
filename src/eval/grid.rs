//! The density over the plane: on a grid, as numbers and as a figure.

use super::domain::NEAR_STREAM;
use super::fitted::Fitted;
use super::measure::{DRAW_TOLERANCE, LogDensity, Sampler};
use super::refine::{Accuracy, OfFlow, Place, Refined};
use super::{Deadline, FAR, at_most};
use crate::error::Result;
use crate::heatmap::{ColorScale, Extent, Heatmap};
use crate::tensor::Key;
#[cfg(feature = "plot")]
use {
    crate::plot::{Figure, extra::Plane},
    std::path::Path,
};

/// The number of samples that show where cells are solved, and of those whose density is computed.
const NEAR: usize = 4096;
const MEASURED: usize = 256;
/// The number of cells that are in memory at once, in whole rows, and a divisor of the number of rows.
const BAND: usize = 1 << 20;
const BAND_ROWS: usize = 16;

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
    /// The log-density at the centers of `size` x `size` cells over the image grown by `margin` pixels on all sides, with
    /// [`Accuracy::NUMBERS`].
    ///
    /// # Errors
    /// As [`plane`](Self::plane); a solve that ended early.
    pub(crate) fn log_grid(&self, size: usize, margin: f64) -> Result<DensityGrid> {
        let parts = self.log_grid_parts(([size; 2], margin), Accuracy::NUMBERS, |_| ())?;
        let parts: Vec<_> = parts.collect::<Result<_>>()?;
        self.grid_of(parts.concat(), size, margin)
    }

    /// A grid from the values of [`log_grid_parts`](Self::log_grid_parts).
    ///
    /// # Errors
    /// As [`plane`](Self::plane).
    pub(crate) fn grid_of(&self, log_density: Vec<f64>, size: usize, margin: f64) -> Result<DensityGrid> {
        let frame = self.plane("a grid")?.grown(margin);
        let values: Vec<f64> = log_density.iter().map(|x| x.exp()).collect();
        let scale = self.frames.color_scale(&Heatmap { values: &values, rows: size, cols: size, frame });
        Ok(DensityGrid { log_density, size, frame, scale, names: self.frames.axis_names() })
    }

    /// [`Fitted::log_grid`] in parts, row-major, first row on top; beyond [`FAR`] standard deviations the
    /// log-density is -inf. A part whose solve ended early is an error. `progress` takes the number of cells that are
    /// done.
    ///
    /// # Errors
    /// As [`plane`](Self::plane).
    pub(crate) fn log_grid_parts<'a>(
        &'a self,
        (shape, margin): ([usize; 2], f64),
        accuracy: Accuracy,
        mut progress: impl FnMut(usize) + 'a,
    ) -> Result<impl Iterator<Item = Result<Vec<f64>>> + 'a> {
        let plane = self.plane("a grid")?;
        let (rtol, atol) = self.settings.tolerances(DRAW_TOLERANCE)?;
        let density = LogDensity::for_points(shape[0] * shape[1], rtol, atol).within(FAR);
        let (frame, shift) = (plane.grown(margin), plane.log_jacobian());
        let (center, [num_rows, num_cols]) = (plane.centers(frame, shape), shape);
        let mut near = None;
        let high = (BAND / num_cols.max(1)).max(1).next_multiple_of(BAND_ROWS);
        Ok((0..num_rows).step_by(high).map(move |first| {
            if near.is_none() && accuracy.first_of(shape) > 1 {
                near = Some(self.near(&density, (frame, shape))?);
            }
            let (seeds, peak) = near.get_or_insert((Vec::new(), f32::NEG_INFINITY));
            let (rows, done) = (high.min(num_rows - first), first * num_cols);
            let within = |&&[row, _]: &&Place| (first..first + rows).contains(&row);
            let seeds = seeds.iter().filter(within).map(|&[row, col]| [row - first, col]).collect();
            let band = Refined { seeds, peak: *peak, ..Refined::new([rows, num_cols], accuracy) };
            let center = |[row, col]: Place| center([first + row, col]);
            let cells = OfFlow { density: &density, flow: &self.flow, center, by: &Deadline::none() };
            let share = &mut |share| progress(done + (share * (rows * num_cols) as f64) as usize);
            let found = cells.eval(&band, share)?;
            let (values, _) = found.expect("invariant: there is no deadline");
            *peak = values.iter().copied().fold(*peak, f32::max);
            progress(done + rows * num_cols);
            Ok(values.into_iter().map(|x| f64::from(x) + shift).collect())
        }))
    }

    /// Cells of a grid over `frame` in which samples lie, and the largest log-density of some samples.
    fn near(&self, density: &LogDensity, (frame, shape): (Extent, [usize; 2])) -> Result<(Vec<Place>, f32)> {
        let plane = self.plane("a grid")?;
        let sampler = Sampler::of_rows(at_most(NEAR));
        let drawn = sampler.part(&self.flow, sampler.rows_per_call(), &Key::new(NEAR_STREAM))?;
        // What lies outside of the grid has no share in its peak.
        let inside = |&x: &[f64; 2]| Some((plane.cell_of(frame, shape, x)?, x.map(|x| x as f32)));
        let (cells, points): (Vec<_>, Vec<_>) = drawn.as_chunks::<2>().0.iter().filter_map(inside).unzip();
        let some = density.eval(&self.flow, &points[..points.len().min(MEASURED)])?;
        Ok((cells, some.into_iter().fold(f32::NEG_INFINITY, f32::max)))
    }

    /// The density over the image, or the window over points, with `size` cells along the longer side.
    ///
    /// # Errors
    /// A solve that ended early, a density that is not defined over the plane.
    #[cfg(feature = "plot")]
    pub(crate) fn density_figure(&self, size: usize) -> Result<Figure> {
        let plane = self.plane("a figure of the density")?;
        let [rows, cols] =
            [plane.height, plane.width].map(|side| (side * size).div_ceil(plane.side()).max(2));
        let parts = self.log_grid_parts(([rows, cols], 0.0), Accuracy::FIGURE, |_| ())?;
        let values: Vec<f64> = parts.collect::<Result<Vec<_>>>()?.concat().iter().map(|x| x.exp()).collect();
        let map = Heatmap { values: &values, rows, cols, frame: plane.window() };
        let names = self.frames.axis_names();
        let scale = self.frames.color_scale(&map);
        let plane = Plane { frame: plane.window(), names: [&names[0], &names[1]], scale };
        Ok(plane.density("Learned density", &map)?)
    }
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
