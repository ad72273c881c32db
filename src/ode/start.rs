//! The start of a solve: f(t0, y0), the first step size, and solves that end before their first step.

use super::attempt::measure;
use super::stages::eval;
use super::step_end::next_wall;
use super::{Carry, Clock, FieldFailure, Scheme, Span, State, VectorField, status};

/// The carry before the first step.
///
/// If steps are adaptive or f(t, y) is carried, it evaluates f(t0, y0), and ends the solve if that is not
/// finite. If steps are adaptive and dt0 is not given, it chooses the first step size with Hairer's
/// algorithm, which takes one more evaluation. If t0 == t1, the solve is completed with y0.
///
/// # Errors
/// The vector field's error, with the time of the evaluation.
#[inline(always)]
pub fn start<S: State, F: VectorField<S>>(
    f: &F,
    scheme: &Scheme<S>,
    span: &Span<S::Clock>,
    y0: S,
) -> Result<Carry<S>, FieldFailure<S::Clock>> {
    let mut carry = Carry::new(span.t0.clone(), y0, scheme.tableau.num_stages());
    start_in(f, scheme, span, &mut carry)?;
    Ok(carry)
}

/// [`start`] in a given carry, which is new or [reset](Carry::reset) at t0 and holds y0.
#[inline(always)]
pub(super) fn start_in<S: State, F: VectorField<S>>(
    f: &F,
    scheme: &Scheme<S>,
    span: &Span<S::Clock>,
    carry: &mut Carry<S>,
) -> Result<(), FieldFailure<S::Clock>> {
    let code = |x: f64| span.t0.like(x);
    let empty = S::Clock::and(&span.t0.le(&span.t1), &span.t1.le(&span.t0));
    carry.status = S::Clock::select(&empty, &code(status::COMPLETED), &carry.status);
    if S::Clock::known(&empty) == Some(true) {
        return Ok(());
    }
    if scheme.limits.max_steps == 0 {
        carry.status = S::Clock::select(&carry.is_running(), &code(status::MAX_STEPS), &carry.status);
    }
    if let Some(history) = scheme.controller.properties().first_history {
        carry.inv_prev = code(history);
    }
    if scheme.carries_first() || scheme.is_adaptive() {
        let t = scheme.after(span, &carry.t);
        eval(f, &t, &carry.y, &mut carry.k[0])?;
        carry.num_fn_evals = code(1.0);
        carry.component = carry.k[0].first_non_finite(&carry.t);
    }
    if let Some(dt0) = scheme.controller.dt0() {
        carry.dt = scheme.at_most_dt_max(&span.towards(dt0));
        let too_small = carry.dt.abs().lt(&scheme.dt_min(&carry.t));
        let cut = span.t1.sub(&span.t0).abs().le(&carry.dt.abs());
        let too_small = S::Clock::and(&too_small, &S::Clock::not(&cut));
        let end = S::Clock::select(&too_small, &code(status::STEP_SIZE_TOO_SMALL), &carry.status);
        carry.status = S::Clock::select(&carry.is_running(), &end, &carry.status);
    } else if scheme.is_adaptive() {
        carry.dt = first_step(f, scheme, span, carry)?;
        carry.num_fn_evals = code(2.0);
    }
    let broken = code(0.0).le(&carry.component);
    let broken = S::Clock::and(&broken, &S::Clock::not(&empty));
    carry.status = S::Clock::select(&broken, &code(status::NON_FINITE), &carry.status);
    Ok(())
}

/// The first step size, signed, from the norms of y0, of f(t0, y0) and of the change of f over a short Euler
/// step.
///
/// If that change is not finite, or the vector field fails there with a `Recoverable` error, the result is
/// the short step itself, limited by dt_max. The short step is limited by the first stop; otherwise the result
/// is limited by t1, by dt_max and by the smallest allowed step. `k[0]` must hold f(t0, y0). `k[1]`, the scratch state and `y1` are overwritten.
///
/// # References
/// Hairer, Norsett, Wanner (1993), Solving Ordinary Differential Equations I, section II.4, algorithm "starting
/// step size", with 1/k for 1/(p+1), k the method's `error_order`.
#[inline(always)]
fn first_step<S: State, F: VectorField<S>>(
    f: &F,
    scheme: &Scheme<S>,
    span: &Span<S::Clock>,
    carry: &mut Carry<S>,
) -> Result<S::Clock, FieldFailure<S::Clock>> {
    let wall = next_wall(scheme, span, carry).0;
    // If the solve covers only a piece of the interval, stops may lie before its start.
    let is_ahead = carry.t.sub(&wall).mul(&span.direction).lt(&carry.t.like(0.0));
    let wall = S::Clock::select(&is_ahead, &wall, &span.t1);
    let Carry { t, y, k, y1, .. } = carry;
    let (k, scratch) = k.split_at_mut(scheme.tableau.num_stages());
    let scratch = &mut scratch[0];
    let number = |x: f64| t.like(x);
    let one = number(1.0);
    let ahead = wall.sub(&span.t0).abs();

    let d0 = measure::<false, false, S>(scheme, scratch, &one, &[1.0], std::slice::from_ref(y), y, y);
    let d1 = measure::<false, false, S>(scheme, scratch, &one, &[1.0], &k[..1], y, y);
    let small = number(1e-5);
    let usable = S::Clock::and(&small.le(&d0), &S::Clock::and(&small.le(&d1), &d1.is_finite()));
    let h0 = S::Clock::select(&usable, &d0.div(&d1).mul(&number(0.01)), &number(1e-6)).min(&ahead);

    let h0_signed = h0.mul(&span.direction);
    let (first, others) = k.split_at_mut(1);
    y1.lincomb(y, &h0_signed, &[1.0], first);
    let t_trial = t.add(&h0_signed);
    let inside = t_trial.sub(&wall).mul(&span.direction).lt(&number(0.0));
    let t_trial = S::Clock::select(&inside, &t_trial, &scheme.before(span, &wall));
    match eval(f, &t_trial, y1, &mut others[0]) {
        Err(failure) if failure.is_recoverable() => return Ok(scheme.at_most_dt_max(&h0_signed)),
        done => done?,
    }
    let d2 = measure::<false, false, S>(scheme, scratch, &one, &[-1.0, 1.0], &k[..2], y, y).div(&h0);

    let d = d1.max(&d2);
    let flat = h0.mul(&number(1e-3)).max(&number(1e-6));
    let bent = number(0.01).div(&d).powf(1.0 / f64::from(scheme.tableau.error_order));
    let h1 = S::Clock::select(&d.le(&number(1e-15)), &flat, &bent);
    let usable = S::Clock::and(&S::Clock::and(&number(0.0).lt(&h1), &h1.is_finite()), &d2.is_finite());
    let h1 = S::Clock::select(&usable, &h1, &h0);
    let dt_floor = scheme.dt_min(&span.t0);
    let h = h1.min(&h0.mul(&number(100.0))).max(&dt_floor).min(&span.t1.sub(&span.t0).abs());
    Ok(scheme.at_most_dt_max(&h.mul(&span.direction)))
}
