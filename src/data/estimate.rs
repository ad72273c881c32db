//! A mean with its standard error: the form in which measured values are stored, merged and printed.
//!
//! Callers merge the estimates of parts of the data in a fixed order, so the result does not depend on the
//! number of threads.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The mean of independent values and its standard error.
///
/// # Examples
/// ```
/// use flowline::data::extra::Estimate;
/// let all = Estimate::of(&[1.0, 2.0, 4.0, 5.0]);
/// assert_eq!(format!("{all:.2}"), "3.00 ± 0.91");
/// assert_eq!(Estimate::of(&[1.0, 2.0]).merge(Estimate::of(&[4.0, 5.0])), all);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Its standard error, `sqrt(sum (x - mean)^2 / (n (n - 1)))`; `None` for fewer than two values.
    pub stderr: Option<f64>,
    /// Number of values; 0 if only mean and standard error were stored.
    pub count: u64,
}

impl Estimate {
    /// The mean of `values` and its standard error; the mean of no values is NaN.
    pub fn of(values: &[f64]) -> Estimate {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares = values.iter().map(|x| (x - mean) * (x - mean)).sum();
        Estimate::new(mean, squares, values.len() as u64)
    }

    fn new(mean: f64, squares: f64, count: u64) -> Estimate {
        let n = count as f64;
        Estimate { mean, stderr: (count > 1).then(|| (squares / (n * (n - 1.0))).sqrt()), count }
    }

    /// Sum of squared differences from the mean.
    fn squares(self) -> f64 {
        let n = self.count as f64;
        self.stderr.map_or(0.0, |error| error * error * n * (n - 1.0))
    }

    /// The estimate from the values of both estimates (Chan, Golub and LeVeque 1983, Algorithms for computing
    /// the sample variance, eq. 2.1).
    #[must_use]
    pub fn merge(self, other: Estimate) -> Estimate {
        if self.count == 0 || other.count == 0 {
            return if self.count == 0 { other } else { self };
        }
        let (n, m, apart) = (self.count as f64, other.count as f64, other.mean - self.mean);
        let mean = (n * self.mean + m * other.mean) / (n + m);
        let squares = self.squares() + other.squares() + apart * apart * n * m / (n + m);
        Estimate::new(mean, squares, self.count + other.count)
    }

    /// The estimate for the values plus a constant.
    #[must_use]
    pub fn plus(self, shift: f64) -> Estimate {
        Estimate { mean: self.mean + shift, ..self }
    }

    /// The estimate for the values times a constant.
    #[must_use]
    pub fn times(self, scale: f64) -> Estimate {
        Estimate { mean: scale * self.mean, stderr: self.stderr.map(|error| scale.abs() * error), ..self }
    }

    /// Calls `next(0)`, `next(1)`, ... and merges the results, until the standard error is at most `stderr`,
    /// there are at least `cap` values, or `next` returns `None`.
    ///
    /// # Errors
    /// Errors of `next`.
    pub fn until<E>(
        stderr: f64,
        cap: u64,
        mut next: impl FnMut(u32) -> Result<Option<Estimate>, E>,
    ) -> Result<Estimate, E> {
        let mut all = Estimate::default();
        for i in 0.. {
            if all.count >= cap || all.stderr.is_some_and(|error| error <= stderr) {
                break;
            }
            let Some(part) = next(i)? else { break };
            all = all.merge(part);
        }
        Ok(all)
    }
}

/// Prints `1.2345 ± 0.0067`, with the precision of the format string, by default 4 decimals. An unknown
/// standard error is printed as a question mark.
impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(4);
        match self.stderr {
            Some(stderr) => write!(f, "{:.digits$} ± {stderr:.digits$}", self.mean),
            None => write!(f, "{:.digits$} ± ?", self.mean),
        }
    }
}

/// Formats an integer with thousands separators: 18,448.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let first = digits.len() % 3;
    let mut out = digits[..first].to_owned();
    for (i, chunk) in digits.as_bytes()[first..].chunks(3).enumerate() {
        if i > 0 || first > 0 {
            out.push(',');
        }
        out.extend(chunk.iter().map(|&b| char::from(b)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng, rngs::SmallRng};

    #[test]
    fn the_standard_error_is_the_spread_of_means() {
        let mut rng = SmallRng::seed_from_u64(3);
        let means: Vec<Estimate> = (0..2_000)
            .map(|_| Estimate::of(&(0..50).map(|_| rng.random::<f64>()).collect::<Vec<_>>()))
            .collect();
        let exact = (1.0f64 / 12.0 / 50.0).sqrt();
        let stderr = means.iter().map(|m| m.stderr.unwrap()).sum::<f64>() / 2_000.0;
        assert!((stderr / exact - 1.0).abs() < 0.02, "{stderr} {exact}");
        let spread = means.iter().map(|m| (m.mean - 0.5).powi(2)).sum::<f64>() / 2_000.0;
        assert!((spread.sqrt() / exact - 1.0).abs() < 0.06, "{} {exact}", spread.sqrt());
        let within = means.iter().filter(|m| (m.mean - 0.5).abs() < 2.0 * m.stderr.unwrap()).count();
        assert!((1_860..1_950).contains(&within), "95 % must lie within two standard errors: {within}");
    }

    #[test]
    fn parts_merge_to_the_whole_and_far_from_zero_too() {
        let mut rng = SmallRng::seed_from_u64(4);
        let values: Vec<f64> = (0..1_000).map(|_| 1e6 + rng.random::<f64>()).collect();
        let whole = Estimate::of(&values);
        let parts = [&values[..1], &values[1..40], &values[40..40], &values[40..]].map(Estimate::of);
        let merged = parts.into_iter().fold(Estimate::default(), Estimate::merge);
        assert_eq!(merged.count, 1_000);
        assert!((merged.mean - whole.mean).abs() < 1e-8);
        assert!((merged.stderr.unwrap() / whole.stderr.unwrap() - 1.0).abs() < 1e-6, "{merged:?} {whole:?}");
    }

    #[test]
    fn one_value_tells_no_error_and_constants_move_and_stretch() {
        let one = Estimate::of(&[2.5]);
        assert_eq!((one.stderr, one.to_string().as_str()), (None, "2.5000 ± ?"));
        let estimate = Estimate::of(&[1.0, 3.0]).plus(1.0).times(-2.0);
        assert_eq!((estimate.mean, estimate.stderr, estimate.count), (-6.0, Some(2.0), 2));
        assert_eq!(format!("{estimate:.1}"), "-6.0 ± 2.0");
        // An infinite value makes the mean infinite.
        assert_eq!(Estimate::of(&[1.0, f64::INFINITY]).mean, f64::INFINITY);
    }

    #[test]
    fn parts_are_added_until_the_error_is_small_or_the_cap_or_the_time_is_reached() {
        let part = |_: u32| Ok::<_, ()>(Some(Estimate::of(&[0.0, 1.0, 0.0, 1.0])));
        let small = Estimate::until(0.1, 1_000, part).unwrap();
        // The standard error of n values is 0.5 / sqrt(n - 1).
        assert_eq!((small.count, small.stderr.unwrap() <= 0.1), (28, true));
        assert_eq!(Estimate::until(0.1, 10, part).unwrap().count, 12);
        let timed = |i: u32| if i < 2 { part(i) } else { Ok(None) };
        assert_eq!(Estimate::until(0.0, 1_000, timed).unwrap().count, 8);
        assert_eq!(Estimate::until(0.0, 9, |_| Err::<Option<Estimate>, _>("ended")), Err("ended"));
    }
}
