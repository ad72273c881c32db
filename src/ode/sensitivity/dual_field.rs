//! The vector field and its functions in dual numbers: what is compiled for each `vector_field!`.

use super::functions::{FieldEvent, FieldTimes};
use super::moving::{D, DualFunctions, Eval};
use crate::ode::{Dual, GenericField, JACOBIAN_DIRECTIONS, NestedDual, NumberFn};
use crate::simd::{Bound, Call, Level};
use std::array::from_fn;
use std::marker::PhantomData;

/// A vector field with the parameters of one pass.
pub(super) struct DualField<'a, G: GenericField<N>, const N: usize> {
    pub field: G::Of<D>,
    pub nested: G::Of<NestedDual>,
    /// The parameters without derivatives.
    pub constant: G::Of<D>,
    /// The functions of each event, and of each list of times.
    pub events: &'a [&'a FieldEvent<G, N>],
    pub times: &'a [&'a FieldTimes<G, N>],
    pub observed: &'a [NumberFn<G, N>],
}

/// An evaluation of the vector field.
struct EvalDual<G, const N: usize>(PhantomData<G>);

impl<G: GenericField<N>, const N: usize> Call for EvalDual<G, N> {
    type Of = G::Of<D>;
    type At = D;
    type On = [D];
    type Out = [D];
    type Output = ();

    #[inline(always)]
    fn call(field: &G::Of<D>, t: &D, y: &[D], dy: &mut [D]) {
        if let (Some(y), Some(dy)) = (y.first_chunk::<N>(), dy.first_chunk_mut::<N>()) {
            *dy = G::eval_dual(field, *t, y);
        }
    }
}

/// The state as an array.
fn array<const N: usize>(y: &[D]) -> &[D; N] {
    y.try_into().expect("invariant: the state has N components")
}

impl<G: GenericField<N>, const N: usize> DualFunctions for DualField<'_, G, N> {
    fn eval(&self, level: Option<Level>) -> Eval<'_> {
        match level {
            Some(level) => Bound::narrow::<EvalDual<G, N>>(&self.field, level),
            None => Bound::plain::<EvalDual<G, N>>(&self.field),
        }
    }
    fn columns(
        &self,
        t: D,
        y: &[D],
        (colors, num_colors): (&[usize], usize),
        column: &mut dyn FnMut(usize, &[D]),
    ) {
        for first in (0..=num_colors).step_by(JACOBIAN_DIRECTIONS) {
            let variable = |x: D, direction: usize| Dual::variable(x, direction.wrapping_sub(first));
            let mut at = [NestedDual::from(0.0); N];
            for j in 0..N {
                at[j] = variable(y[j], colors[j]);
            }
            let dy = G::eval_nested_dual(&self.nested, variable(t, num_colors), &at);
            let mut out = [D::from(0.0); N];
            for p in 0..JACOBIAN_DIRECTIONS.min(num_colors + 1 - first) {
                for j in 0..N {
                    out[j] = dy[j].tangent[p];
                }
                column(first + p, &out);
            }
        }
    }
    fn event(&self, index: usize, t: D, y: &[D]) -> D {
        (self.events[index].when.dual)(&self.field, t, array(y))
    }
    fn event_rate(&self, index: usize, t: f64, y: &[D], slope: &[D]) -> f64 {
        let along = |x: f64, rate: f64| D { value: x, tangent: from_fn(|p| if p == 0 { rate } else { 0.0 }) };
        let y = from_fn(|j| along(y[j].value, slope[j].value));
        (self.events[index].when.dual)(&self.constant, along(t, 1.0), &y).tangent[0]
    }
    fn resets(&self, index: usize) -> bool {
        self.events[index].then.is_some()
    }
    fn reset_by_event(&self, index: usize, t: D, y: &mut [D]) {
        if let Some(then) = &self.events[index].then {
            let after = (then.dual)(&self.field, t, array(y), D::from(0.0));
            y.copy_from_slice(&after);
        }
    }
    fn time(&self, list: usize, entry: usize) -> D {
        let FieldTimes { given, moved_to, .. } = self.times[list];
        let t = D::from(given[entry].t);
        moved_to.map_or(t, |time| (time.dual)(&self.field, t))
    }
    fn reset_at_time(&self, list: usize, t: D, y: &mut [D], x: f64) {
        if let Some(then) = &self.times[list].then {
            let after = (then.dual)(&self.field, t, array(y), D::from(x));
            y.copy_from_slice(&after);
        }
    }
    fn observed(&self, index: usize, t: D, y: &[D]) -> D {
        (self.observed[index].dual)(&self.field, t, array(y))
    }
}
