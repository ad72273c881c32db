//! Triangular systems, one matrix after another.
//!
//! Matrices are row-major. The sequence of operations on an element depends only on n, not on the numbers of right-hand
//! sides and matrices.

use super::lu::Sides;
use super::scalar::{Scalar, minus};
use crate::graph::Triangle;
use crate::simd::{Level, Work, is_fused, run_narrow};

/// Writes the solutions for the right-hand sides `b` to `x`. The other triangle of a matrix is not read.
pub fn triangular_solve<T: Scalar>(
    level: Level,
    (sides, triangle): (Sides, Triangle),
    a: &[T],
    b: &[T],
    x: &mut [T],
) {
    if sides.n == 0 || sides.m == 0 {
        return;
    }
    match is_fused(level) {
        true => run_narrow(level, Solve::<T, true> { sides, triangle, a, b, x }),
        false => Solve::<T, false> { sides, triangle, a, b, x }.run(),
    }
}

struct Solve<'a, T, const FUSED: bool> {
    sides: Sides,
    triangle: Triangle,
    a: &'a [T],
    b: &'a [T],
    x: &'a mut [T],
}

impl<T: Scalar, const FUSED: bool> Work for Solve<'_, T, FUSED> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Sides { n, m } = self.sides;
        let all = self.a.chunks_exact(n * n).zip(self.b.chunks_exact(n * m));
        for ((a, b), x) in all.zip(self.x.chunks_exact_mut(n * m)) {
            x.copy_from_slice(b);
            substitute::<T, FUSED>(self.sides, self.triangle, a, x);
        }
    }
}

/// Solves the systems of one matrix in place, by substitution.
#[inline(always)]
pub(super) fn substitute<T: Scalar, const FUSED: bool>(
    Sides { n, m }: Sides,
    triangle: Triangle,
    rows: &[T],
    x: &mut [T],
) {
    let Triangle { upper, transposed, unit_diagonal } = triangle;
    if !transposed && m == 1 {
        return one_column::<T, FUSED>(n, (upper, unit_diagonal), rows, x);
    }
    // The triangle of the matrix that is solved with is upper if its last unknown is the first known one.
    let is_backward = upper != transposed;
    for step in 0..n {
        let k = if is_backward { n - 1 - step } else { step };
        let others = if is_backward { 0..k } else { k + 1..n };
        if !unit_diagonal {
            x[k * m..][..m].iter_mut().for_each(|x| *x = x.div(rows[k * n + k]));
        }
        if transposed {
            subtract_from::<T, FUSED>(x, m, (others, k), &rows[k * n..][..n]);
        } else {
            others.for_each(|i| subtract::<T, FUSED>(x, m, (i, k), rows[i * n + k]));
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
    (upper, unit_diagonal): (bool, bool),
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
        if !unit_diagonal {
            sums[r] = sums[r].div(line[r]);
        }
        let others = if upper { 0..r } else { r + 1..R };
        for other in others {
            sums[other] = minus::<T, FUSED>(sums[other], rows[(i + other) * n + i + r], sums[r]);
        }
    }
    x[i..i + R].copy_from_slice(&sums);
}

/// Solves the system of a triangle that is not transposed in place, for one right-hand side.
#[inline(always)]
fn one_column<T: Scalar, const FUSED: bool>(n: usize, kind: (bool, bool), rows: &[T], x: &mut [T]) {
    let rest = n % ROWS;
    if kind.0 {
        (rest..n).step_by(ROWS).rev().for_each(|i| block::<T, FUSED, ROWS>(n, i, rows, x, kind));
        (0..rest).rev().for_each(|i| block::<T, FUSED, 1>(n, i, rows, x, kind));
    } else {
        (0..n - rest).step_by(ROWS).for_each(|i| block::<T, FUSED, ROWS>(n, i, rows, x, kind));
        (n - rest..n).for_each(|i| block::<T, FUSED, 1>(n, i, rows, x, kind));
    }
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
