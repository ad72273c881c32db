//! Pixels as stored in a file, and the two forms in which the crate reads them.
//!
//! An 8-bit sample is widened to 16 bits by multiplication with 257, which maps 255 to 65535; a 16-bit sample
//! is rounded to the nearest 8-bit one. [`Raster::rgba8`] thus returns an 8-bit image unchanged.

#[cfg(feature = "train")]
use std::ops::Range;

/// Channels of a pixel, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channels {
    /// A gray level.
    Gray,
    /// A gray level and its alpha.
    GrayAlpha,
    /// Red, green, blue.
    Rgb,
    /// Red, green, blue and alpha.
    Rgba,
}

impl Channels {
    /// The number of channels.
    pub fn count(self) -> usize {
        match self {
            Self::Gray => 1,
            Self::GrayAlpha => 2,
            Self::Rgb => 3,
            Self::Rgba => 4,
        }
    }
}

/// Bits of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// A byte.
    Eight,
    /// Two bytes, the more significant first.
    Sixteen,
}

impl Depth {
    /// Bytes per sample.
    pub fn bytes(self) -> usize {
        match self {
            Self::Eight => 1,
            Self::Sixteen => 2,
        }
    }
}

/// A decoded image: rows from the top, pixels from the left.
#[cfg(feature = "train")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raster {
    width: u32,
    height: u32,
    channels: Channels,
    depth: Depth,
    bytes: Vec<u8>,
}

#[cfg(feature = "train")]
impl Raster {
    /// `bytes` has `width * height` pixels.
    pub(super) fn new([width, height]: [u32; 2], channels: Channels, depth: Depth, bytes: Vec<u8>) -> Self {
        debug_assert_eq!(
            bytes.len(),
            width as usize * height as usize * channels.count() * depth.bytes(),
            "{width} x {height} pixels, {channels:?}, {depth:?}"
        );
        Self { width, height, channels, depth, bytes }
    }

    /// Columns.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Whether the file stores gray levels. An image that looks gray may also be stored in colors.
    pub fn is_gray(&self) -> bool {
        matches!(self.channels, Channels::Gray | Channels::GrayAlpha)
    }

    /// Number of pixels.
    fn count(&self) -> usize {
        self.width as usize * self.height as usize
    }

    /// Red, green, blue and alpha of each pixel in 16 bits.
    pub fn rgba16(&self) -> impl Iterator<Item = [u16; 4]> + '_ {
        self.rgba16_of(0..self.count())
    }

    /// [`rgba16`](Self::rgba16) for a range of pixels, which are numbered in row-major order.
    pub(crate) fn rgba16_of(&self, pixels: Range<usize>) -> impl Iterator<Item = [u16; 4]> + '_ {
        let (channels, depth) = (self.channels, self.depth);
        let size = channels.count() * depth.bytes();
        self.bytes[pixels.start * size..pixels.end * size].chunks_exact(size).map(move |pixel| {
            let sample = |i: usize| match depth {
                Depth::Eight => u16::from(pixel[i]) * 257,
                Depth::Sixteen => u16::from_be_bytes([pixel[2 * i], pixel[2 * i + 1]]),
            };
            match channels {
                Channels::Gray => [sample(0), sample(0), sample(0), u16::MAX],
                Channels::GrayAlpha => [sample(0), sample(0), sample(0), sample(1)],
                Channels::Rgb => [sample(0), sample(1), sample(2), u16::MAX],
                Channels::Rgba => [sample(0), sample(1), sample(2), sample(3)],
            }
        })
    }

    /// Red, green, blue and alpha of each pixel in 8 bits.
    pub fn rgba8(&self) -> impl Iterator<Item = [u8; 4]> + '_ {
        self.rgba16().map(|pixel| pixel.map(narrow))
    }
}

/// Rounds to 8 bits.
#[cfg(feature = "train")]
fn narrow(sample: u16) -> u8 {
    ((u32::from(sample) + 128) / 257) as u8
}

#[cfg(all(test, feature = "train"))]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_widened_exactly_and_rounded_to_the_nearest() {
        for sample in 0..=u16::MAX {
            let nearest = (f64::from(sample) * 255.0 / 65535.0).round();
            assert_eq!(f64::from(narrow(sample)), nearest, "{sample}");
        }
        let levels = Raster::new([256, 1], Channels::Gray, Depth::Eight, (0..=255).collect());
        for (level, (wide, byte)) in (0..=255).zip(levels.rgba16().zip(levels.rgba8())) {
            assert_eq!(f64::from(wide[0]), f64::from(level) / 255.0 * 65535.0);
            assert_eq!(byte, [level, level, level, 255]);
        }
    }

    #[test]
    fn each_kind_of_pixel_has_its_color_and_alpha() {
        let bytes: Vec<u8> = (0..24).map(|i| 10 * i + 1).collect();
        let first = |channels: Channels, depth: Depth| {
            let size = channels.count() * depth.bytes();
            let image = Raster::new([(24 / size) as u32, 1], channels, depth, bytes.clone());
            assert_eq!(image.rgba8().count(), 24 / size);
            image.rgba16().next().unwrap()
        };
        let (eight, both) = (|v: u16| 257 * v, |high: u16, low: u16| 256 * high + low);
        assert_eq!(first(Channels::Gray, Depth::Eight), [eight(1), eight(1), eight(1), 65535]);
        assert_eq!(first(Channels::GrayAlpha, Depth::Eight), [eight(1), eight(1), eight(1), eight(11)]);
        assert_eq!(first(Channels::Rgb, Depth::Eight), [eight(1), eight(11), eight(21), 65535]);
        assert_eq!(first(Channels::Rgba, Depth::Eight), [1, 11, 21, 31].map(eight));
        let wide = [both(1, 11), both(21, 31), both(41, 51), both(61, 71)];
        assert_eq!(first(Channels::Gray, Depth::Sixteen), [wide[0], wide[0], wide[0], 65535]);
        assert_eq!(first(Channels::GrayAlpha, Depth::Sixteen), [wide[0], wide[0], wide[0], wide[1]]);
        assert_eq!(first(Channels::Rgb, Depth::Sixteen), [wide[0], wide[1], wide[2], 65535]);
        assert_eq!(first(Channels::Rgba, Depth::Sixteen), wide);
    }
}
