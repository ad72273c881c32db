//! The stepping algorithm: one attempted step, written once over a clock and a state.
//!
//! [`attempt`] computes the stages and the error estimate, accepts or rejects the step, chooses the next step
//! size and detects the end of the solve. [`step`] repeats an accepted step from one step time to the
//! next: it evaluates the stages that y1 needs, the first one included, and computes only y1. Both compute the
//! stages by the same code, so equal step times give equal bits. For this reason `attempt` fixes the end of
//! the step first and computes h = t_next - t.
//!
//! Nothing here may loop over steps, save, print or allocate: drivers loop, and recorders save. A branch on a
//! value of the clock needs [`Clock::known`], and may only skip work whose result is unused.

use super::controller::{ErrorControl, History, of_error};
use super::stages::{First, Times, eval, stages};
use super::step_end::{SLACK, StepEnd, next_step_end};
use super::stiff::{Request, stiff_stages};
use super::{
    Carry, Clock, Compiled, Controller, FieldFailure, Scheme, Span, State, StiffStages, VectorField, status,
};

/// The number of consecutive rejections because of non-finite numbers that ends a solve.
pub(super) const NON_FINITE_MAX: f64 = 20.0;

/// Attempts one step of the solve over `span` and leaves the result in `carry`.
///
/// If `carry.status` is not [`status::RUNNING`], an attempt changes no value that is reported.
///
/// # Errors
/// The vector field's error, with the time of the stage. `carry` then still holds the last good t and y.
#[inline(always)]
pub fn attempt<S: State, F: VectorField<S>>(
    f: &F,
    scheme: &Scheme<S>,
    span: &Span<S::Clock>,
    carry: &mut Carry<S>,
) -> Result<(), FieldFailure<S::Clock>> {
    attempt_with::<false, false, S, F>(f, scheme, span, carry)
}

/// [`attempt`], with the loop over stages unrolled if `UNROLLED`, and sums of stages with fused multiply-add
/// if `FUSED`; see [`stages`].
#[inline(always)]
pub(super) fn attempt_with<const UNROLLED: bool, const FUSED: bool, S: State, F: VectorField<S>>(
    f: &F,
    scheme: &Scheme<S>,
    span: &Span<S::Clock>,
    carry: &mut Carry<S>,
) -> Result<(), FieldFailure<S::Clock>> {
    attempt_then::<UNROLLED, FUSED, S, F>(f, scheme, span, carry, |_, _, _| Ok(()))
}

/// [`attempt`] of a step that applies a second map after the method: `then` receives the start and end times
/// of the step and its start state, and turns the method's y1 into the state after the step. The error
/// estimate uses the method's stages.
///
/// # Errors
/// The errors of [`attempt`], and the error of `then`.
#[inline(always)]
pub fn attempt_then<const UNROLLED: bool, const FUSED: bool, S: State, F: VectorField<S>>(
    f: &F,
    scheme: &Scheme<S>,
    span: &Span<S::Clock>,
    carry: &mut Carry<S>,
    then: impl FnOnce((&S::Clock, &S::Clock), &S, &mut S) -> Result<(), FieldFailure<S::Clock>>,
) -> Result<(), FieldFailure<S::Clock>> {
    let running = carry.is_running();
    let step_end = next_step_end(scheme, span, carry);
    let h = step_end.t.sub(&carry.t);
    let first = if scheme.carries_first() { First::Given } else { First::Evaluate };
    let times = Times::next(scheme, span, carry, &step_end.t);
    let is_explicit = is_explicit::<UNROLLED, S>(scheme);
    if is_explicit {
        let Carry { y, k, y1, .. } = carry;
        stages::<UNROLLED, FUSED, S, F>(f, scheme, first, &times, &h, y, k, y1)?;
    } else {
        stiff_stages(f, scheme, first, &times, &h, carry)?;
    }
    let Carry { t, y, y1, .. } = carry;
    then((t, &step_end.t), y, y1)?;

    let Verdict { good, broken, error_ratio } = match scheme.tableau.b_err {
        Some(b_err) if scheme.is_adaptive() => {
            judge::<UNROLLED, FUSED, S>(scheme, b_err, &running, &h, carry)
        }
        _ => trust(&running, &h, carry),
    };
    let accepted = S::Clock::and(&running, &good);
    let done = S::Clock::and(&accepted, &step_end.last);
    keep_first(f, scheme, span, (&accepted, &done), &step_end, carry)?;
    carry.y.keep(&accepted, &mut carry.y1);
    count(scheme, &running, &accepted, &broken, carry);
    carry.t = S::Clock::select(&accepted, &step_end.t, &carry.t);
    carry.h = S::Clock::select(&running, &h, &carry.h);
    if scheme.is_adaptive() {
        adapt::<UNROLLED, S>(scheme, &step_end, &running, &accepted, &error_ratio, carry);
    }
    if !is_explicit {
        count_stiff(&running, carry);
    }
    if !scheme.limits.stops.is_empty() {
        pass_stop(&accepted, &step_end, carry);
    }
    carry.error_ratio = S::Clock::select(&running, &error_ratio, &carry.error_ratio);
    settle(scheme, &running, &done, &broken, carry);
    carry.accepted = accepted;
    Ok(())
}

