//! `Ode`: one builder in front of every way of running a solve.
//!
//! It holds a field and options and knows nothing of loops: the state that the field takes decides how a solve
//! is driven ([`OdeState`]). That keeps one front door for plain Rust values, lanes and tensors, without this module
//! knowing the last. Options are checked when a solve starts, when the interval is known too.

use super::check::Given;
use super::event::Watch;
use super::field::Inlined;
use super::inline::InlineMethod;
use super::{
    Closure, ConfigError, Controller, Event, EventValue, InPlace, IntoSaveAt, Method, Norm, PlainState, Rate,
    SaveAt, Settings, SolveError, State, StateFunctions, Tableau, Tol, Tolerance, VectorField, View,
};
use crate::simd::Level;
use std::fmt;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A state that [`Ode::solve`] can drive.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a state that flowline can integrate",
    label = "nothing drives a solve of this",
    note = "a state is f64, f32, [f64; N], [f32; N], Vec<f64>, Vec<f32>, a nalgebra vector or matrix, an ndarray array (features `nalgebra`, `ndarray`), a tuple of these, or a struct of them made by `state!`",
    note = "a slice has no size: take `y: &Vec<f64>`, or write dy in place with `Ode::in_place(|t, y: &[f64], dy: &mut [f64]| ...)`"
)]
pub trait OdeState: State {
    /// What a solve returns that saves values of type `O`.
    type Solution<O>;
    /// Settings that only this kind of state has; plain states have none.
    type Options: Clone + Default + fmt::Debug;

    /// The tolerance where none is given.
    fn default_tolerance(&self) -> Tolerance<'static>;

    /// Refuses what cannot run.
    #[doc(hidden)]
    fn check<F, O>(
        ode: &Ode<'_, Self, F, O>,
        t0: &Self::Clock,
        t1: &Self::Clock,
        y0: &Self,
    ) -> Result<(), ConfigError>;

    /// Runs the solve.
    #[doc(hidden)]
    fn drive<F: VectorField<Self>, O>(
        ode: &Ode<'_, Self, F, O>,
        t0: Self::Clock,
        t1: Self::Clock,
        y0: Self,
    ) -> Result<Self::Solution<O>, SolveError<Self::Solution<O>>>;
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

/// What is saved of (t, y).
pub(crate) type SaveFn<'f, Y, O> = Arc<Mutex<dyn FnMut(<Y as State>::Clock, &Y) -> O + Send + 'f>>;
/// Sees each accepted step.
pub(crate) type OnStep<'f, Y> = Arc<Mutex<dyn FnMut(f64, &Y) -> ControlFlow<()> + Send + 'f>>;

/// A closure of the caller that one solve at a time may call; where it panicked it is called all the same.
pub(crate) fn locked<F: ?Sized>(f: &Mutex<F>) -> MutexGuard<'_, F> {
    f.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An ordinary differential equation and how to solve it.
///
/// Defaults: [`Method::Tsit5`]; the I controller of [`PidController`](super::PidController), or constant steps of `dt0` for a method
/// without an error estimate; rtol 1e-6 and atol 1e-9 (f32: 1e-4 and 1e-6); 100,000 steps; y saved at t1.
///
/// # Settings
/// Which way of running a solve reads which setting; those that it does not read it refuses by their name. Adaptive steps,
/// where the head of the column does not say otherwise; no entry: the setting cannot be given there. `inlined` and
/// `expected_steps` change no result.
///
#[doc = include_str!("settings.md")]
///
/// # Numerics
/// On a machine with AVX2 and FMA (or NEON) sums of stages round a product and its sum once, on others twice: a solve
/// gives the same bits on one machine, and differs in the last digits between the two kinds.
///
/// # Examples
/// ```
/// use flowline::ode::Ode;
/// let decay = Ode::new(|_t, y: &[f64; 1]| [-y[0]]);
/// let solution = decay.rtol(1e-9).solve(0.0, 1.0, [1.0])?;
/// assert!((solution.y1[0] - (-1.0_f64).exp()).abs() < 1e-8);
/// # Ok::<(), flowline::Error>(())
/// ```
pub struct Ode<'f, Y: OdeState, F, O = Y> {
    pub(crate) field: F,
    pub(crate) settings: Settings,
    pub(crate) norm: Option<Arc<Norm<'f, Y>>>,
    pub(crate) functions: StateFunctions<'f, Y>,
    pub(crate) save_at: SaveAt,
    pub(crate) save_fn: SaveFn<'f, Y, O>,
    pub(crate) given: Given,
    pub(crate) watches: Vec<Watch<'f, Y>>,
    pub(crate) on_step: Option<OnStep<'f, Y>>,
    pub(crate) options: Y::Options,
    state: PhantomData<fn(&Y)>,
}

