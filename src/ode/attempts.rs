//! The loop of attempts for plain Rust values, compiled for the CPU's instruction set and, for some methods,
//! with inlined coefficients.
//!
//! One shared loop per kind of state serves every method and calls the vector field through a pointer. In
//! release builds, each vector field also has its own attempt, in which it and the coefficients of the default
//! method are inlined. [`Ode::inlined`](super::Ode::inlined) replaces this attempt by one for another method, in
//! debug builds too. This module decides which attempts run; it does not know what happens to an accepted step.

use super::attempt::attempt_with;
use super::inline::{self, InlineMethod};
use super::{
    Carry, FieldError, FieldFailure, Linearize, Native, PlainState, Scheme, Span, VectorField, status,
};
use crate::simd::{Bound, Call, Level, Work, is_fused, run_narrow};
use std::marker::PhantomData;

/// Whether attempts with the default method's coefficients inlined are compiled. Debug builds skip them: compile
/// time matters more there, and the shared loop gives the same bits.
pub(super) const UNROLL: bool = !cfg!(debug_assertions);

/// A vector field with its loop of attempts.
pub(super) trait Driven<Y: PlainState>: VectorField<Y> {
    /// Attempts steps until `run.most` are accepted or the solve has ended. Returns the number of accepted
    /// steps.
    fn attempts(&self, native: Native, run: Run<'_, Y>) -> Result<u64, FieldFailure<f64>>;
}

impl<Y: PlainState, F: VectorField<Y>> Driven<Y> for F {
    fn attempts(&self, native: Native, run: Run<'_, Y>) -> Result<u64, FieldFailure<f64>> {
        self.run_attempts(native, run)
    }
}

/// Runs the attempts that are compiled for the vector field by default.
///
/// Debug builds use the shared loop instead: tests then compile in half the time, and the bits are the same.
pub(super) fn attempts_of<Y: PlainState, F: VectorField<Y>>(
    f: &F,
    native: Native,
    run: Run<'_, Y>,
) -> Result<u64, FieldFailure<f64>> {
    if UNROLL { attempts_by::<inline::Tsit5, Y, F>(f, native, run) } else { shared_attempts(f, native, run) }
}

/// Runs attempts compiled for the method `M` and the vector field if the solve uses this method, the state is
/// small and the CPU has fused multiply-add; else runs the shared loop.
pub(super) fn attempts_by<M: InlineMethod, Y: PlainState, F: VectorField<Y>>(
    f: &F,
    native: Native,
    run: Run<'_, Y>,
) -> Result<u64, FieldFailure<f64>> {
    if is_fused(native.level) && Y::UNROLLED && native.method == Some(M::METHOD) {
        return one_by_one(run, |run| {
            run_narrow(native.level, OfMethod::<M, Y, F>(Attempts { f, run }, PhantomData))
        });
    }
    shared_attempts(f, native, run)
}

/// Runs attempts with the loop that all vector fields and methods share.
fn shared_attempts<Y: PlainState, F: VectorField<Y>>(
    f: &F,
    native: Native,
    run: Run<'_, Y>,
) -> Result<u64, FieldFailure<f64>> {
    let level = is_fused(native.level).then_some(native.level);
    let field = match level {
        Some(level) => Bound::narrow::<Eval<Y, F>>(f, level),
        None => Bound::plain::<Eval<Y, F>>(f),
    };
    attempts_of_any(AtLevel(field, f.linearize()), level, run)
}

/// The loop for any vector field and method, compiled once per kind of state. It is not compiled for AVX-512:
/// states of a few components gain nothing from wider registers, and a second copy of the code makes such
/// states slower (Vern9 on Lorenz: 205 ns per step with the second copy, 182 without it; no difference for
/// 400 components on the heap).
fn attempts_of_any<Y: PlainState>(
    f: AtLevel<'_, Y>,
    level: Option<Level>,
    run: Run<'_, Y>,
) -> Result<u64, FieldFailure<f64>> {
    let attempts = Attempts { f: &f, run };
    match level {
        Some(level) => run_narrow(level, attempts),
        None => attempts.all::<false>(),
    }
}

/// Calls `attempt` until the accepted steps are enough or the solve has ended. It returns 1 if it accepts the
/// step, else 0.
///
/// Attempts with inlined coefficients are compiled singly. In a loop, the optimizer would load the coefficients
/// before it and spill them to the stack (Lorenz: Tsit5 155 ns per step instead of 120, Dop853 317 instead of 190).
#[inline(always)]
fn one_by_one<Y: PlainState>(
    run: Run<'_, Y>,
    attempt: impl Fn(Run<'_, Y>) -> Result<u64, FieldFailure<f64>>,
) -> Result<u64, FieldFailure<f64>> {
    let Run { scheme, span, carry, most, step_times } = run;
    let mut accepted = 0;
    while accepted < most && carry.status == status::RUNNING {
        accepted += attempt(Run { scheme, span, carry, most, step_times })?;
    }
    Ok(accepted)
}

/// A vector field behind a pointer, compiled for the CPU's instruction set.
struct AtLevel<'a, Y>(Bound<'a, f64, Y, Y, Result<(), FieldError>>, Option<&'a dyn Linearize<Y>>);

/// One evaluation of the vector field, in the form that [`Bound`] takes.
struct Eval<Y, F>(PhantomData<(Y, F)>);

impl<Y: PlainState, F: VectorField<Y>> Call for Eval<Y, F> {
    type Of = F;
    type At = f64;
    type On = Y;
    type Out = Y;
    type Output = Result<(), FieldError>;

    #[inline(always)]
    fn call(f: &F, t: &f64, y: &Y, dy: &mut Y) -> Result<(), FieldError> {
        f.eval(t, y, dy)
    }
}

impl<Y: PlainState> VectorField<Y> for AtLevel<'_, Y> {
    #[inline(always)]
    fn eval(&self, t: &f64, y: &Y, dy: &mut Y) -> Result<(), FieldError> {
        self.0.call(t, y, dy)
    }
    fn linearize(&self) -> Option<&dyn Linearize<Y>> {
        self.1
    }
}

/// The attempts of one solve until `most` steps are accepted or the solve has ended. The end times of the
/// accepted steps are appended to `step_times`.
pub struct Run<'a, Y: PlainState> {
    pub(super) scheme: &'a Scheme<'a, Y>,
    pub(super) span: &'a Span<f64>,
    pub(super) carry: &'a mut Carry<Y>,
    pub(super) most: u64,
    pub(super) step_times: &'a mut Vec<f64>,
}

