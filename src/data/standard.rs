//! Standardized coordinates of points: mean and standard deviation per column, and the map back to units.
//!
//! Models work in standardized coordinates; files, figures and samples are in the units of the data. Means and
//! standard deviations come from the training points; held-out points use the same map. The coordinates of a table are
//! also decorrelated: its training points then have the covariance I.

use crate::triangular::{below, cholesky, log_det, times};

/// Tables with more columns, or with fewer rows per column, are not decorrelated: the factor of their covariance would take
/// long, or be mostly noise.
const MOST_COLUMNS: usize = 64;
const ROWS_PER_COLUMN: usize = 10;
/// Neither are tables with a column of which the columns before it explain all but this part of its standard deviation:
/// rows that differ a little from the others would be far away.
const LEAST_PART: f64 = 0.05;
/// Neither are tables of which a training row would be farther from the mean than this, in standard deviations.
const FARTHEST: f64 = 50.0;

/// The affine map `x = L^-1 (p - mean) / std` of points in d dimensions. The division is along each axis; L is lower
/// triangular, or I.
///
/// # Examples
/// ```
/// use flowline::data::Standardizer;
/// let standard = Standardizer { mean: vec![1.0, 0.0], std: vec![2.0, 0.5], factor: vec![] };
/// assert_eq!(standard.transform(&[5.0, 1.0]), [2.0, 2.0]);
/// assert_eq!(standard.inverse_transform(&[2.0, 2.0]), [5.0, 1.0]);
/// assert_eq!(standard.log_jacobian(), 0.0); // -ln(2 x 0.5)
/// let standard = Standardizer { factor: vec![1.0, 0.0, 0.5, 0.5], ..standard };
/// assert_eq!(standard.transform(&[5.0, 1.0]), [2.0, 2.0]); // 0.5 x 2 + 0.5 x 2 = 2
/// assert_eq!(standard.log_jacobian(), 2f64.ln());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Standardizer {
    /// Mean `[d]`, in the units of the data.
    pub mean: Vec<f64>,
    /// Standard deviation `[d]`, in the units of the data.
    pub std: Vec<f64>,
    /// L `[d, d]`, row-major: the Cholesky factor of the covariance of `(p - mean) / std`. Empty for I.
    pub factor: Vec<f64>,
}

impl Standardizer {
    /// Mean and standard deviation (of all rows, divided by n) of row-major points of `dim` columns, in two
    /// passes.
    pub(super) fn of(points: &[f64], dim: usize) -> Self {
        let rows = (points.len() / dim) as f64;
        let average = |f: &dyn Fn(usize, f64) -> f64| {
            let mut sums = vec![0.0; dim];
            for row in points.chunks_exact(dim) {
                sums.iter_mut().zip(row).enumerate().for_each(|(a, (sum, &p))| *sum += f(a, p));
            }
            sums.into_iter().map(|sum| sum / rows).collect::<Vec<_>>()
        };
        let mean = average(&|_, p| p);
        let variance = average(&|a, p| (p - mean[a]).powi(2));
        Self { std: variance.into_iter().map(f64::sqrt).collect(), mean, factor: Vec::new() }
    }

    /// Sets L from the row-major training points, unless it would be I, too expensive or nearly singular.
    pub(super) fn decorrelate(&mut self, points: &[f64]) {
        let d = self.dim();
        let rows = points.len() / d;
        if d == 1 || d > MOST_COLUMNS || rows < ROWS_PER_COLUMN * d {
            return;
        }
        // The diagonal is 1, also if a standard deviation includes that of noise.
        let mut correlation: Vec<f64> = (0..d * d).map(|i| f64::from(u8::from(i % (d + 1) == 0))).collect();
        for row in points.chunks_exact(d) {
            let z = self.scaled(row);
            for a in 1..d {
                (0..a).for_each(|b| correlation[a * d + b] += z[a] * z[b] / rows as f64);
            }
        }
        let factor = cholesky(correlation, d);
        if (0..d).any(|a| factor[a * d + a].is_nan() || factor[a * d + a] < LEAST_PART) {
            return;
        }
        let found = Self { factor, ..self.clone() };
        let length = |row: &[f64]| found.transform(row).into_iter().fold(0.0, f64::hypot);
        if points.chunks_exact(d).all(|row| length(row) <= FARTHEST) {
            *self = found;
        }
    }

    /// Number of coordinates of a point.
    pub fn dim(&self) -> usize {
        self.mean.len()
    }

    /// Standardized coordinates of one point given in the units of the data, or of several concatenated points.
    ///
    /// # Panics
    /// When the length is not a multiple of the dimension.
    #[track_caller]
    pub fn transform(&self, p: &[f64]) -> Vec<f64> {
        self.by_rows(self.scaled(p), below)
    }

    /// `(p - mean) / std`, without L.
    #[track_caller]
    pub(crate) fn scaled(&self, p: &[f64]) -> Vec<f64> {
        self.each(p, |p, mean, std| (p - mean) / std)
    }

    /// The inverse of [`scaled`](Self::scaled).
    #[track_caller]
    pub(crate) fn unscaled(&self, x: &[f64]) -> Vec<f64> {
        self.each(x, |x, mean, std| mean + std * x)
    }

    /// The inverse of [`transform`](Self::transform): coordinates in the units of the data.
    ///
    /// # Panics
    /// As [`transform`](Self::transform).
    #[track_caller]
    pub fn inverse_transform(&self, x: &[f64]) -> Vec<f64> {
        self.unscaled(&self.by_rows(x.to_vec(), times))
    }

