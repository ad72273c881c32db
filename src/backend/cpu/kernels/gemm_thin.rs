//! Matrix products with at most 4 columns, over one block of `k`: lanes run over rows of C.
//!
//! Such a product is dominated by reading A once. If each column of A is contiguous, A is read in place;
//! otherwise a chunk of rows is first transposed to a scratch buffer on the stack. Dot products with lanes
//! over `k` would avoid the transpose, but would fold the lanes once per element. Their order of summation
//! would also differ from that of the tiles, so an element would depend on `n` and on strides.

use std::mem::MaybeUninit;

use super::gemm::{Gemm, K_BLOCK};
use super::transpose::{Transpose, Word};
use crate::simd::Level;
use crate::simd::dispatch::{Task, enter};
use crate::simd::lanes::{Float, Lanes, Simd};
use crate::simd::math::Math;

/// The maximum number of columns of a thin product.
pub(super) const MAX_COLS: usize = 4;

/// Vectors of rows per chunk.
const CHUNK: usize = 4;

/// A block of a thin product.
pub(super) struct Thin<T> {
    pub shape: Gemm,
    pub a: *const T,
    pub b: *const T,
    pub c: *mut T,
}

/// Runs a thin product.
///
/// # Safety
/// As for `gemm_f32`.
///
/// # Panics
/// If the product has no column or more than [`MAX_COLS`], or more than [`K_BLOCK`] terms.
pub(super) unsafe fn run<T: Math<Word: Word>>(level: Level, thin: Thin<T>) {
    let Gemm { n, k, .. } = thin.shape;
    assert!((1..=MAX_COLS).contains(&n) && k <= K_BLOCK, "invariant: a thin product has n = {n}, k = {k}");
    // SAFETY: the task stays below the rows, columns and terms of its shape.
    unsafe { enter(level, thin) }
}

/// `CHUNK` vectors of rows by `K_BLOCK` columns; a vector has at most 64 bytes.
#[repr(align(64))]
struct Scratch([MaybeUninit<u8>; K_BLOCK * CHUNK * 64]);

/// The sums of a block, one column after another: at most 8 vectors.
#[repr(align(64))]
struct Transposed([MaybeUninit<u8>; 8 * 64]);

impl<T: Math<Word: Word>> Task for Thin<T> {
    #[allow(clippy::large_stack_arrays, reason = "the scratch of a chunk; kernels do not allocate")]
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Gemm { m, rsa, csa, .. } = self.shape;
        let chunk = CHUNK * T::Of::<S>::LEN;
        let mut scratch = Scratch([const { MaybeUninit::uninit() }; _]);
        let copied = scratch.0.as_mut_ptr().cast::<T>();
        let mut i = 0;
        while i < m {
            // SAFETY: the scratch holds `chunk` rows by `K_BLOCK` columns; if `rsa` is 1, each column of A is
            // contiguous.
            unsafe {
                let (rows, columns, ld) = match rsa {
                    1 => (m, self.a, csa),
                    _ => ((m - i).min(chunk), copied.cast_const(), chunk),
                };
                if rsa != 1 {
                    self.gather::<S>(i, rows, copied, chunk);
                }
                self.rows::<S>(i, rows, columns, ld);
                i += rows;
            }
        }
    }
}

/// Writes or adds `rows` rows of `N` columns to C, from columns that are `ld` apart. One compiled copy serves
/// all levels.
#[inline(never)]
unsafe fn put<T: Math, const N: usize>(
    columns: *const T,
    ld: usize,
    rows: usize,
    c: *mut T,
    ldc: usize,
    add: bool,
) {
    for r in 0..rows {
        for j in 0..N {
            // SAFETY: `block` has stored `N` columns of at least `rows` elements, and C has these rows and `N`
            // columns.
            unsafe {
                let (at, x) = (c.add(r * ldc + j), columns.add(j * ld + r).read());
                at.write_unaligned(if add { at.read_unaligned().plus(x) } else { x });
            }
        }
    }
}

