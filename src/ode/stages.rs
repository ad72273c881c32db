//! The stages of a step and its y1. An attempt and its replay share this code, so they give the same bits.
//!
//! This module uses a method's coefficients, the two times of a step and the vector field.
//! [`attempt`](super::attempt()) decides whether a step is accepted, estimates its error, and chooses the
//! next step size and the end of a solve. Nothing here may allocate.

use super::{
    ButcherTableau, Carry, Clock, Compiled, FieldError, FieldFailure, Recoverable, Scheme, ShapeMismatch,
    Span, State, VectorField,
};

/// The source of the first stage.
#[derive(Clone, Copy, PartialEq)]
pub enum First {
    /// `k[0]` is f(t, y) already. The last stage of a FSAL method, f(t_next, y1), is evaluated for the next
    /// step.
    Given,
    /// The first stage is evaluated. The last stage of a FSAL method is skipped, because y1 does not need it.
    Evaluate,
}

/// The times of the evaluations at c = 0 and c = 1, and the start time t, to which `c h` is added for the
/// other stages.
pub struct Times<C> {
    pub(crate) first: C,
    pub(super) last: C,
    pub(super) t: C,
}

impl<C: Clock> Times<C> {
    #[inline(always)]
    pub fn of<S: State<Clock = C>>(scheme: &Scheme<S>, span: &Span<C>, t: &C, t_next: &C) -> Self {
        Times { first: scheme.after(span, t), last: scheme.before(span, t_next), t: t.clone() }
    }

    /// [`of`](Self::of) the step that `carry` attempts.
    #[inline(always)]
    pub fn next<S: State<Clock = C>>(
        scheme: &Scheme<S>,
        span: &Span<C>,
        carry: &Carry<S>,
        t_next: &C,
    ) -> Self {
        Times {
            first: scheme.after_last(span, &carry.t, &carry.num_stops),
            last: scheme.before_next(span, t_next, &carry.num_stops),
            t: carry.t.clone(),
        }
    }
}

impl<C: Clock> Times<C> {
    /// The time of a stage at c. At c = 1 it is t_next itself, which t + h may miss by an ulp; if t_next is a
    /// discontinuity, the time just before it.
    #[inline(always)]
    pub(crate) fn at(&self, c: f64, h: &C) -> C {
        if c == 1.0 { self.last.clone() } else { self.t.add(&h.mul(&h.like(c))) }
    }
}

/// Computes the stages and y1.
///
/// `FUSED`: whether sums use fused multiply-add. `UNROLLED` unrolls the loop over stages. With the
/// coefficients as compile-time constants, every stage of a small array then stays in registers (Lorenz: 101
/// ns per step against 135, a hand-written loop 94). The compiler does not unroll it by itself. If the
/// coefficients are not constant, or a stage is a call anyway, a plain loop is as fast and has a tenth of the
/// code.
#[inline(always)]
pub(super) fn stages<const UNROLLED: bool, const FUSED: bool, S: State, F: VectorField<S>>(
    f: &F,
    scheme: &Scheme<S>,
    first: First,
    times: &Times<S::Clock>,
    h: &S::Clock,
    y: &S,
    k: &mut [S],
    y1: &mut S,
) -> Result<(), FieldFailure<S::Clock>> {
    let (tableau, needed) = (scheme.tableau, scheme.num_stages_of_y1());
    if first == First::Evaluate {
        eval(f, &times.first, y, &mut k[0])?;
    }
    if UNROLLED {
        macro_rules! unroll {
            ($($i:literal)*) => { $( if $i < needed { stage::<UNROLLED, FUSED, S, F>(f, &tableau, $i, times, h, y, k, y1)?; } )* };
        }
        unroll!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
        debug_assert!(needed <= 16, "invariant: at most 16 stages are unrolled, not {needed}");
    } else {
        for i in 1..needed {
            stage::<UNROLLED, FUSED, S, F>(f, &tableau, i, times, h, y, k, y1)?;
        }
    }
    combine::<UNROLLED, FUSED, S>(y1, y, h, &tableau.b[..needed], &k[..needed]);
    if first == First::Given && scheme.carries_fsal() {
        eval(f, &times.last, y1, &mut k[needed])?;
    }
    Ok(())
}

/// Stage i >= 1.
#[inline(always)]
fn stage<const UNROLLED: bool, const FUSED: bool, S: State, F: VectorField<S>>(
    f: &F,
    tableau: &ButcherTableau,
    i: usize,
    times: &Times<S::Clock>,
    h: &S::Clock,
    y: &S,
    k: &mut [S],
    argument: &mut S,
) -> Result<(), FieldFailure<S::Clock>> {
    let (before, after) = k.split_at_mut(i);
    combine::<UNROLLED, FUSED, S>(argument, y, h, tableau.row(i), before);
    eval(f, &times.at(tableau.c[i], h), argument, &mut after[0])
}

/// `out = y + h sum_i a_i k_i`.
#[inline(always)]
fn combine<const UNROLLED: bool, const FUSED: bool, S: State>(
    out: &mut S,
    y: &S,
    h: &S::Clock,
    a: &[f64],
    k: &[S],
) {
    out.lincomb(y, h, a, &Compiled::<S, FUSED, UNROLLED>(k));
}

/// Evaluates the vector field at (t, y). A failure contains this time. A dy whose shape is not that of y is a
/// failure, even beside an error that a shorter step may avoid, because the next step would use this dy.
#[inline(always)]
pub(crate) fn eval<S: State, F: VectorField<S>>(
    f: &F,
    t: &S::Clock,
    y: &S,
    dy: &mut S,
) -> Result<(), FieldFailure<S::Clock>> {
    let evaluated = f.eval(t, y, dy);
    let evaluated = match dy.conforms(y) {
        Ok(()) => evaluated,
        Err(mismatch) => refused(evaluated, &mismatch),
    };
    evaluated.map_err(|source| FieldFailure { t: t.clone(), source })
}

/// The failure of a vector field that returned a dy of the wrong shape: its own error, unless it is
/// [`Recoverable`].
#[cold]
fn refused(evaluated: Result<(), FieldError>, mismatch: &ShapeMismatch) -> Result<(), FieldError> {
    match evaluated {
        Err(source) if !source.is::<Recoverable>() => Err(source),
        _ => Err(mismatch.of_derivative("the vector field")),
    }
}
