//! `Scheme` and `Span`: what does not change during a solve.
//!
//! A scheme is plain numbers of the host, known when a solve is recorded, so a branch on it is a choice of code
//! and may be taken; a span is values of the clock. Everything that does change is in
//! [`Carry`](super::Carry). Whatever is invalid is refused here, once, for every way of running.

use super::inline::InlineMethod;
use super::{ButcherTableau, Carry, Clock, Constant, Controller, OdeError, State, StepTo, Tolerance};

/// A norm of one's own: of the state of scaled errors `e_j / (atol_j + rtol_j max(|y0_j|, |y1_j|))`.
pub type Norm<'a, S> = dyn Fn(&S) -> <S as State>::Clock + Send + Sync + 'a;

/// Bounds on the steps of a solve, for every controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits<'a> {
    /// A step that the controller wants shorter than this ends the solve; 0 for none but the 16 ulp of t.
    pub dt_min: f64,
    /// No step is longer; infinite for none.
    pub dt_max: f64,
    /// The most steps that are attempted.
    pub max_steps: u64,
    /// Times strictly between t0 and t1 that steps end on, in the order of the solve, jumps included.
    pub stops: &'a [f64],
    /// Those of the stops where the field jumps: it is evaluated an ulp before and an ulp after them, never on them.
    pub jumps: &'a [f64],
}

impl Limits<'static> {
    /// `max_steps` and no other bound.
    pub const fn steps(max_steps: u64) -> Self {
        Limits { dt_min: 0.0, dt_max: f64::INFINITY, max_steps, stops: &[], jumps: &[] }
    }
}

/// Method, controller, tolerance and bounds of a solve.
pub struct Scheme<'a, S: State> {
    /// The method's numbers.
    pub tableau: ButcherTableau<'a>,
    /// How long the next step is.
    pub controller: &'a Controller,
    /// How large an error may be.
    pub tolerance: Tolerance<'a>,
    /// How the error is measured where it is not by its RMS.
    pub norm: Option<&'a Norm<'a, S>>,
    /// What holds for every controller.
    pub limits: Limits<'a>,
    /// [`ButcherTableau::is_fsal`] of the tableau, worked out once.
    is_fsal: bool,
    /// See [`Scheme::carries_first`].
    keeps_first: bool,
}

#[allow(clippy::expl_impl_clone_on_copy, reason = "a derived one would ask S to be Clone")]
impl<S: State> Clone for Scheme<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<S: State> Copy for Scheme<'_, S> {}

impl<'a, S: State> Scheme<'a, S> {
    /// Puts a scheme together.
    ///
    /// # Errors
    /// A tolerance or a number of the controller out of range, times that are not strictly monotone, adaptive
    /// control of a method without an error estimate.
    pub fn new(
        tableau: &ButcherTableau<'a>,
        controller: &'a Controller,
        tolerance: Tolerance<'a>,
        max_steps: u64,
    ) -> Result<Self, OdeError> {
        check(tableau, controller, &tolerance)?;
        Ok(Self::trusted(*tableau, controller, tolerance, Limits::steps(max_steps)))
    }

    /// Of numbers that were checked before.
    #[inline]
    pub(super) fn trusted(
        tableau: ButcherTableau<'a>,
        controller: &'a Controller,
        tolerance: Tolerance<'a>,
        limits: Limits<'a>,
    ) -> Self {
        let (is_fsal, keeps_first) = (tableau.is_fsal(), controller.is_adaptive());
        Scheme { tableau, controller, tolerance, norm: None, limits, is_fsal, keeps_first }
    }

    /// The scheme with another measure of the error.
    pub fn measured_by(self, norm: Option<&'a Norm<'a, S>>) -> Self {
        Scheme { norm, ..self }
    }

    /// The scheme that keeps f(t, y) in `k[0]` between steps whoever controls them; dense output needs both ends.
    pub fn keeping_first(self) -> Self {
        Scheme { keeps_first: true, ..self }
    }

    /// The scheme that takes no method for one that is first same as last: the last stage stands at the method's y1,
    /// where the next step of another map does not start.
    pub fn without_fsal(self) -> Self {
        Scheme { is_fsal: false, ..self }
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
        self.controller.is_adaptive()
    }

    /// `k[0]` is f(t, y) between two steps: of adaptive steps, whose rejected attempts start with it again, and
    /// where dense output asks for it.
    ///
    /// Steps of a method that is first same as last get it for nothing. Where nobody asks, constant steps compute
    /// the first stage anew and leave such a method's last stage out; the number of evaluations is the same.
    #[inline(always)]
    pub fn carries_first(&self) -> bool {
        self.keeps_first
    }

