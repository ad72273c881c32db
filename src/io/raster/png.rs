//! PNG: read as gray levels or colors of 8 or 16 bits, palettes and smaller samples expanded; written as such.

use super::{Channels, Depth, EncodeError};
use png::{BitDepth, ColorType, Compression, Encoder, EncodingError, Filter};
#[cfg(feature = "train")]
use {
    super::{DecodeError, Format, LIMIT, Raster},
    png::{Decoder, DecodingError, Info, Limits, Transformations},
    std::io::{Cursor, ErrorKind},
};

/// The default image; of an animation that may be none of its frames.
#[cfg(feature = "train")]
pub(super) fn decode(bytes: &[u8]) -> Result<Raster, DecodeError> {
    let told = |error: DecodingError| match error {
        DecodingError::IoError(error) if error.kind() == ErrorKind::UnexpectedEof => {
            Format::Png.ends_early(bytes)
        }
        error => Format::Png.damaged(error),
    };
    let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), Limits { bytes: LIMIT as usize });
    decoder.set_transformations(Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(told)?;
    let (color, bits) = reader.output_color_type();
    let channels = match color {
        ColorType::Grayscale => Channels::Gray,
        ColorType::GrayscaleAlpha => Channels::GrayAlpha,
        ColorType::Rgb => Channels::Rgb,
        ColorType::Rgba => Channels::Rgba,
        ColorType::Indexed => return Err(Format::Png.damaged("its palette was not expanded")),
    };
    check_palette(reader.info())?;
    let depth = if bits == BitDepth::Sixteen { Depth::Sixteen } else { Depth::Eight };
    let (width, height) = reader.info().size();
    let mut pixels = vec![0; Format::Png.room([width, height], channels, depth)?];
    reader.next_frame(&mut pixels).map_err(told)?;
    Ok(Raster::new([width, height], channels, depth, pixels))
}

/// Refuses a palette of no whole number of colors, beyond which the decoder would index.
#[cfg(feature = "train")]
fn check_palette(info: &Info) -> Result<(), DecodeError> {
    let bytes = info.palette.as_ref().map_or(0, |palette| palette.len());
    if info.color_type == ColorType::Indexed && !bytes.is_multiple_of(3) {
        let reason = format!("its palette has {bytes} bytes, which are no whole number of colors");
        return Err(Format::Png.damaged(reason));
    }
    Ok(())
}

/// Pixels as a PNG file; the same pixels give the same bytes.
///
/// # Errors
/// [`EncodeError`]: no pixel, or `pixels` are not of `width * height`.
pub fn encode(
    [width, height]: [u32; 2],
    channels: Channels,
    depth: Depth,
    pixels: &[u8],
) -> Result<Vec<u8>, EncodeError> {
    let encoded = || -> Result<Vec<u8>, EncodingError> {
        let mut file = Vec::new();
        let mut encoder = Encoder::new(&mut file, width, height);
        encoder.set_color(match channels {
            Channels::Gray => ColorType::Grayscale,
            Channels::GrayAlpha => ColorType::GrayscaleAlpha,
            Channels::Rgb => ColorType::Rgb,
            Channels::Rgba => ColorType::Rgba,
        });
        encoder.set_depth(match depth {
            Depth::Eight => BitDepth::Eight,
            Depth::Sixteen => BitDepth::Sixteen,
        });
        encoder.set_compression(Compression::Fast);
        // After the compression, which has a filter of its own.
        encoder.set_filter(Filter::Adaptive);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(pixels)?;
        writer.finish()?;
        Ok(file)
    };
    encoded().map_err(|error| EncodeError {
        width,
        height,
        channels,
        depth,
        found: pixels.len(),
        reason: error.to_string(),
    })
}