impl<Y: OdeState, F: Clone, O> Clone for Ode<'_, Y, F, O> {
    fn clone(&self) -> Self {
        Ode {
            field: self.field.clone(),
            settings: self.settings.clone(),
            norm: self.norm.clone(),
            functions: self.functions.clone(),
            save_at: self.save_at.clone(),
            save_fn: self.save_fn.clone(),
            given: self.given,
            watches: self.watches.clone(),
            on_step: self.on_step.clone(),
            options: self.options.clone(),
            state: PhantomData,
        }
    }
}

impl<Y: OdeState, F, O> fmt::Debug for Ode<'_, Y, F, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ode")
            .field("settings", &self.settings)
            .field("save_at", &self.save_at)
            .field("events", &self.watches.iter().map(|w| w.event).collect::<Vec<_>>())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl<Y: OdeState, F> Ode<'_, Y, Closure<F>> {
    /// From a closure `f(t, y) -> dy/dt`, which may also return a `Result`. State the type of `y` in it.
    pub fn new<R: Rate<Y>>(f: F) -> Self
    where
        F: Fn(Y::Clock, &Y) -> R,
    {
        Ode::from_field(Closure(f))
    }
}

impl<V: View + ?Sized, F> Ode<'_, V::Owned, InPlace<F, V>> {
    /// From a closure `f(t, y, dy)` that writes dy, for states on the heap.
    pub fn in_place<D: super::Done>(f: F) -> Self
    where
        F: Fn(f64, &V, &mut V) -> D,
    {
        Ode::from_field(InPlace::new(f))
    }
}

impl<Y: OdeState, F> Ode<'_, Y, F> {
    /// From a custom type that implements [`VectorField`].
    pub fn from_field(field: F) -> Self {
        Ode {
            field,
            settings: Settings::default(),
            norm: None,
            functions: StateFunctions::default(),
            save_at: SaveAt::default(),
            save_fn: Arc::new(Mutex::new(|_t, y: &Y| y.clone())),
            given: Given::default(),
            watches: Vec::new(),
            on_step: None,
            options: Y::Options::default(),
            state: PhantomData,
        }
    }
}

impl<'f, Y: OdeState, F, O> Ode<'f, Y, F, O> {
    /// Looks for sign changes of `when(t, y)`, a number or a condition, and notes them in the solution's `events`. On
    /// tensors it is one for the whole state, and `max_events` sets how many events are recorded at most.
    pub fn event<G: EventValue<Y::Clock>>(
        mut self,
        event: Event,
        when: impl Fn(Y::Clock, &Y) -> G + Send + Sync + 'f,
    ) -> Self {
        self.watches.push(Watch { event, when: Arc::new(move |t, y| when(t, y).value()), then: None });
        self
    }

    /// An event after which the state is changed by `then(t, y)` and the solve goes on from there; with
    /// [`Event::terminal`] it ends there, changed. On tensors `then` leaves every leaf its type.
    pub fn on_event<G: EventValue<Y::Clock>>(
        mut self,
        event: Event,
        when: impl Fn(Y::Clock, &Y) -> G + Send + Sync + 'f,
        then: impl FnMut(Y::Clock, &mut Y) + Send + 'f,
    ) -> Self {
        let when = Arc::new(move |t: Y::Clock, y: &Y| when(t, y).value());
        self.watches.push(Watch { event, when, then: Some(Arc::new(Mutex::new(then))) });
        self
    }
}

