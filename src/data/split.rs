//! A held-out part, chosen by a seed.
//!
//! Knows row numbers only. The generator is written out here and not taken from a crate: which rows are held out must
//! not change with a version, or a resumed run would be measured on points that it has learned.

use super::DataError;

/// Rows to learn from and rows held out, each in ascending order.
///
/// # Examples
/// ```
/// let split = flowline::data::Split::seeded(1_000, 0.1, 0)?;
/// assert_eq!((split.train.len(), split.held_out.len()), (900, 100));
/// # Ok::<(), flowline::data::DataError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Rows to learn from.
    pub train: Vec<usize>,
    /// Rows that training never sees.
    pub held_out: Vec<usize>,
}

impl Split {
    /// Holds out a share of `rows` rows, at least one and all but two at most, each set of rows as likely as another.
    ///
    /// # Errors
    /// [`DataError::Share`] for a share outside (0, 1), or fewer than 3 rows.
    pub fn seeded(rows: usize, share: f64, seed: u64) -> Result<Self, DataError> {
        if !(share > 0.0 && share < 1.0) || rows < 3 {
            return Err(DataError::Share { share, rows });
        }
        let wanted = ((rows as f64 * share).round() as usize).clamp(1, rows - 2);
        let (mut left, mut state) = (wanted, seed);
        let mut split =
            Self { train: Vec::with_capacity(rows - wanted), held_out: Vec::with_capacity(wanted) };
        // Selection sampling (Knuth 3.4.2, algorithm S): row i with probability left / (rows - i).
        for row in 0..rows {
            let draw = (u128::from(split_mix(&mut state)) * (rows - row) as u128) >> 64;
            if draw < left as u128 {
                left -= 1;
                split.held_out.push(row);
            } else {
                split.train.push(row);
            }
        }
        Ok(split)
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014, Fast splittable pseudorandom number generators, figure 16).
pub(super) fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_in_one_part_and_a_seed_chooses_which() {
        let split = Split::seeded(500, 0.2, 7).unwrap();
        assert_eq!((split.train.len(), split.held_out.len()), (400, 100));
        let mut all = [split.train.clone(), split.held_out.clone()].concat();
        all.sort_unstable();
        assert_eq!(all, (0..500).collect::<Vec<_>>());
        assert_eq!(Split::seeded(500, 0.2, 7).unwrap(), split);
        assert_ne!(Split::seeded(500, 0.2, 8).unwrap(), split);
    }

    #[test]
    fn rows_are_held_out_equally_often() {
        let mut counts = [0; 10];
        for seed in 0..4_000 {
            Split::seeded(10, 0.3, seed).unwrap().held_out.iter().for_each(|&row| counts[row] += 1);
        }
        // 1,200 each, with a deviation of 29.
        assert!(counts.iter().all(|&count: &i32| (count - 1_200).abs() < 120), "{counts:?}");
    }

    #[test]
    fn the_generator_has_its_published_first_words() {
        // Of the reference program for seed 1234567.
        let mut state = 1_234_567;
        let words: [u64; 3] = std::array::from_fn(|_| split_mix(&mut state));
        assert_eq!(words, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn a_share_that_leaves_nothing_is_refused_and_small_sets_keep_a_row_in_each_part() {
        for (rows, share) in [(100, 0.0), (100, 1.0), (100, f64::NAN), (2, 0.5)] {
            assert!(Split::seeded(rows, share, 0).is_err(), "{rows} {share}");
        }
        let split = Split::seeded(3, 0.01, 0).unwrap();
        assert_eq!((split.train.len(), split.held_out.len()), (2, 1));
        assert_eq!(Split::seeded(4, 0.99, 0).unwrap().train.len(), 2);
    }
}
