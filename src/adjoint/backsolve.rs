//! The continuous adjoint: a gradient by solving a second differential equation backward in time.
//!
//! With a = dL/dy along the solution, from t1 back to t0 (Chen et al. 2018, algorithm 1):
//!
//! ```text
//! dy/dt = f(t, y, p)    da/dt = -a^T df/dy    dq/dt = -a^T df/dp
//! y(t1) = y1            a(t1) = dL/dy1        q(t1) = 0
//! dL/dy0 = a(t0), dL/dp = q(t0), dL/dt1 = a(t1)^T f(t1, y1), dL/dt0 = -a(t0)^T f(t0, y0)
//! ```
//!
//! At a saved time in between, dL/dy at that time is added to a (see `sweep`). The solve becomes a [`Custom`]
//! function from (t0, t1, ts, y0, p) to (y1, ys), whose reverse rule is the backward solve; p is everything
//! that the field captures. So only the result of the forward pass is stored, and the transforms do not depend
//! on this adjoint. Alternative considered: q in the error norm. It would shorten steps because of integrals that
//! do not enter the equations: 233 steps instead of 28 in the test `integrals_of_the_parameters_make_no_step_shorter`
//! (Kidger, Chen, Lyons 2021, "Hey, that's not an ODE: faster ODE adjoints via seminorms"; Kidger 2022, section
//! 5.1.2).

use super::algorithm::{LeafField, Scheme};
use super::bodies::body;
use super::event::Events;
use super::leaves::Leaves;
use super::problem::Problem;
use super::saved::Saved;
use super::solve::Recorded;
use super::sweep::{Pullback, Sweep};
use super::{Adjoint, Options, TensorSolution};
use crate::graph::{Custom, Func, Type};
use crate::ode::{
    ConfigError, Controller, FieldError, FieldFailure, Limits, SolveError, Span, State, StepTo, Tol,
    Tolerance, VectorField,
};
use crate::tensor::{Check, Tensor, Tree, apply, call_custom, register_check, try_trace};

/// A field as a function from t, y.., p.. to dy..; `params` are p.
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

impl VectorField<Leaves> for Closed<'_> {
    fn eval(&self, t: &Tensor, y: &Leaves, dy: &mut Leaves) -> Result<(), FieldError> {
        *dy = y.with(self.rate(t, y.tensors()));
        Ok(())
    }
}

pub(super) fn refused(why: &dyn std::fmt::Display) -> ConfigError {
    ConfigError::Adjoint { adjoint: "Backsolve", why: why.to_string() }
}

/// Refuses events, and saved values that the backward solve cannot differentiate.
pub(super) fn check(saved: &Saved, events: &Events<'_>) -> Result<(), ConfigError> {
    let beside = saved.beside_times().or((!events.is_empty()).then_some("events"));
    beside.map_or(Ok(()), |what| {
        Err(refused(&format!("it supports saved times, t0 and t1, but not {what}; use RecursiveCheckpoint")))
    })
}

