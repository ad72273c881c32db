//! `Stepper`: a solve of plain Rust values, one step per call.
//!
//! It calls the integrator and handles changes that the caller makes between two steps. It takes the same
//! steps as a solve by [`plain`](super::plain).

use super::integrator::Integrator;
use super::stiffness::StiffnessTest;
use super::switch::{Schemes, Switch};
use super::{
    Carry, ConfigError, Norm, Outcome, PlainState, Resolved, Scheme, SolveError, StateFunctions, Stats,
    VectorField, Warning,
};

/// A solve with one accepted step per call, created by [`Ode::stepper`](super::Ode::stepper).
///
/// The steps are the same as those of [`Ode::solve`](super::Ode::solve), unless the caller changes the state.
/// The caller handles events, saved times and callbacks.
pub struct Stepper<'a, Y: PlainState, F> {
    field: &'a F,
    norm: Option<&'a Norm<'a, Y>>,
    functions: &'a StateFunctions<'a, Y>,
    resolved: Resolved,
    /// Whether `step` returns `Ok` if the solve ends early.
    allow_incomplete: bool,
    integrator: Integrator<Y>,
    /// Whether the caller may have changed y after the last step.
    touched: bool,
    /// If so, y at the end of that step. The memory is kept for the next change.
    unchanged: Option<Y>,
    stiffness: StiffnessTest<Y>,
    switch: Switch,
    /// Scratch.
    step_times: Vec<f64>,
}

/// One accepted step, which borrows its state.
#[derive(Debug)]
#[non_exhaustive]
pub struct Step<'s, Y> {
    /// The end of the step.
    pub t: f64,
    /// The size of the step, signed.
    pub dt: f64,
    /// The state at the end of the step.
    pub y: &'s Y,
    /// The error ratio of the step; 0 without an error estimate.
    pub error_ratio: f64,
}

impl<'a, Y: PlainState, F: VectorField<Y>> Stepper<'a, Y, F> {
    pub(super) fn new(
        field: &'a F,
        (norm, functions, allow_incomplete): (Option<&'a Norm<'a, Y>>, &'a StateFunctions<'a, Y>, bool),
        resolved: Resolved,
        span: (f64, f64),
        y0: Y,
    ) -> Result<Self, SolveError<()>> {
        let scheme = resolved.scheme(norm).differentiated_by(Some(functions));
        let mut integrator = Integrator::new(field, (&scheme, &resolved), span, y0)?;
        let mut stiffness = StiffnessTest::of(&integrator, &scheme, &resolved);
        stiffness.prepare(&mut integrator, &scheme);
        Ok(Stepper {
            field,
            norm,
            functions,
            resolved,
            allow_incomplete,
            integrator,
            touched: false,
            unchanged: None,
            stiffness,
            switch: Switch::default(),
            step_times: Vec::new(),
        })
    }

