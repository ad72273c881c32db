//! How flows of images are solved for samples, and what samples are as gray levels.

use super::bits::IMAGE_TOLERANCE;
use crate::cnf::config::Flow;
use crate::data::PixelTransform;
use crate::eval::drawable;
use crate::tensor::Tensor;

/// Rows that are solved together for them.
const SAMPLE_TILE: usize = 16;

/// A flow as it is solved for samples of images.
pub(super) fn for_samples(flow: &Flow) -> Flow {
    drawable(flow, IMAGE_TOLERANCE).rows_per_tile(SAMPLE_TILE)
}

/// Classes as a column for [`Cnf::condition_on`](crate::cnf::Cnf::condition_on).
pub(super) fn column(flow: &Flow, classes: impl Iterator<Item = usize>) -> Tensor {
    let classes: Vec<u32> = classes.map(|k| k as u32).collect();
    Tensor::from_vec([classes.len(), 1], classes).cast(flow.dtype())
}

/// Gray levels of z.
pub(super) fn levels(transform: &PixelTransform, z: &[f64]) -> Vec<u8> {
    transform.inverse(z).into_iter().map(|x| (x * 256.0).clamp(0.0, 255.0) as u8).collect()
}
