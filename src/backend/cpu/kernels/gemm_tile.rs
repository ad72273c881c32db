//! The register tiles of a matrix product: `R` rows by `Q` vectors of columns, over one block of `k`.
//!
//! Tile sizes follow from the registers of a level: 6 x 4 vectors of AVX-512 leave room for four of B and one
//! of A. Narrower tiles have more rows. On AVX2 and AVX-512, the tallest tiles therefore run at least 8
//! chains of multiply-adds at once (latency 4, two per cycle). A is read in place with one broadcast per
//! element, so its strides cost nothing. B and C are read and written along their rows.

use std::marker::PhantomData;

use crate::simd::Level;
use crate::simd::dispatch::entry_points;
use crate::simd::lanes::{Float, Lanes, Simd};
use crate::simd::math::Math;
use crate::simd::portable::Portable;

/// A column panel over `tiles` stacked tiles: `C[tiles * R, cols] (+)= A[.., k] B[k, cols]`.
#[derive(Clone, Copy)]
pub(super) struct Panel<T> {
    pub tiles: usize,
    pub k: usize,
    pub a: *const T,
    pub rsa: usize,
    pub csa: usize,
    pub b: *const T,
    pub ldb: usize,
    pub c: *mut T,
    pub ldc: usize,
    /// Number of columns in the last vector.
    pub rest: usize,
    /// Whether to add to C.
    pub add: bool,
}

/// Runs a panel.
///
/// # Safety
/// The addresses of the panel are valid for its shape and C is disjoint; the level is available.
pub(super) type TileFn<T> = unsafe fn(&Panel<T>);

trait TileKernel<T> {
    /// # Safety
    /// As for [`TileFn`].
    unsafe fn run<S: Simd>(panel: &Panel<T>);
}

entry_points!(mod entry, TileKernel<T: Math>, (panel: &Panel<T>));

/// Elements of a vector at a level.
pub(super) fn lanes<T: Math>(level: Level) -> usize {
    match level {
        Level::Portable => T::Of::<Portable>::LEN,
        Level::Avx2 => 32 / size_of::<T>(),
        Level::Avx512 => 64 / size_of::<T>(),
    }
}

/// The number of vectors of the next panel if `left` vectors remain. On AVX-512, 5 vectors are split into 3 +
/// 2, not 4 + 1, because a tile of one vector is bound by the broadcasts of A.
pub(super) fn panel_vectors(level: Level, left: usize) -> usize {
    match level {
        Level::Portable | Level::Avx2 => left.min(2),
        Level::Avx512 if left == 5 => 3,
        Level::Avx512 => left.min(4),
    }
}

/// The tiles of a panel by their rows, tallest first; a smaller tile computes the rows that remain. `whole`:
/// whether the last vector is full.
///
/// Tiles that a level does not use are not compiled for it.
pub(super) fn tiles<T: Math>(level: Level, vectors: usize, whole: bool) -> &'static [(usize, TileFn<T>)] {
    if whole { shapes::<T, true>(level, vectors) } else { shapes::<T, false>(level, vectors) }
}

fn shapes<T: Math, const WHOLE: bool>(level: Level, vectors: usize) -> &'static [(usize, TileFn<T>)] {
    macro_rules! shapes {
        ($level:ident, $($rows:literal)* by $vectors:literal) => {
            const { &[$(($rows, entry::$level::<T, Tile<T, $rows, $vectors, WHOLE>> as TileFn<T>)),*] }
        };
    }
    match (level, vectors) {
        (Level::Portable, 1) => shapes!(portable, 4 2 1 by 1),
        (Level::Portable, 2) => shapes!(portable, 4 2 1 by 2),
        #[cfg(target_arch = "x86_64")]
        (Level::Avx2, 1) => shapes!(avx2, 12 4 2 1 by 1),
        #[cfg(target_arch = "x86_64")]
        (Level::Avx2, 2) => shapes!(avx2, 6 4 2 1 by 2),
        #[cfg(target_arch = "x86_64")]
        (Level::Avx512, 1) => shapes!(avx512, 12 4 2 1 by 1),
        #[cfg(target_arch = "x86_64")]
        (Level::Avx512, 2) => shapes!(avx512, 12 4 2 1 by 2),
        #[cfg(target_arch = "x86_64")]
        (Level::Avx512, 3) => shapes!(avx512, 8 4 2 1 by 3),
        #[cfg(target_arch = "x86_64")]
        (Level::Avx512, 4) => shapes!(avx512, 6 4 2 1 by 4),
        _ => panic!("invariant: no tiles of {vectors} vectors at {level:?}"),
    }
}

/// For levels where one row of a panel has too few chains: the number of packed panels that a product of one row takes
/// abreast, and the function for them.
pub(super) fn abreast<T: Math>(level: Level) -> Option<(usize, TileFn<T>)> {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => Some((4, entry::avx2::<T, Abreast<T, 4, 2>>)),
        _ => None,
    }
}

