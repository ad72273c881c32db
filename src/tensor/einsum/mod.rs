//! Einsum: sums of products over named indices.
//!
//! An einsum becomes transposes, reshapes, matrix products, sums and elementwise products, which provide
//! derivatives and fusion. `spec` parses the text, `order` chooses the contraction order, and this file
//! converts each contraction of two arrays to operations. With concrete operands, an einsum runs as one
//! program, so that intermediate values share memory.

mod order;
mod spec;
#[cfg(test)]
mod tests;

use super::{Tensor, apply, trace};
use crate::graph::Type;
pub use order::{EinsumPath, EinsumStep};
use spec::Spec;

/// The sum of products given by a specification: `"bhqd,bhkd->bhqk"` is `out[b,h,q,k] = sum_d x[b,h,q,d]
/// y[b,h,k,d]`.
///
/// Indices are letters, one per axis. An index that is not in the result is summed. If an index occurs twice
/// in an operand, only the diagonal of the operand is used. Without `->` the result has the indices that
/// occur once, in alphabetical order (capitals first). White space is ignored.
///
/// An ellipsis `...` stands for the axes of an operand without a letter, as in NumPy: in `"...ij,...jk->...ik"`, leading
/// axes. These axes broadcast, aligned at the last one. The result has them in place of its ellipsis, or first if there
/// is no `->`.
///
/// # Numerics
/// Operands are contracted two at a time, in the order of [`einsum_path`], which depends only on the
/// specification and the shapes. For up to 8 operands, this order minimizes the largest array, then the
/// number of operations. For more operands, the order is the result of a greedy search.
///
/// # Panics
/// If the specification does not parse or does not fit the operands, or if the operands are not floats of
/// equal type.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// use flowline::tensor::einsum;
/// let a = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
/// assert_eq!(einsum("ij,kj->ik", &[&a, &a]).to_vec(), [5.0, 11.0, 11.0, 25.0]);
/// assert_eq!(einsum("ii->i", &[&a]).to_vec(), [1.0, 4.0]);
/// assert_eq!(einsum("ij->", &[&a]).item(), 10.0);
/// assert_eq!(einsum("...j,j->...", &[&a, &Tensor::from([1.0, 10.0])]).to_vec(), [21.0, 43.0]);
/// ```
#[track_caller]
pub fn einsum(spec: &str, operands: &[&Tensor]) -> Tensor {
    let shapes: Vec<&[usize]> = operands.iter().map(|x| &x.shape()[..]).collect();
    let read = match Spec::read(spec, &shapes).and_then(|s| floats(operands).map(|()| s)) {
        Ok(read) => read,
        Err(why) => panic!("einsum {spec:?}: {why}"),
    };
    let plan = order::plan(&read);
    let types: Vec<Type> = operands.iter().map(|x| x.ty()).collect();
    let program = trace(&types, &mut |x| {
        let x: Vec<Tensor> = x.iter().zip(&read.squeezed).map(|(x, axes)| x.squeeze(axes)).collect();
        vec![run(&read, &plan, &x)]
    });
    let operands: Vec<Tensor> = operands.iter().map(|&x| x.clone()).collect();
    apply(&program.func, &operands).remove(0)
}

/// How [`einsum`] computes a specification on operands of the given shapes. The axes of an ellipsis have letters that the
/// specification does not use.
///
/// # Panics
/// If the specification does not parse or does not fit the shapes.
///
/// # Examples
/// ```
/// use flowline::tensor::extra::einsum_path;
/// let plan = einsum_path("ij,jk,kl->il", &[&[100, 2], &[2, 100], &[100, 2]]);
/// // from left to right the first product would have 10000 elements
/// assert_eq!((plan.steps[0].spec.as_str(), plan.largest), ("jk,kl->jl", 200));
/// ```
#[track_caller]
pub fn einsum_path(spec: &str, shapes: &[&[usize]]) -> EinsumPath {
    match Spec::read(spec, shapes) {
        Ok(read) => order::plan(&read),
        Err(why) => panic!("einsum {spec:?}: {why}"),
    }
}

fn floats(operands: &[&Tensor]) -> Result<(), String> {
    let first = operands.first().map(|x| x.dtype());
    match operands.iter().enumerate().find(|(_, x)| !x.dtype().is_float() || Some(x.dtype()) != first) {
        Some((k, x)) => Err(format!("operand {k} is {}: operands must be floats of equal type", x.ty())),
        None => Ok(()),
    }
}

