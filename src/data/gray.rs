//! Decodes image files to gray values; [`raster`] reads the formats.
//!
//! Gray values are f64 in 0..=255. Colors are processed with 16 bits per channel, so 8-bit images keep their
//! exact values and 16-bit images their depth. Transparency is composited on white without rounding.

use super::DataError;
use crate::io::raster;

/// Weights of red, green and blue: luma of ITU-R BT.601, with four digits as in common image libraries. They
/// sum to 0.9999, so white is 254.97; `1 - gray / lightest` cancels this factor.
const LUMA: [f64; 3] = [0.2989, 0.5870, 0.1140];
/// The maximum number of pixels of an image: the tables then have 16 million entries and need about half a
/// gigabyte.
const LIMIT: usize = 1 << 24;

/// A gray image, row-major, top row first.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Gray {
    pub width: usize,
    pub height: usize,
    /// Gray values, from 0 (black) to 254.97 (white).
    pub values: Vec<f64>,
    pub darkest: f64,
    pub lightest: f64,
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
        if width * height > LIMIT {
            return Err(DataError::TooLarge { name: name(), width, height, limit: LIMIT });
        }
        let values: Vec<f64> = image.rgba16().map(gray).collect();
        let darkest = values.iter().copied().fold(f64::INFINITY, f64::min);
        let lightest = values.iter().copied().fold(0.0, f64::max);
        if lightest == darkest {
            return Err(DataError::OneGray { name: name(), gray: lightest, width, height });
        }
        Ok(Self { width, height, values, darkest, lightest })
    }

    /// `1 - gray / lightest`, in [0, 1].
    pub(super) fn darkness(&self, pixel: usize) -> f64 {
        1.0 - self.values[pixel] / self.lightest
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
