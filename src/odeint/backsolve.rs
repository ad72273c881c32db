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
//! The solve becomes a [`Custom`] function of (t0, t1, y0, p), whose reverse rule is that solve; p is whatever the
//! field captures. So nothing of the forward pass is kept but its result, and nothing here is known to the
//! transforms. Alternatives considered: q as part of what is measured, which makes steps shorter for the sake of
//! integrals that nothing depends on: 233 steps
//! instead of 28 in the test of it (Kidger, Chen, Lyons 2021, "Hey, that's not an ODE: faster ODE adjoints via
//! seminorms"; Kidger 2022, section 5.1.2).

use super::augmented::{Augmented, Quadrature};
use super::solve::{Problem, body};
use super::state::TreeState;
use super::{Adjoint, Options, Solution};
use crate::array::DType;
use crate::graph::{Custom, Func, Op, Type};
use crate::ode::{
    Bound, Controller, Field, FieldError, FieldFailure, Limits, OdeError, Scheme, StepTo, Tolerance,
};
use crate::tensor::{
    Check, Tensor, Traced, Tree, align, apply, poisoned, register_check, reverse, trace, tuple,
};
use std::sync::Arc;

/// A field as a function: t, y.., p.. to dy..; `params` stand for p.
struct Closed<'a> {
    func: &'a Func,
    params: &'a [Tensor],
}

impl Closed<'_> {
    fn rate(&self, t: &Tensor, y: &[Tensor]) -> Vec<Tensor> {
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

/// The field of the augmented state.
struct Backward<'a> {
    field: Closed<'a>,
    pull: &'a Pullback,
}

impl<Y: TreeState> Field<Augmented<Y>> for Backward<'_> {
    fn eval(&self, t: &Tensor, s: &Augmented<Y>, ds: &mut Augmented<Y>) -> Result<(), FieldError> {
        let (y, a) = (s.0.leaves(), s.1.leaves());
        let args = std::iter::once(t).chain(&y).chain(self.field.params).chain(&a);
        let mut all = apply(&self.pull.func, &args.cloned().collect::<Vec<_>>());
        let mut rest = all.split_off(y.len()).into_iter().map(|g| -g);
        let da = s.1.with_leaves(rest.by_ref().take(y.len()).collect::<Vec<_>>());
        *ds = Augmented(s.0.with_leaves(all), da, Quadrature { sums: rest.collect() });
        Ok(())
    }
}

/// t, y.., p.., a.. to f.., a^T df/dy.., a^T df/dp.. for the parameters in `params`, the others have no influence.
struct Pullback {
    func: Func,
    params: Vec<usize>,
}

impl Pullback {
    fn new(field: &Func, num_y: usize) -> Result<Pullback, OdeError> {
        let params = 1 + num_y..field.num_inputs();
        let floats: Vec<usize> = params.filter(|&k| field.input_type(k).is_float()).collect();
        let outs: Vec<usize> = (0..num_y).collect();
        let wrt = |params: &[usize]| (1..=num_y).chain(params.iter().copied()).collect::<Vec<_>>();
        let all = reverse(field, &outs, &wrt(&floats)).map_err(|e| refused(&e))?;
        let is_zero = |k: usize| match &all.node(all.outputs()[k]).op {
            Op::Const(literal) => literal.as_splat() == Some(0.0),
            _ => false,
        };
        let kept = floats.iter().enumerate().filter(|(i, _)| !is_zero(2 * num_y + i));
        let kept: Vec<usize> = kept.map(|(_, &k)| k).collect();
        let func = reverse(field, &outs, &wrt(&kept)).map_err(|e| refused(&e))?;
        Ok(Pullback { func, params: kept.iter().map(|k| k - 1 - num_y).collect() })
    }
}

