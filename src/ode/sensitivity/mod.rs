//! Forward sensitivities: derivatives of a solve with respect to parameters and initial state, on plain Rust
//! values.
//!
//! A sensitivity solve is a plain solve, which records its step times, and then a [`replay`] of its accepted
//! steps in dual numbers. So the solution has the bits of the plain solve, with all of its settings. The
//! work grows with the number of directions, so this is meant for few parameters and small states. The
//! derivatives are those of the discrete solve, as tensors compute them: the times of events and times that depend
//! on parameters move, and all other step times are constants. The error
//! estimate reads only values, so y1 and the steps do not depend on what is differentiated. Alternatives
//! considered: tangents in the error norm, as in some codes (it also controls the error of the tangents, but y1
//! then depends on which derivatives are computed); the whole adaptive solve in dual numbers (every attempt costs
//! the tangents, and functions of f64, such as `on_step`, cannot run there).

mod assemble;
mod directions;
mod dual_field;
mod functions;
mod moving;
mod replay;
mod solution;
mod step;
mod tape;

pub use solution::{EventSensitivity, Sensitivity};
pub(super) use tape::Tape;

use super::check::Driver;
use super::given_times::planned;
use super::plain::{Ran, run};
use super::{GenericField, NestedDual, NumberFn, Ode, Outcome, SolveError, StateFn, VectorField};
use assemble::Derivatives;
use directions::{Directions, rows_of, variable};
use dual_field::DualField;
use moving::{D, DualFunctions};
use replay::{Happened, Passed, Track};
use std::any::Any;
use std::array::from_fn;

/// A solve with forward sensitivities, created by [`Ode::forward_sensitivity`].
#[derive(Clone, Debug)]
pub struct SensitivityBuilder<'f, G: GenericField<N>, const N: usize> {
    ode: Ode<'f, [f64; N], G>,
    observed: Vec<NumberFn<G, N>>,
    /// Whether each parameter is selected; `None` for all parameters and y0.
    selected: Option<Vec<bool>>,
}

/// The initial state of a sensitivity solve: numbers, or a function of the vector field.
#[doc(hidden)]
pub trait IntoStart<G: GenericField<N>, const N: usize> {
    fn into_start(self) -> Start<G, N>;
}

#[doc(hidden)]
#[derive(Clone, Debug)]
pub enum Start<G: GenericField<N>, const N: usize> {
    Numbers([f64; N]),
    Function(StateFn<G, N>),
}

impl<G: GenericField<N>, const N: usize> IntoStart<G, N> for [f64; N] {
    fn into_start(self) -> Start<G, N> {
        Start::Numbers(self)
    }
}
impl<G: GenericField<N>, const N: usize> IntoStart<G, N> for StateFn<G, N> {
    fn into_start(self) -> Start<G, N> {
        Start::Function(self)
    }
}

impl<G: GenericField<N> + VectorField<[f64; N]>, const N: usize> Ode<'_, [f64; N], G> {
    /// Creates an `Ode` from a [`vector_field!`](crate::vector_field), like [`Ode::from_field`], with forward
    /// sensitivities available.
    #[doc(alias = "ODEForwardSensitivityProblem")]
    pub fn from_generic(field: G) -> Self {
        Ode::from_field(field)
    }
}

