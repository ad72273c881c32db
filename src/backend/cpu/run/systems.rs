//! Steps that solve linear systems. Of systems with factors, they do not read the matrices.

use super::factor::{memory, size};
use crate::backend::cpu::address::{Address, Cost, Env};
use crate::backend::cpu::kernels::{Scalar, Sides, lu_solve, room_beside, solve_work, triangular_solve};
use crate::graph::Triangle;
use crate::simd::Level;
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// What the matrices of systems are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Matrices {
    /// LU factors with a row for the permutation.
    Factors { transposed: bool },
    /// Triangles of matrices.
    Triangles(Triangle),
}

/// Solves `count` groups of systems.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Systems {
    pub of: Matrices,
    pub matrices: Address,
    pub b: Address,
    pub dst: Address,
    /// [`room`](Self::room) numbers.
    pub work: Address,
    pub double: bool,
    pub sides: Sides,
    pub count: usize,
}

impl Systems {
    /// The numbers that the kernel uses as working memory.
    pub fn room(sides: Sides, count: usize) -> usize {
        room_beside(solve_work(sides), count)
    }

    /// The numbers that describe one matrix.
    pub fn size(&self) -> usize {
        let n = self.sides.n;
        match self.of {
            Matrices::Factors { .. } => (n + 1) * n,
            Matrices::Triangles(_) => n * n,
        }
    }

    pub fn cost(&self) -> Cost {
        let (Sides { n, m }, count) = (self.sides, self.count);
        let products = match self.of {
            Matrices::Factors { .. } => 2 * n * n * m,
            Matrices::Triangles(_) => n * n * m,
        };
        Cost { flops: count * products, bytes: count * (self.size() + 2 * m * n) * size(self.double) }
    }

    /// # Safety
    /// The locations are valid for the lengths, and aligned; result and working memory overlap nothing else.
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
        let (Sides { n, m }, count) = (self.sides, self.count);
        if n * m * count == 0 {
            return;
        }
        let room = Self::room(self.sides, count);
        // SAFETY: `Step::each_span` gives the matrices, right-hand sides and solutions of `count` groups, and the working memory,
        // aligned for T. The arena is initialized memory, and all bits are floats.
        let (matrices, b, out) = unsafe {
            let [matrices, b, x] = [self.matrices, self.b, self.dst].map(|at| env.at(at).cast::<T>());
            let (len, work) = (count * n * m, memory(env, self.work, room));
            let out = (from_raw_parts_mut(x, len), from_raw_parts_mut(work, room));
            (from_raw_parts(matrices, count * self.size()), from_raw_parts(b, len), out)
        };
        match self.of {
            Matrices::Factors { transposed } => lu_solve(level, (self.sides, transposed), matrices, b, out),
            Matrices::Triangles(triangle) => {
                triangular_solve(level, (self.sides, triangle), matrices, b, out);
            }
        }
    }
}
