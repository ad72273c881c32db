//! The driver for host values: one accepted step at a time.
//!
//! [`Stepper`] owns what a solve changes and asks for [`attempts`](super::attempts) until a step is accepted;
//! [`Steps`](super::Steps) lends that to the user. The whole solve in `host` is the same loop with a recorder behind it. It
//! knows the carry and the step just taken; what is kept of a step is the recorder's business.

use super::attempts::{Driven, Run};
use super::dense::Segment;
use super::stages::eval;
use super::{
    Carry, Field, FieldFailure, HostState, Interpolant, Native, OdeError, Outcome, Scheme, Span, start,
    status,
};
use std::sync::Arc;

/// Which stages of the step last accepted are at hand.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ready {
    Nothing,
    /// Those of the method.
    OwnStages,
    /// Those of its dense output too.
    Curve,
}

/// A solve between two steps.
pub(super) struct Stepper<Y: HostState> {
    pub carry: Carry<Y>,
    pub span: Span<f64>,
    /// The start of the step last accepted; of meaning where it was to be remembered.
    t: f64,
    y: Y,
    k0: Y,
    /// The step's size, which its stages belong to also where an event cuts it short.
    h: f64,
    /// Stops off the grid before it.
    num_off_grid: f64,
    pub interpolant: Arc<Interpolant>,
    /// Stages of the step last accepted, those for dense output included, once they were asked for.
    stages: Vec<Y>,
    ready: Ready,
    weights: Vec<f64>,
}

impl<Y: HostState> Stepper<Y> {
    pub fn new(f: &dyn Field<Y>, scheme: &Scheme<Y>, (t0, t1): (f64, f64), y0: Y) -> Result<Self, OdeError> {
        let span = Span::new(t0, t1);
        let (y, k0) = (y0.clone(), y0.clone());
        let carry = start(&f, scheme, &span, y0).map_err(|failure| field_error(failure, 0.0))?;
        let interpolant = Arc::new(Interpolant::of(&scheme.tableau));
        let weights = vec![0.0; interpolant.num_stages()];
        Ok(Stepper {
            carry,
            span,
            t: t0,
            y,
            k0,
            h: 0.0,
            num_off_grid: 0.0,
            interpolant,
            stages: vec![],
            ready: Ready::Nothing,
            weights,
        })
    }

    /// Attempts steps until `most` are accepted or the solve has ended; gives how many were, and adds their ends to
    /// `knots`. `remember`: whether the curve of the last may be asked for; then `most` is 1.
    pub fn advance(
        &mut self,
        f: &dyn Driven<Y>,
        scheme: &Scheme<Y>,
        native: Native,
        (remember, most): (bool, u64),
        knots: &mut Vec<f64>,
    ) -> Result<u64, OdeError> {
        let carry = &mut self.carry;
        if remember {
            self.t = carry.t;
            self.y.copy_of(&carry.y);
            self.k0.copy_of(&carry.k[0]);
        }
        self.ready = Ready::Nothing;
        self.num_off_grid = carry.num_off_grid;
        let run = Run { scheme, span: &self.span, carry, most, knots };
        let accepted = f.attempts(native, run).map_err(|failure| field_error(failure, carry.num_steps))?;
        self.h = carry.h;
        Ok(accepted)
    }

    /// Where the step last accepted starts.
    pub fn t(&self) -> f64 {
        self.t
    }

    /// Copies the method's own stages of the step last accepted, which must have been remembered.
    pub fn keep_stages(&mut self, f: &dyn Field<Y>, scheme: &Scheme<Y>) -> Result<(), OdeError> {
        if self.ready != Ready::Nothing {
            return Ok(());
        }
        let s = scheme.tableau.num_stages();
        if self.stages.is_empty() {
            self.stages = vec![self.y.clone(); self.interpolant.num_stages()];
        }
        self.stages[0].copy_of(&self.k0);
        for (stage, k) in self.stages[1..s].iter_mut().zip(&self.carry.k[1..s]) {
            stage.copy_of(k);
        }
        if scheme.tableau.is_fsal() {
            if self.knows_f1(scheme) {
                self.stages[s - 1].copy_of(&self.carry.k[0]);
            } else {
                self.carry.num_field_evals += 1.0;
                let t = scheme.before(&self.span, &self.carry.t);
                eval(&f, &t, &self.carry.y, &mut self.stages[s - 1])
                    .map_err(|failure| field_error(failure, self.carry.num_steps))?;
            }
        }
        self.ready = Ready::OwnStages;
        Ok(())
    }

