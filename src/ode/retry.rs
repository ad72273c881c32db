//! Retries of steps, and solves that continue after a step was cut short: the work of a driver between
//! attempts.
//!
//! An attempt judges a step only by its error estimate and its numbers. The driver detects that an event is
//! NaN in the step, that the vector field failed with a `Recoverable` error, or that the step ends at an
//! event. This module updates the carry in these cases, for plain states and for tensors.

use super::attempt::{NON_FINITE_MAX, count_stiff};
use super::stages::eval;
use super::{Carry, Clock, FieldFailure, Scheme, Span, State, VectorField, status};

/// The values of the carry before an accepted step, with which the step can be undone, cut short or
/// interpolated.
#[derive(Clone)]
pub(crate) struct Before<S: State> {
    /// The start of the step.
    pub(crate) t: S::Clock,
    /// The state at t.
    pub(crate) y: S,
    /// f(t, y), if it is carried.
    pub(crate) k0: S,
    inv_prev: S::Clock,
    inv_prev2: S::Clock,
    h_prev: S::Clock,
    num_stops: S::Clock,
    /// `Carry::num_off_grid` before the step.
    pub(crate) num_off_grid: S::Clock,
    non_finite_in_row: S::Clock,
}

impl<S: State> Before<S> {
    /// Copies these values from `carry`, before a step.
    pub(crate) fn of(carry: &Carry<S>) -> Self {
        Before {
            t: carry.t.clone(),
            y: carry.y.clone(),
            k0: carry.k[0].clone(),
            inv_prev: carry.inv_prev.clone(),
            inv_prev2: carry.inv_prev2.clone(),
            h_prev: carry.h_prev.clone(),
            num_stops: carry.num_stops.clone(),
            num_off_grid: carry.num_off_grid.clone(),
            non_finite_in_row: carry.non_finite_in_row.clone(),
        }
    }

    /// [`of`](Self::of) without allocating.
    #[inline]
    pub(crate) fn renew(&mut self, carry: &Carry<S>) {
        self.y.copy_of(&carry.y);
        self.k0.copy_of(&carry.k[0]);
        self.t = carry.t.clone();
        self.inv_prev = carry.inv_prev.clone();
        self.inv_prev2 = carry.inv_prev2.clone();
        self.h_prev = carry.h_prev.clone();
        self.num_stops = carry.num_stops.clone();
        self.num_off_grid = carry.num_off_grid.clone();
        self.non_finite_in_row = carry.non_finite_in_row.clone();
    }
}

/// Undoes the last accepted step where `bad` holds. It then counts as rejected because of non-finite numbers,
/// and `component` becomes that of the carry.
pub(crate) fn take_back<S: State>(
    scheme: &Scheme<S>,
    before: &Before<S>,
    (bad, component): (&<S::Clock as Clock>::Mask, &S::Clock),
    carry: &mut Carry<S>,
) {
    let zero = carry.t.like(0.0);
    let one = S::Clock::select(bad, &carry.t.like(1.0), &zero);
    let old = |old: &S::Clock, new: &S::Clock| S::Clock::select(bad, old, new);
    carry.y.keep(bad, &mut before.y.clone());
    if scheme.carries_first() {
        carry.k[0].keep(bad, &mut before.k0.clone());
    }
    carry.t = old(&before.t, &carry.t);
    carry.inv_prev = old(&before.inv_prev, &carry.inv_prev);
    carry.inv_prev2 = old(&before.inv_prev2, &carry.inv_prev2);
    carry.h_prev = old(&before.h_prev, &carry.h_prev);
    carry.num_stops = old(&before.num_stops, &carry.num_stops);
    carry.num_off_grid = old(&before.num_off_grid, &carry.num_off_grid);
    carry.non_finite_in_row = old(&before.non_finite_in_row, &carry.non_finite_in_row).add(&one);
    carry.num_accepted = carry.num_accepted.sub(&one);
    carry.num_rejected = carry.num_rejected.add(&one);
    carry.component = old(component, &carry.component);
    carry.accepted = S::Clock::and(&carry.accepted, &S::Clock::not(bad));
    shorten(scheme, bad, carry);
    let mut end = zero.like(status::NON_FINITE);
    if scheme.is_adaptive() {
        let out_of_steps = zero.like(scheme.limits.max_steps as f64).le(&carry.num_steps);
        let next =
            S::Clock::select(&out_of_steps, &zero.like(status::MAX_STEPS), &zero.like(status::RUNNING));
        end = S::Clock::select(&is_hopeless(scheme, carry), &end, &next);
    }
    carry.status = old(&end, &carry.status);
}

