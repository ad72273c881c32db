//! What can be wrong with an image's bytes. Each message names the format, what was found and what was wanted.

use super::{Channels, Depth};

/// Why bytes are no image.
#[cfg(feature = "train")]
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// No format begins so.
    #[error("its first bytes {first:02x?} are not those of a PNG, JPEG, GIF, WebP or BMP image")]
    UnknownFormat {
        /// The first bytes, eight at most.
        first: Vec<u8>,
    },
    /// The header claims more pixels than are read.
    #[error(
        "its header claims {width} x {height} {format} pixels, which need {bytes} bytes; the limit is {limit} bytes"
    )]
    TooLarge {
        /// The format.
        format: super::Format,
        /// Columns.
        width: u32,
        /// Rows.
        height: u32,
        /// Bytes of the pixels.
        bytes: u128,
        /// The most that may be.
        limit: u64,
    },
    /// The bytes end before the image does.
    #[error("the {format} data are truncated: {what} is not within the {bytes} bytes found")]
    Truncated {
        /// The format.
        format: super::Format,
        /// What is missing, or a part of it.
        what: String,
        /// Bytes found.
        bytes: usize,
    },
    /// A field of the header has a value that is none of those read.
    #[error("the {format} header has {field} = {found}, {wanted}")]
    Header {
        /// The format.
        format: super::Format,
        /// The field.
        field: &'static str,
        /// Its value.
        found: i64,
        /// What is read.
        wanted: &'static str,
    },
    /// The data contradict themselves, or use what the decoder has not.
    #[error("the {format} data are inconsistent: {reason}")]
    Damaged {
        /// The format.
        format: super::Format,
        /// What the decoder said.
        reason: String,
    },
}

/// Why pixels are no PNG file.
#[derive(Debug, thiserror::Error)]
#[error(
    "{width} x {height} pixels ({channels:?}, {depth:?} bits) cannot be a PNG file, of {found} bytes: {reason}"
)]
#[non_exhaustive]
pub struct EncodeError {
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Samples of a pixel.
    pub channels: Channels,
    /// Bits of a sample.
    pub depth: Depth,
    /// Bytes given.
    pub found: usize,
    /// What the encoder said.
    pub reason: String,
}
