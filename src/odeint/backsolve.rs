//! The continuous adjoint: a gradient by solving a second differential equation backward in time.
//!
//! With a = dL/dy along the solution, from t1 back to t0 (Chen et al. 2018, algorithm 1)
//!
//! ```text
//! dy/dt = f(t, y, p)    da/dt = -a^T df/dy    dq/dt = -a^T df/dp
//! y(t1) = y1            a(t1) = dL/dy1        q(t1) = 0
//! dL/dy0 = a(t0), dL/dp = q(t0), dL/dt1 = a(t1)^T f(t1, y1), dL/dt0 = -a(t0)^T f(t0, y0)
//! ```
//!
//! At a saved time in between, a takes in dL/dy there (see `sweep`). The solve becomes a [`Custom`] function of
//! (t0, t1, ts, y0, p) to (y1, ys), whose reverse rule is that solve; p is whatever the field captures. So nothing of the forward pass is kept but its result, and nothing here is known to the
//! transforms. Alternatives considered: q as part of what is measured, which makes steps shorter for the sake of
//! integrals that nothing depends on: 233 steps
//! instead of 28 in the test of it (Kidger, Chen, Lyons 2021, "Hey, that's not an ODE: faster ODE adjoints via
//! seminorms"; Kidger 2022, section 5.1.2).

use super::augmented::Augmented;
use super::bodies::body;
use super::saved::{Saved, time_axis, times_first};
use super::solve::Problem;
use super::state::TreeState;
use super::sweep::{Pullback, Sweep};
use super::{Adjoint, Options, Solution};
use crate::graph::{Custom, Func, Op, Type};
use crate::ode::{
    Bound, Clock, Controller, Field, FieldError, FieldFailure, Limits, OdeError, Scheme, StepTo, Tolerance,
};
use crate::tensor::{Check, Tensor, Tree, align, apply, register_check, trace, tuple};
use std::sync::Arc;

/// A field as a function: t, y.., p.. to dy..; `params` stand for p.
pub(super) struct Closed<'a> {
    pub(super) func: &'a Func,
    pub(super) params: &'a [Tensor],
}

impl Closed<'_> {
    pub(super) fn rate(&self, t: &Tensor, y: &[Tensor]) -> Vec<Tensor> {
        let args: Vec<Tensor> = std::iter::once(t).chain(y).chain(self.params).cloned().collect();
        apply(self.func, &args)
    }
}

impl<Y: TreeState> Field<Y> for Closed<'_> {
    fn eval(&self, t: &Tensor, y: &Y, dy: &mut Y) -> Result<(), FieldError> {
        *dy = y.with_leaves(self.rate(t, &y.leaves()));
        Ok(())
    }
}

pub(super) fn refused(why: &dyn std::fmt::Display) -> OdeError {
    OdeError::Adjoint { adjoint: "Backsolve", why: why.to_string() }
}

