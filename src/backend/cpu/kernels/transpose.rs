//! Transposes of matrices with 4-byte and 8-byte elements of any type.
//!
//! A transpose works in square blocks that fit into the vector registers. Within a strip of such blocks, the
//! destination is written along its rows, since a store that misses the cache costs more than a load.

use crate::simd::Level;
use crate::simd::dispatch::{Task, enter};
use crate::simd::lanes::Simd;

/// A transpose of `T`, a word of 4 or 8 bytes.
pub(super) struct Transpose<T> {
    pub rows: usize,
    pub cols: usize,
    pub src: *const T,
    pub lds: usize,
    pub dst: *mut T,
    pub ldd: usize,
}

/// A word of 4 or 8 bytes, with the transpose of a block.
pub(super) trait Word: Copy {
    const BLOCK: usize;
    /// # Safety
    /// Blocks of `BLOCK x BLOCK` at both addresses are valid and disjoint, and the level is available.
    unsafe fn block<S: Simd>(src: *const Self, lds: usize, dst: *mut Self, ldd: usize);
}

impl Word for u32 {
    const BLOCK: usize = 8;
    #[inline(always)]
    unsafe fn block<S: Simd>(src: *const Self, lds: usize, dst: *mut Self, ldd: usize) {
        // SAFETY: `Transpose::run` passes whole blocks below its `rows` and `cols`.
        unsafe { S::transpose_8x8(src, lds, dst, ldd) }
    }
}

impl Word for u64 {
    const BLOCK: usize = 4;
    #[inline(always)]
    unsafe fn block<S: Simd>(src: *const Self, lds: usize, dst: *mut Self, ldd: usize) {
        // SAFETY: as above.
        unsafe { S::transpose_4x4(src, lds, dst, ldd) }
    }
}

impl<T: Word> Task for Transpose<T> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Self { rows, cols, src, lds, dst, ldd } = self;
        let (whole_rows, whole_cols) = (rows - rows % T::BLOCK, cols - cols % T::BLOCK);
        // SAFETY: indices stay below `rows` and `cols`.
        unsafe {
            for c in (0..whole_cols).step_by(T::BLOCK) {
                for r in (0..whole_rows).step_by(T::BLOCK) {
                    T::block::<S>(src.add(r * lds + c), lds, dst.add(c * ldd + r), ldd);
                }
            }
            for c in 0..cols {
                let start = if c < whole_cols { whole_rows } else { 0 };
                for r in start..rows {
                    dst.add(c * ldd + r).write_unaligned(src.add(r * lds + c).read_unaligned());
                }
            }
        }
    }
}

/// `dst[c * ldd + r] = src[r * lds + c]` for 4-byte elements.
///
/// # Safety
/// `rows x cols` elements are readable at `src` with `lds` between rows and writable at `dst` with `ldd` between
/// columns, the two are disjoint, and the level is available.
pub unsafe fn transpose_4(
    level: Level,
    rows: usize,
    cols: usize,
    src: *const u32,
    lds: usize,
    dst: *mut u32,
    ldd: usize,
) {
    // SAFETY: the task stays below `rows` and `cols`. For steps, `check_plan` has compared them with the buffers.
    unsafe { enter(level, Transpose { rows, cols, src, lds, dst, ldd }) }
}

/// `dst[c * ldd + r] = src[r * lds + c]` for 8-byte elements.
///
/// # Safety
/// As for [`transpose_4`].
pub unsafe fn transpose_8(
    level: Level,
    rows: usize,
    cols: usize,
    src: *const u64,
    lds: usize,
    dst: *mut u64,
    ldd: usize,
) {
    // SAFETY: the task stays below `rows` and `cols`. For steps, `check_plan` has compared them with the buffers.
    unsafe { enter(level, Transpose { rows, cols, src, lds, dst, ldd }) }
}
