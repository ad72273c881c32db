//! Densities of sets of images, each a point of the unit cube: what is measured of them and how they are shown.
//!
//! Their log-density is an estimate, reported in bits per coordinate with its errors ([`bits`](BitsPerDim)), and they are looked
//! at as images. It knows sets, transforms and flows.

mod bits;
#[cfg(feature = "plot")]
mod figures;
mod fitted;
mod frame;
mod pixels;
mod samples;

pub use bits::{BitsPerDim, IMAGE_TOLERANCE, ToleranceRow};
pub(crate) use bits::{Images, bits_of_nats};
#[cfg(feature = "plot")]
pub(crate) use figures::Gallery;
#[cfg(feature = "plot")]
pub(super) use figures::sample_figure;
pub use frame::ImagesFrame;
pub use pixels::{PixelTables, PixelTransformKind};
