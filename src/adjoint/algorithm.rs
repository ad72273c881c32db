//! The stepping algorithm of [`ode`] on leaves, compiled once.
//!
//! The functions of `ode` are generic over states and fields and are inlined. Here the field, and the code that
//! runs after a step, are behind pointers.

use super::leaves::Leaves;
use crate::ode::{self, FieldFailure, Span, StiffStages, VectorField};
use crate::tensor::Tensor;

pub(super) type Scheme<'a> = ode::Scheme<'a, Leaves>;
pub(super) type Carry = ode::Carry<Leaves>;
/// A field of leaves.
pub(super) type LeafField<'a> = dyn VectorField<Leaves> + 'a;
/// The start and the end of a step.
pub(super) type StepTimes<'a> = (&'a Tensor, &'a Tensor);
/// Changes the method's y1 after a step; called with the step times, y and y1.
pub(super) type Then<'a> =
    dyn FnMut(StepTimes<'_>, &Leaves, &mut Leaves) -> Result<(), FieldFailure<Tensor>> + 'a;

/// [`ode::start`]
pub(super) fn start(
    field: &LeafField<'_>,
    scheme: &Scheme<'_>,
    span: &Span<Tensor>,
    y0: Leaves,
) -> Result<Carry, FieldFailure<Tensor>> {
    ode::start(&field, scheme, span, y0)
}

/// [`ode::attempt_then`]
pub(super) fn attempt_then(
    field: &LeafField<'_>,
    scheme: &Scheme<'_>,
    span: &Span<Tensor>,
    carry: &mut Carry,
    then: &mut Then<'_>,
) -> Result<(), FieldFailure<Tensor>> {
    let then = |(t, t_next): (&Tensor, &Tensor), y: &Leaves, y1: &mut Leaves| then((t, t_next), y, y1);
    ode::attempt_then::<false, false, _, _>(&field, scheme, span, carry, then)
}

/// [`ode::step`]
pub(super) fn step(
    field: &LeafField<'_>,
    scheme: &Scheme<'_>,
    span: &Span<Tensor>,
    step_times: StepTimes<'_>,
    ends: (&Leaves, &mut Leaves),
    k: &mut [Leaves],
    stiff: Option<&mut dyn StiffStages<Leaves>>,
) -> Result<(), FieldFailure<Tensor>> {
    ode::step(&field, scheme, span, step_times, ends, k, stiff)
}
