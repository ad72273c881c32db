//! `Ode`: one builder in front of every way of running a solve.
//!
//! It holds a field and options and knows nothing of loops: the state that the field takes decides how a solve
//! is driven ([`Drive`]). That keeps one front door for host values, lanes and tensors, without this module
//! knowing the last. Options are checked when a solve starts, when the interval is known too.

use super::{
    Closure, Constant, Controller, Field, InPlace, Method, OdeError, Pid, Rate, Scheme, State, StepTo,
    Tolerance, View,
};
use std::marker::PhantomData;

/// A state that [`Ode::solve`] can drive.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a state that flowline can integrate",
    label = "nothing drives a solve of this",
    note = "a state is f64, f32, [f64; N], [f32; N], Vec<f64>, Vec<f32>",
    note = "a slice has no size: take `y: &Vec<f64>`, or write dy in place with `Ode::in_place(|t, y: &[f64], dy: &mut [f64]| ...)`"
)]
pub trait Drive: State {
    /// What a solve returns.
    type Solution;
    /// What only this kind of state can be asked; nothing on the host.
    type Options: Default;

    /// The tolerance where none is given.
    fn default_tolerance(&self) -> Tolerance;

    /// Runs the solve.
    #[doc(hidden)]
    fn drive<F: Field<Self>>(
        ode: &Ode<Self, F>,
        t0: Self::Clock,
        t1: Self::Clock,
        y0: Self,
    ) -> Result<Self::Solution, OdeError>;
}

/// What may stand where y0 is asked for.
#[diagnostic::on_unimplemented(
    message = "y0 is `{Self}` but the vector field takes `{Y}`",
    label = "not the state of this field"
)]
pub trait IntoState<Y> {
    /// The state.
    fn into_state(self) -> Y;
}
impl<Y: State> IntoState<Y> for Y {
    fn into_state(self) -> Y {
        self
    }
}

/// An ordinary differential equation and how to solve it.
///
/// Defaults: [`Method::Tsit5`]; the I controller of [`Pid`], or constant steps of `dt0` for a method without an
/// error estimate; rtol 1e-6 and atol 1e-9 (f32: 1e-4 and 1e-6); 100,000 steps.
///
/// # Examples
/// ```
/// use flowline::ode::Ode;
/// let decay = Ode::new(|_t, y: &[f64; 1]| [-y[0]]);
/// let solution = decay.rtol(1e-9).solve(0.0, 1.0, [1.0])?;
/// assert!((solution.y1[0] - (-1.0_f64).exp()).abs() < 1e-8);
/// # Ok::<(), flowline::ode::OdeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Ode<Y: Drive, F> {
    pub(crate) field: F,
    pub(crate) method: Method,
    pub(crate) controller: Option<Controller>,
    pub(crate) dt0: Option<f64>,
    pub(crate) rtol: Option<f64>,
    pub(crate) atol: Option<f64>,
    pub(crate) max_steps: u64,
    pub(crate) options: Y::Options,
    state: PhantomData<fn(&Y)>,
}

impl<Y: Drive, F> Ode<Y, Closure<F>> {
    /// From a closure `f(t, y) -> dy/dt`, which may also return a `Result`. State the type of `y` in it.
    pub fn new<R: Rate<Y>>(f: F) -> Self
    where
        F: Fn(Y::Clock, &Y) -> R,
    {
        Ode::from_field(Closure(f))
    }
}

impl<V: View + ?Sized, F> Ode<V::Owned, InPlace<F, V>> {
    /// From a closure `f(t, y, dy)` that writes dy, for states on the heap.
    pub fn in_place<D: super::Done>(f: F) -> Self
    where
        F: Fn(f64, &V, &mut V) -> D,
    {
        Ode::from_field(InPlace::new(f))
    }
}

impl<Y: Drive, F> Ode<Y, F> {
    /// From a type of one's own that implements [`Field`].
    pub fn from_field(field: F) -> Self {
        Ode {
            field,
            method: Method::default(),
            controller: None,
            dt0: None,
            rtol: None,
            atol: None,
            max_steps: 100_000,
            options: Y::Options::default(),
            state: PhantomData,
        }
    }

