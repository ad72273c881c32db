//! Consistent states: Newton's method for the algebraic equations of `M y' = f(t, y)`.
//!
//! A step of Newton's method changes y such that `M y` stays and the algebraic equations hold to first order.
//! The size of this change, in tolerances, says how inconsistent a state is. The residual of an equation does
//! not say this, because it depends on the equation's scale. Steps are shortened until the next step is
//! shorter (natural monotonicity test).
//!
//! # References
//! Deuflhard (2011), Newton Methods for Nonlinear Problems, section 3.3; Hairer, Wanner II, section VI.1.

use super::differences::min_size;
use super::rosenbrock::{Rosenbrock, StepOf};
use super::{FieldOn, Known};
use crate::ode::linear::{Constraints, Lu, Matrix, Row, row_of};
use crate::ode::{FieldFailure, Real, Tolerance};

/// A change of this many tolerances is not made.
pub const NEGLIGIBLE: f64 = 1e-3;
/// The maximum number of Newton steps.
const STEPS_MAX: usize = 30;
/// The smallest fraction of a Newton step.
const PART_MIN: f64 = 1e-3;
/// A multiple of the machine epsilon, which bounds the rounding error of a residual relative to its terms.
const ROUNDING: f64 = 16.0;

/// How a state differs from one that satisfies the algebraic equations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correction {
    /// The component that differs by the most tolerances.
    pub component: usize,
    /// The given value of the component.
    pub given: f64,
    /// The consistent value of the component.
    pub needed: f64,
    /// The difference in tolerances.
    pub tolerances: f64,
    /// The algebraic equation with the largest residual, relative to its terms.
    pub equation: usize,
}

/// The result of solving the algebraic equations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Consistency {
    /// There are no algebraic equations, or the vector field or its Jacobian is not finite.
    Unknown,
    /// A consistent state was found. It is the given state if the change is [`NEGLIGIBLE`].
    Solved(Correction),
    /// No consistent state was found. The correction is that of the first Newton step.
    Unsolved(Correction),
    /// The algebraic equations do not determine this component.
    Open {
        /// The component.
        component: usize,
    },
}

/// Why there is no linear system.
enum NoSystem {
    NotFinite,
    Singular(usize),
}

/// The linear system of a Newton step, with rows and columns scaled.
struct System {
    lu: Lu<f64>,
    row_scales: Vec<f64>,
    column_scales: Vec<f64>,
    /// Per equation, a residual up to which it is rounding error; infinite for equations with derivatives.
    noise: Vec<f64>,
}

