//! [`Settings`]: the settings as given. [`Resolved`]: the settings with all defaults filled in.
//!
//! Settings are given in any order and checked once, when a solve starts. This module uses neither vector
//! fields nor loops, so all drivers share it.

use super::save_at::sort_times;
use super::scheme;
use super::{
    ButcherTableau, ConfigError, Controller, InputRows, Limits, Mass, Method, Norm, OwnSides, PidController,
    Scheme, Sparsity, State, Tableau, Tol, Tolerance,
};
use crate::simd::Level;
use std::sync::Arc;

/// The settings as given; `None` for a default.
#[derive(Clone, Debug)]
pub struct Settings {
    pub(crate) method: Method,
    /// A custom tableau instead of the method's.
    pub(crate) own: Option<Arc<Tableau>>,
    pub(crate) controller: Option<Controller>,
    pub(crate) dt0: Option<f64>,
    pub(crate) rtol: Option<Tol>,
    pub(crate) atol: Option<Tol>,
    pub(crate) max_steps: u64,
    /// The maximum number of recorded events; `None` for the default: no limit on plain states, a number of
    /// rows on tensors.
    pub(crate) max_events: Option<usize>,
    /// Whether `solve` returns `Ok` if the solve ends early.
    pub(crate) allow_incomplete: bool,
    pub(crate) dt_min: f64,
    pub(crate) dt_max: f64,
    pub(crate) tstops: Vec<f64>,
    pub(crate) discontinuities: Vec<f64>,
    /// The times of [`Ode::on_times`](super::Ode::on_times).
    pub(crate) reset_times: Vec<f64>,
    /// The rows of each input.
    pub(crate) inputs: Vec<InputRows>,
    /// Which entries of the Jacobian can differ from 0.
    pub(crate) sparsity: Option<Arc<Sparsity>>,
    /// M of `M y' = f(t, y)`.
    pub(crate) mass: Option<Arc<Mass>>,
    /// The SIMD instructions that loops over steps may use.
    pub(crate) level: Level,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            method: Method::default(),
            own: None,
            controller: None,
            dt0: None,
            rtol: None,
            atol: None,
            max_steps: 100_000,
            max_events: None,
            allow_incomplete: false,
            dt_min: 0.0,
            dt_max: f64::INFINITY,
            tstops: Vec::new(),
            discontinuities: Vec::new(),
            reset_times: Vec::new(),
            inputs: Vec::new(),
            sparsity: None,
            mass: None,
            level: Level::detect(),
        }
    }
}

/// The settings with all defaults filled in. A [`Scheme`] borrows from them.
#[derive(Clone, Debug)]
pub struct Resolved {
    method: Method,
    own: Option<Arc<Tableau>>,
    /// The controller with its first step size.
    pub controller: Controller,
    /// The controller of the method for stiff parts, if the method switches.
    stiff_controller: Option<Controller>,
    /// The relative tolerance, per component if it differs.
    pub rtol: Tol,
    /// The absolute tolerance, per component if it differs.
    pub atol: Tol,
    max_steps: u64,
    dt_min: f64,
    dt_max: f64,
    stops: Vec<f64>,
    sides: OwnSides,
    keeps_first: bool,
    sparsity: Option<Arc<Sparsity>>,
    mass: Option<Arc<Mass>>,
    level: Level,
}

/// The method and the instruction level for which a loop over steps may be compiled.
#[derive(Clone, Copy, Debug)]
pub struct Native {
    /// The method; `None` if a custom tableau replaces it.
    pub(super) method: Option<Method>,
    pub(super) level: Level,
}

