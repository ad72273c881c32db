//! The cost of an update, planned from the configuration without running it. With adaptive steps, whose
//! number is unknown, operations are those of one step per solve, and memory is that of the maximum number of
//! steps.

use super::{Objective, Phase, Steps, TrainConfig};
use crate::backend::work::{Trips, work};
use crate::backend::{LoopReport, PlanReport};
use serde::Serialize;

/// What operations are counted over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FlopsOf {
    /// A whole update.
    Update,
    /// An update with one step per solve.
    Step,
}

/// The cost of an update of a phase.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PhasePlan {
    /// The objective.
    pub objective: Objective,
    /// Number of updates; under a time limit, the default number.
    pub updates: u64,
    /// Points or images per update.
    pub batch: usize,
    /// Kernels and loops of the program, each counted once, however often it runs.
    pub kernels: usize,
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes that kernels read and write, in any cache or memory.
    pub bytes_moved: u64,
    /// What `flops` and `bytes_moved` are counted over: an update, or one step per solve where the number of adaptive
    /// steps is unknown.
    pub flops_of: FlopsOf,
    /// Peak bytes of workspace on one thread; with adaptive steps, for solves of the maximum number of steps.
    pub peak_bytes: u64,
    /// `peak_bytes` if no two intermediate values shared memory.
    pub peak_bytes_without_reuse: u64,
    /// How the solves store states for the backward pass.
    pub states: Vec<StatesPlan>,
    /// The plan as human-readable text.
    #[serde(skip)]
    pub text: String,
}

impl PhasePlan {
    /// The cost of the updates of a phase, from the plan of one update.
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

/// How a solve stores states for its backward pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StatesPlan {
    /// Bytes per state of a tile of rows.
    pub state_bytes: usize,
    /// The memory budget of the states in bytes, if one was set.
    pub budget_bytes: Option<usize>,
    /// Maximum number of stored states; `None` stores all.
    pub slots: Option<usize>,
    /// Steps of the solve, if known in advance.
    pub steps: Option<usize>,
    /// States stored for these steps.
    pub kept: Option<usize>,
    /// Steps that the backward pass recomputes.
    pub recomputed: Option<u64>,
    /// The same as human-readable text.
    pub text: String,
}

/// How the solves of a plan store states; `steps` is `None` if unknown in advance.
fn states(plan: &PlanReport, steps: Option<usize>) -> Vec<StatesPlan> {
    let row = |of: &LoopReport| {
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
    let mut all: Vec<StatesPlan> = plan.all_loops().into_iter().map(row).collect();
    all.dedup();
    all
}
