//! Decodes image files to gray values; [`raster`] reads the formats.
//!
//! Gray values are f64 in 0..=255. Colors are processed with 16 bits per channel, so 8-bit images keep their
//! exact values and 16-bit images their depth. Transparency is composited on white without rounding.
//!
//! The pixels stay in memory as they were decoded, 1 to 8 bytes each, and a gray value is computed when it is read. An
//! array of f64 would need 8 bytes more per pixel, and computing a value costs less than most uses of it.

use super::DataError;
use crate::io::raster::{self, Raster};
use std::ops::Range;

/// Weights of red, green and blue: luma of ITU-R BT.601, with four digits as in common image libraries. They
/// sum to 0.9999, so white is 254.97; `1 - gray / lightest` cancels this factor.
const LUMA: [f64; 3] = [0.2989, 0.5870, 0.1140];
/// The maximum number of pixels of an image: the tables of a run then need up to 22 bytes per pixel, a third of a gigabyte.
const LIMIT: usize = 1 << 24;
/// The maximum number of pixels along a side. The quadratures hold the weights of whole rows.
const SIDE: usize = 1 << 16;

/// A gray image, row-major, top row first.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Gray {
    pub width: usize,
    pub height: usize,
    pub darkest: f64,
    pub lightest: f64,
    image: Raster,
}

impl Gray {
    /// Decodes an image and checks its size and that it has more than one gray value.
    pub(super) fn decode(bytes: &[u8], name: &str) -> Result<Self, DataError> {
        let name = || name.to_owned();
        if bytes.is_empty() {
            return Err(DataError::Empty { name: name() });
        }
        let image = raster::decode(bytes).map_err(|source| DataError::Undecodable {
            name: name(),
            bytes: bytes.len(),
            source,
        })?;
        let (width, height) = (image.width() as usize, image.height() as usize);
        if width < 2 || height < 2 {
            return Err(DataError::TooSmall { name: name(), width, height });
        }
        if width * height > LIMIT || width.max(height) > SIDE {
            return Err(DataError::TooLarge { name: name(), width, height, limit: LIMIT, side: SIDE });
        }
        let (mut darkest, mut lightest) = (f64::INFINITY, 0.0_f64);
        for value in image.rgba16().map(gray) {
            (darkest, lightest) = (darkest.min(value), lightest.max(value));
        }
        if lightest == darkest {
            return Err(DataError::OneGray { name: name(), gray: lightest, width, height });
        }
        Ok(Self { width, height, darkest, lightest, image })
    }

    /// Number of pixels.
    pub(super) fn count(&self) -> usize {
        self.width * self.height
    }

    /// Gray values of a range of pixels, from 0 (black) to 254.97 (white).
    pub(super) fn values(&self, pixels: Range<usize>) -> impl Iterator<Item = f64> + '_ {
        self.image.rgba16_of(pixels).map(gray)
    }

    /// `1 - gray / lightest`, in [0, 1], of each pixel of a range that is darker than `below`; 0 of the others.
    pub(super) fn darkness(&self, pixels: Range<usize>, below: f64) -> impl Iterator<Item = f64> + '_ {
        let lightest = self.lightest;
        self.values(pixels).map(move |value| if value < below { 1.0 - value / lightest } else { 0.0 })
    }
}

/// The gray value of a 16-bit RGBA pixel on a white background, 0 to 254.97.
fn gray([r, g, b, a]: [u16; 4]) -> f64 {
    const STEPS: f64 = 257.0; // 16-bit levels per 8-bit level
    let (opacity, white) = (f64::from(a) / 65535.0, 65535.0);
    let on_white = |v: u16| (opacity * f64::from(v) + (1.0 - opacity) * white) / STEPS;
    LUMA[0] * on_white(r) + LUMA[1] * on_white(g) + LUMA[2] * on_white(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transparency_is_composited_on_white() {
        let white = gray([65535; 4]);
        assert_eq!(gray([0, 0, 0, 0]), white);
        assert_eq!(gray([0, 0, 0, 65535]), 0.0);
        let half = gray([0, 0, 0, 32768]);
        assert!((half / white - 0.5).abs() < 1e-4, "{half}");
    }

    #[test]
    fn eight_bit_values_keep_their_exact_gray() {
        let v = [10u16, 200, 77];
        let expected: f64 = (0..3).map(|i| LUMA[i] * f64::from(v[i])).sum();
        assert!((gray([v[0] * 257, v[1] * 257, v[2] * 257, 65535]) - expected).abs() < 1e-12);
    }
}
