//! Cholesky factorizations: small matrices as a whole, larger ones by blocks of rows.
//!
//! The computation is that of U with A = U^T U, row by row, because the rows of a matrix are contiguous; L is its
//! transpose. A block of rows of a large matrix first loses the products of the rows above it, as one matrix product. A
//! strip of its columns then fits into local memory. The order of the operations on an element depends only on n.

use super::Gemm;
use super::scalar::{Factorization, Number, Scalar, add_multiple, factor_each, minus, multiply};
use crate::simd::Level;

/// The largest order of a matrix that is factored as a whole.
const WHOLE: usize = 16;

/// Rows of a block, and columns of a strip.
const BLOCK: usize = 32;

/// Rows and columns of a part of a transposed matrix that fits into the cache, however far apart its rows are.
const TILE: usize = 8;

/// The numbers of work per matrix.
pub fn cholesky_work(n: usize) -> usize {
    if n <= WHOLE { n * n } else { 0 }
}

/// Writes the lower Cholesky factors of the symmetric parts of the n x n matrices `a` to `out`, with zeros above the
/// diagonal. If a matrix has none, its lower triangle becomes NaN. `work` has the [room](super::room) for
/// [`cholesky_work`].
pub fn cholesky<T: Scalar>(level: Level, n: usize, a: &[T], out: &mut [T], work: &mut [T]) {
    factor_each(level, &Cholesky { n }, a, out, work);
}

/// Entry (i, j) of minus the symmetric part of a matrix.
#[inline(always)]
fn negated<E: Number>(a: &[E], n: usize, (i, j): (usize, usize)) -> E {
    let half = E::of(E::Elem::near(0.5));
    a[i * n + j].mul(half).add(a[j * n + i].mul(half)).neg()
}

/// Factors the first rows of a matrix whose upper triangle holds minus the matrix, and is U afterwards. The inverses of the
/// diagonal go to `inverse`. The result tells whether all pivots are positive and finite.
#[inline(always)]
fn factor<E: Number, const FUSED: bool>(
    (n, stride): (usize, usize),
    rows: &mut [E],
    inverse: &mut [E],
) -> E::Mask {
    let mut is_definite = E::zero().less(E::one());
    for (i, inverse) in inverse.iter_mut().enumerate().take(n) {
        let (above, row) = rows.split_at_mut(i * stride);
        let row = &mut row[i..n];
        multiply(row, E::one().neg());
        for above in above.chunks_exact(stride) {
            add_multiple::<E, FUSED>(row, above[i].neg(), &above[i..n]);
        }
        let pivot = row[0];
        let is_positive = E::both(E::zero().less(pivot), pivot.less(E::of(E::Elem::INFINITY)));
        is_definite = E::both(is_definite, is_positive);
        let root = pivot.sqrt();
        *inverse = E::one().div(root);
        multiply(row, *inverse);
        row[0] = root;
    }
    is_definite
}

/// Cholesky factorizations of matrices of order n.
struct Cholesky {
    n: usize,
}

impl<T: Scalar> Factorization<T> for Cholesky {
    fn sizes(&self) -> [usize; 3] {
        [self.n * self.n, self.n * self.n, cholesky_work(self.n)]
    }

    #[inline(always)]
    fn group<E: Number<Elem = T>, const FUSED: bool>(
        &self,
        level: Level,
        a: &[T],
        out: &mut [T],
        work: &mut [E],
    ) {
        let n = self.n;
        let rows = &mut work[..n * n];
        E::load(level, a, n * n, rows);
        for i in 0..n {
            for j in i..n {
                rows[i * n + j] = negated(rows, n, (i, j));
            }
        }
        let is_definite = factor::<E, FUSED>((n, n), rows, &mut [E::zero(); WHOLE]);
        for i in 0..n {
            for j in 0..=i {
                let x = E::choose(is_definite, rows[j * n + i], E::of(T::NAN));
                rows[j * n + i] = E::zero();
                rows[i * n + j] = x;
            }
        }
        E::store(level, rows, out);
    }

    #[inline(always)]
    fn alone<const FUSED: bool>(&self, level: Level, a: &[T], out: &mut [T], work: &mut [T]) {
        let n = self.n;
        if n <= WHOLE {
            return self.group::<T, FUSED>(level, a, out, work);
        }
        let is_definite = by_blocks::<T, FUSED>(level, n, a, out);
        for (i, row) in out.chunks_exact_mut(n).enumerate() {
            row[i + 1..].fill(T::default());
            if !is_definite {
                row[..=i].fill(T::NAN);
            }
        }
    }
}