/// Whether the method is explicit. Only explicit methods have attempts with inlined coefficients (`UNROLLED`),
/// so the code of stiff methods is removed from these attempts before LLVM sees it. With that code, the largest
/// of them takes three times as long to compile.
#[inline(always)]
fn is_explicit<const UNROLLED: bool, S: State>(scheme: &Scheme<S>) -> bool {
    debug_assert!(
        !UNROLLED || scheme.tableau.is_explicit(),
        "invariant: {} is explicit",
        scheme.tableau.name
    );
    UNROLLED || scheme.tableau.is_explicit()
}

/// Computes one step from the step time `t` to the step time `t_next`. `y1` has the same bits as the state
/// that [`attempt`] accepts at `t_next`.
///
/// `k` holds at least as many states as the method has stages. Their values are ignored, and the stages
/// overwrite them. `stiff` computes the stages of a method that is not explicit.
///
/// # Errors
/// The vector field's error, with the time of the stage.
#[inline(always)]
pub fn step<S: State, F: VectorField<S>>(
    f: &F,
    scheme: &Scheme<S>,
    span: &Span<S::Clock>,
    (t, t_next): (&S::Clock, &S::Clock),
    (y, y1): (&S, &mut S),
    k: &mut [S],
    stiff: Option<&mut dyn StiffStages<S>>,
) -> Result<(), FieldFailure<S::Clock>> {
    let (times, h) = (Times::of(scheme, span, t, t_next), t_next.sub(t));
    match stiff {
        None => stages::<false, false, S, F>(f, scheme, First::Evaluate, &times, &h, y, k, y1),
        Some(stiff) => {
            let request = Request { scheme, first: First::Evaluate, times: &times, h: &h };
            stiff.stages(f, &request, y, k, y1)
        }
    }
}

/// After an accepted attempt, stores f(t, y) at the end of the step for the next attempt, if the scheme
/// carries it. For a FSAL method this is the last stage. Other methods evaluate it, and at a discontinuity
/// all methods evaluate it just after the discontinuity. At t1 nothing is evaluated.
///
/// This runs before other results of the attempt are stored, so that the driver can still try a shorter step
/// if the vector field fails.
#[inline(always)]
fn keep_first<S: State, F: VectorField<S>>(
    f: &F,
    scheme: &Scheme<S>,
    span: &Span<S::Clock>,
    (accepted, done): (&<S::Clock as Clock>::Mask, &<S::Clock as Clock>::Mask),
    step_end: &StepEnd<S::Clock>,
    carry: &mut Carry<S>,
) -> Result<(), FieldFailure<S::Clock>> {
    if !scheme.carries_first() {
        return Ok(());
    }
    let last = scheme.tableau.num_stages() - 1;
    let (first, others) = carry.k.split_at_mut(1);
    if scheme.carries_fsal() && scheme.limits.sides.is_empty() {
        first[0].keep(accepted, &mut others[last - 1]);
        return Ok(());
    }
    let mut renew = S::Clock::and(accepted, &S::Clock::not(done));
    let after = scheme.after_next(span, &step_end.t, &carry.num_stops);
    if scheme.carries_fsal() {
        let is_beside = S::Clock::or(&after.lt(&step_end.t), &step_end.t.lt(&after));
        renew = S::Clock::and(&renew, &is_beside);
    }
    let is_needed = S::Clock::known(&renew) != Some(false);
    if is_needed {
        eval(f, &after, &carry.y1, &mut others[last])?;
    }
    if scheme.carries_fsal() {
        first[0].keep(accepted, &mut others[last - 1]);
    }
    if !is_needed {
        return Ok(());
    }
    first[0].keep(&renew, &mut others[last]);
    let (zero, one) = (carry.t.like(0.0), carry.t.like(1.0));
    carry.num_fn_evals = carry.num_fn_evals.add(&S::Clock::select(&renew, &one, &zero));
    Ok(())
}

/// The result of judging an attempt.
struct Verdict<C: Clock> {
    /// Whether the step may be accepted: the error ratio is below 1 or, without an error estimate, y1 is
    /// finite.
    good: C::Mask,
    /// Whether the step produced non-finite numbers while the solve was running.
    broken: C::Mask,
    error_ratio: C,
}

