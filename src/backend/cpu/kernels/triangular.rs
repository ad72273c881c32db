//! Triangular systems; small matrices of a batch are side by side.
//!
//! Matrices are row-major. The sequence of operations on an element depends only on n, not on the numbers of right-hand
//! sides and matrices.

use super::scalar::{Number, Scalar, minus};
use crate::graph::Triangle;
use crate::simd::{Level, Work, is_fused, run_narrow};

/// Numbers of matrices and right-hand sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sides {
    /// The order of the matrices.
    pub n: usize,
    /// The number of right-hand sides of each matrix.
    pub m: usize,
}

/// The numbers of work per matrix of systems that are solved side by side with others.
pub fn solve_work(Sides { n, m }: Sides) -> usize {
    n * n + n * m
}

/// Writes the solutions for the right-hand sides `b` to `x`. The other triangle of a matrix has no effect. `work` has the
/// [room beside](super::room_beside) others for [`solve_work`].
pub fn triangular_solve<T: Scalar>(
    level: Level,
    (sides, triangle): (Sides, Triangle),
    a: &[T],
    b: &[T],
    (x, work): (&mut [T], &mut [T]),
) {
    x.copy_from_slice(b);
    solve_in_place(level, (sides, sides.n * sides.n), &[triangle], a, (x, work));
}

/// Solves the systems of triangles of each matrix, one triangle after the other, with the right-hand sides in `x`. A matrix
/// begins each `size` floats.
pub(super) fn solve_in_place<T: Scalar>(
    level: Level,
    (sides, size): (Sides, usize),
    triangles: &[Triangle],
    a: &[T],
    (x, work): (&mut [T], &mut [T]),
) {
    if sides.n == 0 || sides.m == 0 {
        return;
    }
    match is_fused(level) {
        true => run_narrow(level, Solve::<T, true> { level, sides, size, triangles, a, x, work }),
        false => Solve::<T, false> { level, sides, size, triangles, a, x, work }.run(),
    }
}

struct Solve<'a, T, const FUSED: bool> {
    level: Level,
    sides: Sides,
    size: usize,
    triangles: &'a [Triangle],
    a: &'a [T],
    x: &'a mut [T],
    work: &'a mut [T],
}

impl<T: Scalar, const FUSED: bool> Work for Solve<'_, T, FUSED> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Solve { level, sides, size, triangles, a, x, work } = self;
        let Sides { n, m } = sides;
        // Lanes without fused multiply-add are not compiled: they would take 0.15 MB of code for processors older than AVX2, where
        // batches of small matrices take 1.5 to 2.7 times as long without them (benches/record/2026-11-29-linalg.md).
        if FUSED && !work.is_empty() {
            let (rows, lanes) = T::Lanes::split(work)[..solve_work(sides)].split_at_mut(n * n);
            for (a, x) in a.chunks(T::Lanes::LEN * size).zip(x.chunks_mut(T::Lanes::LEN * n * m)) {
                T::Lanes::load(level, a, size, rows);
                T::Lanes::load(level, x, n * m, lanes);
                for &triangle in triangles {
                    substitute::<T::Lanes, FUSED>(sides, triangle, rows, lanes);
                }
                T::Lanes::store(level, lanes, x);
            }
            return;
        }
        for (a, x) in a.chunks_exact(size).zip(x.chunks_exact_mut(n * m)) {
            for &triangle in triangles {
                substitute::<T, FUSED>(sides, triangle, a, x);
            }
        }
    }
}

/// Solves the systems of one matrix in place, by substitution.
#[inline(always)]
fn substitute<E: Number, const FUSED: bool>(
    Sides { n, m }: Sides,
    triangle: Triangle,
    rows: &[E],
    x: &mut [E],
) {
    let Triangle { upper, transposed, unit_diagonal } = triangle;
    if !transposed && m == 1 {
        return one_column::<E, FUSED>(n, (upper, unit_diagonal), rows, x);
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
            subtract_from::<E, FUSED>(x, m, (others, k), &rows[k * n..][..n]);
        } else {
            for i in others {
                subtract::<E, FUSED>(x, m, (i, k), rows[i * n + k]);
            }
        }
    }
}

