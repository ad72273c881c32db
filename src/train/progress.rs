//! Where a run stands, as a value: who draws a bar and who writes a log see the same.

use super::Objective;
use crate::data::Estimate;
use std::fmt;

/// A run after an update.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// Updates done, those before a resume included.
    pub update: u64,
    /// Updates of the whole run; under a time limit, as many as the phases begun so far will have at the pace so far.
    pub updates: u64,
    /// The share of all training that is done: of its updates, or of its seconds under a time limit.
    pub done: f64,
    /// Which phase, from 0.
    pub phase: usize,
    /// How many there are.
    pub phases: usize,
    /// What this phase minimizes; its name and the unit of the loss.
    pub objective: Objective,
    /// Loss of the last batch.
    pub loss: f64,
    /// Milliseconds an update, averaged over about the last 50.
    pub ms: f64,
    /// Seconds until the last update, if later phases cost what they usually do beside this one.
    pub seconds_left: f64,
    /// The KL divergence from a known density, in nats, when it was last measured by the validation points.
    pub gap_nats: Option<Estimate>,
    /// Of images, bits a coordinate of those of validation when they were last measured.
    pub bits_per_dim: Option<Estimate>,
}

/// What a run does beside updates, where that takes so long that a person asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Activity {
    /// Measuring the validation part.
    Measuring,
    /// Measuring the test part, once, at the end.
    Testing,
    /// Evaluating the density on a grid, for the total probability and the last figure.
    Evaluating,
    /// Drawing the last figures.
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

/// `update 400/2000  1.234 nats  0.021 s/update  34 s left`
impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Progress { update, updates, loss, .. } = self;
        let (unit, s, left) = (self.objective.unit(), self.ms / 1e3, self.seconds_left);
        write!(f, "update {update}/{updates}  {loss:.3} {unit}  {s:.3} s/update  {left:.0} s left")
    }
}

/// The running mean of times.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    ms: f64,
    seen: f64,
}

impl Pace {
    /// The mean after one more time; the first of a phase compiles, so the second replaces it.
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
            ms: 21.0,
            seconds_left: 33.6,
            gap_nats: None,
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