/// One row times `P` whole packed panels of `Q` vectors. Each element is summed as in a [`Tile`].
#[cfg(target_arch = "x86_64")]
struct Abreast<T, const P: usize, const Q: usize>(PhantomData<T>);

#[cfg(target_arch = "x86_64")]
impl<T: Math, const P: usize, const Q: usize> TileKernel<T> for Abreast<T, P, Q> {
    #[inline(always)]
    unsafe fn run<S: Simd>(panel: &Panel<T>) {
        let &Panel { k, csa, ldb, c, add, .. } = panel;
        let (mut a, mut b) = (panel.a, panel.b);
        // SAFETY: terms stay below `k`, and `row` passes `P` whole panels of B and as many columns of C.
        unsafe {
            let mut acc = [[T::Of::<S>::splat(T::ZERO); Q]; P];
            for _ in 0..k {
                let x = T::Of::<S>::splat(a.read_unaligned());
                for p in 0..P {
                    let row = b.wrapping_add(p * k * ldb);
                    for q in 0..Q {
                        acc[p][q] = x.mul_add(T::Of::<S>::load(row.add(q * T::Of::<S>::LEN)), acc[p][q]);
                    }
                }
                (a, b) = (a.wrapping_add(csa), b.wrapping_add(ldb));
            }
            for p in 0..P {
                for q in 0..Q {
                    let at = c.add((p * Q + q) * T::Of::<S>::LEN);
                    let sum = if add { T::Of::<S>::load(at).add(acc[p][q]) } else { acc[p][q] };
                    sum.store(at);
                }
            }
        }
    }
}

struct Tile<T, const R: usize, const Q: usize, const WHOLE: bool>(PhantomData<T>);

impl<T: Math, const R: usize, const Q: usize, const WHOLE: bool> Tile<T, R, Q, WHOLE> {
    /// The vector `q` of a row of B or C.
    #[inline(always)]
    unsafe fn load<V: Float<Elem = T>>(row: *const T, q: usize, rest: usize) -> V {
        // SAFETY: a panel has `Q` vectors of columns, and the last one has `rest` columns.
        unsafe {
            let p = row.add(q * V::LEN);
            if WHOLE || q + 1 < Q { V::load(p) } else { V::load_part(p, rest) }
        }
    }

    /// One tile. Rows of A are addressed relative to every third row, so that few pointers advance: x86
    /// addresses have a base and an index, and 12 advancing pointers would not fit into the integer registers.
    #[inline(always)]
    unsafe fn tile<V: Float<Elem = T>>(panel: &Panel<T>, a: *const T, c: *mut T) {
        let &Panel { k, rsa, csa, b, ldb, ldc, rest, add, .. } = panel;
        // SAFETY: rows stay below `R`, terms below `k`, columns within the panel.
        unsafe {
            let zero = V::splat(T::ZERO);
            let mut acc = [[zero; Q]; R];
            let mut rows = [a, a.wrapping_add(3 * rsa), a.wrapping_add(6 * rsa), a.wrapping_add(9 * rsa)];
            let mut b_row = b;
            for _ in 0..k {
                let mut bv = [zero; Q];
                for q in 0..Q {
                    bv[q] = Self::load::<V>(b_row, q, rest);
                }
                for r in 0..R {
                    let x = V::splat(rows[r / 3].add((r % 3) * rsa).read_unaligned());
                    for q in 0..Q {
                        acc[r][q] = x.mul_add(bv[q], acc[r][q]);
                    }
                }
                for p in &mut rows {
                    *p = p.wrapping_add(csa);
                }
                b_row = b_row.wrapping_add(ldb);
            }
            for r in 0..R {
                let row = c.add(r * ldc);
                for q in 0..Q {
                    let mut value = acc[r][q];
                    if add {
                        value = Self::load::<V>(row, q, rest).add(value);
                    }
                    let p = row.add(q * V::LEN);
                    if WHOLE || q + 1 < Q { value.store(p) } else { value.store_part(p, rest) }
                }
            }
        }
    }
}

impl<T: Math, const R: usize, const Q: usize, const WHOLE: bool> TileKernel<T> for Tile<T, R, Q, WHOLE> {
    #[inline(always)]
    unsafe fn run<S: Simd>(panel: &Panel<T>) {
        for i in 0..panel.tiles {
            // SAFETY: `rows_of_tiles` has divided the rows that are left by `R`, so the panel has `tiles * R` rows.
            unsafe {
                let (a, c) = (panel.a.add(i * R * panel.rsa), panel.c.add(i * R * panel.ldc));
                Self::tile::<T::Of<S>>(panel, a, c);
            }
        }
    }
}
