//! GIF animations with few colors that repeat forever.

use super::{Channels, Depth, EncodeError};
use gif::{Encoder, EncodingError, Frame, Repeat};
use std::borrow::Cow;

/// Frames `[palette indices, hundredths of a second]` as a GIF file. The bytes are deterministic.
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
