//! Settings that a driver rejects before a solve because it would not read them.
//!
//! A setting without effect is a mistake of the caller, so each driver rejects settings that it does not
//! read. The checks of tensors are in `adjoint/drive.rs`; they call some of the checks here. The
//! documentation of [`Ode`] shows the table `settings.md`. Values out of range are rejected where settings
//! are [resolved](Settings::resolve).

use super::event::Watch;
use super::{ConfigError, Controller, Event, Method, Ode, OdeState, SaveAt, Settings};

/// Whether a setting was given, for settings whose value does not show it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Given {
    pub(crate) save_at: bool,
    pub(crate) save_fn: bool,
}

/// The settings that act along a solve: closures, then the same with functions of a `vector_field!`.
const WATCHING: [&str; 6] =
    ["event", "on_event", "on_times", "field_event", "on_field_event", "on_field_times"];

/// The driver of a solve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Driver {
    Solve,
    Steps,
    Sensitivity,
}

/// The settings that were given, without the types of the state and of the vector field.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each says whether one setting was given")]
pub(crate) struct Requested<'a> {
    settings: &'a Settings,
    given: Given,
    norm: bool,
    /// Whether each function that only some methods read was given: Jacobian, time derivative, spectral
    /// radius.
    functions: [bool; 3],
    on_step: bool,
    /// Whether an event or `on_step` can end the solve.
    ends: bool,
    /// Whether there is an event of each kind: one that is only recorded, a terminal one without a state
    /// reset, one with a state reset.
    events: [bool; 3],
    /// Whether each of [`WATCHING`] was given.
    watching: [bool; 6],
    /// The first event with a setting out of range.
    bad_event: Option<&'a Event>,
    save_at: &'a SaveAt,
}

/// Rejects an event with a tolerance out of range.
pub(crate) fn check_event(event: &Event) -> Result<(), ConfigError> {
    let value = event.tolerance;
    if value >= 0.0 && value.is_finite() {
        return Ok(());
    }
    Err(ConfigError::Controller { parameter: "Event::tolerance", value, range: "finite and at least 0" })
}

impl<Y: OdeState, F, O> Ode<'_, Y, F, O> {
    /// Runs the checks that [`Ode::solve`] makes before it evaluates the vector field. They reject settings
    /// out of range or without effect, an interval that is not finite (t1 may be infinite if an event or
    /// `on_step` can end the solve) and, for plain states, a y0 that is not finite.
    ///
    /// # Errors
    /// The first problem found.
    ///
    /// # Examples
    /// ```
    /// use flowline::ode::{Method, Ode};
    /// let ode = Ode::new(|_t, y: &f64| -y).method(Method::Rk4).dt0(0.1).rtol(1e-9);
    /// let error = ode.check(&0.0, &1.0, &1.0).unwrap_err();
    /// assert_eq!(error.to_string(), "`rtol` has no effect with constant steps or `StepTo`: leave it out");
    /// ```
    pub fn check(&self, t0: &Y::Clock, t1: &Y::Clock, y0: &Y) -> Result<(), ConfigError> {
        Y::check(self, t0, t1, y0)
    }

    pub(crate) fn requested(&self) -> Requested<'_> {
        let any = |is: fn(&Watch<'_, Y>) -> bool| self.watches.iter().any(is);
        Requested {
            settings: &self.settings,
            given: self.given,
            norm: self.norm.is_some(),
            functions: self.functions.given(),
            on_step: self.on_step.is_some(),
            ends: self.on_step.is_some() || any(|w| w.event.terminal > 0),
            events: [
                any(|w| w.event.terminal == 0 && w.then.is_none()),
                any(|w| w.event.terminal > 0 && w.then.is_none()),
                any(|w| w.then.is_some()),
            ],
            watching: [
                any(|w| w.of_field.is_none() && w.then.is_none()),
                any(|w| w.of_field.is_none() && w.then.is_some()),
                self.times.iter().any(|list| list.of_field.is_none()),
                any(|w| w.of_field.is_some() && w.then.is_none()),
                any(|w| w.of_field.is_some() && w.then.is_some()),
                self.times.iter().any(|list| list.of_field.is_some() && list.then.is_some()),
            ],
            bad_event: self.watches.iter().map(|w| &w.event).find(|event| check_event(event).is_err()),
            save_at: &self.save_at,
        }
    }
}

