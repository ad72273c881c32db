//! GIF animations of at most 256 colors, which repeat forever.

use super::{Channels, Depth, EncodeError};
use gif::{Encoder, EncodingError, Frame, Repeat};
use std::borrow::Cow;

/// Encodes frames as a GIF file; a frame is its palette indices and its duration in hundredths of a second.
/// Equal frames give equal bytes.
///
/// # Errors
/// [`EncodeError`]: no pixels, too many, or a frame that does not have `width * height` pixels.
pub fn encode_animation(
    [width, height]: [u16; 2],
    palette: &[[u8; 3]],
    frames: &[(Vec<u8>, u16)],
) -> Result<Vec<u8>, EncodeError> {
    let encoded = || -> Result<Vec<u8>, EncodingError> {
        let mut file = Vec::new();
        let mut encoder = Encoder::new(&mut file, width, height, palette.as_flattened())?;
        encoder.set_repeat(Repeat::Infinite)?;
        for (pixels, delay) in frames {
            let buffer = Cow::Borrowed(&pixels[..]);
            encoder.write_frame(&Frame { width, height, delay: *delay, buffer, ..Frame::default() })?;
        }
        drop(encoder);
        Ok(file)
    };
    encoded().map_err(|error| EncodeError {
        width: u32::from(width),
        height: u32::from(height),
        channels: Channels::Rgb,
        depth: Depth::Eight,
        found: frames.iter().map(|frame| frame.0.len()).sum(),
        reason: error.to_string(),
    })
}
