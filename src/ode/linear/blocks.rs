//! Loops of a dense LU factorization over single numbers, in blocks of four.
//!
//! Matrices of stiff problems are small, so a loop over the rest of a column takes most of its time to begin and to end,
//! and a substitution waits for chains of dependent operations. Here, all blocks have four rows, and the block that the
//! next operation waits for stays in registers. Each number goes through the same operations in the same order as in the
//! loops over whole columns in `lu.rs`, so the results agree bit for bit.

use crate::ode::{Clock, Real};

/// The number of rows of a block, and of columns that a substitution takes at once.
pub const BLOCK: usize = 4;

type Block<R> = [R; BLOCK];

/// A column: its blocks, and the rows after them.
type Blocks<'a, R> = (&'a [Block<R>], &'a [R]);

/// Column j of an n x n matrix.
#[inline(always)]
fn column<R>(matrix: &[R], n: usize, j: usize) -> Blocks<'_, R> {
    matrix[j * n..][..n].as_chunks()
}

/// `b = ((b - columns_0 x_0) - columns_1 x_1) - ...`
#[inline(always)]
fn subtract<R: Real, const N: usize>(b: &mut Block<R>, columns: [&Block<R>; N], x: [R; N]) {
    for c in 0..N {
        for i in 0..BLOCK {
            b[i] = b[i] - columns[c][i] * x[c];
        }
    }
}

/// `b = b - factors x`, in blocks if `by_blocks`.
#[inline(always)]
pub fn subtract_rows<R: Real>(b: &mut [R], factors: &[R], x: R, by_blocks: bool) {
    let factors = &factors[..b.len()];
    let mut done = 0;
    if by_blocks {
        let (blocks, _) = b.as_chunks_mut::<BLOCK>();
        let (of_blocks, _) = factors.as_chunks::<BLOCK>();
        for i in 0..blocks.len() {
            let mut rows = blocks[i];
            subtract(&mut rows, [&of_blocks[i]], [x]);
            blocks[i] = rows;
        }
        done = BLOCK * blocks.len();
    }
    for i in done..b.len() {
        b[i] = b[i] - factors[i] * x;
    }
}

/// Replaces a dense matrix by its factors, with whole rows swapped and the inverses of the pivots on the diagonal. Writes
/// the pivot row of each of the n columns, n being the length of `pivots`.
///
/// Returns the first column in which all possible pivots are 0.
#[inline(always)]
pub fn factor<R: Real>(matrix: &mut [R], pivots: &mut [usize]) -> Option<usize> {
    let n = pivots.len();
    let mut singular = None;
    for k in 0..n {
        let row = k + largest(&matrix[k * n + k..][..n - k]);
        pivots[k] = row;
        if row != k {
            for j in 0..n {
                matrix.swap(j * n + k, j * n + row);
            }
        }
        let pivot = matrix[k * n + k];
        if singular.is_none() && pivot.value() == 0.0 {
            singular = Some(k);
        }
        let inverse = inverse_of(pivot);
        matrix[k * n + k] = inverse;
        let below = &mut matrix[k * n + k + 1..][..n - k - 1];
        for i in 0..below.len() {
            below[i] = below[i] * inverse;
        }
        eliminate_column(matrix, n, k);
    }
    singular
}

/// The row with the largest entry by magnitude; the first one in a tie.
#[inline(always)]
pub fn largest<R: Real>(column: &[R]) -> usize {
    let (mut largest, mut size) = (0, column[0]);
    for i in 1..column.len() {
        let is_larger = R::Clock::known(&column[i].exceeds(size)) == Some(true);
        (largest, size) = if is_larger { (i, column[i]) } else { (largest, size) };
    }
    largest
}

/// `1 / pivot`. If the pivot is infinite, it is NaN. As 0 it would make the solution finite, and a step be accepted.
#[inline(always)]
pub fn inverse_of<R: Real>(pivot: R) -> R {
    (R::constant(1.0) + pivot.scale(0.0)) / pivot
}

/// `b = L^-1 b` for the unit lower triangle of the n x n `factors`, n being the length of `b`.
#[inline(always)]
pub fn solve_lower<R: Real>(factors: &[R], b: &mut [R]) {
    let n = b.len();
    let (blocks, rest) = b.as_chunks_mut::<BLOCK>();
    let mut next = blocks.first().copied().unwrap_or([R::constant(0.0); BLOCK]);
    for k in 0..blocks.len() {
        let at = |j: usize| column(factors, n, BLOCK * k + j);
        let columns = [at(0), at(1), at(2), at(3)];
        let mut x = next;
        for j in 0..BLOCK {
            for i in j + 1..BLOCK {
                x[i] = x[i] - columns[j].0[k][i] * x[j];
            }
        }
        blocks[k] = x;
        let rows = |i: usize| [&columns[0].0[i], &columns[1].0[i], &columns[2].0[i], &columns[3].0[i]];
        if k + 1 < blocks.len() {
            next = blocks[k + 1];
            subtract(&mut next, rows(k + 1), x);
            for i in k + 2..blocks.len() {
                subtract(&mut blocks[i], rows(i), x);
            }
        }
        for i in 0..rest.len() {
            for c in 0..BLOCK {
                rest[i] = rest[i] - columns[c].1[i] * x[c];
            }
        }
    }
    for j in 0..rest.len() {
        let factors = column(factors, n, n - rest.len() + j).1;
        for i in j + 1..rest.len() {
            rest[i] = rest[i] - factors[i] * rest[j];
        }
    }
}

