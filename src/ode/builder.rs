//! `Ode`: the builder in front of every driver of solves.
//!
//! It holds a vector field and settings, and it has no loops. The type of the state selects the driver
//! ([`OdeState`]), so plain Rust values and tensors share one builder, and this module does not depend on
//! tensors. Ensembles store their settings in it, too. Settings are checked when a solve starts, because the
//! interval and y0 are given only then.

use super::check::Given;
use super::event::Watch;
use super::field::Inlined;
use super::given_times::TimeList;
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

/// A type of state that [`Ode::solve`] can integrate.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a state that flowline can integrate",
    label = "no solver takes this type as a state",
    note = "a state is f64, f32, [f64; N], [f32; N], Vec<f64>, Vec<f32>, a nalgebra vector or matrix, an ndarray array (features `nalgebra`, `ndarray`), a tuple of these, or a struct of them made by `state!`",
    note = "a slice has no size: use `y: &Vec<f64>`, or write dy in place with `Ode::in_place(|t, y: &[f64], dy: &mut [f64]| ...)`"
)]
pub trait OdeState: State {
    /// The type of a solution with saved values of type `O`.
    type Solution<O>;
    /// Settings that only this kind of state has; plain states have none.
    type Options: Clone + Default + fmt::Debug;

    /// The default tolerance.
    fn default_tolerance(&self) -> Tolerance<'static>;

    /// Rejects settings out of range or without effect, and an invalid interval or y0.
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

/// The types accepted as y0.
#[diagnostic::on_unimplemented(
    message = "y0 is `{Self}` but the vector field takes `{Y}`",
    label = "not the state type of this vector field"
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

/// The function of (t, y) whose value is saved.
pub(crate) type SaveFn<'f, Y, O> = Arc<Mutex<dyn FnMut(<Y as State>::Clock, &Y) -> O + Send + 'f>>;
/// The callback after each accepted step.
pub(crate) type OnStep<'f, Y> = Arc<Mutex<dyn FnMut(f64, &Y) -> ControlFlow<()> + Send + 'f>>;

/// Locks a closure of the caller, even if it panicked in an earlier call.
pub(crate) fn locked<F: ?Sized>(f: &Mutex<F>) -> MutexGuard<'_, F> {
    f.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An ordinary differential equation and the settings of its solve.
///
/// Defaults: the method is [`Method::Tsit5`]. The controller is the I controller of
/// [`PidController`](super::PidController), for stiff methods
/// [`PidController::predictive`](super::PidController::predictive), and for methods without an error estimate
/// constant steps of `dt0`. rtol is 1e-6 and atol is 1e-9 (1e-4 and 1e-6 for f32). `max_steps` is 100,000. y
/// is saved at t1.
///
/// # Settings
/// The table shows which driver reads which setting. *Refused* means that the driver returns an error,
/// because it does not read the setting. A column is about adaptive steps unless its heading says otherwise.
/// An empty cell means that the driver has no such setting, except that two columns are controllers.
/// (`inlined` and `expected_steps` do not change results.)
///
#[doc = include_str!("settings.md")]
///
/// # Numerics
/// On a machine with AVX2 and FMA (or NEON), sums of stages use fused multiply-add. Other machines round the
/// product and the sum separately. On one machine a solve gives the same bits each time. Between the two
/// kinds of machine, the last digits differ.
///
/// # Examples
/// ```
/// use flowline::ode::Ode;
/// let decay = Ode::new(|_t, y: &[f64; 1]| [-y[0]]);
/// let solution = decay.rtol(1e-9).solve(0.0, 1.0, [1.0])?;
/// assert!((solution.y1[0] - (-1.0_f64).exp()).abs() < 1e-8);
/// # Ok::<(), flowline::Error>(())
/// ```
#[doc(alias = "ODETerm")]
#[doc(alias = "ODEProblem")]
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
    /// The lists of times at which steps end and the state may be reset.
    pub(crate) times: Vec<TimeList<'f, Y>>,
    pub(crate) options: Y::Options,
    pub(super) state: PhantomData<fn(&Y)>,
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
            times: self.times.clone(),
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
    /// Creates an `Ode` from a closure `f(t, y) -> dy/dt`, which may also return a `Result`. Annotate the type
    /// of `y` in the closure.
    pub fn new<R: Rate<Y>>(f: F) -> Self
    where
        F: Fn(Y::Clock, &Y) -> R,
    {
        Ode::from_field(Closure(f))
    }
}

impl<V: View + ?Sized, F> Ode<'_, V::Owned, InPlace<F, V>> {
    /// Creates an `Ode` from a closure `f(t, y, dy)` that writes dy; recommended for states on the heap.
    pub fn in_place<D: super::Done>(f: F) -> Self
    where
        F: Fn(f64, &V, &mut V) -> D,
    {
        Ode::from_field(InPlace::new(f))
    }
}