impl<'f, G: GenericField<N> + VectorField<[f64; N]>, O, const N: usize> Ode<'f, [f64; N], G, O> {
    /// Solves for the derivatives of the solution with respect to parameters and y0.
    ///
    /// It differentiates the discrete solve. The times of events and times that depend on parameters move; all other
    /// step times are constants. Without moving times the result agrees with finite differences of solves over
    /// the same steps ([`StepTo`](super::StepTo)) up to rounding and truncation. The
    /// error of the result against the derivative of the true solution depends on the tolerances. The solution
    /// itself is that of [`Ode::solve`], bit for bit.
    ///
    /// All settings apply as in a plain solve, with two exceptions. A closure that the derivatives must pass through
    /// is an error: use [`field_event`](Ode::field_event), [`on_field_event`](Ode::on_field_event),
    /// [`on_field_times`](Ode::on_field_times) and [`observe`](SensitivityBuilder::observe) in place of `event`,
    /// `on_event`, `on_times` and `save_fn`. And the Jacobian comes from dual numbers, so `jacobian` and
    /// `time_derivative` are errors.
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
    /// let decay = Ode::from_generic(Decay { rate: 2.0 }).rtol(1e-10).save_at(&[0.5, 1.0]);
    /// let s = decay.forward_sensitivity().solve(0.0, 1.0, [3.0])?;
    /// let y1 = 3.0 * (-2.0_f64).exp();
    /// assert!((s.dy1_dp.rate[0] + y1).abs() < 1e-8); // dy1/drate = -t y1
    /// assert!((s.dy1_dy0[0][0] - y1 / 3.0).abs() < 1e-8);
    /// assert!((s.dys_dp[0].rate[0] + 0.5 * s.ys[0][0]).abs() < 1e-7);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    #[doc(alias = "ForwardDiffSensitivity")]
    pub fn forward_sensitivity(self) -> SensitivityBuilder<'f, G, N> {
        let given = self.given;
        let mut ode = self.save_fn(|_t, y| *y);
        // Whether the caller gave a `save_fn`, which `solve` refuses.
        ode.given = given;
        SensitivityBuilder { ode, observed: vec![], selected: None }
    }
}