fn refused(why: &dyn std::fmt::Display) -> OdeError {
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
    let beside = problem.saved.beside_ends().or((!problem.events.is_empty()).then_some("events"));
    if let Some(what) = beside {
        let why = format!("it takes no cotangents of {what}; save t0 or t1, or take RecursiveCheckpoint");
        return Err(OdeError::Adjoint { adjoint: "Backsolve", why });
    }
    let (field, params) = closed(problem.field, t0, y0)?;
    let num_y = y0.leaves().len();
    let mut args = vec![t0.clone(), t1.clone()];
    args.extend(y0.leaves());
    args.extend(params.iter().cloned());
    let types: Vec<Type> = args.iter().map(Tensor::ty).collect();

    let options = Options { adjoint: Adjoint::default(), ..problem.options.clone() };
    let mut template = None;
    let body = trace(&types, |x| {
        let (t, rest) = x.split_at(2);
        let (y, params) = rest.split_at(num_y);
        let field = Closed { func: &field, params };
        let solve = Problem::to_its_end(&field, problem.scheme, &options);
        match solve.record(&t[0], &t[1], &y0.with_leaves(y.to_vec())) {
            Ok(solution) => {
                let mut out = solution.leaves();
                out[..=num_y].rotate_left(1); // the reached time behind y1
                template = Some(solution);
                (out, Ok(()))
            }
            Err(e) => (vec![], Err(e)),
        }
    });
    body.aux?;
    let num_values = body.num_outputs;
    let mut op = Custom { body: body.func, jvp: None, vjp: None, num_outs: num_y };
    if args.iter().any(Tensor::is_traced) {
        let pull = Pullback::new(&field, num_y)?;
        let bounds = Bounds::new(problem.scheme, y0.num_components(), rtol, atol);
        let scheme = bounds.scheme(problem.scheme)?;
        op.vjp = Some(rule(&op, &field, &pull, &scheme, y0)?);
    }
    let mut out = tuple(Op::Custom(Arc::new(op)), args.iter());
    for values in out.split_off(num_values) {
        register_check(Check { values });
    }
    out[..=num_y].rotate_right(1);
    let mut solution = template.expect("invariant: a solution where there is no failure").with_leaves(out);
    // The rule gives a derivative to y1 alone: what is saved is made of it.
    let (none, end) = (problem.trail.like(t0, y0), (&solution.t1, &solution.y1));
    let num_steps = &solution.stats.num_accepted;
    (solution.ts, solution.ys, solution.num_saved) =
        problem.saved.join((t0, y0), (&none, None), end, (num_steps, None));
    Ok(solution)
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

/// The reverse rule: t0, t1, y0.., p.., y1.., dL/dy1.. to the cotangents of t0, t1, y0.. and the floats among p...
fn rule<Y: TreeState>(
    op: &Custom,
    field: &Func,
    pull: &Pullback,
    scheme: &Scheme<'_, Augmented<Y>>,
    y0: &Y,
) -> Result<Func, OdeError> {
    let num_y = op.num_outs;
    let mut types = op.primal_types();
    types.extend(y0.leaves().iter().map(Tensor::ty));
    let traced = trace(&types, |x| {
        let (t, rest) = x.split_at(2);
        let (start, rest) = rest.split_at(num_y);
        let (params, ends) = rest.split_at(rest.len() - 2 * num_y);
        let (end, g) = ends.split_at(num_y);
        let closed = Closed { func: field, params };
        let by_t1 = dot(g, &closed.rate(&t[1], end));
        let zero = |&k: &usize| Tensor::full(params[k].dtype(), params[k].shape().clone(), 0.0);
        let sums = Quadrature { sums: pull.params.iter().map(zero).collect() };
        let state = Augmented(y0.with_leaves(end.to_vec()), y0.with_leaves(g.to_vec()), sums);
        let back = Backward { field: Closed { func: field, params }, pull };
        let options = Options::default();
        let solve = Problem::to_its_end(&back, scheme, &options);
        let Augmented(_, a, q) = match solve.record(&t[1], &t[0], &state) {
            Ok(solution) => solution.y1,
            Err(e) => return (vec![], Err(e)),
        };
        let mut out = vec![-dot(&a.leaves(), &closed.rate(&t[0], start)), by_t1];
        out.extend(a.leaves());
        out.extend((0..params.len()).filter(|&k| params[k].dtype().is_float()).map(|k| {
            let at = pull.params.iter().position(|&p| p == k);
            at.map_or_else(|| zero(&k), |i| q.sums[i].clone())
        }));
        (out, Ok(()))
    });
    let Traced { func, captures, num_outputs, aux } = traced;
    aux?;
    Ok(poisoned(Traced { func, captures, num_outputs, aux: () }))
}

/// The inner product of two lists of tensors, in f64.
fn dot(x: &[Tensor], y: &[Tensor]) -> Tensor {
    let terms = x.iter().zip(y).map(|(x, y)| (x * y).sum().cast(DType::F64));
    terms.reduce(|a, b| a + b).unwrap_or_else(|| Tensor::scalar(DType::F64, 0.0))
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