/// Records a solve whose reverse derivative is the continuous adjoint.
///
/// # Errors
/// The field's error while it was recorded; a field without a reverse derivative.
pub(super) fn record(
    problem: &Problem<'_>,
    (rtol, atol): (Option<f64>, Option<f64>),
    (t0, t1): (&Tensor, &Tensor),
    y0: &Leaves,
) -> Recorded {
    let (field, params) = closed(problem.field, t0, y0)?;
    let num_y = y0.tensors().len();
    let mut args = vec![t0.clone(), t1.clone()];
    args.extend(problem.saved.ts.clone());
    let num_t = args.len();
    args.extend(y0.leaves());
    args.extend(params.iter().cloned());
    let types: Vec<Type> = args.iter().map(Tensor::ty).collect();

    let options = Options { adjoint: Adjoint::default(), ..problem.options.clone() };
    let mut template = None;
    let body = try_trace(&types, &mut |x| {
        let (t, rest) = x.split_at(num_t);
        let (y, params) = rest.split_at(num_y);
        let field = Closed { func: &field, params };
        let saved = t.get(2).map_or(Saved::END, Saved::at);
        let solve = Problem::new(&field, problem.scheme, &options, (&saved, Events::NONE));
        let solution = solve.record(&t[0], &t[1], &y0.with(y.to_vec()))?;
        let mut out = solution.y1.leaves();
        out.extend(t.get(2).map(|_| solution.ys.leaves()).unwrap_or_default());
        out.push(solution.t1.clone());
        out.extend(solution.stats.leaves());
        out.extend([solution.verdict.clone(), solution.stiff_from.clone()]);
        template = Some(solution);
        Ok::<_, SolveError>(out)
    })?;
    let template = template.expect("invariant: a solution where there is no failure");
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
    let mut out = call_custom(&op, &args);
    for values in out.split_off(num_values) {
        register_check(Check { values });
    }
    let behind = out.split_off(num_values - 2);
    let [verdict, stiff_from] = behind.try_into().expect("invariant: both were put behind the counters");
    let mut rest = out.split_off(num_outs).into_iter();
    let reached = rest.next().expect("invariant: the time reached behind the states");
    let stats = template.stats.with_leaves(rest);
    let y1 = template.y1.with(out[..num_y].to_vec());
    let at_times = problem.saved.ts.as_ref().map(|_| y0.with(out[num_y..].to_vec()));
    let direction = Span::new(t0.clone(), t1.clone()).direction;
    let (ts, ys, num_saved) = problem.saved.in_order((t0, y0), (at_times, None), (&reached, &y1), &direction);
    Ok(TensorSolution {
        t1: reached,
        y1,
        ts,
        ys,
        num_saved,
        stats,
        events: None,
        verdict,
        stiff_from,
        dense: None,
    })
}

/// The field as a function of t, y and its captures. Its constant arrays remain in it, because the captures are
/// parameters, with a quadrature for each gradient.
fn closed(field: &LeafField<'_>, t0: &Tensor, y0: &Leaves) -> Result<(Func, Vec<Tensor>), SolveError> {
    let mut types = vec![t0.ty()];
    types.extend(y0.tensors().iter().map(Tensor::ty));
    let traced = body(&types, &mut |x| {
        let y = y0.with(x[1..].to_vec());
        let mut dy = y.clone();
        let evaluated = field.eval(&x[0], &y, &mut dy);
        let conforming = dy.conforms(&y).map_err(|mismatch| mismatch.of_derivative("the vector field"));
        let evaluated = evaluated.and(conforming);
        evaluated.map_err(|source| FieldFailure { t: x[0].clone(), source })?;
        Ok(dy.leaves())
    })?;
    Ok((traced.without_checks(), traced.captures))
}

/// Owns the data that the scheme of the backward solve borrows: its tolerances, and the forward settings with times
/// reversed.
struct Bounds {
    rtol: Tol,
    atol: Tol,
    controller: Controller,
    stops: Vec<f64>,
}

impl Bounds {
    fn new(scheme: &Scheme<'_>, num_components: usize, rtol: Option<f64>, atol: Option<f64>) -> Bounds {
        let (tol, n) = (scheme.tolerance, num_components);
        let of = |own: Option<f64>, pick: fn((f64, f64)) -> f64| match (own, tol.uniform()) {
            (Some(x), _) => Tol::All(x),
            (None, Some(both)) => Tol::All(pick(both)),
            // One tolerance per component: those of y, and the same for its adjoint.
            (None, None) => Tol::Each((0..2 * n).map(|j| pick(tol.at(j % n))).collect()),
        };
        let turned = |ts: &[f64]| ts.iter().rev().copied().collect::<Vec<f64>>();
        let controller = match scheme.controller {
            Controller::StepTo(StepTo { ts }) => StepTo { ts: turned(ts) }.into(),
            other => other.clone(),
        };
        let stops = turned(scheme.limits.stops);
        Bounds { rtol: of(rtol, |b| b.0), atol: of(atol, |b| b.1), controller, stops }
    }

    fn scheme<'a>(&'a self, of: &Scheme<'a>) -> Result<Scheme<'a>, SolveError> {
        let tolerance = Tolerance::of(&self.rtol, &self.atol);
        let mut scheme = Scheme::new(&of.tableau, &self.controller, tolerance, of.limits.max_steps)?;
        scheme.limits = Limits { stops: &self.stops, ..of.limits };
        Ok(scheme)
    }
}
