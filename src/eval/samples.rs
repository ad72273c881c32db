//! Figures of samples.

use super::fitted::Fitted;
use super::images::{IMAGE_TOLERANCE, sample_figure};
use crate::error::Result;
use crate::plot::{Figure, extra::Plane};
use crate::tensor::Key;

impl Fitted {
    /// A figure of n samples: for image sets a grid, with one column per class, at most 10, if there are classes; for an
    /// image or points in the plane a scatter plot and a histogram.
    ///
    /// # Errors
    /// A solve that ended early, points of another dimension than 2.
    pub(crate) fn samples_figure(&self, n: usize, key: &Key) -> Result<Figure> {
        if self.frames.images.is_some() {
            let tolerances = self.settings.tolerances(IMAGE_TOLERANCE)?;
            return sample_figure(&self.flow, self.images("a figure of samples")?, tolerances, n, key);
        }
        let plane = self.plane("a figure of samples")?;
        let names = self.frames.axis_names();
        let shown = Plane { frame: plane.window(), names: [&names[0], &names[1]], scale: plane.scale() };
        Ok(shown.samples(self.sample(n, key)?.values().as_chunks::<2>().0)?)
    }
}
