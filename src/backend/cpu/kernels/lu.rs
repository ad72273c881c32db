//! LU factorizations with partial pivoting, and solutions from the factors, one matrix after another.
//!
//! Matrices are row-major. The sequence of operations on an element depends only on n, not on
//! the numbers of right-hand sides and matrices. The code is safe, and is compiled for the portable level
//! and for AVX2 with fused multiply-add; AVX-512 uses the latter, since most matrices are small.

use crate::simd::{Level, Work, is_fused, run_narrow};
use std::ops::{Div, Mul, Sub};

/// A float.
pub trait Scalar:
    Copy + PartialOrd + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Default
{
    /// |x|
    fn magnitude(self) -> Self;
    /// self - a b, rounded once
    fn fused(self, a: Self, b: Self) -> Self;
    /// A row number as a float.
    fn of_row(row: usize) -> Self;
    /// The row number that a float holds; 0 for NaN.
    fn row(self) -> usize;
}

macro_rules! scalar {
    ($($t:ty)*) => { $(
        impl Scalar for $t {
            #[inline(always)]
            fn magnitude(self) -> Self {
                self.abs()
            }
            #[inline(always)]
            fn fused(self, a: Self, b: Self) -> Self {
                (-a).mul_add(b, self)
            }
            #[inline(always)]
            fn of_row(row: usize) -> Self {
                row as $t
            }
            #[inline(always)]
            fn row(self) -> usize {
                self as usize
            }
        }
    )* };
}
scalar!(f32 f64);

/// self - a b, fused at levels that have it.
#[inline(always)]
fn minus<T: Scalar, const FUSED: bool>(x: T, a: T, b: T) -> T {
    if FUSED { x.fused(a, b) } else { x - a * b }
}

/// Writes the factors of the n x n matrices `a` to `out`: for each, n rows and the permutation.
pub fn factor<T: Scalar>(level: Level, n: usize, a: &[T], out: &mut [T]) {
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
            permutation.iter_mut().enumerate().for_each(|(i, row)| *row = T::of_row(i));
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
    if pivot == T::default() {
        return;
    }
    for row in below.chunks_exact_mut(n) {
        let row = &mut row[k..];
        let factor = row[0] / pivot;
        row[0] = factor;
        for (entry, &above) in row[1..].iter_mut().zip(&first[1..]) {
            *entry = minus::<T, FUSED>(*entry, factor, above);
        }
    }
}

/// The shape of a group of systems with one matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Systems {
    /// The order of the matrices.
    pub n: usize,
    /// The number of right-hand sides of each matrix.
    pub m: usize,
    /// Whether to solve with the transposed matrices.
    pub transposed: bool,
}

/// Writes the solutions for the right-hand sides `b` to `x`. A row number beyond the matrix counts as the last row.
pub fn solve<T: Scalar>(level: Level, systems: Systems, factors: &[T], b: &[T], x: &mut [T]) {
    if systems.n == 0 || systems.m == 0 {
        return;
    }
    match is_fused(level) {
        true => run_narrow(level, Solve::<T, true> { systems, factors, b, x }),
        false => Solve::<T, false> { systems, factors, b, x }.run(),
    }
}

struct Solve<'a, T, const FUSED: bool> {
    systems: Systems,
    factors: &'a [T],
    b: &'a [T],
    x: &'a mut [T],
}

impl<T: Scalar, const FUSED: bool> Work for Solve<'_, T, FUSED> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Systems { n, m, transposed } = self.systems;
        let all = self.factors.chunks_exact((n + 1) * n).zip(self.b.chunks_exact(n * m));
        for ((factors, b), x) in all.zip(self.x.chunks_exact_mut(n * m)) {
            let (rows, permutation) = factors.split_at(n * n);
            if transposed {
                turned::<T, FUSED>((n, m), (rows, permutation), b, x);
            } else {
                straight::<T, FUSED>((n, m), (rows, permutation), b, x);
            }
        }
    }
}

/// Row i of x loses `factor` times row k.
#[inline(always)]
fn subtract<T: Scalar, const FUSED: bool>(x: &mut [T], m: usize, (i, k): (usize, usize), factor: T) {
    if let Ok([to, from]) = x.get_disjoint_mut([i * m..(i + 1) * m, k * m..(k + 1) * m]) {
        for (to, &from) in to.iter_mut().zip(from.iter()) {
            *to = minus::<T, FUSED>(*to, factor, from);
        }
    }
}

#[inline(always)]
fn divide<T: Scalar>(row: &mut [T], by: T) {
    row.iter_mut().for_each(|x| *x = *x / by);
}

