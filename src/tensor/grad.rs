//! Derivatives of functions of trees.
//!
//! Each derivative traces its function once, transforms it, and applies the result: the new function runs on
//! concrete values, or is copied into the enclosing trace, where it may be differentiated again. The argument
//! of each derivative is an input of its own function, so nested derivatives cannot confuse perturbations.

use super::output::{Loss, Output};
use super::trace::{Check, trace_tree};
use super::tree::Tree;
use super::{Tensor, Traced, apply};
use crate::array::Shape;
use crate::error::Result;
use crate::graph::{Func, Type};
use crate::transform;

pub(super) fn types(leaves: &[Tensor]) -> Vec<Type> {
    leaves.iter().map(Tensor::ty).collect()
}

/// Applies a transform of a traced function. The first outputs of `func` are those of the traced function,
/// which include its checks. A failed check is returned as an error.
fn run(func: &Func, args: &[Tensor], traced: &Traced) -> Result<Vec<Tensor>> {
    let mut out = apply(func, args);
    for values in out.drain(traced.num_outputs..traced.func.num_outputs()) {
        Check { values }.settle()?;
    }
    Ok(out)
}

/// The reverse derivative of a closed function, for modules that must not depend on transforms.
pub(crate) fn reverse(
    f: &Func,
    outs: &[usize],
    wrt: &[usize],
) -> std::result::Result<Func, transform::TransformError> {
    transform::vjp(f, outs, wrt)
}

fn float_leaves(leaves: &[Tensor]) -> Vec<usize> {
    (0..leaves.len()).filter(|&i| leaves[i].dtype().is_float()).collect()
}

/// The tangents or cotangents `of` the leaves `which`. Panics unless they have the types of `at`.
#[track_caller]
fn directions(what: &str, at: &[Tensor], of: &[Tensor], which: &[usize]) -> Vec<Tensor> {
    assert!(at.len() == of.len(), "{what} has {} leaves, expected {}", of.len(), at.len());
    let checked = which.iter().map(|&i| {
        let (got, want) = (of[i].ty(), at[i].ty());
        assert!(got == want, "leaf {i} of {what} is {got}, expected {want}: cast or reshape it");
        of[i].clone()
    });
    checked.collect()
}

/// One gradient per leaf: `grads` for float leaves, zeros for other leaves.
fn assemble(leaves: &[Tensor], grads: Vec<Tensor>) -> Vec<Tensor> {
    let mut grads = grads.into_iter();
    let of = |x: &Tensor| match x.dtype().is_float() {
        true => grads.next().expect("invariant: a gradient for each float leaf"),
        false => Tensor::full(x.dtype(), x.shape().clone(), 0.0),
    };
    leaves.iter().map(of).collect()
}

/// Splits a loss into the tensors that its trace returns (the value first) and the aux.
pub(super) fn opened<L: Output<Tree: Loss>>(loss: L) -> Result<(Vec<Tensor>, <L::Tree as Loss>::Aux)> {
    let (value, aux) = loss.into_result()?.open();
    let mut out = aux.leaves();
    out.insert(0, one_number(&value));
    Ok((out, aux))
}

fn one_number(value: &Tensor) -> Tensor {
    assert!(value.size() == 1, "a loss must be one number, but it has shape {}", value.shape());
    value.reshape(Shape::scalar())
}

/// The outputs of a traced loss at `leaves`, the value first, and the gradient with respect to each leaf.
fn gradient(traced: &Traced, leaves: &[Tensor]) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
    let func = transform::vjp(&traced.func, &[0], &float_leaves(leaves))?;
    let one = Tensor::scalar(traced.func.output_type(0).dtype(), 1.0);
    let args: Vec<Tensor> = leaves.iter().chain(&traced.captures).cloned().chain([one]).collect();
    let mut out = run(&func, &args, traced)?;
    let grads = assemble(leaves, out.split_off(traced.num_outputs));
    Ok((out, grads))
}

