//! The time of an event in its step: a root search in the graph, and the derivative of the root.
//!
//! The search is a separate loop and has no derivative. Its steps are those of plain states ([`Bracket`]). Two
//! Newton steps after the search leave the value unchanged and carry the derivative, dt = -dg / (dg/dt) by the
//! implicit function theorem. The second Newton step makes second derivatives correct. This module must not
//! depend on what happens at an event.

use super::bodies::body;
use super::event::number;
use crate::array::DType;
use crate::graph::{Policy, Type};
use crate::ode::{Bracket, Event, SolveError};
use crate::tensor::{Tensor, Trip, jvp, repeat};

/// The end of the narrowed bracket at which the sign has changed.
///
/// # Errors
/// The error of `g` while it was recorded.
pub(super) fn search(
    bracket: Bracket<Tensor>,
    event: &Event,
    g: &dyn Fn(&Tensor) -> Tensor,
) -> Result<Tensor, SolveError> {
    let width = (&bracket.b[0] - &bracket.a[0]).abs();
    let start = bracket.clocks();
    let trip = body(&vec![Type::scalar(DType::F64); 6], &mut |x| {
        let before = Bracket::of([1, 2, 3, 4, 5].map(|k| x[k].clone()));
        let is_open = before.is_open(event);
        let t = before.proposal(&width);
        let after = before.narrowed(&t, &g(&t));
        let [old, new] = [before.clocks(), after.clocks()];
        let mut out = vec![is_open.and(&after.is_open(event))];
        out.extend(old.iter().zip(&new).map(|(old, new)| is_open.select(new, old)));
        Ok(out)
    })?;
    Ok(repeat(&Trip { traced: &trip, num_carry: 0, guard: None }, &start, (0, Policy::Direct)).swap_remove(2))
}

/// `root` with the derivatives of the time at which `event_fn` is 0. The result has no derivatives if `occurrence`
/// is false. If the derivative of `event_fn` by t is 0 or not finite, the event grazes zero, and the derivatives
/// are NaN. Only the time of a condition, whose value is 1 or -1 even at the root, is a constant.
pub(super) fn implicit(event_fn: &dyn Fn(&Tensor) -> Tensor, root: &Tensor, occurrence: &Tensor) -> Tensor {
    let crossing = |t: &Tensor| {
        let (g, derivative) = jvp(event_fn, t, &number(1.0));
        let crosses = occurrence.and(&derivative.ne(0.0)).and(&(&g / &derivative).is_finite());
        (g, derivative, crosses)
    };
    let newton = |t: &Tensor| {
        let (g, derivative, crosses) = crossing(t);
        let derivative = crosses.select(&derivative, &number(1.0));
        t - crosses.select(&(g / derivative), &number(0.0))
    };
    let root = root.stop_gradient();
    let t = newton(&newton(&root));
    let (g, _, crosses) = crossing(&root);
    let grazes = occurrence.and(&crosses.not()).and(&g.abs().ne(1.0));
    &root + (&t - t.stop_gradient()) + undefined(&g, &grazes)
}

/// 0, whose derivatives with respect to all that `g` depends on are NaN where `holds`.
fn undefined(g: &Tensor, holds: &Tensor) -> Tensor {
    let zero = holds.select(&(g - g.stop_gradient()), &number(1.0));
    // The derivative of the square root is infinite at 0, and infinity times 0 is NaN.
    let root = zero.sqrt();
    holds.select(&(&root * root.stop_gradient()), &number(0.0))
}
