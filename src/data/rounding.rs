//! Columns whose values are rounded to a step, and the uniform noise that makes their density finite.
//!
//! A density can be arbitrarily large at values that repeat. If noise uniform over one step is added to each value, the
//! density of the sum is at most the probability of a value over the step, so scores have a bound and models can be
//! compared (Uria, Murray and Larochelle 2013, RNADE, section 4: dequantization).

use super::split::split_mix;
use super::{Points, Standardizer};

/// Columns are not judged from fewer rows.
const LEAST: usize = 20;
/// A column is rounded only if its number of different values is at most this share of its rows.
const DISTINCT: f64 = 0.9;
/// A step is at least the smallest difference of two values over this number.
const DIVISIONS: u32 = 10;
/// How far a value may lie from a whole number of steps, in steps.
const OFF: f64 = 1e-3;
/// A step is written with six digits if this changes it by a smaller fraction.
const SHORTER: f64 = 1e-6;

/// The step of each column to which its values are rounded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rounding {
    /// Steps `[d]` in the units of the data; 0 for a column that is not rounded.
    steps: Vec<f64>,
}

impl Rounding {
    /// Finds the steps of points.
    ///
    /// A column is rounded to a step h if it has at least 20 rows, at most 0.9 different values per row, and its
    /// values differ from the smallest one by multiples of h, to h / 1000. h is the largest such number from the
    /// smallest difference of two values down to a tenth of it.
    pub fn of(points: &Points) -> Rounding {
        let column = |a: usize| points.values().iter().skip(a).step_by(points.dim()).copied().collect();
        Rounding { steps: (0..points.dim()).map(|a| step_of(column(a)).unwrap_or(0.0)).collect() }
    }

    /// Steps that were found before.
    pub fn with_steps(steps: Vec<f64>) -> Rounding {
        Rounding { steps }
    }

    /// The step of each column, 0 for a column that is not rounded.
    pub fn steps(&self) -> &[f64] {
        &self.steps
    }

    /// Whether no column is rounded.
    pub fn is_none(&self) -> bool {
        self.steps.iter().all(|&step| step == 0.0)
    }

    /// Adds the variance of the noise, h^2 / 12, to that of a column.
    pub fn widen(&self, standard: &mut Standardizer) {
        standard
            .std
            .iter_mut()
            .zip(&self.steps)
            .for_each(|(std, step)| *std = std.hypot(step / 12f64.sqrt()));
    }

    /// Adds `h (u - 1/2)` to the values of a row, with u uniform in [0, 1): a function of the seed and the
    /// number of the row.
    pub fn add_noise(&self, row: &mut [f64], seed: u64, number: u64) {
        let mut state = seed;
        state = split_mix(&mut state) ^ number;
        for (x, &step) in row.iter_mut().zip(&self.steps) {
            let u = (split_mix(&mut state) >> 11) as f64 * (1.0 / (1u64 << 53) as f64);
            *x += step * (u - 0.5);
        }
    }
}

/// The step of a column, if it is rounded.
fn step_of(mut column: Vec<f64>) -> Option<f64> {
    let rows = column.len();
    column.sort_by(f64::total_cmp);
    column.dedup();
    let (first, range) = (column[0], column[column.len() - 1] - column[0]);
    if rows < LEAST || column.len() as f64 > DISTINCT * rows as f64 || range == 0.0 {
        return None;
    }
    let gap = column.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    let fits = |step: &f64| {
        column.iter().all(|x| {
            let steps = (x - first) / step;
            (steps - steps.round()).abs() < OFF
        })
    };
    // Over the whole range, the step has a smaller relative error than a single difference.
    let step = |k: u32| range / (range * f64::from(k) / gap).round();
    (1..=DIVISIONS).map(step).find(fits).map(shortened)
}

