//! Densities averaged over the rounding of values.

use crate::data::Rounding;
use crate::error::Result;

/// Draws of noise of one step per row.
pub(super) struct Draws {
    /// The steps of the columns.
    pub rounding: Rounding,
    /// Draws per row.
    pub count: usize,
    /// The seed of the noise.
    pub seed: u64,
}

impl Draws {
    /// The logarithm of the mean density of each row over its draws; the first row has the number `first`.
    ///
    /// # Errors
    /// As `log_prob`.
    pub(super) fn mean(
        &self,
        (points, dim): (&[f64], usize),
        first: usize,
        log_prob: impl Fn(&[f64]) -> Result<Vec<f64>>,
    ) -> Result<Vec<f64>> {
        let mut all = Vec::with_capacity(self.count);
        for draw in 0..self.count {
            let mut noisy = points.to_vec();
            for (i, row) in noisy.chunks_exact_mut(dim).enumerate() {
                let number = ((first + i) * self.count + draw) as u64;
                self.rounding.add_noise(row, self.seed, number);
            }
            all.push(log_prob(&noisy)?);
        }
        let of_row = |row: usize| {
            // Finite, so that densities that are all 0 have a mean of 0.
            let largest = all.iter().map(|draw| draw[row]).fold(f64::MIN, f64::max).min(f64::MAX);
            let sum: f64 = all.iter().map(|draw| (draw[row] - largest).exp()).sum();
            largest + (sum / self.count as f64).ln()
        };
        Ok((0..points.len() / dim).map(of_row).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of two columns with steps 2 and 0, and a density that is e^x times a factor of y.
    #[test]
    fn means_over_draws_are_those_of_the_density_and_do_not_depend_on_the_part() {
        let draws = |count| Draws { rounding: Rounding::with_steps(vec![2.0, 0.0]), count, seed: 4 };
        let log_prob = |points: &[f64]| Ok(points.chunks_exact(2).map(|p| p[0] + p[1]).collect());
        let points = [0.0, 0.0, 3.0, -800.0, -1.0, 900.0];
        let all = draws(4_000).mean((&points, 2), 0, log_prob).unwrap();
        // The mean of e^x over [x - 1, x + 1] is e^x sinh(1).
        for (row, x) in points.chunks_exact(2).zip(&all) {
            assert!((x - row[0] - row[1] - 1f64.sinh().ln()).abs() < 0.05, "{row:?} {x}");
        }
        let last = draws(4_000).mean((&points[4..], 2), 2, log_prob).unwrap();
        assert_eq!(last, all[2..]);
        let once = draws(1).mean((&points, 2), 0, log_prob).unwrap();
        assert!(once.iter().zip(points.chunks_exact(2)).all(|(x, row)| (x - row[0] - row[1]).abs() <= 1.0));
    }
}