/// Counts an attempt of size `h` in which the vector field failed with a `Recoverable` error, and shortens
/// the next attempt. Returns false if no shorter step is allowed. The carry still holds the start of the
/// attempt.
pub(super) fn refuse<S: State<Clock = f64>>(scheme: &Scheme<S>, h: f64, carry: &mut Carry<S>) -> bool {
    if !scheme.is_adaptive() {
        return false;
    }
    carry.h = h;
    carry.num_steps += 1.0;
    carry.num_rejected += 1.0;
    carry.num_fn_evals += scheme.evals_per_attempt() as f64;
    count_stiff(&true, carry);
    carry.non_finite_in_row += 1.0;
    shorten(scheme, &true, carry);
    if carry.num_steps >= scheme.limits.max_steps as f64 {
        carry.status = status::MAX_STEPS;
    }
    !is_hopeless(scheme, carry)
}

/// Sets the next step size where `bad` holds: there the step was rejected because of non-finite numbers.
fn shorten<S: State>(scheme: &Scheme<S>, bad: &<S::Clock as Clock>::Mask, carry: &mut Carry<S>) {
    let factor = scheme.controller.properties().factor_after_failure;
    let number = |x: f64| carry.t.like(x);
    carry.dt = S::Clock::select(bad, &carry.h.mul(&number(factor)), &carry.dt);
    carry.error_ratio = S::Clock::select(bad, &number(f64::INFINITY), &carry.error_ratio);
    carry.slack = S::Clock::select(bad, &number(0.0), &carry.slack);
}

/// Whether there were too many consecutive rejections because of non-finite numbers, or the next step is too
/// short.
fn is_hopeless<S: State>(scheme: &Scheme<S>, carry: &Carry<S>) -> <S::Clock as Clock>::Mask {
    let too_many = carry.t.like(NON_FINITE_MAX).le(&carry.non_finite_in_row);
    S::Clock::or(&too_many, &carry.dt.abs().lt(&scheme.dt_min(&carry.t)))
}

/// After an event that cuts a step short, the next step is at most this many times as long as the part before
/// the event, or twice the smallest allowed step if that is longer.
const GROWTH: f64 = 10.0;

/// Continues from `carry`, whose t and y are the time and state after an event or after a change by the
/// caller, where `goes_on` holds. The last step started at `t_start`, with `num_off_grid` of that time, and
/// would have ended at `t_end`. Counters that depend on t are adapted, and the next step's first stage is
/// computed anew.
///
/// # Errors
/// The vector field's error, with the time of the evaluation.
pub(crate) fn resume<S: State, F: VectorField<S>>(
    f: &F,
    scheme: &Scheme<S>,
    span: &Span<S::Clock>,
    (t_start, num_off_grid, t_end): (&S::Clock, &S::Clock, &S::Clock),
    goes_on: &<S::Clock as Clock>::Mask,
    carry: &mut Carry<S>,
) -> Result<(), FieldFailure<S::Clock>> {
    let t = carry.t.clone();
    let number = |x: f64| t.like(x);
    let is_short = S::Clock::or(&t.lt(t_end), &t_end.lt(&t));
    let is_short = S::Clock::and(goes_on, &is_short);
    let short = |new: &S::Clock, old: &S::Clock| S::Clock::select(&is_short, new, old);
    // The full step reached t1, but the step that was cut short did not.
    let completed = number(status::COMPLETED);
    let had_ended = S::Clock::and(&completed.le(&carry.status), &carry.status.le(&completed));
    let unreached = S::Clock::and(&is_short, &had_ended);
    carry.status = S::Clock::select(&unreached, &number(status::RUNNING), &carry.status);
    carry.num_off_grid = short(&num_off_grid.add(&number(1.0)), &carry.num_off_grid);
    if !scheme.limits.stops.is_empty() {
        carry.num_stops = short(&scheme.limits.num_passed(span, &t), &carry.num_stops);
    }
    if scheme.is_adaptive() {
        let most = t.sub(t_start).abs().mul(&number(GROWTH)).max(&scheme.dt_min(&t).mul(&number(2.0)));
        let dt = carry.dt.abs().min(&most).mul(&span.direction);
        carry.dt = short(&dt, &carry.dt);
        let forgets = scheme.controller.properties().forgets_at_events;
        if !scheme.tableau.is_explicit() && forgets {
            // Stiff methods may shorten an accepted step by the ratio of the last two step sizes. The size of
            // the step before the cut would shorten each of the next steps, down to rounding of t.
            let one = number(1.0);
            carry.inv_prev = short(&one, &carry.inv_prev);
            carry.inv_prev2 = short(&one, &carry.inv_prev2);
            carry.h_prev = short(&number(0.0), &carry.h_prev);
        }
    }
    if !scheme.carries_first() {
        return Ok(());
    }
    let renew = S::Clock::and(goes_on, &carry.is_running());
    if S::Clock::known(&renew) == Some(false) {
        return Ok(());
    }
    let mut first = carry.k[0].clone();
    eval(f, &scheme.after(span, &t), &carry.y, &mut first)?;
    carry.k[0].keep(&renew, &mut first);
    let one = S::Clock::select(&renew, &number(1.0), &number(0.0));
    carry.num_fn_evals = carry.num_fn_evals.add(&one);
    Ok(())
}