impl Requested<'_> {
    /// Whether anything other than t1 can end the solve.
    pub(crate) fn can_end(&self) -> bool {
        self.ends
    }

    /// Rejects settings that `driver` does not read.
    pub(crate) fn check(&self, driver: Driver) -> Result<(), ConfigError> {
        self.settings.check_steps(self.norm, false)?;
        self.settings.check_method(self.functions)?;
        if self.settings.max_events.is_some() && self.events == [false; 3] {
            return Err(ConfigError::UnusedSetting { setting: "max_events", place: "without an event" });
        }
        self.bad_event.map_or(Ok(()), check_event)?;
        let Requested { given, watching, .. } = *self;
        let [jacobian, time_derivative, _] = self.functions;
        let unread = |unread: &[(&'static str, bool)], place: &'static str| {
            let first = unread.iter().find(|(_, is_given)| *is_given);
            first.map_or(Ok(()), |&(setting, _)| Err(ConfigError::UnusedSetting { setting, place }))
        };
        match driver {
            Driver::Solve => {
                let place = "if `save_at` selects no times (dense output is of y)";
                unread(&[("save_fn", given.save_fn && !self.save_at.has_times())], place)
            }
            Driver::Steps => {
                let place = "in `stepper`, where the caller sees every step";
                unread(&[("save_at", given.save_at), ("save_fn", given.save_fn)], place)?;
                unread(&std::array::from_fn::<_, 6, _>(|i| (WATCHING[i], watching[i])), place)?;
                unread(&[("on_step", self.on_step)], place)
            }
            Driver::Sensitivity => {
                let first = watching[..WATCHING.len() / 2].iter().position(|is_given| *is_given);
                let closure = first.map(|i| (WATCHING[i], WATCHING[WATCHING.len() / 2 + i]));
                let closure = if given.save_fn { Some(("save_fn", "observe")) } else { closure };
                if let Some((setting, instead)) = closure {
                    return Err(ConfigError::NoDerivative { setting, instead });
                }
                let functions = [("jacobian", jacobian), ("time_derivative", time_derivative)];
                unread(
                    &functions,
                    "in `forward_sensitivity`, which needs the derivatives of the Jacobian, too, and computes both by dual numbers",
                )
            }
        }
    }
}

/// The place in the message about a setting of the Jacobian, with a method that does not read it.
const NEEDS_JACOBIAN: &str =
    "with a method that uses no Jacobian (Rodas5P, Rosenbrock23 and AutoTsit5Rodas5P use one)";

impl Settings {
    /// Whether step sizes are adaptive, as far as the settings show.
    pub(crate) fn is_adaptive(&self) -> bool {
        match &self.controller {
            Some(controller) => controller.is_adaptive(),
            // Without an error estimate and without a dt0, `resolve` returns an error later.
            None => self.has_error_estimate() || self.dt0.is_none(),
        }
    }

    /// Refuses settings that the method does not read. The array says which functions were given, in the
    /// order of [`Requested`].
    pub(crate) fn check_method(
        &self,
        [jacobian, time_derivative, radius]: [bool; 3],
    ) -> Result<(), ConfigError> {
        let method = if self.own.is_some() { Method::Tsit5 } else { self.method };
        let has_jacobian = !method.is_explicit() && method != Method::Rkc2;
        let unread = [
            ("jacobian", jacobian && !has_jacobian, NEEDS_JACOBIAN),
            ("time_derivative", time_derivative && !has_jacobian, NEEDS_JACOBIAN),
            ("jacobian_sparsity", self.sparsity.is_some() && !has_jacobian, NEEDS_JACOBIAN),
            ("spectral_radius", radius && method != Method::Rkc2, "with a method other than Rkc2"),
        ];
        if let Some(&(setting, _, place)) = unread.iter().find(|(_, is_given, _)| *is_given) {
            return Err(ConfigError::UnusedSetting { setting, place });
        }
        let solves_systems = matches!(method, Method::Rodas5P | Method::Rosenbrock23);
        if self.mass.is_some() && !solves_systems {
            return Err(ConfigError::MethodPlace {
                method: if self.own.is_some() { "a tableau".into() } else { format!("{method:?}") },
                place: "with `mass_matrix`",
                remedy: "use Method::Rodas5P or Method::Rosenbrock23",
            });
        }
        Ok(())
    }

    /// Refuses a method that ensembles do not support.
    pub(super) fn check_lanes(&self) -> Result<(), ConfigError> {
        match self.method {
            Method::Rkc2 | Method::AutoTsit5Rodas5P => Err(ConfigError::MethodPlace {
                method: format!("{:?}", self.method),
                place: "in ensembles",
                remedy: "use Method::Rodas5P, or solve each trajectory alone",
            }),
            _ => Ok(()),
        }
    }

    /// Refuses the methods that do not run on tensors. If `explicit` names an adjoint, it runs explicit methods only.
    #[cfg(feature = "autodiff")]
    pub(crate) fn check_tensors(&self, explicit: Option<&'static str>) -> Result<(), ConfigError> {
        let (place, remedy) = match (self.method, explicit) {
            _ if self.is_explicit() => return Ok(()),
            (_, Some(place)) => {
                (place, "use Adjoint::RecursiveCheckpoint or Adjoint::Direct, or an explicit method")
            }
            (Method::Rodas5P | Method::Rosenbrock23, None) => return Ok(()),
            _ => ("on tensors", "use Method::Rodas5P, or solve on plain states such as Vec<f64>"),
        };
        Err(ConfigError::MethodPlace { method: format!("{:?}", self.method), place, remedy })
    }

    /// Rejects settings of adaptive steps if steps are not adaptive. If `atol` is true, the driver reads
    /// `atol` even then.
    pub(crate) fn check_steps(&self, norm: bool, atol: bool) -> Result<(), ConfigError> {
        if self.is_adaptive() {
            return Ok(());
        }
        let is_listed = matches!(&self.controller, Some(Controller::StepTo(_)));
        let unread = [
            ("rtol", self.rtol.is_some()),
            ("atol", self.atol.is_some() && !atol),
            ("norm", norm),
            ("dt_min", self.dt_min > 0.0),
            ("dt_max", self.dt_max < f64::INFINITY),
            ("tstops", is_listed && !self.tstops.is_empty()),
        ];
        match unread.iter().find(|(_, is_given)| *is_given) {
            Some(&(setting, _)) => {
                Err(ConfigError::UnusedSetting { setting, place: "with constant steps or `StepTo`" })
            }
            None => Ok(()),
        }
    }
}