impl Settings {
    /// The controller of the solve: the given controller or the method's default, with `dt0` as the first
    /// step size.
    ///
    /// # Errors
    /// A dt0 with a controller that already has a dt0, or with [`StepTo`](super::StepTo); a method without an
    /// error estimate and without a dt0.
    fn controller(&self) -> Result<Controller, ConfigError> {
        let tableau = tableau(self.own.as_deref(), self.method);
        match (&self.controller, self.dt0) {
            (Some(controller), Some(dt0)) => controller.clone().starting_with(dt0),
            (Some(controller), None) => Ok(controller.clone()),
            (None, dt0) if tableau.b_err.is_some() => {
                let pid = if tableau.is_explicit() {
                    PidController::default()
                } else {
                    PidController::predictive()
                };
                Ok(PidController { dt0, ..pid }.into())
            }
            (None, Some(dt0)) => Ok(super::ConstantStepSize { dt0 }.into()),
            (None, None) => Err(ConfigError::NoErrorEstimate { method: tableau.name.into() }),
        }
    }

    /// The controller of the method for stiff parts, if there is one.
    fn stiff_controller(&self) -> Result<Option<Controller>, ConfigError> {
        if self.own.is_some() || self.method != Method::AutoTsit5Rodas5P {
            return Ok(None);
        }
        Settings { method: Method::Rodas5P, ..self.clone() }.controller().map(Some)
    }

    pub(super) fn is_explicit(&self) -> bool {
        self.own.is_some() || self.method.is_explicit()
    }

    pub(super) fn has_error_estimate(&self) -> bool {
        tableau(self.own.as_deref(), self.method).b_err.is_some()
    }

    /// Fills in the defaults and checks the settings. `parts` is the number of components of each part of the
    /// state, `default` the default tolerance, `epsilon` the precision of its finest numbers. `span` is t0 and t1, or `None` if they are traced.
    ///
    /// # Errors
    /// The errors of [`Scheme::new`]; a dt0 that the controller does not take; limits out of range or in
    /// contradiction; lists of tolerances of the wrong length; a mass matrix or a sparsity pattern that does
    /// not fit the state; stops that are not finite, or any stops if the interval is traced.
    pub fn resolve(
        &self,
        (default, epsilon): (Tolerance, f64),
        parts: &[usize],
        span: Option<(f64, f64)>,
    ) -> Result<Resolved, ConfigError> {
        if self.max_steps == 0 {
            return Err(ConfigError::Controller { parameter: "max_steps", value: 0.0, range: "at least 1" });
        }
        let (rtol, atol) = default.at(0);
        let bound = |name, given: &Option<Tol>, default: f64| match given {
            Some(bound) => bound.spread(name, parts),
            None => Ok(Tol::All(default)),
        };
        let mut jumps = times_within("discontinuities", &self.discontinuities, span)?;
        let mut stops = times_within("tstops", &self.tstops, span)?;
        stops.extend(times_within("on_times", &self.reset_times, span)?);
        for rows in &self.inputs {
            // A stiff method also reads the derivative by t, which is discontinuous at the rows of other inputs too.
            let is_jump = rows.is_discontinuous || !self.is_explicit();
            let to = if is_jump { &mut jumps } else { &mut stops };
            to.extend(times_within("stop_at_rows", &rows.ts, span)?);
        }
        stops.extend(&jumps);
        let mut sides = OwnSides::default();
        if let Some((t0, t1)) = span {
            self.inputs.iter().try_for_each(|rows| rows.contain(t0, t1))?;
            stops.retain(|&t| t != t0 && t != t1);
            sort_times(&mut stops, (t0, t1));
            sides = OwnSides::new(&stops, &jumps, (t0, t1));
        }
        let resolved = Resolved {
            method: self.method,
            own: self.own.clone(),
            controller: self.controller()?,
            stiff_controller: self.stiff_controller()?,
            rtol: bound("rtol", &self.rtol, rtol)?,
            atol: bound("atol", &self.atol, atol)?,
            max_steps: self.max_steps,
            dt_min: self.dt_min,
            dt_max: self.dt_max,
            stops,
            sides,
            keeps_first: false,
            sparsity: self.sparsity.clone(),
            mass: self.mass.clone(),
            level: self.level,
        };
        let components = parts.iter().sum();
        resolved.mass().map_or(Ok(()), |mass| mass.check(components))?;
        resolved.sparsity().map_or(Ok(()), |sparsity| sparsity.check(components))?;
        resolved.tolerance().check_precision(epsilon)?;
        scheme::check(&resolved.tableau(), &resolved.controller, &resolved.tolerance())?;
        scheme::check_limits(&resolved.controller, &resolved.limits())?;
        Ok(resolved)
    }
}

