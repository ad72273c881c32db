//! What an update costs before it runs: a plan's figures, added up over the steps that solves will take.
//!
//! A plan knows its tiles and what one trip of a loop does; how many trips there are is the recipe's to say. Where steps
//! are adaptive nobody knows, and the figures are those of one step.

use super::{Objective, Phase, Recipe, Steps};
use crate::backend::checkpoint::cost::fewest_extra;
use crate::backend::{LoopReport, PlanReport};
use serde::{Deserialize, Serialize};

/// What planned operations are counted over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FlopsOf {
    /// A whole update.
    Update,
    /// An update whose solves take one step.
    Step,
}

/// What an update of a phase does and needs.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PhasePlan {
    /// What is minimised.
    pub objective: Objective,
    /// Updates of the phase.
    pub updates: u64,
    /// Points an update.
    pub batch: usize,
    /// Kernels and loops of its program, each counted once however often it runs.
    pub kernels: usize,
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes that kernels read and write, in whichever cache they are.
    pub bytes_moved: u64,
    /// Of what both are: of an update, or of an update whose solves take one step where steps are adaptive and nobody knows how many
    /// there will be.
    pub flops_of: FlopsOf,
    /// Bytes of workspace at their peak.
    pub peak_bytes: u64,
    /// What they would be if no two values shared memory.
    pub peak_bytes_without_reuse: u64,
    /// How its solves keep the states for their backward passes.
    pub states: Vec<StatesPlan>,
    /// The plan for people.
    #[serde(skip)]
    pub text: String,
}

impl PhasePlan {
    /// Of a phase whose update has this plan.
    pub(super) fn of(recipe: &Recipe, phase: &Phase, plan: &PlanReport) -> PhasePlan {
        let (steps, most_steps) = recipe.steps();
        let is_adaptive = matches!(recipe.model.solve.steps, Steps::Adaptive { .. });
        let solves = phase.objective == Objective::MaximumLikelihood;
        let (peak_bytes, without_reuse) = peak_bytes(plan, most_steps);
        let work = work(plan, Trips::planned(steps));
        PhasePlan {
            objective: phase.objective,
            updates: phase.updates,
            batch: phase.batch,
            kernels: work.kernels,
            flops: work.flops,
            bytes_moved: work.bytes_moved.round() as u64,
            flops_of: if solves && is_adaptive { FlopsOf::Step } else { FlopsOf::Update },
            peak_bytes: peak_bytes as u64,
            peak_bytes_without_reuse: without_reuse as u64,
            states: states(plan, (!is_adaptive).then_some(steps)),
            text: plan.to_string(),
        }
    }
}

/// How a solve keeps the states for its backward pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StatesPlan {
    /// Bytes of a state of a tile of rows.
    pub state_bytes: usize,
    /// The bytes that they may take, where that was what was asked for.
    pub budget_bytes: Option<usize>,
    /// The most states that are kept; `None` for all of them.
    pub slots: Option<usize>,
    /// Steps of the solve, where they are known before.
    pub steps: Option<usize>,
    /// States that are kept of so many steps.
    pub kept: Option<usize>,
    /// Steps that the backward pass runs again.
    pub recomputed: Option<u64>,
    /// The same in words.
    pub text: String,
}

/// How the solves of a plan keep their states, `steps` being known before or not.
pub(super) fn states(plan: &PlanReport, steps: Option<usize>) -> Vec<StatesPlan> {
    let told = |of: &LoopReport| {
        let run = steps.map(|n| of.with_steps(n));
        StatesPlan {
            state_bytes: of.state_bytes,
            budget_bytes: of.budget_bytes(),
            slots: of.slots,
            steps,
            kept: run.map(|run| run.kept),
            recomputed: run.map(|run| run.recomputed),
            text: steps.map_or_else(|| of.to_string(), |n| of.after(n).to_string()),
        }
    };
    let mut all: Vec<StatesPlan> = plan.all_loops().into_iter().map(told).collect();
    all.dedup();
    all
}

