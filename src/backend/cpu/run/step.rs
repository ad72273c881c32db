//! Steps of a plan: they read and write [addresses](crate::backend::cpu::address). Steps refer to kernels, not to
//! nodes.

use super::cond::Cond;
use super::conv::Conv;
use super::copy::{Gather, Move, Random, ScatterAdd, TransposeCopy};
use super::dot::Dot;
use super::loops::Solve;
use super::observe::Observe;
use super::program::Program;
use super::replay::Replay;
use super::tiles::Tiles;
use super::totals::DeferredProduct;
use crate::backend::cpu::address::{Access, Address, Cost};

/// One kernel.
#[derive(Debug)]
pub(crate) enum Step {
    Strip(Program),
    Move(Move),
    TransposeCopy(TransposeCopy),
    Gather(Gather),
    ScatterAdd(ScatterAdd),
    Dot(Dot),
    Conv(Conv),
    DeferredProduct(DeferredProduct),
    Random(Random),
    Observe(Observe),
    Solve(Box<Solve>),
    Replay(Box<Replay>),
    Tiles(Box<Tiles>),
    Cond(Box<Cond>),
}

impl Step {
    /// Visits each location that the step uses.
    pub fn each_address(&mut self, f: &mut dyn FnMut(&mut Address, Access)) {
        match self {
            Step::Strip(p) => p.each_address(f),
            Step::Move(m) => m.each_address(f),
            Step::TransposeCopy(t) => {
                f(&mut t.src, Access::Read);
                f(&mut t.dst, Access::Write);
            }
            Step::Gather(g) => {
                f(&mut g.src, Access::Read);
                f(&mut g.index, Access::Read);
                f(&mut g.dst, Access::Write);
            }
            Step::ScatterAdd(s) => {
                f(&mut s.index, Access::Read);
                f(&mut s.updates, Access::Read);
                f(&mut s.dst, Access::Write);
            }
            Step::Dot(d) => d.each_address(f),
            Step::Conv(c) => c.each_address(f),
            Step::DeferredProduct(l) => l.each_address(f),
            Step::Random(r) => {
                f(&mut r.key, Access::Read);
                f(&mut r.start, Access::Read);
                f(&mut r.dst, Access::Write);
            }
            Step::Observe(o) => {
                f(&mut o.src, Access::Read);
                f(&mut o.dst, Access::Write);
            }
            Step::Solve(s) => s.each_address(f),
            Step::Replay(l) => l.each_address(f),
            Step::Tiles(t) => t.each_address(f),
            Step::Cond(c) => c.each_address(f),
        }
    }

    /// Floating-point operations, and bytes read and written, for the report. Bodies of loops, tiles and
    /// conditionals are reported separately.
    pub fn cost(&self) -> Cost {
        match self {
            Step::Strip(p) => p.cost(),
            Step::Move(m) => Cost { flops: 0, bytes: 2 * m.bytes() },
            Step::TransposeCopy(t) => {
                Cost { flops: 0, bytes: 2 * t.batch.count() * t.rows * t.cols * t.elem }
            }
            Step::Gather(g) => Cost { flops: 0, bytes: 2 * g.num * g.row },
            Step::ScatterAdd(s) => Cost { flops: s.num * s.len, bytes: 3 * s.num * s.len * s.elem.size() },
            Step::Dot(d) => d.cost(),
            Step::Conv(c) => c.cost(),
            Step::DeferredProduct(l) => l.cost(),
            Step::Random(r) => Cost { flops: 0, bytes: 4 * r.len },
            Step::Observe(o) => Cost { flops: 0, bytes: 2 * o.ty.bytes() },
            Step::Solve(_) | Step::Replay(_) | Step::Tiles(_) | Step::Cond(_) => Cost::default(),
        }
    }
}
