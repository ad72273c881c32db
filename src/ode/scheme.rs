//! `Scheme`: the method, the controller, the tolerance and the limits of a solve.
//!
//! A scheme does not change during a solve. It consists of plain Rust numbers, which are static when a solve
//! is recorded, so code may branch on them. The interval is a [`Span`], which consists of values of the
//! clock. Everything that changes is in [`Carry`](super::Carry). Invalid numbers are rejected here, for all
//! drivers.

use super::inline::InlineMethod;
use super::step_end::dt_least;
use super::tableau::Kind;
use super::{
    ButcherTableau, Clock, ConfigError, Controller, Sides, Span, State, StateFunctions, StepTo, Tolerance,
};

/// A custom norm, of the state of scaled errors `e_j / (atol_j + rtol_j max(|y0_j|, |y1_j|))`.
pub type Norm<'a, S> = dyn Fn(&S) -> <S as State>::Clock + Send + Sync + 'a;

/// Bounds on the steps of a solve, for every controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits<'a> {
    /// The smallest allowed step size of a controller; 0 if only the limit of 16 ulp of t applies.
    pub dt_min: f64,
    /// The largest step size; infinite for none.
    pub dt_max: f64,
    /// The maximum number of attempted steps.
    pub max_steps: u64,
    /// Times strictly between t0 and t1 at which steps end, in the order of the solve, discontinuities included.
    pub stops: &'a [f64],
    /// The times at which the vector field is evaluated next to discontinuities.
    pub sides: Sides<'a>,
}

impl Limits<'static> {
    /// `max_steps` and no other bound.
    pub const fn steps(max_steps: u64) -> Self {
        Limits { dt_min: 0.0, dt_max: f64::INFINITY, max_steps, stops: &[], sides: Sides::NONE }
    }
}

impl Limits<'_> {
    /// The number of stops that a solve has passed at `t`, a stop at t included.
    pub(super) fn num_passed<C: Clock>(&self, span: &Span<C>, t: &C) -> C {
        let is_forward = span.is_forward();
        match C::known(&is_forward) {
            Some(true) => t.count_up_to(self.stops),
            Some(false) => t.count_down_to(self.stops),
            None => C::select(&is_forward, &t.count_up_to(self.stops), &t.count_down_to(self.stops)),
        }
    }
}

/// Method, controller, tolerance and limits of a solve.
pub struct Scheme<'a, S: State> {
    /// The coefficients of the method.
    pub tableau: ButcherTableau<'a>,
    /// The step size controller.
    pub controller: &'a Controller,
    /// The tolerance.
    pub tolerance: Tolerance<'a>,
    /// A custom error norm; `None` for the RMS.
    pub norm: Option<&'a Norm<'a, S>>,
    /// The derivatives of the vector field that the user provides.
    pub functions: Option<&'a StateFunctions<'a, S>>,
    /// The bounds on the steps.
    pub limits: Limits<'a>,
    /// [`ButcherTableau::is_fsal`] of the tableau, computed once.
    is_fsal: bool,
    /// See [`Scheme::carries_first`].
    keeps_first: bool,
}

#[allow(clippy::expl_impl_clone_on_copy, reason = "a derived impl would require S to be Clone")]
impl<S: State> Clone for Scheme<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<S: State> Copy for Scheme<'_, S> {}

impl<'a, S: State> Scheme<'a, S> {
    /// Creates a scheme.
    ///
    /// # Errors
    /// A tolerance or a controller parameter out of range, times that are not strictly monotone, adaptive
    /// control of a method without an error estimate.
    pub fn new(
        tableau: &ButcherTableau<'a>,
        controller: &'a Controller,
        tolerance: Tolerance<'a>,
        max_steps: u64,
    ) -> Result<Self, ConfigError> {
        check(tableau, controller, &tolerance)?;
        Ok(Self::trusted(*tableau, controller, tolerance, Limits::steps(max_steps)))
    }

    /// Creates a scheme from numbers that were checked before.
    #[inline]
    pub(super) fn trusted(
        tableau: ButcherTableau<'a>,
        controller: &'a Controller,
        tolerance: Tolerance<'a>,
        limits: Limits<'a>,
    ) -> Self {
        let (is_fsal, keeps_first) = (tableau.is_fsal(), controller.is_adaptive() && !is_linear(&tableau));
        Scheme { tableau, controller, tolerance, norm: None, functions: None, limits, is_fsal, keeps_first }
    }

    /// The scheme with another error norm.
    pub fn measured_by(self, norm: Option<&'a Norm<'a, S>>) -> Self {
        Scheme { norm, ..self }
    }

