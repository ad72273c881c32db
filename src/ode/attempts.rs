//! The loop of attempts for plain Rust values, compiled for the CPU's instruction set and, for some methods,
//! with inlined coefficients.
//!
//! One shared loop per kind of state serves every method and calls the vector field through a pointer. In
//! release builds, each vector field also has a loop in which it and the coefficients of the default method
//! are inlined. [`Ode::inlined`](super::Ode::inlined) replaces this loop by one for another method, in debug
//! builds too. This module decides which loop runs; it does not know what happens to an accepted step.

use super::attempt::attempt_with;
use super::inline::{self, InlineMethod};
use super::{
    Carry, FieldError, FieldFailure, Linearize, Native, PlainState, Scheme, Span, VectorField, status,
};
use crate::simd::{Bound, Call, Level, Work, is_fused, run_narrow};
use std::marker::PhantomData;

/// Whether loops with the default method's coefficients inlined are compiled. Debug builds skip them: compile
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

/// Runs attempts with the loop that is compiled for the vector field by default.
///
/// Debug builds use the shared loop instead: tests then compile in half the time, and the bits are the same.
pub(super) fn attempts_of<Y: PlainState, F: VectorField<Y>>(
    f: &F,
    native: Native,
    run: Run<'_, Y>,
) -> Result<u64, FieldFailure<f64>> {
    if UNROLL { attempts_by::<inline::Tsit5, Y, F>(f, native, run) } else { shared_attempts(f, native, run) }
}

/// Runs attempts with the loop compiled for the method `M` and the vector field if the solve uses this
/// method, the state is small and the CPU has fused multiply-add; else with the shared loop.
pub(super) fn attempts_by<M: InlineMethod, Y: PlainState, F: VectorField<Y>>(
    f: &F,
    native: Native,
    run: Run<'_, Y>,
) -> Result<u64, FieldFailure<f64>> {
    if is_fused(native.level) && Y::UNROLLED && native.method == Some(M::METHOD) {
        let all = Attempts { f, run };
        return if const { M::METHOD.tableau().num_stages() <= STAGES_IN_LOOP } {
            run_narrow(native.level, Known::<M, true, Y, F>(all, PhantomData))
        } else {
            all.each_by(|one| run_narrow(native.level, Known::<M, false, Y, F>(one, PhantomData)))
        };
    }
    shared_attempts(f, native, run)
}

/// Runs attempts with the loop that all vector fields and methods share.
fn shared_attempts<Y: PlainState, F: VectorField<Y>>(
    f: &F,
    native: Native,
    run: Run<'_, Y>,
) -> Result<u64, FieldFailure<f64>> {
    let level = is_fused(native.level).then(|| native.level.min(Level::Avx2));
    attempts_of_any(AtLevel(Bound::to::<Eval<Y, F>>(f, level), f.linearize()), level, run)
}

/// The largest number of stages for which the whole loop is compiled with a method's coefficients. For more
/// stages, only a single attempt is compiled with them.
const STAGES_IN_LOOP: usize = 7;

/// The loop for any vector field and method, compiled once per kind of state. It is not compiled for AVX-512:
/// states of a few components gain nothing from wider registers, and a second copy of the code makes such
/// states slower (Vern9 on Lorenz: 205 ns per step with the second copy, 182 without it; no difference for
/// 400 components on the heap).
fn attempts_of_any<Y: PlainState>(
    f: AtLevel<'_, Y>,
    level: Option<Level>,
    run: Run<'_, Y>,
) -> Result<u64, FieldFailure<f64>> {
    let all = Attempts { f: &f, run };
    match level {
        Some(level) => run_narrow(level, all),
        None => all.run_by::<false, false>(),
    }
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
    /// Makes the attempts in a loop. It does not call [`each_by`](Self::each_by), because a closure would not
    /// be inlined into code compiled for the CPU's instruction set, and its math functions would call the C
    /// library.
    #[inline(always)]
    fn run_by<const UNROLLED: bool, const FUSED: bool>(self) -> Result<u64, FieldFailure<f64>> {
        let Attempts { f, run: Run { scheme, span, carry, most, step_times } } = self;
        let mut accepted = 0;
        while accepted < most && carry.status == status::RUNNING {
            let run = Run { scheme, span, carry, most, step_times };
            accepted += Attempts { f, run }.once::<UNROLLED, FUSED>()?;
        }
        Ok(accepted)
    }

    /// Makes one attempt. Returns 1 if it was accepted, else 0.
    #[inline(always)]
    fn once<const UNROLLED: bool, const FUSED: bool>(self) -> Result<u64, FieldFailure<f64>> {
        let Run { scheme, span, carry, step_times, .. } = self.run;
        attempt_with::<UNROLLED, FUSED, Y, F>(self.f, scheme, span, carry)?;
        if carry.accepted {
            step_times.push(carry.t);
        }
        Ok(u64::from(carry.accepted))
    }

    /// Calls `once` in a loop.
    ///
    /// This is for methods with many coefficients: in a loop compiled with them, the optimizer would load a
    /// hundred coefficients before the loop and spill them to the stack (Dop853 on Lorenz: 317 ns per step
    /// against 190, Vern9 458 against 183).
    #[inline(always)]
    fn each_by(
        self,
        once: impl Fn(Attempts<'_, Y, F>) -> Result<u64, FieldFailure<f64>>,
    ) -> Result<u64, FieldFailure<f64>> {
        let Attempts { f, run: Run { scheme, span, carry, most, step_times } } = self;
        let mut accepted = 0;
        while accepted < most && carry.status == status::RUNNING {
            accepted += once(Attempts { f, run: Run { scheme, span, carry, most, step_times } })?;
        }
        Ok(accepted)
    }
}

impl<Y: PlainState, F: VectorField<Y>> Work for Attempts<'_, Y, F> {
    type Output = Result<u64, FieldFailure<f64>>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        self.run_by::<false, true>()
    }
}

/// [`Attempts`] with a method whose coefficients are compile-time constants and whose stages are unrolled.
/// `LOOP`: whether the whole loop is compiled, or a single attempt.
struct Known<'a, M, const LOOP: bool, Y: PlainState, F>(Attempts<'a, Y, F>, PhantomData<M>);

impl<M: InlineMethod, const LOOP: bool, Y: PlainState, F: VectorField<Y>> Work for Known<'_, M, LOOP, Y, F> {
    type Output = Result<u64, FieldFailure<f64>>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        let Attempts { f, run } = self.0;
        let scheme = run.scheme.with_known::<M>();
        let all = Attempts { f, run: Run { scheme: &scheme, ..run } };
        if LOOP { all.run_by::<true, true>() } else { all.once::<true, true>() }
    }
}
