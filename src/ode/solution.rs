//! `Solution`: what a solve on the host returns.

use super::{OdeError, Outcome, Stats, Tolerance};
use std::fmt;

/// A solved problem, whole or as far as it got: `outcome` says which.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Solution<Y> {
    /// The time reached.
    pub t1: f64,
    /// The state there; the last good one where the solve stopped early.
    pub y1: Y,
    /// Every accepted time, t0 first.
    pub ts: Vec<f64>,
    /// What it took.
    pub stats: Stats,
    /// Why it ended.
    pub outcome: Outcome,
    /// The tolerance it ran with.
    pub tolerance: Tolerance,
}

impl<Y> Solution<Y> {
    /// The solution if it is whole.
    ///
    /// # Errors
    /// [`OdeError::Stopped`] where the solve ended early.
    pub fn into_result(self) -> Result<Self, OdeError> {
        if self.outcome.is_completed() {
            return Ok(self);
        }
        Err(OdeError::Stopped { outcome: self.outcome })
    }
}

impl<Y> fmt::Display for Solution<Y> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tolerance { rtol, atol } = self.tolerance;
        write!(f, "{} at t={}: {}, rtol={rtol:e}, atol={atol:e}", self.outcome, self.t1, self.stats)
    }
}
