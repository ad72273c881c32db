//! Radii of Cholesky and QR factors, of eigenvalues and eigenvectors, and of the solutions of triangular systems.
//!
//! They are first-order bounds, doubled: the formulas of the derivatives, with magnitudes in place of all numbers. The
//! errors of a computation are those of a matrix that is off by a few units of the Frobenius norm (Higham 2002, Accuracy
//! and Stability of Numerical Algorithms, theorems 8.5, 10.3 and 19.4). A radius is infinite if the second order counts.

use super::Ball;
use super::systems::{Matrix, sides};
use crate::array::Array;
use crate::graph::{FactorOp, Triangle};

/// The radii of the factors `value` of the matrices a.
pub(super) fn radii(op: FactorOp, a: &Ball, value: &Array, unit: f64) -> Vec<f64> {
    let (count, m, n) = sides(&a.value);
    let rows = op.rows([m, n]);
    let mut radii = vec![];
    for e in 0..count {
        let entry = |i: usize, j: usize| (e * m + i) * n + j;
        let size: f64 = (0..m * n).map(|i| a.value.data().get_f64(e * m * n + i).powi(2)).sum::<f64>().sqrt();
        let rounding = 8.0 * (m + n) as f64 * unit * size;
        let off = Matrix::new((m, n), |i, j| a.radius[entry(i, j)] + rounding);
        let found = Matrix::new((rows, n), |i, j| value.data().get_f64((e * rows + i) * n + j));
        let (radius, is_small) = match op {
            FactorOp::Cholesky => cholesky(&off, &found),
            FactorOp::Qr => qr(&off, &found, (m, n)),
            FactorOp::Eigh => eigh(&off, &found),
            FactorOp::Lu => unreachable!("LU factors have radii of their own"),
        };
        for (i, j) in (0..rows).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let rounded = if found.at(i, j) == 0.0 && radius.at(i, j) == 0.0 { 0.0 } else { unit * size };
            radii.push(if is_small { 2.0 * radius.at(i, j) + rounded } else { f64::INFINITY });
        }
    }
    radii
}

/// x with zeros where the condition on rows and columns does not hold.
fn where_(x: &Matrix, holds: impl Fn(usize, usize) -> bool) -> Matrix {
    x.map(|i, j, x| if holds(i, j) { x } else { 0.0 })
}

/// The symmetric part.
fn symmetric(x: &Matrix) -> Matrix {
    x.plus(&x.transposed()).map(|_, _, x| 0.5 * x)
}

fn cholesky(off: &Matrix, lower: &Matrix) -> (Matrix, bool) {
    let inverse = lower.inverse().sizes();
    let inner = &(&inverse * &symmetric(off)) * &inverse.transposed();
    (&lower.sizes() * &where_(&inner, |i, j| i >= j), inner.is_small())
}

fn qr(off: &Matrix, found: &Matrix, (m, n): (usize, usize)) -> (Matrix, bool) {
    let k = m.min(n);
    let q = Matrix::new((m, k), |i, j| found.at(i, j).abs());
    let r = Matrix::new((k, n), |i, j| found.at(m + i, j).abs());
    let first = Matrix::new((k, k), |i, j| found.at(m + i, j));
    let inverse = first.transposed().inverse().transposed().sizes();
    let x = &Matrix::new((m, k), |i, j| off.at(i, j)) * &inverse;
    let w = &q.transposed() * &x;
    let below = where_(&w, |i, j| i > j);
    let z = below.plus(&below.transposed());
    let dq = x.plus(&(&q * &z.plus(&w)));
    let dr = where_(&(&q.transposed() * off).plus(&(&z * &r)), |i, j| i <= j);
    let both = Matrix::new((m + k, n), |i, j| match (i < m, j < k) {
        (true, true) => dq.at(i, j),
        (true, false) => 0.0,
        _ => dr.at(i - m, j),
    });
    (both, w.is_small())
}

fn eigh(off: &Matrix, found: &Matrix) -> (Matrix, bool) {
    let n = off.transposed().sides().0;
    let vectors = Matrix::new((n, n), |i, j| found.at(i, j).abs());
    let inner = &(&vectors.transposed() * &symmetric(off)) * &vectors;
    let gap = |i: usize, j: usize| (found.at(n, j) - found.at(n, i)).abs();
    let turned = inner.map(|i, j, x| if i == j { 0.0 } else { x / gap(i, j) });
    let moved = &vectors * &turned;
    // The sign is clear if no entry is near the bound of the magnitudes that decide.
    let is_clear = (0..n).all(|j| {
        let largest = |x: &Matrix| (0..n).fold(0.0, |most: f64, i| most.max(x.at(i, j)));
        let (bound, room) = (0.9 * largest(&vectors), 4.0 * largest(&moved));
        (0..n).all(|i| (vectors.at(i, j) - bound).abs() > room)
    });
    let both = Matrix::new((n + 1, n), |i, j| if i < n { moved.at(i, j) } else { inner.at(j, j) });
    (both, is_clear && turned.is_small())
}

/// The radii of the solutions `value` of systems with a triangle of a.
pub(super) fn triangular(triangle: Triangle, [a, b]: [&Ball; 2], value: &Array, unit: f64) -> Vec<f64> {
    let (count, n, m) = sides(&b.value);
    let mut radii = vec![];
    for e in 0..count {
        let is_inside = |i: usize, j: usize| if triangle.upper { i < j } else { i > j };
        let part = |entry: &dyn Fn(usize) -> f64, one: f64| {
            let at = |i: usize, j: usize| match i == j {
                true if triangle.unit_diagonal => one,
                same if same || is_inside(i, j) => entry((e * n + i) * n + j),
                _ => 0.0,
            };
            Matrix::new((n, n), |i, j| if triangle.transposed { at(j, i) } else { at(i, j) })
        };
        let t = part(&|i| a.value.data().get_f64(i), 1.0);
        let moved = part(&|i| a.radius[i], 0.0);
        let inverse = match triangle.upper == triangle.transposed {
            true => t.inverse(),
            false => t.transposed().inverse().transposed(),
        }
        .sizes();
        let off = moved.plus(&t.sizes().map(|_, _, x| 4.0 * n as f64 * unit * x));
        let x = Matrix::new((n, m), |i, c| value.data().get_f64((e * n + i) * m + c).abs());
        let of_b = Matrix::new((n, m), |i, c| b.radius[(e * n + i) * m + c]);
        let is_small = (&inverse * &off).is_small();
        let radius = &inverse * &(&off * &x).plus(&of_b);
        for (i, c) in (0..n).flat_map(|i| (0..m).map(move |c| (i, c))) {
            radii.push(if is_small { 2.0 * radius.at(i, c) + unit * x.at(i, c) } else { f64::INFINITY });
        }
    }
    radii
}
