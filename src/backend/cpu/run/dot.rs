//! Matrix products: single, in batches, or with the bias and activation of a layer.

use super::batch::{Axis, Batch};
use crate::backend::cpu::access::{Dim, View};
use crate::backend::cpu::address::{Address, Cost, Env};
use crate::backend::cpu::kernels::{
    Activation, Elem, Epilogue, Gemm, RowFactors, gemm_f32, gemm_f64, gemm_layer_f32, gemm_layer_f64,
};
use crate::simd::Level;
use std::ptr::{copy_nonoverlapping, null};

/// `C = A B` per entry of a batch. A may have any strides; each row of B and C is contiguous.
#[derive(Clone, Debug)]
pub(crate) struct Dot {
    pub a: Address,
    pub b: Address,
    pub c: Address,
    pub double: bool,
    /// The offsets of the entries of A, B and C.
    pub batch: Batch<3>,
    /// The product of one entry.
    pub shape: Gemm,
    pub layer: Option<Layer>,
}

/// The epilogue of a product: `activation((A B + term) gate + shift)`. The result is bitwise equal to that of
/// separate kernels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layer {
    pub term: Option<Term>,
    pub gate: Option<Address>,
    pub shift: Option<Address>,
    pub activation: Activation,
}

/// The term that is added to a product.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Term {
    /// A row that is added to every row of the product.
    Bias(Address),
    /// A contiguous matrix, which may share its bytes with C.
    Matrix(Address),
}

/// The batch and the product of each entry, from the views of both operands; C is contiguous.
///
/// If the entries along the innermost axis share one B and their rows of A are equally spaced, these entries
/// become one product with more rows. The bits of an element do not depend on the number of rows, and B is
/// read only once.
pub(crate) fn products(a: &View, b: &View) -> (Batch<3>, Gemm) {
    let ((outer_a, [m, k]), (outer_b, [rows_b, n])) = (matrices(a), matrices(b));
    let mut shape = Gemm {
        m: m.len,
        n: n.len,
        k: k.len,
        rsa: m.stride,
        csa: k.stride,
        ldb: rows_b.stride,
        ldc: n.len,
        accumulate: false,
        packed: false,
    };
    let mut size = m.len * n.len;
    let mut axes: Vec<Axis<3>> = Vec::with_capacity(outer_a.len());
    for (p, q) in outer_a.iter().zip(outer_b).rev() {
        axes.push(Axis { len: p.len, strides: [p.stride, q.stride, size] });
        size *= p.len;
    }
    let mut batch = Batch::new(axes.into_iter().rev());
    if let Some((Axis { len, strides: [row, 0, _] }, outer)) = batch.split_last()
        && (shape.m == 1 || row == shape.m * shape.rsa)
    {
        let rsa = if shape.m == 1 { row } else { shape.rsa };
        shape = Gemm { m: shape.m * len, rsa, ..shape };
        batch = outer;
    }
    (batch, shape)
}

/// The leading axes, and the two axes of a matrix.
fn matrices(view: &View) -> (&[Dim], [Dim; 2]) {
    let (outer, matrix) =
        view.dims.split_last_chunk().expect("invariant: operands of a product are matrices");
    (outer, *matrix)
}

impl Dot {
    pub fn cost(&self) -> Cost {
        let elem = if self.double { Elem::F64 } else { Elem::F32 };
        let Gemm { m, n, k, .. } = self.shape;
        let layer = self.layer.as_ref().map_or(0, Layer::flops);
        let count = self.batch.count();
        Cost {
            flops: count * (2 * m * n * k + layer * m * n),
            bytes: count * (m * k + k * n + m * n) * elem.size(),
        }
    }

    /// # Safety
    /// The locations are valid for the shapes, the written location overlaps no other except a
    /// [`Term::Matrix`], and the level is available.
    pub unsafe fn run(&self, env: Env, level: Level) {
        let elem = if self.double { Elem::F64 } else { Elem::F32 }.size();
        let mut s = self.shape;
        if let Some(Layer { term: Some(Term::Matrix(addend)), .. }) = self.layer {
            s.accumulate = true;
            // SAFETY: `Dot::each_span` gives the matrix and C, which are equal or do not overlap; `Layer` is for
            // one product.
            unsafe {
                let (from, to) = (env.at(addend), env.at(self.c));
                if from != to {
                    copy_nonoverlapping(from, to, s.m * s.n * elem);
                }
            }
        }
        let s = &s;
        // SAFETY: `Dot::each_span` gives the bytes of all entries of A, B and C and of the rows of the layer. C
        // overlaps none of them.
        self.batch.each(|at| unsafe {
            let of = |loc, i: usize| env.at(loc).add(i * elem);
            let (a, b, c) = (of(self.a, at[0]), of(self.b, at[1]), of(self.c, at[2]));
            match (self.layer.as_ref().filter(|l| !l.is_plain()), self.double) {
                (None, false) => gemm_f32(level, s, a.cast(), b.cast(), c.cast()),
                (None, true) => gemm_f64(level, s, a.cast(), b.cast(), c.cast()),
                (Some(l), false) => gemm_layer_f32(level, s, &l.end(env), a.cast(), b.cast(), c.cast()),
                (Some(l), true) => gemm_layer_f64(level, s, &l.end(env), a.cast(), b.cast(), c.cast()),
            }
        });
    }
}

impl Layer {
    /// Whether the epilogue is empty or only adds a matrix.
    fn is_plain(&self) -> bool {
        !matches!(self.term, Some(Term::Bias(_)))
            && self.gate.is_none()
            && self.shift.is_none()
            && self.activation == Activation::Identity
    }

    /// Operations per element of the result.
    fn flops(&self) -> usize {
        let terms = [self.term.is_some(), self.gate.is_some(), self.shift.is_some()];
        let is_function = self.activation != Activation::Identity;
        terms.into_iter().chain([is_function]).filter(|there| *there).count()
    }

    fn end<T>(&self, env: Env) -> Epilogue<T> {
        let row = |at: Option<Address>| at.map_or(null(), |at| env.at(at).cast::<T>().cast_const());
        let bias = if let Some(Term::Bias(at)) = self.term { Some(at) } else { None };
        let rows = RowFactors { bias: row(bias), gate: row(self.gate), shift: row(self.shift) };
        Epilogue { rows, activation: self.activation }
    }
}
