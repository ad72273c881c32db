//! `Scheme` and `Span`: what does not change during a solve.
//!
//! A scheme is plain numbers of the host, known when a solve is recorded, so a branch on it is a choice of code
//! and may be taken; a span is values of the clock. Everything that does change is in
//! [`Carry`](super::Carry). Whatever is invalid is refused here, once, for every way of running.

use super::{ButcherTableau, Clock, Constant, Controller, Method, OdeError, Pid, StepTo};

/// How large an error may be: `atol + rtol max(|y0|, |y1|)` for each component.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// The relative tolerance.
    pub rtol: f64,
    /// The absolute tolerance, in the unit of y.
    pub atol: f64,
}

impl Tolerance {
    /// Refuses negative, NaN, infinite and both-zero tolerances.
    pub fn check(&self) -> Result<(), OdeError> {
        let Tolerance { rtol, atol } = *self;
        let valid = |x: f64| x.is_finite() && x >= 0.0;
        if valid(rtol) && valid(atol) && rtol + atol > 0.0 {
            return Ok(());
        }
        Err(OdeError::Tolerance { rtol, atol })
    }
}

/// Method, controller, tolerance and bounds of a solve.
#[derive(Clone, Copy, Debug)]
pub struct Scheme<'a> {
    /// The method's numbers.
    pub tableau: &'a ButcherTableau<'a>,
    /// How long the next step is.
    pub controller: &'a Controller,
    /// How large an error may be.
    pub tolerance: Tolerance,
    /// The most steps that are attempted.
    pub max_steps: u64,
    /// [`ButcherTableau::is_fsal`] of the tableau, worked out once.
    is_fsal: bool,
}

impl<'a> Scheme<'a> {
    /// Puts a scheme together.
    ///
    /// # Errors
    /// A tolerance or a number of the controller out of range, times that are not strictly monotone, adaptive
    /// control of a method without an error estimate.
    pub fn new(
        tableau: &'a ButcherTableau<'a>,
        controller: &'a Controller,
        tolerance: Tolerance,
        max_steps: u64,
    ) -> Result<Self, OdeError> {
        tolerance.check()?;
        match controller {
            Controller::Constant(_) => {}
            Controller::StepTo(StepTo { ts }) => check_monotone(ts)?,
            Controller::Pid(pid) => {
                check_pid(pid)?;
                if tableau.b_err.is_none() {
                    return Err(OdeError::NoErrorEstimate { method: tableau.name.into() });
                }
            }
        }
        Ok(Scheme { tableau, controller, tolerance, max_steps, is_fsal: tableau.is_fsal() })
    }

    /// Refuses an interval that is not finite, a first step that leads away from t1, and times of `StepTo` that
    /// do not run from t0 to t1.
    pub fn check_span(&self, t0: f64, t1: f64) -> Result<(), OdeError> {
        for (name, value) in [("t0", t0), ("t1", t1)] {
            if !value.is_finite() {
                return Err(OdeError::Time { name, value });
            }
        }
        self.check_first_step(t1 - t0)?;
        if let Controller::StepTo(StepTo { ts }) = self.controller {
            let (first, last) = (ts.first().copied(), ts.last().copied());
            if first != Some(t0) || last != Some(t1) {
                let or_nan = |t: Option<f64>| t.unwrap_or(f64::NAN);
                return Err(OdeError::TimesEnds { first: or_nan(first), last: or_nan(last), t0, t1 });
            }
        }
        Ok(())
    }

    /// Refuses a first step that is 0, not finite, or leads away from t1; `span` is t1 - t0, NaN where it is not
    /// known yet.
    pub fn check_first_step(&self, span: f64) -> Result<(), OdeError> {
        match self.controller.dt0() {
            Some(dt0) if dt0 == 0.0 || !dt0.is_finite() || dt0 < 0.0 && span > 0.0 => {
                Err(OdeError::FirstStep { dt0, span })
            }
            _ => Ok(()),
        }
    }

    /// An error estimate decides which steps stand and how long the next one is.
    #[inline(always)]
    pub fn is_adaptive(&self) -> bool {
        matches!(self.controller, Controller::Pid(_))
    }

    /// The first stage is taken over from the step before: adaptive steps of a method that is first same as last.
    ///
    /// Steps whose error nobody estimates do not need the last stage, so there every first stage is computed
    /// anew; the number of evaluations is the same.
    #[inline(always)]
    pub fn carries_fsal(&self) -> bool {
        self.is_adaptive() && self.is_fsal
    }

    /// Evaluations of the field in one attempt.
    #[inline(always)]
    pub fn evals_per_attempt(&self) -> usize {
        self.num_stages_of_y1()
    }

    /// Stages that y1 is made of.
    #[inline(always)]
    pub(super) fn num_stages_of_y1(&self) -> usize {
        self.tableau.num_stages() - usize::from(self.is_fsal)
    }

