//! Records a solve: the start in the graph around it, `attempt` and `step` as bodies of the loop.

use super::saved::{Curve, Saved, Step};
use super::state::TreeState;
use super::{Adjoint, Forecast, Options, Solution, Stats, backsolve};
use crate::array::DType;
use crate::graph::{Op, Solve, Taps, Type};
use crate::ode::{
    self, Carry, Clock, Constant, Controller, Field, FieldFailure, OdeError, Scheme, Span, StepTo, status,
};
use crate::tensor::{Check, Tensor, Traced, Tree, align, apply, register_check, trace, tuple};
use std::sync::Arc;

/// What a recorded solve integrates and how.
pub(super) struct Problem<'a, Y: TreeState, F> {
    pub(super) field: &'a F,
    pub(super) scheme: &'a Scheme<'a, Y>,
    pub(super) options: &'a Options,
    pub(super) saved: &'a Saved,
    /// What saved times are taken from, if there are some inside of steps.
    curve: Option<Curve>,
}

/// Solves `y' = f(t, y)` from t0 to t1 on tensors, traced or concrete.
///
/// # Errors
/// What the field said while it was recorded.
pub(crate) fn solve<Y: TreeState, F: Field<Y>>(
    field: &F,
    scheme: &Scheme<'_, Y>,
    (options, saved): (&Options, &Saved),
    (t0, t1): (&Tensor, &Tensor),
    y0: &Y,
) -> Result<Solution<Y>, OdeError> {
    let curve = (saved.num_times() > 0).then(|| Curve::of(scheme));
    let problem = Problem { field, scheme, options, saved, curve };
    let (t0, t1) = (t0.cast(DType::F64), t1.cast(DType::F64));
    if let Adjoint::Backsolve { rtol, atol } = options.adjoint {
        return backsolve::record(&problem, (rtol, atol), (&t0, &t1), y0);
    }
    let mut args = vec![t0, t1];
    args.extend(y0.leaves());
    if args.iter().chain(&saved.ts).any(Tensor::is_traced) {
        return problem.record(&args[0], &args[1], y0);
    }
    // Nothing is traced here, though the field may hold tracers: one program of its own.
    let mut failure = None;
    let traced = trace(&args.iter().map(Tensor::ty).collect::<Vec<_>>(), |x| {
        match problem.record(&x[0], &x[1], &y0.with_leaves(x[2..].to_vec())) {
            Ok(solution) => (solution.leaves(), Some(solution)),
            Err(e) => {
                failure = Some(e);
                (vec![], None)
            }
        }
    });
    if let Some(e) = failure {
        return Err(e);
    }
    args.extend(traced.captures.iter().cloned());
    let mut leaves = apply(&traced.func, &args);
    for values in leaves.split_off(traced.num_outputs) {
        register_check(Check { values });
    }
    Ok(traced.aux.expect("invariant: a solution where there is no failure").with_leaves(leaves))
}

impl<'a, Y: TreeState, F: Field<Y>> Problem<'a, Y, F> {
    /// One that saves the end alone.
    pub(super) fn to_its_end(field: &'a F, scheme: &'a Scheme<'a, Y>, options: &'a Options) -> Self {
        Problem { field, scheme, options, saved: &Saved::END, curve: None }
    }

