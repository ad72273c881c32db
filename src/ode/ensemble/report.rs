//! The solution and the progress of an ensemble, and how they are printed.

use crate::ode::{Outcome, SolveError, Stats, Tol, Warning};
use std::fmt;

/// The trajectories of an ensemble, in the order of their parameters.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EnsembleSolution<Y> {
    /// The last state of each trajectory: at t1, or the last accepted state if the trajectory ended early (y0
    /// if it took no step).
    pub y1: Vec<Y>,
    /// Counters of each trajectory.
    pub stats: Vec<Stats>,
    /// Why each trajectory ended.
    pub outcomes: Vec<Outcome>,
    /// Warnings, each with the index of its trajectory, in order of the indices.
    pub warnings: Vec<(usize, Warning)>,
    /// Number of trajectories in lockstep; 1 if they ran one at a time.
    pub num_lanes: usize,
    /// Number of threads of the pool that did the work; an ensemble of few chunks does not use all of them.
    pub num_threads: usize,
    /// The relative tolerance used.
    pub rtol: Tol,
    /// The absolute tolerance used.
    pub atol: Tol,
}

impl<Y> EnsembleSolution<Y> {
    /// Returns an error if a trajectory ended early. `is_adaptive`: whether the tolerances were used.
    pub(super) fn judged(self, allow_incomplete: bool, is_adaptive: bool) -> Result<Self, SolveError<Self>> {
        let early = self.outcomes.iter().position(|outcome| !outcome.is_success());
        let Some(row) = early.filter(|_| !allow_incomplete) else { return Ok(self) };
        let (rtol, atol) = (self.rtol.clone(), self.atol.clone());
        Err(SolveError::incomplete(self.outcomes[row], Some(row), (&rtol, &atol, is_adaptive), self))
    }

    /// The sum of each counter over all trajectories.
    pub fn total_stats(&self) -> Stats {
        self.stats.iter().fold(Stats::default(), |mut total, stats| {
            total.num_steps += stats.num_steps;
            total.num_accepted += stats.num_accepted;
            total.num_rejected += stats.num_rejected;
            total.num_fn_evals += stats.num_fn_evals;
            total.num_jac_evals += stats.num_jac_evals;
            total.num_factorizations += stats.num_factorizations;
            total
        })
    }
}

impl<Y> fmt::Display for EnsembleSolution<Y> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let completed = self.outcomes.iter().filter(|outcome| outcome.reached_t1()).count();
        write!(f, "{completed} of {} trajectories completed", self.outcomes.len())?;
        if let Some((index, outcome)) =
            self.outcomes.iter().enumerate().find(|(_, outcome)| !outcome.reached_t1())
        {
            write!(f, " (the first that did not is trajectory {index}: {outcome})")?;
        }
        write!(f, ", {}, rtol={:e}, atol={:e}, ", self.total_stats(), self.rtol, self.atol)?;
        match self.num_lanes {
            1 => write!(f, "one at a time")?,
            lanes => write!(f, "{lanes} lanes")?,
        }
        match self.num_threads {
            1 => write!(f, " on one thread")?,
            threads => write!(f, " on {threads} threads")?,
        }
        match self.warnings[..] {
            [] => Ok(()),
            [(index, warning), ..] => {
                write!(
                    f,
                    "; {} with a warning (the first is trajectory {index}: {warning})",
                    self.warnings.len()
                )
            }
        }
    }
}

/// The progress of an ensemble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EnsembleProgress {
    /// The number of trajectories in the chunks that have ended.
    pub num_done: usize,
    /// The number of all trajectories; with [`world`](super::EnsembleBuilder), of those that this rank
    /// solves.
    pub num_trajectories: usize,
}

impl fmt::Display for EnsembleProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} trajectories", self.num_done, self.num_trajectories)
    }
}
