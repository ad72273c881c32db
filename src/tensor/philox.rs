//! Plain random numbers from a key: for shuffles, held-out points, and users of `rand`.

use super::Key;
use crate::graph::philox_block;
use rand_core::TryRng;
use std::convert::Infallible;

/// The stream of plain numbers. Tensors use other streams.
const PLAIN: u32 = 3;

/// Philox4x32-10 as a sequential generator for `rand` and `rand_distr`.
///
/// Word i is the i-th word of stream 3 of the key, so it is independent of the tensor samples of the same key.
///
/// # References
/// Salmon et al. (2011), Parallel random numbers: as easy as 1, 2, 3.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// let (mut a, mut b) = (Key::new(7).rng(), Key::new(7).rng());
/// use rand::Rng;
/// assert_eq!(a.next_u64(), b.next_u64());
/// ```
#[derive(Clone, Debug)]
pub struct KeyRng {
    key: [u32; 2],
    next: u64,
    block: [u32; 4],
}

impl KeyRng {
    fn word(&mut self) -> u32 {
        let lane = (self.next % 4) as usize;
        if lane == 0 {
            let i = self.next / 4;
            self.block = philox_block(self.key, [i as u32, (i >> 32) as u32, PLAIN, 0]);
        }
        self.next += 1;
        self.block[lane]
    }
}

impl TryRng for KeyRng {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.word())
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let low = u64::from(self.word());
        Ok(low | u64::from(self.word()) << 32)
    }

    fn try_fill_bytes(&mut self, dst: &mut [u8]) -> Result<(), Infallible> {
        for part in dst.chunks_mut(4) {
            part.copy_from_slice(&self.word().to_le_bytes()[..part.len()]);
        }
        Ok(())
    }
}

impl Key {
    /// A generator of plain numbers from this key.
    ///
    /// # Panics
    /// For a traced key.
    #[track_caller]
    pub fn rng(&self) -> KeyRng {
        let words = self.words().to_vec();
        KeyRng { key: [words[0] as u32, words[1] as u32], next: 0, block: [0; 4] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_in_order_and_are_not_those_of_tensors() {
        let key = Key::new(5);
        let mut rng = key.rng();
        let words: Vec<u32> = (0..8).map(|_| rng.word()).collect();
        let block = |i| philox_block([5, 0], [i, 0, PLAIN, 0]);
        assert_eq!(words, [block(0), block(1)].concat());
        let drawn = key.bits([8]).to_vec();
        assert!(words.iter().zip(drawn).all(|(&a, b)| f64::from(a) != b));
        let mut bytes = [0; 6];
        key.rng().try_fill_bytes(&mut bytes).unwrap();
        assert_eq!(bytes[..4], words[0].to_le_bytes());
        assert_eq!(bytes[4..], words[1].to_le_bytes()[..2]);
    }
}
