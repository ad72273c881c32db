//! Stiffness checks of trajectories in lanes, made between two runs of attempts.
//!
//! The driver makes a given number of attempts (a *run*) without checks. A
//! trajectory is checked after a fixed number of its own attempts, so the result does not depend on its
//! neighbors. A run ends just before an attempt that is checked, so that y and the first stage can be stored.
//! The next run is this attempt alone. The check uses the stored values and the stages of the attempt.

use super::LaneFloat;
use super::components::LaneState;
use super::pack::{MOST, Pack};
use crate::ode::stiffness::{StiffnessCheck, Suspicion};
use crate::ode::{LaneClock, Method, Scheme, Warning};

/// Attempts of a trajectory between two checks while no check is positive. Every check ends two runs of all
/// lanes. Lorenz with 1,316 attempts per trajectory takes 11.7 ns per attempt with `EVERY` = 1,000, as
/// without checks, and 13.3 ns with `EVERY` = 250.
const EVERY: f64 = 1000.0;

/// The stiffness checks of a pack.
pub(super) struct Looks<S> {
    /// The method's data for a check; `None` if the method cannot detect stiffness.
    look: Option<StiffnessCheck>,
    lanes: [Lane; MOST],
    /// The states and the first stages before the attempt to check.
    before: Option<(S, S)>,
}

/// The checks of the trajectory in one lane.
#[derive(Clone, Copy)]
struct Lane {
    trajectory: usize,
    /// The attempt to check next, counted from 1.
    due: f64,
    suspicion: Suspicion<f64>,
}

impl Lane {
    fn of(trajectory: usize) -> Lane {
        Lane { trajectory, due: EVERY, suspicion: Suspicion::none(&0.0) }
    }
}

/// The indices of the lanes in a mask.
fn each(mut lanes: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = (lanes != 0).then_some(lanes.trailing_zeros() as usize);
        lanes &= lanes.saturating_sub(1);
        lane
    })
}

impl<S: Clone> Looks<S> {
    pub fn of<T: LaneFloat>(scheme: &Scheme<S>, method: Option<Method>) -> Self
    where
        S: LaneState<T>,
    {
        let look = StiffnessCheck::of(scheme, method);
        Looks { look, lanes: [Lane::of(usize::MAX); MOST], before: None }
    }

    /// The number of attempts before the next attempt to check. If the next attempt is checked, stores the
    /// state before it and returns 1.
    pub fn budget<T: LaneFloat, F>(&mut self, pack: &Pack<S, F>) -> u64
    where
        S: LaneState<T, Clock: LaneClock>,
    {
        if self.look.is_none() {
            return u64::MAX;
        }
        let mut left = f64::INFINITY;
        for lane in each(pack.taken) {
            let of = &mut self.lanes[lane];
            if of.trajectory != pack.index[lane] {
                *of = Lane::of(pack.index[lane]);
            }
            left = left.min(of.due - pack.carry.num_steps.lane(lane));
        }
        if left > 1.0 {
            return (left - 1.0) as u64;
        }
        self.before = Some((pack.carry.y.clone(), pack.carry.k[0].clone()));
        1
    }

    /// Checks the trajectories whose last attempt is due for a check and was accepted. `warnings` has one
    /// entry per trajectory.
    pub fn look<T: LaneFloat, F>(
        &mut self,
        scheme: &Scheme<S>,
        pack: &Pack<S, F>,
        warnings: &mut [Option<Warning>],
    ) where
        S: LaneState<T, Clock: LaneClock>,
    {
        let (Some(look), Some((y, first))) = (&self.look, self.before.take()) else { return };
        let carry = &pack.carry;
        let accepted = S::Clock::bits(&carry.accepted);
        for lane in each(pack.taken) {
            let of = &mut self.lanes[lane];
            if of.due != carry.num_steps.lane(lane) {
                continue;
            }
            of.due += 1.0;
            if accepted & (1 << lane) == 0 {
                continue;
            }
            let stage = |i: usize, j: usize| {
                let stage = if i == 0 { &first } else { &carry.k[i] };
                stage.lane(j, lane).value()
            };
            let scale = |j: usize| {
                let (rtol, atol) = scheme.tolerance.at(j);
                atol + rtol * y.lane(j, lane).value().abs()
            };
            let is_suspicious = look.is_suspicious_at(y.num_components(), stage, scale);
            of.suspicion = of.suspicion.see(&is_suspicious, &carry.t.lane(lane));
            let warning = of.suspicion.warning();
            if warning.is_some() {
                (warnings[pack.index[lane]], of.due) = (warning, f64::INFINITY);
            } else if !of.suspicion.is_raised() {
                of.due += EVERY - 1.0;
            }
        }
    }
}
