//! `Carry`: everything that changes from one step to the next.
//!
//! It consists of states and values of the clock; counters and the status are values of the clock, too. The
//! loop of a recorded solve can therefore carry it, and every step runs the program recorded for the first
//! step. The exception is the memory of stiff methods, which are never recorded.

use super::step_end::SLACK;
use super::{Clock, Scheme, State, StiffStages};

/// The data that one step passes to the next.
#[derive(Clone)]
pub struct Carry<S: State> {
    // A replay of the accepted steps carries these two as well.
    /// The time reached.
    pub t: S::Clock,
    /// The state at t; if the solve failed, the last good state.
    pub y: S,

    // These are carried only while the controller chooses steps.
    /// The size of the step to attempt next, signed, before it is shortened to end at t1 or at a stop.
    pub dt: S::Clock,
    /// The stages, then scratch. `k[0]` is f(t, y) if the scheme carries it. The others are those of the last
    /// attempt, which the next one does not read.
    pub k: Vec<S>,
    /// 1/error_ratio of the last accepted step.
    pub inv_prev: S::Clock,
    /// 1/error_ratio of the accepted step before that.
    pub inv_prev2: S::Clock,
    /// The size of the last accepted step, signed; 0 before the first.
    pub h_prev: S::Clock,
    /// The largest remainder that is merged into the next step, relative to t. It is 0 after a rejected
    /// attempt, because merging could repeat the same step.
    pub slack: S::Clock,
    /// Steps attempted.
    pub num_steps: S::Clock,
    /// Steps accepted. `num_accepted - num_off_grid` is the number of passed multiples of a constant step
    /// size, or of passed times of `StepTo`.
    pub num_accepted: S::Clock,
    /// Steps rejected. With `HairerController`, steps that the error estimate rejects before the first
    /// accepted step are not counted.
    pub num_rejected: S::Clock,
    /// Stops passed; [`Limits::stops`](super::Limits::stops) has the stops.
    pub num_stops: S::Clock,
    /// Steps that ended elsewhere than on the grid of a constant step size or of `StepTo`: at a stop or at an
    /// event.
    pub num_off_grid: S::Clock,
    /// Evaluations of the vector field.
    pub num_fn_evals: S::Clock,
    /// Jacobians computed; 0 for explicit methods, whose recorded solves do not carry this counter.
    pub num_jac_evals: S::Clock,
    /// Matrix factorizations; 0 for explicit methods too.
    pub num_factorizations: S::Clock,
    /// Consecutive rejections, up to now, because of non-finite numbers or a failed vector field.
    pub non_finite_in_row: S::Clock,
    /// One of the codes of [`status`](super::status).
    pub status: S::Clock,

    // Results of the last attempt, for drivers and reports.
    /// The size of the last attempted step, shortened if it ended at t1 or at a stop. A rejected attempt
    /// started at t.
    pub h: S::Clock,
    /// The error ratio of the last attempted step; 0 without an error estimate.
    pub error_ratio: S::Clock,
    /// The first non-finite component of the last non-finite attempt; -1 if there was none, `-2 - i` if the
    /// function of event i was NaN.
    pub component: S::Clock,
    /// Whether the last attempted step was accepted.
    pub accepted: <S::Clock as Clock>::Mask,

    /// Scratch of a step, without meaning between steps.
    pub y1: S,
    /// The memory of a method that is not explicit.
    pub stiff: Option<Box<dyn StiffStages<S>>>,
}

impl<S: State> Carry<S> {
    /// Creates a carry at t with all counters 0 and the status `RUNNING`, for a method of `num_stages`
    /// stages.
    #[inline(always)]
    pub fn new(t: S::Clock, y: S, num_stages: usize) -> Self {
        let zero = t.like(0.0);
        let one = t.like(1.0);
        Carry {
            dt: zero.clone(),
            k: vec![y.clone(); num_stages + 1],
            inv_prev: one.clone(),
            inv_prev2: one,
            h_prev: zero.clone(),
            slack: zero.like(SLACK),
            num_steps: zero.clone(),
            num_accepted: zero.clone(),
            num_rejected: zero.clone(),
            num_stops: zero.clone(),
            num_off_grid: zero.clone(),
            num_fn_evals: zero.clone(),
            non_finite_in_row: zero.clone(),
            status: zero.clone(),
            h: zero.clone(),
            error_ratio: zero.clone(),
            component: zero.like(-1.0),
            accepted: zero.lt(&zero),
            y1: y.clone(),
            stiff: None,
            num_jac_evals: zero.clone(),
            num_factorizations: zero.clone(),
            t,
            y,
        }
    }

    /// Sets all clocks to those of a [`new`](Carry::new) carry at t, without allocating. States and the
    /// memory of stiff methods are unchanged.
    pub(super) fn reset(&mut self, t: &S::Clock) {
        let (zero, one) = (t.like(0.0), t.like(1.0));
        self.t = t.clone();
        self.accepted = zero.lt(&zero);
        self.component = zero.like(-1.0);
        self.slack = zero.like(SLACK);
        for clock in [&mut self.inv_prev, &mut self.inv_prev2] {
            *clock = one.clone();
        }
        for clock in [
            &mut self.dt,
            &mut self.h_prev,
            &mut self.num_steps,
            &mut self.num_accepted,
            &mut self.num_rejected,
            &mut self.num_stops,
            &mut self.num_off_grid,
            &mut self.num_fn_evals,
            &mut self.num_jac_evals,
            &mut self.num_factorizations,
            &mut self.non_finite_in_row,
            &mut self.status,
            &mut self.h,
            &mut self.error_ratio,
        ] {
            *clock = zero.clone();
        }
    }

    /// Every clock that a later step or a driver reads under this scheme, in a fixed order. A recorded loop
    /// carries these in addition to `y` and `k[0]`.
    pub fn clocks_mut(&mut self, scheme: &Scheme<S>) -> Vec<&mut S::Clock> {
        let mut clocks = vec![
            &mut self.t,
            &mut self.dt,
            &mut self.inv_prev,
            &mut self.inv_prev2,
            &mut self.num_steps,
            &mut self.num_accepted,
            &mut self.num_rejected,
            &mut self.num_fn_evals,
            &mut self.non_finite_in_row,
            &mut self.status,
            &mut self.h,
            &mut self.error_ratio,
            &mut self.component,
        ];
        if !scheme.limits.stops.is_empty() {
            clocks.extend([&mut self.num_stops, &mut self.num_off_grid]);
        }
        if !scheme.tableau.is_explicit() {
            clocks.extend([&mut self.num_jac_evals, &mut self.num_factorizations]);
        }
        if scheme.is_adaptive() {
            clocks.push(&mut self.slack);
        }
        if scheme.controller.properties().reads_last_size {
            clocks.push(&mut self.h_prev);
        }
        clocks
    }

    /// Whether the solve has not ended.
    #[inline(always)]
    pub fn is_running(&self) -> <S::Clock as Clock>::Mask {
        self.status.lt(&self.status.like(0.5))
    }
}
