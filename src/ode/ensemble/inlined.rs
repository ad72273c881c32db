//! Attempts compiled for one vector field and one method: see
//! [`EnsembleBuilder::inlined`](super::EnsembleBuilder::inlined).
//!
//! The program that calls it compiles them. Only the choice of first step sizes is shared by all
//! ensembles.

use super::LaneFloat;
use super::drive::{NumRunning, Packs, SpanOf, attempt_in_lanes};
use super::problems::{SetLane, TypedField};
use crate::ode::inline::InlineMethod;
use crate::ode::{Carry, FieldError, FieldNumber, GenericField, LaneClock, Scheme, State, VectorField};
use crate::simd::{Bound, Call};
use std::marker::PhantomData;

/// Selects for which method attempts are compiled with the vector field inlined: none for `()`, its own for an
/// [`InlineMethod`].
pub trait Inlining: 'static {
    /// Runs the packs with inlined attempts, or returns `None` if there are none for their method.
    fn run<G: GenericField<N>, T: LaneFloat, const N: usize>(
        packs: &mut Packs<'_, T>,
        problems: &[(G, [T; N])],
    ) -> Option<Result<(), FieldError>>;
}

impl Inlining for () {
    fn run<G: GenericField<N>, T: LaneFloat, const N: usize>(
        _packs: &mut Packs<'_, T>,
        _problems: &[(G, [T; N])],
    ) -> Option<Result<(), FieldError>> {
        None
    }
}

impl<M: InlineMethod> Inlining for M {
    fn run<G: GenericField<N>, T: LaneFloat, const N: usize>(
        packs: &mut Packs<'_, T>,
        problems: &[(G, [T; N])],
    ) -> Option<Result<(), FieldError>> {
        if packs.resolved.native().method != Some(M::METHOD) {
            return None;
        }
        let (level, first) = (packs.level, packs.order[0]);
        let field = TypedField::<G, T, T::Lanes, N>::new(problems, first);
        let starting = packs.problems.lanes(level, first);
        Some(packs.drive::<T::Lanes, _, _>(starting, Inlined(field), &|f| {
            Bound::at::<OneMethod<'_, [T::Lanes; N], _, M>>(f, level)
        }))
    }
}

/// A vector field in lanes whose evaluation is inlined.
struct Inlined<F>(F);

impl<G, T, R, const N: usize> VectorField<[R; N]> for Inlined<TypedField<'_, G, T, R, N>>
where
    G: GenericField<N>,
    R: FieldNumber,
{
    #[inline(always)]
    fn eval(&self, t: &R::Clock, y: &[R; N], dy: &mut [R; N]) -> Result<(), FieldError> {
        *dy = R::eval::<G, N>(&self.0.of, R::time(t), y);
        Ok(())
    }
}

impl<F: SetLane> SetLane for Inlined<F> {
    fn set_lane(&mut self, lane: usize, trajectory: usize) {
        self.0.set_lane(lane, trajectory);
    }
}

/// An attempt with a method whose coefficients are compile-time constants.
pub(super) struct OneMethod<'a, S, F, M>(PhantomData<(&'a S, F, M)>);

impl<'a, S, F, M> Call for OneMethod<'a, S, F, M>
where
    S: State<Clock: LaneClock> + 'a,
    F: VectorField<S>,
    M: InlineMethod,
{
    type Of = F;
    type At = Scheme<'a, S>;
    type On = SpanOf<S>;
    type Out = Carry<S>;
    type Output = NumRunning;

    #[inline(always)]
    fn call(f: &F, scheme: &Scheme<'a, S>, span: &SpanOf<S>, carry: &mut Carry<S>) -> Self::Output {
        attempt_in_lanes::<true, S, F>(f, &scheme.with_known::<M>(), span, carry)
    }
}
