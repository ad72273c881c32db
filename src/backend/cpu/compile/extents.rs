//! The bytes that each step uses at its locations, compared with the lengths of the buffers.
//!
//! Kernels read and write raw addresses, as far as lengths and strides say. This check is made once per
//! compilation, in release builds too: a wrong length is then a panic, and no kernel writes over another
//! value. Steps that run other plans (loops, tiles, conditionals) are not checked here, because they only bind
//! whole values to plans, and `verify` compares their types.

use super::buffers::Buffer;
use crate::backend::cpu::address::Address;
use crate::backend::cpu::kernels::{Elem, Gemm};
use crate::backend::cpu::run::conv::Conv;
use crate::backend::cpu::run::copy::{Move, TransposeCopy};
use crate::backend::cpu::run::dot::{Dot, Term};
use crate::backend::cpu::run::packed::Packed;
use crate::backend::cpu::run::program::{Mode, Program};
use crate::backend::cpu::run::step::Step;
use crate::backend::cpu::run::totals::{DeferredProduct, Ring};
use crate::simd::Level;

/// # Panics
/// If a step uses bytes outside of a buffer.
pub fn check(steps: &[Step], buffers: &[Buffer], level: Level) {
    for (i, step) in steps.iter().enumerate() {
        step.each_extent(level, &mut |loc, bytes| {
            let have = buffers[loc.base as usize].bytes;
            let fits = bytes == 0 || loc.offset.checked_add(bytes).is_some_and(|end| end <= have);
            let Address { base, offset } = loc;
            assert!(
                fits,
                "invariant: step {i} uses {bytes} bytes from byte {offset} of buffer {base}, which has {have}: {step:?}"
            );
        });
    }
}

/// Elements from the first to the last of a pattern, given by the length and the stride of each axis.
fn span(axes: impl IntoIterator<Item = (usize, usize)>) -> usize {
    let mut last = 0;
    for (len, stride) in axes {
        if len == 0 {
            return 0;
        }
        last += (len - 1) * stride;
    }
    last + 1
}

/// The bytes of `len` elements, if there are any, of `elem` bytes from element `at` on.
fn bytes(at: usize, len: usize, elem: usize) -> usize {
    if len == 0 { 0 } else { (at + len) * elem }
}

/// Elements of A, B and C.
fn matrices(&Gemm { m, n, k, rsa, csa, ldb, ldc, .. }: &Gemm) -> [usize; 3] {
    [span([(m, rsa), (k, csa)]), span([(k, ldb), (n, 1)]), span([(m, ldc), (n, 1)])]
}

fn float(double: bool) -> usize {
    if double { Elem::F64 } else { Elem::F32 }.size()
}

impl Step {
    /// Visits the locations of a step with the number of bytes that it uses from each location on.
    fn each_extent(&self, level: Level, f: &mut dyn FnMut(Address, usize)) {
        match self {
            Step::Strip(p) => p.each_extent(f),
            Step::Move(m) => m.each_extent(f),
            Step::TransposeCopy(t) => t.each_extent(f),
            Step::Gather(g) => {
                f(g.src, g.rows * g.row);
                f(g.index, g.num * Elem::I32.size());
                f(g.dst, g.num * g.row);
            }
            Step::ScatterAdd(s) => {
                let row = s.len * s.elem.size();
                f(s.dst, s.rows * row);
                f(s.index, s.num * Elem::I32.size());
                f(s.updates, s.num * row);
            }
            Step::Dot(d) => d.each_extent(level, f),
            Step::Conv(c) => c.each_extent(f),
            Step::DeferredProduct(l) => l.each_extent(f),
            Step::Random(r) => {
                f(r.key, 2 * Elem::U32.size());
                f(r.start, Elem::U32.size());
                f(r.dst, r.len * Elem::U32.size());
            }
            Step::Observe(o) => {
                f(o.src, o.ty.bytes());
                f(o.dst, o.ty.bytes());
            }
            Step::Solve(_) | Step::Replay(_) | Step::Tiles(_) | Step::Cond(_) => {}
        }
    }
}

