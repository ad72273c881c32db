//! Runs plans. A run binds addresses and calls kernels in order, without look-ups. [`Plan`] states when it
//! allocates nothing.

use super::loops::{LoopSpace, Restorer};
use super::step::Step;
use super::tape::{Schedule, Slots, Tape};
use super::tiles::TileSpace;
use crate::array::Array;
use crate::backend::cpu::address::Env;
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
    pub(crate) bases: Vec<*mut u8>,
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
        self.bases = vec![null_mut(); inner.num_bases()];
        self.bases[ARENA as usize] = arena.ptr();
        self.bases[ARENA as usize + 1] = inner.pool.ptr();
        let first = inner.first_output() + inner.outputs.len();
        for (k, array) in inner.consts.iter().enumerate() {
            self.bases[first + k] = array.data().as_ptr().cast_mut();
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
        for (k, a) in inputs.iter().enumerate() {
            ws.bases[INPUTS as usize + k] = a.data().as_ptr().cast_mut();
        }
        for (k, a) in outputs.iter_mut().enumerate() {
            ws.bases[inner.first_output() + k] = a.data_mut().as_mut_ptr();
        }
        let _mode = Denormals::flushed();
        // SAFETY: the arrays have the types' sizes, outputs are borrowed exclusively, and no kernel
        // writes through the address of an input.
        unsafe { execute(inner, ws) }
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
/// aligned for its elements. An output overlaps no other output and no input. The thread flushes denormals.
pub(crate) unsafe fn execute(inner: &Inner, ws: &mut Workspace) {
    let arena = ws.bases[ARENA as usize];
    // SAFETY: the registers follow the arena in the same allocation.
    let scratch = unsafe { arena.add(aligned(inner.arena_bytes)) };
    let env = Env { bases: ws.bases.as_ptr(), scratch, table: ws.table.as_mut_ptr() };
    for step in &inner.steps {
        // SAFETY: locations were laid out for this plan's buffers, and the caller guarantees that its buffers
        // are valid.
        unsafe {
            match step {
                Step::Strip(p) => p.run(env),
                Step::Move(m) => m.run(env),
                Step::TransposeCopy(t) => t.run(env, inner.level),
                Step::Gather(g) => g.run(env),
                Step::ScatterAdd(s) => s.run(env, inner.level),
                Step::Dot(d) => d.run(env, inner.level),
                Step::Conv(c) => c.run(env, inner.level),
                Step::DeferredProduct(l) => l.run(env, inner.level),
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
