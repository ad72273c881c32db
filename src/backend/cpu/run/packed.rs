//! Weights of the products in a loop, packed for the tiles when the loop starts.
//!
//! A captured value is the same in all trips. A product whose right operand is captured therefore uses a copy
//! in the layout of its tiles ([`crate::backend::cpu::kernels::pack`]). The copies are in the body's arena and serve all
//! trips.

use super::bind::Body;
use crate::backend::cpu::address::{Address, Env};
use crate::backend::cpu::kernels::{pack, packed_len};
use crate::simd::Level;

/// A right operand of products and its packed copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed {
    pub from: Address,
    pub to: Address,
    /// Rows, columns, and the distance between rows of `from`.
    pub shape: (usize, usize, usize),
    pub double: bool,
}

impl Packed {
    /// Bytes of the copy.
    pub fn bytes(level: Level, (k, n, _): (usize, usize, usize), double: bool) -> usize {
        packed_len(level, double, k, n) * if double { size_of::<f64>() } else { size_of::<f32>() }
    }

    fn run(&self, env: Env, level: Level) {
        // SAFETY: `check_plan` has checked both spans, which `Packed::each_span` gives. The copy is in the body's
        // own arena.
        unsafe { pack(level, self.double, self.shape, env.at(self.from), env.at(self.to)) }
    }
}

impl Body<'_> {
    /// Packs the captured values, which must be bound.
    pub fn pack(&mut self) {
        let inner = &self.plan.0;
        inner.packed.iter().for_each(|packed| packed.run(self.bound(), inner.level));
    }
}
