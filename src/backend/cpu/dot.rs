//! Matrix products.

use super::kernels::{Elem, Gemm, gemm_f32, gemm_f64};
use super::step::{Cost, Env, Loc};
use crate::simd::Level;

/// `C = A B`: A with any strides, rows of B and C without gaps inside.
#[derive(Clone, Debug)]
pub(crate) struct Dot {
    pub a: Loc,
    pub b: Loc,
    pub c: Loc,
    pub double: bool,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub rsa: usize,
    pub csa: usize,
    pub ldb: usize,
    pub ldc: usize,
}

impl Dot {
    pub fn cost(&self) -> Cost {
        let elem = if self.double { Elem::F64 } else { Elem::F32 };
        let Dot { m, n, k, .. } = *self;
        Cost { flops: 2 * m * n * k, bytes: (m * k + k * n + m * n) * elem.size() }
    }

    /// # Safety
    /// The locations are valid for the shapes, the written one overlaps no other, and the level is
    /// available.
    pub unsafe fn run(&self, env: Env, level: Level) {
        let Dot { m, n, k, rsa, csa, ldb, ldc, .. } = *self;
        let shape = Gemm { m, n, k, rsa, csa, ldb, ldc, accumulate: false };
        // SAFETY: the caller's promise.
        unsafe {
            let (a, b, c) = (env.at(self.a), env.at(self.b), env.at(self.c));
            if self.double {
                gemm_f64(level, &shape, a.cast(), b.cast(), c.cast());
            } else {
                gemm_f32(level, &shape, a.cast(), b.cast(), c.cast());
            }
        }
    }
}
