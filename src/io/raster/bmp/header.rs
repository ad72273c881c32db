//! The header of a bitmap: sizes, how pixels are coded, where they begin.

use super::masks::Masks;
use super::{field, truncated};
use crate::io::raster::{DecodeError, Format};

/// Bytes before the header proper: "BM", the file's length, two reserved words, where the pixels begin.
const FILE_HEADER: usize = 14;
/// The header of OS/2 1, the only one whose sizes have 16 bits and whose palette has 3 bytes a color.
const CORE: u32 = 12;
/// Windows 3; with masks of color, and of opacity; Windows 4; Windows 5.
const INFO: [u32; 5] = [40, 52, 56, 108, 124];
/// The first header whose masks have one for opacity.
const WITH_ALPHA: u32 = 56;
/// Most columns, and most rows of a bitmap that begins with its lowest row.
const SIDE: i32 = 0xffff;

/// Colors of a palette: as many as an index of 8 bits can mean, black where the file has fewer.
pub(super) type Palette = [[u8; 3]; 256];

pub(super) struct Header {
    pub width: u32,
    pub height: u32,
    /// The first row is the highest; usually it is the lowest.
    pub top_down: bool,
    pub coding: Coding,
    /// Where the pixels begin.
    pub data: usize,
}

/// How the bytes of pixels are to be read.
pub(super) enum Coding {
    /// Indices of `bits` bits, the highest first.
    Palette { bits: u32, palette: Box<Palette> },
    /// Words of `bits` bits.
    Masks { bits: u32, masks: Masks },
    /// Runs of indices of `bits` bits.
    Runs { bits: u32, palette: Box<Palette> },
}

impl Header {
    pub(super) fn read(bytes: &[u8]) -> Result<Self, DecodeError> {
        let data = word(bytes, 10)? as usize;
        let length = word(bytes, FILE_HEADER)?;
        if length == CORE {
            core(bytes, data)
        } else if INFO.contains(&length) {
            info(bytes, data, length)
        } else {
            Err(odd("bytes of header", length.into(), "those of 12, 40, 52, 56, 108 and 124 bytes are read"))
        }
    }
}

fn core(bytes: &[u8], data: usize) -> Result<Header, DecodeError> {
    let [width, height] = [short(bytes, 18)?.into(), short(bytes, 20)?.into()];
    extent(width, height)?;
    planes(short(bytes, 22)?)?;
    let bits = short(bytes, 24)?.into();
    let coding = match bits {
        1 | 4 | 8 => Coding::Palette { bits, palette: palette(bytes, CORE, bits, 0)? },
        24 => Coding::Masks { bits, masks: Masks::rgb8() },
        _ => return Err(odd("bits of a pixel", bits.into(), "those of 1, 4, 8 and 24 bits are read")),
    };
    Ok(Header { width: width as u32, height: height as u32, top_down: false, coding, data })
}

fn info(bytes: &[u8], data: usize, length: u32) -> Result<Header, DecodeError> {
    let [width, height] = [word(bytes, 18)? as i32, word(bytes, 22)? as i32];
    if height > SIDE {
        return Err(odd("height", height.into(), "at most 65535 rows are read"));
    }
    // Rows from the top are counted below zero.
    let top_down = height < 0;
    let height = i64::from(height).abs();
    extent(width.into(), height)?;
    planes(short(bytes, 26)?)?;
    let bits = short(bytes, 28)?.into();
    let compression = word(bytes, 30)?;
    let colors = word(bytes, 46)?;
    // The last field, of how many colors matter: read, so that a header cut off is told as such.
    word(bytes, 50)?;
    if top_down && !matches!(compression, 0 | 3) {
        return Err(odd("compression", compression.into(), "a bitmap from the top has 0 or 3"));
    }
    let coding = match (compression, bits) {
        (0, 1 | 2 | 4 | 8) => Coding::Palette { bits, palette: palette(bytes, length, bits, colors)? },
        (0, 16) => Coding::Masks { bits, masks: Masks::rgb5() },
        (0, 24 | 32) => Coding::Masks { bits, masks: Masks::rgb8() },
        (1, 8) | (2, 4) => Coding::Runs { bits, palette: palette(bytes, length, bits, colors)? },
        (3, 16 | 32) => {
            let alpha = if length >= WITH_ALPHA { word(bytes, 66)? } else { 0 };
            let color = [word(bytes, 54)?, word(bytes, 58)?, word(bytes, 62)?];
            Coding::Masks { bits, masks: Masks::new(color, alpha, bits)? }
        }
        (0..=3, _) => return Err(odd("bits of a pixel", bits.into(), "not read with its compression")),
        _ => {
            let wanted = "0 (none), 1 and 2 (runs) and 3 (masks) are read";
            return Err(odd("compression", compression.into(), wanted));
        }
    };
    Ok(Header { width: width as u32, height: height as u32, top_down, coding, data })
}

/// Refuses sizes of nothing and widths that no bitmap has.
fn extent(width: i64, height: i64) -> Result<(), DecodeError> {
    if !(1..=SIDE.into()).contains(&width) {
        return Err(odd("width", width, "1 to 65535 columns are read"));
    }
    if height == 0 || height > i32::MAX.into() {
        return Err(odd("height", height, "at least one row is wanted"));
    }
    Ok(())
}

fn planes(planes: u16) -> Result<(), DecodeError> {
    if planes == 1 { Ok(()) } else { Err(odd("planes", planes.into(), "every bitmap has 1")) }
}

/// The colors behind a header of `length` bytes; `used` of them, or as many as `bits` can mean if that is 0.
fn palette(bytes: &[u8], length: u32, bits: u32, used: u32) -> Result<Box<Palette>, DecodeError> {
    let most = 1 << bits;
    if used > most {
        return Err(odd("colors", used.into(), "a palette has no more than its indices can mean"));
    }
    let colors = if used == 0 { most } else { used } as usize;
    let (start, color) = (FILE_HEADER + length as usize, if length == CORE { 3 } else { 4 });
    let found = bytes.get(start..start + colors * color);
    let found = found.ok_or_else(|| truncated(bytes, format!("its palette of {colors} colors")))?;
    let mut palette = Box::new([[0; 3]; 256]);
    for (to, from) in palette.iter_mut().zip(found.chunks_exact(color)) {
        *to = [from[2], from[1], from[0]];
    }
    Ok(palette)
}

fn word(bytes: &[u8], at: usize) -> Result<u32, DecodeError> {
    let found = field(bytes, at).map(u32::from_le_bytes);
    found.ok_or_else(|| truncated(bytes, "its header".to_owned()))
}

fn short(bytes: &[u8], at: usize) -> Result<u16, DecodeError> {
    let found = field(bytes, at).map(u16::from_le_bytes);
    found.ok_or_else(|| truncated(bytes, "its header".to_owned()))
}

fn odd(field: &'static str, found: i64, wanted: &'static str) -> DecodeError {
    DecodeError::Header { format: Format::Bmp, field, found, wanted }
}