impl System {
    fn new<R: Real>(
        constraints: &Constraints,
        (jacobian, canceled): (&Matrix<R>, f64),
        (y, f): (&[R], &[R]),
        (tolerance, epsilon): (&Tolerance<'_>, f64),
    ) -> Result<Self, NoSystem> {
        let n = y.len();
        let rows = constraints.system(&|i| row_of(jacobian, i), canceled);
        let sizes: Vec<f64> = (0..n).map(|j| y[j].value().abs().max(min_size(tolerance.at(j)))).collect();
        let magnitudes: Vec<f64> = f.iter().map(|f| f.value().abs()).collect();
        let mut noise = constraints.terms(&magnitudes);
        for (i, row) in rows.iter().enumerate() {
            let terms: f64 = row.iter().map(|&(j, entry)| (entry * y[j].value()).abs()).sum();
            noise[i] = ROUNDING * epsilon * (noise[i] + terms);
            if !noise[i].is_finite() || row.iter().any(|(_, entry)| !entry.is_finite()) {
                return Err(NoSystem::NotFinite);
            }
            if !constraints.is_algebraic(i) {
                noise[i] = f64::INFINITY;
            }
        }
        let scaled = |row: &Row, columns: &[f64]| -> f64 {
            row.iter().map(|&(j, entry)| (entry * columns[j]).abs()).fold(0.0, f64::max)
        };
        let inverse = |x: f64| if x > 0.0 { (1.0 / x).min(f64::MAX) } else { 1.0 };
        let row_scales: Vec<f64> = rows.iter().map(|row| inverse(scaled(row, &sizes))).collect();
        let mut largest = vec![0.0_f64; n];
        for (row, scale) in rows.iter().zip(&row_scales) {
            row.iter().for_each(|&(j, x)| largest[j] = largest[j].max((x * sizes[j] * scale).abs()));
        }
        let column_scales: Vec<f64> = sizes.iter().zip(&largest).map(|(s, &x)| s * inverse(x)).collect();
        let lu = factored(&rows, &row_scales, &column_scales, canceled).map_err(NoSystem::Singular)?;
        Ok(System { lu, row_scales, column_scales, noise })
    }

    /// The residuals of the algebraic equations for the right-hand sides f, scaled like the rows; 0 for the other
    /// equations. A residual that is rounding error gets the value 0 and keeps its derivatives.
    fn residuals<R: Real>(&self, constraints: &Constraints, f: &[R]) -> Vec<R> {
        let mut residuals = f.to_vec();
        constraints.reduce(&mut residuals);
        for (i, residual) in residuals.iter_mut().enumerate() {
            let (noise, value) = (self.noise[i], residual.value());
            if noise.is_infinite() {
                *residual = R::constant(0.0);
                continue;
            }
            let is_noise = value.abs() <= noise;
            let kept = if is_noise { *residual - R::constant(value) } else { *residual };
            *residual = kept.scale(self.row_scales[i]);
        }
        residuals
    }

    /// The Newton step for these residuals.
    fn step<R: Real<Clock = f64>>(&self, mut residuals: Vec<R>) -> Vec<R> {
        self.lu.solve_for(&mut residuals, |factor, x: R| x.scale(factor));
        let scaled = residuals.iter().zip(&self.column_scales);
        scaled.map(|(x, &scale)| x.scale(-scale)).collect()
    }
}

/// The LU factors of a matrix, scaled so that the largest entries of its rows and columns are near 1, or the
/// first column without a pivot above `least`.
fn factored(rows: &[Row], row_scales: &[f64], column_scales: &[f64], least: f64) -> Result<Lu<f64>, usize> {
    let n = rows.len();
    let mut columns = vec![Row::new(); n];
    let (mut lower, mut upper) = (0, 0);
    for (i, row) in rows.iter().enumerate() {
        for &(j, entry) in row {
            (lower, upper) = (lower.max(i.saturating_sub(j)), upper.max(j.saturating_sub(i)));
            columns[j].push((i, entry * row_scales[i] * column_scales[j]));
        }
    }
    let mut lu = Lu::new(n, lower, upper);
    lu.clear();
    for (j, column) in columns.iter().enumerate() {
        for &(i, entry) in column {
            lu.column_mut(j, i..i + 1)[0] = entry;
        }
    }
    let singular = lu.factor::<0>();
    let is_small = |k: &usize| lu.pivot(*k).abs() <= least;
    match singular.or_else(|| (0..n).find(is_small)) {
        Some(column) => Err(column),
        None => Ok(lu),
    }
}

/// A number with the value -0 and the derivatives of x. Adding it to a number keeps the bits of that number's value.
fn derivatives_of<R: Real>(x: R) -> R {
    -(R::constant(x.value()) - x)
}

/// The component that differs the most from y to `moved`, and the difference in tolerances; not finite if a
/// difference is not.
fn largest<R: Real>(y: &[R], moved: &[R], tolerance: &Tolerance<'_>) -> (usize, f64) {
    let (mut component, mut most) = (0, 0.0);
    for (j, (y, moved)) in y.iter().zip(moved).enumerate() {
        let ((rtol, atol), y, moved) = (tolerance.at(j), y.value(), moved.value());
        let size = (moved - y).abs() / (atol + rtol * y.abs().max(moved.abs()));
        if moved != y && (size > most || size.is_nan()) {
            (component, most) = (j, if size.is_nan() { f64::INFINITY } else { size });
        }
    }
    (component, most)
}

impl<R: Real<Clock = f64>> Rosenbrock<R> {
    /// Solves the algebraic equations at the time `of.times.first`, from the state in `y`, and replaces this state
    /// by the solution. The derivatives of a dual number are those that the last Newton step gives it.
    ///
    /// # Errors
    /// The vector field's error, with the time of the evaluation.
    pub(super) fn solve_constraints(
        &mut self,
        field: &mut dyn FieldOn<R>,
        of: &StepOf<'_, f64>,
    ) -> Result<Consistency, FieldFailure<f64>> {
        let Some(constraints) = self.constraints.clone() else { return Ok(Consistency::Unknown) };
        let given = self.y.clone();
        let mut first: Option<Correction> = None;
        for _ in 0..STEPS_MAX {
            let known = self.differentiate(field, of, true)?;
            let system = match self.system(&constraints, of.tolerance, known) {
                Ok(system) => system,
                Err(NoSystem::Singular(component)) => return Ok(Consistency::Open { component }),
                Err(NoSystem::NotFinite) => {
                    return Ok(first.map_or(Consistency::Unknown, Consistency::Unsolved));
                }
            };
            let residuals = system.residuals(&constraints, &self.f);
            let value = |i: usize| residuals[i].value().abs();
            let equation = (0..residuals.len()).max_by(|&a, &b| value(a).total_cmp(&value(b))).unwrap_or(0);
            let step = system.step(residuals);
            let moved: Vec<R> = self.y.iter().zip(&step).map(|(&y, &step)| y + step).collect();
            let (component, size) = largest(&self.y, &moved, of.tolerance);
            let correction = |component: usize, tolerances: f64, needed: &[R]| Correction {
                component,
                given: given[component].value(),
                needed: needed[component].value(),
                tolerances,
                equation,
            };
            let at_first = *first.get_or_insert(correction(component, size, &moved));
            if size <= NEGLIGIBLE {
                let has_moved = self.y.iter().zip(&given).any(|(&y, &given)| !y.is_same(given));
                for (y, (&moved, &step)) in self.y.iter_mut().zip(moved.iter().zip(&step)) {
                    *y = if has_moved { moved } else { *y + derivatives_of(step) };
                }
                let (component, tolerances) = largest(&given, &self.y, of.tolerance);
                let equation = at_first.equation;
                return Ok(Consistency::Solved(Correction {
                    equation,
                    ..correction(component, tolerances, &self.y)
                }));
            }
            if !self.shorten(field, of, (&constraints, &system), &step)? {
                return Ok(Consistency::Unsolved(at_first));
            }
        }
        Ok(first.map_or(Consistency::Unknown, Consistency::Unsolved))
    }

