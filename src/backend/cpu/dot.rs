//! Matrix products.

use super::kernels::Elem;
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
    pub unsafe fn run(&self, env: Env, _level: Level) {
        // SAFETY: the caller's promise.
        unsafe {
            if self.double {
                self.plain::<f64>(env);
            } else {
                self.plain::<f32>(env);
            }
        }
    }

    unsafe fn plain<T: Copy + Default + std::ops::Add<Output = T> + std::ops::Mul<Output = T>>(&self, env: Env) {
        // SAFETY: as for `run`.
        unsafe {
            let (a, b, c) = (env.at(self.a).cast::<T>(), env.at(self.b).cast::<T>(), env.at(self.c).cast::<T>());
            for i in 0..self.m {
                for j in 0..self.n {
                    let mut sum = T::default();
                    for l in 0..self.k {
                        sum = sum + *a.add(i * self.rsa + l * self.csa) * *b.add(l * self.ldb + j);
                    }
                    *c.add(i * self.ldc + j) = sum;
                }
            }
        }
    }
}
