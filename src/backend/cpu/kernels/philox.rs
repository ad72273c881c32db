//! Random words by Philox4x32-10, which is counter-based: word `i` of a stream is a pure function of key,
//! stream and `i`, so any part of an array can be filled by any thread.
//!
//! # References
//! Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC 2011). The known answers in the
//! tests are from the Random123 distribution. The alternative, Threefry, was slower in measurements here.
//! cuRAND and PyTorch also use Philox.

use crate::simd::Level;
use crate::simd::dispatch::{Task, enter};
use crate::simd::lanes::{Int, Lanes, Simd};

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: usize = 10;

/// The four words of the block with the given counter.
pub fn philox_block(key: [u32; 2], counter: [u32; 4]) -> [u32; 4] {
    let ([mut k0, mut k1], mut c) = (key, counter);
    for _ in 0..ROUNDS {
        let p0 = u64::from(c[0]) * u64::from(MULTIPLIERS[0]);
        let p1 = u64::from(c[2]) * u64::from(MULTIPLIERS[1]);
        c = [(p1 >> 32) as u32 ^ c[1] ^ k0, p1 as u32, (p0 >> 32) as u32 ^ c[3] ^ k1, p0 as u32];
        (k0, k1) = (k0.wrapping_add(WEYL[0]), k1.wrapping_add(WEYL[1]));
    }
    c
}

fn counter(block: u64, stream: u32) -> [u32; 4] {
    [block as u32, (block >> 32) as u32, stream, 0]
}

struct Fill<'a> {
    key: [u32; 2],
    block: u64,
    stream: u32,
    dst: &'a mut [u32],
}

impl Fill<'_> {
    /// `LEN` blocks whose counters do not carry out of the low word.
    #[inline(always)]
    unsafe fn vector<S: Simd>(&self, block: u64) -> [S::U32; 4] {
        // SAFETY: `philox_fill` has asserted that the level is available.
        let zero = unsafe { S::U32::splat(0) };
        let [mut k0, mut k1] = self.key;
        let mut c =
            [zero.block_numbers(block as u32), zero.of((block >> 32) as u32), zero.of(self.stream), zero];
        for _ in 0..ROUNDS {
            let (hi0, lo0) = c[0].mul_wide(MULTIPLIERS[0]);
            let (hi1, lo1) = c[2].mul_wide(MULTIPLIERS[1]);
            c = [hi1.xor(c[1]).xor(zero.of(k0)), lo1, hi0.xor(c[3]).xor(zero.of(k1)), lo0];
            (k0, k1) = (k0.wrapping_add(WEYL[0]), k1.wrapping_add(WEYL[1]));
        }
        c
    }
}

impl Task for Fill<'_> {
    #[inline(always)]
    unsafe fn run<S: Simd>(mut self) {
        let len = S::U32::LEN;
        let dst = std::mem::take(&mut self.dst);
        let mut block = self.block;
        for out in dst.chunks_mut(4 * len) {
            if out.len() == 4 * len && (block as u32).checked_add(len as u32).is_some() {
                // SAFETY: `philox_fill` has asserted that the level is available; `out` holds `4 LEN` words.
                unsafe { S::U32::store_blocks(self.vector::<S>(block), out.as_mut_ptr()) };
            } else {
                for (l, four) in out.chunks_mut(4).enumerate() {
                    let words = philox_block(self.key, counter(block.wrapping_add(l as u64), self.stream));
                    four.copy_from_slice(&words[..four.len()]);
                }
            }
            block = block.wrapping_add(len as u64);
        }
    }
}

/// Fills `dst` with the words `start, start + 1, ...` of a stream. Word `i` is word `i mod 4` of the block
/// with the counter `(i / 4 as two words, stream, 0)`.
///
/// # Panics
/// If `level` is above the one in use.
pub fn philox_fill(level: Level, key: [u32; 2], start: u64, stream: u32, dst: &mut [u32]) {
    assert!(level <= Level::detect(), "invariant: level {level:?} is not available");
    let lead = ((4 - start % 4) % 4).min(dst.len() as u64) as usize;
    let (head, rest) = dst.split_at_mut(lead);
    if lead > 0 {
        let first = (start % 4) as usize;
        let words = philox_block(key, counter(start / 4, stream));
        head.copy_from_slice(&words[first..first + lead]);
    }
    let block = (start + lead as u64) / 4;
    // SAFETY: the level is available.
    unsafe { enter(level, Fill { key, block, stream, dst: rest }) };
}

#[cfg(test)]
mod tests {
    use super::{philox_block, philox_fill};
    use crate::simd::Level;

    #[test]
    fn random123_known_answers() {
        let cases = [
            ([0; 2], [0; 4], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            ([u32::MAX; 2], [u32::MAX; 4], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (
                [0xa409_3822, 0x299f_31d0],
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ];
        for (key, counter, want) in cases {
            assert_eq!(philox_block(key, counter), want);
        }
    }

    #[test]
    fn a_fill_is_addressed_by_word_at_any_start_and_level() {
        let key = [7, 9];
        for level in Level::available() {
            for start in [0u64, 1, 3, 4, 1023, (1 << 34) - 37, u64::from(u32::MAX) * 4 - 11] {
                let mut got = [0u32; 301];
                philox_fill(level, key, start, 5, &mut got);
                for (i, word) in got.iter().enumerate() {
                    let at = start + i as u64;
                    let block = at / 4;
                    let want = philox_block(key, [block as u32, (block >> 32) as u32, 5, 0]);
                    assert_eq!(*word, want[(at % 4) as usize], "{level:?} word {at}");
                }
            }
        }
    }
}
