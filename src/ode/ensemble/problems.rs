//! What the loop over an ensemble knows of its trajectories: initial states, and their field in lanes.
//!
//! [`Problems`] stands between the loop, which is compiled with this crate, and a user's field: all that is compiled for
//! each field is [`TypedField`], one evaluation for each kind of lanes.

use super::LaneFloat;
use super::components::Components;
use super::drive::Packs;
use super::inlined::Loops;
use crate::ode::{Field, FieldError, FieldNumber, GenericField, LaneNumber, Real};
use crate::simd::{Bound, Call, Level};
use std::marker::PhantomData;

/// Some trajectories, whatever their field.
pub trait Problems<T: LaneFloat> {
    /// How many there are.
    fn len(&self) -> usize;
    /// Where a trajectory starts.
    fn y0(&self, trajectory: usize) -> &[T];
    /// Whether two may step in one pack: their fields agree in all but parameters.
    fn same_statics(&self, a: usize, b: usize) -> bool;
    /// The field on lanes, each with the parameters of `trajectory`.
    fn lanes(&self, level: Level, trajectory: usize) -> DynField<'_, T::Lanes>;
    /// The field on one number.
    fn one(&self, trajectory: usize) -> DynField<'_, T::One>;
    /// Runs the packs by a loop that is compiled for the field, if the caller asked for one of their method.
    fn inlined(&self, packs: &mut Packs<'_, T>) -> Option<Result<(), FieldError>>;
}

/// [`Problems`] of one field; `I` says which loops are compiled for it.
pub(super) struct Typed<G, T, I, const N: usize>(pub Vec<(G, [T; N])>, pub PhantomData<fn() -> I>);

impl<G: GenericField<N>, T: LaneFloat, I: Loops, const N: usize> Problems<T> for Typed<G, T, I, N> {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn y0(&self, trajectory: usize) -> &[T] {
        &self.0[trajectory].1
    }
    fn same_statics(&self, a: usize, b: usize) -> bool {
        self.0[a].0.same_statics(&self.0[b].0)
    }
    fn lanes(&self, level: Level, trajectory: usize) -> DynField<'_, T::Lanes> {
        let field = TypedField::<G, T, T::Lanes, N>::new(&self.0, trajectory);
        DynField(Bound::at::<Eval<'_, G, T, T::Lanes, N>>(level, field, |field| field))
    }
    fn one(&self, trajectory: usize) -> DynField<'_, T::One> {
        let field = TypedField::<G, T, T::One, N>::new(&self.0, trajectory);
        DynField(Bound::plain::<Eval<'_, G, T, T::One, N>>(field, |field| field))
    }
    fn inlined(&self, packs: &mut Packs<'_, T>) -> Option<Result<(), FieldError>> {
        I::run(packs, &self.0)
    }
}

/// What holds the parameters of one trajectory in each lane.
pub trait SetLane {
    /// Gives a lane the parameters of a trajectory.
    fn set_lane(&mut self, lane: usize, trajectory: usize);
}

/// A field in lanes behind a pointer.
pub struct DynField<'a, R: Real>(Bound<dyn SetLane + 'a, R::Clock, [R], [R], ()>);

impl<R: Real> Field<Components<R>> for DynField<'_, R> {
    #[inline(always)]
    fn eval(&self, t: &R::Clock, y: &Components<R>, dy: &mut Components<R>) -> Result<(), FieldError> {
        self.0.call(t, &y.0, &mut dy.0);
        Ok(())
    }
}

impl<R: Real> SetLane for DynField<'_, R> {
    fn set_lane(&mut self, lane: usize, trajectory: usize) {
        self.0.value_mut().set_lane(lane, trajectory);
    }
}

/// A field with the parameters of one trajectory in each lane of `R`.
pub(super) struct TypedField<'a, G: GenericField<N>, T, R: FieldNumber, const N: usize> {
    pub of: G::Of<R>,
    problems: &'a [(G, [T; N])],
}

impl<'a, G: GenericField<N>, T, R: FieldNumber, const N: usize> TypedField<'a, G, T, R, N> {
    /// With the parameters of `trajectory` in all lanes.
    pub fn new(problems: &'a [(G, [T; N])], trajectory: usize) -> Self {
        TypedField { of: problems[trajectory].0.map_params(R::from), problems }
    }
}

impl<G, T, R, const N: usize> SetLane for TypedField<'_, G, T, R, N>
where
    G: GenericField<N>,
    T: LaneFloat,
    R: LaneNumber<T>,
{
    fn set_lane(&mut self, lane: usize, trajectory: usize) {
        self.problems[trajectory].0.zip_params(&mut self.of, |to, x| to.set_lane(lane, T::of(x)));
    }
}

/// One evaluation of a [`TypedField`].
struct Eval<'a, G, T, R, const N: usize>(PhantomData<&'a (G, T, R)>);

impl<'a, G: GenericField<N>, T, R: FieldNumber, const N: usize> Call for Eval<'a, G, T, R, N> {
    type Of = TypedField<'a, G, T, R, N>;
    type At = R::Clock;
    type On = [R];
    type Out = [R];
    type Output = ();

    #[inline(always)]
    fn call(field: &TypedField<'a, G, T, R, N>, t: &R::Clock, y: &[R], dy: &mut [R]) {
        let (Some(y), Some(dy)) = (y.first_chunk(), dy.first_chunk_mut()) else {
            panic!("invariant: a state of as many components as the field has")
        };
        *dy = R::eval::<G, N>(&field.of, R::time(t), y);
    }
}
