//! Errors of image data. Each message names the format, what was found and what was expected.

use super::{Channels, Depth};

/// Why bytes cannot be decoded as an image.
#[cfg(feature = "train")]
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The first bytes are not those of a known format.
    #[error("its first bytes {first:02x?} are not those of a PNG, JPEG, GIF, WebP or BMP image")]
    UnknownFormat {
        /// The first bytes, eight at most.
        first: Vec<u8>,
    },
    /// The pixels need more bytes than the limit.
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
        /// Number of bytes that the pixels need.
        bytes: u128,
        /// The limit, in bytes.
        limit: u64,
    },
    /// The bytes end before the end of the image.
    #[error("the {format} data are truncated: {what} is not within the {bytes} bytes found")]
    Truncated {
        /// The format.
        format: super::Format,
        /// The part of the file that is missing or incomplete.
        what: String,
        /// Bytes found.
        bytes: usize,
    },
    /// A field of the header has an unsupported value.
    #[error("the {format} header has {field} = {found}, {wanted}")]
    Header {
        /// The format.
        format: super::Format,
        /// The field.
        field: &'static str,
        /// Its value.
        found: i64,
        /// The supported values.
        wanted: &'static str,
    },
    /// The data are inconsistent, or use a feature that the decoder does not support.
    #[error("the {format} data are inconsistent or not supported: {reason}")]
    Damaged {
        /// The format.
        format: super::Format,
        /// Message of the decoder.
        reason: String,
    },
}

/// Why pixels cannot be encoded as PNG or GIF.
#[derive(Debug, thiserror::Error)]
#[error(
    "{width} x {height} pixels ({channels:?}, {depth:?} bits), {found} bytes, cannot be encoded as PNG or GIF: {reason}"
)]
#[non_exhaustive]
pub struct EncodeError {
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Channels of a pixel.
    pub channels: Channels,
    /// Bits of a sample.
    pub depth: Depth,
    /// Number of bytes given.
    pub found: usize,
    /// Message of the encoder.
    pub reason: String,
}
