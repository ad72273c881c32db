//! LU factorizations with partial pivoting, and solutions from the factors, one matrix after another.
//!
//! Matrices are row-major. The sequence of operations on an element depends only on n, not on
//! the numbers of right-hand sides and matrices. The code is safe, and is compiled for the portable level
//! and for AVX2 with fused multiply-add; AVX-512 uses the latter, since most matrices are small.

use super::scalar::{Scalar, minus};
use super::triangular::substitute;
use crate::graph::Triangle;
use crate::simd::{Level, Work, is_fused, run_narrow};

/// Writes the factors of the n x n matrices `a` to `out`: for each, n rows and the permutation.
pub fn lu<T: Scalar>(level: Level, n: usize, a: &[T], out: &mut [T]) {
    if n == 0 {
        return;
    }
    match is_fused(level) {
        true => run_narrow(level, Factor::<T, true> { n, a, out }),
        false => Factor::<T, false> { n, a, out }.run(),
    }
}

struct Factor<'a, T, const FUSED: bool> {
    n: usize,
    a: &'a [T],
    out: &'a mut [T],
}

impl<T: Scalar, const FUSED: bool> Work for Factor<'_, T, FUSED> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let n = self.n;
        for (a, out) in self.a.chunks_exact(n * n).zip(self.out.chunks_exact_mut((n + 1) * n)) {
            let (rows, permutation) = out.split_at_mut(n * n);
            rows.copy_from_slice(a);
            permutation.iter_mut().enumerate().for_each(|(i, row)| *row = T::near(i as f64));
            for k in 0..n {
                exchange(n, k, rows, permutation);
                eliminate::<T, FUSED>(n, k, rows);
            }
        }
    }
}

/// Exchanges row k with the row from k on whose entry in column k is the largest; the first of several.
#[inline(always)]
fn exchange<T: Scalar>(n: usize, k: usize, rows: &mut [T], permutation: &mut [T]) {
    let (mut pivot, mut largest) = (k, rows[k * n + k].magnitude());
    for i in k + 1..n {
        let size = rows[i * n + k].magnitude();
        if size > largest {
            (pivot, largest) = (i, size);
        }
    }
    if pivot != k {
        permutation.swap(k, pivot);
        let (above, below) = rows.split_at_mut(pivot * n);
        above[k * n..][..n].swap_with_slice(&mut below[..n]);
    }
}

/// Subtracts multiples of row k from the rows below it. A pivot of 0 has zeros below it, or a NaN.
#[inline(always)]
fn eliminate<T: Scalar, const FUSED: bool>(n: usize, k: usize, rows: &mut [T]) {
    let (above, below) = rows.split_at_mut((k + 1) * n);
    let first = &above[k * n + k..];
    let pivot = first[0];
    if pivot == T::zero() {
        return;
    }
    for row in below.chunks_exact_mut(n) {
        let row = &mut row[k..];
        let factor = row[0].div(pivot);
        row[0] = factor;
        for (entry, &above) in row[1..].iter_mut().zip(&first[1..]) {
            *entry = minus::<T, FUSED>(*entry, factor, above);
        }
    }
}

/// The shape of a group of systems with one matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sides {
    /// The order of the matrices.
    pub n: usize,
    /// The number of right-hand sides of each matrix.
    pub m: usize,
}

/// Writes the solutions for the right-hand sides `b` to `x`, by the factors of the matrices or of their transposes. A row
/// number beyond the matrix counts as the last row.
pub fn lu_solve<T: Scalar>(
    level: Level,
    (sides, transposed): (Sides, bool),
    factors: &[T],
    b: &[T],
    x: &mut [T],
) {
    if sides.n == 0 || sides.m == 0 {
        return;
    }
    match is_fused(level) {
        true => run_narrow(level, Solve::<T, true> { sides, transposed, factors, b, x }),
        false => Solve::<T, false> { sides, transposed, factors, b, x }.run(),
    }
}

struct Solve<'a, T, const FUSED: bool> {
    sides: Sides,
    transposed: bool,
    factors: &'a [T],
    b: &'a [T],
    x: &'a mut [T],
}

impl<T: Scalar, const FUSED: bool> Work for Solve<'_, T, FUSED> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Sides { n, m } = self.sides;
        let (lower, upper) = (Triangle::LOWER.unit_diagonal(), Triangle::UPPER);
        let all = self.factors.chunks_exact((n + 1) * n).zip(self.b.chunks_exact(n * m));
        for ((factors, b), x) in all.zip(self.x.chunks_exact_mut(n * m)) {
            let (rows, permutation) = factors.split_at(n * n);
            if self.transposed {
                // U^T L^T P x = b
                x.copy_from_slice(b);
                substitute::<T, FUSED>(self.sides, upper.transposed(), rows, x);
                substitute::<T, FUSED>(self.sides, lower.transposed(), rows, x);
                place(n, m, permutation, x);
            } else {
                // L U x = P b
                for (x, row) in x.chunks_exact_mut(m).zip(permutation) {
                    x.copy_from_slice(&b[row.row().min(n - 1) * m..][..m]);
                }
                substitute::<T, FUSED>(self.sides, lower, rows, x);
                substitute::<T, FUSED>(self.sides, upper, rows, x);
            }
        }
    }
}

/// Moves row i of x to row `permutation[i]`, one cycle after another.
#[inline(always)]
fn place<T: Scalar>(n: usize, m: usize, permutation: &[T], x: &mut [T]) {
    let to = |i: usize| permutation[i].row().min(n - 1);
    for i in 0..n {
        // A cycle is moved from its first row. At most n rows are looked at, so anything in `permutation` ends.
        let mut j = to(i);
        let mut left = n;
        while j > i && left > 0 {
            (j, left) = (to(j), left - 1);
        }
        if j != i {
            continue;
        }
        let (mut next, mut left) = (to(i), n);
        while next != i && left > 0 {
            (0..m).for_each(|c| x.swap(i * m + c, next * m + c));
            (next, left) = (to(next), left - 1);
        }
    }
}