/// What a program computes in an update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Work {
    /// Kernels and loops of the program, each counted once however often it runs.
    pub kernels: usize,
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes that kernels read and write, in whichever cache they are.
    pub bytes_moved: f64,
}

/// How many steps a solve takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trips {
    /// Steps that it tries.
    pub attempted: f64,
    /// Those it takes, which a backward pass goes back over.
    pub accepted: f64,
    /// Steps that the backward pass runs again; `None` for E(N, c), the fewest there can be.
    pub replayed: Option<f64>,
}

impl Trips {
    /// A solve that takes every step it tries and replays only what it has not kept.
    pub fn planned(steps: usize) -> Trips {
        Trips { attempted: steps as f64, accepted: steps as f64, replayed: None }
    }
}

/// What a run computes each of whose solves takes so many steps.
pub(super) fn work(plan: &PlanReport, trips: Trips) -> Work {
    let kept = plan.tapes.iter().map(|&(_, slots)| slots).min().unwrap_or(usize::MAX);
    let steps = trips.accepted.round() as usize;
    let fewest = || fewest_extra(steps, kept.min(steps + 1)) as f64;
    let remade = plan.loops.iter().map(|l| l.with_steps(steps).remade).max().unwrap_or(0) as f64;
    let own = Work { kernels: plan.kernels, flops: plan.flops as f64, bytes_moved: plan.bytes_moved as f64 };
    plan.bodies.iter().enumerate().fold(own, |sum, (i, (name, body))| {
        let is_replayed = plan.bodies.get(i + 1).is_some_and(|(next, _)| *next == "backward step");
        let times = match *name {
            "step" if is_replayed => trips.replayed.unwrap_or_else(fewest),
            "attempt" => trips.attempted,
            "step" | "backward step" => trips.accepted,
            "stages" => remade,
            _ => body.trips as f64,
        };
        let inner = work(body, trips);
        Work {
            kernels: sum.kernels + inner.kernels,
            flops: sum.flops + times * inner.flops,
            bytes_moved: sum.bytes_moved + times * inner.bytes_moved,
        }
    })
}

/// Bytes of workspace at the peak, and what they would be if no two values shared memory: intermediate values, and the
/// states that solves of at most `most_steps` steps keep.
pub(super) fn peak_bytes(plan: &PlanReport, most_steps: usize) -> (usize, usize) {
    let kept = plan.kept_bytes(most_steps);
    (plan.arena_bytes + kept, plan.arena_bytes_without_reuse + kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_adds_up_over_the_trips_of_every_body() {
        let leaf = |flops| PlanReport {
            kernels: 3,
            flops,
            bytes_moved: 10 * flops,
            trips: 1,
            ..PlanReport::default()
        };
        let bodies = vec![("attempt", leaf(100)), ("step", leaf(10)), ("backward step", leaf(1000))];
        let tile = PlanReport {
            kernels: 2,
            flops: 5,
            trips: 4,
            tapes: vec![(8, 2)],
            bodies,
            ..PlanReport::default()
        };
        let plan = PlanReport { kernels: 1, flops: 7, bodies: vec![("tile", tile)], ..PlanReport::default() };
        let counted = Trips { attempted: 6.5, accepted: 5.0, replayed: Some(2.5) };
        let found = work(&plan, counted);
        assert_eq!((found.kernels, found.flops), (12, 7.0 + 4.0 * (5.0 + 650.0 + 25.0 + 5000.0)));
        assert_eq!(found.bytes_moved, 4.0 * 10.0 * (650.0 + 25.0 + 5000.0));
        // Two slots for five steps: E(5, 2) = T(2, 6) - 5 steps are run again.
        let again = fewest_extra(5, 2) as f64;
        assert_eq!(work(&plan, Trips::planned(5)).flops, 7.0 + 4.0 * (5.0 + 500.0 + 10.0 * again + 5000.0));
    }
}
