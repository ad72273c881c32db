//! Steps that copy elements (views, rows by index), add rows by index, or fill a buffer with random words.
//!
//! The steps contain only addresses and strides.

use super::batch::{Axis, Batch};
use crate::backend::cpu::access::{Dim, View};
use crate::backend::cpu::address::{Address, Env};
use crate::backend::cpu::kernels::{Elem, StripOp, philox_fill, strip, sum_rows, transpose_4, transpose_8};
use crate::graph::ScatterOp;
use crate::simd::Level;
use std::ptr::{copy_nonoverlapping, null, write_bytes};

/// An axis of a copy: its length, and the strides in source and destination, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MoveDim {
    pub len: usize,
    pub src: usize,
    pub dst: usize,
}

/// Copies a view to another view of the same shape.
#[derive(Clone, Debug)]
pub(crate) struct Move {
    pub src: Address,
    pub dst: Address,
    pub elem: usize,
    pub dims: Box<[MoveDim]>,
    /// The location and the number of bytes to fill with zeros first, for the padding of a pad.
    pub zero: Option<(Address, usize)>,
}

impl Move {
    /// The fewest axes that pair the elements of two views with the same shape.
    pub fn dims(src: &View, dst: &View) -> Box<[MoveDim]> {
        if src.size() == 0 {
            return Box::new([MoveDim { len: 0, src: 1, dst: 1 }]);
        }
        let mut out: Vec<MoveDim> = Vec::new();
        for (s, d) in src.dims.iter().zip(&dst.dims).filter(|(s, _)| s.len != 1) {
            match out.last_mut() {
                Some(o) if o.src == s.len * s.stride && o.dst == d.len * d.stride => {
                    *o = MoveDim { len: o.len * s.len, src: s.stride, dst: d.stride };
                }
                _ => out.push(MoveDim { len: s.len, src: s.stride, dst: d.stride }),
            }
        }
        out.into()
    }

    /// Bytes copied.
    pub fn bytes(&self) -> usize {
        self.dims.iter().map(|d| d.len).product::<usize>() * self.elem
    }

    /// # Safety
    /// The locations are valid for the views, and the two do not overlap.
    pub unsafe fn run(&self, env: Env) {
        // SAFETY: `Move::each_span` gives the bytes of both views, which do not overlap, and of the zeros.
        unsafe {
            if let Some((loc, bytes)) = self.zero {
                write_bytes(env.at(loc), 0, bytes);
            }
            let (src, dst) = (env.at(self.src).cast_const(), env.at(self.dst));
            if self.elem == 8 {
                walk::<u64>(src.cast(), dst.cast(), &self.dims);
            } else {
                walk::<u32>(src.cast(), dst.cast(), &self.dims);
            }
        }
    }
}

unsafe fn walk<T: Copy>(src: *const T, dst: *mut T, dims: &[MoveDim]) {
    // SAFETY: as for `Move::run`.
    unsafe {
        match *dims {
            [] => dst.write_unaligned(src.read_unaligned()),
            [MoveDim { len, src: 1, dst: 1 }] => {
                copy_nonoverlapping(src.cast::<u8>(), dst.cast(), len * size_of::<T>());
            }
            [d] => {
                for i in 0..d.len {
                    dst.add(i * d.dst).write_unaligned(src.add(i * d.src).read_unaligned());
                }
            }
            // For short rows, a call of memcpy takes longer than copying the elements one by one.
            [o, d] if d.len < 16 => {
                for i in 0..o.len {
                    for j in 0..d.len {
                        let x = src.add(i * o.src + j * d.src).read_unaligned();
                        dst.add(i * o.dst + j * d.dst).write_unaligned(x);
                    }
                }
            }
            [d, ..] => {
                for i in 0..d.len {
                    walk(src.add(i * d.src), dst.add(i * d.dst), &dims[1..]);
                }
            }
        }
    }
}

/// Transposes `rows` by `cols` elements per entry of a batch: copies the element at `src + r stride + c` to
/// `dst + c rows + r`.
#[derive(Clone, Debug)]
pub(crate) struct TransposeCopy {
    pub src: Address,
    pub dst: Address,
    pub elem: usize,
    /// The offsets of the entries.
    pub batch: Batch<2>,
    pub rows: usize,
    pub cols: usize,
    /// Distance between rows in elements.
    pub stride: usize,
}

