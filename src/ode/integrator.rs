//! The driver for plain Rust values: accepted steps and their dense output.
//!
//! [`Integrator`] owns the carry of a solve and runs [`attempts`](super::attempts) until the requested number
//! of steps is accepted. [`Stepper`](super::Stepper) exposes it to the user; [`plain`](super::plain) calls it
//! in a loop with a recorder, which decides what is saved.

use super::attempt::count_stiff;
use super::attempts::{Driven, Run};
use super::dense::Segment;
use super::retry::{Before, refuse, resume, take_back};
use super::stages::eval;
use super::step_end::next_step_end;
use super::stiff::{Consistency, make_memory};
use super::stiffness::StiffnessCheck;
use super::{
    Carry, ConfigError, FieldFailure, Interpolant, Native, Outcome, PlainState, Resolved, Scheme, SolveError,
    Span, VectorField, start, status,
};
use std::sync::Arc;

/// Which stages of the last accepted step are stored.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ready {
    Nothing,
    /// The method's stages.
    OwnStages,
    /// The method's stages and the extra stages of its dense output.
    Curve,
}

/// A solve between two steps.
pub(super) struct Integrator<Y: PlainState> {
    pub carry: Carry<Y>,
    pub span: Span<f64>,
    /// The start of the last accepted step; valid if [`advance`](Integrator::advance) was called with
    /// `remember`.
    before: Before<Y>,
    /// The step size that the stages were computed with, even if an event cuts the step short.
    h: f64,
    /// The dense output of the method in use, created when a step first needs it.
    interpolant: Option<Arc<Interpolant>>,
    /// The stages of the last accepted step, extra stages included; empty until they are needed.
    stages: Vec<Y>,
    ready: Ready,
    weights: Vec<f64>,
    /// The last time at which the algebraic equations were solved; NaN if there are none.
    solved_at: f64,
}

impl<Y: PlainState> Integrator<Y> {
    pub fn new(
        f: &dyn VectorField<Y>,
        (scheme, resolved): (&Scheme<Y>, &Resolved),
        (t0, t1): (f64, f64),
        y0: Y,
    ) -> Result<Self, SolveError> {
        let span = Span::new(t0, t1);
        let mut carry = started(f, (scheme, resolved), &span, y0)?;
        check_constraints(f, scheme, &span, &mut carry)?;
        let solved_at = if is_constrained(&carry) { t0 } else { f64::NAN };
        Ok(Integrator {
            before: Before::of(&carry),
            carry,
            span,
            h: 0.0,
            interpolant: None,
            stages: vec![],
            ready: Ready::Nothing,
            weights: vec![],
            solved_at,
        })
    }

    /// Starts again at t0 from `y`, the state after resets, with the algebraic equations solved for it.
    pub fn start_again(
        &mut self,
        f: &dyn VectorField<Y>,
        (scheme, resolved): (&Scheme<Y>, &Resolved),
        y: Y,
    ) -> Result<(), SolveError> {
        self.cut(self.carry.t, y);
        self.solve_constraints(f, scheme)?;
        if self.carry.status != status::RUNNING {
            return Ok(());
        }
        let mut carry = started(f, (scheme, resolved), &self.span, self.carry.y.clone())?;
        carry.num_fn_evals += self.carry.num_fn_evals;
        carry.num_jac_evals += self.carry.num_jac_evals;
        carry.num_factorizations += self.carry.num_factorizations;
        (self.before, self.carry) = (Before::of(&carry), carry);
        Ok(())
    }

    /// Attempts steps until `most` are accepted or the solve has ended. Returns how many were accepted, and
    /// appends their end times to `step_times`. With `remember`, the start of the step is stored, so that its
    /// dense output can be computed or the step undone; `most` is then 1.
    pub fn advance(
        &mut self,
        f: &dyn Driven<Y>,
        scheme: &Scheme<Y>,
        native: Native,
        (remember, most): (bool, u64),
        step_times: &mut Vec<f64>,
    ) -> Result<u64, SolveError> {
        self.ready = Ready::Nothing;
        self.pass_discontinuity(f, scheme)?;
        if remember {
            self.before.renew(&self.carry);
        }
        let first = step_times.len();
        // A step that ends at a discontinuity must be the last of its call, if there are algebraic equations.
        let is_watched = !self.solved_at.is_nan() && !scheme.limits.sides.is_empty();
        loop {
            let left = most - (step_times.len() - first) as u64;
            let most = if is_watched { left.min(1) } else { left };
            let run = Run { scheme, span: &self.span, carry: &mut self.carry, most, step_times };
            match f.attempts(native, run) {
                Err(failure) if !(failure.is_recoverable() && self.refuse(scheme)) => {
                    return Err(field_error(failure, self.carry.num_steps));
                }
                Err(_) => {}
                Ok(1) if left > 1 && is_watched => self.pass_discontinuity(f, scheme)?,
                Ok(_) => break,
            }
        }
        self.h = self.carry.h;
        Ok((step_times.len() - first) as u64)
    }

