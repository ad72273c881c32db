//! Runs plans. A run binds addresses and calls kernels in order, without look-ups. [`Plan`] states when it
//! allocates nothing.

use super::loops::{LoopSpace, Restorer};
use super::step::Step;
use super::tape::{Schedule, Slots, Tape};
use super::tiles::TileSpace;
use crate::array::Array;
use crate::backend::cpu::address::{Bound, Env};
#[cfg(debug_assertions)]
use crate::backend::cpu::compile::extents::Span;
use crate::backend::cpu::compile::lower_loops::Spaces;
use crate::backend::cpu::memory::{Storage, aligned};
use crate::backend::cpu::plan::{ARENA, INPUTS, Inner, Plan};
use crate::backend::{Counters, LoopRun};
use crate::graph::Type;
use crate::simd::denormals::Denormals;
use std::ptr::null_mut;
use std::sync::Arc;

/// Memory that a run writes besides its outputs: intermediate values, registers, addresses, and the states
/// that loops store.
///
/// The caller owns it and can use it for many runs. A workspace works for any plan: its memory is allocated
/// for the first plan that it runs, and again if the next run has another plan.
#[derive(Default)]
pub struct Workspace {
    pub(crate) plan: Option<Plan>,
    arena: Option<Storage>,
    pub(crate) bases: Vec<Bound>,
    table: Vec<*mut u8>,
    pub(crate) loops: LoopSpace,
    pub(crate) tiles: Vec<TileSpace>,
}

// SAFETY: the addresses are derived from the arguments of a run and are used only during this run.
unsafe impl Send for Workspace {}

impl Workspace {
    /// An empty workspace.
    pub fn new() -> Workspace {
        Workspace::default()
    }

    /// A workspace with the memory that a plan needs.
    pub fn of(plan: &Plan) -> Workspace {
        let mut ws = Workspace::new();
        ws.prepare(plan);
        ws
    }

    /// Counts of the loops in the last run: sums over all bodies and tiles, and the maximum of
    /// `states_kept_max`.
    pub fn counters(&self) -> Counters {
        let mut sum = self.loops.counters;
        self.each_inner(&mut |ws| {
            let Counters { attempts, accepted, recomputed, recomputed_residuals, states_kept_max } =
                ws.loops.counters;
            sum.attempts += attempts;
            sum.accepted += accepted;
            sum.recomputed += recomputed;
            sum.recomputed_residuals += recomputed_residuals;
            sum.states_kept_max = sum.states_kept_max.max(states_kept_max);
        });
        sum
    }

    /// Number of step times in the schedules of the last run, excluding those of bodies.
    #[cfg(test)]
    pub fn num_step_times(&self) -> usize {
        self.loops.schedules.iter().map(|s| s.step_times.len()).sum()
    }

    fn each_inner(&self, f: &mut dyn FnMut(&Workspace)) {
        let tiles = self.tiles.iter().flat_map(|t| t.workers.iter().chain([&t.tail]));
        for ws in self.loops.inner.iter().chain(tiles) {
            f(ws);
            ws.each_inner(f);
        }
    }

    fn reset_counters(&mut self) {
        self.loops.counters = Counters::default();
        self.loops.tapes.iter_mut().for_each(|tape| tape.run = LoopRun::default());
        self.loops.restorers.iter_mut().for_each(|of| (of.recomputed, of.recomputed_residuals) = (0, 0));
        let tiles = self.tiles.iter_mut().flat_map(|t| t.workers.iter_mut().chain([&mut t.tail]));
        self.loops.inner.iter_mut().chain(tiles).for_each(Workspace::reset_counters);
    }

    /// Allocates the memory that a plan needs, unless the last run had the same plan.
    pub(crate) fn prepare(&mut self, plan: &Plan) {
        if self.plan.as_ref().is_some_and(|p| Arc::ptr_eq(&p.0, &plan.0)) {
            return;
        }
        let inner = &plan.0;
        let arena = Storage::new("workspace", aligned(inner.arena_bytes) + inner.scratch_bytes);
        self.bases = vec![Bound::NONE; inner.num_bases()];
        let first = inner.first_output() + inner.outputs.len();
        // SAFETY: the workspace owns the arena, and the plan, which the workspace holds, owns the pool and the
        // constant arrays. Steps write only the arena: `check_plan` has refused others.
        unsafe {
            self.bases[ARENA as usize] = Bound::new(arena.ptr(), inner.arena_bytes);
            self.bases[ARENA as usize + 1] = Bound::new(inner.pool.ptr(), inner.pool.bytes());
            for (k, array) in inner.consts.iter().enumerate() {
                self.bases[first + k] = Bound::new(array.data().as_ptr().cast_mut(), array.bytes());
            }
        }
        self.table = vec![null_mut(); inner.slots];
        let Spaces { inner: bodies, tapes, restorers, sequences, schedules, tiles } = &inner.spaces;
        self.loops = LoopSpace {
            schedules: (0..*schedules).map(|_| Schedule::default()).collect(),
            tapes: tapes.iter().map(|&shape| Tape::new(shape)).collect(),
            sequences: sequences.iter().map(|&bytes| Slots::new(bytes, usize::MAX)).collect(),
            restorers: restorers.iter().map(|&(bytes, num)| Restorer::new(bytes, num)).collect(),
            inner: bodies.iter().map(Workspace::of).collect(),
            counters: Counters::default(),
        };
        self.tiles = (0..*tiles).map(|_| TileSpace::default()).collect();
        self.arena = Some(arena);
        self.plan = Some(plan.clone());
    }
}