impl<Y: OdeState, F> Ode<'_, Y, F> {
    /// Creates an `Ode` from a custom type that implements [`VectorField`].
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
            times: Vec::new(),
            options: Y::Options::default(),
            state: PhantomData,
        }
    }
}

impl<'f, Y: OdeState, F, O> Ode<'f, Y, F, O> {
    /// Records sign changes of `when(t, y)`, a number or a condition, in the solution's `events`. On tensors `when`
    /// returns one number or condition for the whole state, and `max_events` sets how many events can be recorded.
    pub fn event<G: EventValue<Y::Clock>>(
        mut self,
        event: Event,
        when: impl Fn(Y::Clock, &Y) -> G + Send + Sync + 'f,
    ) -> Self {
        let when = Arc::new(move |t: Y::Clock, y: &Y| when(t, y).value());
        self.watches.push(Watch { event, when, then: None, of_field: None });
        self
    }

    /// An event that resets the state: `then(t, y)` changes y, and the solve continues from the changed state.
    /// With [`Event::terminal`] the solve ends with the changed state. On tensors `then` must keep the type of
    /// every leaf.
    #[doc(alias = "ContinuousCallback")]
    pub fn on_event<G: EventValue<Y::Clock>>(
        mut self,
        event: Event,
        when: impl Fn(Y::Clock, &Y) -> G + Send + Sync + 'f,
        then: impl FnMut(Y::Clock, &mut Y) + Send + 'f,
    ) -> Self {
        let when = Arc::new(move |t: Y::Clock, y: &Y| when(t, y).value());
        self.watches.push(Watch { event, when, then: Some(Arc::new(Mutex::new(then))), of_field: None });
        self
    }
}