    pub(super) fn record(&self, t0: &Tensor, t1: &Tensor, y0: &Y) -> Result<Solution<Y>, OdeError> {
        let span = Span::new(t0.clone(), t1.clone());
        let mut start = ode::start(self.field, self.scheme, &span, y0.clone()).map_err(failed)?;
        let attempt = self.attempt(&span, &mut start)?;
        let step = self.step(&span, y0)?;
        let (bodies, captures) = align(&[&attempt, &step]);
        let [attempt, step]: [_; 2] = bodies.try_into().expect("invariant: a body for each trace");

        let mut args = vec![self.forecast(&span), start.t.clone()];
        args.extend(self.saved.ts.as_ref().map(Tensor::stop_gradient));
        args.extend(self.carried(&mut start));
        args.extend(captures);
        let num_carry = y0.leaves().len();
        let num_ext = attempt.num_outputs() - 4 - step.num_outputs();
        let (taps, policy) = (Taps::at(self.saved.num_times()), self.options.adjoint.policy());
        let op = Solve { attempt, step, num_carry, num_ext, taps, policy };
        let out = tuple(Op::Solve(Arc::new(op)), args.iter());

        let mut end = start;
        self.load(&mut end, &out);
        let reached = (&end.t, &end.y);
        let inner = self.curve.as_ref().zip(self.saved.ts.as_ref());
        let inner = inner.map(|(curve, ts)| (ts, curve.eval(ts, &out[num_carry + num_ext..], reached)));
        let mut solution = solution(&end, self.scheme.limits.dt_min);
        let inner = inner.as_ref().map(|(ts, ys)| (*ts, ys));
        (solution.ts, solution.ys) = self.saved.join((t0, y0), inner, reached);
        Ok(solution)
    }

    /// Everything the loop carries, in one order: y, the clocks, FSAL's stage.
    fn carried(&self, carry: &mut Carry<Y>) -> Vec<Tensor> {
        let mut out = carry.y.leaves();
        out.extend(carry.clocks_mut(self.scheme).iter().map(|c| (**c).clone()));
        if self.scheme.carries_first() {
            out.extend(carry.k[0].leaves());
        }
        out
    }

    /// The inverse of [`Problem::carried`].
    fn load(&self, carry: &mut Carry<Y>, values: &[Tensor]) {
        let n = carry.y.leaves().len();
        carry.y = carry.y.with_leaves(values[..n].to_vec());
        let mut rest = values[n..].iter().cloned();
        for clock in carry.clocks_mut(self.scheme) {
            *clock = rest.next().expect("invariant: as many clocks as were carried");
        }
        if self.scheme.carries_first() {
            carry.k[0] = carry.k[0].with_leaves(rest);
        }
    }

    /// Body of the search: knot, carry.., ext.. to accept, running, reached, knot', carry'.., ext'.., tap..
    fn attempt(&self, span: &Span<Tensor>, start: &mut Carry<Y>) -> Result<Traced<()>, OdeError> {
        let mut types = vec![Type::scalar(DType::F64)];
        types.extend(self.carried(start).iter().map(Tensor::ty));
        body(&types, |x| {
            let mut carry = Carry::new(x[0].clone(), start.y.clone(), self.scheme.tableau.num_stages());
            self.load(&mut carry, &x[1..]);
            carry.k[1..].fill(carry.y.clone());
            carry.y1 = carry.y.clone();
            let before = carry.clone();
            ode::attempt(self.field, self.scheme, span, &mut carry)?;
            let taps = self.taps_of_attempt(span, &before, &mut carry)?;
            let reached = carry.status.eq(Clock::like(&carry.t, status::COMPLETED));
            let mut out = vec![carry.accepted.clone(), carry.is_running(), reached, carry.t.clone()];
            out.extend(self.carried(&mut carry));
            out.extend(taps);
            Ok(out)
        })
    }

    /// What an attempt leaves for saved times, if it is accepted.
    fn taps_of_attempt(
        &self,
        span: &Span<Tensor>,
        before: &Carry<Y>,
        after: &mut Carry<Y>,
    ) -> Result<Vec<Tensor>, FieldFailure<Tensor>> {
        let Some(curve) = &self.curve else { return Ok(vec![]) };
        let first = self.scheme.carries_first();
        let mut k = after.k[..self.scheme.tableau.num_stages()].to_vec();
        if first {
            // By now it is the next step's.
            k[0] = before.k[0].clone();
        }
        let step = Step { t: &before.t, t_next: &after.t, y: &before.y, y1: &after.y1, k, has_last: first };
        let taps = curve.taps(self.field, self.scheme, span, step)?;
        let extra = Clock::like(&after.t, curve.num_extra() as f64);
        after.num_field_evals = &after.num_field_evals + extra;
        Ok(taps)
    }

