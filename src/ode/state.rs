//! `State`: what is integrated, as the stepping algorithm sees it.
//!
//! Four operations are all that a Runge-Kutta step asks of a state; an array, a `Vec`, a tree of tensors each
//! give theirs. A state knows its components; it must never know the method, the controller or the loop.
//! Alternatives considered: operators (`y + dt * k`), which allocate a temporary for each term of a heap state
//! and record one node for each term of a traced one; a slice of `f64`, which tensors are not.

use super::{Clock, FieldError, Tolerance};

/// What is integrated: numbers that can be combined linearly and measured against a tolerance.
///
/// Every implementation must give the same bits for the same inputs, whether called from
/// [`attempt`](super::attempt) or from [`step`](super::step).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a state that flowline can integrate",
    label = "not a `State`",
    note = "a state is f64, f32, [f64; N], [f32; N], Vec<f64>, Vec<f32>",
    note = "a slice has no size: take `y: &Vec<f64>`, or write dy in place with `Ode::in_place(|t, y: &[f64], dy: &mut [f64]| ...)`"
)]
pub trait State: Clone {
    /// The number that t and dt are.
    type Clock: Clock;

    /// `self = y + dt * sum_i a_i k_i`. Terms with `a_i == 0` are left out, so a NaN in their `k_i` is harmless.
    ///
    /// `self` holds a value of the same shape before, of no meaning.
    fn lincomb(&mut self, y: &Self, dt: &Self::Clock, a: &[f64], k: &[Self]);

    /// The RMS over all components of `dt sum_i b_i k_i / (atol + rtol max(|y0|, |y1|))`; `self` is scratch.
    ///
    /// Terms with `b_i == 0` are left out. Not finite where a component of the sum or of `y1` is not finite.
    fn error_ratio(
        &mut self,
        dt: &Self::Clock,
        b: &[f64],
        k: &[Self],
        y0: &Self,
        y1: &Self,
        tol: &Tolerance,
    ) -> Self::Clock;

    /// Writes the scaled errors `dt sum_i b_i k_i / (atol + rtol max(|y0|, |y1|))` into `self`, for norms of one's own.
    ///
    /// Not finite where a component of the sum or of `y1` is not finite.
    fn scaled_error(
        &mut self,
        dt: &Self::Clock,
        b: &[f64],
        k: &[Self],
        y0: &Self,
        y1: &Self,
        tol: &Tolerance,
    );

    /// How many components there are.
    fn num_components(&self) -> usize;

    /// How many components each part has: one part unless the state is made of several states.
    fn parts(&self) -> Vec<usize> {
        vec![self.num_components()]
    }

    /// Takes over `new` where `m` holds; `new` has no meaning afterwards.
    fn keep(&mut self, m: &<Self::Clock as Clock>::Mask, new: &mut Self);

    /// The index of the first component that is NaN or infinite, as a number in the lanes or the trace of
    /// `like`; -1 where there is none.
    fn first_non_finite(&self, like: &Self::Clock) -> Self::Clock;

    /// Says whether a derivative that a field returned has the shape of `y`.
    fn conforms(&self, _y: &Self) -> Result<(), FieldError> {
        Ok(())
    }
}
