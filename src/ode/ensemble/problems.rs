//! The interface between the loop over an ensemble and its trajectories: initial states, and the vector field
//! on lanes.
//!
//! [`Problems`] separates the loop, which is compiled with this crate, from the user's vector field. Per
//! vector field, only [`TypedField`] is compiled, its evaluation once per type of lanes and SIMD level,
//! unless [`inlined`](super::inlined) selects a loop of its own.

use super::LaneFloat;
use super::components::Components;
use super::drive::Packs;
use super::inlined::Inlining;
use crate::ode::{FieldError, FieldNumber, GenericField, LaneNumber, Real, VectorField};
use crate::simd::{Call, Entry, Level};
use std::marker::PhantomData;

/// The trajectories of a chunk, without the type of their vector field. Indices count from the chunk's start.
pub trait Problems<T: LaneFloat> {
    /// The number of trajectories.
    fn len(&self) -> usize;
    /// The initial state of a trajectory.
    fn y0(&self, trajectory: usize) -> &[T];
    /// Whether two trajectories may run in one pack: true if their vector fields differ only in parameters.
    fn same_statics(&self, a: usize, b: usize) -> bool;
    /// The vector field on lanes. All lanes have the parameters of `trajectory`.
    fn lanes(&self, level: Level, trajectory: usize) -> DynField<'_, T::Lanes>;
    /// The vector field for trajectories that run one at a time, with the parameters of `trajectory`.
    fn one(&self, trajectory: usize) -> DynField<'_, T::One>;
    /// Runs the packs by attempts with the vector field inlined; `None` if none were selected for the method.
    fn inlined(&self, packs: &mut Packs<'_, T>) -> Option<Result<(), FieldError>>;
}

/// [`Problems`] of one vector field; `I` selects the attempts compiled for it.
pub(super) struct Typed<G, T, I, const N: usize>(pub Vec<(G, [T; N])>, pub PhantomData<fn() -> I>);

impl<G: GenericField<N>, T: LaneFloat, I: Inlining, const N: usize> Problems<T> for Typed<G, T, I, N> {
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
        Box::new(AtLevel { field: TypedField::new(&self.0, trajectory), eval: Entry::at(level) })
    }
    fn one(&self, trajectory: usize) -> DynField<'_, T::One> {
        Box::new(TypedField::new(&self.0, trajectory))
    }
    fn inlined(&self, packs: &mut Packs<'_, T>) -> Option<Result<(), FieldError>> {
        I::run(packs, &self.0)
    }
}

/// A vector field that holds the parameters of one trajectory per lane.
pub trait SetLane {
    /// Stores the parameters of a trajectory in a lane.
    fn set_lane(&mut self, lane: usize, trajectory: usize);
}

/// A vector field with the parameters of one trajectory in each lane.
pub trait LaneField<R: Real>: VectorField<Components<R>> + SetLane {}
impl<R: Real, F: VectorField<Components<R>> + SetLane> LaneField<R> for F {}

/// A vector field in lanes behind a pointer.
pub type DynField<'a, R> = Box<dyn LaneField<R> + 'a>;

impl<R: Real> SetLane for DynField<'_, R> {
    fn set_lane(&mut self, lane: usize, trajectory: usize) {
        (**self).set_lane(lane, trajectory);
    }
}

/// A vector field with the parameters of one trajectory in each lane of `R`.
pub(super) struct TypedField<'a, G: GenericField<N>, T, R: FieldNumber, const N: usize> {
    pub of: G::Of<R>,
    problems: &'a [(G, [T; N])],
}

impl<'a, G: GenericField<N>, T, R: FieldNumber, const N: usize> TypedField<'a, G, T, R, N> {
    /// Creates the field with the parameters of `trajectory` in all lanes.
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

impl<G: GenericField<N>, T, R: FieldNumber, const N: usize> VectorField<Components<R>>
    for TypedField<'_, G, T, R, N>
{
    #[inline(always)]
    fn eval(&self, t: &R::Clock, y: &Components<R>, dy: &mut Components<R>) -> Result<(), FieldError> {
        let (Some(y), Some(dy)) = (y.0.first_chunk(), dy.0.first_chunk_mut()) else {
            panic!("invariant: the state has as many components as the vector field")
        };
        *dy = R::eval::<G, N>(&self.of, R::time(t), y);
        Ok(())
    }
}

/// A [`TypedField`] whose evaluation is compiled for a SIMD level.
struct AtLevel<'a, G: GenericField<N>, T, R: FieldNumber, const N: usize> {
    field: TypedField<'a, G, T, R, N>,
    eval: Entry<Eval<'a, G, T, R, N>>,
}

impl<G: GenericField<N>, T, R: FieldNumber, const N: usize> VectorField<Components<R>>
    for AtLevel<'_, G, T, R, N>
{
    fn eval(&self, t: &R::Clock, y: &Components<R>, dy: &mut Components<R>) -> Result<(), FieldError> {
        self.eval.call(&self.field, t, y, dy)
    }
}

impl<G, T, R, const N: usize> SetLane for AtLevel<'_, G, T, R, N>
where
    G: GenericField<N>,
    T: LaneFloat,
    R: LaneNumber<T>,
{
    fn set_lane(&mut self, lane: usize, trajectory: usize) {
        self.field.set_lane(lane, trajectory);
    }
}

/// One evaluation of a [`TypedField`].
struct Eval<'a, G, T, R, const N: usize>(PhantomData<&'a (G, T, R)>);

impl<'a, G: GenericField<N>, T, R: FieldNumber, const N: usize> Call for Eval<'a, G, T, R, N> {
    type Of = TypedField<'a, G, T, R, N>;
    type At = R::Clock;
    type On = Components<R>;
    type Out = Components<R>;
    type Output = Result<(), FieldError>;

    #[inline(always)]
    fn call(
        field: &TypedField<'a, G, T, R, N>,
        t: &R::Clock,
        y: &Components<R>,
        dy: &mut Components<R>,
    ) -> Self::Output {
        field.eval(t, y, dy)
    }
}
