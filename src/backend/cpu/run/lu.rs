//! Steps that factor matrices and solve linear systems. They do not read the matrices of the systems, only the factors.

use crate::backend::cpu::address::{Address, Cost, Env};
use crate::backend::cpu::kernels::{Elem, Scalar, Systems, factor, solve};
use crate::simd::Level;
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// Factors `count` matrices of order n.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lu {
    pub src: Address,
    pub dst: Address,
    pub double: bool,
    pub n: usize,
    pub count: usize,
}

/// Solves `count` groups of systems.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LuSolve {
    pub factors: Address,
    pub b: Address,
    pub dst: Address,
    pub double: bool,
    pub systems: Systems,
    pub count: usize,
}

fn size(double: bool) -> usize {
    if double { Elem::F64 } else { Elem::F32 }.size()
}

impl Lu {
    pub fn cost(&self) -> Cost {
        let Lu { n, count, .. } = *self;
        Cost { flops: count * (2 * n * n * n / 3), bytes: count * (2 * n + 1) * n * size(self.double) }
    }

    /// # Safety
    /// The locations are valid for the lengths, and aligned; the result does not overlap the matrices.
    pub unsafe fn run(&self, env: Env, level: Level) {
        // SAFETY: by the caller.
        unsafe {
            match self.double {
                true => self.factor::<f64>(env, level),
                false => self.factor::<f32>(env, level),
            }
        }
    }

    unsafe fn factor<T: Scalar>(&self, env: Env, level: Level) {
        let Lu { n, count, .. } = *self;
        if n * count == 0 {
            return;
        }
        // SAFETY: `Step::each_span` gives `count` matrices, and as many results with one row more, aligned for T.
        let (a, out) = unsafe {
            let (a, out) = (env.at(self.src).cast::<T>(), env.at(self.dst).cast::<T>());
            (from_raw_parts(a, count * n * n), from_raw_parts_mut(out, count * (n + 1) * n))
        };
        factor(level, n, a, out);
    }
}

impl LuSolve {
    pub fn cost(&self) -> Cost {
        let (Systems { n, m, .. }, count) = (self.systems, self.count);
        Cost { flops: count * 2 * n * n * m, bytes: count * (n + 1 + 2 * m) * n * size(self.double) }
    }

    /// # Safety
    /// As for [`Lu::run`].
    pub unsafe fn run(&self, env: Env, level: Level) {
        // SAFETY: by the caller.
        unsafe {
            match self.double {
                true => self.solve::<f64>(env, level),
                false => self.solve::<f32>(env, level),
            }
        }
    }

    unsafe fn solve<T: Scalar>(&self, env: Env, level: Level) {
        let (Systems { n, m, .. }, count) = (self.systems, self.count);
        if n * m * count == 0 {
            return;
        }
        // SAFETY: `Step::each_span` gives the factors, right-hand sides and solutions of `count` groups, aligned for T.
        let (factors, b, x) = unsafe {
            let [factors, b, x] = [self.factors, self.b, self.dst].map(|at| env.at(at).cast::<T>());
            let len = count * n * m;
            (from_raw_parts(factors, count * (n + 1) * n), from_raw_parts(b, len), from_raw_parts_mut(x, len))
        };
        solve(level, self.systems, factors, b, x);
    }
}
