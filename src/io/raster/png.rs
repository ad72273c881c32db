//! PNG. The reader returns grayscale or color of 8 or 16 bits; it expands palettes and smaller samples. The
//! writer takes the same kinds of pixels.

use super::{Channels, Depth, EncodeError};
use png::{BitDepth, ColorType, Compression, Encoder, EncodingError, Filter};
#[cfg(feature = "train")]
use {
    super::{DecodeError, Format, LIMIT, Raster},
    png::{Decoder, DecodingError, Info, Limits, Transformations},
    std::io::{Cursor, ErrorKind},
};

/// Decodes the default image, which in an animated file is not always a frame of the animation.
#[cfg(feature = "train")]
pub(super) fn decode(bytes: &[u8]) -> Result<Raster, DecodeError> {
    let decode_error = |error: DecodingError| match error {
        DecodingError::IoError(error) if error.kind() == ErrorKind::UnexpectedEof => {
            Format::Png.ends_early(bytes)
        }
        error => Format::Png.damaged(error),
    };
    let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), Limits { bytes: LIMIT as usize });
    decoder.set_transformations(Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(decode_error)?;
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
    reader.next_frame(&mut pixels).map_err(decode_error)?;
    Ok(Raster::new([width, height], channels, depth, pixels))
}

/// Refuses a palette that is not a whole number of colors; the decoder would index past its end.
#[cfg(feature = "train")]
fn check_palette(info: &Info) -> Result<(), DecodeError> {
    let bytes = info.palette.as_ref().map_or(0, |palette| palette.len());
    if info.color_type == ColorType::Indexed && !bytes.is_multiple_of(3) {
        let reason = format!("its palette has {bytes} bytes, not a multiple of 3");
        return Err(Format::Png.damaged(reason));
    }
    Ok(())
}

/// Encodes pixels as a PNG file. Equal pixels give equal bytes.
///
/// # Errors
/// [`EncodeError`]: no pixels, or `pixels` does not have `width * height` of them.
pub fn encode(
    size: [u32; 2],
    channels: Channels,
    depth: Depth,
    pixels: &[u8],
) -> Result<Vec<u8>, EncodeError> {
    let color = match channels {
        Channels::Gray => ColorType::Grayscale,
        Channels::GrayAlpha => ColorType::GrayscaleAlpha,
        Channels::Rgb => ColorType::Rgb,
        Channels::Rgba => ColorType::Rgba,
    };
    let bits = match depth {
        Depth::Eight => BitDepth::Eight,
        Depth::Sixteen => BitDepth::Sixteen,
    };
    let encoded = write(size, pixels, |encoder| {
        encoder.set_color(color);
        encoder.set_depth(bits);
        encoder.set_compression(Compression::Fast);
        // Set after the compression, which resets the filter.
        encoder.set_filter(Filter::Adaptive);
        Ok(())
    });
    encoded.map_err(|error| refused(size, channels, depth, pixels, &error))
}

/// Encodes a figure as a small lossless PNG file, with a palette if it has at most 256 colors. `about` is
/// stored as the description of the file.
///
/// # Errors
/// As [`encode`].
#[cfg(feature = "plot")]
pub fn encode_figure(size: [u32; 2], rgb: &[u8], about: &str) -> Result<Vec<u8>, EncodeError> {
    let encoded = match palette(rgb) {
        Some((colors, places)) => write(size, &places, |encoder| {
            encoder.set_color(ColorType::Indexed);
            encoder.set_palette(colors.as_flattened().to_vec());
            encoder.set_compression(Compression::Balanced);
            encoder.set_filter(Filter::NoFilter);
            describe(encoder, about)
        }),
        None => write(size, rgb, |encoder| {
            encoder.set_color(ColorType::Rgb);
            encoder.set_compression(Compression::Balanced);
            encoder.set_filter(Filter::Adaptive);
            describe(encoder, about)
        }),
    };
    encoded.map_err(|error| refused(size, Channels::Rgb, Depth::Eight, rgb, &error))
}

#[cfg(feature = "plot")]
fn describe(encoder: &mut Encoder<&mut Vec<u8>>, about: &str) -> Result<(), EncodingError> {
    if about.is_empty() { Ok(()) } else { encoder.add_itxt_chunk("Description".into(), about.into()) }
}

/// The colors of pixels sorted by value, and the palette index of each pixel; `None` for more than 256 colors.
#[cfg(feature = "plot")]
fn palette(rgb: &[u8]) -> Option<(Vec<[u8; 3]>, Vec<u8>)> {
    let (pixels, rest) = rgb.as_chunks::<3>();
    let mut colors = std::collections::BTreeSet::new();
    let mut last = None;
    for pixel in pixels {
        if last != Some(pixel) && colors.insert(*pixel) && colors.len() > 256 {
            return None;
        }
        last = Some(pixel);
    }
    let colors: Vec<[u8; 3]> = colors.into_iter().collect();
    let place = |pixel: &[u8; 3]| colors.binary_search(pixel).unwrap_or(0) as u8;
    let places = pixels.iter().map(place).collect();
    rest.is_empty().then_some((colors, places))
}

fn write(
    [width, height]: [u32; 2],
    pixels: &[u8],
    set: impl FnOnce(&mut Encoder<&mut Vec<u8>>) -> Result<(), EncodingError>,
) -> Result<Vec<u8>, EncodingError> {
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, width, height);
    set(&mut encoder)?;
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(file)
}

fn refused(
    [width, height]: [u32; 2],
    channels: Channels,
    depth: Depth,
    pixels: &[u8],
    error: &EncodingError,
) -> EncodeError {
    EncodeError { width, height, channels, depth, found: pixels.len(), reason: error.to_string() }
}
