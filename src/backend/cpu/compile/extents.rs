//! The bytes that each kernel uses at its addresses.
//!
//! Kernels read and write raw addresses, as far as lengths and strides say. [`Step::each_span`] derives the bytes
//! from the same lengths and strides. The memory plan uses these spans for lifetimes,
//! [`check_plan`](super::check_plan) compares them with the buffers, and the plan replaces the addresses by those
//! of its bases. [`loop_extents`](super::loop_extents) has the steps that run other plans.

use crate::backend::cpu::address::{Access, Address, Extent, Visit};
use crate::backend::cpu::kernels::{Elem, Gemm};
use crate::backend::cpu::memory::ALIGN;
use crate::backend::cpu::run::conv::{Conv, Form};
use crate::backend::cpu::run::copy::{Gather, Move, Random, Scatter, TransposeCopy};
use crate::backend::cpu::run::dot::{Dot, Term};
use crate::backend::cpu::run::factor::Factor;
use crate::backend::cpu::run::lines::Lines;
use crate::backend::cpu::run::observe::Observe;
use crate::backend::cpu::run::packed::Packed;
use crate::backend::cpu::run::program::{Mode, Program};
use crate::backend::cpu::run::step::Step;
use crate::backend::cpu::run::systems::Systems;
use crate::backend::cpu::run::totals::{DeferredProduct, Ring};
use crate::simd::Level;

/// An address that a step uses, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub at: Address,
    pub extent: Extent,
}

/// The spans of all steps of a plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spans {
    all: Vec<Span>,
    /// For each step, the end of its spans in `all`.
    ends: Vec<usize>,
}

impl Spans {
    pub fn of(steps: &mut [Step], level: Level) -> Spans {
        let all = Vec::with_capacity(8 * steps.len());
        let mut spans = Spans { all, ends: Vec::with_capacity(steps.len()) };
        for step in steps {
            step.each_span(level, &mut |at, extent| spans.all.push(Span { at: *at, extent }));
            spans.ends.push(spans.all.len());
        }
        spans
    }

    /// The spans of step `i`.
    pub fn step(&self, i: usize) -> &[Span] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.all[start..self.ends[i]]
    }

    /// Number of steps.
    pub fn len(&self) -> usize {
        self.ends.len()
    }
}

/// Elements from the first to the last of a pattern, given by the length and the stride of each axis.
fn reach(axes: impl IntoIterator<Item = (usize, usize)>) -> usize {
    let mut last = 0;
    for (len, stride) in axes {
        if len == 0 {
            return 0;
        }
        last += (len - 1) * stride;
    }
    last + 1
}

/// Elements of A, B and C.
fn matrices(&Gemm { m, n, k, rsa, csa, ldb, ldc, .. }: &Gemm) -> [usize; 3] {
    [reach([(m, rsa), (k, csa)]), reach([(k, ldb), (n, 1)]), reach([(m, ldc), (n, 1)])]
}

fn float(double: bool) -> usize {
    if double { Elem::F64 } else { Elem::F32 }.size()
}

/// `len` elements.
pub(super) fn elements(len: usize, elem: usize, access: Access) -> Extent {
    Extent { bytes: len * elem, align: elem, access }
}

/// The bytes of the entries of a batch, each of which has `len` elements. The last entry starts at element `last`;
/// there are no entries without it.
fn entries(last: Option<usize>, len: usize, elem: usize, access: Access) -> Extent {
    let all = last.filter(|_| len > 0).map_or(0, |last| last + len);
    elements(all, elem, access)
}

/// Bytes that the kernel copies without regard to their type.
pub(super) fn bytes(bytes: usize, access: Access) -> Extent {
    Extent { bytes, align: 1, access }
}

