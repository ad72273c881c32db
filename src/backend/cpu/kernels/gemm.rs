//! Matrix products `C (+)= A B` for one thread: the split into blocks and tiles.
//!
//! It knows the order of a sum: `k` ascends in blocks of [`K_BLOCK`], each block one chain of multiply-adds, the
//! blocks added one after another. That order is the same in every tile and in the thin kernels, so an element
//! does not depend on `m`, on `n`, on strides, or on where a tile lies. The register tiles are in `gemm_tile`,
//! products with at most 4 columns in `gemm_thin`.
//!
//! Why not the `gemm` or `matrixmultiply` crates: products of a network's layers are small and called millions
//! of times; measured at 64 x 64 x 64 a tile that reads both operands in place is 7 % faster than the best of
//! them and allocates nothing.

use std::mem::MaybeUninit;

use super::gemm_thin::{self, Thin};
use super::gemm_tile::{self, Panel};
use super::transpose::Word;
use crate::simd::Level;
use crate::simd::math::Math;

/// Terms of a sum that are added in one chain; a panel of B of this depth stays in the second-level cache.
pub(super) const K_BLOCK: usize = 256;

/// From how many rows on a panel of B whose rows are scattered is worth copying together.
const PACK_MIN_ROWS: usize = 24;

/// Bytes of the copied panel: `K_BLOCK` rows of four 64-byte vectors.
const PACK_BYTES: usize = K_BLOCK * 256;

/// The shape of `C[m, n] (+)= A[m, k] B[k, n]`; strides count elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gemm {
    /// Rows of A and C.
    pub m: usize,
    /// Columns of B and C.
    pub n: usize,
    /// Columns of A and rows of B.
    pub k: usize,
    /// From one row of A to the next.
    pub rsa: usize,
    /// From one column of A to the next.
    pub csa: usize,
    /// From one row of B to the next; its columns are adjacent.
    pub ldb: usize,
    /// From one row of C to the next; its columns are adjacent.
    pub ldc: usize,
    /// Whether the product is added to C or replaces it.
    pub accumulate: bool,
}

/// A product in f32.
///
/// # Numerics
/// An element is the sum of `fma` chains over 256 terms each, in ascending order; the same bits whatever `m`,
/// `n` and the strides.
///
/// # Safety
/// A and B are readable and C is writable at the addresses that `shape` describes, C is disjoint from both, and
/// `level` is available.
pub unsafe fn gemm_f32(level: Level, shape: &Gemm, a: *const f32, b: *const f32, c: *mut f32) {
    // SAFETY: the caller promises it.
    unsafe { gemm(level, shape, a, b, c) }
}

/// A product in f64; as [`gemm_f32`].
///
/// # Safety
/// As for [`gemm_f32`].
pub unsafe fn gemm_f64(level: Level, shape: &Gemm, a: *const f64, b: *const f64, c: *mut f64) {
    // SAFETY: the caller promises it.
    unsafe { gemm(level, shape, a, b, c) }
}

unsafe fn gemm<T: Math<Word: Word>>(level: Level, shape: &Gemm, a: *const T, b: *const T, c: *mut T) {
    let &Gemm { m, n, k, csa, ldb, ldc, accumulate, .. } = shape;
    // SAFETY: offsets stay within the matrices that the caller promises.
    unsafe {
        if k == 0 && !accumulate {
            for i in 0..m {
                for j in 0..n {
                    c.add(i * ldc + j).write_unaligned(T::ZERO);
                }
            }
        }
        for k0 in (0..k).step_by(K_BLOCK) {
            let block = Gemm { k: (k - k0).min(K_BLOCK), accumulate: accumulate || k0 > 0, ..*shape };
            let (a, b) = (a.add(k0 * csa), b.add(k0 * ldb));
            if n <= gemm_thin::MAX_COLS {
                gemm_thin::run(level, Thin { shape: block, a, b, c });
            } else {
                k_block(level, &block, a, b, c);
            }
        }
    }
}

/// One block of `k` for products wider than the thin ones: panels of columns, each over all rows.
unsafe fn k_block<T: Math>(level: Level, shape: &Gemm, a: *const T, b: *const T, c: *mut T) {
    let &Gemm { m, n, k, rsa, csa, ldb, ldc, accumulate } = shape;
    let lanes = gemm_tile::lanes::<T>(level);
    let mut scratch = Scratch([const { MaybeUninit::uninit() }; PACK_BYTES]);
    let mut j = 0;
    while j < n {
        let vectors = gemm_tile::panel_vectors(level, (n - j).div_ceil(lanes));
        let cols = (n - j).min(vectors * lanes);
        let rest = cols - (vectors - 1) * lanes;
        let scattered = size_of::<T>() * ldb >= 1024 && ldb > cols;
        // SAFETY: the panel lies within B and C; the copy holds `k <= K_BLOCK` rows of at most 256 bytes.
        unsafe {
            let (mut b, mut ldb) = (b.add(j), ldb);
            if scattered && m >= PACK_MIN_ROWS {
                let packed = scratch.0.as_mut_ptr().cast::<T>();
                for p in 0..k {
                    std::ptr::copy_nonoverlapping(b.add(p * ldb), packed.add(p * vectors * lanes), cols);
                }
                (b, ldb) = (packed.cast_const(), vectors * lanes);
            }
            let mut i = 0;
            for &rows in gemm_tile::tile_rows(level, vectors) {
                let tiles = (m - i) / rows;
                if tiles > 0 {
                    let (a, c) = (a.add(i * rsa), c.add(i * ldc + j));
                    let panel = Panel { tiles, k, a, rsa, csa, b, ldb, c, ldc, rest, add: accumulate };
                    gemm_tile::tile::<T>(level, vectors, rows, rest == lanes)(&panel);
                    i += tiles * rows;
                }
            }
        }
        j += cols;
    }
}

#[repr(align(64))]
struct Scratch([MaybeUninit<u8>; PACK_BYTES]);
