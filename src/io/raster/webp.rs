//! WebP, lossless and lossy; the first frame of an animation.

use super::{Channels, DecodeError, Depth, Format, Raster};
use image_webp::{DecodingError, WebPDecoder};
use std::io::{Cursor, ErrorKind};

pub(super) fn decode(bytes: &[u8]) -> Result<Raster, DecodeError> {
    let decode_error = |error: DecodingError| match error {
        DecodingError::IoError(error) if error.kind() == ErrorKind::UnexpectedEof => {
            Format::WebP.ends_early(bytes)
        }
        error => Format::WebP.damaged(error),
    };
    let mut decoder = WebPDecoder::new(Cursor::new(bytes)).map_err(decode_error)?;
    let (width, height) = decoder.dimensions();
    let channels = if decoder.has_alpha() { Channels::Rgba } else { Channels::Rgb };
    if decoder.is_animated()
        && let Some([frame, data]) = first_frame(bytes)
        && frame != data
    {
        let [[w, h], [of_w, of_h]] = [frame, data];
        let reason = format!("its first frame is {w} x {h} pixels, its data are {of_w} x {of_h}");
        return Err(Format::WebP.damaged(reason));
    }
    let mut pixels = vec![0; Format::WebP.room([width, height], channels, Depth::Eight)?];
    decoder.read_image(&mut pixels).map_err(decode_error)?;
    Ok(Raster::new([width, height], channels, Depth::Eight, pixels))
}

/// The size of the first frame of an animation, and the size of the lossy image in it, if its alpha is stored
/// separately. For such frames only, the decoder does not compare the two sizes, and would index one image with
/// positions of the other.
fn first_frame(bytes: &[u8]) -> Option<[[u32; 2]; 2]> {
    let mut rest = bytes.get(12..)?;
    let frame = loop {
        let (name, inside, behind) = chunk(rest)?;
        if name == b"ANMF" {
            break inside;
        }
        rest = behind;
    };
    // Offsets, width minus one, height minus one, duration and flags come before the frame's chunks.
    let (header, chunks) = frame.split_first_chunk::<16>()?;
    let of_frame = [6, 9].map(|at| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], 0]) + 1);
    let (b"ALPH", _, behind) = chunk(chunks)? else { return None };
    let (_, data, _) = chunk(behind)?;
    // A key frame has three bytes of flags and three of signature; other frames have no size.
    let &[flags, _, _, _, _, _, w0, w1, h0, h1] = data.first_chunk()?;
    let side =
        |low, high| if flags & 1 == 0 { u32::from(u16::from_le_bytes([low, high]) & 0x3fff) } else { 0 };
    Some([of_frame, [side(w0, w1), side(h0, h1)]])
}

/// Name and bytes of the first chunk, as far as they exist, and the bytes after it.
fn chunk(bytes: &[u8]) -> Option<(&[u8; 4], &[u8], &[u8])> {
    let (name, rest) = bytes.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let length = u32::from_le_bytes(*length) as usize;
    let inside = &rest[..length.min(rest.len())];
    Some((name, inside, rest.get(length.saturating_add(length % 2)..).unwrap_or(&[])))
}