    /// Attempts steps until one is accepted. Returns `None` once t1 is reached, and, with
    /// [`allow_incomplete`](super::Ode::allow_incomplete), after an early end.
    ///
    /// # Errors
    /// [`SolveError::Config`] for a change of y that changed its shape, until the caller restores the shape;
    /// [`SolveError::Field`] for a vector field that failed; [`SolveError::Incomplete`] if the solve ended
    /// before t1, unless [`allow_incomplete`](super::Ode::allow_incomplete) is set. The error's `partial` is
    /// empty: the stepper still holds the last good state.
    #[allow(clippy::should_implement_trait, reason = "it borrows: an iterator would clone a state per step")]
    pub fn step(&mut self) -> Result<Option<Step<'_, Y>>, SolveError<()>> {
        let accepted = self.advance()?;
        if !accepted {
            return self.ended().map(|()| None);
        }
        let Carry { t, h, y, error_ratio, .. } = &self.integrator.carry;
        Ok(Some(Step { t: *t, dt: *h, y, error_ratio: *error_ratio }))
    }

    /// Attempts steps until one is accepted; returns whether one was.
    fn advance(&mut self) -> Result<bool, SolveError> {
        if self.touched
            && let Some(unchanged) = &self.unchanged
        {
            self.integrator.carry.y.conforms(unchanged).map_err(|change| change.between_steps())?;
        }
        let Stepper { field, norm, functions, ref resolved, ref mut integrator, ref mut switch, .. } = *self;
        let first = resolved.scheme(norm).differentiated_by(Some(functions));
        let stiff = resolved.stiff_scheme(norm).map(|scheme| scheme.differentiated_by(Some(functions)));
        let schemes = Schemes { first: &first, stiff: stiff.as_ref(), resolved };
        // The method is switched only here, before the next step, because the dense output of the last step
        // needs that step's method.
        if integrator.carry.accepted {
            switch.after_step(field, &schemes, integrator, &mut self.stiffness)?;
        }
        let scheme = switch.scheme(&schemes);
        if self.touched {
            let t = integrator.carry.t;
            integrator.resume(field, scheme, t)?;
            self.touched = false;
        }
        self.step_times.clear();
        let native = switch.native(resolved);
        if integrator.advance(field, scheme, native, (true, 1), &mut self.step_times)? == 0 {
            return Ok(false);
        }
        if !switch.is_stiff() {
            self.stiffness.after_steps(1, integrator, field, &schemes)?;
        }
        Ok(true)
    }

    /// The result when no step is left.
    fn ended(&self) -> Result<(), SolveError<()>> {
        match self.outcome() {
            Some(outcome) if !outcome.is_success() && !self.allow_incomplete => {
                let Resolved { rtol, atol, controller, .. } = &self.resolved;
                Err(SolveError::incomplete(outcome, None, (rtol, atol, controller.is_adaptive()), ()))
            }
            _ => Ok(()),
        }
    }

    /// The time reached.
    pub fn t(&self) -> f64 {
        self.integrator.carry.t
    }
    /// The state at the time reached.
    pub fn y(&self) -> &Y {
        &self.integrator.carry.y
    }
    /// The state at the time reached, for changes. The next step's first stage is then computed anew. The shape of
    /// the state must not change: the next step returns an error if it did.
    pub fn y_mut(&mut self) -> &mut Y {
        if !self.touched {
            let y = &self.integrator.carry.y;
            self.unchanged.get_or_insert_with(|| y.clone()).copy_of(y);
            self.touched = true;
        }
        &mut self.integrator.carry.y
    }
    /// The size of the next attempt, signed, before it is shortened to end at t1, at one of the `tstops` or
    /// at a discontinuity; 0 with [`StepTo`](super::StepTo).
    pub fn dt(&self) -> f64 {
        self.integrator.carry.dt
    }
    /// The state at a time within the last step, before any change by the caller.
    ///
    /// # Errors
    /// A time outside that step, or no step yet; a vector field that failed in an extra stage of dense output.
    pub fn interpolate(&mut self, t: f64) -> Result<Y, SolveError> {
        let (t0, t1) = (self.integrator.t(), self.integrator.carry.t);
        if !(t0.min(t1) <= t && t <= t0.max(t1)) || t0 == t1 {
            return Err(ConfigError::OutsideInterval { t, t0, t1 }.into());
        }
        let first = self.resolved.scheme(self.norm).differentiated_by(Some(self.functions));
        let stiff = self.resolved.stiff_scheme(self.norm);
        let schemes = Schemes { first: &first, stiff: stiff.as_ref(), resolved: &self.resolved };
        let changed = self.unchanged.as_mut().filter(|_| self.touched);
        let Some(unchanged) = changed else {
            return interpolated(&mut self.integrator, self.field, self.switch.scheme(&schemes), t);
        };
        std::mem::swap(&mut self.integrator.carry.y, unchanged);
        let y = interpolated(&mut self.integrator, self.field, self.switch.scheme(&schemes), t);
        std::mem::swap(&mut self.integrator.carry.y, unchanged);
        y
    }
    /// The counters so far.
    pub fn stats(&self) -> Stats {
        Stats::of(&self.integrator.carry)
    }
    /// Warnings so far.
    pub fn warnings(&self) -> Vec<Warning> {
        // A method that switches has already done what the warning recommends.
        let switches = self.resolved.stiff_scheme(self.norm).is_some();
        self.stiffness.warning().filter(|_| !switches).into_iter().collect()
    }
    /// Why the solve ended; `None` while it runs.
    pub fn outcome(&self) -> Option<Outcome> {
        let scheme = self.resolved.scheme(self.norm).differentiated_by(Some(self.functions));
        self.integrator.outcome(&scheme)
    }
}

/// The state at `t`, a time within the last step.
fn interpolated<Y: PlainState>(
    integrator: &mut Integrator<Y>,
    field: &dyn VectorField<Y>,
    scheme: &Scheme<Y>,
    t: f64,
) -> Result<Y, SolveError> {
    integrator.complete(field, scheme)?;
    let mut out = integrator.carry.y.clone();
    integrator.eval_into(t, &mut out);
    Ok(out)
}
