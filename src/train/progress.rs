//! The progress of a run as a value: for progress bars and logs alike.

use super::Objective;
use crate::data::Estimate;
use std::fmt;

/// The state of a run after an update.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// Updates done, including those before a resume.
    pub update: u64,
    /// Total updates; under a time limit, the expected number for the phases begun so far at the current pace.
    pub updates: u64,
    /// The fraction of training that is done: of updates, or of seconds under a time limit.
    pub done: f64,
    /// The index of the phase, from 0.
    pub phase: usize,
    /// Number of phases.
    pub phases: usize,
    /// The objective of this phase; it has the name and the unit of the loss.
    pub objective: Objective,
    /// Loss of the last batch.
    pub loss: f64,
    /// The unit of the loss. For points, nats are in standardized coordinates; the validation NLL is in the
    /// units of the data.
    pub loss_unit: &'static str,
    /// Milliseconds per update, averaged over about the last 50 of the phase.
    pub ms: f64,
    /// Estimated seconds until the last update, from the usual cost of later phases relative to the current
    /// phase; under a time limit, the seconds of training that remain.
    pub seconds_left: f64,
    /// For a known density, the last KL divergence over the validation points, in nats.
    pub gap_nats: Option<Estimate>,
    /// In a run that learns from exact targets, the last estimate of the KL divergence without a solve, in nats.
    pub kl_estimate_nats: Option<Estimate>,
    /// For a table of points, the last validation NLL, in the units of the data.
    pub validation_nats: Option<Estimate>,
    /// For images, the last validation bits/dim.
    pub bits_per_dim: Option<Estimate>,
}

/// Long work of a run other than updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Activity {
    /// Scoring the validation part; at the end of a run on image sets, at several tolerances.
    Measuring,
    /// Scoring the test part, once, at the end.
    Testing,
    /// Evaluating the density on a grid, for the total probability and the final figures.
    Evaluating,
    /// Drawing the final figures.
    Drawing,
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Activity::Measuring => "measuring the validation part",
            Activity::Testing => "measuring the test part",
            Activity::Evaluating => "evaluating the density on a grid",
            Activity::Drawing => "drawing the figures",
        })
    }
}

/// Prints `update 400/2000  1.234 nats  0.021 s/update  34 s left`
impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Progress { update, updates, loss, .. } = self;
        let (unit, s, left) = (self.loss_unit, self.ms / 1e3, self.seconds_left);
        write!(f, "update {update}/{updates}  {loss:.3} {unit}  {s:.3} s/update  {left:.0} s left")
    }
}

/// A running mean of update times.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    ms: f64,
    seen: f64,
}

impl Pace {
    /// Whether no time has been added.
    pub(super) fn is_new(&self) -> bool {
        self.seen == 0.0
    }

    /// Adds a time and returns the mean. The time of the first update of a phase is not typical, so the second
    /// time replaces it.
    pub(super) fn add(&mut self, ms: f64) -> f64 {
        let share = if self.seen < 2.0 { 1.0 } else { (1.0 / self.seen).max(0.02) };
        self.ms += share * (ms - self.ms);
        self.seen += 1.0;
        self.ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_reads_as_a_line() {
        let progress = Progress {
            update: 400,
            updates: 2000,
            done: 0.2,
            phase: 1,
            phases: 2,
            objective: Objective::MaximumLikelihood,
            loss: 1.2341,
            loss_unit: "nats",
            ms: 21.0,
            seconds_left: 33.6,
            gap_nats: None,
            kl_estimate_nats: None,
            validation_nats: None,
            bits_per_dim: None,
        };
        assert_eq!(progress.to_string(), "update 400/2000  1.234 nats  0.021 s/update  34 s left");
    }

    #[test]
    fn the_pace_forgets_the_first_update_and_follows_the_later_ones() {
        let mut pace = Pace::default();
        pace.add(900.0);
        let early = pace.add(10.0);
        assert_eq!(early, 10.0);
        let late = (0..400).fold(early, |_, _| pace.add(20.0));
        assert!((late - 20.0).abs() < 0.1, "{late}");
    }
}
