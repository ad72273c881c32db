//! Checks for the best weights: when they are due, the estimate of the KL divergence, and early stopping.

use super::Session;
use crate::cnf::KlEstimate;
use crate::error::Result;
use crate::train::best::{self, Criterion, Measured};
use crate::train::run::RunInfo;
use crate::train::{Objective, TrainingData};

/// Under a time limit, a check for the best weights waits until this many times its duration has passed, so that checks
/// take at most a fifth of the time.
const CHECK_SHARE: f64 = 4.0;

impl Session<'_> {
    /// The share of a phase's seconds that has passed since its first update; 0 without a time limit. What comes before,
    /// reading and compiling, would take the place of the first checks.
    fn trained_share(&self, phase: usize) -> f64 {
        let share = self.budget.share(phase).unwrap_or(0.0);
        ((share - self.begun_share) / (1.0 - self.begun_share).max(f64::EPSILON)).clamp(0.0, 1.0)
    }

    /// Notes where in its seconds a phase begins, and the checks that an earlier process has made.
    pub(super) fn begin_checks(&mut self, phase: usize) {
        let is_new = self.update == self.first(phase);
        self.begun_share = if is_new { self.budget.share(phase).unwrap_or(0.0) } else { 0.0 };
        self.passed = self.header.checks().passed(self.trained_share(phase));
    }

    /// Whether a check for the best weights is due: of the estimate of the KL divergence if there is one, otherwise of the
    /// validation NLL. Under a time limit, checks are due at shares of a phase's seconds, unless they would take too much
    /// time, and at the end of the phase.
    pub(super) fn is_due(&mut self, phase: usize, last: bool) -> bool {
        let (plan, checks) = (&self.header.config.phases[phase], self.header.checks());
        let done = self.update - self.first(phase);
        let is_checked = match &self.estimator {
            Some(_) => plan.objective == Objective::FlowMatching,
            None => self.best.is_some(),
        };
        if !is_checked || !self.budget.is_limited() {
            return is_checked && best::is_due(plan, done, checks);
        }
        let (share, now_s) = (self.trained_share(phase), self.budget.time.now_s());
        let passed = checks.passed(share);
        let measured_at = &mut self.tallies.counters.measured_at;
        let is_affordable =
            self.estimator.is_some() || measured_at.is_empty() || self.measuring.is_past(CHECK_SHARE, now_s);
        let due = last || (passed > self.passed && is_affordable && !checks.is_too_early(done, share));
        if due {
            self.passed = passed;
            measured_at.push(self.update);
        }
        due
    }

    /// Estimates the KL divergence of the averaged weights, and keeps them if they are the best.
    pub(super) fn estimate(&mut self) -> Result<Option<KlEstimate>> {
        let Some(estimator) = &self.estimator else { return Ok(None) };
        let found = estimator.estimate(&self.state.ema)?;
        self.last_estimate = Some(found);
        if let Some(best) = &mut self.best {
            // Infinity is not a number of JSON.
            let [nats, stderr] = [found.nats, found.stderr].map(|x| if x.is_finite() { x } else { f64::MAX });
            let by = Criterion::Estimate { kl_estimate_nats: nats, kl_estimate_stderr_nats: stderr };
            let measured = Measured { by, update: self.update, rows: None };
            best.keep(measured, &self.state.ema, self.folder.as_ref(), &self.header.run)?;
            self.stopped = self.is_out_of_patience();
            if self.stopped {
                // The final weights are scored anew.
                self.last_score = None;
            }
        }
        Ok(Some(found))
    }

    /// Early stopping: whether `patience` checks have passed since the best one. A resumed run reaches the same result
    /// from the best weights and the update.
    pub(super) fn is_out_of_patience(&self) -> bool {
        let config = &self.header.config;
        let kept = self.best.as_ref().and_then(|best| best.measured);
        let is_over = |(patience, kept): (u64, Measured)| {
            let since = if self.budget.is_limited() {
                self.tallies.counters.measured_at.iter().filter(|&&update| update > kept.update).count()
                    as u64
            } else {
                best::checks_since(config, self.header.checks(), kept.update, self.update)
            };
            since >= patience
        };
        config.patience.zip(kept).is_some_and(is_over)
    }
}

/// Whether a run ends with the best weights rather than the last: because it may overfit, or because the estimate of its
/// KL divergence tells which are the best.
pub(super) fn keeps_best(data: &TrainingData, header: &RunInfo) -> bool {
    header.selects_by_estimate() || matches!(data, TrainingData::Points(..) | TrainingData::Images(..))
}
