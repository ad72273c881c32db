//! Seeded splits of a data set.
//!
//! The module handles only row numbers and classes. It has its own random generator, because a new version of a
//! crate could change the split. A resumed run would then be evaluated on points that it was trained on.

use super::DataError;

/// Training, validation and test rows, each in ascending order.
///
/// # Examples
/// ```
/// let split = flowline::data::extra::Split::seeded(1_000, [0.1, 0.1], None, 0)?;
/// assert_eq!((split.train.len(), split.validation.len(), split.test.len()), (800, 100, 100));
/// # Ok::<(), flowline::data::DataError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Training rows.
    pub train: Vec<usize>,
    /// Validation rows: select the best weights and stop a run early. They are not trained on.
    pub validation: Vec<usize>,
    /// Test rows: scored once, at the end. They do not affect the weights.
    pub test: Vec<usize>,
}

impl Split {
    /// Reserves two shares of `rows` rows for validation and test, each at least one row, and leaves at least
    /// two for training. A share of 0 reserves none. Every subset is equally likely; with labels (by row
    /// number), each part has every class in proportion, to within two rows.
    ///
    /// # Errors
    /// [`DataError::Share`] for shares outside [0, 1) or with a sum of 1 or more, or if there are too few
    /// rows for the parts.
    pub fn seeded(
        rows: usize,
        [validation, test]: [f64; 2],
        labels: Option<&[u16]>,
        seed: u64,
    ) -> Result<Self, DataError> {
        let is_share = |share: f64| (0.0..1.0).contains(&share);
        let least = |share: f64| usize::from(share > 0.0);
        let needed = 2 + least(validation) + least(test);
        if !is_share(validation) || !is_share(test) || validation + test >= 1.0 || rows < needed {
            return Err(DataError::Share { shares: [validation, test], rows });
        }
        let wanted = |share: f64| ((rows as f64 * share).round() as usize).max(least(share));
        let of_validation = wanted(validation).min(rows - 2 - least(test));
        let of_test = wanted(test).min(rows - 2 - of_validation);
        let mut state = seed;
        let all: Vec<usize> = (0..rows).collect();
        let (held_out, train) = chosen(&all, labels, of_validation + of_test, &mut state);
        let (validation, test) = chosen(&held_out, labels, of_validation, &mut state);
        Ok(Self { train, validation, test })
    }
}

/// At most `count` of the given rows, selected by a seed. Every subset is equally likely; with labels (by row
/// number), every class is in proportion to within a row. The order is random, so a prefix is a random sample
/// too.
pub fn subset(rows: &[usize], labels: Option<&[u16]>, count: usize, seed: u64) -> Vec<usize> {
    let mut state = seed;
    let mut few = chosen(rows, labels, count, &mut state).0;
    shuffle(&mut few, &mut state);
    few
}

/// The chosen rows and the other rows. Rows are shuffled, sorted by class if there are labels, and chosen at
/// equal distances from a random start. So each row is equally likely, and the number of rows of each class
/// is its share to within one row.
fn chosen(rows: &[usize], labels: Option<&[u16]>, count: usize, state: &mut u64) -> (Vec<usize>, Vec<usize>) {
    let (mut order, n, count) = (rows.to_vec(), rows.len(), count.min(rows.len()));
    shuffle(&mut order, state);
    if let Some(labels) = labels {
        order.sort_by_key(|&row| labels[row]);
    }
    let start = if n > 0 { below(n, state) } else { 0 };
    let place = |i: usize| (start + i * count) / n;
    let mut parts = (Vec::with_capacity(count), Vec::with_capacity(n - count));
    for (i, &row) in order.iter().enumerate() {
        if place(i + 1) > place(i) { parts.0.push(row) } else { parts.1.push(row) }
    }
    parts.0.sort_unstable();
    parts.1.sort_unstable();
    parts
}

fn shuffle(rows: &mut [usize], state: &mut u64) {
    (1..rows.len()).rev().for_each(|i| rows.swap(i, below(i + 1, state)));
}

