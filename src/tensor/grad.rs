//! Derivatives of functions of trees.
//!
//! Each of these traces its function once, transforms the function, and applies the result: at once
//! on concrete values, or by copying it into the enclosing trace, where it may be differentiated
//! again. The argument of a derivative is an input of its own function, so nested derivatives never
//! confuse their perturbations.

use super::trace::{Check, trace_tree};
use super::tree::Tree;
use super::{Tensor, Traced, apply};
use crate::array::Shape;
use crate::error::{Error, Result};
use crate::graph::{Func, Type};
use crate::transform;
use std::convert::Infallible;

/// What a loss may return: a scalar, `(scalar, aux)`, or a [`Result`] of either.
#[diagnostic::on_unimplemented(
    message = "a loss cannot return `{Self}`",
    label = "return a scalar Tensor, (Tensor, aux), or a flowline::Result of either"
)]
pub trait Loss: Sized {
    /// What a loss of this kind becomes together with a gradient.
    type With<G>;
    /// What is returned beside the value.
    type Aux: Tree;
    #[doc(hidden)]
    fn open(self) -> Result<(Tensor, Self::Aux)>;
    #[doc(hidden)]
    fn close<G>(parts: Result<(Tensor, Self::Aux, G)>) -> Self::With<G>;
}

impl Loss for Tensor {
    type With<G> = (Tensor, G);
    type Aux = ();
    fn open(self) -> Result<(Tensor, ())> {
        Ok((self, ()))
    }
    #[track_caller]
    fn close<G>(parts: Result<(Tensor, (), G)>) -> (Tensor, G) {
        parts.map_or_else(|e| panic!("{e}"), |(value, (), g)| (value, g))
    }
}

impl<A: Tree> Loss for (Tensor, A) {
    type With<G> = ((Tensor, A), G);
    type Aux = A;
    fn open(self) -> Result<(Tensor, A)> {
        Ok(self)
    }
    #[track_caller]
    fn close<G>(parts: Result<(Tensor, A, G)>) -> ((Tensor, A), G) {
        parts.map_or_else(|e| panic!("{e}"), |(value, aux, g)| ((value, aux), g))
    }
}

