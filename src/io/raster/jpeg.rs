//! JPEG: grayscale as gray, every other color space as red, green and blue.

use super::{Channels, DecodeError, Depth, Format, Raster};
use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;
use zune_jpeg::zune_core::bytestream::{ZByteIoError, ZCursor};
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

pub(super) fn decode(bytes: &[u8]) -> Result<Raster, DecodeError> {
    let decode_error = |error: DecodeErrors| match error {
        DecodeErrors::ExhaustedData | DecodeErrors::IoErrors(ZByteIoError::NotEnoughBytes(..)) => {
            Format::Jpeg.ends_early(bytes)
        }
        DecodeErrors::Format(reason) => Format::Jpeg.damaged(reason),
        DecodeErrors::FormatStatic(reason) => Format::Jpeg.damaged(reason),
        error => Format::Jpeg.damaged(error),
    };
    // Truncated images and extra bytes are common and accepted; `LIMIT` bounds the size.
    let lenient =
        DecoderOptions::default().set_strict_mode(false).set_max_width(usize::MAX).set_max_height(usize::MAX);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), lenient);
    decoder.decode_headers().map_err(decode_error)?;
    let (channels, space) = match decoder.input_colorspace() {
        Some(ColorSpace::Luma) => (Channels::Gray, ColorSpace::Luma),
        _ => (Channels::Rgb, ColorSpace::RGB),
    };
    decoder.set_options(lenient.jpeg_set_out_colorspace(space));
    let size = decoder.dimensions().map(|(width, height)| [width as u32, height as u32]);
    let size = size.ok_or_else(|| Format::Jpeg.damaged("its header has no size"))?;
    let mut pixels = vec![0; Format::Jpeg.room(size, channels, Depth::Eight)?];
    decoder.decode_into(&mut pixels).map_err(decode_error)?;
    Ok(Raster::new(size, channels, Depth::Eight, pixels))
}
