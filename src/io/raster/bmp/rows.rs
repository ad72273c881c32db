//! Uncompressed rows, each padded to a multiple of four bytes.

use super::header::{Header, Palette};
use super::truncated;
use crate::io::raster::DecodeError;

/// Checks that the file contains all rows, before memory for the pixels is allocated; returns the bytes per
/// row.
pub(super) fn check(header: &Header, bits: u32, bytes: &[u8]) -> Result<usize, DecodeError> {
    let row = u64::from(header.width * bits).div_ceil(32) * 4;
    let found = bytes.len().saturating_sub(header.data) as u64 / row;
    if found < header.height.into() {
        return Err(truncated(bytes, format!("row {} of {} ({row} bytes)", found + 1, header.height)));
    }
    Ok(row as usize)
}

/// Calls `read` with each row's bytes and its row of `pixels`.
pub(super) fn each(
    header: &Header,
    row: usize,
    bytes: &[u8],
    pixels: &mut [u8],
    read: impl Fn(&[u8], &mut [u8]),
) {
    let lines = pixels.chunks_exact_mut(pixels.len() / header.height as usize);
    let rows = bytes[header.data..].chunks_exact(row);
    if header.top_down {
        rows.zip(lines).for_each(|(row, line)| read(row, line));
    } else {
        rows.zip(lines.rev()).for_each(|(row, line)| read(row, line));
    }
}

/// Looks up the colors of a row of indices of `bits` bits.
pub(super) fn indexed(row: &[u8], bits: u32, palette: &Palette, line: &mut [u8]) {
    let (of_byte, mask) = (8 / bits as usize, 0xff >> (8 - bits));
    for (i, pixel) in line.chunks_exact_mut(3).enumerate() {
        let shift = 8 - bits as usize * (i % of_byte + 1);
        pixel.copy_from_slice(&palette[usize::from(row[i / of_byte] >> shift & mask)]);
    }
}