impl<L: Loss> Loss for Result<L, Error> {
    type With<G> = Result<L::With<G>, Error>;
    type Aux = L::Aux;
    fn open(self) -> Result<(Tensor, L::Aux)> {
        self?.open()
    }
    fn close<G>(parts: Result<(Tensor, L::Aux, G)>) -> Result<L::With<G>, Error> {
        parts.map(|p| L::close(Ok(p)))
    }
}

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
pub(super) fn opened<L: Loss>(loss: L) -> Result<(Vec<Tensor>, L::Aux)> {
    let (value, aux) = loss.open()?;
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

fn parts<M: Tree, L: Loss>(f: impl FnOnce(&M) -> L, at: &M) -> Result<(Tensor, L::Aux, M)> {
    let leaves = at.leaves();
    let (traced, aux) = trace_tree(&types(&leaves), at, |x| opened(f(&x)))?;
    let (mut values, grads) = gradient(&traced, &leaves)?;
    let value = values.remove(0);
    Ok((value, aux.with_leaves(values), at.with_leaves(grads)))
}

/// The value of a loss and its gradient by every float leaf of `at`, in the shape of `at`.
///
/// # Panics
/// When the loss is not one number. Where the loss is no `Result`, also when it has no reverse derivative or,
/// on concrete tensors, a solve in it ended early.
///
/// # Examples
/// ```
/// use flowline::prelude::*;
/// let x = Tensor::from([1.0, 2.0, 3.0]);
/// let (value, slope) = value_and_grad(|x: &Tensor| x.square().sum(), &x);
/// assert_eq!((value.item(), slope.to_vec()), (14.0, vec![2.0, 4.0, 6.0]));
/// ```
#[track_caller]
pub fn value_and_grad<M: Tree, L: Loss>(f: impl FnOnce(&M) -> L, at: &M) -> L::With<M> {
    L::close(parts(f, at))
}

/// The gradient alone.
///
/// # Panics
/// As [`value_and_grad`].
#[track_caller]
pub fn grad<M: Tree>(f: impl FnOnce(&M) -> Tensor, at: &M) -> M {
    value_and_grad(f, at).1
}

/// `f(at)` and the directional derivative of f along `tangent`.
///
/// # Panics
/// When the tangent's float leaves have not the types of `at`'s; on concrete tensors, when a solve in `f`
/// ended early.
#[track_caller]
pub fn jvp<M: Tree, T: Tree>(f: impl FnOnce(&M) -> T, at: &M, tangent: &M) -> (T, T) {
    let leaves = at.leaves();
    let (traced, result) = recorded(f, at, &leaves);
    let (values, tangents) = along(&traced, &leaves, &tangent.leaves());
    (result.with_leaves(values), result.with_leaves(tangents))
}

/// A function of trees, traced; its result has tracers for leaves.
fn recorded<M: Tree, T: Tree>(f: impl FnOnce(&M) -> T, at: &M, leaves: &[Tensor]) -> (Traced, T) {
    let Ok(recorded) = trace_tree(&types(leaves), at, |x| {
        let result = f(&x);
        Ok::<_, Infallible>((result.leaves(), result))
    });
    recorded
}

/// What a traced function gives at `leaves`, and its derivative along `tangent`.
#[track_caller]
fn along(traced: &Traced, leaves: &[Tensor], tangent: &[Tensor]) -> (Vec<Tensor>, Vec<Tensor>) {
    let wrt = float_leaves(leaves);
    let func = transform::jvp(&traced.func, &wrt);
    let tangents = directions("a tangent", leaves, tangent, &wrt);
    let args: Vec<Tensor> = leaves.iter().chain(&traced.captures).cloned().chain(tangents).collect();
    let mut values = run(&func, &args, traced).unwrap_or_else(|e| panic!("{e}"));
    let tangents = values.split_off(traced.num_outputs);
    let tangents = assemble(&values, tangents);
    (values, tangents)
}

/// `f(at)` and the map from a cotangent of the result to the cotangent of `at`.
///
/// The map runs `f` again, together with its derivative: nothing is kept in between.
///
/// # Panics
/// When `f` has no reverse derivative; on concrete tensors, when a solve in `f` ended early. The map, when the
/// cotangent's float leaves have not the types of the result's.
#[track_caller]
pub fn vjp<M: Tree, T: Tree>(f: impl FnOnce(&M) -> T, at: &M) -> (T, Box<dyn Fn(&T) -> M>) {
    let leaves = at.leaves();
    let (traced, result) = recorded(f, at, &leaves);
    let (values, pull) = Pull::new(traced, leaves);
    let at = at.clone();
    (result.with_leaves(values), Box::new(move |g: &T| at.with_leaves(pull.back(&g.leaves()))))
}

/// The map from cotangents of results to those of arguments.
struct Pull {
    /// Arguments.., captures.., cotangents.. to what `first` counts, then the cotangents of float arguments.
    func: Func,
    first: usize,
    args: Vec<Tensor>,
    leaves: Vec<Tensor>,
    results: Vec<Tensor>,
}

impl Pull {
    /// What a traced function gives at `leaves`, and its map.
    #[track_caller]
    fn new(traced: Traced, leaves: Vec<Tensor>) -> (Vec<Tensor>, Pull) {
        let args: Vec<Tensor> = leaves.iter().chain(&traced.captures).cloned().collect();
        let results = run(&traced.func, &args, &traced).unwrap_or_else(|e| panic!("{e}"));
        let (outs, wrt) = (float_leaves(&results), float_leaves(&leaves));
        let func = transform::vjp(&traced.func, &outs, &wrt).unwrap_or_else(|e| panic!("{e}"));
        (results.clone(), Pull { func, first: traced.func.num_outputs(), args, leaves, results })
    }

    #[track_caller]
    fn back(&self, cotangents: &[Tensor]) -> Vec<Tensor> {
        let mut args = self.args.clone();
        let outs = float_leaves(&self.results);
        args.extend(directions("a cotangent", &self.results, cotangents, &outs));
        assemble(&self.leaves, apply(&self.func, &args).split_off(self.first))
    }
}
