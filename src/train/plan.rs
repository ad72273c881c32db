//! What an update costs before it runs, by the configuration: where steps are adaptive, the numbers are those of one step.

use super::{Objective, Phase, Steps, TrainConfig};
use crate::backend::work::{Trips, work};
use crate::backend::{LoopReport, PlanReport};
use serde::Serialize;

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
    /// What is minimized.
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
    pub(super) fn of(config: &TrainConfig, phase: &Phase, plan: &PlanReport) -> PhasePlan {
        let (steps, most_steps) = config.steps();
        let is_adaptive = matches!(config.model.solve.steps, Steps::Adaptive { .. });
        let solves = phase.objective == Objective::MaximumLikelihood;
        let work = work(plan, Trips::planned(steps));
        PhasePlan {
            objective: phase.objective,
            updates: phase.updates,
            batch: phase.batch,
            kernels: work.kernels,
            flops: work.flops,
            bytes_moved: work.bytes_moved.round() as u64,
            flops_of: if solves && is_adaptive { FlopsOf::Step } else { FlopsOf::Update },
            peak_bytes: plan.peak_bytes(most_steps) as u64,
            peak_bytes_without_reuse: plan.peak_bytes_without_reuse(most_steps) as u64,
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
fn states(plan: &PlanReport, steps: Option<usize>) -> Vec<StatesPlan> {
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
