//! Densities of sets of images, each a point of the unit cube: what is measured of them and how they are shown.
//!
//! Their log-density is an estimate, reported in bits per coordinate with its errors ([`bits`](BitsPerDim)), and they are looked
//! at as images. It knows sets, transforms and flows.

mod bits;
mod fitted;
mod frame;
#[cfg(feature = "plot")]
mod pictures;
mod pixels;
mod samples;

pub use bits::{BitsPerDim, IMAGE_TOLERANCE, ToleranceRow};
pub(crate) use bits::{Images, bits_of_nats};
pub use frame::ImagesFrame;
#[cfg(feature = "plot")]
pub(crate) use pictures::Gallery;
#[cfg(feature = "plot")]
pub(super) use pictures::sample_figure;
pub use pixels::{PixelTables, PixelTransformKind};