impl<'f, Y: OdeState, F, O> Ode<'f, Y, F, O> {
    /// The same settings around another field of another state; what watches or saves a state is left behind.
    pub(crate) fn with_field<Z: OdeState, G>(&self, field: G) -> Ode<'static, Z, G> {
        Ode { settings: self.settings.clone(), ..Ode::from_field(field) }
    }

    /// What is saved: [`SaveAt`], or a list of times. On tensors times may be a tensor of rank 1, traced or not: row i is then
    /// that of `ts[i]`, equal times included, and the state at a time out of order, outside of the interval or behind a
    /// NaN is NaN. A [`SaveAt`] without times may be given beside such a tensor; its rows are in the order of the solve.
    ///
    /// # Panics
    /// If a tensor of times is not of floats and rank 1, or is empty.
    #[track_caller]
    pub fn save_at(mut self, save_at: impl IntoSaveAt<Y>) -> Self {
        let mut asked = None;
        save_at.write(&mut asked, &mut self.options);
        if let Some(save_at) = asked {
            self.save_at = save_at;
            self.given.save_at = true;
        }
        self
    }
    /// The method.
    pub fn method(mut self, method: Method) -> Self {
        self.settings.method = method;
        self.settings.own = None;
        self
    }
    /// Takes `method`, by a loop over steps that is compiled for it with the field inlined.
    ///
    /// Such a loop is compiled for the default method in any case; other methods share one loop that calls the field through
    /// a pointer. The results are the same, bit for bit. On a state of up to eight components a step is up to a third faster;
    /// on larger ones there is no difference, and the shared loop is taken.
    ///
    /// # Examples
    /// ```
    /// use flowline::ode::{Method, Ode};
    /// use flowline::ode::extra::inline;
    /// let decay = || Ode::new(|_t, y: &[f64; 1]| [-y[0]]);
    /// let shared = decay().method(Method::Vern9).solve(0.0, 1.0, [1.0])?;
    /// let inlined = decay().inlined(inline::Vern9).solve(0.0, 1.0, [1.0])?;
    /// assert_eq!(shared.y1, inlined.y1);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    pub fn inlined<M: InlineMethod>(self, _method: M) -> Ode<'f, Y, Inlined<F, M>, O>
    where
        Y: PlainState,
    {
        let Ode {
            field,
            settings,
            norm,
            functions,
            save_at,
            save_fn,
            given,
            watches,
            on_step,
            options,
            state,
        } = self.method(M::METHOD);
        let field = Inlined::new(field);
        Ode { field, settings, norm, functions, save_at, save_fn, given, watches, on_step, options, state }
    }
    /// A custom Runge-Kutta table in place of a method.
    pub fn tableau(mut self, tableau: Tableau) -> Self {
        self.settings.own = Some(Arc::new(tableau));
        self
    }
    /// How long the next step is: [`PidController`](super::PidController), [`HairerController`](super::HairerController), [`ConstantStepSize`](super::ConstantStepSize) or
    /// [`StepTo`](super::StepTo).
    pub fn controller(mut self, controller: impl Into<Controller>) -> Self {
        self.settings.controller = Some(controller.into());
        self
    }
    /// The relative tolerance: a number, or one a component (or one a part of a state of several parts). Constant and given
    /// steps have none.
    pub fn rtol(mut self, rtol: impl Into<Tol>) -> Self {
        self.settings.rtol = Some(rtol.into());
        self
    }
    /// The absolute tolerance, in the unit of y: a number, or one a component (or one a part).
    pub fn atol(mut self, atol: impl Into<Tol>) -> Self {
        self.settings.atol = Some(atol.into());
        self
    }
    /// The first step size, and every step's of a method without an error estimate: its magnitude, or signed as `t1 - t0` is.
    /// Beside a controller that has one it is refused.
    pub fn dt0(mut self, dt0: f64) -> Self {
        self.settings.dt0 = Some(dt0);
        self
    }
    /// The shortest step that may be asked for; a controller that wants a shorter one ends the solve with
    /// [`Outcome::StepSizeTooSmall`](super::Outcome::StepSizeTooSmall). The cut at a time to land on is no such wish.
    pub fn dt_min(mut self, dt_min: f64) -> Self {
        self.settings.dt_min = dt_min;
        self
    }
    /// The longest step.
    pub fn dt_max(mut self, dt_max: f64) -> Self {
        self.settings.dt_max = dt_max;
        self
    }
    /// Loops over steps at a level of instructions below the machine's best; tests force each.
    #[doc(hidden)]
    pub fn level(mut self, level: Level) -> Self {
        self.settings.level = level;
        self
    }
    /// Makes a solve that ends early `Ok`: its `outcome` says whether it did.
    ///
    /// Inside of `jit`, `grad` and `vmap` the call does not fail by such a solve either. A field that fails is an error all
    /// the same.
    ///
    /// # Examples
    /// ```
    /// use flowline::ode::{Ode, Outcome};
    /// let short = Ode::new(|_t, y: &f64| -y).max_steps(3).allow_incomplete().solve(0.0, 10.0, 1.0)?;
    /// assert!(matches!(short.outcome, Outcome::MaxSteps { step: 3, .. }) && short.t1 < 10.0);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    pub fn allow_incomplete(mut self) -> Self {
        self.settings.allow_incomplete = true;
        self
    }
    /// The most steps that are attempted, at least 1.
    pub fn max_steps(mut self, max_steps: u64) -> Self {
        self.settings.max_steps = max_steps;
        self
    }
    /// The most events that are noted, at least 1, those that end the solve among them; one more ends the solve with
    /// [`Outcome::MaxEvents`](super::Outcome::MaxEvents). No bound on plain states if not said. On tensors, whose shapes are
    /// known before the solve, 64; where the first event ends the solve, as many as there are events.
    pub fn max_events(mut self, max_events: usize) -> Self {
        self.settings.max_events = Some(max_events.max(1));
        self
    }
    /// Times that steps end on exactly; those outside the interval are passed over. The size that a step was to have, and
    /// the controller's history, are kept across them. Where all times are given, they are refused.
    pub fn tstops(mut self, ts: &[f64]) -> Self {
        self.settings.tstops.extend(ts);
        self
    }
    /// Times at which the field is discontinuous: steps end on them, the field is evaluated an ulp before and an ulp after
    /// them and never on them, and the first stage behind one is computed anew.
    pub fn discontinuities(mut self, ts: &[f64]) -> Self {
        self.settings.discontinuities.extend(ts);
        self
    }

    /// What only this kind of state can be asked.
    pub fn options(&self) -> &Y::Options {
        &self.options
    }
}

