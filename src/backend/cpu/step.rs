//! Steps of a plan: they read and write addresses relative to a few bases.
//!
//! During compilation the base of a [`Loc`] is the number of a buffer. The memory plan replaces it by one of
//! the run's bases (the arena, the pool of constants, an input, an output, a constant array), and a run only
//! adds the offset.
//! Steps refer to kernels, not to nodes.

use super::cond::Cond;
use super::conv::Conv;
use super::copy::{Gather, Move, Random, ScatterAdd, TransposeCopy};
use super::dot::Dot;
use super::loops::{Rev, Scan, Solve};
use super::observe::Observe;
use super::program::Program;
use super::sequence::Loop;
use super::tiles::Tiles;
use super::totals::Later;

/// An address: a base and an offset in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Loc {
    pub base: u32,
    pub offset: usize,
}

/// Whether a step reads or writes a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

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
    Later(Later),
    Random(Random),
    Observe(Observe),
    Solve(Box<Solve>),
    Scan(Box<Scan>),
    Rev(Box<Rev>),
    Loop(Box<Loop>),
    Tiles(Box<Tiles>),
    Cond(Box<Cond>),
}

impl Step {
    /// Visits each location that the step uses.
    pub fn each_loc(&mut self, f: &mut dyn FnMut(&mut Loc, Access)) {
        match self {
            Step::Strip(p) => p.each_loc(f),
            Step::Move(m) => m.each_loc(f),
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
            Step::Dot(d) => d.each_loc(f),
            Step::Conv(c) => c.each_loc(f),
            Step::Later(l) => l.each_loc(f),
            Step::Random(r) => {
                f(&mut r.key, Access::Read);
                f(&mut r.start, Access::Read);
                f(&mut r.dst, Access::Write);
            }
            Step::Observe(o) => {
                f(&mut o.src, Access::Read);
                f(&mut o.dst, Access::Write);
            }
            Step::Solve(s) => s.each_loc(f),
            Step::Scan(s) => s.each_loc(f),
            Step::Rev(r) => r.each_loc(f),
            Step::Loop(l) => l.each_loc(f),
            Step::Tiles(t) => t.each_loc(f),
            Step::Cond(c) => c.each_loc(f),
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
            Step::Later(l) => l.cost(),
            Step::Random(r) => Cost { flops: 0, bytes: 4 * r.len },
            Step::Observe(o) => Cost { flops: 0, bytes: 2 * o.ty.bytes() },
            Step::Solve(_)
            | Step::Scan(_)
            | Step::Rev(_)
            | Step::Loop(_)
            | Step::Tiles(_)
            | Step::Cond(_) => Cost::default(),
        }
    }
}

/// The cost of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    pub flops: usize,
    pub bytes: usize,
}

/// The addresses of one run.
#[derive(Clone, Copy)]
pub(crate) struct Env {
    /// The bases that locations refer to.
    pub bases: *const *mut u8,
    /// Registers of strip programs.
    pub scratch: *mut u8,
    /// The table of addresses of a strip program: its registers and operands.
    pub table: *mut *mut u8,
}

impl Env {
    /// The address of a location.
    ///
    /// # Safety
    /// The base exists and the offset lies within it.
    #[inline(always)]
    pub unsafe fn at(&self, loc: Loc) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { (*self.bases.add(loc.base as usize)).add(loc.offset) }
    }
}