    /// The scheme with the derivatives of the vector field that the user provides.
    pub(super) fn differentiated_by(self, functions: Option<&'a StateFunctions<'a, S>>) -> Self {
        Scheme { functions, ..self }
    }

    /// The scheme that keeps f(t, y) in `k[0]` between steps even without adaptive control, because dense
    /// output needs f at both ends. Rosenbrock methods never keep it.
    pub fn keeping_first(self) -> Self {
        Scheme { keeps_first: !is_linear(&self.tableau), ..self }
    }

    /// The scheme that treats no method as FSAL: the last stage is at the method's y1, which is not the start
    /// of the next step if another map follows it.
    pub fn without_fsal(self) -> Self {
        Scheme { is_fsal: false, ..self }
    }

    /// Rejects an interval that is not finite (t1 may be infinite if `is_open`: if something other than t1
    /// can end the solve), a first step that leads away from t1, and times of `StepTo` that do not run from
    /// t0 to t1.
    pub fn check_span(&self, t0: f64, t1: f64, is_open: bool) -> Result<(), ConfigError> {
        for (name, value) in [("t0", t0), ("t1", t1)] {
            let may_be = value.is_finite() || is_open && name == "t1" && value.is_infinite();
            if !may_be {
                return Err(ConfigError::Time { name, value });
            }
        }
        self.check_first_step(t1 - t0)?;
        if let Controller::StepTo(StepTo { ts }) = self.controller {
            let (first, last) = (ts.first().copied(), ts.last().copied());
            if first != Some(t0) || last != Some(t1) {
                let or_nan = |t: Option<f64>| t.unwrap_or(f64::NAN);
                return Err(ConfigError::TimesEnds { first: or_nan(first), last: or_nan(last), t0, t1 });
            }
        }
        Ok(())
    }

    /// Rejects a first step that is 0, not finite, or leads away from t1; `span` is t1 - t0, or NaN if t0 or
    /// t1 is traced.
    pub fn check_first_step(&self, span: f64) -> Result<(), ConfigError> {
        match self.controller.dt0() {
            Some(dt0) if dt0 == 0.0 || !dt0.is_finite() || dt0 < 0.0 && span > 0.0 => {
                Err(ConfigError::FirstStep { dt0, span })
            }
            _ => Ok(()),
        }
    }

    /// Whether an error estimate accepts or rejects steps and sets their sizes.
    #[inline(always)]
    pub fn is_adaptive(&self) -> bool {
        self.controller.is_adaptive()
    }

    /// Whether `k[0]` is f(t, y) between two steps. Adaptive steps need it, because rejected attempts start
    /// with it again, and so does dense output.
    ///
    /// A FSAL method needs no extra evaluation for this. If f(t, y) is not carried, a step computes the first
    /// stage anew and skips a FSAL method's last stage; the number of evaluations is the same.
    #[inline(always)]
    pub fn carries_first(&self) -> bool {
        self.keeps_first
    }

    /// Whether the last stage of an attempt is the next step's first.
    #[inline(always)]
    pub(super) fn carries_fsal(&self) -> bool {
        self.keeps_first && self.is_fsal
    }

    /// Function evaluations in one attempt. If f(t, y) is carried and the method is not FSAL, each accepted
    /// step before t1 takes one more evaluation, which is not counted here.
    ///
    /// It is 0 for methods that are not explicit, which count their own evaluations.
    #[inline(always)]
    pub fn evals_per_attempt(&self) -> usize {
        if !self.tableau.is_explicit() {
            return 0;
        }
        self.num_stages_of_y1() - usize::from(self.keeps_first && !self.is_fsal)
    }

    /// The number of stages that y1 needs.
    #[inline(always)]
    pub fn num_stages_of_y1(&self) -> usize {
        self.tableau.num_stages() - usize::from(self.is_fsal)
    }

    /// The smallest allowed step size at t.
    #[inline(always)]
    pub(super) fn dt_min(&self, t: &S::Clock) -> S::Clock {
        let least = dt_least(t);
        if self.limits.dt_min > 0.0 { least.max(&t.like(self.limits.dt_min)) } else { least }
    }

    /// A signed step size, limited to dt_max.
    #[inline(always)]
    pub(super) fn at_most_dt_max(&self, dt: &S::Clock) -> S::Clock {
        if self.limits.dt_max == f64::INFINITY {
            return dt.clone();
        }
        let most = dt.like(self.limits.dt_max);
        let low = dt.like(-self.limits.dt_max);
        dt.min(&most).max(&low)
    }

