//! The loop of attempts compiled for one vector field and one method: see
//! [`EnsembleBuilder::inlined`](super::EnsembleBuilder::inlined).
//!
//! The program that calls it compiles this loop. Only the choice of first step sizes is shared by all
//! ensembles.

use super::LaneFloat;
use super::drive::{Packs, Until, attempts};
use super::problems::{SetLane, TypedField};
use crate::ode::inline::InlineMethod;
use crate::ode::{Carry, FieldError, FieldNumber, GenericField, LaneClock, Scheme, State, VectorField};
use crate::simd::{Call, Entry};
use std::marker::PhantomData;

/// Selects the loop compiled for each vector field: none for `()`, the loop of the method for an
/// [`InlineMethod`].
pub trait Loops: 'static {
    /// Runs the packs in the inlined loop, or returns `None` if there is none for their method.
    fn run<G: GenericField<N>, T: LaneFloat, const N: usize>(
        packs: &mut Packs<'_, T>,
        problems: &[(G, [T; N])],
    ) -> Option<Result<(), FieldError>>;
}

impl Loops for () {
    fn run<G: GenericField<N>, T: LaneFloat, const N: usize>(
        _packs: &mut Packs<'_, T>,
        _problems: &[(G, [T; N])],
    ) -> Option<Result<(), FieldError>> {
        None
    }
}

impl<M: InlineMethod> Loops for M {
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
        let attempts = Entry::<OneMethod<'_, [T::Lanes; N], _, M>>::at(level);
        Some(packs.drive::<T::Lanes, _, _>(starting, Inlined(field), &|f, scheme, until, carry| {
            attempts.call(f, scheme, until, carry)
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

/// Attempts with a method whose coefficients are compile-time constants.
pub(super) struct OneMethod<'a, S, F, M>(PhantomData<(&'a S, F, M)>);

impl<'a, S, F, M> Call for OneMethod<'a, S, F, M>
where
    S: State<Clock: LaneClock> + 'a,
    F: VectorField<S>,
    M: InlineMethod,
{
    type Of = F;
    type At = Scheme<'a, S>;
    type On = Until<S>;
    type Out = Carry<S>;
    type Output = Result<(), FieldError>;

    #[inline(always)]
    fn call(f: &F, scheme: &Scheme<'a, S>, until: &Until<S>, carry: &mut Carry<S>) -> Self::Output {
        attempts::<true, S, F>(f, &scheme.with_known::<M>(), until, carry)
    }
}