/// A uniform number below n.
fn below(n: usize, state: &mut u64) -> usize {
    ((u128::from(split_mix(state)) * n as u128) >> 64) as usize
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

    fn parts(split: &Split) -> [&Vec<usize>; 3] {
        [&split.train, &split.validation, &split.test]
    }

    #[test]
    fn every_row_is_in_one_part_and_a_seed_chooses_which() {
        let split = Split::seeded(500, [0.2, 0.1], None, 7).unwrap();
        assert_eq!(parts(&split).map(Vec::len), [350, 100, 50]);
        let mut all = parts(&split).map(Clone::clone).concat();
        all.sort_unstable();
        assert_eq!(all, (0..500).collect::<Vec<_>>());
        assert_eq!(Split::seeded(500, [0.2, 0.1], None, 7).unwrap(), split);
        assert_ne!(Split::seeded(500, [0.2, 0.1], None, 8).unwrap(), split);
        let no_test = Split::seeded(500, [0.2, 0.0], None, 7).unwrap();
        assert_eq!(parts(&no_test).map(Vec::len), [400, 100, 0]);
    }

    #[test]
    fn rows_are_in_each_part_equally_often_whatever_their_class() {
        for labels in [None, Some(&[0, 0, 0, 0, 1, 1, 1, 2, 2, 2][..])] {
            let mut counts = [[0; 10]; 2];
            for seed in 0..4_000 {
                let split = Split::seeded(10, [0.3, 0.2], labels, seed).unwrap();
                split.validation.iter().for_each(|&row| counts[0][row] += 1);
                split.test.iter().for_each(|&row| counts[1][row] += 1);
            }
            for (of_part, expected) in counts.into_iter().zip([1_200, 800]) {
                // The standard deviations are 29 and 25.
                assert!(of_part.iter().all(|&n: &i32| (n - expected).abs() < 120), "{of_part:?}");
            }
        }
    }

    #[test]
    fn pairs_of_rows_are_chosen_equally_often() {
        let rows: Vec<usize> = (0..10).collect();
        let together = |a, b| {
            let sets = (0..4_000).map(|seed| subset(&rows, None, 3, seed));
            sets.filter(|set| set.contains(&a) && set.contains(&b)).count()
        };
        // The expectation is a fifteenth, 267, with a standard deviation of 16.
        for (a, b) in [(0, 1), (0, 3), (4, 9)] {
            assert!(together(a, b).abs_diff(267) < 64, "{a}, {b}: {}", together(a, b));
        }
    }

    #[test]
    fn a_file_that_is_sorted_by_class_has_each_class_in_proportion_in_each_part() {
        let labels: Vec<u16> = (0..300).map(|row| [0, 0, 0, 1, 1, 2][row / 50]).collect();
        for seed in 0..50 {
            let split = Split::seeded(300, [0.1, 0.1], Some(&labels), seed).unwrap();
            for (part, shares) in parts(&split).into_iter().zip([[120, 80, 40], [15, 10, 5], [15, 10, 5]]) {
                for (class, share) in shares.into_iter().enumerate() {
                    let found = part.iter().filter(|&&row| usize::from(labels[row]) == class).count();
                    assert!(found.abs_diff(share) <= 2, "class {class}: {found} of {share}, seed {seed}");
                }
            }
            let few = subset(&split.validation, Some(&labels), 12, seed);
            let zeros = few.iter().filter(|&&row| labels[row] == 0).count();
            assert!(few.len() == 12 && (5..=7).contains(&zeros), "{zeros} of {few:?}");
        }
    }

    #[test]
    fn a_subset_and_its_first_rows_are_no_prefix_and_on_average_in_the_middle() {
        let rows: Vec<usize> = (100..1_100).collect();
        let sets: Vec<_> = (0..400).map(|seed| subset(&rows, None, 50, seed)).collect();
        assert!(sets.iter().all(|set| set.len() == 50 && set.iter().any(|&row| row > 700)));
        // The standard deviation is 289 / sqrt(20,000) = 2, and 6.5 for a tenth of them.
        for (first, bound) in [(50, 8.0), (5, 26.0)] {
            let all: Vec<usize> = sets.iter().flat_map(|set| &set[..first]).copied().collect();
            let mean = all.iter().sum::<usize>() as f64 / all.len() as f64;
            assert!((mean - 599.5).abs() < bound, "{mean}");
        }
        let mut all = subset(&rows, None, 5_000, 1);
        all.sort_unstable();
        assert_eq!(all, rows);
        assert_eq!(subset(&[], None, 5, 1), Vec::<usize>::new());
    }

    #[test]
    fn the_generator_has_its_published_first_words() {
        // From the reference program with seed 1234567.
        let mut state = 1_234_567;
        let words: [u64; 3] = std::array::from_fn(|_| split_mix(&mut state));
        assert_eq!(words, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn shares_that_leave_nothing_are_refused_and_small_sets_keep_a_row_in_each_part() {
        for (rows, shares) in [
            (100, [1.0, 0.0]),
            (100, [0.6, 0.4]),
            (100, [-0.1, 0.1]),
            (100, [f64::NAN, 0.1]),
            (3, [0.1, 0.1]),
            (2, [0.5, 0.0]),
        ] {
            assert!(Split::seeded(rows, shares, None, 0).is_err(), "{rows} {shares:?}");
        }
        for (rows, shares, sizes) in [
            (4, [0.01, 0.01], [2, 1, 1]),
            (5, [0.01, 0.98], [2, 1, 2]),
            (5, [0.9, 0.05], [2, 2, 1]),
            (2, [0.0, 0.0], [2, 0, 0]),
        ] {
            let split = Split::seeded(rows, shares, None, 0).unwrap();
            assert_eq!(parts(&split).map(Vec::len), sizes, "{rows} {shares:?}");
        }
    }
}