/// Computes the result of a specification by the steps of a path.
fn run(spec: &Spec, plan: &EinsumPath, x: &[Tensor]) -> Tensor {
    let mut arrays: Vec<Tensor> =
        x.iter().enumerate().map(|(k, x)| summed(x, &spec.operands[k], &plan.terms[k])).collect();
    for step in &plan.steps {
        let [a, b] = step.operands.map(|k| &arrays[k]);
        arrays.push(contract(spec, [a, b], [&step.terms[0], &step.terms[1]], &step.result));
    }
    let last = plan.steps.last().map_or(&plan.terms[0], |s| &s.result);
    let out = arrays.pop().expect("invariant: there is an operand");
    ordered(&out, last, &spec.result)
}

/// The diagonals of an operand, summed over the indices that occur in no other operand and not in the result.
/// The remaining axes are in the order of `kept`.
fn summed(x: &Tensor, term: &[u8], kept: &[u8]) -> Tensor {
    let (mut x, mut term) = (x.clone(), term.to_vec());
    while let Some((i, j)) = repeated(&term) {
        let others = (0..x.rank()).filter(|&k| k != i && k != j);
        x = x.permute(&others.chain([i, j]).collect::<Vec<_>>()).diagonal();
        term.remove(j);
        let c = term.remove(i);
        term.push(c);
    }
    let gone: Vec<usize> = (0..term.len()).filter(|&i| !kept.contains(&term[i])).collect();
    let left: Vec<u8> = term.iter().copied().filter(|c| kept.contains(c)).collect();
    ordered(&x.sum_axes(&gone), &left, kept)
}

/// Two axes with the same index.
fn repeated(term: &[u8]) -> Option<(usize, usize)> {
    let pair = |j: usize| term[..j].iter().position(|c| *c == term[j]).map(|i| (i, j));
    (0..term.len()).find_map(pair)
}

/// Permutes the axes from one order of indices to another.
fn ordered(x: &Tensor, from: &[u8], to: &[u8]) -> Tensor {
    let axis = |c: &u8| from.iter().position(|f| f == c).expect("invariant: the same indices");
    x.permute(&to.iter().map(axis).collect::<Vec<_>>())
}

/// The contraction of two arrays: a matrix product if an index is summed and at least one side has further
/// indices, else an elementwise product, which is fused with the sum of its elements.
fn contract(spec: &Spec, [x, y]: [&Tensor; 2], [a, b]: [&[u8]; 2], result: &[u8]) -> Tensor {
    let in_both = |c: &u8| a.contains(c) && b.contains(c);
    let batch: Vec<u8> = result.iter().copied().filter(in_both).collect();
    // The summed indices are in the order of the right factor, so that it need not be transposed.
    let sum: Vec<u8> = b.iter().copied().filter(|c| in_both(c) && !batch.contains(c)).collect();
    let left: Vec<u8> = a.iter().copied().filter(|c| !b.contains(c)).collect();
    let right: Vec<u8> = b.iter().copied().filter(|c| !a.contains(c)).collect();
    let dims = |terms: &[&[u8]]| spec.shape(&terms.concat());
    if left.is_empty() && right.is_empty() {
        let all = [&batch[..], &sum].concat();
        let axes: Vec<usize> = (batch.len()..all.len()).collect();
        return (ordered(x, a, &all) * ordered(y, b, &all)).sum_axes(&axes);
    }
    let (p, q) = (
        ordered(x, a, &[&batch[..], &left, &sum].concat()),
        ordered(y, b, &[&batch[..], &sum, &right].concat()),
    );
    if sum.is_empty() {
        let p = p.reshape([dims(&[&batch, &left]), vec![1; right.len()]].concat());
        let q = q.reshape([dims(&[&batch]), vec![1; left.len()], dims(&[&right])].concat());
        return p * q;
    }
    let size = |term: &[u8]| term.iter().map(|&c| spec.len(c)).product::<usize>();
    let (m, k, n) = (size(&left), size(&sum), size(&right));
    let lead = dims(&[&batch]);
    let product = p.reshape([&lead[..], &[m, k]].concat()).matmul(&q.reshape([&lead[..], &[k, n]].concat()));
    product.reshape(spec.shape(result))
}