    /// The last stage of an attempt is the next step's first.
    #[inline(always)]
    pub(super) fn carries_fsal(&self) -> bool {
        self.keeps_first && self.is_fsal
    }

    /// Evaluations of the field in one attempt, without the one of an accepted step's end where that is carried.
    #[inline(always)]
    pub fn evals_per_attempt(&self) -> usize {
        self.num_stages_of_y1() - usize::from(self.keeps_first && !self.is_fsal)
    }

    /// Stages that y1 is made of.
    #[inline(always)]
    pub(super) fn num_stages_of_y1(&self) -> usize {
        self.tableau.num_stages() - usize::from(self.is_fsal)
    }

    /// The smallest step that may be asked for at t.
    #[inline(always)]
    pub(super) fn dt_min(&self, span: &Span<S::Clock>, t: &S::Clock) -> S::Clock {
        let least = span.dt_min(t);
        if self.limits.dt_min > 0.0 { least.max(&t.like(self.limits.dt_min)) } else { least }
    }

    /// A step size, signed, cut at dt_max.
    #[inline(always)]
    pub(super) fn at_most_dt_max(&self, dt: &S::Clock) -> S::Clock {
        if self.limits.dt_max == f64::INFINITY {
            return dt.clone();
        }
        let most = dt.like(self.limits.dt_max);
        let low = dt.like(-self.limits.dt_max);
        dt.min(&most).max(&low)
    }

    /// Where the field is evaluated for a step that ends at t: t itself, or just before a jump.
    #[inline(always)]
    pub(super) fn before(&self, span: &Span<S::Clock>, t: &S::Clock) -> S::Clock {
        self.beside_jump(span, t, f64::next_down, f64::next_up)
    }

    /// Where the field is evaluated for a step that starts at t: t itself, or just after a jump.
    #[inline(always)]
    pub(super) fn after(&self, span: &Span<S::Clock>, t: &S::Clock) -> S::Clock {
        self.beside_jump(span, t, f64::next_up, f64::next_down)
    }

    #[inline(always)]
    fn beside_jump(
        &self,
        span: &Span<S::Clock>,
        t: &S::Clock,
        forward: fn(f64) -> f64,
        backward: fn(f64) -> f64,
    ) -> S::Clock {
        let mut out = t.clone();
        let ahead = t.like(0.0).lt(&span.direction);
        for &jump in self.limits.jumps {
            let side = S::Clock::select(&ahead, &t.like(forward(jump)), &t.like(backward(jump)));
            let at = t.like(jump);
            let here = S::Clock::and(&t.le(&at), &at.le(t));
            out = S::Clock::select(&here, &side, &out);
        }
        out
    }

    /// Whether the field jumps at t.
    #[inline(always)]
    pub(super) fn jumps_at(&self, t: &S::Clock) -> S::Clock {
        let mut out = t.like(0.0);
        for &jump in self.limits.jumps {
            let at = t.like(jump);
            let here = S::Clock::and(&t.le(&at), &at.le(t));
            out = S::Clock::select(&here, &t.like(1.0), &out);
        }
        out
    }

    /// The same scheme, with the method's numbers known where this is compiled. `M` is the scheme's own method.
    #[inline(always)]
    pub(super) fn with_known<M: InlineMethod>(&self) -> Self {
        let tableau = const { *M::METHOD.tableau() };
        debug_assert_eq!(tableau, self.tableau);
        Scheme { tableau, is_fsal: const { M::METHOD.tableau().is_fsal() }, ..*self }
    }
}

/// Refuses tolerances and numbers of the controller out of range, times that are not strictly monotone, adaptive
/// control of a method without an error estimate.
pub(super) fn check(
    tableau: &ButcherTableau,
    controller: &Controller,
    tolerance: &Tolerance,
) -> Result<(), OdeError> {
    tolerance.check()?;
    controller.check()?;
    match controller {
        Controller::StepTo(StepTo { ts }) => check_monotone(ts),
        _ if controller.is_adaptive() && tableau.b_err.is_none() => {
            Err(OdeError::NoErrorEstimate { method: tableau.name.into() })
        }
        _ => Ok(()),
    }
}

