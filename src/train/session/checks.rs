//! Checks for the best weights: before the first update, when they are due, the estimate of the KL divergence, and early
//! stopping.

use super::Session;
use crate::cnf::KlEstimate;
use crate::error::Result;
use crate::eval::Score;
use crate::train::best::{self, Criterion, Measured};
use crate::train::run::RunInfo;
use crate::train::{InitialFlowKind, Objective, TrainingData};

/// Under a time limit, a check for the best weights waits until this many times its duration has passed, so that checks
/// take at most a fifth of the time.
const CHECK_SHARE: f64 = 4.0;

impl Session<'_> {
    /// Notes where in its seconds a phase begins, and the checks that an earlier process has made.
    pub(super) fn begin_checks(&mut self, phase: usize) {
        let is_new = self.update == self.first(phase);
        self.timing.begun_share = if is_new { self.timing.budget.share(phase).unwrap_or(0.0) } else { 0.0 };
        self.timing.passed = self.header.checks().passed(self.timing.trained_share(phase));
    }

    /// Whether a check for the best weights is due: of the estimate of the KL divergence if there is one, otherwise of the
    /// validation NLL. Under a time limit, checks are due at shares of a phase's seconds, unless they would take too much
    /// time, and at the end of the phase.
    pub(super) fn is_due(&mut self, phase: usize, last: bool) -> bool {
        let (plan, checks) = (&self.header.config.phases[phase], self.header.checks());
        let done = self.update - self.first(phase);
        let is_checked = match &self.judging.estimator {
            Some(_) => plan.objective == Objective::FlowMatching,
            None => self.judging.best.is_some(),
        };
        if !is_checked || !self.timing.budget.is_limited() {
            return is_checked && best::is_due(plan, done, checks);
        }
        let (share, now_s) = (self.timing.trained_share(phase), self.timing.now_s());
        let passed = checks.passed(share);
        let measured_at = &mut self.programs.tallies.counters.measured_at;
        let is_affordable = self.judging.estimator.is_some()
            || measured_at.is_empty()
            || self.timing.measuring.is_past(CHECK_SHARE, now_s);
        let due = last || (passed > self.timing.passed && is_affordable && !checks.is_too_early(done, share));
        if due {
            self.timing.passed = passed;
            measured_at.push(self.update);
        }
        due
    }

    /// Estimates the KL divergence of the averaged weights, and keeps them if they are the best.
    pub(super) fn estimate(&mut self) -> Result<Option<KlEstimate>> {
        let Some(estimator) = &self.judging.estimator else { return Ok(None) };
        let found = estimator.estimate(&self.state.ema)?;
        self.judging.last_estimate = Some(found);
        // Infinity is not a number of JSON.
        let [nats, stderr] = [found.nats, found.stderr].map(|x| if x.is_finite() { x } else { f64::MAX });
        let by = Criterion::Estimate { kl_estimate_nats: nats, kl_estimate_stderr_nats: stderr };
        self.keep_best(by, None)?;
        if self.judging.stopped {
            // The final weights are scored anew.
            self.judging.last_score = None;
        }
        Ok(Some(found))
    }

    /// Checks the flow before the first update, once per run, if it starts from a mixture: the weights of later checks must
    /// be better. A run that was killed after this check and resumed from update 0 has its result already.
    pub(super) fn check_start(&mut self, phase: usize) -> Result<()> {
        let is_unknown = self.judging.best.as_ref().is_some_and(|best| best.measured.is_none());
        if self.update > 0 || !is_unknown || self.header.config.start == InitialFlowKind::Normal {
            return Ok(());
        }
        let score = self.check(phase, true)?;
        self.keep_by_score(&score)
    }

    /// [`Session::keep_best`] by a validation score. A score that leaves rows out cannot be compared with the others.
    pub(super) fn keep_by_score(&mut self, score: &Score) -> Result<()> {
        if score.lost.is_some() {
            return Ok(());
        }
        let nll = score.best_nll(self.header.frames.entropy_nats());
        let by = Criterion::Validation { nll_nats: nll.mean, nll_stderr_nats: nll.stderr };
        self.keep_best(by, self.judging.rows_checked)
    }

    /// Keeps the averaged weights if they are the best of a run that chooses them, and applies early stopping.
    fn keep_best(&mut self, by: Criterion, rows: Option<usize>) -> Result<()> {
        let Some(best) = &mut self.judging.best else { return Ok(()) };
        let measured = Measured { by, update: self.update, rows };
        best.keep(measured, &self.state.ema, self.folder.as_ref(), &self.header.run)?;
        self.judging.stopped = self.is_out_of_patience();
        Ok(())
    }

    /// Early stopping: whether `patience` checks have passed since the best one. A resumed run reaches the same result
    /// from the best weights and the update.
    pub(super) fn is_out_of_patience(&self) -> bool {
        let config = &self.header.config;
        let kept = self.judging.best.as_ref().and_then(|best| best.measured);
        let is_over = |(patience, kept): (u64, Measured)| {
            let since = if self.timing.budget.is_limited() {
                let measured_at = &self.programs.tallies.counters.measured_at;
                measured_at.iter().filter(|&&update| update > kept.update).count() as u64
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
