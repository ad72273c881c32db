//! Eigenvalues and eigenvectors of a symmetric matrix by rotations in planes.
//!
//! Reference: Golub and Van Loan (2013), Matrix computations, section 8.5 (cyclic Jacobi).

/// Sweeps over all pairs; convergence is quadratic, and 6 to 10 suffice.
const SWEEPS: usize = 40;

/// The eigenvalues of a symmetric matrix `a`, row-major, and its eigenvectors as the columns of a row-major matrix.
pub(super) fn eigen(mut a: Vec<f64>, dim: usize) -> (Vec<f64>, Vec<f64>) {
    let mut vectors = vec![0.0; dim * dim];
    (0..dim).for_each(|i| vectors[i * dim + i] = 1.0);
    let scale: f64 = a.iter().map(|x| x * x).sum();
    for _ in 0..SWEEPS {
        let off: f64 =
            (0..dim).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| a[i * dim + j].powi(2)).sum();
        if off <= 1e-32 * scale {
            break;
        }
        for q in 1..dim {
            for p in 0..q {
                rotate(&mut a, &mut vectors, dim, (p, q));
            }
        }
    }
    ((0..dim).map(|i| a[i * dim + i]).collect(), vectors)
}

/// The rotation that makes the element (p, q) 0.
fn rotate(a: &mut [f64], vectors: &mut [f64], dim: usize, (p, q): (usize, usize)) {
    let between = a[p * dim + q];
    if between == 0.0 {
        return;
    }
    let tau = (a[q * dim + q] - a[p * dim + p]) / (2.0 * between);
    // The smaller root: the angle is at most 45 degrees.
    let tan = tau.signum() / (tau.abs() + tau.hypot(1.0));
    let cos = 1.0 / tan.hypot(1.0);
    let sin = tan * cos;
    let turn = |x: &mut [f64], i: usize, j: usize| {
        (x[i], x[j]) = (cos * x[i] - sin * x[j], sin * x[i] + cos * x[j]);
    };
    for i in 0..dim {
        turn(a, i * dim + p, i * dim + q);
        turn(vectors, i * dim + p, i * dim + q);
    }
    (0..dim).for_each(|j| turn(a, p * dim + j, q * dim + j));
    (a[p * dim + q], a[q * dim + p]) = (0.0, 0.0);
}
