//! The header of a bitmap: sizes, pixel encoding, offset of the pixels.

use super::masks::Masks;
use super::{field, truncated};
use crate::io::raster::{DecodeError, Format};

/// Bytes before the header proper: "BM", the file's length, two reserved words, the offset of the pixels.
const FILE_HEADER: usize = 14;
/// Length of the header of OS/2 1, the only one with 16-bit sizes and 3 bytes per palette color.
const CORE: u32 = 12;
/// Lengths of the headers of Windows 3 (without masks, with color masks, and also with an alpha mask),
/// Windows 4 and Windows 5.
const INFO: [u32; 5] = [40, 52, 56, 108, 124];
/// Length of the shortest header with an alpha mask.
const WITH_ALPHA: u32 = 56;
/// Maximum number of columns, and of rows of a bottom-up bitmap.
const SIDE: i32 = 0xffff;

/// Colors of a palette: one per value of an 8-bit index, black if missing in the file.
pub(super) type Palette = [[u8; 3]; 256];

pub(super) struct Header {
    pub width: u32,
    pub height: u32,
    /// Whether the top row comes first in the file; usually the bottom row does.
    pub top_down: bool,
    pub coding: Coding,
    /// Offset of the pixels.
    pub data: usize,
}

/// The encoding of the pixels.
pub(super) enum Coding {
    /// Indices of `bits` bits, the highest bits first.
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
            Err(odd("header length", length.into(), "supported values are 12, 40, 52, 56, 108 and 124"))
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
        _ => return Err(odd("bits per pixel", bits.into(), "supported values are 1, 4, 8 and 24")),
    };
    Ok(Header { width: width as u32, height: height as u32, top_down: false, coding, data })
}

fn info(bytes: &[u8], data: usize, length: u32) -> Result<Header, DecodeError> {
    let [width, height] = [word(bytes, 18)? as i32, word(bytes, 22)? as i32];
    if height > SIDE {
        return Err(odd("height", height.into(), "at most 65535 is supported"));
    }
    // A negative height means rows from the top.
    let top_down = height < 0;
    let height = i64::from(height).abs();
    extent(width.into(), height)?;
    planes(short(bytes, 26)?)?;
    let bits = short(bytes, 28)?.into();
    let compression = word(bytes, 30)?;
    let colors = word(bytes, 46)?;
    // The last field, the number of important colors, is read so that a truncated header is reported as such.
    word(bytes, 50)?;
    if top_down && !matches!(compression, 0 | 3) {
        return Err(odd("compression", compression.into(), "a top-down bitmap has 0 or 3"));
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
        (0..=3, _) => return Err(odd("bits per pixel", bits.into(), "not supported with its compression")),
        _ => {
            let wanted = "supported values are 0 (none), 1 and 2 (runs) and 3 (masks)";
            return Err(odd("compression", compression.into(), wanted));
        }
    };
    Ok(Header { width: width as u32, height: height as u32, top_down, coding, data })
}

/// Refuses sizes that are empty or too large.
fn extent(width: i64, height: i64) -> Result<(), DecodeError> {
    if !(1..=SIDE.into()).contains(&width) {
        return Err(odd("width", width, "supported values are 1 to 65535"));
    }
    if height == 0 || height > i32::MAX.into() {
        return Err(odd("height", height, "at least 1 is required"));
    }
    Ok(())
}

fn planes(planes: u16) -> Result<(), DecodeError> {
    if planes == 1 { Ok(()) } else { Err(odd("planes", planes.into(), "every bitmap has 1")) }
}

/// The colors after a header of `length` bytes: `used` of them, or one per value of `bits` bits if `used` is
/// 0.
fn palette(bytes: &[u8], length: u32, bits: u32, used: u32) -> Result<Box<Palette>, DecodeError> {
    let most = 1 << bits;
    if used > most {
        return Err(odd("colors", used.into(), "more than its indices can address"));
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
