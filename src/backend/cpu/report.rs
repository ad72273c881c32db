//! The report of a plan, from its steps; and how the loops of a run stored their states.
//!
//! The types of reports belong to no backend. Where loops and bodies run is known only to the plan: its lists of
//! [`StoringLoop`] and [`CompiledBody`] have the order of its report.

use super::address::Cost;
use super::compile::memory_plan::MemoryPlan;
use super::plan::{Inner, Plan};
use super::run::exec::Workspace;
use super::run::step::Step;
use crate::backend::{BodyKind, LoopReport, PlanReport};

/// A loop with a backward pass: its tape, and the backward passes that read the tape, in the workspace of its plan.
#[derive(Clone, Debug)]
pub(crate) struct StoringLoop {
    pub report: LoopReport,
    pub tape: usize,
    pub restorers: Vec<usize>,
}

/// The plan of a body, and the workspaces that it runs in.
#[derive(Clone, Debug)]
pub(crate) struct CompiledBody {
    pub kind: BodyKind,
    /// Number of runs per run of its parent, if the program determines it, else 1.
    pub trips: usize,
    pub plan: Plan,
    pub spaces: Vec<Space>,
}

/// A workspace inside the workspace of a plan, by its index in the list of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Body(usize),
    /// A group of workspaces, one per worker.
    Tiles(usize),
    LastTile(usize),
}

/// The report of a plan with these steps. `tapes` are the sizes of tapes and of their residuals.
pub(crate) fn report(
    steps: &[Step],
    memory: &MemoryPlan,
    scratch_bytes: usize,
    (tapes, residuals): (Vec<(usize, usize)>, Vec<(usize, usize)>),
    loops: &[StoringLoop],
    bodies: &[CompiledBody],
) -> PlanReport {
    let cost = steps
        .iter()
        .map(Step::cost)
        .fold(Cost::default(), |a, b| Cost { flops: a.flops + b.flops, bytes: a.bytes + b.bytes });
    let of_body =
        |body: &CompiledBody| (body.kind, PlanReport { trips: body.trips, ..body.plan.report().clone() });
    let bodies: Vec<(BodyKind, PlanReport)> = bodies.iter().map(of_body).collect();
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
        loops: loops.iter().map(|of| of.report.clone()).collect(),
        trips: 1,
        bodies,
    }
}

impl Workspace {
    /// Writes how the loops of the last run stored their states into the report of its plan.
    pub(crate) fn report_loops(&self, report: &mut PlanReport) {
        if let Some(plan) = &self.plan {
            self.add_loops(&plan.0, report);
        }
    }

    fn add_loops(&self, inner: &Inner, report: &mut PlanReport) {
        for (l, of) in report.loops.iter_mut().zip(&inner.loops) {
            let Some(tape) = self.loops.tapes.get(of.tape) else { continue };
            let restorers = || of.restorers.iter().map(|&r| &self.loops.restorers[r]);
            let mut run = tape.run;
            run.recomputed = restorers().map(|of| of.recomputed).sum();
            run.recomputed_residuals = restorers().map(|of| of.recomputed_residuals).sum();
            if run.runs > 0 {
                l.last.get_or_insert_default().join(run);
            }
        }
        for ((_, report), body) in report.bodies.iter_mut().zip(&inner.bodies) {
            let mut add = |ws: &Workspace| ws.add_loops(&body.plan.0, report);
            for space in &body.spaces {
                match *space {
                    Space::Body(i) => self.loops.inner.get(i).into_iter().for_each(&mut add),
                    Space::Tiles(i) => {
                        self.tiles.get(i).into_iter().flat_map(|t| &t.workers).for_each(&mut add);
                    }
                    Space::LastTile(i) => self.tiles.get(i).into_iter().for_each(|t| add(&t.tail)),
                }
            }
        }
    }
}
