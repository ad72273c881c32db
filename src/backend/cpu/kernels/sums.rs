//! Sums of matrices over either axis.
//!
//! The order of a sum: sums over rows add one row after another. The sum of a row with up to 8 columns goes
//! from left to right; a longer row is summed like a strip (see `reduce`).

use std::marker::PhantomData;

use super::Elem;
use super::reduce::sum_lanes;
use super::transpose::{Transpose, Word};
use crate::simd::Level;
use crate::simd::dispatch::{Task, entry_points};
use crate::simd::lanes::{Float, Lanes, Simd};
use crate::simd::math::Math;

/// Adds `rows` rows of `cols` elements, `stride` elements apart, to `dst[0..cols]`.
///
/// # Safety
/// The rows are readable, `dst` is writable and disjoint from them; the level is available.
pub type SumRowsFn = unsafe fn(dst: *mut u8, a: *const u8, rows: usize, cols: usize, stride: usize);

/// Writes the sum of each of `rows` rows of `cols` elements, `stride` elements apart, to `dst[0..rows]`; adds
/// it if `accumulate`.
///
/// # Safety
/// As for [`SumRowsFn`], with `rows` elements at `dst`.
pub type SumColsFn =
    unsafe fn(dst: *mut u8, a: *const u8, rows: usize, cols: usize, stride: usize, accumulate: bool);

trait SumRows {
    /// # Safety
    /// As for [`SumRowsFn`].
    unsafe fn run<S: Simd>(dst: *mut u8, a: *const u8, rows: usize, cols: usize, stride: usize);
}

trait SumCols {
    /// # Safety
    /// As for [`SumColsFn`].
    unsafe fn run<S: Simd>(
        dst: *mut u8,
        a: *const u8,
        rows: usize,
        cols: usize,
        stride: usize,
        accumulate: bool,
    );
}

entry_points!(
    sum_rows_entry,
    SumRows,
    SumRowsFn,
    (dst: *mut u8, a: *const u8, rows: usize, cols: usize, stride: usize)
);
entry_points!(
    sum_cols_entry,
    SumCols,
    SumColsFn,
    (dst: *mut u8, a: *const u8, rows: usize, cols: usize, stride: usize, accumulate: bool)
);

/// `dst[c] += a[0, c] + a[1, c] + ...`, added one row after another.
pub fn sum_rows(level: Level, elem: Elem) -> SumRowsFn {
    match elem {
        Elem::F32 => sum_rows_entry::<ColumnSums<f32>>(level),
        Elem::F64 => sum_rows_entry::<ColumnSums<f64>>(level),
        Elem::I32 | Elem::U32 => sum_rows_entry::<WordSums>(level),
    }
}

/// `dst[r] = a[r, 0] + a[r, 1] + ...`; if `accumulate`, the sum is added to `dst[r]`. Up to 8 columns are
/// added from left to right, more columns in the order of a strip. A row's sum does not depend on the number
/// of rows.
pub fn sum_cols(level: Level, elem: Elem) -> SumColsFn {
    match elem {
        Elem::F32 => sum_cols_entry::<RowSums<f32>>(level),
        Elem::F64 => sum_cols_entry::<RowSums<f64>>(level),
        Elem::I32 | Elem::U32 => sum_cols_entry::<WordSums>(level),
    }
}

struct ColumnSums<T>(PhantomData<T>);

impl<T: Math> ColumnSums<T> {
    /// `Q` whole vectors of columns over all rows.
    #[inline(always)]
    unsafe fn block<S: Simd, const Q: usize>(dst: *mut T, a: *const T, rows: usize, stride: usize) {
        let len = T::Of::<S>::LEN;
        // SAFETY: `run` passes columns of which `Q * len` remain.
        unsafe {
            let mut v = [T::Of::<S>::splat(T::ZERO); Q];
            for q in 0..Q {
                v[q] = T::Of::<S>::load(dst.add(q * len));
            }
            for r in 0..rows {
                for q in 0..Q {
                    v[q] = v[q].add(T::Of::<S>::load(a.add(r * stride + q * len)));
                }
            }
            for q in 0..Q {
                v[q].store(dst.add(q * len));
            }
        }
    }
}

impl<T: Math> SumRows for ColumnSums<T> {
    #[inline(always)]
    unsafe fn run<S: Simd>(dst: *mut u8, a: *const u8, rows: usize, cols: usize, stride: usize) {
        let (dst, a) = (dst.cast::<T>(), a.cast::<T>());
        let len = T::Of::<S>::LEN;
        let mut c = 0;
        // SAFETY: columns stay below `cols`.
        unsafe {
            while c + 4 * len <= cols {
                Self::block::<S, 4>(dst.add(c), a.add(c), rows, stride);
                c += 4 * len;
            }
            while c + len <= cols {
                Self::block::<S, 1>(dst.add(c), a.add(c), rows, stride);
                c += len;
            }
            if c < cols {
                let mut v = T::Of::<S>::load_part(dst.add(c), cols - c);
                for r in 0..rows {
                    v = v.add(T::Of::<S>::load_part(a.add(r * stride + c), cols - c));
                }
                v.store_part(dst.add(c), cols - c);
            }
        }
    }
}

struct RowSums<T>(PhantomData<T>);

