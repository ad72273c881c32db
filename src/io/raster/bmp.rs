//! Windows bitmaps: headers of OS/2 1 and Windows 3 to 5, palettes, bit masks, run-length encoding.
//!
//! (Microsoft, "Bitmap Storage"; the headers are BITMAPCOREHEADER and BITMAPINFOHEADER with its extensions.)
//! Every pixel of more than 8 bits is read by masks, including 24-bit pixels. A palette entry is blue, green
//! and red; a fourth byte is unused. Pixels that runs skip are black. A bitmap that contains JPEG or PNG data
//! is refused.

mod header;
mod masks;
mod rows;
mod runs;

use super::{Channels, DecodeError, Depth, Format, Raster};
use header::{Coding, Header};

pub(super) fn decode(bytes: &[u8]) -> Result<Raster, DecodeError> {
    let header = Header::read(bytes)?;
    let channels = match &header.coding {
        Coding::Masks { masks, .. } if masks.alpha.is_some() => Channels::Rgba,
        _ => Channels::Rgb,
    };
    let size = [header.width, header.height];
    let room = Format::Bmp.room(size, channels, Depth::Eight)?;
    let pixels = match &header.coding {
        Coding::Palette { bits, palette } => {
            let row_bytes = rows::check(&header, *bits, bytes)?;
            let mut pixels = vec![0; room];
            rows::each(&header, row_bytes, bytes, &mut pixels, |row, line| {
                rows::indexed(row, *bits, palette, line);
            });
            pixels
        }
        Coding::Masks { bits, masks } => {
            let row_bytes = rows::check(&header, *bits, bytes)?;
            let mut pixels = vec![0; room];
            rows::each(&header, row_bytes, bytes, &mut pixels, |row, line| masks.row(row, *bits, line));
            pixels
        }
        Coding::Runs { bits, palette } => {
            let mut pixels = vec![0; room];
            runs::expand(&header, *bits, palette, bytes, &mut pixels)?;
            pixels
        }
    };
    Ok(Raster::new(size, channels, Depth::Eight, pixels))
}

/// Bytes `at..at + N`, if they exist.
fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn truncated(bytes: &[u8], what: String) -> DecodeError {
    DecodeError::Truncated { format: Format::Bmp, what, bytes: bytes.len() }
}