/// Row i of x loses `factor` times row k.
#[inline(always)]
fn subtract<E: Number, const FUSED: bool>(x: &mut [E], m: usize, (i, k): (usize, usize), factor: E) {
    if let Ok([to, from]) = x.get_disjoint_mut([i * m..(i + 1) * m, k * m..(k + 1) * m]) {
        for (to, &from) in to.iter_mut().zip(from.iter()) {
            *to = minus::<E, FUSED>(*to, factor, from);
        }
    }
}

/// The number of rows whose terms are subtracted side by side. A row's terms keep their order, so it changes no bit.
const ROWS: usize = 8;

/// The unknowns `i..i + R` of L x = b or U x = b, for one right-hand side. Those of the rows before them (L) or behind
/// them (U) are known.
#[inline(always)]
fn block<E: Number, const FUSED: bool, const R: usize>(
    n: usize,
    i: usize,
    rows: &[E],
    x: &mut [E],
    (upper, unit_diagonal): (bool, bool),
) {
    let known = if upper { i + R..n } else { 0..i };
    let lines: [&[E]; R] = std::array::from_fn(|r| &rows[(i + r) * n..][known.clone()]);
    let mut sums: [E; R] = std::array::from_fn(|r| x[i + r]);
    let num_known = known.len();
    for step in 0..num_known {
        let k = if upper { num_known - 1 - step } else { step };
        let of = x[known.start + k];
        for (sum, line) in sums.iter_mut().zip(&lines) {
            *sum = minus::<E, FUSED>(*sum, line[k], of);
        }
    }
    for step in 0..R {
        let r = if upper { R - 1 - step } else { step };
        let line = &rows[(i + r) * n + i..][..R];
        if !unit_diagonal {
            sums[r] = sums[r].div(line[r]);
        }
        let others = if upper { 0..r } else { r + 1..R };
        for other in others {
            sums[other] = minus::<E, FUSED>(sums[other], rows[(i + other) * n + i + r], sums[r]);
        }
    }
    x[i..i + R].copy_from_slice(&sums);
}

/// Solves the system of a triangle that is not transposed in place, for one right-hand side.
///
/// The steps are loops, not closures of iterators: such a closure is not always inlined, and is then compiled for the simplest
/// level, where each fused multiply-add is a call.
#[inline(always)]
fn one_column<E: Number, const FUSED: bool>(n: usize, kind: (bool, bool), rows: &[E], x: &mut [E]) {
    let (rest, blocks) = (n % ROWS, n / ROWS);
    // The two kinds are compiled apart, so that the rows of a block have constant places and stay in registers.
    if kind.0 {
        for step in 0..blocks {
            block::<E, FUSED, ROWS>(n, n - (step + 1) * ROWS, rows, x, kind);
        }
        for step in 0..rest {
            block::<E, FUSED, 1>(n, rest - 1 - step, rows, x, kind);
        }
    } else {
        for step in 0..blocks {
            block::<E, FUSED, ROWS>(n, step * ROWS, rows, x, kind);
        }
        for i in n - rest..n {
            block::<E, FUSED, 1>(n, i, rows, x, kind);
        }
    }
}

/// Rows `to` of x lose their multiples, by the entries of a line, of row k.
#[inline(always)]
fn subtract_from<E: Number, const FUSED: bool>(
    x: &mut [E],
    m: usize,
    (to, k): (std::ops::Range<usize>, usize),
    line: &[E],
) {
    if m == 1 {
        let of = x[k];
        for (x, &factor) in x[to.clone()].iter_mut().zip(&line[to]) {
            *x = minus::<E, FUSED>(*x, factor, of);
        }
    } else {
        for i in to {
            subtract::<E, FUSED>(x, m, (i, k), line[i]);
        }
    }
}
