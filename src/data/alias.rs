//! The alias method: samples from a table of n probabilities at constant cost, with two gathers and no
//! search.
//!
//! The usual alternative, a search in the cumulative sum, costs log2(n) dependent loads per sample (16 for an
//! image of 200 x 200) and loses small probabilities when the sum is stored in f32. Here each bucket stores its
//! own fraction. The table is built with Vose's linear-time construction.
//!
//! Reference: M. D. Vose (1991), A linear algorithm for generating random numbers with a given distribution, IEEE
//! Trans. Software Eng. 17(9).

use rand::{Rng, RngExt};

/// For a uniform bucket `b` and `u` uniform in [0, 1), the sample is `b` if `u < prob[b]`, else `index[b]`.
#[derive(Debug, Clone)]
pub(super) struct AliasTable {
    pub prob: Vec<f32>,
    pub index: Vec<i32>,
}

impl AliasTable {
    /// The table of the distribution proportional to n weights, which are non-negative with a positive sum.
    ///
    /// Vose's stacks hold the buckets below and above the mean in ascending order. A bucket that falls below the mean goes
    /// on top of its stack and is the next one popped. So two descents over the buckets replace the stacks, and one share
    /// each is stored.
    pub(super) fn new(n: usize, weight: impl Fn(usize) -> f64) -> Self {
        let scale = n as f64 / (0..n).map(&weight).sum::<f64>();
        let shares = || (0..n).rev().map(|i| (i, weight(i) * scale));
        let mut table = Self { prob: vec![1.0; n], index: (0..n as i32).collect() };
        let mut small = shares().filter(|(_, share)| *share < 1.0);
        let mut large = shares().filter(|(_, share)| *share >= 1.0);
        let (mut poor, mut rich) = (small.next(), large.next());
        while let (Some((bucket, share)), Some((other, whole))) = (poor, rich) {
            table.prob[bucket] = share as f32;
            table.index[bucket] = other as i32;
            let left = whole - (1.0 - share);
            (poor, rich) = if left < 1.0 {
                (Some((other, left)), large.next())
            } else {
                (small.next(), Some((other, left)))
            };
        }
        table
    }

    /// Draws one sample.
    pub(super) fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> usize {
        let bucket = rng.random_range(0..self.prob.len());
        if rng.random::<f32>() < self.prob[bucket] { bucket } else { self.index[bucket] as usize }
    }

    /// The probability with which [`draw`](Self::draw) returns each index.
    #[cfg(test)]
    pub(super) fn probabilities(&self) -> Vec<f64> {
        let n = self.prob.len() as f64;
        let mut p = vec![0.0; self.prob.len()];
        for (bucket, (&prob, &index)) in self.prob.iter().zip(&self.index).enumerate() {
            p[bucket] += f64::from(prob) / n;
            p[index as usize] += (1.0 - f64::from(prob)) / n;
        }
        p
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{SeedableRng, rngs::SmallRng};

    #[test]
    fn the_table_realises_the_distribution() {
        for seed in 0..256 {
            let mut rng = SmallRng::seed_from_u64(seed);
            let n = rng.random_range(1..300);
            let mut weight = || match rng.random_range(0..3) {
                0 => 0.0,
                1 => rng.random_range(1e-6..1.0),
                _ => rng.random_range(1.0..100.0),
            };
            let mut weights: Vec<f64> = (0..n).map(|_| weight()).collect();
            weights[0] += 1e-6; // at least one must be positive
            let sum: f64 = weights.iter().sum();
            for (p, w) in AliasTable::new(n, |i| weights[i]).probabilities().iter().zip(&weights) {
                assert!((p - w / sum).abs() < 1e-6 / n as f64 + 1e-9, "seed {seed}: {p} {}", w / sum);
            }
        }
    }

    #[test]
    fn zero_weights_are_never_drawn() {
        let weights = [0.0, 3.0, 0.0, 1.0, 0.0];
        let table = AliasTable::new(5, |i| weights[i]);
        for i in [0, 2, 4] {
            assert_eq!(table.prob[i], 0.0);
        }
        assert!(table.index.iter().all(|&i| weights[i as usize] > 0.0));
    }
}