/// Judges a step by its error estimate.
#[inline(always)]
fn judge<const UNROLLED: bool, const FUSED: bool, S: State>(
    scheme: &Scheme<S>,
    b_err: &[f64],
    running: &<S::Clock as Clock>::Mask,
    h: &S::Clock,
    carry: &mut Carry<S>,
) -> Verdict<S::Clock> {
    let (k, scratch) = carry.k.split_at_mut(scheme.tableau.num_stages());
    let scratch = &mut scratch[0];
    let mut error_ratio = measure::<UNROLLED, FUSED, S>(scheme, scratch, h, b_err, k, &carry.y, &carry.y1);
    if let Some(b_low) = scheme.tableau.b_err_low {
        let low = measure::<UNROLLED, FUSED, S>(scheme, scratch, h, b_low, k, &carry.y, &carry.y1);
        error_ratio = both(&error_ratio, &low);
    }
    let broken = S::Clock::and(running, &S::Clock::not(&error_ratio.is_finite()));
    if S::Clock::known(&broken) != Some(false) {
        // The sum of y1 and the error is not finite where one of them is not finite.
        scratch.lincomb(&carry.y1, h, b_err, k);
        carry.component = S::Clock::select(&broken, &scratch.first_non_finite(h), &carry.component);
    }
    Verdict { good: error_ratio.lt(&h.like(1.0)), broken, error_ratio }
}

/// The norm of `h sum_i b_i k_i`, in units of the tolerance.
#[inline(always)]
pub(super) fn measure<const UNROLLED: bool, const FUSED: bool, S: State>(
    scheme: &Scheme<S>,
    scratch: &mut S,
    h: &S::Clock,
    b: &[f64],
    k: &[S],
    y0: &S,
    y1: &S,
) -> S::Clock {
    match scheme.norm {
        None => scratch.error_ratio(h, b, &Compiled::<S, FUSED, UNROLLED>(k), y0, y1, &scheme.tolerance),
        Some(norm) => {
            scratch.scaled_error(h, b, k, y0, y1, &scheme.tolerance);
            norm(scratch)
        }
    }
}

/// Combines a higher and a lower order estimate: `high^2 / sqrt(high^2 + 0.01 low^2)` is near `high` if `low`
/// is small, and at most `10 high^2 / low`.
///
/// # References
/// Hairer, Norsett, Wanner I, section II.10, eq. (10.17).
#[inline(always)]
fn both<C: Clock>(high: &C, low: &C) -> C {
    let high2 = high.mul(high);
    let sum = high2.add(&low.mul(low).mul(&low.like(0.01)));
    C::select(&sum.le(&sum.like(0.0)), high, &high2.div(&sum.sqrt()))
}

/// Judges a step without an error estimate: it is accepted if y1 is finite.
#[inline(always)]
fn trust<S: State>(
    running: &<S::Clock as Clock>::Mask,
    h: &S::Clock,
    carry: &mut Carry<S>,
) -> Verdict<S::Clock> {
    let zero = h.like(0.0);
    let component = carry.y1.first_non_finite(h);
    let good = component.lt(&zero);
    let broken = S::Clock::and(running, &S::Clock::not(&good));
    carry.component = S::Clock::select(&broken, &component, &carry.component);
    Verdict { good, broken, error_ratio: zero }
}

#[inline(always)]
fn count<S: State>(
    scheme: &Scheme<S>,
    running: &<S::Clock as Clock>::Mask,
    accepted: &<S::Clock as Clock>::Mask,
    broken: &<S::Clock as Clock>::Mask,
    carry: &mut Carry<S>,
) {
    let (zero, one) = (carry.t.like(0.0), carry.t.like(1.0));
    let evals = zero.like(scheme.evals_per_attempt() as f64);
    let step = S::Clock::select(running, &one, &zero);
    let accept = S::Clock::select(accepted, &one, &zero);
    carry.num_steps = carry.num_steps.add(&step);
    carry.num_accepted = carry.num_accepted.add(&accept);
    let rejected = if scheme.controller.properties().counts_first_rejections {
        S::Clock::and(running, &S::Clock::not(accepted))
    } else {
        let started = one.le(&carry.num_accepted);
        S::Clock::and(&started, &S::Clock::and(running, &S::Clock::not(accepted)))
    };
    carry.num_rejected = carry.num_rejected.add(&S::Clock::select(&rejected, &one, &zero));
    carry.num_fn_evals = carry.num_fn_evals.add(&step.mul(&evals));
    let in_row = S::Clock::select(broken, &carry.non_finite_in_row.add(&one), &zero);
    carry.non_finite_in_row = S::Clock::select(running, &in_row, &carry.non_finite_in_row);
}

