//! What an update costs before it runs: a plan's figures, added up over the steps that solves will take.
//!
//! A plan knows its tiles and what one trip of a loop does; how many trips there are is the recipe's to say. Where steps
//! are adaptive nobody knows, and the figures are those of one step.

use crate::backend::checkpoint::cost::fewest_extra;
use crate::backend::{LoopReport, PlanReport};
use serde::Serialize;

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

/// Floating-point operations of a run whose solves take `steps` steps.
///
/// A backward pass replays only what it has not kept: E(N, c) steps, the fewest there can be.
pub(super) fn flops(plan: &PlanReport, steps: usize) -> f64 {
    let kept = plan.tapes.iter().map(|&(_, slots)| slots).min().unwrap_or(usize::MAX);
    let bodies = plan.bodies.iter().enumerate().map(|(i, (name, body))| {
        let is_replayed = plan.bodies.get(i + 1).is_some_and(|(next, _)| *next == "backward step");
        let trips = match *name {
            "step" if is_replayed => fewest_extra(steps, kept.min(steps + 1)) as f64,
            "attempt" | "step" | "backward step" => steps as f64,
            _ => body.trips as f64,
        };
        trips * flops(body, steps)
    });
    plan.flops as f64 + bodies.sum::<f64>()
}

/// Bytes of workspace at the peak, and what they would be if no two values shared memory: intermediate values, and the
/// states that solves of at most `most_steps` steps keep.
pub(super) fn peak_bytes(plan: &PlanReport, most_steps: usize) -> (usize, usize) {
    let kept = kept_bytes(plan, most_steps);
    (plan.arena_bytes + kept, plan.arena_bytes_without_reuse + kept)
}

fn kept_bytes(plan: &PlanReport, most_steps: usize) -> usize {
    let own = plan.tapes.iter().map(|&(bytes, slots)| bytes * slots.min(most_steps + 1)).sum::<usize>();
    own + plan.bodies.iter().map(|(_, body)| kept_bytes(body, most_steps)).sum::<usize>()
}