impl<'f, Y: PlainState, F, O> Ode<'f, Y, F, O> {
    /// How errors are measured: `norm` sees the state of scaled errors `e_j / (atol_j + rtol_j max(|y0_j|, |y1_j|))`;
    /// a step is accepted where it gives less than 1. The RMS if not said. The first step size is chosen by it too.
    pub fn norm(mut self, norm: impl Fn(&Y) -> f64 + Send + Sync + 'f) -> Self {
        self.norm = Some(Arc::new(norm));
        self
    }
    /// Saves `f(t, y)` in place of y.
    ///
    /// `f` may collect into what it captures. It must not run this same `Ode` again: that waits for itself forever.
    pub fn save_fn<P>(self, f: impl FnMut(f64, &Y) -> P + Send + 'f) -> Ode<'f, Y, F, P> {
        Ode {
            save_fn: Arc::new(Mutex::new(f)),
            given: Given { save_fn: true, ..self.given },
            field: self.field,
            settings: self.settings,
            norm: self.norm,
            functions: self.functions,
            save_at: self.save_at,
            watches: self.watches,
            on_step: self.on_step,
            options: self.options,
            state: PhantomData,
        }
    }
    /// Sees (t, y) after each accepted step; `ControlFlow::Break(())` ends the solve with
    /// [`Outcome::Terminated`](super::Outcome::Terminated), which is no error.
    ///
    /// `watch` may collect into what it captures. It must not run this same `Ode` again: that waits for itself forever.
    pub fn on_step(mut self, watch: impl FnMut(f64, &Y) -> ControlFlow<()> + Send + 'f) -> Self {
        self.on_step = Some(Arc::new(Mutex::new(watch)));
        self
    }
}

impl<Y: OdeState, F: VectorField<Y>, O> Ode<'_, Y, F, O> {
    /// From t0 to t1; the sign of `t1 - t0` is the direction. t0 == t1 returns y0.
    ///
    /// # Errors
    /// [`SolveError::Config`] for what [`Ode::check`] refuses; [`SolveError::Field`] and [`SolveError::Event`] for a field or
    /// an event that failed; [`SolveError::Incomplete`] where neither t1 was reached nor an event or `on_step` ended the
    /// solve, unless [`Ode::allow_incomplete`] was asked for. The last three carry what was computed until then. On traced
    /// tensors nobody knows yet how the solve ends: it is `Ok`, and the call that runs the program fails.
    pub fn solve(
        &self,
        t0: impl Into<Y::Clock>,
        t1: impl Into<Y::Clock>,
        y0: impl IntoState<Y>,
    ) -> Result<Y::Solution<O>, SolveError<Y::Solution<O>>> {
        Y::drive(self, t0.into(), t1.into(), y0.into_state())
    }
}
