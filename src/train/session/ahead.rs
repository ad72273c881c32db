//! What remains of a run: its progress, and the time that its end will take.

use super::Session;
use crate::eval::bits_of_nats;
use crate::io::run::metrics::Row;
use crate::train::budget::End;
use crate::train::{Objective, Progress};

/// Cells of a coarse grid over the plane, with the bands around it.
const CELLS: usize = 4_000;
impl Session<'_> {
    /// What the end of this run needs under a time limit.
    pub(super) fn end_of_run(&self) -> End {
        let (work, call, _) = self.held_out.checks(&self.judging.measure, self.state.ema.base.dim);
        let has_plane = self.header.frames.image.is_some();
        let end = End {
            scores: (work, 4 * call),
            cells: if has_plane { CELLS } else { 0 },
            samples: 0,
            trajectories: 0,
            figures: 0.0,
        };
        #[cfg(feature = "plot")]
        let end = crate::train::figures::needed(self, end);
        end
    }

    pub(super) fn progress(&mut self, phase: usize, row: &Row) -> Progress {
        let config = &self.header.config;
        let ms = self.timing.pace.add(row.ms);
        let (plan, shares) = (config.phases[phase], config.time_shares());
        let is_matching = plan.objective == Objective::FlowMatching;
        let end = self.first(phase) + plan.updates;
        let whole = ms * plan.updates as f64 / shares[phase];
        let later = config.phases.iter().zip(&shares).skip(phase + 1).filter(|(p, _)| p.updates > 0);
        let later: f64 = later.map(|(_, share)| share * whole).sum();
        let by_updates = (ms * end.saturating_sub(self.update) as f64 + later) / 1e3;
        let (updates, left_s) = (self.updates(), self.timing.budget.left_s(config.phases.len() - 1));
        Progress {
            update: self.update,
            updates,
            done: self.timing.budget.done(self.update as f64 / updates as f64),
            phase,
            phases: config.phases.len(),
            objective: plan.objective,
            loss: row.loss,
            loss_unit: loss_unit(plan.objective, self.header.frames.points.is_some()),
            ms,
            seconds_left: left_s.map_or(by_updates, |left_s| left_s.max(0.0)),
            gap_nats: self.judging.last_score.and_then(|score| score.gap),
            // Maximum likelihood has none, so there the measured divergence is the newest.
            kl_estimate_nats: self
                .judging
                .last_estimate
                .filter(|_| is_matching)
                .map(|last| crate::data::Estimate { mean: last.nats, stderr: Some(last.stderr), count: 0 }),
            validation_nats: self
                .judging
                .last_score
                .filter(|score| self.header.frames.points.is_some() && score.gap.is_none())
                .map(|score| score.nll),
            bits_per_dim: self
                .judging
                .last_score
                .filter(|_| self.header.frames.images.is_some())
                .map(|score| score.nll.times(bits_of_nats(1.0, self.header.dim()))),
        }
    }
}

/// The unit of a loss. The likelihood of points is in standardized coordinates.
fn loss_unit(objective: Objective, is_of_points: bool) -> &'static str {
    match objective {
        Objective::MaximumLikelihood if is_of_points => "nats (standardized)",
        objective => objective.unit(),
    }
}
