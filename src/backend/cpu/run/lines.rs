//! Steps that run along lines.

use crate::backend::cpu::address::{Address, Cost, Env};
use crate::backend::cpu::kernels::{Elem, LineElement, line, orders};
use crate::graph::LineOp;
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// Runs an operation on `count` lines of length n.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lines {
    pub op: LineOp,
    pub src: Address,
    pub dst: Address,
    /// The type of the operand.
    pub elem: Elem,
    pub n: usize,
    pub count: usize,
}

impl Lines {
    /// The type of the result.
    pub fn result(&self) -> Elem {
        if self.op == LineOp::Argsort { Elem::I32 } else { self.elem }
    }

    pub fn cost(&self) -> Cost {
        let len = self.n * self.count;
        // The comparisons of a sort.
        let per_element = if self.op == LineOp::Argsort { 1 + self.n.max(1).ilog2() as usize } else { 1 };
        Cost { flops: per_element * len, bytes: len * (self.elem.size() + self.result().size()) }
    }

    /// # Safety
    /// The locations are valid for the lengths, and aligned; the result does not overlap the operand.
    pub unsafe fn run(&self, env: Env) {
        // SAFETY: by the caller.
        unsafe {
            match self.elem {
                Elem::F32 => self.each::<f32>(env),
                Elem::F64 => self.each::<f64>(env),
                Elem::I32 => self.each::<i32>(env),
                Elem::U32 => self.each::<u32>(env),
            }
        }
    }

    unsafe fn each<T: LineElement>(&self, env: Env) {
        let (n, len) = (self.n, self.n * self.count);
        if len == 0 {
            return;
        }
        let dst = env.at(self.dst);
        // SAFETY: `Step::each_span` gives `count` lines of n elements of either type, aligned for it.
        unsafe {
            let x = from_raw_parts(env.at(self.src).cast::<T>(), len);
            match self.op {
                LineOp::Argsort => orders(n, x, from_raw_parts_mut(dst.cast::<i32>(), len)),
                op => line(op, n, x, from_raw_parts_mut(dst.cast::<T>(), len)),
            }
        }
    }
}
