//! The mass matrix of `M y' = f(t, y)` on tensors, and its algebraic equations.
//!
//! Gaussian elimination of M, as on plain states, gives a matrix E such that some rows of E M are 0: these rows of E f are the
//! algebraic equations. A step of Newton's method changes y such that M y stays: its system has the other rows of E M, and
//! the algebraic rows of E J. A loop without derivatives repeats steps as on plain states: until a step is negligible or the
//! residuals are rounding errors, each shortened until the next step is shorter. Two further steps carry the derivatives,
//! as for event times. This module does not depend on when a solve makes its state consistent.
//!
//! # References
//! Deuflhard (2011), Newton Methods for Nonlinear Problems, section 3.3.

use super::algorithm::{Carry, Scheme};
use super::evaluations::Rate;
use super::leaves::Leaves;
use super::rosenbrock::{components, jacobian_of, with_components, without_infinities};
use crate::array::DType;
use crate::graph::{Policy, Type};
use crate::ode::{Elimination, Mass, status};
use crate::tensor::linalg::Factored;
use crate::tensor::{Tensor, Trip, repeat, trace};

/// The maximum number of trips of the loop. A trip takes a Newton step or halves it.
const TRIPS_MAX: usize = 200;
/// The change, in tolerances, after which Newton's method has converged.
const NEGLIGIBLE: f64 = 1e-3;
/// The smallest fraction of a Newton step.
const PART_MIN: f64 = 1e-3;
/// A residual of at most this many machine epsilons of its terms is rounding error.
const ROUNDING: f64 = 16.0;
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
    /// How Newton's method ended: [`FOUND`], [`SINGULAR`] or another code.
    code: Tensor,
    /// The largest change of a component, in tolerances.
    pub(super) size: Tensor,
    /// The algebraic equation with the largest residual, relative to its terms.
    equation: Tensor,
    /// A component that the equations do not determine, if the system is singular.
    component: Tensor,
}

/// The loop goes on.
const RUNNING: f64 = 0.0;
/// A consistent state was found.
const FOUND: f64 = 1.0;
/// The algebraic equations do not determine a component.
const SINGULAR: f64 = 2.0;
/// No step is short enough, or the equations are not finite.
const FAILED: f64 = 3.0;

impl Consistent {
    /// Whether a consistent state was found.
    pub(super) fn is_found(&self) -> Tensor {
        self.code.eq(FOUND)
    }

    /// Whether y0 is too far from a consistent state.
    pub(super) fn is_violated(&self) -> Tensor {
        self.is_found().and(&self.size.le(VIOLATION)).not()
    }

