//! Reductions of strips. Neighbors (contiguous elements) are reduced in groups or, in long rows, in blocks.
//! Lines (rows of contiguous elements that are not reduced themselves) are combined element by element.
//!
//! The order of a sum depends only on the reduction's shape and the level. Neighbors are summed in blocks of
//! [`BLOCK`], and the sums of blocks are added in double precision. Lines are added one after the other. This
//! file does not depend on strip programs.

use crate::backend::cpu::compile::places::Geometry;
use crate::backend::cpu::kernels::{self, Elem, ReduceFn, StripFn, StripOp, SumColsFn, SumRowsFn, strip};
use crate::graph::ReduceOp;
use crate::simd::Level;
use std::ptr::{from_ref, null};

/// Maximum number of neighbors that are reduced at once.
pub(crate) const BLOCK: usize = 256;

/// One reduction and its kernels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reducer {
    pub op: ReduceOp,
    pub elem: Elem,
    pub geometry: Geometry,
    neighbors: ReduceFn,
    rows: SumColsFn,
    lines: SumRowsFn,
    combine: StripFn,
}

impl Reducer {
    pub fn new(level: Level, op: ReduceOp, elem: Elem, geometry: Geometry) -> Reducer {
        let (neighbors, combine) = match op {
            ReduceOp::Sum => (kernels::sum_strip(level, elem), StripOp::Add),
            ReduceOp::Max => (kernels::max_strip(level, elem), StripOp::Max),
            ReduceOp::Min => (kernels::min_strip(level, elem), StripOp::Min),
        };
        let (rows, lines) = (kernels::sum_cols(level, elem), kernels::sum_rows(level, elem));
        let combine = strip(level, combine, elem);
        Reducer { op, elem, geometry, neighbors, rows, lines, combine }
    }

    /// The neutral element.
    fn neutral(&self) -> f64 {
        match (self.op, self.elem) {
            (ReduceOp::Sum, _) => 0.0,
            (ReduceOp::Max, Elem::I32) => i32::MIN.into(),
            (ReduceOp::Min, Elem::I32) => i32::MAX.into(),
            (ReduceOp::Max, Elem::U32) => u32::MIN.into(),
            (ReduceOp::Min, Elem::U32) => u32::MAX.into(),
            (ReduceOp::Max, _) => f64::NEG_INFINITY,
            (ReduceOp::Min, _) => f64::INFINITY,
        }
    }

    /// Stores a number in one element. Integers wrap, since a sum in double precision may be out of range.
    unsafe fn store(&self, dst: *mut u8, x: f64) {
        // SAFETY: `dst` is a result, of which `Program::each_span` gives `outer x inner`, or the word of `part`.
        unsafe {
            match self.elem {
                Elem::F32 => dst.cast::<f32>().write_unaligned(x as f32),
                Elem::F64 => dst.cast::<f64>().write_unaligned(x),
                Elem::I32 | Elem::U32 => dst.cast::<u32>().write_unaligned(x as i64 as u32),
            }
        }
    }

    /// The element in the first bytes of a word.
    fn read(&self, word: &u64) -> f64 {
        let src = from_ref(word).cast::<u8>();
        // SAFETY: a word is as long as the longest element.
        unsafe {
            match self.elem {
                Elem::F32 => src.cast::<f32>().read_unaligned().into(),
                Elem::F64 => src.cast::<f64>().read_unaligned(),
                Elem::I32 => src.cast::<i32>().read_unaligned().into(),
                Elem::U32 => src.cast::<u32>().read_unaligned().into(),
            }
        }
    }

    /// Sets all results to the neutral element.
    ///
    /// # Safety
    /// `dst` holds all results.
    pub unsafe fn clear(&self, dst: *mut u8) {
        for i in 0..self.geometry.outer * self.geometry.inner {
            // SAFETY: `i` counts the results, which `Program::each_span` gives.
            unsafe { self.store(dst.add(i * self.elem.size()), self.neutral()) };
        }
    }

    /// Reduces `count` groups of at most [`BLOCK`] neighbors to one element each.
    ///
    /// # Safety
    /// `src` holds the groups, `dst` their results, and the level is available.
    pub unsafe fn groups(&self, dst: *mut u8, src: *const u8, count: usize) {
        let (len, size) = (self.geometry.reduced, self.elem.size());
        // SAFETY: `Cut::of` makes each strip whole groups of `len` elements, and each group has one result. The
        // kernels are those of the plan's level.
        unsafe {
            if self.op == ReduceOp::Sum {
                return (self.rows)(dst, src, count, len, len, false);
            }
            for g in 0..count {
                self.store(dst.add(g * size), self.neutral());
                (self.neighbors)(dst.add(g * size), src.add(g * len * size), len);
            }
        }
    }

    /// Reduces elements `from .. from + n` of a long row, split at multiples of [`BLOCK`]. `acc` holds the
    /// partial result; `dst` receives it after the last element.
    ///
    /// # Safety
    /// `src` holds `n` elements, `dst` one, `acc` one f64, and the level is available.
    pub unsafe fn part(&self, dst: *mut u8, acc: *mut u8, src: *const u8, from: usize, n: usize) {
        let acc = acc.cast::<f64>();
        // SAFETY: blocks stay below `n`, the length of the strip, and `word` holds one element. `acc` is a
        // register, which holds at least one f64 because programs with reductions have wide registers
        // (`Gen::widest`).
        unsafe {
            let mut sum = if from == 0 { self.neutral() } else { acc.read() };
            let mut i = 0;
            while i < n {
                let len = BLOCK.min(n - i);
                let mut word = 0u64;
                let at = (&raw mut word).cast::<u8>();
                self.store(at, self.neutral());
                (self.neighbors)(at, src.add(i * self.elem.size()), len);
                let x = self.read(&word);
                sum = match self.op {
                    ReduceOp::Sum => sum + x,
                    ReduceOp::Max if sum > x || sum.is_nan() => sum,
                    ReduceOp::Min if sum < x || sum.is_nan() => sum,
                    ReduceOp::Max | ReduceOp::Min => x,
                };
                i += len;
            }
            acc.write(sum);
            if from + n == self.geometry.reduced {
                self.store(dst, sum);
            }
        }
    }

    /// Combines `rows` lines of `len` elements with the line at `dst`, one after the other.
    ///
    /// # Safety
    /// `src` holds `rows` lines, `dst` holds one line, and the level is available.
    pub unsafe fn lines(&self, dst: *mut u8, src: *const u8, rows: usize, len: usize) {
        // SAFETY: `Cut::of` makes each strip whole lines, or a part of one, and `dst` is the same part of an
        // output line. The kernels are those of the plan's level.
        unsafe {
            if self.op == ReduceOp::Sum {
                return (self.lines)(dst, src, rows, len, len);
            }
            for r in 0..rows {
                let line = src.add(r * len * self.elem.size());
                (self.combine)(dst, dst, line, null(), [0.0; 2], len);
            }
        }
    }
}
