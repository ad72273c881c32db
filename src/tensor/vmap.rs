//! `vmap`: a transform adds an axis of examples to a function of one example.
//!
//! Like a derivative, `vmap` traces its function once, transforms it, and applies the result. It therefore
//! nests with derivatives in any order. The gradient of the mean of mapped losses contracts over examples
//! inside its products. Mapped gradients are gradients per example.

use super::output::Output;
use super::trace::{Check, trace_tree};
use super::tree::Tree;
use super::{Tensor, Traced, apply, try_trace};
use crate::error::{Error, Result};
use crate::graph::Type;
use crate::transform;
pub(crate) use crate::transform::Searches;

/// Maps `f` over the first axis of `over`'s leaves; results are stacked along a new first axis: `vmap(f, xs)[i]
/// = f(xs[i])`.
///
/// All tensor leaves of `over` are mapped; static leaves are unchanged. Values shared by all examples, such as
/// a model's weights, are captured. Several mapped arguments form a tuple: `vmap(|(x, y): &(Tensor, Tensor)|
/// ..., &(xs, ys))`. To map along another axis, `permute` first.
///
/// The examples are computed together: elementwise functions on longer arrays, and products with shared
/// weights as one product with more rows. A solve, [`map_rows`](super::map_rows), and a
/// [`cond`](super::cond()) with one predicate per example run for each example alone, in parallel, so each
/// solve chooses its own steps. If only the directions of a derivative are mapped (a Jacobian), all
/// directions share one solve. For many small solves in lockstep, see `Batching::PerRow`. For rows that share
/// their steps, see [`map_rows`](super::map_rows).
///
/// For the gradient of a mean over examples, take the gradient of the mean, `grad(|m| vmap(..).mean(),
/// &model)`: its products contract over examples. The mean of mapped gradients would first compute the gradient
/// of each example.
///
/// # Numerics
/// Each example is bit-equal to a single call, including sums, products and solves, unless a simplification
/// that changes rounding applies to only one of the two programs (a sum of n equal terms becomes n times the
/// term).
///
/// # Errors
/// If `f` returns a `Result`: its error, or, on concrete tensors, the outcome of the first example's solve that
/// ended early. If an operand is traced, such a solve is an error of the call that runs the program.
///
/// # Panics
/// If `over` has no tensor leaf, a leaf has rank 0 or an empty first axis, or first axes differ in length. If
/// `f` does not return a `Result`, the cases under "Errors" panic.
///
/// # Examples
/// The derivative of a function at many points, and the gradient of each example's loss:
/// ```
/// use flowline::nn::prelude::*;
/// let xs = Tensor::from([0.0, 1.0, 2.0]);
/// let gradients = vmap(|x: &Tensor| grad(|x: &Tensor| x * x * x, x), &xs);
/// assert_eq!(gradients.to_vec(), [0.0, 3.0, 12.0]);
///
/// let (weight, data) = (Tensor::from([1.0, -1.0]), Tensor::from([[1.0, 2.0], [3.0, 4.0]]));
/// let each = vmap(|x: &Tensor| grad(|w: &Tensor| w.matmul(x).square(), &weight), &data);
/// assert_eq!(each.to_vec(), [-2.0, -4.0, -6.0, -8.0]);
/// ```
/// If `f` solves, it returns a `Result`, and so does `vmap`:
/// ```
/// use flowline::nn::prelude::*;
/// let rates = Tensor::from([0.5, 1.0]);
/// let ends = vmap(|r: &Tensor| Ok(Ode::new(|_t, y: &Tensor| -(r * y)).solve(0.0, 1.0, Tensor::from(1.0))?.y1), &rates)?;
/// assert!((ends.index(1).item() - (-1.0_f64).exp()).abs() < 1e-3);
/// # Ok::<(), flowline::Error>(())
/// ```
#[track_caller]
pub fn vmap<M: Tree, R: Output>(f: impl FnOnce(&M) -> R, over: &M) -> R::Of<R::Tree> {
    R::answer(mapped_tree(|x| f(x).into_result(), over, Searches::Alone))
}

