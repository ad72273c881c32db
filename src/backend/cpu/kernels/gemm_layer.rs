//! The epilogue of a product in a network's layer: bias, gate and shift, activation.
//!
//! The epilogue works on rows of C that were just written and, except in large thin products, are still in
//! L1 or L2. An epilogue in registers, before the store, would save one load and one store per vector, which
//! is little compared with the twenty or so instructions of a tanh. It would also need a copy of each tile per
//! activation, which is three times the code.

use std::marker::PhantomData;
use std::ptr::null;

use crate::simd::Level;
use crate::simd::dispatch::entry_points;
use crate::simd::lanes::{Float, Lanes, Simd};
use crate::simd::math::{self, Math};

/// The activation of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activation {
    /// `x`
    Identity,
    /// `tanh x`
    Tanh,
    /// `1 / (1 + e^-x)`
    Sigmoid,
}

/// `C = activation((A B + bias) gate + shift)`.
#[derive(Clone, Copy, Debug)]
pub struct Epilogue<T> {
    /// Bias, gate and shift: one element per column, or null for none.
    pub rows: RowFactors<T>,
    /// The activation, applied last.
    pub activation: Activation,
}

/// The rows of an epilogue.
#[derive(Clone, Copy, Debug)]
pub struct RowFactors<T> {
    /// Added first.
    pub bias: *const T,
    /// Multiplied after the bias is added.
    pub gate: *const T,
    /// Added after the gate.
    pub shift: *const T,
}

impl<T: Copy> RowFactors<T> {
    /// No rows.
    pub const NONE: Self = RowFactors { bias: null(), gate: null(), shift: null() };

    /// Applies `f` to each row that is not null.
    fn map(self, f: impl Fn(*const T) -> *const T) -> Self {
        let f = |row: *const T| if row.is_null() { row } else { f(row) };
        RowFactors { bias: f(self.bias), gate: f(self.gate), shift: f(self.shift) }
    }
}

/// Rows of C that were just written, with their part of the epilogue.
#[derive(Clone, Copy)]
pub(super) struct Written<T> {
    pub rows: usize,
    pub cols: usize,
    pub c: *mut T,
    pub ldc: usize,
    pub ends: RowFactors<T>,
}

impl<T: Copy> Written<T> {
    /// `rows` rows from `i` on, `cols` columns from `j` on.
    ///
    /// # Safety
    /// The part lies within these rows and columns.
    pub(super) unsafe fn part(&self, i: usize, rows: usize, j: usize, cols: usize) -> Self {
        let &Self { c, ldc, ends, .. } = self;
        let ends = ends.map(|row| row.wrapping_add(j));
        // SAFETY: `k_block` takes columns below `n`, and `whole_panel` takes rows below `m`.
        Self { rows, cols, c: unsafe { c.add(i * ldc + j) }, ldc, ends }
    }
}

/// Applies the epilogue to rows.
///
/// # Safety
/// The addresses are valid for the shape, and the level is available.
pub(super) type FinishFn<T> = unsafe fn(&Written<T>);

trait Finish<T> {
    /// # Safety
    /// As for [`FinishFn`].
    unsafe fn run<S: Simd>(rows: &Written<T>);
}

entry_points!(entry, Finish<T: Math>, FinishFn<T>, (rows: &Written<T>));

/// The epilogue function of an activation.
pub(super) fn finish<T: Math>(level: Level, activation: Activation) -> FinishFn<T> {
    match activation {
        Activation::Identity => entry::<T, Layer<T, Identity>>(level),
        Activation::Tanh => entry::<T, Layer<T, Tanh>>(level),
        Activation::Sigmoid => entry::<T, Layer<T, Sigmoid>>(level),
    }
}

/// An activation on lanes.
trait Function {
    fn apply<V: Float>(x: V) -> V;
}

macro_rules! functions {
    ($($name:ident: |$x:ident| $body:expr;)*) => {$(
        struct $name;
        impl Function for $name {
            #[inline(always)]
            fn apply<V: Float>($x: V) -> V {
                $body
            }
        }
    )*};
}

functions! {
    Identity: |x| x;
    Tanh: |x| math::tanh(x);
    Sigmoid: |x| math::sigmoid(x);
}

struct Layer<T, F>(PhantomData<(T, F)>);

impl<T: Math, F: Function> Layer<T, F> {
    /// Applies the epilogue to one vector of row `r` from column `j` on: to all lanes, or to the first
    /// `count`.
    #[inline(always)]
    unsafe fn vector<V: Float<Elem = T>, const WHOLE: bool>(
        rows: &Written<T>,
        r: usize,
        j: usize,
        count: usize,
    ) {
        // SAFETY: `run` takes rows and columns of `rows`. An address that is not null has these columns.
        unsafe {
            let c = rows.c.add(r * rows.ldc + j);
            let load = |p: *const T| if WHOLE { V::load(p) } else { V::load_part(p, count) };
            let mut value = load(c);
            let RowFactors { bias, gate, shift } = rows.ends;
            if !bias.is_null() {
                value = value.add(load(bias.add(j)));
            }
            if !gate.is_null() {
                value = value.mul(load(gate.add(j)));
            }
            if !shift.is_null() {
                value = value.add(load(shift.add(j)));
            }
            let out = F::apply(value);
            if WHOLE { out.store(c) } else { out.store_part(c, count) }
        }
    }
}

impl<T: Math, F: Function> Finish<T> for Layer<T, F> {
    #[inline(always)]
    unsafe fn run<S: Simd>(rows: &Written<T>) {
        let len = T::Of::<S>::LEN;
        let rest = rows.cols % len;
        for r in 0..rows.rows {
            for j in (0..rows.cols - rest).step_by(len) {
                // SAFETY: the vector lies within the row.
                unsafe { Self::vector::<T::Of<S>, true>(rows, r, j, len) };
            }
            if rest > 0 {
                // SAFETY: as above.
                unsafe { Self::vector::<T::Of<S>, false>(rows, r, rows.cols - rest, rest) };
            }
        }
    }
}

/// Applies the epilogue to a thin product. If its rows are contiguous, 16 rows are treated as one long row
/// with bias, gate and shift repeated 16 times, because a separate vector for each row would be mostly empty.
///
/// # Safety
/// As for [`FinishFn`].
///
/// # Panics
/// If a row is repeated and the product has more than 4 columns.
pub(super) unsafe fn finish_thin<T: Math>(finish: FinishFn<T>, thin: &Written<T>) {
    const TOGETHER: usize = 16;
    let &Written { rows, cols, c, ldc, ends } = thin;
    let mut repeated = [[T::ZERO; 4 * TOGETHER]; 3];
    // SAFETY: the long rows cover the elements of `thin`, and bias, gate and shift have the length of a long
    // row.
    unsafe {
        if ldc != cols {
            return finish(thin);
        }
        let mut long_row = |k: usize, row: *const T| {
            if row.is_null() {
                return row;
            }
            for (i, x) in repeated[k][..cols * TOGETHER].iter_mut().enumerate() {
                *x = row.add(i % cols).read_unaligned();
            }
            repeated[k].as_ptr()
        };
        let (bias, gate, shift) = (long_row(0, ends.bias), long_row(1, ends.gate), long_row(2, ends.shift));
        let ends = RowFactors { bias, gate, shift };
        let (long, width) = (rows / TOGETHER, cols * TOGETHER);
        finish(&Written { rows: long, cols: width, c, ldc: width, ends });
        let done = long * width;
        finish(&Written { rows: 1, cols: rows * cols - done, c: c.add(done), ldc: 0, ends });
    }
}
