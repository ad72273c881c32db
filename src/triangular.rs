//! Cholesky factors of covariances, and products and solves with them. Matrices are row-major.

/// The smallest pivot, relative to the variance. Added to variances, it gives points in a plane a covariance with an
/// inverse.
pub(crate) const RIDGE: f64 = 1e-9;

/// The lower triangular L with `L L^T = a`, row-major.
pub(crate) fn cholesky(mut a: Vec<f64>, dim: usize) -> Vec<f64> {
    for i in 0..dim {
        for j in 0..=i {
            let rest: f64 = (0..j).map(|k| a[i * dim + k] * a[j * dim + k]).sum();
            let left = a[i * dim + j] - rest;
            a[i * dim + j] = match i == j {
                // Rounding can leave a pivot below the ridge.
                true => left.max(RIDGE * a[i * dim + i]).sqrt(),
                false => left / a[j * dim + j],
            };
        }
        (i + 1..dim).for_each(|j| a[i * dim + j] = 0.0);
    }
    a
}

/// `L^-1 x`.
pub(crate) fn below(root: &[f64], mut x: Vec<f64>, dim: usize) -> Vec<f64> {
    for i in 0..dim {
        let rest: f64 = (0..i).map(|k| root[i * dim + k] * x[k]).sum();
        x[i] = (x[i] - rest) / root[i * dim + i];
    }
    x
}

/// `L^-T x`.
pub(crate) fn above(root: &[f64], mut x: Vec<f64>, dim: usize) -> Vec<f64> {
    for i in (0..dim).rev() {
        let rest: f64 = (i + 1..dim).map(|k| root[k * dim + i] * x[k]).sum();
        x[i] = (x[i] - rest) / root[i * dim + i];
    }
    x
}

/// `L x`.
pub(crate) fn times(root: &[f64], mut x: Vec<f64>, dim: usize) -> Vec<f64> {
    for i in (0..dim).rev() {
        x[i] = (0..=i).map(|k| root[i * dim + k] * x[k]).sum();
    }
    x
}

/// The logarithm of the determinant of L.
pub(crate) fn log_det(root: &[f64], dim: usize) -> f64 {
    (0..dim).map(|i| root[i * dim + i].ln()).sum()
}
