//! Linear systems in f64, rounded once: the reference for the kernels.

use crate::array::{Array, Data};
use crate::graph::Triangle;

/// The number of matrices of a batch, and their rows and columns.
pub(super) fn matrices(x: &Array) -> (usize, [usize; 2]) {
    let (lead, &last) = x.shape().split_last_chunk().expect("invariant: a matrix has two axes");
    (lead.iter().product(), last)
}

pub(super) fn rounded(like: &Array, values: &[f64]) -> Data {
    let mut out = Data::zeros(like.dtype(), values.len());
    values.iter().enumerate().for_each(|(i, x)| out.set_f64(i, *x));
    out
}

/// The solution of a triangular system in place, for `entry(i, j)` of the matrix.
fn substitute(triangle: Triangle, entry: impl Fn(usize, usize) -> f64, x: &mut [f64]) {
    let n = x.len();
    let at = |i: usize, j: usize| if triangle.transposed { entry(j, i) } else { entry(i, j) };
    let is_backward = triangle.upper != triangle.transposed;
    for step in 0..n {
        let k = if is_backward { n - 1 - step } else { step };
        if !triangle.unit_diagonal {
            x[k] /= at(k, k);
        }
        let others = if is_backward { 0..k } else { k + 1..n };
        others.for_each(|i| x[i] -= x[k] * at(i, k));
    }
}

/// The solutions for the right-hand sides b.
pub(super) fn lu_solve(factors: &Array, b: &Array, transposed: bool) -> Data {
    let (count, [n, m]) = matrices(b);
    let (lower, upper) = (Triangle::LOWER.unit_diagonal(), Triangle::UPPER);
    let mut out = vec![0.0; count * n * m];
    for (e, c) in (0..count).flat_map(|e| (0..m).map(move |c| (e, c))) {
        let factor = |i: usize, j: usize| factors.data().get_f64((e * (n + 1) + i) * n + j);
        let row = |i: usize| (factor(n, i) as usize).min(n - 1);
        let right = |i: usize| b.data().get_f64((e * n + i) * m + c);
        let mut x: Vec<f64> = (0..n).map(|i| right(if transposed { i } else { row(i) })).collect();
        let both = if transposed { [upper.transposed(), lower.transposed()] } else { [lower, upper] };
        both.into_iter().for_each(|triangle| substitute(triangle, factor, &mut x));
        for (i, x) in x.into_iter().enumerate() {
            out[(e * n + if transposed { row(i) } else { i }) * m + c] = x;
        }
    }
    rounded(b, &out)
}

/// The solutions of triangular systems.
pub(super) fn triangular_solve(triangle: Triangle, a: &Array, b: &Array) -> Data {
    let (count, [n, m]) = matrices(b);
    let mut out = vec![0.0; count * n * m];
    for (e, c) in (0..count).flat_map(|e| (0..m).map(move |c| (e, c))) {
        let mut x: Vec<f64> = (0..n).map(|i| b.data().get_f64((e * n + i) * m + c)).collect();
        substitute(triangle, |i, j| a.data().get_f64((e * n + i) * n + j), &mut x);
        x.into_iter().enumerate().for_each(|(i, x)| out[(e * n + i) * m + c] = x);
    }
    rounded(b, &out)
}