    /// The same scheme, with the method's numbers known where this is compiled. `METHOD` is the index of the
    /// scheme's own method in [`Method::ALL`].
    #[inline(always)]
    pub(super) fn with_known<const METHOD: usize>(&self) -> Self {
        let tableau = const { Method::ALL[METHOD].tableau() };
        debug_assert_eq!(tableau, self.tableau);
        Scheme { tableau, is_fsal: const { Method::ALL[METHOD].tableau().is_fsal() }, ..*self }
    }
}

fn check_monotone(ts: &[f64]) -> Result<(), OdeError> {
    let sign = if ts.last() < ts.first() { -1.0 } else { 1.0 };
    for (index, pair) in ts.windows(2).enumerate() {
        let (previous, next) = (pair[0], pair[1]);
        let ordered = previous * sign < next * sign;
        if !ordered {
            return Err(OdeError::TimesNotMonotone { index, previous, next });
        }
    }
    Ok(())
}

fn check_pid(pid: &Pid) -> Result<(), OdeError> {
    let Pid { pcoeff, icoeff, dcoeff, safety, factor_min, factor_max, .. } = *pid;
    let rules = [
        ("pcoeff", pcoeff, pcoeff.is_finite(), "finite"),
        ("icoeff", icoeff, icoeff.is_finite(), "finite"),
        ("dcoeff", dcoeff, dcoeff.is_finite(), "finite"),
        ("safety", safety, safety > 0.0 && safety < 1.0, "above 0 and below 1"),
        ("factor_min", factor_min, factor_min > 0.0 && factor_min <= safety, "above 0 and at most safety"),
        ("factor_max", factor_max, factor_max >= 1.0 && factor_max.is_finite(), "finite and at least 1"),
    ];
    match rules.into_iter().find(|rule| !rule.2) {
        Some((parameter, value, _, range)) => Err(OdeError::Controller { parameter, value, range }),
        None => Ok(()),
    }
}

/// The interval of a solve, as values of its clock.
#[derive(Clone, Debug)]
pub struct Span<C> {
    /// Where the solve starts.
    pub t0: C,
    /// Where it ends.
    pub t1: C,
    /// The sign of t1 - t0; 1 where they are equal.
    pub direction: C,
    /// A remainder below this is merged into the step before: 100 ulp of the larger of |t0| and |t1|.
    pub slack: C,
}

impl<C: Clock> Span<C> {
    /// From t0 to t1.
    #[inline(always)]
    pub fn new(t0: C, t1: C) -> Self {
        let one = t0.like(1.0);
        let direction = C::select(&t1.lt(&t0), &one.like(-1.0), &one);
        let slack = ulps(100.0, &t0.abs().max(&t1.abs()));
        Span { t0, t1, direction, slack }
    }

    /// `dt0` towards t1.
    #[inline(always)]
    pub(super) fn towards(&self, dt0: f64) -> C {
        self.direction.mul(&self.t0.like(dt0.abs()))
    }

    /// The smallest step that a controller may ask for at t: 16 ulp of max(|t|, |t1|).
    #[inline(always)]
    pub(super) fn dt_min(&self, t: &C) -> C {
        ulps(16.0, &t.abs().max(&self.t1.abs()))
    }
}

/// n ulp of x >= 0, an ulp taken as 2^-52 x: between one and two units in the last place.
#[inline(always)]
fn ulps<C: Clock>(n: f64, x: &C) -> C {
    x.mul(&x.like(n * f64::EPSILON))
}

/// The end of the step from t_n, and whether it is t1.
///
/// An end that comes within the slack of t1 or passes it becomes t1, so the field is never evaluated beyond.
#[inline(always)]
pub(super) fn next_knot<C: Clock>(scheme: &Scheme, span: &Span<C>, t: &C, dt: &C, n: &C) -> (C, C::Mask) {
    let next = n.add(&n.like(1.0));
    let (proposed, last) = match scheme.controller {
        Controller::StepTo(StepTo { ts }) => {
            let last = n.like(ts.len() as f64 - 1.0).le(&next);
            (next.lookup(ts), last)
        }
        Controller::Constant(Constant { dt0 }) => {
            let proposed = span.t0.add(&next.mul(&span.towards(*dt0)));
            let last = passes(span, &proposed);
            (proposed, last)
        }
        Controller::Pid(_) => {
            let proposed = t.add(dt);
            let last = passes(span, &proposed);
            (proposed, last)
        }
    };
    (C::select(&last, &span.t1, &proposed), last)
}

#[inline(always)]
fn passes<C: Clock>(span: &Span<C>, proposed: &C) -> C::Mask {
    span.t1.sub(proposed).mul(&span.direction).lt(&span.slack)
}
