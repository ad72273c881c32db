//! Standardized coordinates of points: mean and standard deviation per column, and the map back to units.
//!
//! Models work in standardized coordinates; files, figures and samples are in the units of the data. Means and
//! standard deviations come from the training points; held-out points use the same map.

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
    /// Mean `[d]`, in the units of the data.
    pub mean: Vec<f64>,
    /// Standard deviation `[d]`, in the units of the data.
    pub std: Vec<f64>,
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
        Self { std: variance.into_iter().map(f64::sqrt).collect(), mean }
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
        self.each(p, |p, mean, std| (p - mean) / std)
    }

    /// The inverse of [`transform`](Self::transform): coordinates in the units of the data.
    ///
    /// # Panics
    /// As [`transform`](Self::transform).
    #[track_caller]
    pub fn inverse_transform(&self, x: &[f64]) -> Vec<f64> {
        self.each(x, |x, mean, std| mean + std * x)
    }

    /// Add this to a log-density in standardized coordinates to get the log-density in the units of the data:
    /// `-sum ln std`.
    pub fn log_jacobian(&self) -> f64 {
        -self.std.iter().map(|s| s.ln()).sum::<f64>()
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