    /// Where the vector field is evaluated for a step that ends at t: at t, or just before a discontinuity.
    #[inline(always)]
    pub(super) fn before(&self, span: &Span<S::Clock>, t: &S::Clock) -> S::Clock {
        let sides = self.limits.sides;
        if sides.is_empty() { t.clone() } else { sides.beside(t, &sides.index_of(t), &span.is_backward()) }
    }

    /// Where the vector field is evaluated for a step that starts at t: at t, or just after a discontinuity.
    #[inline(always)]
    pub(crate) fn after(&self, span: &Span<S::Clock>, t: &S::Clock) -> S::Clock {
        let sides = self.limits.sides;
        if sides.is_empty() { t.clone() } else { sides.beside(t, &sides.index_of(t), &span.is_forward()) }
    }

    /// [`before`](Self::before) of a step's end t without a search, given the number of stops passed before the
    /// step.
    #[inline(always)]
    pub(super) fn before_next(&self, span: &Span<S::Clock>, t: &S::Clock, num_stops: &S::Clock) -> S::Clock {
        let sides = self.limits.sides;
        if sides.is_empty() {
            return t.clone();
        }
        let next = sides.nth(&num_stops.add(&t.like(1.0)), &span.is_forward());
        sides.beside(t, &next, &span.is_backward())
    }

    /// [`after`](Self::after) of a step's end t, given the number of stops passed before the step.
    #[inline(always)]
    pub(super) fn after_next(&self, span: &Span<S::Clock>, t: &S::Clock, num_stops: &S::Clock) -> S::Clock {
        self.after_last(span, t, &num_stops.add(&t.like(1.0)))
    }

    /// [`after`](Self::after) of a step's start t without a search, given the number of stops passed.
    #[inline(always)]
    pub(super) fn after_last(&self, span: &Span<S::Clock>, t: &S::Clock, num_stops: &S::Clock) -> S::Clock {
        let sides = self.limits.sides;
        if sides.is_empty() {
            return t.clone();
        }
        let ahead = span.is_forward();
        sides.beside(t, &sides.nth(num_stops, &ahead), &ahead)
    }

    /// The same scheme with the method's coefficients as compile-time constants. `M` must be the scheme's own
    /// method.
    #[inline(always)]
    pub(super) fn with_known<M: InlineMethod>(&self) -> Self {
        let tableau = const { *M::METHOD.tableau() };
        debug_assert_eq!(tableau, self.tableau);
        Scheme { tableau, is_fsal: const { M::METHOD.tableau().is_fsal() }, ..*self }
    }
}

/// Whether the method's stages solve linear systems. Such a method evaluates f(t, y) together with the
/// Jacobian.
fn is_linear(tableau: &ButcherTableau) -> bool {
    matches!(tableau.kind, Kind::Rosenbrock(_))
}

/// Rejects tolerances and controller parameters out of range, times that are not strictly monotone, and
/// adaptive control of a method without an error estimate.
pub(super) fn check(
    tableau: &ButcherTableau,
    controller: &Controller,
    tolerance: &Tolerance,
) -> Result<(), ConfigError> {
    tolerance.check()?;
    controller.check()?;
    match controller {
        Controller::StepTo(StepTo { ts }) => check_monotone(ts),
        _ if controller.is_adaptive() && tableau.b_err.is_none() => {
            Err(ConfigError::NoErrorEstimate { method: tableau.name.into() })
        }
        _ => Ok(()),
    }
}

/// Rejects limits out of range, and limits that contradict each other or the controller.
pub(super) fn check_limits(controller: &Controller, limits: &Limits) -> Result<(), ConfigError> {
    let Limits { dt_min, dt_max, stops, .. } = *limits;
    let refuse = |parameter, value, range| Err(ConfigError::Controller { parameter, value, range });
    if !(dt_min.is_finite() && dt_min >= 0.0) {
        return refuse("dt_min", dt_min, "finite and at least 0");
    }
    if dt_max.is_nan() || dt_max <= 0.0 || dt_max < dt_min {
        return refuse("dt_max", dt_max, "above 0 and at least dt_min");
    }
    match controller {
        Controller::StepTo(StepTo { ts }) => match stops.iter().find(|t| !ts.contains(t)) {
            Some(&t) => Err(ConfigError::StopBesideTimes { t }),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

fn check_monotone(ts: &[f64]) -> Result<(), ConfigError> {
    let sign = if ts.last() < ts.first() { -1.0 } else { 1.0 };
    for (index, pair) in ts.windows(2).enumerate() {
        let (previous, next) = (pair[0], pair[1]);
        let ordered = previous * sign < next * sign;
        if !ordered {
            return Err(ConfigError::TimesNotMonotone { name: "StepTo", index, previous, next });
        }
    }
    Ok(())
}
