//! What a plan computes, added up over the steps that its solves take.
//!
//! A plan knows its tiles and what one trip of a loop does; how many trips there are is the caller's to say.

use super::PlanReport;
use super::checkpoint::cost::fewest_extra;
use serde::{Deserialize, Serialize};

/// What a program computes in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Kernels and loops of the program, each counted once however often it runs.
    pub kernels: usize,
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes that kernels read and write, in whichever cache they are.
    pub bytes_moved: f64,
}

/// How many steps a solve takes.
#[derive(Clone, Copy, Debug)]
pub struct Trips {
    /// Steps that it tries.
    pub attempted: f64,
    /// Those it takes, which a backward pass goes back over.
    pub accepted: f64,
    /// Steps that the backward pass runs again; `None` for E(N, c), the fewest there can be.
    pub replayed: Option<f64>,
}

impl Trips {
    /// A solve that takes every step it tries and replays only what it has not kept.
    pub fn planned(steps: usize) -> Trips {
        Trips { attempted: steps as f64, accepted: steps as f64, replayed: None }
    }
}

/// What a run computes each of whose solves takes so many steps.
pub fn work(plan: &PlanReport, trips: Trips) -> Work {
    let kept = plan.tapes.iter().map(|&(_, slots)| slots).min().unwrap_or(usize::MAX);
    let steps = trips.accepted.round() as usize;
    let fewest = || fewest_extra(steps, kept.min(steps + 1)) as f64;
    let remade = plan.loops.iter().map(|l| l.with_steps(steps).remade).max().unwrap_or(0) as f64;
    let own = Work { kernels: plan.kernels, flops: plan.flops as f64, bytes_moved: plan.bytes_moved as f64 };
    plan.bodies.iter().enumerate().fold(own, |sum, (i, (name, body))| {
        let is_replayed = plan.bodies.get(i + 1).is_some_and(|(next, _)| *next == "backward step");
        let times = match *name {
            "step" if is_replayed => trips.replayed.unwrap_or_else(fewest),
            "attempt" => trips.attempted,
            "step" | "backward step" => trips.accepted,
            "stages" => remade,
            _ => body.trips as f64,
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
    /// Bytes of workspace at the peak: intermediate values, and the states that solves of at most `most_steps` steps keep.
    pub fn peak_bytes(&self, most_steps: usize) -> usize {
        self.arena_bytes + self.kept_bytes(most_steps)
    }

    /// The same if no two values shared memory.
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
        let bodies = vec![("attempt", leaf(100)), ("step", leaf(10)), ("backward step", leaf(1000))];
        let tile = PlanReport {
            kernels: 2,
            flops: 5,
            trips: 4,
            tapes: vec![(8, 2)],
            bodies,
            ..PlanReport::default()
        };
        let plan = PlanReport { kernels: 1, flops: 7, bodies: vec![("tile", tile)], ..PlanReport::default() };
        let counted = Trips { attempted: 6.5, accepted: 5.0, replayed: Some(2.5) };
        let found = work(&plan, counted);
        assert_eq!((found.kernels, found.flops), (12, 7.0 + 4.0 * (5.0 + 650.0 + 25.0 + 5000.0)));
        assert_eq!(found.bytes_moved, 4.0 * 10.0 * (650.0 + 25.0 + 5000.0));
        // Two slots for five steps: E(5, 2) = T(2, 6) - 5 steps are run again.
        let again = fewest_extra(5, 2) as f64;
        assert_eq!(work(&plan, Trips::planned(5)).flops, 7.0 + 4.0 * (5.0 + 500.0 + 10.0 * again + 5000.0));
    }
}
