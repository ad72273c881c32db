//! Custom ops: functions of trees with custom derivatives.
//!
//! The function and its rules are traced into closed functions when the op is recorded. The op is replaced by
//! its body once all derivatives have been taken, so compiled programs do not contain it. `transform` defines
//! the meaning of a rule.

#[cfg(test)]
mod tests;

use super::grad::types;
use super::handle::Repr;
use super::trace::{Check, trace_tree};
use super::tree::Tree;
use super::{Tensor, Traced, apply, trace, tuple};
use crate::graph::{self, Func, Op, Type};
use std::convert::Infallible;
use std::sync::Arc;

type Function<'f, A, R> = Box<dyn Fn(&A) -> R + Send + Sync + 'f>;
type Rule<'f, A, R, D, O> = Box<dyn Fn(&A, &R, &D) -> O + Send + Sync + 'f>;

/// A function with custom derivatives; see [`custom_derivatives`].
pub struct CustomFunction<'f, A, R> {
    f: Function<'f, A, R>,
    jvp: Option<Rule<'f, A, R, A, R>>,
    vjp: Option<Rule<'f, A, R, R, A>>,
}

/// Makes `f` an op that may have custom derivatives, set by [`CustomFunction::jvp`] and
/// [`CustomFunction::vjp`].
///
/// The op can be used like any other function of tensors: on concrete or traced tensors, in the vector field
/// of a solve, in tiles of rows. The rules that are given determine both derivatives:
///
/// | given | forward derivative | reverse derivative |
/// | --- | --- | --- |
/// | `jvp` | the rule | the rule's transpose: exact, since it is linear in its tangent |
/// | `vjp` | the derivative of `f` | the rule |
/// | both | the rule | the rule |
/// | neither | the derivative of `f` | the derivative of `f` |
///
/// A rule consists of ordinary operations, which a second derivative differentiates. If a rule reads the
/// result of `f`, the derivative of this result is computed by the rules again. The only traced tensors that
/// `f` and its rules may use are those of their arguments. Pass weights as a part of the argument, which is a
/// tree.
///
/// # Examples
/// Gradient clipping: the identity, with a bounded cotangent.
/// ```
/// use flowline::nn::prelude::*;
/// use flowline::tensor::custom_derivatives;
/// let bound = Tensor::from(1.0);
/// let clip = custom_derivatives(|x: &Tensor| x.clone()).vjp(move |_x, _y, g| g.minimum(&bound).maximum(&-&bound));
/// let gradient = grad(|x: &Tensor| (clip.call(x) * Tensor::from([0.5, 30.0])).sum(), &Tensor::from([1.0, 1.0]));
/// assert_eq!(gradient.to_vec(), vec![0.5, 1.0]);
/// ```
/// ln(1 - e^-x) for x > 0, without cancellation for small x and without a derivative 0/0 where e^-x is 1:
/// ```
/// use flowline::nn::prelude::*;
/// use flowline::tensor::custom_derivatives;
/// let log1mexp = custom_derivatives(|x: &Tensor| {
///     let small = x.lt(std::f64::consts::LN_2);
///     small.select(&(-(-x).expm1()).ln(), &(-(-x).exp()).log1p())
/// });
/// let log1mexp = log1mexp.jvp(|x, _y, dx| dx / x.expm1());
/// let (y, gradient) = value_and_grad(|x: &Tensor| log1mexp.call(x), &Tensor::from(1e-10));
/// assert!((y.item() - 1e-10_f64.ln()).abs() < 1e-9 && (gradient.item() / 1e10 - 1.0).abs() < 1e-9);
/// ```
pub fn custom_derivatives<'f, A: Tree, R: Tree>(
    f: impl Fn(&A) -> R + Send + Sync + 'f,
) -> CustomFunction<'f, A, R> {
    CustomFunction { f: Box::new(f), jvp: None, vjp: None }
}

impl<'f, A: Tree, R: Tree> CustomFunction<'f, A, R> {
    /// Sets the forward derivative: `(x, y, dx)` to dy, where y is the result at x. It must be linear in dx.
    ///
    /// Leaves that are not floats have zero tangents; the values that the rule returns for them are ignored.
    pub fn jvp(mut self, rule: impl Fn(&A, &R, &A) -> R + Send + Sync + 'f) -> Self {
        self.jvp = Some(Box::new(rule));
        self
    }

    /// Sets the reverse derivative: `(x, y, g)` to the cotangent of x, where g is the cotangent of the result
    /// y.
    ///
    /// Leaves that are not floats have zero cotangents; the values that the rule returns for them are ignored.
    pub fn vjp(mut self, rule: impl Fn(&A, &R, &R) -> A + Send + Sync + 'f) -> Self {
        self.vjp = Some(Box::new(rule));
        self
    }

    /// Applies the function.
    ///
    /// # Panics
    /// If the function or a rule uses a traced tensor that is not part of its argument, or the types that a
    /// rule returns are not those of its derivative. On concrete tensors, also if a solve in the function
    /// ended early. (If a solve in a rule ends early, there is no panic, but the derivative is NaN.)
    #[track_caller]
    pub fn call(&self, at: &A) -> R {
        let leaves = at.leaves();
        let Ok((body, result)) = trace_tree(&types(&leaves), at, |x| {
            let result = (self.f)(&x);
            Ok::<_, Infallible>((result.leaves(), result))
        });
        let place = |x: &[Tensor], y: &[Tensor]| (at.with_leaves(x.to_vec()), result.with_leaves(y.to_vec()));
        let jvp = self.jvp.as_ref().map(|rule| {
            |x: &[Tensor], y: &[Tensor], d: Vec<Tensor>| {
                let (x, y) = place(x, y);
                rule(&x, &y, &at.with_leaves(d)).leaves()
            }
        });
        let vjp = self.vjp.as_ref().map(|rule| {
            |x: &[Tensor], y: &[Tensor], g: Vec<Tensor>| {
                let (x, y) = place(x, y);
                rule(&x, &y, &result.with_leaves(g)).leaves()
            }
        });
        let rules =
            Rules { jvp: jvp.as_ref().map(|r| r as &LeafRule), vjp: vjp.as_ref().map(|r| r as &LeafRule) };
        result.with_leaves(applied(body, &leaves, &rules))
    }
}