    /// Add this to a log-density in standardized coordinates to get the log-density in the units of the data:
    /// `-sum ln std - sum ln L_ii`.
    pub fn log_jacobian(&self) -> f64 {
        let of_scales = -self.std.iter().map(|s| s.ln()).sum::<f64>();
        if self.factor.is_empty() { of_scales } else { of_scales - log_det(&self.factor, self.dim()) }
    }

    /// Applies a function of L to each row.
    fn by_rows(&self, x: Vec<f64>, f: fn(&[f64], Vec<f64>, usize) -> Vec<f64>) -> Vec<f64> {
        match self.factor.is_empty() {
            true => x,
            false => x.chunks(self.dim()).flat_map(|row| f(&self.factor, row.to_vec(), self.dim())).collect(),
        }
    }

    #[track_caller]
    fn each(&self, values: &[f64], f: impl Fn(f64, f64, f64) -> f64) -> Vec<f64> {
        let d = self.dim();
        assert!(
            values.len().is_multiple_of(d),
            "{} coordinates are not a multiple of the dimension {d}",
            values.len()
        );
        values.iter().enumerate().map(|(i, &v)| f(v, self.mean[i % d], self.std[i % d])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng, rngs::SmallRng};
    use rand_distr::StandardNormal;

    fn normals(n: usize, rng: &mut SmallRng) -> Vec<f64> {
        (0..n).map(|_| rng.sample(StandardNormal)).collect()
    }

    /// Row-major points with this mixing of normal columns: `sum_b mixing[a][b] z_b + shift[a]`.
    fn table(rows: usize, mixing: &[Vec<f64>], shift: &[f64], rng: &mut SmallRng) -> Vec<f64> {
        let z = normals(rows * mixing.len(), rng);
        let dot = |a: &[f64], z: &[f64]| a.iter().zip(z).map(|(a, z)| a * z).sum::<f64>();
        z.chunks_exact(mixing.len())
            .flat_map(|z| mixing.iter().zip(shift).map(move |(a, shift)| dot(a, z) + shift))
            .collect()
    }

    fn of(points: &[f64], dim: usize) -> Standardizer {
        let mut standard = Standardizer::of(points, dim);
        standard.decorrelate(points);
        standard
    }

    /// Tables of 2 to 6 columns with scales of 0.01 to 100, whose mixing is I plus entries from -0.7 to 0.7, and 60 to 400
    /// rows.
    #[test]
    fn decorrelated_tables_have_the_covariance_of_the_identity() {
        let mut rng = SmallRng::seed_from_u64(31);
        let mut decorrelated = 0;
        for _ in 0..60 {
            let (d, rows) = (rng.random_range(2..=6), rng.random_range(60..400));
            let scales: Vec<f64> = (0..d).map(|_| 10f64.powf(rng.random_range(-2.0..2.0))).collect();
            let mut entry =
                |a: usize, b: usize| scales[a] * (f64::from(u8::from(a == b)) + rng.random_range(-0.7..0.7));
            let mixing: Vec<Vec<f64>> = (0..d).map(|a| (0..d).map(|b| entry(a, b)).collect()).collect();
            let points = table(rows, &mixing, &normals(d, &mut rng), &mut rng);
            let standard = of(&points, d);
            let x = standard.transform(&points);
            let back = standard.inverse_transform(&x);
            assert!(points.iter().zip(&back).all(|(p, q)| (p - q).abs() < 1e-9 * (1.0 + p.abs())));
            if standard.factor.is_empty() {
                continue;
            }
            decorrelated += 1;
            for a in 0..d {
                for b in 0..d {
                    let mean = x.chunks_exact(d).map(|x| x[a] * x[b]).sum::<f64>() / rows as f64;
                    assert!((mean - f64::from(u8::from(a == b))).abs() < 1e-9, "{a} {b}: {mean}");
                }
            }
            // The volume of a unit cube, by the factor of the covariance in the units of the data.
            let centered: Vec<f64> =
                points.iter().enumerate().map(|(i, p)| p - standard.mean[i % d]).collect();
            let covariance = (0..d * d)
                .map(|i| centered.chunks_exact(d).map(|p| p[i / d] * p[i % d]).sum::<f64>() / rows as f64);
            let volume = log_det(&cholesky(covariance.collect(), d), d);
            assert!((standard.log_jacobian() + volume).abs() < 1e-6, "{} {volume}", standard.log_jacobian());
        }
        assert!(decorrelated > 50, "{decorrelated}");
    }

    #[test]
    fn tables_that_are_nearly_singular_or_small_are_only_standardized() {
        let mut rng = SmallRng::seed_from_u64(32);
        let mut two = |part: f64, rows: usize| {
            let points = table(rows, &[vec![1.0, 0.0], vec![1.0, part]], &[3.0, -1.0], &mut rng);
            !of(&points, 2).factor.is_empty()
        };
        // The second column has a part of about 0, 0.04 or 0.06 of its own.
        assert_eq!([0.0, 0.04, 0.06].map(|part| two(part, 4_000)), [false, false, true]);
        assert_eq!([19, 20].map(|rows| two(0.5, rows)), [false, true]);
        let line = normals(100, &mut rng);
        assert!(of(&line, 1).factor.is_empty());
        let mut wide = |d: usize| !of(&normals(10 * d * d, &mut rng), d).factor.is_empty();
        assert_eq!([64, 65].map(&mut wide), [true, false]);
        // A row 60 standard deviations away.
        let mut far = normals(8_000, &mut rng);
        far[0] = 150.0;
        assert!(of(&far, 2).factor.is_empty());
    }
}
