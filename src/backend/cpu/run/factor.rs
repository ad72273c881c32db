//! Steps that factor matrices.

use crate::backend::cpu::address::{Address, Cost, Env};
use crate::backend::cpu::kernels::{
    Elem, Scalar, cholesky, cholesky_work, eigh, eigh_work, lu, lu_work, qr, qr_work, room,
};
use crate::graph::FactorOp;
use crate::simd::Level;
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// Factors `count` matrices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Factor {
    pub op: FactorOp,
    pub src: Address,
    pub dst: Address,
    /// [`room`](Self::room) numbers.
    pub work: Address,
    pub double: bool,
    /// Rows and columns of a matrix.
    pub sides: [usize; 2],
    pub count: usize,
}

/// Bytes of a float.
pub(super) fn size(double: bool) -> usize {
    if double { Elem::F64 } else { Elem::F32 }.size()
}

/// The address of working memory; any aligned one if it has no bytes, because the arena may then have none there.
pub(super) fn memory<T>(env: Env, at: Address, room: usize) -> *mut T {
    if room == 0 { std::ptr::NonNull::dangling().as_ptr() } else { env.at(at).cast() }
}

impl Factor {
    /// The numbers that the kernel uses as working memory.
    pub fn room(op: FactorOp, [rows, columns]: [usize; 2], count: usize) -> usize {
        let work = match op {
            FactorOp::Lu => lu_work(rows),
            FactorOp::Cholesky => cholesky_work(rows),
            FactorOp::Qr => qr_work((rows, columns)),
            FactorOp::Eigh => eigh_work(rows),
        };
        room(work, count)
    }

    /// The numbers of a matrix, and of its factors.
    pub fn sizes(&self) -> [usize; 2] {
        let [rows, columns] = self.sides;
        [rows * columns, self.op.rows(self.sides) * columns]
    }

    pub fn cost(&self) -> Cost {
        let ([rows, columns], k) = (self.sides, self.sides[0].min(self.sides[1]));
        let products = match self.op {
            FactorOp::Lu => 2 * rows * rows * rows / 3,
            FactorOp::Cholesky => rows * rows * rows / 3,
            // R, and as much for Q.
            FactorOp::Qr => 4 * k * k * (rows.max(columns) - k / 3),
            // The reduction to three diagonals, its reflections, and two rotations for each pair of rows.
            FactorOp::Eigh => 12 * rows * rows * rows,
        };
        let bytes = self.sizes().iter().sum::<usize>() * size(self.double);
        Cost { flops: self.count * products, bytes: self.count * bytes }
    }

    /// # Safety
    /// The locations are valid for the lengths, and aligned; they do not overlap.
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
        let (count, [rows, columns]) = (self.count, self.sides);
        let [from, to] = self.sizes().map(|size| size * count);
        if to == 0 {
            return;
        }
        let room = Self::room(self.op, self.sides, count);
        // SAFETY: `Step::each_span` gives `count` matrices, as many results, and the working memory, aligned for T. The arena
        // is initialized memory, and all bits are floats.
        let (a, out, work) = unsafe {
            let [a, out] = [self.src, self.dst].map(|at| env.at(at).cast::<T>());
            let work = memory(env, self.work, room);
            (from_raw_parts(a, from), from_raw_parts_mut(out, to), from_raw_parts_mut(work, room))
        };
        match self.op {
            FactorOp::Lu => lu(level, rows, a, out, work),
            FactorOp::Cholesky => cholesky(level, rows, a, out, work),
            FactorOp::Qr => qr(level, (rows, columns), a, out, work),
            FactorOp::Eigh => eigh(level, rows, a, out, work),
        }
    }
}