impl<'f, Y: OdeState, F, O> Ode<'f, Y, F, O> {
    /// Copies the settings to an `Ode` of another vector field and type of state. `save_at`, callbacks and
    /// other functions of the state are not copied.
    #[cfg(feature = "ensemble-f32")]
    pub(crate) fn with_field<Z: OdeState, G>(&self, field: G) -> Ode<'static, Z, G> {
        Ode { settings: self.settings.clone(), ..Ode::from_field(field) }
    }

    /// Selects what is saved: a [`SaveAt`], or a list of times. The first call replaces the default, and further
    /// calls add to the selection. On tensors the times may be a tensor of rank
    /// 1, traced or not. Row i then belongs to `ts[i]`, even if times repeat. A row is NaN if its time is out
    /// of order, outside the interval or after a NaN. A second call may add a [`SaveAt`] without times to
    /// such a tensor; its rows are in the order of the solve.
    ///
    /// # Panics
    /// If a tensor of times is empty, not of floats, or not of rank 1.
    #[track_caller]
    pub fn save_at(mut self, save_at: impl IntoSaveAt<Y>) -> Self {
        let mut selected = None;
        save_at.write(&mut selected, &mut self.options);
        if let Some(save_at) = selected {
            self.save_at = if self.given.save_at { self.save_at.and(save_at) } else { save_at };
            self.given.save_at = true;
        }
        self
    }
    /// The method. It replaces a [`tableau`](Ode::tableau) given before.
    pub fn method(mut self, method: Method) -> Self {
        self.settings.method = method;
        self.settings.own = None;
        self
    }
    /// Selects `method` and compiles attempts for it with the vector field inlined.
    ///
    /// In release builds, the default method has such attempts without this call. Other methods share one loop
    /// that calls the vector field through a pointer. The results are the same, bit for bit. On a stack state
    /// of up to eight numbers (in each part of a compound) a step takes up to 40 % less time. Larger states,
    /// states on the heap and CPUs without fused multiply-add use the shared loop.
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
            times,
            options,
            state,
        } = self.method(M::METHOD);
        let field = Inlined::new(field);
        Ode {
            field,
            settings,
            norm,
            functions,
            save_at,
            save_fn,
            given,
            watches,
            on_step,
            times,
            options,
            state,
        }
    }
    /// A custom Butcher tableau instead of a method.
    pub fn tableau(mut self, tableau: Tableau) -> Self {
        self.settings.own = Some(Arc::new(tableau));
        self
    }
    /// The step size controller: [`PidController`](super::PidController),
    /// [`HairerController`](super::HairerController), [`ConstantStepSize`](super::ConstantStepSize) or
    /// [`StepTo`](super::StepTo).
    #[doc(alias = "adaptive")]
    pub fn controller(mut self, controller: impl Into<Controller>) -> Self {
        self.settings.controller = Some(controller.into());
        self
    }
    /// The relative tolerance: a scalar, or one value per component (or per part of a tuple or a `state!`
    /// struct). With constant steps or [`StepTo`](super::StepTo), a relative tolerance is an error.
    pub fn rtol(mut self, rtol: impl Into<Tol>) -> Self {
        self.settings.rtol = Some(rtol.into());
        self
    }
    /// The absolute tolerance, in the unit of y: a scalar or a list, as for [`rtol`](Ode::rtol).
    pub fn atol(mut self, atol: impl Into<Tol>) -> Self {
        self.settings.atol = Some(atol.into());
        self
    }
    /// The first step size; for a method without an error estimate, the size of every step. It is a
    /// magnitude, or has the sign of `t1 - t0`. The solve returns an error if the controller also has a first
    /// step size.
    pub fn dt0(mut self, dt0: f64) -> Self {
        self.settings.dt0 = Some(dt0);
        self
    }
    /// The smallest step size. If the controller needs a smaller step size, the solve ends with
    /// [`Outcome::StepSizeTooSmall`](super::Outcome::StepSizeTooSmall). Steps that are shortened to end at
    /// t1, at one of the [`tstops`](Ode::tstops), at a discontinuity or at an event may be smaller.
    pub fn dt_min(mut self, dt_min: f64) -> Self {
        self.settings.dt_min = dt_min;
        self
    }
    /// The largest step size. By default there is no limit.
    pub fn dt_max(mut self, dt_max: f64) -> Self {
        self.settings.dt_max = dt_max;
        self
    }
    /// Runs the loops over steps with a lower instruction level than the machine's best, so that tests can run
    /// each level.
    #[doc(hidden)]
    pub fn level(mut self, level: Level) -> Self {
        self.settings.level = level;
        self
    }
    /// Returns `Ok` even for a solve that ends early; the solution's `outcome` shows whether it did.
    ///
    /// Inside `jit`, `grad` and `vmap`, a solve that ends early does not make the call fail either. A failing
    /// vector field is still an error.
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
    /// The maximum number of attempted steps, at least 1. The default is 100,000.
    pub fn max_steps(mut self, max_steps: u64) -> Self {
        self.settings.max_steps = max_steps;
        self
    }
    /// The maximum number of recorded events, terminal events included; 0 means 1. One more event ends the
    /// solve with [`Outcome::MaxEvents`](super::Outcome::MaxEvents). Plain states have no limit by default.
    /// On tensors, whose shapes are fixed before the solve, the default is 64. It is the number of declared
    /// events if each of them is terminal at its first occurrence and none resets the state.
    pub fn max_events(mut self, max_events: usize) -> Self {
        self.settings.max_events = Some(max_events.max(1));
        self
    }
    /// Times at which steps end exactly. Times outside the interval are ignored. After such a time the solve
    /// continues with the proposed step size and the controller's history. For times at which the vector field jumps,
    /// use [`discontinuities`](Self::discontinuities). `tstops` is an error with [`StepTo`](super::StepTo), which sets all
    /// step times, and with a traced t0 or t1.
    pub fn tstops(mut self, ts: &[f64]) -> Self {
        self.settings.tstops.extend(ts);
        self
    }
    /// Times at which the vector field is discontinuous; f is evaluated an ulp before and an ulp after them.
    /// Steps end at these times, and the first stage of the next step is computed anew. The times of a
    /// [`StepTo`](super::StepTo) must include those inside the interval. An error with a traced t0 or t1.
    pub fn discontinuities(mut self, ts: &[f64]) -> Self {
        self.settings.discontinuities.extend(ts);
        self
    }
}

impl<Y: OdeState, F: VectorField<Y>, O> Ode<'_, Y, F, O> {
    /// Solves from t0 to t1; the sign of `t1 - t0` is the direction. If t0 == t1, it returns y0.
    ///
    /// # Errors
    /// [`SolveError::Config`] for what [`Ode::check`] rejects, and for a y0 that violates a constraint of the
    /// mass matrix; [`SolveError::Field`], [`SolveError::Event`] and [`SolveError::AtTime`] for a vector field or a
    /// state reset that failed; [`SolveError::Incomplete`] if the solve ended before t1 and neither a terminal event nor
    /// `on_step` ended it, unless [`Ode::allow_incomplete`] is set. The last three contain the partial
    /// solution. On traced tensors the outcome is not known yet: the call returns `Ok`, and the call that
    /// runs the traced program returns the error.
    #[doc(alias = "diffeqsolve")]
    pub fn solve(
        &self,
        t0: impl Into<Y::Clock>,
        t1: impl Into<Y::Clock>,
        y0: impl IntoState<Y>,
    ) -> Result<Y::Solution<O>, SolveError<Y::Solution<O>>> {
        Y::drive(self, t0.into(), t1.into(), y0.into_state())
    }
}
