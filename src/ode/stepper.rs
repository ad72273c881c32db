//! A solve by hand: the stepper of plain Rust values, lent to the user step by step.
//!
//! It knows the stepper and what a caller may change between two steps. It must never know how steps are attempted: what it
//! does is what the whole solve in `host` does with a recorder behind it.

use super::integrator::Integrator;
use super::stiffness::StiffnessTest;
use super::switch::{Schemes, Switch};
use super::{
    Carry, ConfigError, Norm, Outcome, PlainState, Resolved, SolveError, StateFunctions, Stats, VectorField,
    Warning,
};

/// A solve by hand, one accepted step at a time: [`Ode::stepper`](super::Ode::stepper).
///
/// Everything the whole solve does to step sizes is done here too; events, saved times and callbacks are the
/// caller's own.
pub struct Stepper<'a, Y: PlainState, F> {
    field: &'a F,
    norm: Option<&'a Norm<'a, Y>>,
    functions: &'a StateFunctions<'a, Y>,
    resolved: Resolved,
    /// Whether an early end is no error.
    allow_incomplete: bool,
    integrator: Integrator<Y>,
    /// The caller may have changed y.
    touched: bool,
    stiffness: StiffnessTest,
    switch: Switch,
    /// Scratch.
    step_times: Vec<f64>,
}

/// One accepted step, lent.
#[derive(Debug)]
#[non_exhaustive]
pub struct Step<'s, Y> {
    /// Where it ends.
    pub t: f64,
    /// Its size, signed.
    pub dt: f64,
    /// The state at its end.
    pub y: &'s Y,
    /// Its scaled error; 0 where nobody estimates it.
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
        let mut stiffness = StiffnessTest::of(&scheme, resolved.native().method);
        stiffness.prepare(&mut integrator, &scheme);
        Ok(Stepper {
            field,
            norm,
            functions,
            resolved,
            allow_incomplete,
            integrator,
            touched: false,
            stiffness,
            switch: Switch::default(),
            step_times: Vec::new(),
        })
    }

    /// Takes steps until one is accepted; `None` once t1 is reached.
    ///
    /// # Errors
    /// [`SolveError::Field`] for a field that failed; [`SolveError::Incomplete`] where the solve ended before t1, unless
    /// [`allow_incomplete`](super::Ode::allow_incomplete) was asked for. Its `partial` is empty: the last good state is
    /// here, and can be read on.
    #[allow(clippy::should_implement_trait, reason = "it lends: an iterator would clone a state a step")]
    pub fn step(&mut self) -> Result<Option<Step<'_, Y>>, SolveError<()>> {
        let accepted = self.advance()?;
        if !accepted {
            return self.ended().map(|()| None);
        }
        let Carry { t, h, y, error_ratio, .. } = &self.integrator.carry;
        Ok(Some(Step { t: *t, dt: *h, y, error_ratio: *error_ratio }))
    }

    /// Takes steps until one is accepted; whether one was.
    fn advance(&mut self) -> Result<bool, SolveError> {
        let Stepper { field, norm, functions, ref resolved, ref mut integrator, ref mut switch, .. } = *self;
        let first = resolved.scheme(norm).differentiated_by(Some(functions));
        let stiff = resolved.stiff_scheme(norm).map(|scheme| scheme.differentiated_by(Some(functions)));
        let schemes = Schemes { first: &first, stiff: stiff.as_ref(), resolved };
        // Not before: the curve of the last step is that of its own method.
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
            self.stiffness.after_steps(1, integrator, field, scheme)?;
        }
        Ok(true)
    }

    /// What it means that no step is left.
    fn ended(&self) -> Result<(), SolveError<()>> {
        match self.outcome() {
            Some(outcome) if !outcome.is_success() && !self.allow_incomplete => {
                let Resolved { rtol, atol, .. } = self.resolved.clone();
                Err(SolveError::incomplete(outcome, None, (rtol, atol), ()))
            }
            _ => Ok(()),
        }
    }

    /// The time reached.
    pub fn t(&self) -> f64 {
        self.integrator.carry.t
    }
    /// The state there.
    pub fn y(&self) -> &Y {
        &self.integrator.carry.y
    }
    /// The state there, to be changed; the next step's first stage is then computed anew.
    pub fn y_mut(&mut self) -> &mut Y {
        self.touched = true;
        &mut self.integrator.carry.y
    }
    /// The size that the next attempt has, signed, not yet cut at t1.
    pub fn dt(&self) -> f64 {
        self.integrator.carry.dt
    }
    /// The state at a time within the step last taken.
    ///
    /// # Errors
    /// A time outside that step, or no step yet; a field that failed, of a method whose dense output evaluates it.
    pub fn interpolate(&mut self, t: f64) -> Result<Y, SolveError> {
        let (t0, t1) = (self.integrator.t(), self.integrator.carry.t);
        if !(t0.min(t1) <= t && t <= t0.max(t1)) || t0 == t1 {
            return Err(ConfigError::OutsideInterval { t, t0, t1 }.into());
        }
        let scheme = self.resolved.scheme(self.norm).differentiated_by(Some(self.functions));
        self.integrator.complete(self.field, &scheme)?;
        let mut out = self.integrator.carry.y.clone();
        self.integrator.eval_into(t, &mut out);
        Ok(out)
    }
    /// What it took so far.
    pub fn stats(&self) -> Stats {
        Stats::of(&self.integrator.carry)
    }
    /// What the user should know of beside the numbers.
    pub fn warnings(&self) -> Vec<Warning> {
        self.stiffness.warning().into_iter().collect()
    }
    /// Why the solve ended; `None` while it goes on.
    pub fn outcome(&self) -> Option<Outcome> {
        let scheme = self.resolved.scheme(self.norm).differentiated_by(Some(self.functions));
        self.integrator.outcome(&scheme)
    }
}