/// A rule that takes the leaves of the argument, of the result and of a direction.
type LeafRule<'a> = dyn Fn(&[Tensor], &[Tensor], Vec<Tensor>) -> Vec<Tensor> + 'a;

struct Rules<'a> {
    jvp: Option<&'a LeafRule<'a>>,
    vjp: Option<&'a LeafRule<'a>>,
}

/// The results of a traced function with these rules.
#[track_caller]
fn applied(body: Traced, leaves: &[Tensor], rules: &Rules) -> Vec<Tensor> {
    closed("the function", &body.captures);
    let num_outs = body.num_outputs;
    let mut results = if leaves.iter().any(Tensor::is_traced) {
        let mut op = graph::Custom { body: body.func, jvp: None, vjp: None, num_outs };
        (op.jvp, op.vjp) = rules.funcs(&op);
        call_custom(&op, leaves)
    } else {
        apply(&body.func, leaves)
    };
    for values in results.split_off(num_outs) {
        Check { values }.settle().unwrap_or_else(|e| panic!("custom: {e}"));
    }
    results
}

/// Applies a custom function. Its constant arrays, and those of its rules, become operands, so that it contains no
/// data: see [`align`](super::align).
pub(crate) fn call_custom(op: &graph::Custom, args: &[Tensor]) -> Vec<Tensor> {
    let (op, arrays) = op.with_arrays_as_inputs();
    let arrays: Vec<Tensor> = arrays.into_iter().map(|a| Tensor(Repr::Concrete(a))).collect();
    tuple(Op::Custom(Arc::new(op)), args.iter().chain(&arrays))
}

impl Rules<'_> {
    #[track_caller]
    fn funcs(&self, op: &graph::Custom) -> (Option<Func>, Option<Func>) {
        let (x_types, primal) = (op.body.input_types(), op.primal_types());
        let (wrt, outs) = (op.float_inputs(), op.float_outs());
        let y_types = &primal[x_types.len()..];
        let split = |rule: &LeafRule, x: &[Tensor], d| {
            let (x, y) = x.split_at(x_types.len());
            rule(x, &y[..y_types.len()], d)
        };
        let jvp = self.jvp.map(|rule| {
            rule_func("the jvp rule", &primal, &x_types, &wrt, y_types, &outs, &|x, d| split(rule, x, d))
        });
        let vjp = self.vjp.map(|rule| {
            rule_func("the vjp rule", &primal, y_types, &outs, &x_types, &wrt, &|x, g| split(rule, x, g))
        });
        (jvp, vjp)
    }
}

/// A rule as a closed function. Its inputs are the primal values, then the directions of those values of type
/// `from` that `taken` lists. Its outputs are those results of the rule that `given` lists; they must have
/// the types `to`.
#[track_caller]
fn rule_func(
    what: &str,
    primal: &[Type],
    from: &[Type],
    taken: &[usize],
    to: &[Type],
    given: &[usize],
    rule: &dyn Fn(&[Tensor], Vec<Tensor>) -> Vec<Tensor>,
) -> Func {
    let types: Vec<Type> = primal.iter().chain(taken.iter().map(|&k| &from[k])).cloned().collect();
    let traced = trace(&types, &mut |x| {
        let (x, d) = x.split_at(primal.len());
        let zero = |ty: &Type| Tensor::full(ty.dtype(), ty.shape().clone(), 0.0);
        let mut directions: Vec<Tensor> = from.iter().map(zero).collect();
        taken.iter().zip(d).for_each(|(&k, d)| directions[k] = d.clone());
        let all = rule(x, directions);
        assert!(all.len() == to.len(), "{what} returned {} tensors, expected {}", all.len(), to.len());
        let checked = given.iter().map(|&k| {
            let (got, want) = (all[k].ty(), &to[k]);
            assert!(got == *want, "leaf {k} of the result of {what} is {got}, expected {want}");
            all[k].clone()
        });
        checked.collect()
    });
    closed(what, &traced.captures);
    poisoned(traced)
}

#[track_caller]
fn closed(what: &str, captures: &[Tensor]) {
    assert!(
        captures.is_empty(),
        "custom: {what} used a traced tensor that is not part of its argument: pass it in the argument"
    );
}

/// A rule's function without the checks of its solves. If a check fails, the results are NaN, because a rule
/// may run without a caller that could read the checks.
pub(crate) fn poisoned(rule: Traced) -> Func {
    let Traced { func, num_outputs, .. } = rule;
    if func.num_outputs() == num_outputs {
        return func;
    }
    let again = trace(&func.input_types(), &mut |x| {
        let mut out = apply(&func, x);
        let checks = out.split_off(num_outputs).into_iter().map(|values| Check { values }.is_passed());
        let ok = checks.reduce(|a, b| a.and(&b)).expect("invariant: a check behind the outputs");
        let guard = |y: &Tensor| {
            let nan = Tensor::full(y.dtype(), y.shape().clone(), f64::NAN);
            ok.broadcast_to(y.shape().clone()).select(y, &nan)
        };
        out.iter().map(guard).collect()
    });
    again.func
}
