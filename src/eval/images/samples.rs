//! Solver options for sampling images, and conversion of samples to pixel values.

#[cfg(feature = "plot")]
use super::bits::IMAGE_TOLERANCE;
use crate::cnf::config::Flow;
use crate::data::PixelTransform;
use crate::eval::drawable;
use crate::tensor::Tensor;

/// Rows per tile.
const SAMPLE_TILE: usize = 16;

/// Tolerances of samples, relative and absolute.
#[cfg(feature = "plot")]
pub(super) const DRAWN: (f64, f64) = (IMAGE_TOLERANCE, IMAGE_TOLERANCE);

/// The flow with solver options for sampling images.
pub(super) fn for_samples(flow: &Flow, tolerances: (f64, f64)) -> Flow {
    drawable(flow, tolerances).rows_per_tile(SAMPLE_TILE)
}

/// Classes as a column `[n, 1]` for [`Cnf::condition_on_classes`](crate::cnf::Cnf::condition_on_classes).
pub(super) fn column(flow: &Flow, classes: impl Iterator<Item = usize>) -> Tensor {
    let classes: Vec<u32> = classes.map(|k| k as u32).collect();
    Tensor::from_vec([classes.len(), 1], classes).cast(flow.dtype())
}

/// The pixel values, 0 to 255, of images in the flow's coordinates.
pub(super) fn levels(transform: &PixelTransform, z: &[f64]) -> Vec<u8> {
    transform.inverse(z).into_iter().map(|x| (x * 256.0).clamp(0.0, 255.0) as u8).collect()
}