impl Program {
    fn each_extent(&self, f: &mut dyn FnMut(Address, usize)) {
        let is_empty = self.cut.rows * self.cut.row_len == 0;
        for s in self.streams.iter().filter(|_| !is_empty) {
            let len = match s.mode {
                // Each strip reads the same elements.
                Mode::Fixed => self.cut.strip.min(self.cut.row_len),
                _ => span(s.dims.iter().map(|d| (d.len, d.stride))),
            };
            f(s.loc, len * s.elem.size());
        }
        for r in &self.reductions {
            let geometry = r.reducer.geometry;
            f(r.dst, geometry.outer * geometry.inner * r.reducer.elem.size());
        }
    }
}

impl Move {
    fn each_extent(&self, f: &mut dyn FnMut(Address, usize)) {
        f(self.src, span(self.dims.iter().map(|d| (d.len, d.src))) * self.elem);
        f(self.dst, span(self.dims.iter().map(|d| (d.len, d.dst))) * self.elem);
        if let Some((loc, bytes)) = self.zero {
            f(loc, bytes);
        }
    }
}

impl TransposeCopy {
    fn each_extent(&self, f: &mut dyn FnMut(Address, usize)) {
        let Some([from, to]) = self.batch.last() else { return };
        f(self.src, bytes(from, span([(self.rows, self.stride), (self.cols, 1)]), self.elem));
        f(self.dst, bytes(to, self.rows * self.cols, self.elem));
    }
}

impl Dot {
    fn each_extent(&self, level: Level, f: &mut dyn FnMut(Address, usize)) {
        let (elem, s) = (float(self.double), &self.shape);
        let Some(last) = self.batch.last() else { return };
        let [a, b, c] = matrices(s);
        f(self.a, bytes(last[0], a, elem));
        match s.packed {
            true => f(self.b, Packed::bytes(level, (s.k, s.n, s.ldb), self.double)),
            false => f(self.b, bytes(last[1], b, elem)),
        }
        f(self.c, bytes(last[2], c, elem));
        let Some(layer) = &self.layer else { return };
        let bias = match layer.term {
            Some(Term::Matrix(at)) => {
                f(at, s.m * s.n * elem);
                None
            }
            Some(Term::Bias(at)) => Some(at),
            None => None,
        };
        [bias, layer.gate, layer.shift].into_iter().flatten().for_each(|at| f(at, s.n * elem));
    }
}

impl Conv {
    fn each_extent(&self, f: &mut dyn FnMut(Address, usize)) {
        let (elem, s) = (float(self.double), &self.shape);
        let Some([image, kernel, result]) = self.batch.last() else { return };
        let taps = s.kernel[0] * s.kernel[1] * s.c * s.o;
        f(self.image, bytes(image, s.num * s.sides[0] * s.sides[1] * s.c, elem));
        f(self.kernel, bytes(kernel, taps, elem));
        f(self.result, bytes(result, s.num * s.out[0] * s.out[1] * s.o, elem));
        f(self.scratch, s.scratch_bytes(self.form, elem));
    }
}

impl DeferredProduct {
    fn each_extent(&self, f: &mut dyn FnMut(Address, usize)) {
        let (elem, [a, b, _]) = (float(self.ring.double), matrices(&self.shape));
        let Ring { at, total, m, n, .. } = self.ring;
        f(self.a, a * elem);
        f(self.b, b * elem);
        f(at, Ring::bytes(m, n, elem));
        f(total, m * n * elem);
    }
}

#[cfg(test)]
mod tests {
    use super::super::buffers::Home;
    use super::*;
    use crate::backend::cpu::run::copy::Gather;

    #[test]
    fn a_step_outside_of_its_buffers_is_refused() {
        let buffers = [24, 8, 16].map(|bytes| Buffer { bytes, home: Home::Arena });
        let at = |base, offset| Address { base, offset };
        let gather = |rows, num, offset| {
            vec![Step::Gather(Gather {
                src: at(0, 0),
                index: at(1, 0),
                dst: at(2, offset),
                rows,
                num,
                row: 8,
            })]
        };
        let refuses = |steps: Vec<Step>| crate::array::refusal(|| check(&steps, &buffers, Level::Portable));
        check(&gather(3, 2, 0), &buffers, Level::Portable);
        check(&gather(3, 0, 99), &buffers, Level::Portable);
        let message = refuses(gather(4, 2, 0));
        assert!(message.contains("step 0 uses 32 bytes from byte 0 of buffer 0, which has 24"), "{message}");
        assert!(refuses(gather(3, 3, 0)).contains("buffer 1, which has 8"));
        assert!(refuses(gather(3, 2, 8)).contains("16 bytes from byte 8 of buffer 2, which has 16"));
    }
}
