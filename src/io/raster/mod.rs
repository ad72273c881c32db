//! Image files: decodes PNG, JPEG, GIF, WebP and BMP, encodes PNG and GIF.
//!
//! It knows bytes, the five formats, and samples of 8 and 16 bits; neither paths nor the purpose of an image. The first
//! bytes give the format, not the file name. Of an animation, the first frame is read. Color profiles, gamma and
//! orientation are ignored, so pixels have the values of the file.
//!
//! PNG, JPEG, GIF and WebP each have a decoder crate. BMP is read here, because it is little more than a table of numbers.
//! One crate for all of them would add color management, scaling and a dozen other formats, and takes longer to compile
//! than all the rest together.
//!
//! No file can make a reader use more than half a gigabyte for its pixels (`LIMIT`): the claims of a header are checked before
//! memory is allocated.

#[cfg(feature = "plot")]
mod animation;
#[cfg(feature = "train")]
mod bmp;
mod error;
#[cfg(feature = "train")]
mod format;
#[cfg(feature = "train")]
mod gif;
#[cfg(feature = "train")]
mod jpeg;
mod pixels;
mod png;
#[cfg(all(test, feature = "train"))]
mod tests;
#[cfg(feature = "train")]
mod webp;

pub use error::EncodeError;
pub use pixels::{Channels, Depth};
pub use png::encode as encode_png;
#[cfg(feature = "plot")]
pub(crate) use {animation::encode_animation, png::encode_figure};
#[cfg(feature = "train")]
pub use {
    error::DecodeError,
    format::{Format, LIMIT, decode},
    pixels::Raster,
};
