//! Pixels of 16, 24 or 32 bits, with a bit mask per color.

use crate::io::raster::{DecodeError, Format};

/// The bits of a sample in a pixel, and their values.
pub(super) struct Mask {
    shift: u32,
    /// The 8-bit sample for each value of the bits.
    levels: Vec<u8>,
}

impl Mask {
    /// `mask` must be a run of ones within a pixel of `bits` bits; only its highest 8 bits are used.
    fn new(mask: u32, bits: u32) -> Result<Self, DecodeError> {
        let (shift, ones) = (mask.trailing_zeros(), mask.count_ones());
        if mask == 0 || mask >> shift != u32::MAX >> (32 - ones) || shift + ones > bits {
            let reason = format!("a color's mask is {mask:#x}, not a run of ones in {bits} bits");
            return Err(Format::Bmp.damaged(reason));
        }
        let kept = ones.min(8);
        let most = (1 << kept) - 1;
        // Rounds to nearest; ties are impossible, because `most` is odd.
        let levels = (0..=most).map(|value: u32| ((value * 255 + most / 2) / most) as u8).collect();
        Ok(Self { shift: shift + ones - kept, levels })
    }

    fn sample(&self, pixel: u32) -> u8 {
        self.levels[(pixel >> self.shift) as usize & (self.levels.len() - 1)]
    }
}

pub(super) struct Masks {
    color: [Mask; 3],
    pub alpha: Option<Mask>,
}

impl Masks {
    /// Masks of red, green and blue; the alpha mask is 0 if there is none.
    pub(super) fn new([r, g, b]: [u32; 3], alpha: u32, bits: u32) -> Result<Self, DecodeError> {
        let alpha = if alpha == 0 { None } else { Some(Mask::new(alpha, bits)?) };
        Ok(Self { color: [Mask::new(r, bits)?, Mask::new(g, bits)?, Mask::new(b, bits)?], alpha })
    }

    /// Masks of three bytes, blue first.
    pub(super) fn rgb8() -> Self {
        Self { color: [16, 8, 0].map(|shift| Mask { shift, levels: (0..=255).collect() }), alpha: None }
    }

    /// Masks of three times five bits, blue in the lowest bits.
    pub(super) fn rgb5() -> Self {
        let levels: Vec<u8> = (0..32_u16).map(|value| ((value * 255 + 15) / 31) as u8).collect();
        Self { color: [10, 5, 0].map(|shift| Mask { shift, levels: levels.clone() }), alpha: None }
    }

    /// Decodes the pixels of a row, each of `bits` bits with its lowest byte first.
    pub(super) fn row(&self, row: &[u8], bits: u32, line: &mut [u8]) {
        let samples = 3 + usize::from(self.alpha.is_some());
        let words = row.chunks_exact(bits as usize / 8);
        for (word, pixel) in words.zip(line.chunks_exact_mut(samples)) {
            let word = word.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte));
            let masks = self.color.iter().chain(&self.alpha);
            pixel.iter_mut().zip(masks).for_each(|(sample, mask)| *sample = mask.sample(word));
        }
    }
}
