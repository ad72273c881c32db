//! The cost of a plan, summed over the steps that its solves take.
//!
//! A [`PlanReport`] contains the number of tiles and the cost of one trip of each loop. The caller supplies
//! the number of trips.

use super::checkpoint::cost::fewest_extra;
use super::{BodyKind, PlanReport};
use serde::{Deserialize, Serialize};

/// The cost of one run of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Kernels and loops of the program; each counts once, no matter how often it runs.
    pub kernels: usize,
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes that kernels read and write, at any cache level.
    pub bytes_moved: f64,
}

/// The number of steps of a solve.
#[derive(Clone, Copy, Debug)]
pub struct Trips {
    /// Attempted steps.
    pub attempted: f64,
    /// Accepted steps, which a backward pass traverses in reverse.
    pub accepted: f64,
    /// Steps that the backward pass recomputes; `None` stands for the minimum, E(N, c) of [`fewest_extra`].
    pub replayed: Option<f64>,
}

impl Trips {
    /// A solve that accepts every attempt and recomputes the minimum number of steps.
    pub fn planned(steps: usize) -> Trips {
        Trips { attempted: steps as f64, accepted: steps as f64, replayed: None }
    }
}

/// The cost of one run in which every solve takes the given numbers of steps.
pub fn work(plan: &PlanReport, trips: Trips) -> Work {
    let kept = plan.tapes.iter().map(|&(_, slots)| slots).min().unwrap_or(usize::MAX);
    let steps = trips.accepted.round() as usize;
    let fewest = || fewest_extra(steps, kept.min(steps + 1)) as f64;
    let recomputed_residuals =
        plan.loops.iter().map(|l| l.with_steps(steps).recomputed_residuals).max().unwrap_or(0) as f64;
    let own = Work { kernels: plan.kernels, flops: plan.flops as f64, bytes_moved: plan.bytes_moved as f64 };
    plan.bodies.iter().fold(own, |sum, (kind, body)| {
        let times = match kind {
            BodyKind::RestoringStep => trips.replayed.unwrap_or_else(fewest),
            BodyKind::Attempt => trips.attempted,
            BodyKind::Step | BodyKind::BackwardStep => trips.accepted,
            BodyKind::Stages => recomputed_residuals,
            BodyKind::Loop
            | BodyKind::Then
            | BodyKind::Otherwise
            | BodyKind::Tile
            | BodyKind::LastTile
            | BodyKind::Gradient => body.trips as f64,
        };
        let inner = work(body, trips);
        Work {
            kernels: sum.kernels + inner.kernels,
            flops: sum.flops + times * inner.flops,
            bytes_moved: sum.bytes_moved + times * inner.bytes_moved,
        }
    })
}

impl PlanReport {
    /// Peak workspace bytes with one worker: intermediate values, and the states and residuals that solves of
    /// at most `most_steps` steps store.
    pub fn peak_bytes(&self, most_steps: usize) -> usize {
        self.arena_bytes + self.kept_bytes(most_steps)
    }

    /// [`PlanReport::peak_bytes`] if no two intermediate values shared memory.
    pub fn peak_bytes_without_reuse(&self, most_steps: usize) -> usize {
        self.arena_bytes_without_reuse + self.kept_bytes(most_steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_adds_up_over_the_trips_of_every_body() {
        let leaf = |flops| PlanReport {
            kernels: 3,
            flops,
            bytes_moved: 10 * flops,
            trips: 1,
            ..PlanReport::default()
        };
        let bodies = vec![
            (BodyKind::Attempt, leaf(100)),
            (BodyKind::RestoringStep, leaf(10)),
            (BodyKind::BackwardStep, leaf(1000)),
        ];
        let tile = PlanReport {
            kernels: 2,
            flops: 5,
            trips: 4,
            tapes: vec![(8, 2)],
            bodies,
            ..PlanReport::default()
        };
        let plan = PlanReport {
            kernels: 1,
            flops: 7,
            bodies: vec![(BodyKind::Tile, tile)],
            ..PlanReport::default()
        };
        let counted = Trips { attempted: 6.5, accepted: 5.0, replayed: Some(2.5) };
        let found = work(&plan, counted);
        assert_eq!((found.kernels, found.flops), (12, 7.0 + 4.0 * (5.0 + 650.0 + 25.0 + 5000.0)));
        assert_eq!(found.bytes_moved, 4.0 * 10.0 * (650.0 + 25.0 + 5000.0));
        // With two slots, a backward pass over five steps recomputes E(5, 2) = T(2, 6) - 5 steps.
        let again = fewest_extra(5, 2) as f64;
        assert_eq!(work(&plan, Trips::planned(5)).flops, 7.0 + 4.0 * (5.0 + 500.0 + 10.0 * again + 5000.0));
    }
}
