//! Image files: decodes PNG, JPEG, GIF, WebP and BMP, encodes PNG and GIF.
//!
//! The module depends on neither paths nor the purpose of an image. The first bytes determine the format, not
//! the file name. The first frame of an animation is read. Color profiles, gamma and orientation are ignored,
//! so pixels have the values of the file.
//!
//! PNG, JPEG, GIF and WebP each have a decoder crate. BMP is read by this module, because it is little more
//! than a table of numbers. One crate for all formats would add color management, scaling and a dozen other
//! formats, and take much longer to compile.
//!
//! A reader uses at most half a gigabyte for the pixels of a file (`LIMIT`): the sizes in a header are checked
//! before memory is allocated.

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