pub(super) fn value_with_grad<M: Tree, L: Output<Tree: Loss>>(
    f: impl FnOnce(&M) -> L,
    at: &M,
) -> Result<(L::Tree, M)> {
    let leaves = at.leaves();
    let (traced, aux) = trace_tree(&types(&leaves), at, |x| opened(f(&x)))?;
    let (mut values, grads) = gradient(&traced, &leaves)?;
    let value = values.remove(0);
    Ok((L::Tree::close(value, aux.with_leaves(values)), at.with_leaves(grads)))
}

/// The value of a loss and its gradient with respect to every float leaf of `at`, in the structure of `at`.
/// Leaves of other types have the gradient 0.
///
/// # Errors
/// If the loss returns a `Result`: its error, a missing reverse derivative, or, on concrete tensors, a solve in
/// the loss that ended early.
///
/// # Panics
/// If the loss is not one number. If the loss does not return a `Result`, the cases under "Errors" panic.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// let x = Tensor::from([1.0, 2.0, 3.0]);
/// let (value, gradient) = value_and_grad(|x: &Tensor| x.square().sum(), &x);
/// assert_eq!((value.item(), gradient.to_vec()), (14.0, vec![2.0, 4.0, 6.0]));
/// ```
/// The flight time of a ball thrown upward, and its derivative with respect to the speed:
/// ```
/// use flowline::nn::prelude::*;
/// let landing = |v: &Tensor| {
///     let ball = Ode::new(|_t, y: &Tensor| Tensor::stack(&[&y.index(1), &Tensor::from(-9.81)]))
///         .event(Event::falling().terminal(), |_t, y| y.index(0));
///     Ok(ball.solve(0.0, f64::INFINITY, Tensor::stack(&[&Tensor::from(1.0), v]))?.t1)
/// };
/// let (t, dt_dv) = value_and_grad(landing, &Tensor::from(5.0))?;
/// let root = (25.0_f64 + 2.0 * 9.81).sqrt();
/// assert!((t.item() - (5.0 + root) / 9.81).abs() < 1e-9);
/// assert!((dt_dv.item() - (1.0 + 5.0 / root) / 9.81).abs() < 1e-9);
/// # Ok::<(), flowline::Error>(())
/// ```
#[track_caller]
#[doc(alias = "withgradient")]
pub fn value_and_grad<M: Tree, L: Output<Tree: Loss>>(
    f: impl FnOnce(&M) -> L,
    at: &M,
) -> L::Of<(L::Tree, M)> {
    L::answer(value_with_grad(f, at))
}

/// The gradient of [`value_and_grad`], without the value.
///
/// # Errors
/// The errors of [`value_and_grad`].
///
/// # Panics
/// As for [`value_and_grad`].
#[track_caller]
#[doc(alias = "gradient")]
pub fn grad<M: Tree, L: Output<Tree: Loss>>(f: impl FnOnce(&M) -> L, at: &M) -> L::Of<M> {
    L::answer(value_with_grad(f, at).map(|(_, grad)| grad))
}

/// The Jacobian-vector product: `f(at)` and the directional derivative of f along `tangent`.
///
/// # Errors
/// If `f` returns a `Result`: its error, or, on concrete tensors, a solve in `f` that ended early.
///
/// # Panics
/// If `tangent` and `at` differ in number of leaves, or in the type or shape of a float leaf. If `f` does not
/// return a `Result`, the cases under "Errors" panic.
#[track_caller]
pub fn jvp<M: Tree, R: Output>(f: impl FnOnce(&M) -> R, at: &M, tangent: &M) -> R::Of<(R::Tree, R::Tree)> {
    R::answer(derivative_along(|x| f(x).into_result(), at, tangent))
}

#[track_caller]
pub(super) fn derivative_along<M: Tree, T: Tree>(
    f: impl FnOnce(&M) -> Result<T>,
    at: &M,
    tangent: &M,
) -> Result<(T, T)> {
    let leaves = at.leaves();
    let (traced, result) = recorded(f, at, &leaves)?;
    let (values, tangents) = along(&traced, &leaves, &tangent.leaves())?;
    Ok((result.with_leaves(values), result.with_leaves(tangents)))
}

