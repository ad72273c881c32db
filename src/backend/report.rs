//! Cost and memory of a compiled program, for people and tests. The types belong to no backend.

use super::loop_report::LoopReport;
use std::fmt;

/// The purpose of a body: a part of a program that the program runs any number of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyKind {
    /// One attempted step of a search.
    Attempt,
    /// One accepted step, run again forward along a schedule.
    Step,
    /// One accepted step, run again to restore a state that a backward pass needs.
    RestoringStep,
    /// One step of a backward pass that reads states.
    BackwardStep,
    /// The residuals of one accepted step, for a backward step that has no stored ones.
    Stages,
    /// One trip of another loop.
    Loop,
    /// The branch of a conditional whose condition is true.
    Then,
    /// The branch of a conditional whose condition is false.
    Otherwise,
    /// A tile of rows.
    Tile,
    /// The last tile, which has fewer rows.
    LastTile,
    /// The gradient of one shard, which an update runs before its own program.
    Gradient,
}

impl fmt::Display for BodyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BodyKind::Attempt => "attempt",
            BodyKind::Step | BodyKind::RestoringStep => "step",
            BodyKind::BackwardStep => "backward step",
            BodyKind::Stages => "stages",
            BodyKind::Loop => "loop",
            BodyKind::Then => "then",
            BodyKind::Otherwise => "otherwise",
            BodyKind::Tile => "tile",
            BodyKind::LastTile => "last tile",
            BodyKind::Gradient => "gradient",
        })
    }
}

/// The cost and memory of a compiled program, independent of the number of threads.
///
/// The cost of a body is the cost of one trip, because the number of trips of a loop is known only after a
/// run. A backend that does not know its costs reports zeros and no bodies.
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
    /// The bodies of loops, tiles and conditionals: kind and cost of one trip.
    pub bodies: Vec<(BodyKind, PlanReport)>,
}

impl PlanReport {
    /// Adds the report `before` as a body of this plan that runs `trips` times before it.
    pub fn after(mut self, kind: BodyKind, before: PlanReport, trips: usize) -> PlanReport {
        self.arena_bytes += before.arena_bytes;
        self.arena_bytes_without_reuse += before.arena_bytes_without_reuse;
        self.arena_bytes_live += before.arena_bytes_live;
        self.bodies.push((kind, PlanReport { trips, ..before }));
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

    /// The reports of all loops with a backward pass, including the loops in bodies.
    pub fn all_loops(&self) -> Vec<&LoopReport> {
        let inner = self.bodies.iter().flat_map(|(_, body)| body.all_loops());
        self.loops.iter().chain(inner).collect()
    }

    fn lines(&self, f: &mut fmt::Formatter<'_>, name: &dyn fmt::Display, depth: usize) -> fmt::Result {
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
        bodies.iter().try_for_each(|(kind, body)| body.lines(f, kind, depth + 1))
    }
}

impl fmt::Display for PlanReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines(f, &"plan", 0)
    }
}