impl<T: Math> RowSums<T> {
    /// Sums rows of so few columns that a loop over rows with unrolled columns is fastest. Wider registers
    /// gain nothing here, so one compiled copy serves all levels.
    #[inline(never)]
    unsafe fn tiny<const COLS: usize>(
        dst: *mut T,
        a: *const T,
        rows: usize,
        stride: usize,
        accumulate: bool,
    ) {
        for r in 0..rows {
            // SAFETY: rows stay below `rows`, and `run` chose this function for rows of `COLS` elements.
            unsafe {
                let mut out = a.add(r * stride).read_unaligned();
                for c in 1..COLS {
                    out = out.plus(a.add(r * stride + c).read_unaligned());
                }
                let old = if accumulate { dst.add(r).read_unaligned() } else { T::ZERO };
                dst.add(r).write_unaligned(old.plus(out));
            }
        }
    }
}

impl<T: Math<Word: Word>> RowSums<T> {
    /// Sums rows of many columns, `LEN` rows at once. After a transpose, the lanes of all these rows are
    /// folded together, by the same additions that fold a single row.
    #[inline(always)]
    unsafe fn wide<S: Simd>(
        dst: *mut T,
        a: *const T,
        rows: usize,
        cols: usize,
        stride: usize,
        accumulate: bool,
    ) {
        let len = T::Of::<S>::LEN;
        let (mut lanes, mut transposed) = ([T::ZERO; 256], [T::ZERO; 256]);
        // SAFETY: rows stay below `rows`; the arrays hold `LEN x LEN` elements.
        unsafe {
            for r in (0..rows).step_by(len) {
                let count = (rows - r).min(len);
                for i in 0..count {
                    let row = sum_lanes::<T::Of<S>>(a.add((r + i) * stride), cols);
                    row.store(lanes.as_mut_ptr().add(i * len));
                }
                let (src, to) = (lanes.as_ptr().cast(), transposed.as_mut_ptr().cast());
                Transpose::<T::Word> { rows: len, cols: len, src, lds: len, dst: to, ldd: len }.run::<S>();
                let mut half = len / 2;
                while half > 0 {
                    for i in 0..half {
                        let low: *mut T = transposed.as_mut_ptr().add(i * len);
                        let high = T::Of::<S>::load(low.add(half * len));
                        T::Of::<S>::load(low).add(high).store(low);
                    }
                    half /= 2;
                }
                for i in 0..count {
                    let old = if accumulate { dst.add(r + i).read_unaligned() } else { T::ZERO };
                    dst.add(r + i).write_unaligned(old.plus(transposed[i]));
                }
            }
        }
    }
}

impl<T: Math<Word: Word>> SumCols for RowSums<T> {
    #[inline(always)]
    unsafe fn run<S: Simd>(
        dst: *mut u8,
        a: *const u8,
        rows: usize,
        cols: usize,
        stride: usize,
        accumulate: bool,
    ) {
        let (dst, a) = (dst.cast::<T>(), a.cast::<T>());
        // SAFETY: the functions read `rows` rows of `cols` elements, and write `rows` elements.
        unsafe {
            match cols {
                1 => Self::tiny::<1>(dst, a, rows, stride, accumulate),
                2 => Self::tiny::<2>(dst, a, rows, stride, accumulate),
                3 => Self::tiny::<3>(dst, a, rows, stride, accumulate),
                4 => Self::tiny::<4>(dst, a, rows, stride, accumulate),
                5 => Self::tiny::<5>(dst, a, rows, stride, accumulate),
                6 => Self::tiny::<6>(dst, a, rows, stride, accumulate),
                7 => Self::tiny::<7>(dst, a, rows, stride, accumulate),
                8 => Self::tiny::<8>(dst, a, rows, stride, accumulate),
                _ => Self::wide::<S>(dst, a, rows, cols, stride, accumulate),
            }
        }
    }
}

/// Sums of words over either axis. Plain loops suffice, because such sums are rare, and wrapping sums do not
/// depend on order.
struct WordSums;

impl SumRows for WordSums {
    #[inline(always)]
    unsafe fn run<S: Simd>(dst: *mut u8, a: *const u8, rows: usize, cols: usize, stride: usize) {
        let (dst, a) = (dst.cast::<u32>(), a.cast::<u32>());
        for r in 0..rows {
            for c in 0..cols {
                // SAFETY: rows stay below `rows`, and columns below `cols`.
                unsafe {
                    let sum =
                        dst.add(c).read_unaligned().wrapping_add(a.add(r * stride + c).read_unaligned());
                    dst.add(c).write_unaligned(sum);
                }
            }
        }
    }
}

impl SumCols for WordSums {
    #[inline(always)]
    unsafe fn run<S: Simd>(
        dst: *mut u8,
        a: *const u8,
        rows: usize,
        cols: usize,
        stride: usize,
        accumulate: bool,
    ) {
        let (dst, a) = (dst.cast::<u32>(), a.cast::<u32>());
        for r in 0..rows {
            // SAFETY: rows stay below `rows`, and columns below `cols`.
            unsafe {
                let mut out = if accumulate { dst.add(r).read_unaligned() } else { 0 };
                for c in 0..cols {
                    out = out.wrapping_add(a.add(r * stride + c).read_unaligned());
                }
                dst.add(r).write_unaligned(out);
            }
        }
    }
}