impl Step {
    /// Visits each address of the step, with the bytes that it uses there.
    pub fn each_span(&mut self, level: Level, f: &mut Visit<'_>) {
        match self {
            Step::Strip(p) => p.each_span(f),
            Step::Move(m) => m.each_span(f),
            Step::TransposeCopy(t) => t.each_span(f),
            Step::Gather(Gather { src, index, dst, rows, num, row }) => {
                f(src, bytes(*rows * *row, Access::Read));
                f(index, elements(*num, Elem::I32.size(), Access::Read));
                f(dst, bytes(*num * *row, Access::Write));
            }
            Step::Scatter(Scatter { op: _, dst, index, updates, rows, num, len, elem }) => {
                f(index, elements(*num, Elem::I32.size(), Access::Read));
                f(updates, elements(*num * *len, elem.size(), Access::Read));
                f(dst, elements(*rows * *len, elem.size(), Access::Update));
            }
            Step::Dot(d) => d.each_span(level, f),
            Step::Conv(c) => c.each_span(f),
            Step::DeferredProduct(l) => l.each_span(f),
            Step::Lines(lines) => {
                let (len, result) = (lines.n * lines.count, lines.result().size());
                let Lines { src, dst, elem, .. } = lines;
                f(src, elements(len, elem.size(), Access::Read));
                f(dst, elements(len, result, Access::Write));
            }
            Step::Factor(factor) => {
                let (count, [from, to], elem) = (factor.count, factor.sizes(), float(factor.double));
                let room = Factor::room(factor.op, factor.sides, count);
                f(&mut factor.src, elements(count * from, elem, Access::Read));
                f(&mut factor.dst, elements(count * to, elem, Access::Write));
                f(&mut factor.work, elements(room, elem, Access::Write));
            }
            Step::Systems(systems) => {
                let (size, elem) = (systems.size(), float(systems.double));
                let Systems { matrices, b, dst, work, sides, count, .. } = systems;
                let len = *count * sides.n * sides.m;
                f(matrices, elements(*count * size, elem, Access::Read));
                f(b, elements(len, elem, Access::Read));
                f(dst, elements(len, elem, Access::Write));
                f(work, elements(Systems::room(*sides, *count), elem, Access::Write));
            }
            Step::Random(Random { key, start, dst, len, .. }) => {
                f(key, elements(2, Elem::U32.size(), Access::Read));
                f(start, elements(1, Elem::U32.size(), Access::Read));
                f(dst, elements(*len, Elem::U32.size(), Access::Write));
            }
            Step::Observe(Observe { src, dst, ty, .. }) => {
                f(src, bytes(ty.bytes(), Access::Read));
                f(dst, bytes(ty.bytes(), Access::Write));
            }
            Step::Solve(s) => s.each_span(f),
            Step::Replay(l) => l.each_span(f),
            Step::Tiles(t) => t.each_span(f),
            Step::Cond(c) => c.each_span(f),
        }
    }
}

impl Program {
    fn each_span(&mut self, f: &mut Visit<'_>) {
        let is_empty = self.cut.rows * self.cut.row_len == 0;
        for s in &mut self.streams {
            let len = match s.mode {
                _ if is_empty => 0,
                // Each strip reads the same elements.
                Mode::Fixed => self.cut.strip.min(self.cut.row_len),
                // Strips follow one another.
                Mode::Linear => self.cut.rows * self.cut.row_len,
                _ => reach(s.dims.iter().map(|d| (d.len, d.stride))),
            };
            f(&mut s.loc, elements(len, s.elem.size(), s.access));
        }
        let streams = &self.streams[..self.direct.len()];
        for (loc, s) in self.direct.iter_mut().zip(streams) {
            *loc = s.loc;
        }
        for port in self.ones.iter_mut().flat_map(|ones| &mut ones.ports) {
            port.loc = self.streams[(port.register - self.registers) as usize].loc;
        }
        for r in &mut self.reductions {
            let (geometry, elem) = (r.reducer.geometry, r.reducer.elem);
            f(&mut r.dst, elements(geometry.outer * geometry.inner, elem.size(), Access::Write));
        }
    }
}

impl Move {
    fn each_span(&mut self, f: &mut Visit<'_>) {
        let (src, dst) = (self.dims.iter().map(|d| (d.len, d.src)), self.dims.iter().map(|d| (d.len, d.dst)));
        f(&mut self.src, elements(reach(src), self.elem, Access::Read));
        if let Some((loc, len)) = &mut self.zero {
            f(loc, bytes(*len, Access::Write));
        }
        f(&mut self.dst, elements(reach(dst), self.elem, Access::Write));
    }
}

