//! `StepEnd`: the end of a step, and `Span`: the interval of a solve as values of its clock.
//!
//! Limits on times are in ulp of these times, never relative to the interval. So a solve to t1 = infinity that
//! an event ends is as exact as a solve to the event time.

use super::{Carry, Clock, ConstantStepSize, Controller, Scheme, State, StepTo};

/// The interval of a solve, as values of its clock.
#[derive(Clone, Debug)]
pub struct Span<C> {
    /// The start of the solve.
    pub t0: C,
    /// The end of the solve; infinite if only an event or a callback ends it.
    pub t1: C,
    /// The sign of t1 - t0; 1 if they are equal.
    pub direction: C,
}

impl<C: Clock> Span<C> {
    /// From t0 to t1.
    #[inline(always)]
    pub fn new(t0: C, t1: C) -> Self {
        let one = t0.like(1.0);
        let direction = C::select(&t1.lt(&t0), &one.like(-1.0), &one);
        Span { t0, t1, direction }
    }

    /// Whether t increases.
    #[inline(always)]
    pub(super) fn is_forward(&self) -> C::Mask {
        self.t0.like(0.0).lt(&self.direction)
    }

    /// Whether t decreases.
    #[inline(always)]
    pub(super) fn is_backward(&self) -> C::Mask {
        self.direction.lt(&self.t0.like(0.0))
    }

    /// `dt0` with the sign of t1 - t0.
    #[inline(always)]
    pub(super) fn towards(&self, dt0: f64) -> C {
        self.direction.mul(&self.t0.like(dt0.abs()))
    }
}

/// n ulp of x, where an ulp is `2^-52 |x|`: between one and two units in the last place.
#[inline(always)]
pub(crate) fn ulps<C: Clock>(n: f64, x: &C) -> C {
    x.abs().mul(&x.like(n * f64::EPSILON))
}

/// 100 ulp of a number, as a fraction of the number.
pub(super) const SLACK: f64 = 100.0 * f64::EPSILON;

/// A remainder after the step from `t` to `t_next` is merged with the step if it is below this: 100 ulp of
/// the larger of the two times.
#[inline(always)]
pub(crate) fn slack<C: Clock>(t: &C, t_next: &C) -> C {
    t.abs().max(&t_next.abs()).mul(&t.like(SLACK))
}

/// The smallest step at t = 0, where an ulp is 0.
const DT_LEAST: f64 = 1e-300;

/// The smallest step at t: 16 ulp of t.
#[inline(always)]
pub(super) fn dt_least<C: Clock>(t: &C) -> C {
    ulps(16.0, t).max(&t.like(DT_LEAST))
}

/// The end of a step.
pub(super) struct StepEnd<C: Clock> {
    /// The end time.
    pub t: C,
    /// Whether the time is t1.
    pub last: C::Mask,
    /// Whether the time is one of the stops.
    pub stop: C::Mask,
    /// Whether a stop is also a multiple of the constant step size, or one of the times of `StepTo`. It has
    /// no meaning if `stop` is false.
    pub grid: C::Mask,
}

/// The next time that no step may pass (a stop or t1), and whether it is a stop.
#[inline(always)]
pub(super) fn next_wall<S: State>(
    scheme: &Scheme<S>,
    span: &Span<S::Clock>,
    carry: &Carry<S>,
) -> (S::Clock, <S::Clock as Clock>::Mask) {
    let stops = scheme.limits.stops;
    if stops.is_empty() {
        return (span.t1.clone(), span.t0.lt(&span.t0));
    }
    let more = carry.num_stops.lt(&carry.t.like(stops.len() as f64));
    let stop = carry.num_stops.lookup(stops);
    let more = S::Clock::and(&more, &is_before(span, &stop));
    (S::Clock::select(&more, &stop, &span.t1), more)
}

/// The end of the step that starts at `carry.t`.
///
/// A proposed end beyond t1 or a stop, or within the slack before it, becomes that time. So the stages of a
/// method with all c in [0, 1] are never evaluated beyond t1 or a stop. A rejected step is retried without
/// slack, because merging could repeat the same step.
#[inline(always)]
pub(super) fn next_step_end<S: State>(
    scheme: &Scheme<S>,
    span: &Span<S::Clock>,
    carry: &Carry<S>,
) -> StepEnd<S::Clock> {
    let (wall, is_stop) = next_wall(scheme, span, carry);
    let one = carry.t.like(1.0);
    let slack_of_attempt = carry.t.abs().mul(&carry.slack);
    let (proposed, at_wall, grid) = match scheme.controller {
        Controller::StepTo(StepTo { ts }) => {
            let next = carry.num_accepted.sub(&carry.num_off_grid).add(&one);
            let (more, t) = (next.lt(&next.like(ts.len() as f64 - 1.0)), next.lookup(ts));
            let last = S::Clock::not(&S::Clock::and(&more, &is_before(span, &t)));
            let t = S::Clock::select(&last, &span.t1, &t);
            let stop = S::Clock::and(&is_stop, &S::Clock::and(&t.le(&wall), &wall.le(&t)));
            // Every stop is one of the times of `StepTo`.
            return StepEnd { t, last, grid: stop.clone(), stop };
        }
        Controller::Constant(ConstantStepSize { dt0 }) => {
            let next = carry.num_accepted.sub(&carry.num_off_grid).add(&one);
            let grid = span.t0.add(&next.mul(&span.towards(*dt0)));
            let slack = slack(&span.t0, &grid);
            let at_wall = passes(span, &wall, &grid, &slack);
            // Two times within the slack of each other count as one step time.
            let apart = slack.lt(&grid.sub(&wall).mul(&span.direction));
            let on_grid = S::Clock::not(&S::Clock::and(&at_wall, &apart));
            (grid, at_wall, on_grid)
        }
        other => {
            let proposed = carry.t.add(&carry.dt);
            let at_wall = match other.properties().stretch {
                None => passes(span, &wall, &proposed, &slack_of_attempt),
                Some(stretch) => {
                    let stretched = carry.t.add(&carry.dt.mul(&one.like(stretch)));
                    passes(span, &wall, &stretched, &slack_of_attempt)
                }
            };
            (proposed, at_wall, span.t0.lt(&span.t0))
        }
    };
    let t = S::Clock::select(&at_wall, &wall, &proposed);
    let last = S::Clock::and(&at_wall, &S::Clock::not(&is_stop));
    StepEnd { t, last, stop: S::Clock::and(&at_wall, &is_stop), grid }
}

/// Whether t comes before t1. For stops and all but the last time of `StepTo` it is true, unless `span` is
/// only a piece of the interval that ends earlier.
#[inline(always)]
fn is_before<C: Clock>(span: &Span<C>, t: &C) -> C::Mask {
    t.sub(&span.t1).mul(&span.direction).lt(&t.like(0.0))
}

#[inline(always)]
fn passes<C: Clock>(span: &Span<C>, wall: &C, proposed: &C, slack: &C) -> C::Mask {
    wall.sub(proposed).mul(&span.direction).le(slack)
}