impl<T: Math<Word: Word>> Thin<T> {
    /// Writes rows `i..i + rows` of A to `columns`, one column after another, `ld` apart.
    #[inline(always)]
    unsafe fn gather<S: Simd>(&self, i: usize, rows: usize, columns: *mut T, ld: usize) {
        let Gemm { k, rsa, csa, .. } = self.shape;
        // SAFETY: rows `i..i + rows` lie within A. The scratch has `ld` rows and `K_BLOCK` columns, and `run` has
        // asserted that `k` is at most `K_BLOCK`.
        unsafe {
            let a = self.a.add(i * rsa);
            if csa == 1 {
                let (src, dst) = (a.cast(), columns.cast());
                Transpose::<T::Word> { rows, cols: k, src, lds: rsa, dst, ldd: ld }.run::<S>();
            } else {
                for p in 0..k {
                    for r in 0..rows {
                        *columns.add(p * ld + r) = a.add(r * rsa + p * csa).read_unaligned();
                    }
                }
            }
        }
    }

    /// Computes rows `i..i + rows` of C from contiguous columns of A, `ld` apart.
    #[inline(always)]
    unsafe fn rows<S: Simd>(&self, i: usize, rows: usize, columns: *const T, ld: usize) {
        // SAFETY: `run` has asserted that `n` is 1 to 4, so `columns` is chosen for all columns of B and C.
        unsafe {
            match self.shape.n {
                1 => self.columns::<S, 1, 4>(i, rows, columns, ld),
                2 => self.columns::<S, 2, 4>(i, rows, columns, ld),
                3 => self.columns::<S, 3, 2>(i, rows, columns, ld),
                _ => self.columns::<S, 4, 2>(i, rows, columns, ld),
            }
        }
    }

    /// Like `rows`, for `N` columns of B and `Q` vectors of rows at once.
    #[inline(always)]
    unsafe fn columns<S: Simd, const N: usize, const Q: usize>(
        &self,
        i: usize,
        rows: usize,
        columns: *const T,
        ld: usize,
    ) {
        let len = T::Of::<S>::LEN;
        let mut r = 0;
        // SAFETY: rows stay below `rows`.
        unsafe {
            while r + Q * len <= rows {
                self.block::<T::Of<S>, N, Q>(i + r, Q * len, columns.add(r), ld);
                r += Q * len;
            }
            while r < rows {
                let count = (rows - r).min(len);
                self.block::<T::Of<S>, N, 1>(i + r, count, columns.add(r), ld);
                r += count;
            }
        }
    }

    /// Computes `rows` rows of C from row `i` on: `Q` whole vectors, or the first `rows` lanes of one.
    #[inline(always)]
    unsafe fn block<V: Float<Elem = T>, const N: usize, const Q: usize>(
        &self,
        i: usize,
        rows: usize,
        columns: *const T,
        ld: usize,
    ) {
        let Gemm { k, ldb, ldc, accumulate, .. } = self.shape;
        // SAFETY: `columns` passes rows below its own `rows`, and `N` is the number of columns of B and C. A part
        // of a vector is loaded only for the rows that remain.
        unsafe {
            let zero = V::splat(T::ZERO);
            let mut acc = [[zero; Q]; N];
            for p in 0..k {
                let mut x = [zero; Q];
                for q in 0..Q {
                    let at = columns.add(p * ld + q * V::LEN);
                    x[q] = if rows < V::LEN { V::load_part(at, rows) } else { V::load(at) };
                }
                for j in 0..N {
                    let b = V::splat(self.b.add(p * ldb + j).read_unaligned());
                    for q in 0..Q {
                        acc[j][q] = x[q].mul_add(b, acc[j][q]);
                    }
                }
            }
            let mut transposed = Transposed([const { MaybeUninit::uninit() }; _]);
            let out = transposed.0.as_mut_ptr().cast::<T>();
            for j in 0..N {
                for q in 0..Q {
                    acc[j][q].store(out.add((j * Q + q) * V::LEN));
                }
            }
            put::<T, N>(out, Q * V::LEN, rows, self.c.add(i * ldc), ldc, accumulate);
        }
    }
}
