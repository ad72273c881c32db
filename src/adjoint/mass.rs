//! The mass matrix of `M y' = f(t, y)` on tensors, and its algebraic equations.
//!
//! Gaussian elimination of M, as on plain states, gives a matrix E such that rows of E M are 0: these rows of E f are the
//! algebraic equations. A step of Newton's method changes y such that M y stays: its system has the other rows of E M, and
//! the algebraic rows of E J. A loop without derivatives takes steps until the change is below a thousandth of the
//! tolerance; two further steps carry the derivatives, as for event times. In contrast to plain states, steps are not
//! shortened. This module does not depend on when a solve makes its state consistent.

use super::algorithm::Scheme;
use super::evaluations::Rate;
use super::leaves::Leaves;
use super::repeat::repeat;
use super::rosenbrock::{components, jacobian_of, with_components};
use crate::array::DType;
use crate::graph::{Checkpoints, Policy, Type};
use crate::ode::{Elimination, Mass};
use crate::tensor::linalg::Factored;
use crate::tensor::{Tensor, trace};

/// The maximum number of Newton steps.
const STEPS_MAX: usize = 30;
/// The change, in tolerances, after which Newton's method has converged.
const NEGLIGIBLE: f64 = 1e-3;
/// The difference from a consistent state, in tolerances, up to which y0 is accepted.
const VIOLATION: f64 = 10.0;

/// A mass matrix.
#[derive(Clone)]
pub(super) struct MassMatrix {
    /// M, `[n, n]`.
    pub(super) entries: Tensor,
    /// The algebraic equations, if M is singular.
    pub(super) constraints: Option<Constraints>,
}

/// The algebraic equations.
#[derive(Clone)]
pub(super) struct Constraints {
    /// E, `[n, n]`.
    elimination: Tensor,
    /// The rows of E M that are not 0, `[n, n]`.
    kept: Tensor,
    /// Whether each equation is algebraic after the elimination, `[n]`.
    is_algebraic: Tensor,
}

/// A state that satisfies the algebraic equations, if one was found.
pub(super) struct Consistent {
    pub(super) y: Leaves,
    /// Whether Newton's method converged.
    pub(super) is_found: Tensor,
    /// The largest change of a component, in tolerances.
    pub(super) size: Tensor,
    /// The equation with the largest residual, relative to its terms.
    pub(super) equation: Tensor,
}

impl Consistent {
    /// Whether y0 is too far from a consistent state.
    pub(super) fn is_violated(&self) -> Tensor {
        self.is_found.and(&self.size.le(VIOLATION)).not()
    }
}

impl MassMatrix {
    pub(super) fn of(mass: &Mass) -> Self {
        let Elimination { n, mass, multiples, kept, is_algebraic } = mass.eliminated();
        let square = |x: Vec<f64>| Tensor::from_vec([n, n], x);
        let is_singular = is_algebraic.contains(&true);
        let flags: Vec<f64> = is_algebraic.iter().map(|is| f64::from(u8::from(*is))).collect();
        let constraints = is_singular.then(|| Constraints {
            elimination: square(multiples),
            kept: square(kept),
            is_algebraic: Tensor::from(&flags[..]).cast(DType::Bool),
        });
        MassMatrix { entries: square(mass), constraints }
    }

    /// `M^-1 f`, the derivative of y in time; `None` if M is singular.
    pub(super) fn rate(&self, f: &Leaves) -> Option<Leaves> {
        let column = components(f).expand_dims(1);
        let solved = || Factored::of(&self.entries).solve(&column).reshape([column.size()]);
        self.constraints.is_none().then(|| with_components(f, &solved()))
    }
}

impl Constraints {
    /// A Newton step from the components x, with the residuals of the equations relative to their terms.
    fn step(&self, rate: &Rate, (t, y): (&Tensor, &Leaves), x: &Tensor) -> (Tensor, Tensor) {
        let n = x.size();
        let at = with_components(y, x);
        let f = self.elimination.matmul(&components(&rate.at(t, &at)));
        let zero = Tensor::scalar(DType::F64, 0.0);
        let residual = self.is_algebraic.select(&f, &zero);
        let of_rows = self.elimination.matmul(&jacobian_of(rate, t, &at));
        let rows = self.is_algebraic.expand_dims(1).broadcast_to([n, n]);
        let system = rows.select(&of_rows, &self.kept);
        let step = -Factored::of(&system).solve(&residual.expand_dims(1)).reshape([n]);
        let terms = (system.abs().matmul(&(x.abs() + 1e-300))).stop_gradient();
        (step, residual.abs() / (terms + 1e-300))
    }

    /// A state with the same M y that satisfies the algebraic equations at t.
    pub(super) fn solve(&self, rate: &Rate, scheme: &Scheme<'_>, t: &Tensor, y: &Leaves) -> Consistent {
        let given = components(y);
        let still = given.stop_gradient();
        let (fixed_t, fixed_y) =
            (t.stop_gradient(), y.with(y.tensors().iter().map(Tensor::stop_gradient).collect()));
        let (rtol, atol): (Vec<f64>, Vec<f64>) = (0..given.size()).map(|j| scheme.tolerance.at(j)).unzip();
        let (rtol, atol) = (Tensor::from(&rtol[..]), Tensor::from(&atol[..]));
        let in_tolerances = |a: &Tensor, b: &Tensor| {
            let size = (a - b).abs() / (a.abs().maximum(&b.abs()) * &rtol + &atol);
            a.eq(b).select(&Tensor::scalar(DType::F64, 0.0), &size).max()
        };
        let number = Type::scalar(DType::F64);
        let trip = trace(&[number.clone(), still.ty(), number], &mut |x| {
            let (step, _) = self.step(rate, (&fixed_t, &fixed_y), &x[1]);
            let next = &x[1] + step;
            let size = in_tolerances(&x[1], &next);
            // A NaN ends the loop.
            let goes_on = size.gt(NEGLIGIBLE).and(&x[0].lt(STEPS_MAX as f64 - 1.0));
            vec![goes_on, next, size]
        });
        let start = [still.clone(), Tensor::scalar(DType::F64, 0.0)];
        let end = repeat(&trip, (&start, 0), (0, Policy::Checkpoint(Checkpoints::Auto)));
        let is_found = end[1].le(NEGLIGIBLE);
        // The change has no derivative, so that x moves with the given state.
        let mut x = &given + (&end[0] - &still).stop_gradient();
        for _ in 0..2 {
            x = &x + self.step(rate, (t, y), &x).0;
        }
        let residuals = self.step(rate, (&fixed_t, &fixed_y), &still).1;
        let place = Tensor::iota(DType::F64, [given.size()], 0);
        let none = Tensor::scalar(DType::F64, f64::INFINITY);
        let equation = residuals.ge(residuals.max()).select(&place, &none).min();
        Consistent { y: with_components(y, &x), is_found, size: in_tolerances(&still, &end[0]), equation }
    }
}