    /// Shortens the next attempt after the vector field failed in the last one. Returns false if no shorter
    /// step is allowed.
    fn refuse(&mut self, scheme: &Scheme<Y>) -> bool {
        let h = next_step_end(scheme, &self.span, &self.carry).t - self.carry.t;
        refuse(scheme, h, &mut self.carry)
    }

    /// Undoes the last accepted step, which must have been remembered, and stores `component` as the reason
    /// in the carry.
    pub fn take_back(&mut self, scheme: &Scheme<Y>, component: f64) {
        take_back(scheme, &self.before, (&true, &component), &mut self.carry);
        self.ready = Ready::Nothing;
    }

    /// The start of the last accepted step.
    pub fn t(&self) -> f64 {
        self.before.t
    }

    /// The dense output of the method of `scheme`, the one in use.
    pub fn interpolant(&mut self, scheme: &Scheme<Y>) -> &Arc<Interpolant> {
        self.interpolant.get_or_insert_with(|| Arc::new(Interpolant::of(&scheme.tableau)))
    }

    /// Allocates the stages of a step, and the weights of its dense output.
    pub fn reserve_stages(&mut self, scheme: &Scheme<Y>) {
        if self.stages.is_empty() {
            let n = self.interpolant(scheme).num_stages();
            self.stages = vec![self.before.y.clone(); n];
            self.weights = vec![0.0; n];
        }
    }

    /// Stores the method's own stages of the last accepted step, which must have been remembered. Evaluates
    /// the last stage of a FSAL method if it is not available.
    pub fn keep_stages(&mut self, f: &dyn VectorField<Y>, scheme: &Scheme<Y>) -> Result<(), SolveError> {
        if self.ready != Ready::Nothing {
            return Ok(());
        }
        let s = scheme.tableau.num_stages();
        self.reserve_stages(scheme);
        self.stages[0].copy_of(if scheme.carries_first() { &self.before.k0 } else { &self.carry.k[0] });
        for (stage, k) in self.stages[1..s].iter_mut().zip(&self.carry.k[1..s]) {
            stage.copy_of(k);
        }
        if scheme.tableau.is_fsal() {
            if self.knows_f1(scheme) {
                self.stages[s - 1].copy_of(&self.carry.k[0]);
            } else {
                self.carry.num_fn_evals += 1.0;
                let t = scheme.before(&self.span, &self.carry.t);
                eval(&f, &t, &self.carry.y, &mut self.stages[s - 1])
                    .map_err(|failure| field_error(failure, self.carry.num_steps))?;
            }
        }
        self.ready = Ready::OwnStages;
        Ok(())
    }

    /// Whether `k[0]` is f at the end of the step; if the method is not FSAL, only before t1. At a
    /// discontinuity, the value on the other side may have replaced it.
    fn knows_f1(&self, scheme: &Scheme<Y>) -> bool {
        scheme.carries_first() && scheme.before(&self.span, &self.carry.t) == self.carry.t
    }

    /// Computes all stages of the last accepted step's dense output. The step must have been remembered.
    pub fn complete(&mut self, f: &dyn VectorField<Y>, scheme: &Scheme<Y>) -> Result<(), SolveError> {
        self.keep_stages(f, scheme)?;
        if self.ready == Ready::Curve {
            return Ok(());
        }
        let s = scheme.tableau.num_stages();
        let renewed = self.knows_f1(scheme) && self.carry.status != status::COMPLETED;
        let interpolant = Arc::clone(self.interpolant(scheme));
        for (i, (c, row)) in interpolant.extra().enumerate() {
            let at = s + i;
            let is_f1 = i == 0 && interpolant.starts_with_f1();
            if is_f1 && renewed {
                self.stages[at].copy_of(&self.carry.k[0]);
                continue;
            }
            let (before, after) = self.stages.split_at_mut(at);
            if is_f1 {
                self.carry.y1.copy_of(&self.carry.y);
            } else {
                self.carry.y1.lincomb(&self.before.y, &self.h, row, before);
            }
            let t =
                if c == 1.0 { scheme.before(&self.span, &self.carry.t) } else { self.before.t + c * self.h };
            eval(&f, &t, &self.carry.y1, &mut after[0])
                .map_err(|failure| field_error(failure, self.carry.num_steps))?;
            self.carry.num_fn_evals += 1.0;
        }
        self.ready = Ready::Curve;
        Ok(())
    }

