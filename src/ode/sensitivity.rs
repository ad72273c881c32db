//! Forward sensitivities: dy1/dp and dy1/dy0 of a solve on plain Rust values, by dual numbers through the same code.
//!
//! The work grows with the number of directions, so this is meant for few parameters and small states, where
//! a graph and its reverse pass would cost more than they save. The derivatives are those of the discrete
//! solve with its step times fixed. The error norm reads only values, so y1 and the steps do not depend on
//! what is differentiated. Alternative considered: tangents in the error norm, as in some codes. This also
//! controls the error of the tangents, but y1 then depends on which derivatives are computed.

use super::check::Driver;
use super::plain::run;
use super::shown::shown;
use super::{
    DIRECTIONS, Dual, FieldDual, FieldError, FieldNumber, GenericField, JACOBIAN_DIRECTIONS, Linearize,
    NestedDual, Ode, Outcome, SolveError, Stats, Tol, VectorField,
};
use std::array::from_fn;
use std::fmt;
use std::sync::Arc;

/// The number type of one pass.
type Pass = FieldDual;

/// A vector field with dual parameters, and with nested dual parameters for its Jacobian.
struct Differentiated<G: GenericField<N>, const N: usize> {
    field: G::Of<Pass>,
    nested: G::Of<NestedDual>,
}

impl<G: GenericField<N>, const N: usize> VectorField<[Pass; N]> for Differentiated<G, N> {
    #[inline(always)]
    fn eval(&self, t: &f64, y: &[Pass; N], dy: &mut [Pass; N]) -> Result<(), FieldError> {
        *dy = Pass::eval::<G, N>(&self.field, Pass::time(t), y);
        Ok(())
    }
    fn linearize(&self) -> Option<&dyn Linearize<[Pass; N]>> {
        Some(self)
    }
}

impl<G: GenericField<N>, const N: usize> Linearize<[Pass; N]> for Differentiated<G, N> {
    fn columns(
        &self,
        t: &f64,
        y: &[Pass; N],
        colors: &[usize],
        num_colors: usize,
        column: &mut dyn FnMut(usize, &[Pass; N]),
    ) {
        for first in (0..=num_colors).step_by(JACOBIAN_DIRECTIONS) {
            let variable = |x: Pass, direction: usize| Dual::variable(x, direction.wrapping_sub(first));
            let y = from_fn(|j| variable(y[j], colors[j]));
            let dy = NestedDual::eval::<G, N>(&self.nested, variable(Pass::from(*t), num_colors), &y);
            for p in 0..JACOBIAN_DIRECTIONS.min(num_colors + 1 - first) {
                column(first + p, &dy.map(|dy| dy.tangent[p]));
            }
        }
    }
}

/// A solve with forward sensitivities, created by [`Ode::forward_sensitivity`].
#[derive(Clone, Debug)]
pub struct SensitivityBuilder<G, const N: usize>(Ode<'static, [f64; N], G>);

/// A solution and its derivatives with respect to parameters and initial state.
///
/// `D` is the vector field's struct, in which each parameter is replaced by the derivative of y1 with respect
/// to it: `[f64; N]`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Sensitivity<D, const N: usize> {
    /// The time reached.
    pub t1: f64,
    /// The state at t1, bit for bit equal to that of the plain solve.
    pub y1: [f64; N],
    /// `dy1_dp.name[i]` is dy1_i / d name.
    pub dy1_dp: D,
    /// `dy1_dy0[i][j]` is dy1_i / dy0_j.
    pub dy1_dy0: [[f64; N]; N],
    /// Counters of one pass; the plain solve takes the same steps.
    pub stats: Stats,
    /// Number of passes over the interval, each with up to [`DIRECTIONS`] directions.
    pub num_passes: usize,
    /// Why the solve ended.
    pub outcome: Outcome,
    /// The relative tolerance used.
    pub rtol: Tol,
    /// The absolute tolerance used.
    pub atol: Tol,
}

impl<D, const N: usize> fmt::Display for Sensitivity<D, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sensitivity { outcome, t1, stats, rtol, atol, .. } = self;
        write!(f, "{outcome} at t={}: {stats}, rtol={rtol:e}, atol={atol:e}, ", shown(*t1))?;
        match self.num_passes {
            1 => write!(f, "one pass"),
            passes => write!(f, "{passes} passes"),
        }
    }
}

impl<G: GenericField<N> + VectorField<[f64; N]>, const N: usize> Ode<'static, [f64; N], G> {
    /// Creates an `Ode` from a [`vector_field!`](crate::vector_field), like [`Ode::from_field`], with forward
    /// sensitivities available.
    #[doc(alias = "ODEForwardSensitivityProblem")]
    pub fn from_generic(field: G) -> Self {
        Ode::from_field(field)
    }
}