impl TransposeCopy {
    /// The transposes that copy a view into a contiguous buffer, as (batch, rows, cols, stride). `None` if
    /// the view is not a batch of transposed matrices.
    pub fn of(view: &View) -> Option<(Batch<2>, usize, usize, usize)> {
        let pattern = view.pattern();
        let &[ref outer @ .., Dim { len: cols, stride: 1 }, Dim { len: rows, stride }] = &pattern[..] else {
            return None;
        };
        let mut size = rows * cols;
        let mut axes: Vec<Axis<2>> = Vec::with_capacity(outer.len());
        for d in outer.iter().rev() {
            axes.push(Axis { len: d.len, strides: [d.stride, size] });
            size *= d.len;
        }
        Some((Batch::new(axes.into_iter().rev()), rows, cols, stride))
    }

    /// # Safety
    /// The locations are valid for the elements, the two do not overlap, and the level is available.
    pub unsafe fn run(&self, env: Env, level: Level) {
        let TransposeCopy { elem, rows, cols, stride, .. } = *self;
        // SAFETY: `TransposeCopy::each_span` gives the bytes of all entries, and the two sides do not overlap.
        self.batch.each(|[from, to]| unsafe {
            let (src, dst) =
                (env.at(self.src).add(from * elem).cast_const(), env.at(self.dst).add(to * elem));
            if elem == 8 {
                transpose_8(level, rows, cols, src.cast(), stride, dst.cast(), rows);
            } else {
                transpose_4(level, rows, cols, src.cast(), stride, dst.cast(), rows);
            }
        });
    }
}

/// Copies row `index[i]` of `src`, with the index clamped to the valid rows, to row `i` of `dst`.
#[derive(Clone, Debug)]
pub(crate) struct Gather {
    pub src: Address,
    pub index: Address,
    pub dst: Address,
    /// Number of rows in the source.
    pub rows: usize,
    /// Number of rows to copy.
    pub num: usize,
    /// Bytes per row.
    pub row: usize,
}

/// Element `i` of an index array, clamped to the valid rows.
///
/// # Safety
/// The index array has more than `i` elements.
unsafe fn clamped(index: *const i32, i: usize, rows: usize) -> usize {
    // SAFETY: `i` is below the number of indices, which `Step::each_span` gives.
    let k = unsafe { index.add(i).read_unaligned() };
    (k.max(0) as usize).min(rows - 1)
}

impl Gather {
    /// # Safety
    /// The locations are valid for the lengths, and the written one overlaps no other.
    ///
    /// # Panics
    /// If rows are copied from a source without rows.
    pub unsafe fn run(&self, env: Env) {
        assert!(self.rows > 0 || self.num == 0, "invariant: {} rows are read from none", self.num);
        // SAFETY: `Step::each_span` gives the bytes of `rows` and of `num` rows, and the clamped row is below `rows`.
        unsafe {
            let (src, dst, index) = (env.at(self.src), env.at(self.dst), env.at(self.index).cast());
            match self.row {
                // One element per row: a load instead of a call.
                4 => self.elements::<u32>(src, dst, index),
                8 => self.elements::<u64>(src, dst, index),
                row => (0..self.num).for_each(|i| {
                    let from = clamped(index, i, self.rows) * row;
                    copy_nonoverlapping(src.add(from), dst.add(i * row), row);
                }),
            }
        }
    }

    /// Copies rows of the size of `T`.
    ///
    /// # Safety
    /// As for [`Gather::run`].
    unsafe fn elements<T: Copy>(&self, src: *const u8, dst: *mut u8, index: *const i32) {
        let (src, dst) = (src.cast::<T>(), dst.cast::<T>());
        for i in 0..self.num {
            // SAFETY: by the caller; the elements need no alignment.
            unsafe {
                let x = src.add(clamped(index, i, self.rows)).read_unaligned();
                dst.add(i).write_unaligned(x);
            }
        }
    }
}

/// Combines row `i` of `updates` with row `index[i]` of `dst`, in the order of `i`. The indices are clamped to
/// the valid rows.
#[derive(Clone, Debug)]
pub(crate) struct Scatter {
    pub op: ScatterOp,
    pub dst: Address,
    pub index: Address,
    pub updates: Address,
    /// Number of rows in the destination.
    pub rows: usize,
    /// Number of updates.
    pub num: usize,
    /// Elements per row.
    pub len: usize,
    pub elem: Elem,
}

