//! Standardized coordinates of points: mean and deviation a column, and the way back to units.
//!
//! Knows an affine map along each axis. Models work in standardized coordinates; files, figures and samples are in
//! units. Means and deviations are those of the points to learn from, and held-out points are mapped by the same.

/// The affine map `x = (p - mean) / std` along each of d axes.
///
/// # Examples
/// ```
/// let standard = flowline::data::Standardizer { mean: vec![1.0, 0.0], std: vec![2.0, 0.5] };
/// assert_eq!(standard.transform(&[5.0, 1.0]), [2.0, 2.0]);
/// assert_eq!(standard.inverse_transform(&[2.0, 2.0]), [5.0, 1.0]);
/// assert_eq!(standard.log_jacobian(), 0.0); // -ln(2 x 0.5)
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Standardizer {
    /// Center `[d]`, in units.
    pub mean: Vec<f64>,
    /// Deviation `[d]`, in units.
    pub std: Vec<f64>,
}

impl Standardizer {
    /// Mean and deviation (of all rows, divided by n) of row-major points of `dim` columns, in two passes.
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
        Self { std: variance.into_iter().map(f64::sqrt).collect(), mean }
    }

    /// Length of a point.
    pub fn dim(&self) -> usize {
        self.mean.len()
    }

    /// Standardized coordinates of a point in units, or of several one after the other.
    ///
    /// # Panics
    /// When they are no whole number of points.
    #[track_caller]
    pub fn transform(&self, p: &[f64]) -> Vec<f64> {
        self.each(p, |p, mean, std| (p - mean) / std)
    }

    /// A point of standardized coordinates in units, or several one after the other.
    ///
    /// # Panics
    /// As [`transform`](Self::transform).
    #[track_caller]
    pub fn inverse_transform(&self, x: &[f64]) -> Vec<f64> {
        self.each(x, |x, mean, std| mean + std * x)
    }

    /// What to add to a log-density in standardized coordinates to have it in units: `-sum ln std`.
    pub fn log_jacobian(&self) -> f64 {
        -self.std.iter().map(|s| s.ln()).sum::<f64>()
    }

    #[track_caller]
    fn each(&self, values: &[f64], f: impl Fn(f64, f64, f64) -> f64) -> Vec<f64> {
        let d = self.dim();
        assert!(values.len().is_multiple_of(d), "{} coordinates are no points of {d}", values.len());
        values.iter().enumerate().map(|(i, &v)| f(v, self.mean[i % d], self.std[i % d])).collect()
    }
}
