//! Densities of image sets, each image a point of the unit cube: scores and figures.
//!
//! The log-density is an estimate, reported in [bits/dim](BitsPerDim) with its standard errors.

mod bits;
#[cfg(feature = "plot")]
mod figures;
mod fitted;
mod frame;
mod pixels;
mod samples;
#[cfg(test)]
mod tests;

pub use bits::{BitsPerDim, IMAGE_TOLERANCE, ToleranceRow};
pub(crate) use bits::{Images, bits_of_nats};
#[cfg(feature = "plot")]
pub(crate) use figures::Gallery;
#[cfg(feature = "plot")]
pub(super) use figures::sample_figure;
pub use fitted::ImageScores;
pub use frame::ImagesFrame;
pub use pixels::{PixelTables, PixelTransformKind};
