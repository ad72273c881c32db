//! Derivatives of functions of trees.
//!
//! Each of these traces its function once, transforms the function, and applies the result: at once
//! on concrete values, or by copying it into the enclosing trace, where it may be differentiated
//! again. The argument of a derivative is an input of its own function, so nested derivatives never
//! confuse their perturbations.

use super::trace::Check;
use super::tree::Tree;
use super::{Tensor, Traced, apply, trace};
use crate::error::{Error, Result};
use crate::graph::Type;
use crate::transform;

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

fn types(leaves: &[Tensor]) -> Vec<Type> {
    leaves.iter().map(Tensor::ty).collect()
}

/// Applies a transformed function whose checks begin at output `checks.0` and are `checks.1` in number.
fn run(func: &crate::graph::Func, args: &[Tensor], first: usize, num: usize) -> Result<Vec<Tensor>> {
    let mut out = apply(func, args);
    for values in out.drain(first..first + num) {
        Check { values }.settle()?;
    }
    Ok(out)
}

/// The reverse derivative of a closed function, for layers that hold functions and know no transforms.
pub(crate) fn reverse(
    f: &crate::graph::Func,
    outs: &[usize],
    wrt: &[usize],
) -> std::result::Result<crate::graph::Func, transform::TransformError> {
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

/// The gradient in the shape of the argument; leaves that are no floats get zeros.
fn assemble<M: Tree>(at: &M, leaves: &[Tensor], grads: Vec<Tensor>) -> M {
    let mut grads = grads.into_iter();
    at.with_leaves(leaves.iter().map(|x| match x.dtype().is_float() {
        true => grads.next().expect("invariant: a gradient for each float leaf"),
        false => Tensor::full(x.dtype(), x.shape().clone(), 0.0),
    }))
}

fn parts<M: Tree, L: Loss>(f: impl FnOnce(&M) -> L, at: &M) -> Result<(Tensor, L::Aux, M)> {
    let leaves = at.leaves();
    let mut failure = None;
    let traced: Traced<Option<L::Aux>> =
        trace(&types(&leaves), |x| match f(&at.with_leaves(x.to_vec())).open() {
            Ok((value, aux)) => {
                assert!(value.size() == 1, "a loss must be one number, this one has shape {}", value.shape());
                let mut out = vec![value.reshape(crate::array::Shape::scalar())];
                out.extend(aux.leaves());
                (out, Some(aux))
            }
            Err(e) => {
                failure = Some(e);
                (vec![], None)
            }
        });
    if let Some(e) = failure {
        return Err(e);
    }
    let wrt = float_leaves(&leaves);
    let func = transform::vjp(&traced.func, &[0], &wrt)?;
    let one = Tensor::scalar(traced.func.output_type(0).dtype(), 1.0);
    let args: Vec<Tensor> = leaves.iter().chain(&traced.captures).cloned().chain([one]).collect();
    let num_checks = traced.func.num_outputs() - traced.num_outputs;
    let mut out = run(&func, &args, traced.num_outputs, num_checks)?;
    let grads = out.split_off(traced.num_outputs);
    let value = out.remove(0);
    let aux = traced.aux.expect("invariant: an aux where there is no failure").with_leaves(out);
    Ok((value, aux, assemble(at, &leaves, grads)))
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
    let traced = trace(&types(&leaves), |x| {
        let out = f(&at.with_leaves(x.to_vec()));
        (out.leaves(), out)
    });
    let wrt = float_leaves(&leaves);
    let func = transform::jvp(&traced.func, &wrt);
    let tangents = directions("a tangent", &leaves, &tangent.leaves(), &wrt);
    let args: Vec<Tensor> = leaves.iter().chain(&traced.captures).cloned().chain(tangents).collect();
    let num_checks = traced.func.num_outputs() - traced.num_outputs;
    let out = run(&func, &args, traced.num_outputs, num_checks).unwrap_or_else(|e| panic!("{e}"));
    let (values, tangents) = out.split_at(traced.num_outputs);
    (traced.aux.with_leaves(values.to_vec()), assemble(&traced.aux, values, tangents.to_vec()))
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
    let traced = trace(&types(&leaves), |x| {
        let out = f(&at.with_leaves(x.to_vec()));
        (out.leaves(), out)
    });
    let args: Vec<Tensor> = leaves.iter().chain(&traced.captures).cloned().collect();
    let num_checks = traced.func.num_outputs() - traced.num_outputs;
    let values = run(&traced.func, &args, traced.num_outputs, num_checks).unwrap_or_else(|e| panic!("{e}"));
    let outs = float_leaves(&values);
    let func = transform::vjp(&traced.func, &outs, &float_leaves(&leaves)).unwrap_or_else(|e| panic!("{e}"));
    let (at, first, results) = (at.clone(), traced.func.num_outputs(), values.clone());
    let pull = move |cotangent: &T| {
        let mut args = args.clone();
        args.extend(directions("a cotangent", &results, &cotangent.leaves(), &outs));
        assemble(&at, &leaves, apply(&func, &args).split_off(first))
    };
    (traced.aux.with_leaves(values), Box::new(pull))
}
