//! What an update costs before it runs: a plan's figures, added up over the steps that solves will take.
//!
//! A plan knows its tiles and what one trip of a loop does; how many trips there are is the recipe's to say. Where steps
//! are adaptive nobody knows, and the figures are those of one step.

use crate::backend::PlanReport;
use crate::backend::checkpoint::cost::fewest_extra;

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
