//! What a plan computes and needs, for people and tests.

use super::loop_report::LoopReport;
use super::memory_plan::MemoryPlan;
use super::step::{Cost, Step};
use std::fmt;

/// What a plan computes and needs; independent of the number of threads.
///
/// What loops and tiles do is reported once for each of their bodies, since how often a body runs is
/// known only when it has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanReport {
    /// Kernels called in a run, bodies not counted.
    pub kernels: usize,
    /// Floating-point operations of a run, a function such as exp counted as one.
    pub flops: usize,
    /// Bytes that kernels read and write.
    pub bytes_moved: usize,
    /// Bytes of workspace: intermediate values and registers, those of one run of each body included.
    pub arena_bytes: usize,
    /// What intermediate values would take if no two shared bytes.
    pub arena_bytes_without_reuse: usize,
    /// The largest sum of intermediate values that live at one step, likewise with registers and bodies: no
    /// arrangement needs less for this order of steps.
    pub arena_bytes_live: usize,
    /// Bytes of a state and the most states that are kept, for each tape of a loop and each backward pass.
    pub tapes: Vec<(usize, usize)>,
    /// For the tapes of loops, in the order of `tapes`: bytes that a step leaves beside its state for its derivative, and
    /// the bytes that these and the states may take together.
    pub residuals: Vec<(usize, usize)>,
    /// How each loop that has a backward pass keeps its states.
    pub loops: Vec<LoopReport>,
    /// How often this runs in a run of what it is a body of, where that is known before: tiles; 1 for a loop.
    pub trips: usize,
    /// The bodies of loops and tiles: what they are and what one trip does.
    pub bodies: Vec<(&'static str, PlanReport)>,
    /// Which workspaces this runs in, of those of what it is a body of.
    pub(crate) spaces: Vec<Space>,
}

/// A workspace within that of a plan, by its number among those of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Body(usize),
    /// One for each worker.
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
    /// This plan behind one that runs before it, `trips` times, as a body.
    pub fn after(mut self, name: &'static str, before: PlanReport, trips: usize) -> PlanReport {
        self.arena_bytes += before.arena_bytes;
        self.arena_bytes_without_reuse += before.arena_bytes_without_reuse;
        self.arena_bytes_live += before.arena_bytes_live;
        self.bodies.push((name, PlanReport { trips, ..before }));
        self
    }

    /// The most bytes that its loops keep for their backward passes, those in bodies too, in solves of at most `steps`
    /// steps.
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
            "{:indent$}{name}: {kernels} kernels, {flops} flops, {bytes_moved} bytes moved, \
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
