//! The extra stages that a step's dense output needs, beyond the stages of y1.
//!
//! Recorded steps compute them with this module. The driver of plain states has its own code
//! (`Integrator::complete`), which reuses stages that it already has. This module never chooses a step size.

use super::stages::eval;
use super::{Clock, FieldFailure, Interpolant, Scheme, Span, State, VectorField};

/// Evaluates the stages of the [`Interpolant`] that are not in `k` yet, for the step from `t` to `t_next` that
/// led from `y` to `y1`: the extra stages and, for a FSAL method, f(t_next, y1) unless `has_last`.
///
/// `k` has as many states as the interpolant has stages.
///
/// # Errors
/// The vector field's error, with the time of the stage.
pub fn complete<S: State, F: VectorField<S>>(
    f: &F,
    scheme: &Scheme<S>,
    interpolant: &Interpolant,
    span: &Span<S::Clock>,
    (t, t_next): (&S::Clock, &S::Clock),
    (y, y1): (&S, &S),
    has_last: bool,
    k: &mut [S],
) -> Result<(), FieldFailure<S::Clock>> {
    let (s, h) = (scheme.tableau.num_stages(), t_next.sub(t));
    if scheme.tableau.is_fsal() && !has_last {
        eval(f, &scheme.before(span, t_next), y1, &mut k[s - 1])?;
    }
    let mut argument = y.clone();
    for (i, (c, row)) in interpolant.extra().enumerate() {
        let (before, after) = k.split_at_mut(s + i);
        if i == 0 && interpolant.starts_with_f1() {
            argument.copy_of(y1);
        } else {
            argument.lincomb(y, &h, row, &before[..]);
        }
        // A stage with c = 1 is evaluated at the same time as such stages of the step; t + h may differ.
        let at = if c == 1.0 { scheme.before(span, t_next) } else { t.add(&h.mul(&h.like(c))) };
        eval(f, &at, &argument, &mut after[0])?;
    }
    Ok(())
}