/// Adds the evaluations, Jacobians and factorizations of a method that is not explicit to the counters.
pub(super) fn count_stiff<S: State>(running: &<S::Clock as Clock>::Mask, carry: &mut Carry<S>) {
    let Some(counts) = carry.stiff.as_mut().map(|stiff| stiff.take_counts()) else { return };
    let zero = carry.t.like(0.0);
    let counted = |n: u64| S::Clock::select(running, &zero.like(n as f64), &zero);
    carry.num_fn_evals = carry.num_fn_evals.add(&counted(counts.evals));
    carry.num_jac_evals = carry.num_jac_evals.add(&counted(counts.jacobians));
    carry.num_factorizations = carry.num_factorizations.add(&counted(counts.factorizations));
}

/// Computes the next step size and updates the controller's history. `carry.h` is already the size of this
/// attempt.
#[inline(always)]
fn adapt<const UNROLLED: bool, S: State>(
    scheme: &Scheme<S>,
    step_end: &StepEnd<S::Clock>,
    running: &<S::Clock as Clock>::Mask,
    accepted: &<S::Clock as Clock>::Mask,
    error_ratio: &S::Clock,
    carry: &mut Carry<S>,
) {
    let order = scheme.tableau.error_order;
    let past = History {
        inv_prev: &carry.inv_prev,
        inv_prev2: &carry.inv_prev2,
        h: &carry.h,
        h_prev: &carry.h_prev,
        slack: &carry.slack,
        is_stiff: !scheme.tableau.is_explicit(),
    };
    let (factor, history) = of_error!(
        scheme.controller,
        control => (control.next::<UNROLLED, _>(order, error_ratio, &past), control.history(error_ratio)),
        return
    );
    let mut dt = carry.h.mul(&factor);
    if !scheme.limits.stops.is_empty() {
        // If a stop cut the step short, the next step has the size proposed before, unless the controller now
        // proposes more. The factor 1 + 1e-9 excludes steps that differ from the proposal only by rounding.
        let cut = carry.h.mul(&carry.h.like(1.0 + 1e-9)).abs().lt(&carry.dt.abs());
        let cut = S::Clock::and(&cut, &S::Clock::and(accepted, &step_end.stop));
        let cut = S::Clock::and(&cut, &dt.abs().lt(&carry.dt.abs()));
        dt = S::Clock::select(&cut, &carry.dt, &dt);
    }
    carry.dt = S::Clock::select(running, &scheme.at_most_dt_max(&dt), &carry.dt);
    carry.inv_prev2 = S::Clock::select(accepted, &carry.inv_prev, &carry.inv_prev2);
    carry.inv_prev = S::Clock::select(accepted, &history, &carry.inv_prev);
    carry.h_prev = S::Clock::select(accepted, &carry.h, &carry.h_prev);
    let (zero, one) = (carry.t.like(0.0), carry.t.like(1.0));
    let slack = S::Clock::select(accepted, &one.like(SLACK), &zero);
    carry.slack = S::Clock::select(running, &slack, &carry.slack);
}

/// Counts the stop, if the accepted step ended at one.
#[inline(always)]
fn pass_stop<S: State>(
    accepted: &<S::Clock as Clock>::Mask,
    step_end: &StepEnd<S::Clock>,
    carry: &mut Carry<S>,
) {
    let (zero, one) = (carry.t.like(0.0), carry.t.like(1.0));
    let passed = S::Clock::and(accepted, &step_end.stop);
    let off_grid = S::Clock::and(&passed, &S::Clock::not(&step_end.grid));
    carry.num_stops = carry.num_stops.add(&S::Clock::select(&passed, &one, &zero));
    carry.num_off_grid = carry.num_off_grid.add(&S::Clock::select(&off_grid, &one, &zero));
}

/// Sets the status: whether the solve has ended, and why. t, dt and the counters are already those after this
/// attempt.
#[inline(always)]
fn settle<S: State>(
    scheme: &Scheme<S>,
    running: &<S::Clock as Clock>::Mask,
    done: &<S::Clock as Clock>::Mask,
    broken: &<S::Clock as Clock>::Mask,
    carry: &mut Carry<S>,
) {
    let code = |x: f64| carry.t.like(x);
    let non_finite = code(status::NON_FINITE);
    let out_of_steps = code(scheme.limits.max_steps as f64).le(&carry.num_steps);
    let mut end = S::Clock::select(&out_of_steps, &code(status::MAX_STEPS), &code(status::RUNNING));
    if scheme.is_adaptive() {
        let too_small = carry.dt.abs().lt(&scheme.dt_min(&carry.t));
        let why = S::Clock::select(broken, &non_finite, &code(status::STEP_SIZE_TOO_SMALL));
        end = S::Clock::select(&too_small, &why, &end);
        let too_many = code(NON_FINITE_MAX).le(&carry.non_finite_in_row);
        end = S::Clock::select(&too_many, &non_finite, &end);
    } else {
        end = S::Clock::select(broken, &non_finite, &end);
    }
    end = S::Clock::select(done, &code(status::COMPLETED), &end);
    carry.status = S::Clock::select(running, &end, &carry.status);
}
