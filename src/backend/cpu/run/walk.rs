//! Copies elements that are not contiguous into a register of a strip program.
//!
//! Three inner patterns have fast paths: short rows (columns of a narrow matrix), runs of one element (a
//! column repeated over a row), and pieces of rows. Other patterns are read element by element.

use crate::backend::cpu::access::Dim;
use crate::backend::cpu::kernels::Elem;
use std::ptr::copy_nonoverlapping;

/// Rows shorter than this are copied element by element, all rows in one loop.
const SHORT: usize = 16;

/// Copies elements `start .. start + n` of a pattern at `src` to `dst`.
///
/// # Safety
/// The pattern's elements exist at `src`, `dst` holds `n`, and the two do not overlap.
pub(crate) unsafe fn load(dst: *mut u8, src: *const u8, elem: Elem, dims: &[Dim], start: usize, n: usize) {
    // SAFETY: a strip is a range of the pattern, whose bytes `Program::each_span` gives, and its register holds a
    // strip. The words have the elements' sizes.
    unsafe {
        if elem.size() == 8 {
            words::<u64>(dst.cast(), src.cast(), dims, start, n);
        } else {
            words::<u32>(dst.cast(), src.cast(), dims, start, n);
        }
    }
}

unsafe fn words<T: Copy>(mut dst: *mut T, src: *const T, dims: &[Dim], start: usize, n: usize) {
    let Some((&inner, outer)) = dims.split_last() else {
        // SAFETY: a pattern without axes has one element.
        return unsafe { fill(dst, src.read_unaligned(), n) };
    };
    let (mut row, mut i, mut left) = (start / inner.len, start % inner.len, n);
    while left > 0 {
        let (at, rows_left) = position(outer, row);
        // SAFETY: `at` is the place of a row of the pattern, and the pieces stay inside of it.
        unsafe {
            let from = src.add(at);
            if i == 0 && inner.len < SHORT && left >= inner.len {
                let rows = rows_left.min(left / inner.len);
                let stride = outer.last().map_or(0, |d| d.stride);
                short_rows(dst, from, rows, stride, inner);
                dst = dst.add(rows * inner.len);
                left -= rows * inner.len;
                row += rows;
            } else {
                let len = left.min(inner.len - i);
                piece(dst, from.add(i * inner.stride), inner.stride, len);
                dst = dst.add(len);
                left -= len;
                row += 1;
                i = 0;
            }
        }
    }
}

/// The offset of row `row` over the outer axes, and the number of rows from this row on that are one stride
/// of the last outer axis apart.
fn position(outer: &[Dim], mut row: usize) -> (usize, usize) {
    let (mut at, mut follow) = (0, 1);
    for (k, d) in outer.iter().rev().enumerate() {
        let i = row % d.len;
        if k == 0 {
            follow = d.len - i;
        }
        at += i * d.stride;
        row /= d.len;
    }
    (at, follow)
}

unsafe fn short_rows<T: Copy>(dst: *mut T, src: *const T, rows: usize, stride: usize, inner: Dim) {
    // SAFETY: as for `load`.
    unsafe {
        match inner.len {
            1 => (0..rows).for_each(|r| dst.add(r).write_unaligned(src.add(r * stride).read_unaligned())),
            _ => {
                for r in 0..rows {
                    for c in 0..inner.len {
                        let x = src.add(r * stride + c * inner.stride).read_unaligned();
                        dst.add(r * inner.len + c).write_unaligned(x);
                    }
                }
            }
        }
    }
}

unsafe fn piece<T: Copy>(dst: *mut T, src: *const T, stride: usize, len: usize) {
    // SAFETY: as for `load`.
    unsafe {
        match stride {
            0 => fill(dst, src.read_unaligned(), len),
            1 => copy_nonoverlapping(src.cast::<u8>(), dst.cast::<u8>(), len * size_of::<T>()),
            _ => {
                for i in 0..len {
                    dst.add(i).write_unaligned(src.add(i * stride).read_unaligned());
                }
            }
        }
    }
}

unsafe fn fill<T: Copy>(dst: *mut T, x: T, len: usize) {
    // SAFETY: as for `load`.
    unsafe {
        for i in 0..len {
            dst.add(i).write_unaligned(x);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_range_of_any_pattern_is_read_in_order() {
        let src: Vec<f32> = (0..4000).map(|i| i as f32).collect();
        let d = |len, stride| Dim { len, stride };
        let patterns = [
            vec![d(40, 3)],
            vec![d(20, 3), d(2, 1)],
            vec![d(20, 1), d(33, 0)],
            vec![d(5, 0), d(17, 1)],
            vec![d(3, 100), d(4, 20), d(5, 2)],
            vec![d(7, 1), d(9, 11)],
        ];
        for dims in patterns {
            let mut all = vec![0];
            for d in &dims {
                all = all.iter().flat_map(|&a| (0..d.len).map(move |i| a + i * d.stride)).collect();
            }
            for (start, n) in [(0, all.len()), (1, all.len() - 1), (13, 20), (5, 1)] {
                let mut dst = vec![-1.0f32; n];
                // SAFETY: the patterns stay inside `src`, and `dst` holds `n` elements.
                unsafe { load(dst.as_mut_ptr().cast(), src.as_ptr().cast(), Elem::F32, &dims, start, n) };
                let want: Vec<f32> = all[start..start + n].iter().map(|&a| a as f32).collect();
                assert_eq!(dst, want, "{dims:?} from {start}");
            }
        }
    }
}