/// A [`Run`] and the vector field of its solve.
struct Attempts<'a, Y: PlainState, F> {
    f: &'a F,
    run: Run<'a, Y>,
}

impl<Y: PlainState, F: VectorField<Y>> Attempts<'_, Y, F> {
    /// Makes one attempt. Returns 1 if it was accepted, else 0.
    #[inline(always)]
    fn one<const UNROLLED: bool, const FUSED: bool>(self) -> Result<u64, FieldFailure<f64>> {
        let Run { scheme, span, carry, step_times, .. } = self.run;
        attempt_with::<UNROLLED, FUSED, Y, F>(self.f, scheme, span, carry)?;
        if carry.accepted {
            step_times.push(carry.t);
        }
        Ok(u64::from(carry.accepted))
    }

    /// Makes all attempts in one loop. It does not call [`one_by_one`], because a closure would not be inlined
    /// into code compiled for the CPU's instruction set, and its math functions would call the C library.
    #[inline(always)]
    fn all<const FUSED: bool>(self) -> Result<u64, FieldFailure<f64>> {
        let Attempts { f, run: Run { scheme, span, carry, most, step_times } } = self;
        let mut accepted = 0;
        while accepted < most && carry.status == status::RUNNING {
            let run = Run { scheme, span, carry, most, step_times };
            accepted += Attempts { f, run }.one::<false, FUSED>()?;
        }
        Ok(accepted)
    }
}

impl<Y: PlainState, F: VectorField<Y>> Work for Attempts<'_, Y, F> {
    type Output = Result<u64, FieldFailure<f64>>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        self.all::<true>()
    }
}

/// One of the [`Attempts`], with a method whose coefficients are compile-time constants and whose stages are
/// unrolled.
struct OfMethod<'a, M, Y: PlainState, F>(Attempts<'a, Y, F>, PhantomData<M>);

impl<M: InlineMethod, Y: PlainState, F: VectorField<Y>> Work for OfMethod<'_, M, Y, F> {
    type Output = Result<u64, FieldFailure<f64>>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        let Attempts { f, run } = self.0;
        let scheme = run.scheme.with_known::<M>();
        Attempts { f, run: Run { scheme: &scheme, ..run } }.one::<true, true>()
    }
}
