//! Steps of a plan: they read and write [addresses](crate::backend::cpu::address). Steps refer to kernels, not to
//! nodes.

use super::cond::Cond;
use super::conv::Conv;
use super::copy::{Gather, Move, Random, Scatter, TransposeCopy};
use super::dot::Dot;
use super::factor::Factor;
use super::lines::Lines;
use super::loops::Solve;
use super::observe::Observe;
use super::program::Program;
use super::replay::Replay;
use super::systems::Systems;
use super::tiles::Tiles;
use super::totals::DeferredProduct;
use crate::backend::cpu::address::Cost;

/// One kernel.
#[derive(Debug)]
pub(crate) enum Step {
    Strip(Program),
    Move(Move),
    TransposeCopy(TransposeCopy),
    Gather(Gather),
    Scatter(Scatter),
    Dot(Dot),
    Conv(Conv),
    DeferredProduct(DeferredProduct),
    Lines(Lines),
    Factor(Factor),
    Systems(Systems),
    Random(Random),
    Observe(Observe),
    Solve(Box<Solve>),
    Replay(Box<Replay>),
    Tiles(Box<Tiles>),
    Cond(Box<Cond>),
}

impl Step {
    /// The kind of the step, for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Step::Strip(_) => "elementwise",
            Step::Move(_) => "copy",
            Step::TransposeCopy(_) => "transpose",
            Step::Gather(_) => "gather",
            Step::Scatter(_) => "scatter",
            Step::Dot(_) => "product",
            Step::Conv(_) => "convolution",
            Step::DeferredProduct(_) => "deferred product",
            Step::Lines(_) => "lines",
            Step::Factor(_) => "factorization",
            Step::Systems(_) => "linear systems",
            Step::Random(_) => "random words",
            Step::Observe(_) => "observer",
            Step::Solve(_) => "search",
            Step::Replay(_) => "replay",
            Step::Tiles(_) => "tiles",
            Step::Cond(_) => "conditional",
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
            Step::Scatter(s) => Cost { flops: s.num * s.len, bytes: 3 * s.num * s.len * s.elem.size() },
            Step::Dot(d) => d.cost(),
            Step::Conv(c) => c.cost(),
            Step::DeferredProduct(l) => l.cost(),
            Step::Lines(l) => l.cost(),
            Step::Factor(f) => f.cost(),
            Step::Systems(s) => s.cost(),
            Step::Random(r) => Cost { flops: 0, bytes: 4 * r.len },
            Step::Observe(o) => Cost { flops: 0, bytes: 2 * o.ty.bytes() },
            Step::Solve(_) | Step::Replay(_) | Step::Tiles(_) | Step::Cond(_) => Cost::default(),
        }
    }
}