    /// Where the step ended, f is known unless a jump has replaced it.
    fn knows_f1(&self, scheme: &Scheme<Y>) -> bool {
        scheme.carries_first() && scheme.jumps_at(&self.carry.t) == 0.0
    }

    /// The step last accepted, with every stage that its curve needs; it must have been remembered.
    pub fn complete(&mut self, f: &dyn Field<Y>, scheme: &Scheme<Y>) -> Result<(), OdeError> {
        self.keep_stages(f, scheme)?;
        if self.ready == Ready::Curve {
            return Ok(());
        }
        let s = scheme.tableau.num_stages();
        let renewed = self.knows_f1(scheme) && self.carry.status != status::COMPLETED;
        for (i, (c, row)) in self.interpolant.clone().extra().enumerate() {
            let at = s + i;
            if i == 0 && self.interpolant.starts_with_f1() && renewed {
                self.stages[at].copy_of(&self.carry.k[0]);
                continue;
            }
            let (before, after) = self.stages.split_at_mut(at);
            self.carry.y1.lincomb(&self.y, &self.h, row, before);
            let t = if c == 1.0 { scheme.before(&self.span, &self.carry.t) } else { self.t + c * self.h };
            eval(&f, &t, &self.carry.y1, &mut after[0])
                .map_err(|failure| field_error(failure, self.carry.num_steps))?;
            self.carry.num_field_evals += 1.0;
        }
        self.ready = Ready::Curve;
        Ok(())
    }

    /// The step last accepted; complete.
    pub fn segment(&self) -> Segment<'_, Y> {
        Segment { t: self.t, h: self.h, y: &self.y, k: &self.stages }
    }

    /// `|h sum_i a_i k_i|` and `|h sum_i b_i k_i|` over the method's stages of the step last accepted, which were kept, in
    /// units of the tolerance.
    pub fn sizes(&mut self, scheme: &Scheme<Y>, a: &[f64], b: &[f64]) -> (f64, f64) {
        let (k, y, scratch) = (&self.stages[..a.len()], &self.y, &mut self.carry.y1);
        let mut size = |weights| scratch.error_ratio(&self.h, weights, k, y, y, &scheme.tolerance);
        (size(a), size(b))
    }

    /// The state at `t` within the step last accepted, which is complete.
    pub fn eval_into(&mut self, t: f64, out: &mut Y) {
        let segment = Segment { t: self.t, h: self.h, y: &self.y, k: &self.stages };
        segment.eval(&self.interpolant, t, &mut self.weights, out);
    }

    /// Ends the step last accepted at `t`, where the state is `y`, or goes on from a changed state: counters that
    /// follow t are set back, and the next step's first stage is computed anew.
    pub fn restart(&mut self, f: &dyn Field<Y>, scheme: &Scheme<Y>, t: f64, y: Y) -> Result<(), OdeError> {
        let carry = &mut self.carry;
        if t != carry.t {
            // The end that was reached is reached no more.
            if carry.status == status::COMPLETED {
                carry.status = status::RUNNING;
            }
            carry.num_off_grid = self.num_off_grid + 1.0;
            let sign = self.span.direction;
            let stops = scheme.limits.stops;
            carry.num_stops = stops.partition_point(|s| s * sign <= t * sign) as f64;
        }
        carry.t = t;
        carry.y = y;
        if scheme.carries_first() && carry.status == status::RUNNING {
            let t = scheme.after(&self.span, &carry.t);
            carry.num_field_evals += 1.0;
            let Carry { k, y, num_steps, .. } = carry;
            eval(&f, &t, y, &mut k[0]).map_err(|failure| field_error(failure, *num_steps))?;
        }
        Ok(())
    }

    /// Why the solve ended; `None` while it runs.
    pub fn outcome(&self, scheme: &Scheme<Y>) -> Option<Outcome> {
        Outcome::of(&self.carry, scheme.limits.dt_min)
    }
}

pub(super) fn field_error(failure: FieldFailure<f64>, num_steps: f64) -> OdeError {
    OdeError::Field { t: failure.t, step: num_steps as u64, source: failure.source }
}
