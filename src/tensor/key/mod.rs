//! Keys of the counter-based generator: every random number is Philox4x32-10 of (key, stream, index).
//!
//! A key is a tree with one tensor, so it may be traced. The random numbers of an update are a function of a
//! key and the number of the update, so a resumed run needs no generator state. Samples, splits and folds of
//! one key use three separate streams (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3").
//! [`draws`] and [`gamma`] have the distributions of numbers, [`choice`] those of places.

mod choice;
mod draws;
mod gamma;
#[cfg(test)]
mod tests;

pub use choice::Replacement;

use super::Tensor;
use crate::array::{DType, Shape};
use crate::graph::{Op, Type};
use crate::tree;

const DRAWS: u32 = 0;
const SPLITS: u32 = 1;
const FOLDS: u32 = 2;

tree! {
    /// A random key: two words. Use a key only once: for each further sample `split` it, or `fold_in` a
    /// counter. Two samples of one key are made of the same random bits, also if their distributions differ.
    #[doc(alias = "PRNGKey")]
    #[doc(alias = "Rng")]
    pub struct Key { words: Tensor }
}

impl Key {
    /// A key from a seed.
    #[doc(alias = "manual_seed")]
    pub fn new(seed: u64) -> Key {
        Key { words: Tensor::from([seed as u32, (seed >> 32) as u32]) }
    }

    pub(super) fn words(&self) -> &Tensor {
        &self.words
    }

    fn stream(&self, stream: u32, start: &Tensor, shape: Shape) -> Tensor {
        Tensor::op(Op::RandomBits { stream }, &[&self.words, start], Some(&Type::array(DType::U32, shape)))
    }

    /// `N` independent keys.
    pub fn split<const N: usize>(&self) -> [Key; N] {
        let words = self.stream(SPLITS, &Tensor::from(0u32), Shape::from([N, 2]));
        std::array::from_fn(|i| Key { words: words.index(i) })
    }

    /// Derives a key from this one and an integer, such as the index of an update or a row; the integer may
    /// be traced. Use integers from 0 to 2^31 - 1: `i + 2^31` gives the key of i.
    pub fn fold_in(&self, i: impl Into<Tensor>) -> Key {
        self.folded(&i.into())
    }

    fn folded(&self, i: &Tensor) -> Key {
        let start = i.cast(DType::U32) * 2;
        Key { words: self.stream(FOLDS, &start, Shape::from([2])) }
    }

    /// Uniform random words, u32.
    pub fn bits(&self, shape: impl Into<Shape>) -> Tensor {
        self.stream(DRAWS, &Tensor::from(0u32), shape.into())
    }
}

impl From<u64> for Key {
    fn from(seed: u64) -> Key {
        Key::new(seed)
    }
}
