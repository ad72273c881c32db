//! Derivatives of functions of trees.
//!
//! Each of these traces its function once, transforms the function, and applies the result: at once
//! on concrete values, or by copying it into the enclosing trace, where it may be differentiated
//! again. The argument of a derivative is an input of its own function, so nested derivatives never
//! confuse their perturbations.

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

/// Applies what a transform made of a traced function, whose outputs are its first ones; looks at the checks.
fn run(func: &Func, args: &[Tensor], traced: &Traced) -> Result<Vec<Tensor>> {
    let mut out = apply(func, args);
    for values in out.drain(traced.num_outputs..traced.func.num_outputs()) {
        Check { values }.settle()?;
    }
    Ok(out)
}

/// The reverse derivative of a closed function, for layers that hold functions and know no transforms.
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

/// Tangents or cotangents of the leaves `which` of `at`.
#[track_caller]
fn directions(what: &str, at: &[Tensor], of: &[Tensor], which: &[usize]) -> Vec<Tensor> {
    assert!(at.len() == of.len(), "{what} has {} leaves, not {}", of.len(), at.len());
    let checked = which.iter().map(|&i| {
        let (got, want) = (of[i].ty(), at[i].ty());
        assert!(got == want, "leaf {i} of {what} is {got}, not {want} as its value: cast or reshape it");
        of[i].clone()
    });
    checked.collect()
}

/// A gradient for each leaf: those of the floats among them, and zeros.
fn assemble(leaves: &[Tensor], grads: Vec<Tensor>) -> Vec<Tensor> {
    let mut grads = grads.into_iter();
    let of = |x: &Tensor| match x.dtype().is_float() {
        true => grads.next().expect("invariant: a gradient for each float leaf"),
        false => Tensor::full(x.dtype(), x.shape().clone(), 0.0),
    };
    leaves.iter().map(of).collect()
}

/// A loss opened: what a trace returns of it, its value first, and what it returned beside the value.
pub(super) fn opened<L: Output<Tree: Loss>>(loss: L) -> Result<(Vec<Tensor>, <L::Tree as Loss>::Aux)> {
    let (value, aux) = loss.into_result()?.open();
    let mut out = aux.leaves();
    out.insert(0, one_number(&value));
    Ok((out, aux))
}

fn one_number(value: &Tensor) -> Tensor {
    assert!(value.size() == 1, "a loss must be one number, this one has shape {}", value.shape());
    value.reshape(Shape::scalar())
}

/// What a traced loss gives at `leaves`, its value first, and its gradient by each of them.
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

/// The value of a loss and its gradient by every float leaf of `at`, in the shape of `at`.
///
/// # Errors
/// Where the loss is a `Result`, what it returned; that it has no reverse derivative; on concrete tensors, that a solve in
/// it ended early.
///
/// # Panics
/// When the loss is not one number. Where the loss is no `Result`, for its errors too.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// let x = Tensor::from([1.0, 2.0, 3.0]);
/// let (value, gradient) = value_and_grad(|x: &Tensor| x.square().sum(), &x);
/// assert_eq!((value.item(), gradient.to_vec()), (14.0, vec![2.0, 4.0, 6.0]));
/// ```
/// How long a ball thrown upwards is in the air, and how that changes with its speed:
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
pub fn value_and_grad<M: Tree, L: Output<Tree: Loss>>(
    f: impl FnOnce(&M) -> L,
    at: &M,
) -> L::Of<(L::Tree, M)> {
    L::answer(value_with_grad(f, at))
}

/// The gradient alone.
///
/// # Errors
/// As [`value_and_grad`].
///
/// # Panics
/// As [`value_and_grad`].
#[track_caller]
pub fn grad<M: Tree, L: Output<Tree: Loss>>(f: impl FnOnce(&M) -> L, at: &M) -> L::Of<M> {
    L::answer(value_with_grad(f, at).map(|(_, grad)| grad))
}

/// `f(at)` and the directional derivative of f along `tangent`.
///
/// # Errors
/// Where `f` returns a `Result`, its error; on concrete tensors, that a solve in it ended early.
///
/// # Panics
/// When the tangent's float leaves have not the types of `at`'s. Where `f` returns no `Result`, for its errors too.
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

/// A function of trees, traced; its result has tracers for leaves.
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

/// What a traced function gives at `leaves`, and its derivative along `tangent`.
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

/// `f(at)` and the map from a cotangent of the result to the cotangent of `at`.
///
/// The map runs `f` again, together with its derivative: nothing is kept in between.
///
/// # Errors
/// Where `f` returns a `Result`, its error; that it has no reverse derivative; on concrete tensors, that a solve in it
/// ended early.
///
/// # Panics
/// Where `f` returns no `Result`, for its errors. The map, when the cotangent's float leaves have not the types of the
/// result's.
#[track_caller]
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

/// The map from cotangents of results to those of arguments.
pub(super) struct Pull {
    /// Arguments.., captures.., cotangents.. to what `first` counts, then the cotangents of float arguments.
    func: Func,
    first: usize,
    args: Vec<Tensor>,
    leaves: Vec<Tensor>,
    results: Vec<Tensor>,
}

impl Pull {
    /// What a traced function gives at `leaves`, and its map.
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