/// [`vmap`] with solves in lockstep.
#[track_caller]
pub(crate) fn vmap_in_lockstep<M: Tree, T: Tree>(f: impl FnOnce(&M) -> Result<T>, over: &M) -> Result<T> {
    mapped_tree(f, over, Searches::Lockstep)
}

#[track_caller]
fn mapped_tree<M: Tree, T: Tree>(f: impl FnOnce(&M) -> Result<T>, over: &M, searches: Searches) -> Result<T> {
    let named = over.named_leaves();
    let (n, types) = (examples(&named), named.iter().map(|(_, x)| row(x)).collect::<Vec<_>>());
    let (traced, result) = trace_tree(&types, over, |x| {
        let result = f(&x)?;
        Ok::<_, Error>((result.leaves(), result))
    })?;
    Ok(result.with_leaves(mapped(&traced, named, (n, searches))?))
}

/// Maps a traced function of one example over `n` examples.
fn mapped(
    traced: &Traced,
    over: Vec<(String, Tensor)>,
    (n, searches): (usize, Searches),
) -> Result<Vec<Tensor>> {
    let mut is_mapped = vec![true; over.len()];
    is_mapped.resize(traced.func.num_inputs(), false);
    let leaves = over.into_iter().map(|(_, x)| x);
    let args: Vec<Tensor> = leaves.chain(traced.captures.iter().cloned()).collect();
    let mut out = apply(&transform::batch_with(&traced.func, &is_mapped, n, searches), &args);
    for check in out.split_off(traced.num_outputs) {
        let columns = check.shape()[2];
        let rows = check.size() / columns;
        Check { values: check.reshape([rows, columns]) }.settle()?;
    }
    Ok(out)
}

/// The type of one entry of the first axis.
fn row(x: &Tensor) -> Type {
    x.ty().with_shape(x.shape().without_axes(&[0]))
}

/// The number of examples: the length of every leaf's first axis.
#[track_caller]
fn examples(over: &[(String, Tensor)]) -> usize {
    let Some((first, x)) = over.first() else {
        panic!("vmap: the argument has no tensor leaf to map over");
    };
    let known = x.shape();
    for (path, x) in over {
        let (path, shape) = (named(path), x.shape());
        assert!(shape.rank() > 0, "vmap: {path} is a {} without an axis to map over: capture it", x.dtype());
        assert!(shape[0] > 0, "vmap: {path} has shape {shape}, which has no examples");
        assert!(
            known[0] == shape[0],
            "vmap: {path} has shape {shape}, {} examples, but {} has shape {known}, {} examples",
            shape[0],
            named(first),
            known[0]
        );
    }
    known[0]
}

/// The name of a leaf in messages. If the argument is a tensor, its leaf has no path.
fn named(path: &str) -> String {
    if path.is_empty() { "the argument".to_owned() } else { format!("leaf {path}") }
}

/// Maps `f` over the `rows` entries of the first axes of `rowed`, with `shared` unchanged, and stacks the
/// results: [`vmap`] for lists of tensors, with a choice of how searches run.
///
/// # Errors
/// The error of `f` while it is recorded.
pub(crate) fn over_rows<E>(
    mut rowed: Vec<Tensor>,
    shared: &[Tensor],
    (rows, searches): (usize, Searches),
    f: &mut dyn FnMut(&[Tensor]) -> Result<Vec<Tensor>, E>,
) -> Result<Vec<Tensor>, E> {
    let types: Vec<Type> = rowed.iter().map(row).chain(shared.iter().map(Tensor::ty)).collect();
    let traced = try_trace(&types, f)?;
    let mut mapped = vec![true; rowed.len()];
    mapped.resize(rowed.len() + shared.len() + traced.captures.len(), false);
    rowed.extend(shared.iter().cloned().chain(traced.captures));
    Ok(apply(&transform::batch_with(&traced.func, &mapped, rows, searches), &rowed))
}

#[cfg(test)]
mod tests;
