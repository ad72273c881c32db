//! Random numbers from a seed or from the input bytes of a fuzzer.

use crate::array::{Array, DType};
use crate::graph::Type;

/// A source of random numbers: the bytes while two or more are left, then the generator splitmix64.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    seed: u64,
    /// The bytes in reverse order; each number takes two.
    bytes: Vec<u8>,
}

impl Draws {
    pub(crate) fn new(seed: u64) -> Draws {
        Draws { seed: seed.wrapping_mul(0xd134_2543_de82_ef95) ^ 0x5bf0_3635, bytes: Vec::new() }
    }

    #[cfg(fuzzing)]
    pub(crate) fn of_bytes(bytes: &[u8]) -> Draws {
        Draws { bytes: bytes.iter().rev().copied().collect(), ..Draws::new(0) }
    }

    pub(super) fn word(&mut self) -> u64 {
        if let (Some(low), Some(high)) = (self.bytes.pop(), self.bytes.pop()) {
            // The two bytes are in the low bits, which `below` uses, and in the high bits, which `real` uses.
            return u64::from_le_bytes([low, high, 0, 0, 0, 0, low, high]);
        }
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.seed ^ (self.seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in [-1, 1).
    pub(crate) fn real(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    /// An integer in 0 .. n.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.word() % n as u64) as usize
    }

    pub(super) fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// An array of the given type: floats in [-1, 1), small integers, booleans.
    pub(crate) fn array(&mut self, ty: &Type) -> Array {
        let mut a = Array::zeros(ty.dtype(), ty.shape().clone());
        for i in 0..a.data().len() {
            let x = match ty.dtype() {
                DType::F32 | DType::F64 => self.real(),
                DType::I32 => self.below(6) as f64 - 1.0,
                DType::U32 => self.below(4) as f64,
                DType::Bool => self.below(2) as f64,
            };
            a.data_mut().set_f64(i, x);
        }
        a
    }
}
