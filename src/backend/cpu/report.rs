//! Cost and memory of a plan, for people and tests.

use super::address::Cost;
use super::loop_report::LoopReport;
use crate::backend::cpu::compile::memory_plan::MemoryPlan;
use crate::backend::cpu::run::step::Step;
use std::fmt;

/// The cost and memory of a plan, independent of the number of threads.
///
/// The cost of a body is the cost of one trip, because the number of trips of a loop is known only after a
/// run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanReport {
    /// Kernels per run, without the kernels of bodies; a loop, a conditional or the tiles of an operation
    /// count as one.
    pub kernels: usize,
    /// Floating-point operations per run, without those of bodies; a function such as exp counts as one.
    pub flops: usize,
    /// Bytes that kernels read and write per run, without the kernels of bodies.
    pub bytes_moved: usize,
    /// Workspace bytes: intermediate values and registers, including those of one run of each body.
    pub arena_bytes: usize,
    /// `arena_bytes` if no two intermediate values shared bytes.
    pub arena_bytes_without_reuse: usize,
    /// A lower bound of `arena_bytes` for this order of steps: the largest total of intermediate values alive
    /// at one step, with registers and bodies.
    pub arena_bytes_live: usize,
    /// Bytes of a state and the maximum number of stored states, for each tape of a loop and each backward
    /// pass.
    pub tapes: Vec<(usize, usize)>,
    /// For the tapes of loops, in the order of `tapes`: bytes of residuals per step, and the joint budget of
    /// states and residuals.
    pub residuals: Vec<(usize, usize)>,
    /// How each loop with a backward pass stores its states.
    pub loops: Vec<LoopReport>,
    /// Number of runs of this body per run of its parent: the number of full tiles for a body of tiles, the
    /// `trips` of a report that [`PlanReport::after`] added, else 1.
    pub trips: usize,
    /// The bodies of loops, tiles and conditionals: name and cost of one trip.
    pub bodies: Vec<(&'static str, PlanReport)>,
    /// The workspaces that this body runs in, inside the workspace of its parent.
    pub(crate) spaces: Vec<Space>,
}

/// A workspace inside the workspace of a plan, by its index in the list of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Body(usize),
    /// A group of workspaces, one per worker.
    Tiles(usize),
    LastTile(usize),
}

pub(crate) fn report(
    steps: &[Step],
    memory: &MemoryPlan,
    scratch_bytes: usize,
    (tapes, residuals): (Vec<(usize, usize)>, Vec<(usize, usize)>),
    loops: Vec<LoopReport>,
    bodies: Vec<(&'static str, PlanReport)>,
) -> PlanReport {
    let cost = steps
        .iter()
        .map(Step::cost)
        .fold(Cost::default(), |a, b| Cost { flops: a.flops + b.flops, bytes: a.bytes + b.bytes });
    PlanReport {
        kernels: steps.len(),
        flops: cost.flops,
        bytes_moved: cost.bytes,
        arena_bytes: memory.bytes + scratch_bytes + bodies.iter().map(|(_, b)| b.arena_bytes).sum::<usize>(),
        arena_bytes_without_reuse: memory.without_reuse
            + scratch_bytes
            + bodies.iter().map(|(_, b)| b.arena_bytes_without_reuse).sum::<usize>(),
        arena_bytes_live: memory.bound
            + scratch_bytes
            + bodies.iter().map(|(_, b)| b.arena_bytes_live).sum::<usize>(),
        tapes,
        residuals,
        loops,
        trips: 1,
        bodies,
        spaces: vec![],
    }
}

impl PlanReport {
    /// Adds the report `before` as a body of this plan that runs `trips` times before it.
    pub fn after(mut self, name: &'static str, before: PlanReport, trips: usize) -> PlanReport {
        self.arena_bytes += before.arena_bytes;
        self.arena_bytes_without_reuse += before.arena_bytes_without_reuse;
        self.arena_bytes_live += before.arena_bytes_live;
        self.bodies.push((name, PlanReport { trips, ..before }));
        self
    }

    /// The maximum number of bytes that the loops of the plan store for backward passes, including those in
    /// bodies, in solves of at most `steps` steps.
    pub fn kept_bytes(&self, steps: usize) -> usize {
        let own = self.tapes.iter().enumerate().map(|(i, &(bytes, slots))| {
            let states = bytes * slots.min(steps + 1);
            let beside =
                |&(bytes, budget): &(usize, usize)| (bytes * steps).min(budget.saturating_sub(states));
            states + self.residuals.get(i).map_or(0, beside)
        });
        own.sum::<usize>() + self.bodies.iter().map(|(_, body)| body.kept_bytes(steps)).sum::<usize>()
    }

    fn lines(&self, f: &mut fmt::Formatter<'_>, name: &str, depth: usize) -> fmt::Result {
        let Self { kernels, flops, bytes_moved, arena_bytes, arena_bytes_without_reuse, bodies, .. } = self;
        writeln!(
            f,
            "{:indent$}{name}: {kernels} kernels, {flops} flops, {bytes_moved} bytes of memory traffic, \
             {arena_bytes} bytes of workspace ({arena_bytes_without_reuse} without reuse)",
            "",
            indent = 2 * depth
        )?;
        for kept in &self.loops {
            writeln!(f, "{:indent$}states: {kept}", "", indent = 2 * depth + 2)?;
        }
        bodies.iter().try_for_each(|(name, body)| body.lines(f, name, depth + 1))
    }
}

impl fmt::Display for PlanReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines(f, "plan", 0)
    }
}