    /// The same options around another field of another state.
    pub(crate) fn with_field<Z: Drive<Options = Y::Options>, G>(&self, field: G) -> Ode<Z, G>
    where
        Y::Options: Clone,
    {
        Ode {
            field,
            method: self.method,
            controller: self.controller.clone(),
            dt0: self.dt0,
            rtol: self.rtol,
            atol: self.atol,
            max_steps: self.max_steps,
            options: self.options.clone(),
            state: PhantomData,
        }
    }

    /// The method.
    pub fn method(mut self, method: Method) -> Self {
        self.method = method;
        self
    }
    /// How long the next step is: [`Pid`], [`Constant`] or [`StepTo`].
    pub fn controller(mut self, controller: impl Into<Controller>) -> Self {
        self.controller = Some(controller.into());
        self
    }
    /// The relative tolerance.
    pub fn rtol(mut self, rtol: f64) -> Self {
        self.rtol = Some(rtol);
        self
    }
    /// The absolute tolerance, in the unit of y.
    pub fn atol(mut self, atol: f64) -> Self {
        self.atol = Some(atol);
        self
    }
    /// The first step size, and every step's where steps are constant: its magnitude, or signed as `t1 - t0` is.
    pub fn dt0(mut self, dt0: f64) -> Self {
        self.dt0 = Some(dt0);
        self
    }
    /// The most steps that are attempted.
    pub fn max_steps(mut self, max_steps: u64) -> Self {
        self.max_steps = max_steps;
        self
    }

    /// What only this kind of state can be asked.
    pub fn options(&self) -> &Y::Options {
        &self.options
    }

    /// The controller to run with: the one given or the method's default, with `dt0` in it.
    ///
    /// # Errors
    /// A dt0 beside [`StepTo`]; a method without an error estimate and without a dt0.
    pub fn resolved_controller(&self) -> Result<Controller, OdeError> {
        match (self.controller.clone(), self.dt0) {
            (Some(controller), None) => Ok(controller),
            (Some(Controller::Pid(pid)), dt0) => Ok(Pid { dt0, ..pid }.into()),
            (Some(Controller::Constant(_)), Some(dt0)) => Ok(Constant { dt0 }.into()),
            (Some(Controller::StepTo(StepTo { .. })), Some(dt0)) => {
                Err(OdeError::FirstStepBesideTimes { dt0 })
            }
            (None, dt0) if self.method.tableau().b_err.is_some() => Ok(Pid { dt0, ..Pid::default() }.into()),
            (None, Some(dt0)) => Ok(Constant { dt0 }.into()),
            (None, None) => Err(OdeError::NoErrorEstimate { method: self.method.tableau().name }),
        }
    }

    /// The tolerance to run with: what was given, the rest from `default`.
    pub fn resolved_tolerance(&self, default: Tolerance) -> Tolerance {
        Tolerance { rtol: self.rtol.unwrap_or(default.rtol), atol: self.atol.unwrap_or(default.atol) }
    }

    /// The scheme to run with; `controller` is the [resolved](Self::resolved_controller) one.
    ///
    /// # Errors
    /// Whatever [`Scheme::new`] refuses.
    pub fn scheme<'a>(&self, controller: &'a Controller, default: Tolerance) -> Result<Scheme<'a>, OdeError> {
        Scheme::new(self.method.tableau(), controller, self.resolved_tolerance(default), self.max_steps)
    }
}

impl<Y: Drive, F: Field<Y>> Ode<Y, F> {
    /// From t0 to t1; the sign of `t1 - t0` is the direction. t0 == t1 returns y0.
    ///
    /// # Errors
    /// An option out of range, an interval or a y0 that is not finite, a field that failed. A solve that stops
    /// early for numerical reasons is no error: it is the solution's `outcome`.
    pub fn solve(
        &self,
        t0: impl Into<Y::Clock>,
        t1: impl Into<Y::Clock>,
        y0: impl IntoState<Y>,
    ) -> Result<Y::Solution, OdeError> {
        Y::drive(self, t0.into(), t1.into(), y0.into_state())
    }
}