impl<G: GenericField<N> + VectorField<[f64; N]>, O, const N: usize> Ode<'static, [f64; N], G, O> {
    /// Solves for dy1/dp and dy1/dy0 together with y1.
    ///
    /// It differentiates the discrete solve with its accepted steps fixed, so the result agrees with finite
    /// differences of solves over the same steps ([`StepTo`](super::StepTo)) up to rounding and truncation. The
    /// error of the result against the derivative of the true solution depends on the tolerances. Parameters
    /// and components are processed [`DIRECTIONS`] at a time, each group in one pass over the interval.
    ///
    /// Tolerances, [`norm`](Ode::norm), `tstops` and `discontinuities` apply as in a plain solve. Saved
    /// values, events, [`on_step`](Ode::on_step) and user-defined derivatives such as `jacobian` are errors.
    ///
    /// # Examples
    /// ```
    /// use flowline::vector_field;
    /// use flowline::ode::Ode;
    /// vector_field! {
    ///     struct Decay<R> { rate: R }
    ///     fn eval(&self, _t, y: &[R; 1]) -> [R; 1] {
    ///         [-self.rate * y[0]]
    ///     }
    /// }
    /// let s = Ode::from_generic(Decay { rate: 2.0 }).rtol(1e-10).forward_sensitivity().solve(0.0, 1.0, [3.0])?;
    /// let y1 = 3.0 * (-2.0_f64).exp();
    /// assert!((s.dy1_dp.rate[0] + y1).abs() < 1e-8); // dy1/drate = -t y1
    /// assert!((s.dy1_dy0[0][0] - y1 / 3.0).abs() < 1e-8);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    #[doc(alias = "ForwardDiffSensitivity")]
    pub fn forward_sensitivity(self) -> SensitivityBuilder<G, N> {
        let given = self.given;
        let mut ode = self.save_fn(|_t, y| *y);
        // Whether the caller gave a `save_fn`, which `solve` refuses.
        ode.given = given;
        SensitivityBuilder(ode)
    }
}

impl<G: GenericField<N>, const N: usize> SensitivityBuilder<G, N> {
    /// Solves from t0 to t1 with derivatives.
    ///
    /// # Errors
    /// The errors of [`Ode::solve`]; also an error for saved values, events, `on_step` and user-defined
    /// derivatives such as `jacobian`.
    pub fn solve(
        &self,
        t0: f64,
        t1: f64,
        y0: [f64; N],
    ) -> Result<Sensitivity<G::Of<[f64; N]>, N>, SolveError<Sensitivity<G::Of<[f64; N]>, N>>> {
        self.0.requested().check(Driver::Sensitivity)?;
        let mut num_params = 0;
        self.0.field.map_params(|_| num_params += 1);
        let num_directions = num_params + N;
        let mut columns = vec![[0.0; N]; num_directions];
        let num_passes = num_directions.div_ceil(DIRECTIONS);
        let mut last = None;
        for (pass, columns) in columns.chunks_mut(DIRECTIONS).enumerate() {
            let first = pass * DIRECTIONS;
            // The index of a direction of another pass is out of range, so its tangent is 0.
            let variable = |x: f64, direction: usize| Dual::variable(x, direction.wrapping_sub(first));
            let mut direction = 0;
            let field = self.0.field.map_params(|x| {
                direction += 1;
                variable(x, direction - 1)
            });
            direction = 0;
            let nested = self.0.field.map_params(|x| {
                direction += 1;
                NestedDual::fixed(variable(x, direction - 1))
            });
            let y0 = from_fn(|j| variable(y0[j], num_params + j));
            let (solution, failure) =
                run(&self.differentiated(Differentiated { field, nested }), (t0, t1), y0)?;
            match failure {
                None => {}
                Some(SolveError::Config(error)) => return Err(error.into()),
                Some(error) => {
                    panic!("invariant: a `vector_field!` has no errors and there are no events: {error}")
                }
            }
            for (p, column) in columns.iter_mut().enumerate() {
                *column = solution.y1.map(|y| y.tangent[p]);
            }
            last = Some(solution);
        }
        let solution = last.expect("invariant: there is a pass for the components of y0");
        let mut each = columns.iter();
        let mut next = |_| *each.next().expect("invariant: a column for each parameter");
        let dy1_dp = self.0.field.map_params(&mut next);
        self.judged(Sensitivity {
            t1: solution.t1,
            y1: solution.y1.map(|y| y.value),
            dy1_dp,
            dy1_dy0: from_fn(|i| from_fn(|j| columns[num_params + j][i])),
            stats: solution.stats,
            num_passes,
            outcome: solution.outcome,
            rtol: solution.rtol,
            atol: solution.atol,
        })
    }

    /// The same solve in dual numbers. Its error norm reads only their values.
    fn differentiated(&self, field: Differentiated<G, N>) -> Ode<'static, [Pass; N], Differentiated<G, N>> {
        let ode = self.0.with_field(field);
        match &self.0.norm {
            None => ode,
            Some(norm) => {
                let norm = Arc::clone(norm);
                ode.norm(move |error: &[Pass; N]| norm(&error.map(|e| e.value)))
            }
        }
    }

    /// Returns an error if the solve ended early.
    fn judged<D>(
        &self,
        found: Sensitivity<D, N>,
    ) -> Result<Sensitivity<D, N>, SolveError<Sensitivity<D, N>>> {
        if found.outcome.is_success() || self.0.settings.allow_incomplete {
            return Ok(found);
        }
        let (rtol, atol) = (found.rtol.clone(), found.atol.clone());
        let tolerances = (&rtol, &atol, self.0.settings.is_adaptive());
        Err(SolveError::incomplete(found.outcome, None, tolerances, found))
    }
}