/// The number of rows whose terms are subtracted side by side. A row's terms keep their order, so it changes no bit.
const ROWS: usize = 8;

/// The unknowns `i..i + R` of L x = b or U x = b, for one right-hand side. Those of the rows before them (L) or behind
/// them (U) are known.
#[inline(always)]
fn block<T: Scalar, const FUSED: bool, const R: usize>(
    n: usize,
    i: usize,
    rows: &[T],
    x: &mut [T],
    upper: bool,
) {
    let known = if upper { i + R..n } else { 0..i };
    let lines: [&[T]; R] = std::array::from_fn(|r| &rows[(i + r) * n..][known.clone()]);
    let mut sums: [T; R] = std::array::from_fn(|r| x[i + r]);
    let mut subtract = |(k, &x): (usize, &T)| {
        for (sum, line) in sums.iter_mut().zip(&lines) {
            *sum = minus::<T, FUSED>(*sum, line[k], x);
        }
    };
    let all = x[known].iter().enumerate();
    match upper {
        true => all.rev().for_each(&mut subtract),
        false => all.for_each(&mut subtract),
    }
    for step in 0..R {
        let r = if upper { R - 1 - step } else { step };
        let line = &rows[(i + r) * n + i..][..R];
        if upper {
            sums[r] = sums[r] / line[r];
        }
        let others = if upper { 0..r } else { r + 1..R };
        for other in others {
            sums[other] = minus::<T, FUSED>(sums[other], rows[(i + other) * n + i + r], sums[r]);
        }
    }
    x[i..i + R].copy_from_slice(&sums);
}

/// L U x = b in place, for one right-hand side.
#[inline(always)]
fn straight_one<T: Scalar, const FUSED: bool>(n: usize, rows: &[T], x: &mut [T]) {
    let whole = n - n % ROWS;
    (0..whole).step_by(ROWS).for_each(|i| block::<T, FUSED, ROWS>(n, i, rows, x, false));
    (whole..n).for_each(|i| block::<T, FUSED, 1>(n, i, rows, x, false));
    let first = n % ROWS;
    (first..n).step_by(ROWS).rev().for_each(|i| block::<T, FUSED, ROWS>(n, i, rows, x, true));
    (0..first).rev().for_each(|i| block::<T, FUSED, 1>(n, i, rows, x, true));
}

/// L U x = P b
#[inline(always)]
fn straight<T: Scalar, const FUSED: bool>(
    (n, m): (usize, usize),
    (rows, permutation): (&[T], &[T]),
    b: &[T],
    x: &mut [T],
) {
    for (x, row) in x.chunks_exact_mut(m).zip(permutation) {
        x.copy_from_slice(&b[row.row().min(n - 1) * m..][..m]);
    }
    if m == 1 {
        return straight_one::<T, FUSED>(n, rows, x);
    }
    for k in 0..n {
        for i in k + 1..n {
            subtract::<T, FUSED>(x, m, (i, k), rows[i * n + k]);
        }
    }
    for k in (0..n).rev() {
        divide(&mut x[k * m..][..m], rows[k * n + k]);
        for i in 0..k {
            subtract::<T, FUSED>(x, m, (i, k), rows[i * n + k]);
        }
    }
}

/// U^T L^T P x = b
#[inline(always)]
fn turned<T: Scalar, const FUSED: bool>(
    (n, m): (usize, usize),
    (rows, permutation): (&[T], &[T]),
    b: &[T],
    x: &mut [T],
) {
    x.copy_from_slice(b);
    for k in 0..n {
        divide(&mut x[k * m..][..m], rows[k * n + k]);
        subtract_from::<T, FUSED>(x, m, (k + 1..n, k), &rows[k * n..][..n]);
    }
    for k in (0..n).rev() {
        subtract_from::<T, FUSED>(x, m, (0..k, k), &rows[k * n..][..n]);
    }
    place(n, m, permutation, x);
}

/// Rows `to` of x lose their multiples, by the entries of a line, of row k.
#[inline(always)]
fn subtract_from<T: Scalar, const FUSED: bool>(
    x: &mut [T],
    m: usize,
    (to, k): (std::ops::Range<usize>, usize),
    line: &[T],
) {
    if m == 1 {
        let of = x[k];
        for (x, &factor) in x[to.clone()].iter_mut().zip(&line[to]) {
            *x = minus::<T, FUSED>(*x, factor, of);
        }
    } else {
        to.for_each(|i| subtract::<T, FUSED>(x, m, (i, k), line[i]));
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
