//! df/dy and df/dt by finite differences, for closures and for ensembles.
//!
//! The increment of a component is a fraction of its size, but at least this fraction of `min(atol / rtol,
//! 1)`: below `atol / rtol` the error of a component is controlled by atol. It has the sign of the component,
//! so it does not leave the domain of functions such as sqrt. A forward difference with the fraction
//! `sqrt(eps)` has a relative error of about `sqrt(eps)`. If rtol is smaller, this error would limit the
//! steps. Then f is evaluated at two increments, of the fraction `cbrt(eps)`, and the derivative is that of
//! the parabola through three points. It has an error of order `eps^(2/3)`, like a central difference. df/dt
//! is always computed in this way, at two times within the step, so a difference never crosses a
//! discontinuity.

use super::FieldOn;
use crate::ode::linear::{Coloring, Matrix};
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
    /// Whether df/dy is that of a parabola at every tolerance.
    pub is_exact: bool,
    /// The machine epsilon of the precision in which f is evaluated.
    pub epsilon: f64,
}

/// Scratch of differences: the argument and two values of f.
pub(super) type Scratch<'a, R> = (&'a mut [R], &'a mut [R], &'a mut [R]);

/// Writes df/dy, and returns the number of evaluations.
///
/// # Errors
/// The vector field's error, with the time of the evaluation.
#[inline(always)]
pub(super) fn jacobian<R: Real>(
    field: &mut dyn FieldOn<R>,
    base: &Base<'_, R>,
    plan: &Coloring,
    (moved, near, far): Scratch<'_, R>,
    jacobian: &mut Matrix<R>,
) -> Result<u64, FieldFailure<R::Clock>> {
    let of_parabola = base.is_exact || base.is_tight();
    let part = if of_parabola { base.epsilon.cbrt() } else { base.epsilon.sqrt() };
    for color in 0..plan.num_colors() {
        base.move_color(plan, color, part, moved);
        field.eval(base.t, moved, near)?;
        if !of_parabola {
            plan.each_entry(color, jacobian, |i, j| (near[i] - base.f[i]) / (moved[j] - base.y[j]));
            continue;
        }
        base.move_color(plan, color, 2.0 * part, moved);
        field.eval(base.t, moved, far)?;
        let mut weights = (usize::MAX, base.f[0], base.f[0]);
        plan.each_entry(color, jacobian, |i, j| {
            if weights.0 != j {
                let (a, b) = (base.moved(j, part) - base.y[j], moved[j] - base.y[j]);
                weights = (j, b / (b - a) / a, -(a / (b - a) / b));
            }
            (near[i] - base.f[i]) * weights.1 + (far[i] - base.f[i]) * weights.2
        });
    }
    Ok(plan.num_colors() as u64 * if of_parabola { 2 } else { 1 })
}

impl<R: Real> Base<'_, R> {
    /// Whether a component has an rtol below the error of a forward difference.
    fn is_tight(&self) -> bool {
        let most = self.epsilon.sqrt();
        match self.tolerance.uniform() {
            Some((rtol, _)) => rtol <= most,
            None => (0..self.y.len()).any(|j| self.tolerance.at(j).0 <= most),
        }
    }

    /// Writes y, with increments in the columns of a color.
    #[inline(always)]
    fn move_color(&self, plan: &Coloring, color: usize, part: f64, moved: &mut [R]) {
        for (j, moved) in moved.iter_mut().enumerate() {
            *moved = if plan.colors()[j] == color { self.moved(j, part) } else { self.y[j] };
        }
    }

    /// Component j plus its increment, of this fraction of its size. The increment has the sign of the
    /// component, or is positive if the component is smaller than the minimum size.
    #[inline(always)]
    fn moved(&self, j: usize, part: f64) -> R {
        let (y, size) = (self.y[j], R::constant(min_size(self.tolerance.at(j))));
        let negative = R::select(&size.exceeds(y), size, y);
        y + negative.scale(part)
    }
}

/// Writes df/dt. This takes two evaluations, at times within the step of size h that starts at `base.t`. If the
/// step is so short that there are no two such times, it writes 0: the term `h^2 df/dt` is then below the
/// rounding error of y.
///
/// The increment is the one for which rounding of t and truncation balance, if f varies on the scale of h.
///
/// # Errors
/// The vector field's error, with the time of the evaluation.
#[inline(always)]
pub(super) fn time_derivative<R: Real>(
    field: &mut dyn FieldOn<R>,
    base: &Base<'_, R>,
    h: &R::Clock,
    near: &mut [R],
    f_t: &mut [R],
) -> Result<(), FieldFailure<R::Clock>> {
    let number = |x: f64| h.like(x);
    let ratio = base.t.abs().div(&h.abs()).max(&number(1.0));
    let part = ratio.mul(&number(base.epsilon)).powf(1.0 / 3.0).min(&number(0.25));
    let distance = h.mul(&part);
    let (t_near, t_far) = (base.t.add(&distance), base.t.add(&distance.mul(&number(2.0))));
    field.eval(&t_near, base.y, near)?;
    field.eval(&t_far, base.y, f_t)?;
    let (a, b) = (t_near.sub(base.t), t_far.sub(base.t));
    let between = b.sub(&a);
    let (of_near, of_far) = (b.div(&between).div(&a), a.div(&between).div(&b));
    let is_inside = R::Clock::and(&of_near.is_finite(), &b.abs().lt(&h.abs()));
    let zero = R::constant(0.0);
    for ((f_t, &near), &f) in f_t.iter_mut().zip(&*near).zip(base.f) {
        let slope = (near - f).scale_by(&of_near) - (*f_t - f).scale_by(&of_far);
        *f_t = R::select(&is_inside, slope, zero);
    }
    Ok(())
}
