//! df/dy and df/dt by forward differences, for closures and for ensembles.
//!
//! The increment of a component is `sqrt(eps)` times its size, but at least `sqrt(eps)` times `min(atol /
//! rtol, 1)`: below `atol / rtol` the error of a component is controlled by atol. The increment of t points
//! into the step and stays within it, so it never crosses a discontinuity.

use super::FieldOn;
use crate::ode::linear::{Matrix, Plan};
use crate::ode::{Clock, FieldFailure, Real, Tolerance};

/// The minimum size of a component if rtol or atol is 0.
const SIZE: f64 = 1e-5;

/// The minimum size of a component in an increment, for its tolerances.
pub(super) fn min_size((rtol, atol): (f64, f64)) -> f64 {
    // `Tolerance::at` returns this number for an atol of 0.
    if rtol > 0.0 && atol > f64::MIN_POSITIVE { (atol / rtol).min(1.0) } else { SIZE }
}

/// The base point of the differences.
pub(super) struct Base<'a, R: Real> {
    pub t: &'a R::Clock,
    pub y: &'a [R],
    /// f(t, y).
    pub f: &'a [R],
    pub tolerance: &'a Tolerance<'a>,
    /// The square root of the machine epsilon of the precision in which f is evaluated.
    pub part: f64,
}

/// Writes df/dy, and returns the number of evaluations.
///
/// # Errors
/// The vector field's error, with the time of the evaluation.
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
    /// Component j plus its increment. The increment has the sign of the component, or is positive if the
    /// component is smaller than the minimum size.
    #[inline(always)]
    fn moved(&self, j: usize) -> R {
        let (y, size) = (self.y[j], R::constant(min_size(self.tolerance.at(j))));
        let negative = R::select(&size.exceeds(y), size, y);
        y + negative.scale(self.part)
    }
}

/// Writes df/dt. This takes one evaluation, at a time within the step of size h that starts at `base.t`.
///
/// # Errors
/// The vector field's error, with the time of the evaluation.
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