impl TransposeCopy {
    fn each_span(&mut self, f: &mut Visit<'_>) {
        let last = self.batch.last();
        let [from, to] = [0, 1].map(|k| last.map(|last| last[k]));
        let read = reach([(self.rows, self.stride), (self.cols, 1)]);
        f(&mut self.src, entries(from, read, self.elem, Access::Read));
        f(&mut self.dst, entries(to, self.rows * self.cols, self.elem, Access::Write));
    }
}

impl Dot {
    fn each_span(&mut self, level: Level, f: &mut Visit<'_>) {
        let (elem, s, last) = (float(self.double), &self.shape, self.batch.last());
        let ([a, b, c], last) = (matrices(s), [0, 1, 2].map(|k| last.map(|last| last[k])));
        f(&mut self.a, entries(last[0], a, elem, Access::Read));
        f(
            &mut self.b,
            match s.packed {
                true => Packed::extent(level, (s.k, s.n, s.ldb), self.double, Access::Read),
                false => entries(last[1], b, elem, Access::Read),
            },
        );
        if let Some(layer) = &mut self.layer {
            match &mut layer.term {
                Some(Term::Matrix(at)) => f(at, elements(s.m * s.n, elem, Access::Read)),
                Some(Term::Bias(at)) => f(at, elements(s.n, elem, Access::Read)),
                None => {}
            }
            let rows = [&mut layer.gate, &mut layer.shift];
            rows.into_iter().flatten().for_each(|at| f(at, elements(s.n, elem, Access::Read)));
        }
        f(&mut self.c, entries(last[2], c, elem, Access::Write));
    }
}

impl Conv {
    fn each_span(&mut self, f: &mut Visit<'_>) {
        let (elem, s, last) = (float(self.double), &self.shape, self.batch.last());
        let last = [0, 1, 2].map(|k| last.map(|last| last[k]));
        let (kernel, result) = match self.form {
            Form::Kernel => (Access::Write, Access::Read),
            Form::Result | Form::Turned => (Access::Read, Access::Write),
        };
        let taps = s.kernel[0] * s.kernel[1] * s.c * s.o;
        let scratch = s.scratch_bytes(self.form, elem);
        f(&mut self.image, entries(last[0], s.num * s.sides[0] * s.sides[1] * s.c, elem, Access::Read));
        f(&mut self.kernel, entries(last[1], taps, elem, kernel));
        f(&mut self.result, entries(last[2], s.num * s.out[0] * s.out[1] * s.o, elem, result));
        f(&mut self.scratch, Extent { bytes: scratch, align: elem, access: Access::Write });
    }
}

impl DeferredProduct {
    fn each_span(&mut self, f: &mut Visit<'_>) {
        let (elem, [a, b, _]) = (float(self.ring.double), matrices(&self.shape));
        let is_of_ring =
            (self.shape.m, self.shape.n) == (self.ring.m, self.ring.n) && Ring::suits(&self.shape);
        assert!(is_of_ring, "invariant: rows have the lengths of the ring where they wait");
        f(&mut self.a, elements(a, elem, Access::Read));
        f(&mut self.b, elements(b, elem, Access::Read));
        self.ring.each_span(f);
    }
}

impl Ring {
    pub fn each_span(&mut self, f: &mut Visit<'_>) {
        let elem = float(self.double);
        let bytes = Ring::bytes(self.m, self.n, elem);
        f(&mut self.at, Extent { bytes, align: align_of::<usize>(), access: Access::Update });
        f(&mut self.total, elements(self.m * self.n, elem, Access::Update));
    }
}

impl Packed {
    pub fn each_span(&mut self, level: Level, f: &mut Visit<'_>) {
        let (k, n, ldb) = self.shape;
        f(&mut self.from, elements(reach([(k, ldb), (n, 1)]), float(self.double), Access::Read));
        f(&mut self.to, Packed::extent(level, self.shape, self.double, Access::Write));
    }

    /// The packed copy. Its rows start at whole vectors.
    fn extent(level: Level, shape: (usize, usize, usize), double: bool, access: Access) -> Extent {
        Extent { bytes: Packed::bytes(level, shape, double), align: ALIGN, access }
    }
}
