//! Figures of a plan that the plan itself does not add up.

use crate::backend::PlanReport;

/// Floating-point operations of a run whose loops go round `trips` times, tiles once.
pub(super) fn flops(plan: &PlanReport, trips: f64) -> f64 {
    let inner = plan.bodies.iter().map(|(_, body)| flops(body, trips)).sum::<f64>();
    plan.flops as f64 + trips * inner
}