impl Scatter {
    /// # Safety
    /// The locations are valid for the lengths, and the written one overlaps no other.
    ///
    /// # Panics
    /// If updates belong to a destination without rows.
    pub unsafe fn run(&self, env: Env, level: Level) {
        assert!(self.rows > 0 || self.num == 0, "invariant: {} updates belong to no row", self.num);
        if self.len == 1 {
            // SAFETY: as below; `Step::each_span` gives the element type.
            return unsafe { self.each_element(env, level) };
        }
        // SAFETY: by the caller.
        unsafe { self.each_row(env, level) }
    }

    /// Rows of one element: an addition or a store instead of a call.
    ///
    /// # Safety
    /// As for [`Scatter::run`].
    unsafe fn each_element(&self, env: Env, level: Level) {
        // SAFETY: by the caller; the types have the size of the elements.
        unsafe {
            match (self.op, self.elem) {
                (ScatterOp::Add, Elem::F32) => self.elements::<f32>(env, |a, b| a + b),
                (ScatterOp::Add, Elem::F64) => self.elements::<f64>(env, |a, b| a + b),
                (ScatterOp::Add, Elem::I32 | Elem::U32) => self.elements::<u32>(env, u32::wrapping_add),
                (ScatterOp::Set, Elem::F64) => self.elements::<u64>(env, |_, new| new),
                (ScatterOp::Set, _) => self.elements::<u32>(env, |_, new| new),
                (ScatterOp::Max, _) => self.each_row(env, level),
            }
        }
    }

    /// Combines elements of the size of `T`.
    ///
    /// # Safety
    /// As for [`Scatter::run`].
    unsafe fn elements<T: Copy>(&self, env: Env, combine: impl Fn(T, T) -> T) {
        // SAFETY: `Step::each_span` gives `rows` and `num` elements, and the clamped row is below `rows`; the elements need
        // no alignment.
        unsafe {
            let (dst, updates) = (env.at(self.dst).cast::<T>(), env.at(self.updates).cast::<T>());
            let index = env.at(self.index).cast();
            for i in 0..self.num {
                let to = dst.add(clamped(index, i, self.rows));
                to.write_unaligned(combine(to.read_unaligned(), updates.add(i).read_unaligned()));
            }
        }
    }

    /// # Safety
    /// As for [`Scatter::run`].
    unsafe fn each_row(&self, env: Env, level: Level) {
        let (add, max) = (sum_rows(level, self.elem), strip(level, StripOp::Max, self.elem));
        let bytes = self.len * self.elem.size();
        // SAFETY: `Step::each_span` gives the bytes of `rows` and of `num` rows, and the clamped row is below `rows`.
        unsafe {
            let (dst, updates, index) = (env.at(self.dst), env.at(self.updates), env.at(self.index).cast());
            for i in 0..self.num {
                let (to, from) = (dst.add(clamped(index, i, self.rows) * bytes), updates.add(i * bytes));
                match self.op {
                    ScatterOp::Add => add(to, from, 1, self.len, self.len),
                    ScatterOp::Max => max(to, to, from, null(), [0.0; 2], self.len),
                    ScatterOp::Set => copy_nonoverlapping(from, to, bytes),
                }
            }
        }
    }
}

/// Fills a buffer with random words.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    pub key: Address,
    pub start: Address,
    pub dst: Address,
    pub stream: u32,
    pub len: usize,
}

impl Random {
    /// # Safety
    /// The locations are valid for the lengths, and the level is available.
    pub unsafe fn run(&self, env: Env, level: Level) {
        if self.len == 0 {
            return;
        }
        // SAFETY: `Step::each_span` gives two words, one word, and `len` words that `check_plan` has found aligned.
        unsafe {
            let key = env.at(self.key).cast::<[u32; 2]>().read_unaligned();
            let start = env.at(self.start).cast::<u32>().read_unaligned();
            let dst = std::slice::from_raw_parts_mut(env.at(self.dst).cast::<u32>(), self.len);
            philox_fill(level, key, u64::from(start), self.stream, dst);
        }
    }
}
