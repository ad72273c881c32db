//! The density over the plane: on a grid, as numbers and as a figure.

use super::FAR;
use super::fitted::Fitted;
use super::measure::{DRAW_TOLERANCE, LogDensity, PART};
use crate::error::Result;
use crate::heatmap::{ColorScale, Extent, Heatmap};
#[cfg(feature = "plot")]
use {
    super::figures::on_cells,
    crate::plot::{Figure, extra::Plane},
    std::path::Path,
};

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
    /// The log-density at the centers of `size` x `size` cells over the image grown by `margin` pixels on all sides.
    ///
    /// # Errors
    /// As [`plane`](Self::plane); a solve that ended early.
    pub(crate) fn log_grid(&self, size: usize, margin: f64) -> Result<DensityGrid> {
        let parts: Vec<_> = self.log_grid_parts(size, margin)?.collect::<Result<_>>()?;
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
    /// log-density is -inf. A part whose solve ended early is an error.
    ///
    /// # Errors
    /// As [`plane`](Self::plane).
    pub(crate) fn log_grid_parts(
        &self,
        size: usize,
        margin: f64,
    ) -> Result<impl Iterator<Item = Result<Vec<f64>>> + '_> {
        let plane = self.plane("a grid")?;
        let (rtol, atol) = self.settings.tolerances(DRAW_TOLERANCE)?;
        let density = LogDensity::for_points(size * size, rtol, atol).within(FAR);
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
        let (rtol, atol) = self.settings.tolerances(DRAW_TOLERANCE)?;
        let log_density = LogDensity::new(rtol, atol);
        Ok((on_cells(&log_density, &self.flow, image, &cells)?, cells.rows, cells.cols))
    }

    /// The density over the image, or the window over points, with `size` cells along the longer side.
    ///
    /// # Errors
    /// A solve that ended early, a density that is not defined over the plane.
    #[cfg(feature = "plot")]
    pub(crate) fn density_figure(&self, size: usize) -> Result<Figure> {
        let (values, rows, cols) = self.over_image(size)?;
        let plane = self.plane("a figure of the density")?;
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