/// Records a solve whose reverse derivative is the continuous adjoint.
///
/// # Errors
/// What the field said while it was recorded; a field that has no reverse derivative.
pub(super) fn record<Y: TreeState, F: Field<Y>>(
    problem: &Problem<'_, Y, F>,
    (rtol, atol): (Option<f64>, Option<f64>),
    (t0, t1): (&Tensor, &Tensor),
    y0: &Y,
) -> Result<Solution<Y>, OdeError> {
    let beside = problem.saved.beside_times().or((!problem.events.is_empty()).then_some("events"));
    if let Some(what) = beside {
        let why = format!(
            "it takes no cotangents of {what}; save t0, t1 or given times, or take RecursiveCheckpoint"
        );
        return Err(OdeError::Adjoint { adjoint: "Backsolve", why });
    }
    let (field, params) = closed(problem.field, t0, y0)?;
    let (num_y, axis) = (y0.leaves().len(), time_axis(y0));
    let mut args = vec![t0.clone(), t1.clone()];
    args.extend(problem.saved.ts.clone());
    let num_t = args.len();
    args.extend(y0.leaves());
    args.extend(params.iter().cloned());
    let types: Vec<Type> = args.iter().map(Tensor::ty).collect();

    let options = Options { adjoint: Adjoint::default(), ..problem.options.clone() };
    let body = trace(&types, |x| {
        let (t, rest) = x.split_at(num_t);
        let (y, params) = rest.split_at(num_y);
        let field = Closed { func: &field, params };
        let saved = t.get(2).map_or(Saved::END, Saved::at);
        let solve = Problem::new(&field, problem.scheme, &options, (&saved, &[]));
        match solve.record(&t[0], &t[1], &y0.with_leaves(y.to_vec())) {
            Ok(solution) => {
                let mut out = solution.y1.leaves();
                let ys = t.get(2).map(|_| solution.ys.leaves()).unwrap_or_default();
                out.extend(ys.iter().map(|y| times_first(y, axis)));
                out.push(solution.t1.clone());
                out.extend(solution.stats.leaves());
                out.push(solution.verdict.clone());
                (out, Ok(solution))
            }
            Err(e) => (vec![], Err(e)),
        }
    });
    let template = body.aux?;
    let num_values = body.num_outputs;
    let num_outs = num_y * (num_t - 1);
    let mut op = Custom { body: body.func, jvp: None, vjp: None, num_outs };
    if args.iter().any(Tensor::is_traced) {
        let pull = Pullback::new(&field, num_y)?;
        let bounds = Bounds::new(problem.scheme, y0.num_components(), rtol, atol);
        let scheme = bounds.scheme(problem.scheme)?;
        let num_times = problem.saved.num_times();
        let sweep = Sweep { field: &field, pull: &pull, scheme: &scheme, like: y0, num_times };
        let outs = &op.body.output_types()[..num_outs];
        op.vjp = Some(sweep.rule(&[&op.primal_types()[..], outs].concat())?);
    }
    let mut out = tuple(Op::Custom(Arc::new(op)), args.iter());
    for values in out.split_off(num_values) {
        register_check(Check { values });
    }
    let verdict = out.pop().expect("invariant: a verdict behind the counters");
    let mut rest = out.split_off(num_outs).into_iter();
    let reached = rest.next().expect("invariant: the time reached behind the states");
    let stats = template.stats.with_leaves(rest);
    let y1 = template.y1.with_leaves(out[..num_y].to_vec());
    let inner = problem.saved.ts.iter().map(|ts| (ts.clone(), y0.with_leaves(out[num_y..].to_vec())));
    let (ts, ys) = problem.saved.around(inner.collect(), (t0, y0), (&reached, &y1));
    let num_saved = Clock::like(&reached, ts.size() as f64);
    Ok(Solution { t1: reached, y1, ts, ys, num_saved, stats, events: None, verdict, dense: None })
}

/// The field as a function of t, y and what it captures.
fn closed<Y: TreeState, F: Field<Y>>(
    field: &F,
    t0: &Tensor,
    y0: &Y,
) -> Result<(Func, Vec<Tensor>), OdeError> {
    let mut types = vec![t0.ty()];
    types.extend(y0.leaves().iter().map(Tensor::ty));
    let traced = body(&types, |x| {
        let y = y0.with_leaves(x[1..].to_vec());
        let mut dy = y.clone();
        let said = field.eval(&x[0], &y, &mut dy).and_then(|()| dy.conforms(&y));
        said.map_err(|source| FieldFailure { t: x[0].clone(), source })?;
        Ok(dy.leaves())
    })?;
    let (mut funcs, captures) = align(&[&traced]);
    Ok((funcs.remove(0), captures))
}

/// What the backward solve's scheme borrows from: the forward one's, turned around.
struct Bounds {
    rtol: Bound,
    atol: Bound,
    controller: Controller,
    stops: Vec<f64>,
    jumps: Vec<f64>,
}

impl Bounds {
    fn new<Y: TreeState>(
        scheme: &Scheme<'_, Y>,
        num_components: usize,
        rtol: Option<f64>,
        atol: Option<f64>,
    ) -> Bounds {
        let (tol, n) = (scheme.tolerance, num_components);
        let of = |own: Option<f64>, pick: fn((f64, f64)) -> f64| match (own, tol.uniform()) {
            (Some(x), _) => Bound::All(x),
            (None, Some(both)) => Bound::All(pick(both)),
            (None, None) => Bound::Each((0..n).map(|j| pick(tol.at(j))).collect()),
        };
        let turned = |ts: &[f64]| ts.iter().rev().copied().collect::<Vec<f64>>();
        let controller = match scheme.controller {
            Controller::StepTo(StepTo { ts }) => StepTo { ts: turned(ts) }.into(),
            other => other.clone(),
        };
        let (stops, jumps) = (turned(scheme.limits.stops), turned(scheme.limits.jumps));
        Bounds { rtol: of(rtol, |b| b.0), atol: of(atol, |b| b.1), controller, stops, jumps }
    }

    fn scheme<'a, Y: TreeState>(&'a self, of: &Scheme<'a, Y>) -> Result<Scheme<'a, Augmented<Y>>, OdeError> {
        let tolerance = Tolerance::of(&self.rtol, &self.atol);
        let mut scheme = Scheme::new(&of.tableau, &self.controller, tolerance, of.limits.max_steps)?;
        scheme.limits = Limits { stops: &self.stops, jumps: &self.jumps, ..of.limits };
        Ok(scheme)
    }
}
