//! Images as files: pixels of PNG, JPEG, GIF, WebP and BMP files, and PNG and GIF files of pixels.
//!
//! What it knows: bytes, the five formats, samples of 8 and 16 bits. What it must never know: paths, what an image is
//! for. The format is recognized by the first bytes, never by a name. Of an animation the first frame counts; color profiles,
//! gamma and orientation are passed over, so that a pixel is what the file says.
//!
//! PNG, JPEG, GIF and WebP have a decoder of their own each; BMP is read here, a table of numbers but for its runs. One
//! crate for all of them would bring color management, scaling and a dozen other formats, and takes longer to compile
//! than the rest of what images need.
//!
//! No file can make a reader take more than half a gigabyte for its pixels (`LIMIT`): what a header claims is checked
//! before anything of that size is asked for.

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