    /// Ends a solve for this reason where `is_due`.
    pub(super) fn end(&self, is_due: &Tensor, carry: &mut Carry) {
        let number = |x: f64| Tensor::scalar(DType::F64, x);
        let (is_due, is_singular) = (is_due.and(&carry.is_running()), self.code.eq(SINGULAR));
        let component = is_singular.select(&self.component, &self.equation);
        let status = is_singular.select(&number(status::SINGULAR), &number(status::INCONSISTENT));
        carry.component = is_due.select(&component, &carry.component);
        carry.status = is_due.select(&status, &carry.status);
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

/// The system of a Newton step.
struct Newton {
    system: Factored,
    step: Tensor,
    /// The algebraic residuals relative to their terms; -1 for the other equations.
    relative: Tensor,
}

impl Constraints {
    /// The values of the algebraic equations at x; 0 for the other equations.
    fn residuals(&self, rate: &Rate, t: &Tensor, at: &Leaves) -> (Tensor, Tensor) {
        let f = components(&rate.at(t, at));
        let all = self.elimination.matmul(&f);
        (self.is_algebraic.select(&all, &Tensor::scalar(DType::F64, 0.0)), f)
    }

    /// The Newton step from the components x.
    fn newton(&self, rate: &Rate, (t, y): (&Tensor, &Leaves), x: &Tensor) -> Newton {
        let n = x.size();
        let at = with_components(y, x);
        let (residuals, f) = self.residuals(rate, t, &at);
        let of_rows = self.elimination.matmul(&jacobian_of(rate, t, &at));
        let rows = self.is_algebraic.expand_dims(1).broadcast_to([n, n]);
        let entries = without_infinities(&rows.select(&of_rows, &self.kept));
        let system = Factored::of(&entries);
        let step = -solved(&system, &residuals);
        let terms = entries.abs().matmul(&x.abs()) + self.elimination.abs().matmul(&f.abs());
        let relative = residuals.abs() / (terms + f64::MIN_POSITIVE);
        let relative = self.is_algebraic.select(&relative, &Tensor::scalar(DType::F64, -1.0));
        Newton { system, step, relative: relative.stop_gradient() }
    }

    /// The Newton iteration from the components `start`, without derivatives: the end, and its code and component.
    fn iterate(
        &self,
        rate: &Rate,
        scheme: &Scheme<'_>,
        (t, y): (&Tensor, &Leaves),
        start: &Tensor,
    ) -> [Tensor; 3] {
        let number = |x: f64| Tensor::scalar(DType::F64, x);
        let is_single = y.tensors().iter().any(|y| y.dtype() == DType::F32);
        let epsilon = if is_single { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let (rtol, atol) = tolerances(scheme, start.size());
        let types = [Type::scalar(DType::F64), start.ty(), Type::scalar(DType::F64)];
        let types = [&types[..], &[Type::scalar(DType::F64), Type::scalar(DType::F64)]].concat();
        let trip = trace(&types, &mut |state| {
            let (x, part) = (&state[1], &state[2]);
            let Newton { system, step, relative } = self.newton(rate, (t, y), x);
            let tolerance = x.abs().maximum(&(x + &step).abs()) * &rtol + &atol;
            let length = |step: &Tensor| (step.abs() / &tolerance).max();
            let is_noise = relative.max().le(ROUNDING * epsilon);
            let is_found = is_noise.or(&length(&step).le(NEGLIGIBLE));
            let near = x + &step * part;
            let next = -solved(&system, &self.residuals(rate, t, &with_components(y, &near)).0);
            let is_shorter = length(&next).le((1.0 - part * 0.25) * length(&step));
            let whole = is_noise.select(x, &(x + &step));
            let x = is_found.select(&whole, &is_shorter.select(&near, x));
            let part = is_shorter.select(&number(1.0), &(part * 0.5));
            let is_not_finite = step.sum().is_finite().not();
            let ended = is_not_finite
                .select(&number(FAILED), &part.lt(PART_MIN).select(&number(FAILED), &number(RUNNING)));
            let ended = is_not_finite.and(&relative.sum().is_finite()).select(&number(SINGULAR), &ended);
            // A singular system may have residuals of 0.
            let code = is_found.and(&is_not_finite.not()).select(&number(FOUND), &ended);
            let goes_on = code.eq(RUNNING).and(&state[0].lt(TRIPS_MAX as f64 - 1.0));
            vec![goes_on, x, part, code, last(&step.is_finite().not())]
        });
        let start = [start.clone(), number(1.0), number(RUNNING), number(0.0)];
        let mut end = repeat(&Trip { traced: &trip, num_carry: 0, guard: None }, &start, (0, Policy::Direct));
        let (component, code) = (end.remove(3), end.remove(2));
        [end.remove(0), code, component]
    }

    /// A state with the same M y that satisfies the algebraic equations at t.
    pub(super) fn solve(&self, rate: &Rate, scheme: &Scheme<'_>, t: &Tensor, y: &Leaves) -> Consistent {
        let given = components(y);
        let (still, t_still) = (given.stop_gradient(), t.stop_gradient());
        let y_still = y.with(y.tensors().iter().map(Tensor::stop_gradient).collect());
        let [end, code, component] = self.iterate(rate, scheme, (&t_still, &y_still), &still);
        // The change has no derivative, so that x moves with the given state.
        let mut x = &given + (&end - &still).stop_gradient();
        for _ in 0..2 {
            x = &x + self.newton(rate, (t, y), &x).step;
        }
        let relative = self.newton(rate, (&t_still, &y_still), &still).relative;
        let ranked = relative.is_finite().select(&relative, &Tensor::scalar(DType::F64, f64::MAX));
        let equation = first(&ranked.ge(ranked.max()));
        let (rtol, atol) = tolerances(scheme, given.size());
        let size = ((&end - &still).abs() / (end.abs().maximum(&still.abs()) * rtol + atol)).max();
        Consistent { y: with_components(y, &x), code, size, equation, component }
    }
}

fn solved(system: &Factored, right: &Tensor) -> Tensor {
    system.solve(&right.expand_dims(1)).reshape([right.size()])
}

/// rtol, and atol or the smallest positive number, of each component.
fn tolerances(scheme: &Scheme<'_>, n: usize) -> (Tensor, Tensor) {
    let all = (0..n).map(|j| scheme.tolerance.at(j)).map(|(rtol, atol)| (rtol, atol.max(f64::MIN_POSITIVE)));
    let (rtol, atol): (Vec<f64>, Vec<f64>) = all.unzip();
    (Tensor::from(&rtol[..]), Tensor::from(&atol[..]))
}

/// The index of the last element that holds; 0 if none does. If a pivot is 0, its unknown is the last one that is not
/// finite, because back substitution carries it to the unknowns before it.
fn last(flags: &Tensor) -> Tensor {
    let place = Tensor::iota(DType::F64, [flags.size()], 0);
    flags.select(&place, &Tensor::scalar(DType::F64, 0.0)).max()
}

/// The index of the first element that holds; 0 if none does.
fn first(flags: &Tensor) -> Tensor {
    let place = Tensor::iota(DType::F64, [flags.size()], 0);
    let index = flags.select(&place, &Tensor::scalar(DType::F64, f64::MAX)).min();
    index.lt(f64::MAX).select(&index, &Tensor::scalar(DType::F64, 0.0))
}
