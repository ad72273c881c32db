//! Figures of samples.

use super::Fitted;
use super::images::sample_figure;
use crate::error::Result;
use crate::plot::{Figure, extra::Plane};
use crate::tensor::Key;
use std::path::Path;

impl Fitted {
    /// Plots n samples: for image sets a grid, with one column per class, at most 10, if there are classes; for an
    /// image or points in the plane a scatter plot and a histogram.
    ///
    /// # Errors
    /// A solve that ended early, points of another dimension than 2, a file that cannot be written.
    pub fn plot_samples(&self, path: impl AsRef<Path>, n: usize, key: &Key) -> Result<()> {
        Ok(self.samples_figure(n, key)?.save(path)?)
    }

    /// The figure of [`plot_samples`](Self::plot_samples).
    ///
    /// # Errors
    /// A solve that ended early, points of another dimension than 2.
    pub fn samples_figure(&self, n: usize, key: &Key) -> Result<Figure> {
        if self.frames.images.is_some() {
            return sample_figure(&self.flow, self.images("a figure of samples")?, n, key);
        }
        let plane = self.plane("a figure of samples")?;
        let names = self.frames.axis_names();
        let shown = Plane { frame: plane.window(), names: [&names[0], &names[1]], scale: plane.scale() };
        Ok(shown.samples(&self.sample(n, key)?)?)
    }
}