/// `b = U^-1 b` for the upper triangle of the n x n `factors`, with the inverses of its diagonal.
#[inline(always)]
pub fn solve_upper<R: Real>(factors: &[R], b: &mut [R]) {
    let n = b.len();
    let (blocks, rest) = b.as_chunks_mut::<BLOCK>();
    for j in (0..rest.len()).rev() {
        let (above, factors) = column(factors, n, n - rest.len() + j);
        rest[j] = factors[j] * rest[j];
        for i in 0..j {
            rest[i] = rest[i] - factors[i] * rest[j];
        }
        for i in 0..blocks.len() {
            subtract(&mut blocks[i], [&above[i]], [rest[j]]);
        }
    }
    let mut next = blocks.last().copied().unwrap_or([R::constant(0.0); BLOCK]);
    for k in (0..blocks.len()).rev() {
        let at = |j: usize| column(factors, n, BLOCK * k + j).0;
        let columns = [at(3), at(2), at(1), at(0)];
        let [mut x0, mut x1, mut x2, mut x3] = next;
        x3 = columns[0][k][3] * x3;
        x2 = columns[1][k][2] * (x2 - columns[0][k][2] * x3);
        x1 = columns[2][k][1] * ((x1 - columns[0][k][1] * x3) - columns[1][k][1] * x2);
        x0 = ((x0 - columns[0][k][0] * x3) - columns[1][k][0] * x2) - columns[2][k][0] * x1;
        x0 = columns[3][k][0] * x0;
        blocks[k] = [x0, x1, x2, x3];
        let rows = |i: usize| [&columns[0][i], &columns[1][i], &columns[2][i], &columns[3][i]];
        if k > 0 {
            next = blocks[k - 1];
            subtract(&mut next, rows(k - 1), [x3, x2, x1, x0]);
            for i in 0..k - 1 {
                subtract(&mut blocks[i], rows(i), [x3, x2, x1, x0]);
            }
        }
    }
}

/// `column_j = column_j - column_k x` in the rows from k + 1 on, for all columns j > k, where x is row k of column j.
///
/// Blocks end with the last row. Rows up to k in the first block keep their values.
#[inline(always)]
fn eliminate_column<R: Real>(matrix: &mut [R], n: usize, k: usize) {
    let (before, after) = matrix.split_at_mut((k + 1) * n);
    let factors = &before[k * n..];
    let num_blocks = (n - k - 1).div_ceil(BLOCK);
    let (first, num_blocks) = match n.checked_sub(num_blocks * BLOCK) {
        Some(first) => (first, num_blocks),
        None => (n % BLOCK, num_blocks - 1),
    };
    let is_below: Block<bool> = [first > k, first + 1 > k, first + 2 > k, first + 3 > k];
    let (of_blocks, _) = factors[first..].as_chunks::<BLOCK>();
    // A selected result would be stored under a mask, which takes some processors longer than all the rest. A number minus
    // 0 * 0 is this number.
    let zero = R::constant(0.0);
    let mut head = of_blocks.first().copied().unwrap_or([zero; BLOCK]);
    for i in 0..BLOCK {
        head[i] = if is_below[i] { head[i] } else { zero };
    }
    for j in 0..n - k - 1 {
        let column = &mut after[j * n..][..n];
        let x = column[k];
        // A loop of unknown length would be vectorized, which costs more than three rows.
        for i in 1..BLOCK {
            if k + i < first {
                column[k + i] = column[k + i] - factors[k + i] * x;
            }
        }
        let (blocks, _) = column[first..].as_chunks_mut::<BLOCK>();
        if num_blocks == 0 {
            continue;
        }
        let mut rows = blocks[0];
        for i in 0..BLOCK {
            rows[i] = rows[i] - head[i] * if is_below[i] { x } else { zero };
        }
        blocks[0] = rows;
        for i in 1..num_blocks {
            let mut rows = blocks[i];
            subtract(&mut rows, [&of_blocks[i]], [x]);
            blocks[i] = rows;
        }
    }
}