impl<G: GenericField<N> + VectorField<[f64; N]>, const N: usize> SensitivityBuilder<'_, G, N> {
    /// Saves numbers, which are functions of the `vector_field!`, at the saved times, with their derivatives, in
    /// [`Sensitivity::observed`].
    ///
    /// # Examples
    /// ```
    /// use flowline::ode::Ode;
    /// flowline::vector_field! {
    ///     struct Tank<R> { rate: R, volume: R }
    ///     fn eval(&self, _t, y: &[R; 1]) -> [R; 1] { [-self.rate * y[0]] }
    ///     fn concentration(&self, _t, y: &[R; 1]) -> R { y[0] / self.volume }
    /// }
    /// let tank = Ode::from_generic(Tank { rate: 1.0, volume: 2.0 }).rtol(1e-9).save_at(&[0.0, 1.0]);
    /// let s = tank.forward_sensitivity().observe([Tank::concentration]).solve(0.0, 1.0, [4.0])?;
    /// assert!((s.observed[1] - 2.0 * (-1.0_f64).exp()).abs() < 1e-8);
    /// assert!((s.dobserved_dp[1].volume + s.observed[1] / 2.0).abs() < 1e-8);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    pub fn observe(mut self, numbers: impl IntoIterator<Item = NumberFn<G, N>>) -> Self {
        self.observed.extend(numbers);
        self
    }

    /// Selects the parameters for which derivatives are computed, instead of all parameters and y0. Each pass
    /// over the steps computes eight derivatives. All other derivatives are NaN in the result.
    ///
    /// # Examples
    /// ```
    /// use flowline::ode::Ode;
    /// flowline::vector_field! {
    ///     struct Decay<R> { rate: R, source: R }
    ///     fn eval(&self, _t, y: &[R; 1]) -> [R; 1] { [self.source - self.rate * y[0]] }
    /// }
    /// let s = Ode::from_generic(Decay { rate: 1.0, source: 0.0 }).rtol(1e-9).forward_sensitivity();
    /// let s = s.with_respect_to(Decay { rate: true, source: false }).solve(0.0, 1.0, [4.0])?;
    /// assert!((s.dy1_dp.rate[0] + 4.0 * (-1.0_f64).exp()).abs() < 1e-7);
    /// assert!(s.dy1_dp.source[0].is_nan() && s.dy1_dy0[0][0].is_nan());
    /// # Ok::<(), flowline::Error>(())
    /// ```
    #[doc(alias = "wrt")]
    pub fn with_respect_to(self, mut parameters: G::Of<bool>) -> Self {
        let mut selected = vec![];
        self.ode.field.zip_params(&mut parameters, |is_selected: &mut bool, _| selected.push(*is_selected));
        SensitivityBuilder { selected: Some(selected), ..self }
    }

    /// Solves from t0 to t1 with derivatives. y0 is an array, or a function of the `vector_field!` for an initial
    /// state that depends on parameters. Such a function receives t0 and a state of zeros; there are then no
    /// derivatives with respect to y0, and those with respect to parameters include the initial state.
    ///
    /// # Errors
    /// The errors of [`Ode::solve`]; also an error for closures that have no derivative, and for `jacobian` and
    /// `time_derivative`.
    pub fn solve(
        &self,
        t0: f64,
        t1: f64,
        y0: impl IntoStart<G, N>,
    ) -> Result<Sensitivity<G, N>, SolveError<Sensitivity<G, N>>> {
        self.ode.requested().check(Driver::Sensitivity)?;
        let start = y0.into_start();
        let y0 = match &start {
            Start::Numbers(y0) => *y0,
            Start::Function(start) => start.eval(&self.ode.field, t0, &[0.0; N], 0.0),
        };
        let Ran { solution, failure, tape, resolved } = run(&self.ode, (t0, t1), y0, true)?;
        let failure = match failure {
            Some(SolveError::Config(error)) => return Err(error.into()),
            failure => failure,
        };
        let rows = rows_of(&self.ode.save_at, (t0, t1), &solution);
        let events = solution.events.iter().zip(&tape.event_steps);
        let track = Track {
            span: (t0, t1),
            step_times: &solution.step_times,
            tape: &tape,
            rows: &rows,
            ys: solution.ys.as_flattened(),
            y1: &solution.y1,
            events: &events
                .map(|(event, &step)| Happened { index: event.index, t: event.t, step })
                .collect::<Vec<_>>(),
            planned: &planned(&self.ode.times, (t0, t1)),
            fails_at_last: matches!(solution.outcome, Outcome::Failed { .. } | Outcome::MaxEvents { .. }),
            ended_by: match solution.outcome {
                Outcome::Event { index, .. } => Some(index),
                _ => None,
            },
            num_observed: self.observed.len(),
            dense: self.ode.save_at.dense,
            resolved: &resolved,
        };
        let directions = Directions::new(&self.ode.field, self.selected.as_deref(), &start);
        let mut passes = self.replay(&track, &directions, &start);
        let curves = passes.iter_mut().filter_map(|passed| passed.curve.take()).collect();
        let derivatives = Derivatives { field: &self.ode.field, passes: &passes, directions: &directions };
        let found = derivatives.of(solution, (&self.observed, curves));
        if let Some(error) = failure {
            return Err(error.map(|()| found));
        }
        if found.outcome.is_success() || self.ode.settings.allow_incomplete {
            return Ok(found);
        }
        let (rtol, atol) = (found.rtol.clone(), found.atol.clone());
        let tolerances = (&rtol, &atol, self.ode.settings.is_adaptive());
        Err(SolveError::incomplete(found.outcome, None, tolerances, found))
    }

    /// Computes the steps again in all directions.
    fn replay(&self, track: &Track<'_>, directions: &Directions, start: &Start<G, N>) -> Vec<Passed> {
        let Ode { watches, times, field, .. } = &self.ode;
        let events: Vec<_> = watches.iter().map(|watch| typed(watch.of_field.as_deref())).collect();
        let times: Vec<_> = times.iter().map(|list| typed(list.of_field.as_deref())).collect();
        let pass = |pass: usize| {
            let (mut i, mut j) = (0, 0);
            let dual = field.map_params(|x| {
                i += 1;
                variable(x, directions.of_param(i - 1), pass)
            });
            let nested = field.map_params(|x| {
                j += 1;
                NestedDual::fixed(variable(x, directions.of_param(j - 1), pass))
            });
            let y0 = match start {
                Start::Function(start) => {
                    (start.dual)(&dual, track.span.0.into(), &[D::from(0.0); N], 0.0.into())
                }
                Start::Numbers(y0) => from_fn(|j| variable(y0[j], directions.of_y0(j), pass)),
            };
            let constant = field.map_params(D::from);
            let observed = &self.observed;
            let field = DualField { field: dual, nested, constant, events: &events, times: &times, observed };
            (field, y0)
        };
        let fields: Vec<_> = (0..directions.num_passes()).map(pass).collect();
        let passes: Vec<(&dyn DualFunctions, &[D])> =
            fields.iter().map(|(field, y0)| (field as &dyn DualFunctions, &y0[..])).collect();
        replay::run_all(track, &passes)
    }
}

/// The functions of the vector field, which a setting keeps without their type.
fn typed<T: 'static>(of: Option<&(dyn Any + Send + Sync)>) -> &T {
    let of = of.and_then(|of| of.downcast_ref());
    of.expect("invariant: the check before a solve refuses closures without derivatives")
}