/// Refuses bounds that contradict each other or the controller.
pub(super) fn check_limits(controller: &Controller, limits: &Limits) -> Result<(), OdeError> {
    let Limits { dt_min, dt_max, stops, .. } = *limits;
    let refuse = |parameter, value, range| Err(OdeError::Controller { parameter, value, range });
    if !(dt_min.is_finite() && dt_min >= 0.0) {
        return refuse("dt_min", dt_min, "finite and at least 0");
    }
    if dt_max.is_nan() || dt_max <= 0.0 || dt_max < dt_min {
        return refuse("dt_max", dt_max, "above 0 and at least dt_min");
    }
    match controller {
        Controller::StepTo(StepTo { ts }) => match stops.iter().find(|t| !ts.contains(t)) {
            Some(&t) => Err(OdeError::StopBesideTimes { t }),
            None => Ok(()),
        },
        _ => Ok(()),
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

    /// The larger of |t0| and |t1|.
    #[inline(always)]
    pub(super) fn scale(&self) -> C {
        self.t0.abs().max(&self.t1.abs())
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

/// The end of a step.
pub(super) struct Knot<C: Clock> {
    /// Its time.
    pub t: C,
    /// It is t1.
    pub last: C::Mask,
    /// It is one of the stops.
    pub stop: C::Mask,
    /// It is one of the multiples of a constant step size, or of the given times.
    pub grid: C::Mask,
}

/// The end of the step that starts at `carry.t`.
///
/// An end that comes within the slack of t1 or of a stop, or passes it, becomes that time, so the field is never
/// evaluated beyond.
#[inline(always)]
pub(super) fn next_knot<S: State>(
    scheme: &Scheme<S>,
    span: &Span<S::Clock>,
    carry: &Carry<S>,
) -> Knot<S::Clock> {
    let stops = scheme.limits.stops;
    let no = span.t0.lt(&span.t0);
    // The next time that no step may pass.
    let (wall, is_stop) = if stops.is_empty() {
        (span.t1.clone(), no.clone())
    } else {
        let (more, stop) =
            (carry.num_stops.lt(&carry.t.like(stops.len() as f64)), carry.num_stops.lookup(stops));
        let more = S::Clock::and(&more, &is_before(span, &stop));
        (S::Clock::select(&more, &stop, &span.t1), more)
    };
    let (proposed, at_wall, grid) = match scheme.controller {
        Controller::StepTo(StepTo { ts }) => {
            let next = carry.num_accepted.sub(&carry.num_off_grid).add(&carry.t.like(1.0));
            let (more, t) = (next.lt(&next.like(ts.len() as f64 - 1.0)), next.lookup(ts));
            let last = S::Clock::not(&S::Clock::and(&more, &is_before(span, &t)));
            let t = S::Clock::select(&last, &span.t1, &t);
            let stop = S::Clock::and(&is_stop, &S::Clock::and(&t.le(&wall), &wall.le(&t)));
            // Every stop is one of the times.
            return Knot { t, last, grid: stop.clone(), stop };
        }
        Controller::Constant(Constant { dt0 }) => {
            let next = carry.num_accepted.sub(&carry.num_off_grid).add(&carry.t.like(1.0));
            let grid = span.t0.add(&next.mul(&span.towards(*dt0)));
            let at_wall = passes(span, &wall, &grid);
            // Within the slack the two are one knot.
            let apart = span.slack.lt(&grid.sub(&wall).mul(&span.direction));
            let on_grid = S::Clock::not(&S::Clock::and(&at_wall, &apart));
            (grid, at_wall, on_grid)
        }
        Controller::Pid(_) => {
            let proposed = carry.t.add(&carry.dt);
            let at_wall = passes(span, &wall, &proposed);
            (proposed, at_wall, no)
        }
        Controller::Hairer(_) => {
            let proposed = carry.t.add(&carry.dt);
            // The published codes stretch a step by 1 % rather than leave so small a remainder.
            let stretched = carry.t.add(&carry.dt.mul(&carry.dt.like(1.01)));
            let at_wall = passes(span, &wall, &stretched);
            (proposed, at_wall, no)
        }
    };
    let t = S::Clock::select(&at_wall, &wall, &proposed);
    let last = S::Clock::and(&at_wall, &S::Clock::not(&is_stop));
    Knot { t, last, stop: S::Clock::and(&at_wall, &is_stop), grid }
}

/// Whether t comes before t1: always true of stops and given times, unless the span is a piece of theirs.
#[inline(always)]
fn is_before<C: Clock>(span: &Span<C>, t: &C) -> C::Mask {
    t.sub(&span.t1).mul(&span.direction).lt(&t.like(0.0))
}

#[inline(always)]
fn passes<C: Clock>(span: &Span<C>, wall: &C, proposed: &C) -> C::Mask {
    wall.sub(proposed).mul(&span.direction).lt(&span.slack)
}