/// Traces a function of trees; the leaves of its result are tracers.
pub(super) fn recorded<M: Tree, T: Tree>(
    f: impl FnOnce(&M) -> Result<T>,
    at: &M,
    leaves: &[Tensor],
) -> Result<(Traced, T)> {
    trace_tree(&types(leaves), at, |x| {
        let result = f(&x)?;
        Ok((result.leaves(), result))
    })
}

/// The outputs of a traced function at `leaves`, and its derivative along `tangent`.
#[track_caller]
pub(super) fn along(
    traced: &Traced,
    leaves: &[Tensor],
    tangent: &[Tensor],
) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
    let wrt = float_leaves(leaves);
    let func = transform::jvp(&traced.func, &wrt);
    let tangents = directions("a tangent", leaves, tangent, &wrt);
    let args: Vec<Tensor> = leaves.iter().chain(&traced.captures).cloned().chain(tangents).collect();
    let mut values = run(&func, &args, traced)?;
    let tangents = values.split_off(traced.num_outputs);
    let tangents = assemble(&values, tangents);
    Ok((values, tangents))
}

/// The vector-Jacobian product: `f(at)` and the map from a cotangent of the result to the cotangent of `at`.
///
/// Each call of the map runs `f` again together with its derivative, because no intermediate values are
/// stored.
///
/// # Errors
/// If `f` returns a `Result`: its error, a missing reverse derivative, or, on concrete tensors, a solve in `f`
/// that ended early.
///
/// # Panics
/// If `f` does not return a `Result`, the cases under "Errors" panic. The map panics if the cotangent and the
/// result differ in number of leaves, or in the type or shape of a float leaf.
#[track_caller]
#[doc(alias = "pullback")]
pub fn vjp<M: Tree, R: Output>(
    f: impl FnOnce(&M) -> R,
    at: &M,
) -> R::Of<(R::Tree, Box<dyn Fn(&R::Tree) -> M>)> {
    let found = (|| {
        let leaves = at.leaves();
        let (traced, result) = recorded(|x| f(x).into_result(), at, &leaves)?;
        let (values, pull) = Pull::new(traced, leaves)?;
        let at = at.clone();
        let back: Box<dyn Fn(&R::Tree) -> M> =
            Box::new(move |g: &R::Tree| at.with_leaves(pull.back(&g.leaves())));
        Ok((result.with_leaves(values), back))
    })();
    R::answer(found)
}

/// The map from cotangents of results to cotangents of arguments.
pub(super) struct Pull {
    /// Maps `arguments.., captures.., cotangents..` to `first` outputs, then the cotangents of float
    /// arguments.
    func: Func,
    first: usize,
    args: Vec<Tensor>,
    leaves: Vec<Tensor>,
    results: Vec<Tensor>,
}

impl Pull {
    /// The outputs of a traced function at `leaves`, and its [`Pull`].
    pub fn new(traced: Traced, leaves: Vec<Tensor>) -> Result<(Vec<Tensor>, Pull)> {
        let args: Vec<Tensor> = leaves.iter().chain(&traced.captures).cloned().collect();
        let results = run(&traced.func, &args, &traced)?;
        let (outs, wrt) = (float_leaves(&results), float_leaves(&leaves));
        let func = transform::vjp(&traced.func, &outs, &wrt)?;
        Ok((results.clone(), Pull { func, first: traced.func.num_outputs(), args, leaves, results }))
    }

    #[track_caller]
    pub fn back(&self, cotangents: &[Tensor]) -> Vec<Tensor> {
        let mut args = self.args.clone();
        let outs = float_leaves(&self.results);
        args.extend(directions("a cotangent", &self.results, cotangents, &outs));
        assemble(&self.leaves, apply(&self.func, &args).split_off(self.first))
    }
}
