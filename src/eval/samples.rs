//! Figures of samples of a learned density.

use super::Fitted;
use super::images::sample_figure;
use crate::error::Result;
use crate::plot::{Figure, extra::sample_scatter_with};
use crate::tensor::Key;
use std::path::Path;

impl Fitted {
    /// Plots n samples: of images a sheet, with a column per class where the run has classes; of an image or of points over the
    /// plane a scatter and a histogram.
    ///
    /// # Errors
    /// A solve that ended early, points of another number of coordinates, a file that cannot be written.
    pub fn plot_samples(&self, path: impl AsRef<Path>, n: usize, key: &Key) -> Result<()> {
        Ok(self.samples_figure(n, key)?.save(path)?)
    }

    /// The figure that [`plot_samples`](Self::plot_samples) writes.
    ///
    /// # Errors
    /// A solve that ended early, points of another number of coordinates.
    pub fn samples_figure(&self, n: usize, key: &Key) -> Result<Figure> {
        if self.frames.images.is_some() {
            return sample_figure(&self.flow, self.images("a figure of samples")?, n, key);
        }
        let plane = self.plane("a figure of samples")?;
        let (points, names) = (self.sample(n, key)?, self.frames.axis_names());
        Ok(sample_scatter_with(&points, plane.window(), plane.scale(), names.as_ref())?)
    }
}
