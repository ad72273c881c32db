//! `Matrix`: a square matrix, dense or banded, in column-major order.

use crate::ode::Real;
use std::ops::{Index, IndexMut, Range};

/// A square matrix. Entries outside of the band are 0 and are not stored.
///
/// Entry (i, j) is `data[j * step + i + shift]`; a dense matrix has `step` n and `shift` 0.
#[derive(Clone, Debug)]
pub struct Matrix<R> {
    n: usize,
    lower: usize,
    upper: usize,
    step: usize,
    shift: usize,
    pub(super) data: Vec<R>,
}

impl<R: Real> Matrix<R> {
    /// A zero matrix with these numbers of subdiagonals and superdiagonals, stored as dense if the band
    /// covers it.
    pub fn zeros(n: usize, lower: usize, upper: usize) -> Self {
        let (lower, upper) = (lower.min(n.saturating_sub(1)), upper.min(n.saturating_sub(1)));
        let is_dense = lower + upper + 1 >= n;
        let (lower, upper) = if is_dense { (n.max(1) - 1, n.max(1) - 1) } else { (lower, upper) };
        let (step, shift) = if is_dense { (n, 0) } else { (lower + upper, upper) };
        let len = if is_dense { n * n } else { n * (lower + upper + 1) };
        Matrix { n, lower, upper, step, shift, data: vec![R::constant(0.0); len] }
    }

    /// The number of rows, which is also the number of columns.
    #[inline(always)]
    pub fn n(&self) -> usize {
        self.n
    }

    /// Number of subdiagonals.
    #[inline(always)]
    pub fn lower(&self) -> usize {
        self.lower
    }

    /// Number of superdiagonals.
    #[inline(always)]
    pub fn upper(&self) -> usize {
        self.upper
    }

    /// Whether entry (i, j) is stored.
    #[inline(always)]
    pub fn contains(&self, i: usize, j: usize) -> bool {
        i < self.n && j < self.n && i <= j + self.lower && j <= i + self.upper
    }

    /// The stored rows of column j.
    #[inline(always)]
    pub fn rows(&self, j: usize) -> Range<usize> {
        j.saturating_sub(self.upper)..self.n.min(j + self.lower + 1)
    }

    /// The index of entry (i, j) in `data`.
    #[inline(always)]
    pub(super) fn at(&self, i: usize, j: usize) -> usize {
        j * self.step + i + self.shift
    }

    /// The entries of column j in `rows`.
    #[inline(always)]
    pub fn column(&self, j: usize, rows: Range<usize>) -> &[R] {
        let start = self.at(rows.start, j);
        &self.data[start..start + rows.len()]
    }

    /// The entries of column j in `rows`.
    #[inline(always)]
    pub fn column_mut(&mut self, j: usize, rows: Range<usize>) -> &mut [R] {
        let start = self.at(rows.start, j);
        &mut self.data[start..start + rows.len()]
    }

    /// Sets every entry to `x`.
    #[inline(always)]
    pub fn fill(&mut self, x: R) {
        for entry in &mut self.data {
            *entry = x;
        }
    }

    /// Adds the matrix times `x` to `out`; `scaled(x, a)` returns `a * x`.
    #[inline(always)]
    pub fn add_product<X: Real>(&self, x: &[X], out: &mut [X], scaled: impl Fn(X, R) -> X) {
        for j in 0..self.n {
            let rows = self.rows(j);
            for (out, &a) in out[rows.clone()].iter_mut().zip(self.column(j, rows)) {
                *out = *out + scaled(x[j], a);
            }
        }
    }
}

impl<R: Real> Index<(usize, usize)> for Matrix<R> {
    type Output = R;

    #[inline(always)]
    fn index(&self, (i, j): (usize, usize)) -> &R {
        debug_assert!(self.contains(i, j), "invariant: entry ({i}, {j}) outside of the band");
        &self.data[self.at(i, j)]
    }
}

impl<R: Real> IndexMut<(usize, usize)> for Matrix<R> {
    #[inline(always)]
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut R {
        debug_assert!(self.contains(i, j), "invariant: entry ({i}, {j}) outside of the band");
        let at = self.at(i, j);
        &mut self.data[at]
    }
}
