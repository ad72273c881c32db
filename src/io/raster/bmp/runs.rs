//! Run-length encoded indices (RLE4 and RLE8): two bytes are a count and an index; a count of 0 is an escape.

use super::header::{Header, Palette};
use super::{field, truncated};
use crate::io::raster::{DecodeError, Format};

const END_OF_ROW: u8 = 0;
const END: u8 = 1;
const MOVE: u8 = 2;

/// Draws all runs, up to the end marker or the end of the top row, into black `pixels`.
pub(super) fn expand(
    header: &Header,
    bits: u32,
    palette: &Palette,
    bytes: &[u8],
    pixels: &mut [u8],
) -> Result<(), DecodeError> {
    let [width, height] = [header.width, header.height].map(|side| side as usize);
    let mut canvas = Canvas { width, height, palette, pixels, x: 0, y: 0 };
    let mut at = header.data;
    while canvas.y < height {
        let cut = || truncated(bytes, format!("row {} of {height} (from byte {at})", canvas.y + 1));
        let [count, code] = field(bytes, at).ok_or_else(cut)?;
        match (count, code) {
            (0, END_OF_ROW) => [canvas.x, canvas.y] = [0, canvas.y + 1],
            (0, END) => break,
            (0, MOVE) => {
                let [right, up] = field(bytes, at + 2).ok_or_else(cut)?.map(usize::from);
                canvas.go(right, up)?;
                at += 2;
            }
            (0, count) => {
                // Literal indices, padded to an even number of bytes.
                let length = (usize::from(count) * bits as usize).div_ceil(16) * 2;
                let found = bytes.get(at + 2..at + 2 + length).ok_or_else(cut)?;
                canvas.put(count.into(), |i| index(found[i * bits as usize / 8], bits, i))?;
                at += length;
            }
            (count, code) => {
                // Some programs write 8-bit runs beyond the end of a row. They are drawn up to the end, but
                // counted in full.
                let count = usize::from(count);
                let drawn = if bits == 8 { count.min(width.saturating_sub(canvas.x)) } else { count };
                canvas.put(drawn, |i| index(code, bits, i))?;
                canvas.x += count - drawn;
            }
        }
        at += 2;
    }
    Ok(())
}

/// The `i`-th index: `byte` holds one 8-bit index, or two 4-bit indices, the first in the upper half.
fn index(byte: u8, bits: u32, i: usize) -> u8 {
    match (bits, i % 2) {
        (8, _) => byte,
        (_, 0) => byte >> 4,
        _ => byte & 0xf,
    }
}

/// The pixels, and the position of the next one; `y` counts from the bottom row.
struct Canvas<'a> {
    width: usize,
    height: usize,
    palette: &'a Palette,
    pixels: &'a mut [u8],
    x: usize,
    y: usize,
}

impl Canvas<'_> {
    /// Draws `count` indices and moves past them.
    fn put(&mut self, count: usize, indices: impl Fn(usize) -> u8) -> Result<(), DecodeError> {
        if count == 0 {
            return Ok(());
        }
        if self.x + count > self.width {
            return Err(self.beyond(format!("{count} pixels from column {} do not fit", self.x)));
        }
        let from = ((self.height - 1 - self.y) * self.width + self.x) * 3;
        for (i, pixel) in self.pixels[from..from + 3 * count].chunks_exact_mut(3).enumerate() {
            pixel.copy_from_slice(&self.palette[usize::from(indices(i))]);
        }
        self.x += count;
        Ok(())
    }

    /// Moves right and up.
    fn go(&mut self, right: usize, up: usize) -> Result<(), DecodeError> {
        let to = [self.x + right, self.y + up];
        if (right > 0 || up > 0) && (to[0] > self.width || to[1] >= self.height) {
            return Err(self.beyond(format!(
                "a move to column {}, row {} leaves the image",
                to[0],
                to[1] + 1
            )));
        }
        [self.x, self.y] = to;
        Ok(())
    }

    fn beyond(&self, what: String) -> DecodeError {
        let Self { width, height, y, .. } = self;
        Format::Bmp.damaged(format!("{what} in row {} of {width} x {height} pixels", y + 1))
    }
}