impl Plan {
    /// Runs the plan on arrays.
    ///
    /// # Panics
    /// If an array does not have the type that the plan expects.
    pub fn run_arrays(&self, ws: &mut Workspace, inputs: &[&Array], outputs: &mut [Array]) {
        check("input", &self.0.inputs, inputs.iter().copied());
        check("output", &self.0.outputs, outputs.iter());
        ws.prepare(self);
        ws.reset_counters();
        let inner = &*self.0;
        let _mode = Denormals::flushed();
        // SAFETY: the arrays have the sizes of the types, as `check` has asserted. Outputs are borrowed
        // exclusively, and `check_plan` has refused steps that write an input.
        unsafe {
            for (k, a) in inputs.iter().enumerate() {
                ws.bases[INPUTS as usize + k] = Bound::new(a.data().as_ptr().cast_mut(), a.bytes());
            }
            for (k, a) in outputs.iter_mut().enumerate() {
                let bytes = a.bytes();
                ws.bases[inner.first_output() + k] = Bound::new(a.data_mut().as_mut_ptr(), bytes);
            }
            execute(inner, ws);
        }
    }
}

fn check<'a>(what: &str, types: &[Type], arrays: impl ExactSizeIterator<Item = &'a Array>) {
    assert_eq!(arrays.len(), types.len(), "invariant: the plan has {} {what}s", types.len());
    for (k, (a, ty)) in arrays.zip(types).enumerate() {
        let fits = matches!(ty, Type::Array { dtype, shape } if a.dtype() == *dtype && a.shape() == shape);
        assert!(fits, "invariant: {what} {k} is {}{}, the plan expects {ty}", a.dtype(), a.shape());
    }
}

/// # Safety
/// Each base is bound to memory that is readable, and writable where steps write, for the bytes of its buffer, and
/// aligned for its elements. An output overlaps no other output and no input, except that the last inputs hold the sums over
/// runs and are the memory of these outputs. The thread flushes denormals.
pub(crate) unsafe fn execute(inner: &Inner, ws: &mut Workspace) {
    // The registers follow the arena in the same allocation.
    let scratch = ws.bases[ARENA as usize].ptr().wrapping_add(aligned(inner.arena_bytes));
    // SAFETY: the bases are those of `inner`, whose steps use them below.
    let env = unsafe { Env::new(ws.bases.as_ptr(), scratch, ws.table.as_mut_ptr()) };
    for (i, step) in inner.steps.iter().enumerate() {
        check_bound(inner, i, &ws.bases);
        // SAFETY: `check_plan` has checked that what the step uses lies inside of the plan's bases, was written
        // before and does not overlap what it writes, and the bases are bound to memory of these lengths.
        // `Plan::of_body` has asserted that the level is available.
        unsafe {
            match step {
                Step::Strip(p) => p.run(env),
                Step::Move(m) => m.run(env),
                Step::TransposeCopy(t) => t.run(env, inner.level),
                Step::Gather(g) => g.run(env),
                Step::Scatter(s) => s.run(env, inner.level),
                Step::Dot(d) => d.run(env, inner.level),
                Step::Conv(c) => c.run(env, inner.level),
                Step::DeferredProduct(l) => l.run(env, inner.level),
                Step::Lines(l) => l.run(env),
                Step::Factor(f) => f.run(env, inner.level),
                Step::Systems(s) => s.run(env, inner.level),
                Step::Random(r) => r.run(env, inner.level),
                Step::Observe(o) => o.run(env),
                Step::Solve(s) => ws.loops.solve(s, env),
                Step::Replay(l) => ws.loops.replay(l, env),
                Step::Cond(c) => c.run(env, &mut ws.loops.inner),
                Step::Tiles(t) => t.run(env, &mut ws.tiles[t.space]),
            }
        }
    }
}

/// In debug builds, checks that step `i` stays inside of what is bound, and that its addresses are aligned.
#[cfg(debug_assertions)]
fn check_bound(inner: &Inner, i: usize, bases: &[Bound]) {
    for Span { at, extent } in inner.spans.step(i).iter().filter(|span| span.extent.bytes > 0) {
        let (base, bytes) = (bases[at.base as usize], extent.bytes);
        let is_inside = at.offset.checked_add(bytes).is_some_and(|end| end <= base.bytes());
        let is_aligned = (base.ptr().addr() + at.offset).is_multiple_of(extent.align);
        assert!(
            is_inside && is_aligned,
            "invariant: step {i} ({}) uses {extent:?} at {at:?}, which is bound to {base:?}",
            inner.steps[i].name()
        );
    }
}

#[cfg(not(debug_assertions))]
fn check_bound(_: &Inner, _: usize, _: &[Bound]) {}
