//! df/dy and df/dt by forward differences, for fields that are closures.
//!
//! A component moves by `sqrt(eps)` of its own size, or of `atol / rtol` where that is larger: below it the tolerances do not
//! read the component. Time moves into the step, never beyond its end, so never across a discontinuity.

use super::FieldOn;
use crate::ode::linear::{Matrix, Plan};
use crate::ode::{Clock, FieldFailure, Real, Tolerance};

/// The size of a component whose tolerances say nothing.
const SIZE: f64 = 1e-5;

/// What the differences are taken from.
pub(super) struct Base<'a, R: Real> {
    pub t: &'a R::Clock,
    pub y: &'a [R],
    /// f(t, y).
    pub f: &'a [R],
    pub tolerance: &'a Tolerance<'a>,
    /// The square root of the rounding unit in which the field is evaluated.
    pub part: f64,
}

/// Writes df/dy; gives how many evaluations that took.
///
/// # Errors
/// What the field said, with the time.
#[inline(always)]
pub(super) fn jacobian<R: Real>(
    field: &mut dyn FieldOn<R>,
    base: &Base<'_, R>,
    plan: &Plan,
    (moved, column): (&mut [R], &mut [R]),
    jacobian: &mut Matrix<R>,
) -> Result<u64, FieldFailure<R::Clock>> {
    for color in 0..plan.num_colors() {
        for (j, moved) in moved.iter_mut().enumerate() {
            *moved = if plan.colors()[j] == color { base.moved(j) } else { base.y[j] };
        }
        field.eval(base.t, moved, column)?;
        plan.each_entry(color, jacobian, |i, j| (column[i] - base.f[i]) / (moved[j] - base.y[j]));
    }
    Ok(plan.num_colors() as u64)
}

impl<R: Real> Base<'_, R> {
    /// Component j, moved away from 0.
    #[inline(always)]
    fn moved(&self, j: usize) -> R {
        let (rtol, atol) = self.tolerance.at(j);
        let size = if rtol > 0.0 && atol > 0.0 { (atol / rtol).min(1.0) } else { SIZE };
        let (y, size) = (self.y[j], R::constant(size));
        let negative = R::select(&size.exceeds(y), size, y);
        y + negative.scale(self.part)
    }
}

/// Writes df/dt by one evaluation at a time within the step of size h that starts at `base.t`.
///
/// # Errors
/// What the field said, with the time.
#[inline(always)]
pub(super) fn time_derivative<R: Real>(
    field: &mut dyn FieldOn<R>,
    base: &Base<'_, R>,
    h: &R::Clock,
    f_t: &mut [R],
) -> Result<(), FieldFailure<R::Clock>> {
    let number = |x: f64| h.like(x);
    let size = base.t.abs().max(&h.abs()).mul(&number(base.part));
    let size = size.min(&h.abs().mul(&number(0.5)));
    let backward = h.lt(&number(0.0));
    let distance = R::Clock::select(&backward, &number(0.0).sub(&size), &size);
    let t = base.t.add(&distance);
    field.eval(&t, base.y, f_t)?;
    let inverse = number(1.0).div(&t.sub(base.t));
    for (f_t, &f) in f_t.iter_mut().zip(base.f) {
        *f_t = (*f_t - f).scale_by(&inverse);
    }
    Ok(())
}
