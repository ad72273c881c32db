//! Sets of images, each a point of the unit cube: how a run reads them, measures by them and draws them.
//!
//! What differs from points of a file: there are too many to keep as tensors, so a batch is read, dequantised and taken
//! through the pixel transform on a thread of its own while the update before it runs ([`feed`](Feed)); their log-density
//! is an estimate, told in bits a coordinate with its errors ([`bits`](BitsPerDim)); and they are looked at as images.
//! Everything else of a run is the one that learns points. It knows sets, transforms and flows; it must never know a
//! recipe or what an update is.

mod bits;
mod feed;
mod frame;
mod learned;
mod pictures;
mod pixels;
#[cfg(test)]
mod tests;

pub use bits::{BitsPerDim, IMAGE_TOLERANCE, ToleranceRow};
pub(super) use bits::{Images, bits_of_nats};
pub use feed::Feed;
pub use frame::ImagesFrame;
pub(super) use frame::classes;
pub(super) use learned::transform_of;
pub(super) use pictures::Gallery;
pub use pixels::{PixelTables, PixelsKind};
