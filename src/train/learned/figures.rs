//! Figures of a trained density.

use super::TrainedFlow;
use crate::error::Result;
use crate::plot::Figure;
use crate::tensor::Key;
use std::path::Path;

/// Figures.
impl TrainedFlow {
    /// Plots the density over the image, or the window over points, with `size` cells along the longer side.
    ///
    /// # Errors
    /// As [`density_figure`](Self::density_figure); a file that cannot be written.
    pub fn plot_density(&self, path: impl AsRef<Path>, size: usize) -> Result<()> {
        Ok(self.density_figure(size)?.save(path)?)
    }

    /// The figure of [`plot_density`](Self::plot_density).
    ///
    /// # Errors
    /// A density that is not defined over the plane, tolerances out of range, a solve that ended early.
    pub fn density_figure(&self, size: usize) -> Result<Figure> {
        self.fitted.density_figure(size)
    }

    /// Plots n samples: for image sets a grid, with one column per class, at most 10, if there are classes; for an
    /// image or points in the plane a scatter plot and a histogram.
    ///
    /// # Errors
    /// As [`samples_figure`](Self::samples_figure); a file that cannot be written.
    pub fn plot_samples(&self, path: impl AsRef<Path>, n: usize, key: &Key) -> Result<()> {
        Ok(self.samples_figure(n, key)?.save(path)?)
    }

    /// The figure of [`plot_samples`](Self::plot_samples).
    ///
    /// # Errors
    /// Points of another dimension than 2; the errors of [`sample`](Self::sample).
    pub fn samples_figure(&self, n: usize, key: &Key) -> Result<Figure> {
        self.fitted.samples_figure(n, key)
    }
}