    /// The last accepted step, whose stages must be [complete](Self::complete).
    pub fn segment(&self) -> Segment<'_, Y> {
        Segment { t: self.before.t, h: self.h, y: &self.before.y, k: &self.stages }
    }

    /// The estimate of `h |lambda|` for the last accepted step, whose stages are stored.
    pub fn stiffness(&mut self, scheme: &Scheme<Y>, look: &StiffnessCheck) -> f64 {
        let step = (&self.before.y, &self.h, &self.stages[..scheme.tableau.num_stages()]);
        let (stages, arguments) = look.sizes(step, &scheme.tolerance, &mut self.carry.y1);
        stages / arguments
    }

    /// Writes the state at `t`, a time within the last accepted step, to `out`. The stages must be
    /// [complete](Self::complete).
    pub fn eval_into(&mut self, t: f64, out: &mut Y) {
        let segment = Segment { t: self.before.t, h: self.h, y: &self.before.y, k: &self.stages };
        segment.eval(created(self.interpolant.as_ref()), t, &mut self.weights, out);
    }

    /// Writes the sizes of the terms whose sum is the state at `t`, `|y_j| + |h| sum_i |w_i k_ij|`, to `out`. The
    /// rounding error of [`eval_into`](Self::eval_into) is relative to them.
    pub fn sizes_into(&mut self, t: f64, out: &mut Vec<f64>) {
        out.clear();
        self.before.y.each_component(&mut |y| out.push(y.abs()));
        created(self.interpolant.as_ref()).weight_sizes((t - self.before.t) / self.h, &mut self.weights);
        for (weight, k) in self.weights.iter().zip(&self.stages) {
            let mut sizes = out.iter_mut();
            k.each_component(&mut |k| {
                if let Some(size) = sizes.next() {
                    *size += (self.h * weight * k).abs();
                }
            });
        }
    }

    /// Writes dy/dt at `t`, a time within the last accepted step, to `out`. The stages must be
    /// [complete](Self::complete).
    pub fn derivative_into(&mut self, t: f64, out: &mut Y) {
        let mut zero = self.before.y.clone();
        zero.lincomb(&self.before.y, &-1.0, &[1.0], std::slice::from_ref(&self.before.y));
        let segment = Segment { t: self.before.t, h: self.h, y: &self.before.y, k: &self.stages };
        segment.derivative(created(self.interpolant.as_ref()), t, &mut self.weights, &zero, out);
    }

    /// Cuts the last accepted step short: it ends at `t` with the state `y`.
    pub fn cut(&mut self, t: f64, y: Y) {
        (self.carry.t, self.carry.y) = (t, y);
    }

    /// Continues from the carry's state, which may have been changed. `t_end` is the end of the last accepted
    /// step before any cut: if it differs from the carry's t, the step was cut short.
    pub fn resume(
        &mut self,
        f: &dyn VectorField<Y>,
        scheme: &Scheme<Y>,
        t_end: f64,
    ) -> Result<(), SolveError> {
        let step = (&self.before.t, &self.before.num_off_grid, &t_end);
        resume(&f, scheme, &self.span, step, &true, &mut self.carry)
            .map_err(|failure| field_error(failure, self.carry.num_steps))?;
        self.solve_constraints(f, scheme)
    }

    /// Solves the algebraic equations again if the carry's time is a discontinuity.
    fn pass_discontinuity(&mut self, f: &dyn VectorField<Y>, scheme: &Scheme<Y>) -> Result<(), SolveError> {
        let t = self.carry.t;
        let is_there = !scheme.limits.sides.is_empty() && scheme.after(&self.span, &t) != t;
        if is_there && t != self.solved_at { self.solve_constraints(f, scheme) } else { Ok(()) }
    }

    /// Replaces the carry's state by one that satisfies the algebraic equations. If there is none, the solve
    /// ends.
    fn solve_constraints(&mut self, f: &dyn VectorField<Y>, scheme: &Scheme<Y>) -> Result<(), SolveError> {
        if self.solved_at.is_nan() || self.carry.status != status::RUNNING {
            return Ok(());
        }
        let (found, y) = solve_constraints(f, scheme, &self.span, &mut self.carry)?;
        self.solved_at = self.carry.t;
        let (end, index) = match found {
            Consistency::Unknown => return Ok(()),
            Consistency::Solved(_) => {
                self.carry.y = y;
                return Ok(());
            }
            Consistency::Unsolved(correction) => (status::INCONSISTENT, correction.equation),
            Consistency::Open { component } => (status::SINGULAR, component),
        };
        (self.carry.status, self.carry.component) = (end, index as f64);
        Ok(())
    }

    /// Continues with another method, whose memory and controller history start anew.
    pub fn change_method(
        &mut self,
        f: &dyn VectorField<Y>,
        scheme: &Scheme<Y>,
        resolved: &Resolved,
    ) -> Result<(), SolveError> {
        let carry = &mut self.carry;
        make_memory(scheme, resolved, carry);
        (carry.inv_prev, carry.inv_prev2, carry.h_prev) = (1.0, 1.0, 0.0);
        (self.interpolant, self.stages, self.ready) = (None, vec![], Ready::Nothing);
        if scheme.carries_first() && carry.status == status::RUNNING {
            let t = scheme.after(&self.span, &carry.t);
            eval(&f, &t, &carry.y, &mut carry.k[0])
                .map_err(|failure| field_error(failure, carry.num_steps))?;
            carry.num_fn_evals += 1.0;
        }
        Ok(())
    }

    /// The norm `max_i sum_j |df_i/dy_j|` of the last step's Jacobian; 0 for a method without a Jacobian.
    pub fn jacobian_norm(&self) -> f64 {
        self.carry.stiff.as_ref().map_or(0.0, |stiff| stiff.jacobian_norm())
    }

    /// Why the solve ended; `None` while it runs.
    pub fn outcome(&self, scheme: &Scheme<Y>) -> Option<Outcome> {
        let diagnosis = || self.carry.stiff.as_ref().and_then(|stiff| stiff.diagnosis());
        Outcome::of(&self.carry, scheme.limits.dt_min)
            .map(|outcome| outcome.diagnosed(diagnosis(), scheme.norm.is_some()))
    }
}