impl Resolved {
    /// The scheme of the solve.
    pub fn scheme<'a, S: State>(&'a self, norm: Option<&'a Norm<'a, S>>) -> Scheme<'a, S> {
        let scheme = Scheme::trusted(self.tableau(), &self.controller, self.tolerance(), self.limits());
        let scheme = scheme.measured_by(norm);
        if self.keeps_first { scheme.keeping_first() } else { scheme }
    }

    /// The scheme for stiff parts, if the method switches; [`scheme`](Self::scheme) is then only for the other parts.
    pub(super) fn stiff_scheme<'a, S: State>(
        &'a self,
        norm: Option<&'a Norm<'a, S>>,
    ) -> Option<Scheme<'a, S>> {
        Some(self.stiff_scheme_by(self.stiff_controller.as_ref()?, norm))
    }

    /// The scheme of Rodas5P with a given controller.
    pub(super) fn stiff_scheme_by<'a, S: State>(
        &'a self,
        controller: &'a Controller,
        norm: Option<&'a Norm<'a, S>>,
    ) -> Scheme<'a, S> {
        let tableau = *Method::Rodas5P.tableau();
        Scheme::trusted(tableau, controller, self.tolerance(), self.limits()).measured_by(norm)
    }

    /// Whether the method switches.
    pub(super) fn switches(&self) -> bool {
        self.stiff_controller.is_some()
    }

    /// Which entries of the Jacobian can differ from 0.
    pub(super) fn sparsity(&self) -> Option<&Sparsity> {
        self.sparsity.as_deref()
    }

    /// M of `M y' = f(t, y)`.
    pub(crate) fn mass(&self) -> Option<&Mass> {
        self.mass.as_deref()
    }

    /// The method and the level for which loops may be compiled.
    pub(super) fn native(&self) -> Native {
        let method = match self.method {
            // A solve with automatic switching starts with Tsit5.
            Method::AutoTsit5Rodas5P => Method::Tsit5,
            method => method,
        };
        Native { method: self.own.is_none().then_some(method), level: self.level }
    }

    fn tableau(&self) -> ButcherTableau<'_> {
        tableau(self.own.as_deref(), self.method)
    }

    fn tolerance(&self) -> Tolerance<'_> {
        Tolerance::of(&self.rtol, &self.atol)
    }

    fn limits(&self) -> Limits<'_> {
        let Resolved { max_steps, dt_min, dt_max, ref stops, ref sides, .. } = *self;
        Limits { dt_min, dt_max, max_steps, stops, sides: sides.view() }
    }

    /// The same settings for vector fields that receive the time as an f32.
    pub(super) fn in_single(self) -> Self {
        Resolved { sides: self.sides.in_single(), ..self }
    }

    /// Whether f(t, y) is carried even without adaptive steps, for dense output.
    pub(super) fn keeping_first(self, keeps: bool) -> Self {
        Resolved { keeps_first: keeps, ..self }
    }
}

fn tableau(own: Option<&Tableau>, method: Method) -> ButcherTableau<'_> {
    own.map_or(*method.tableau(), Tableau::view)
}

/// The times between t0 and t1, both included.
fn times_within(
    name: &'static str,
    times: &[f64],
    span: Option<(f64, f64)>,
) -> Result<Vec<f64>, ConfigError> {
    if let Some(&value) = times.iter().find(|t| !t.is_finite()) {
        return Err(ConfigError::Stop { name, value });
    }
    match span {
        Some((t0, t1)) => {
            let (low, high) = (t0.min(t1), t0.max(t1));
            Ok(times.iter().copied().filter(|&t| low <= t && t <= high).collect())
        }
        None if times.is_empty() => Ok(Vec::new()),
        None => Err(ConfigError::StopsOfUnknownInterval { name }),
    }
}