    /// Body of the replay: first, last, t, t_next, carry.. to carry'.., tap..
    ///
    /// The first and the last knot are t0 and t1 themselves, so gradients by them need no rule; the
    /// inner knots are constants of the replay.
    fn step(&self, span: &Span<Tensor>, y0: &Y) -> Result<Traced<()>, OdeError> {
        let (flag, time) = (Type::scalar(DType::Bool), Type::scalar(DType::F64));
        let mut types = vec![flag.clone(), flag, time.clone(), time];
        types.extend(y0.leaves().iter().map(Tensor::ty));
        body(&types, |x| {
            let t = x[0].select(&span.t0, &x[2].stop_gradient());
            let t_next = x[1].select(&span.t1, &x[3].stop_gradient());
            let y = y0.with_leaves(x[4..].to_vec());
            let mut k = vec![y.clone(); self.scheme.tableau.num_stages()];
            let mut y1 = y.clone();
            ode::step(self.field, self.scheme, span, (&t, &t_next), &y, &mut k, &mut y1)?;
            let mut out = y1.leaves();
            if let Some(curve) = &self.curve {
                let step = Step { t: &t, t_next: &t_next, y: &y, y1: &y1, k, has_last: false };
                out.extend(curve.taps(self.field, self.scheme, span, step)?);
            }
            Ok(out)
        })
    }

    /// The number of steps if it is known before the solve, else 0; it places checkpoints, nothing more.
    fn forecast(&self, span: &Span<Tensor>) -> Tensor {
        let whole = (&span.t1 - &span.t0).abs();
        match &self.options.forecast {
            Forecast::Derived => {}
            Forecast::Unknown => return Tensor::scalar(DType::U32, 0.0),
            Forecast::Steps(steps) => return steps.stop_gradient().cast(DType::U32),
        }
        let steps = match self.scheme.controller {
            Controller::Constant(Constant { dt0 }) if self.scheme.limits.stops.is_empty() => {
                let steps = -((&whole - &span.slack) * (-1.0 / dt0.abs())).floor();
                steps.maximum(&Clock::like(&steps, 1.0))
            }
            Controller::StepTo(StepTo { ts }) => Clock::like(&whole, ts.len() as f64 - 1.0),
            _ => Clock::like(&whole, 0.0),
        };
        steps.stop_gradient().cast(DType::U32)
    }
}

/// What the loop's last carry means, without what was saved; its verdict goes to whoever runs the program.
fn solution<Y: TreeState>(end: &Carry<Y>, dt_min: f64) -> Solution<Y> {
    let broken = end.status.eq(Clock::like(&end.t, status::NON_FINITE));
    let dt = broken.select(&end.h, &end.dt);
    let dt_min = Clock::like(&end.t, dt_min);
    let verdict = [&end.status, &end.t, &dt, &end.num_steps, &end.component, &dt_min];
    let verdict = Tensor::stack(&verdict).stop_gradient();
    register_check(Check { values: verdict.reshape([1, 6]) });
    let stats = Stats {
        num_steps: end.num_steps.clone(),
        num_accepted: end.num_accepted.clone(),
        num_rejected: end.num_rejected.clone(),
        num_field_evals: end.num_field_evals.clone(),
    };
    let (t1, y1) = (end.t.clone(), end.y.clone());
    Solution { ts: t1.clone(), ys: y1.clone(), t1, y1, stats, verdict }
}

/// Traces a loop body. Solves inside a field are not checked on their own: when one fails, what it
/// returned is its last good state.
pub(super) fn body(
    types: &[Type],
    f: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>, FieldFailure<Tensor>>,
) -> Result<Traced<()>, OdeError> {
    let traced = trace(types, |x| match f(x) {
        Ok(out) => (out, Ok(())),
        Err(e) => (vec![], Err(e)),
    });
    let Traced { func, captures, num_outputs, aux } = traced;
    aux.map_err(failed)?;
    Ok(Traced { func, captures, num_outputs, aux: () })
}

fn failed(failure: FieldFailure<Tensor>) -> OdeError {
    let t = if failure.t.is_traced() { f64::NAN } else { failure.t.item() };
    OdeError::Field { t, step: 0, source: failure.source }
}