/// The dense output of a step whose stages are complete.
fn created(interpolant: Option<&Arc<Interpolant>>) -> &Interpolant {
    interpolant.expect("invariant: a step is complete before its dense output is evaluated")
}

/// The carry at t0, with the memory of the method. Not inlined, because two functions call it.
#[inline(never)]
fn started<Y: PlainState>(
    f: &dyn VectorField<Y>,
    (scheme, resolved): (&Scheme<Y>, &Resolved),
    span: &Span<f64>,
    y0: Y,
) -> Result<Carry<Y>, SolveError> {
    let mut carry = start(&f, scheme, span, y0).map_err(|failure| field_error(failure, 0.0))?;
    make_memory(scheme, resolved, &mut carry);
    Ok(carry)
}

/// The largest difference, in tolerances, of y0 from a state that satisfies the algebraic equations.
const VIOLATION: f64 = 10.0;

fn is_constrained<Y: PlainState>(carry: &Carry<Y>) -> bool {
    carry.stiff.as_ref().is_some_and(|stiff| stiff.is_constrained())
}

/// Solves the algebraic equations just after the carry's time, from the carry's state, and returns the solution.
fn solve_constraints<Y: PlainState>(
    f: &dyn VectorField<Y>,
    scheme: &Scheme<Y>,
    span: &Span<f64>,
    carry: &mut Carry<Y>,
) -> Result<(Consistency, Y), SolveError> {
    let (t, mut y) = (scheme.after(span, &carry.t), carry.y.clone());
    let Carry { stiff: Some(stiff), k, y1, .. } = carry else { return Ok((Consistency::Unknown, y)) };
    let found = stiff.solve_constraints(f, scheme, &t, &mut y, (y1, &mut k[0]));
    count_stiff(&true, carry);
    match found {
        Ok(found) => Ok((found, y)),
        Err(failure) => Err(field_error(failure, carry.num_steps)),
    }
}

/// Refuses a y0 that differs by more than [`VIOLATION`] tolerances from a state that satisfies the algebraic
/// equations, and algebraic equations that do not determine a component.
fn check_constraints<Y: PlainState>(
    f: &dyn VectorField<Y>,
    scheme: &Scheme<Y>,
    span: &Span<f64>,
    carry: &mut Carry<Y>,
) -> Result<(), SolveError> {
    if carry.status != status::RUNNING || !is_constrained(carry) {
        return Ok(());
    }
    match solve_constraints(f, scheme, span, carry)?.0 {
        Consistency::Open { component } => Err(ConfigError::HigherIndex { component, t0: span.t0 }.into()),
        Consistency::Solved(correction) | Consistency::Unsolved(correction)
            if correction.tolerances > VIOLATION =>
        {
            let super::stiff::Correction { component, given, needed, tolerances, equation } = correction;
            Err(ConfigError::InconsistentStart { equation, component, given, needed, tolerances }.into())
        }
        _ => Ok(()),
    }
}

pub(super) fn field_error(failure: FieldFailure<f64>, num_steps: f64) -> SolveError {
    // A comparison of the Jacobian with the vector field found a wrong setting.
    match failure.source.downcast::<ConfigError>() {
        Ok(error) => SolveError::Config(*error),
        Err(source) => SolveError::of_field(failure.t, num_steps as u64, source),
    }
}
