//! The format of image bytes, and the limit of memory for an image.

use super::{Channels, DecodeError, Depth, Raster, bmp, gif, jpeg, png, webp};

/// Maximum number of bytes for the decoded pixels of an image: 512 MiB.
pub const LIMIT: u64 = 512 << 20;

/// An image format that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Portable Network Graphics.
    Png,
    /// Baseline and progressive JPEG.
    Jpeg,
    /// Graphics Interchange Format, 87a and 89a.
    Gif,
    /// WebP, lossless and lossy.
    WebP,
    /// Windows bitmap.
    Bmp,
}

impl Format {
    /// The format with this signature.
    fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::WebP),
            [b'B', b'M', ..] => Some(Self::Bmp),
            _ => None,
        }
    }

    /// Bytes of an image's pixels, if they are within the limit.
    pub(super) fn room(
        self,
        [width, height]: [u32; 2],
        channels: Channels,
        depth: Depth,
    ) -> Result<usize, DecodeError> {
        let bytes = u128::from(width) * u128::from(height) * (channels.count() * depth.bytes()) as u128;
        if bytes > u128::from(LIMIT) {
            return Err(DecodeError::TooLarge { format: self, width, height, bytes, limit: LIMIT });
        }
        Ok(bytes as usize)
    }

    /// The error with the message of a decoder that failed.
    pub(super) fn damaged(self, reason: impl ToString) -> DecodeError {
        let reason = reason.to_string();
        // Some decoders end messages with a full stop or a line break; here they become part of a sentence.
        let reason = reason.trim_end_matches(|c: char| c == '.' || c.is_whitespace()).to_owned();
        DecodeError::Damaged { format: self, reason }
    }

    /// The error for a truncated file.
    pub(super) fn ends_early(self, bytes: &[u8]) -> DecodeError {
        DecodeError::Truncated { format: self, what: "the end".to_owned(), bytes: bytes.len() }
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Png => "PNG",
            Self::Jpeg => "JPEG",
            Self::Gif => "GIF",
            Self::WebP => "WebP",
            Self::Bmp => "BMP",
        })
    }
}

/// Decodes the pixels of an image file; its first bytes determine the format.
///
/// # Errors
/// [`DecodeError`]: the bytes are not a complete image, or the pixels need more than [`LIMIT`] bytes.
///
/// # Examples
/// ```
/// use flowline::io::raster::{Channels, Depth, decode, encode_png};
///
/// let file = encode_png([2, 1], Channels::Gray, Depth::Eight, &[0, 255])?;
/// let image = decode(&file).unwrap();
/// assert_eq!((image.width(), image.height(), image.is_gray()), (2, 1, true));
/// assert_eq!(image.rgba8().next(), Some([0, 0, 0, 255]));
/// # Ok::<(), flowline::io::raster::EncodeError>(())
/// ```
pub fn decode(bytes: &[u8]) -> Result<Raster, DecodeError> {
    match Format::of(bytes) {
        Some(Format::Png) => png::decode(bytes),
        Some(Format::Jpeg) => jpeg::decode(bytes),
        Some(Format::Gif) => gif::decode(bytes),
        Some(Format::WebP) => webp::decode(bytes),
        Some(Format::Bmp) => bmp::decode(bytes),
        None => Err(DecodeError::UnknownFormat { first: bytes[..bytes.len().min(8)].to_vec() }),
    }
}