/// Writes L to the lower triangle, and returns whether the matrix is positive definite. The upper triangle holds minus
/// the matrix, and then U.
#[inline(always)]
fn by_blocks<T: Scalar, const FUSED: bool>(level: Level, n: usize, a: &[T], out: &mut [T]) -> bool {
    for (top, left) in
        (0..n).step_by(TILE).flat_map(|top| (top..n).step_by(TILE).map(move |left| (top, left)))
    {
        for i in top..n.min(top + TILE) {
            for j in left.max(i)..n.min(left + TILE) {
                out[i * n + j] = negated(a, n, (i, j));
            }
        }
    }
    let mut is_definite = true;
    for j in (0..n).step_by(BLOCK) {
        let rows = BLOCK.min(n - j);
        if j > 0 {
            subtract_known(level, n, (j, rows), out);
        }
        let mut block =
            Block { factors: [[T::default(); BLOCK]; BLOCK], inverse: [T::default(); BLOCK], rows };
        copy(n, (j, j), (rows, rows), out, &mut block.factors);
        let (factors, inverse) = (block.factors.as_flattened_mut(), &mut block.inverse);
        is_definite &= factor::<T, FUSED>((rows, BLOCK), factors, inverse);
        store(n, (j, j), (rows, rows), &block.factors, out);
        for at in (j + rows..n).step_by(BLOCK) {
            let columns = BLOCK.min(n - at);
            let mut strip = [[T::default(); BLOCK]; BLOCK];
            copy(n, (j, at), (rows, columns), out, &mut strip);
            block.solve::<FUSED>(&mut strip);
            store(n, (j, at), (rows, columns), &strip, out);
        }
    }
    is_definite
}

/// Adds L U of the rows above a block to its rows, which hold minus the matrix.
fn subtract_known<T: Scalar>(level: Level, n: usize, (j, rows): (usize, usize), out: &mut [T]) {
    let sides =
        Gemm { m: rows, n: n - j, k: j, rsa: n, csa: 1, ldb: n, ldc: n, accumulate: true, packed: false };
    assert!(out.len() == n * n && j + rows <= n, "invariant: the block lies in the matrix");
    let at = out.as_mut_ptr();
    // SAFETY: by the assertion, the parts lie in `out`: rows `j..j + rows` of columns `0..j`, rows `0..j` of columns `j..n`,
    // and rows `j..j + rows` of columns `j..n`, which is disjoint from both.
    unsafe { T::gemm(level, &sides, at.add(j * n), at.add(j), at.add(j * n + j)) }
}

type Strip<T> = [[T; BLOCK]; BLOCK];

/// Copies a part of the matrix, with its first row and column `at`, to a strip.
#[inline(always)]
fn copy<T: Scalar>(
    n: usize,
    at: (usize, usize),
    (rows, columns): (usize, usize),
    from: &[T],
    to: &mut Strip<T>,
) {
    for (r, line) in to.iter_mut().enumerate().take(rows) {
        line[..columns].copy_from_slice(&from[(at.0 + r) * n + at.1..][..columns]);
    }
}

/// Copies a strip to its part of U, and its transpose to L.
#[inline(always)]
fn store<T: Scalar>(
    n: usize,
    at: (usize, usize),
    (rows, columns): (usize, usize),
    from: &Strip<T>,
    to: &mut [T],
) {
    for (r, line) in from.iter().enumerate().take(rows) {
        to[(at.0 + r) * n + at.1..][..columns].copy_from_slice(&line[..columns]);
    }
    for c in 0..columns {
        let known = if at.0 == at.1 { c + 1 } else { rows };
        let row = &mut to[(at.1 + c) * n + at.0..][..known];
        row.iter_mut().zip(from).for_each(|(x, line)| *x = line[c]);
    }
}

/// The block on the diagonal.
struct Block<T> {
    /// The rows of U.
    factors: Strip<T>,
    /// One over the diagonal.
    inverse: [T; BLOCK],
    rows: usize,
}

impl<T: Scalar> Block<T> {
    /// The rows of U in a strip behind the block. The strip holds minus the matrix.
    #[inline(always)]
    fn solve<const FUSED: bool>(&self, strip: &mut Strip<T>) {
        for i in 0..self.rows {
            let mut line = strip[i];
            line.iter_mut().for_each(|x| *x = x.neg());
            for (above, factors) in strip.iter().zip(&self.factors).take(i) {
                for l in 0..BLOCK {
                    line[l] = minus::<T, FUSED>(line[l], factors[i], above[l]);
                }
            }
            line.iter_mut().for_each(|x| *x = x.mul(self.inverse[i]));
            strip[i] = line;
        }
    }
}