    /// The linear system of a Newton step at the last Jacobian.
    fn system(
        &self,
        constraints: &Constraints,
        tolerance: &Tolerance<'_>,
        known: Known,
    ) -> Result<System, NoSystem> {
        // A bound of the relative error of a term of the Jacobian, by rounding or by differences.
        let error = if known.jacobian { self.epsilon } else { self.epsilon.powf(2.0 / 3.0) };
        let canceled = ROUNDING * error;
        let point = (&self.y[..], &self.f[..]);
        System::new(constraints, (&self.jacobian, canceled), point, (tolerance, self.epsilon))
    }

    /// Adds the largest fraction of the step, among 1, 1/2, 1/4 and so on, after which the next step of the same
    /// system is shorter, in tolerances of the whole step. Returns false if there is none.
    fn shorten(
        &mut self,
        field: &mut dyn FieldOn<R>,
        of: &StepOf<'_, f64>,
        (constraints, system): (&Constraints, &System),
        step: &[R],
    ) -> Result<bool, FieldFailure<f64>> {
        // Tolerances of y as it moves would become smaller where a component passes through zero.
        let tolerances: Vec<f64> = (self.y.iter().zip(step).enumerate())
            .map(|(j, (y, step))| {
                let ((rtol, atol), y) = (of.tolerance.at(j), y.value());
                atol + rtol * y.abs().max((y + step.value()).abs())
            })
            .collect();
        let length = |step: &[R]| {
            let each = step.iter().zip(&tolerances).map(|(step, tolerance)| step.value().abs() / tolerance);
            // A NaN counts as larger than all others.
            each.fold(0.0, |most: f64, size| if size <= most { most } else { size })
        };
        let size = length(step);
        let mut part = 1.0;
        while part > PART_MIN {
            for ((moved, &y), step) in self.argument.iter_mut().zip(&self.y).zip(step) {
                *moved = y + step.scale(part);
            }
            self.counts.evals += 1;
            match field.eval(&of.times.first, &self.argument, &mut self.rhs) {
                Ok(()) => {
                    let next = system.step(system.residuals(constraints, &self.rhs));
                    if length(&next) <= (1.0 - part / 4.0) * size {
                        self.y.copy_from_slice(&self.argument);
                        return Ok(true);
                    }
                }
                Err(failure) if failure.is_recoverable() => {}
                Err(failure) => return Err(failure),
            }
            part *= 0.5;
        }
        Ok(false)
    }
}