/// The same step with six digits, if it is nearly equal.
fn shortened(step: f64) -> f64 {
    let short = format!("{step:.5e}").parse().unwrap_or(step);
    if (short - step).abs() < SHORTER * step { short } else { step }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng, rngs::SmallRng};
    use rand_distr::StandardNormal;

    /// Tables of 100 to 1,000 rows. Column 1: a normal of 0.5 to 5 steps, rounded to a step of 10^-3 to 10 times 1, 2 or
    /// 5, from an offset of -3 to 3 steps, in half of the tables as f32. Column 2: a normal that is not rounded. Column
    /// 3: the same, but 0 in 30 % of the rows. Column 4: the same, rounded to a millionth of its deviation.
    #[test]
    fn steps_of_rounded_columns_are_found_and_others_have_none() {
        let mut rng = SmallRng::seed_from_u64(3);
        let mut drawn = [0; 5];
        for _ in 0..200 {
            let n = rng.random_range(100..1_000);
            let exponent = rng.random_range(-3..=1);
            let step = 10f64.powi(exponent) * [1.0, 2.0, 5.0][rng.random_range(0..3)];
            let (spread, offset) = (rng.random_range(0.5..5.0), rng.random_range(-3.0..3.0) * step);
            let is_single = rng.random::<bool>();
            let normal = |rng: &mut SmallRng| -> f64 { rng.sample(StandardNormal) };
            let rows: Vec<[f64; 4]> = (0..n)
                .map(|_| {
                    let rounded = (spread * normal(&mut rng)).round() * step + offset;
                    let rounded = if is_single { f64::from(rounded as f32) } else { rounded };
                    let with_zeros = if rng.random::<f64>() < 0.3 { 0.0 } else { normal(&mut rng) };
                    [rounded, normal(&mut rng), with_zeros, (normal(&mut rng) * 1e6).round() / 1e6]
                })
                .collect();
            drawn[(exponent + 3) as usize] += 1;
            let found = Rounding::of(&Points::from_rows(rows).unwrap());
            assert!((found.steps()[0] / step - 1.0).abs() < 1e-5, "{step} {spread} {n}: {found:?}");
            assert_eq!(found.steps()[1..], [0.0; 3], "{step} {n}");
        }
        assert!(drawn.iter().all(|&count| count > 10), "{drawn:?}");
    }

    #[test]
    fn steps_have_few_digits_and_few_rows_have_none() {
        let of = |values: &[f64]| {
            let rows: Vec<[f64; 1]> = values.iter().cycle().take(60).map(|&x| [x]).collect();
            Rounding::of(&Points::from_rows(rows).unwrap()).steps()[0]
        };
        assert_eq!(of(&[5.1, 4.9, 4.7, 5.4]), 0.1);
        assert_eq!(of(&[0.0, 1.0]), 1.0);
        assert_eq!(of(&[0.0, 2.0, 5.0]), 1.0);
        assert_eq!(of(&[1.0 / 16.0, 3.0 / 16.0, 0.5]), 1.0 / 16.0);
        assert!((of(&[0.0, 1.0 / 3.0, 1.0]) - 1.0 / 3.0).abs() < 1e-6);
        assert_eq!(of(&[0.0, 1.0, std::f64::consts::E, 17.1]), 0.0);
        let few: Vec<[f64; 1]> = (0..19).map(|i| [f64::from(i % 3)]).collect();
        assert!(Rounding::of(&Points::from_rows(few).unwrap()).is_none());
    }

    /// 10,000 rows of steps 0.01, 0 and 10: the noise has the moments of a uniform of one step, columns are uncorrelated,
    /// and a column without a step is as before.
    #[test]
    fn noise_is_uniform_over_one_step_and_a_function_of_seed_and_row() {
        let rounding = Rounding::with_steps(vec![0.01, 0.0, 10.0]);
        let noise = |seed, number| {
            let mut row = [0.0; 3];
            rounding.add_noise(&mut row, seed, number);
            row
        };
        let rows: Vec<[f64; 3]> = (0..10_000).map(|i| noise(7, i)).collect();
        let mean = |f: &dyn Fn(&[f64; 3]) -> f64| rows.iter().map(f).sum::<f64>() / 10_000.0;
        for (a, step) in [(0, 0.01), (2, 10.0)] {
            assert!(rows.iter().all(|row| row[a].abs() <= step / 2.0));
            // The standard deviations are 0.0029 and 0.00075.
            assert!((mean(&|row| row[a]) / step).abs() < 0.012);
            assert!((mean(&|row| row[a].powi(2)) / step.powi(2) - 1.0 / 12.0).abs() < 0.003);
        }
        assert!(mean(&|row| row[0] * row[2] / 0.1).abs() < 0.004);
        assert!(rows.iter().all(|row| row[1] == 0.0));
        assert_eq!(noise(7, 3), rows[3]);
        assert_ne!(noise(8, 3), rows[3]);
        let mut standard = Standardizer { mean: vec![0.0; 3], std: vec![0.0, 2.0, 10.0], factor: vec![] };
        rounding.widen(&mut standard);
        assert!((standard.std[0] - 0.01 / 12f64.sqrt()).abs() < 1e-12 && standard.std[1] == 2.0);
        assert!((standard.std[2] - (100.0 + 100.0 / 12.0f64).sqrt()).abs() < 1e-9);
    }
}
