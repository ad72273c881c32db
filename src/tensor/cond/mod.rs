//! `cond`: runs one of two branches.
//!
//! The branches are traced into functions with a common list of inputs: the argument's leaves and the
//! captures of both branches. A value of the program selects the branch. Each branch combines the checks of
//! its solves ([`Check`]) into one additional result, which passes if the branch has no solve.

#[cfg(test)]
mod tests;

use super::grad::recorded;
use super::output::Output;
use super::rows::{tuple, worst_check};
use super::trace::Check;
use super::tree::{Tree, outline};
use super::{Tensor, Traced, align, apply, trace};
use crate::array::DType;
use crate::error::Result;
use crate::graph::{self, Op};
use std::sync::Arc;

/// `then(at)` if `pred` is true, else `otherwise(at)`; only one of the branches runs.
///
/// [`Tensor::select`] computes both sides and selects per element. `cond` runs one branch, selected by one
/// boolean. This saves time if a branch is expensive: a solve, a large product, or work that only every tenth
/// update needs. If `pred` is concrete, `cond` only calls the selected closure. The gradient is that of the
/// branch that ran; its computation runs this branch again.
///
/// Computations in a branch that depend only on captured tensors, not on `at`, are recorded outside the
/// branch and run whichever branch is selected. To avoid this, pass tensors that only one branch uses as a
/// part of `at`.
///
/// # Errors
/// If the branches return a `Result`: while the branches are recorded, the error of either branch; on concrete
/// tensors, the error of the branch that runs, including a solve in it that ended early.
///
/// # Panics
/// If `pred` is not one boolean, or, with a traced `pred`, the branches' results differ in leaves, types or
/// static values. If the branches do not return a `Result`, the cases under "Errors" panic.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// let halve_or_three = jit(|n: Tensor| cond(&(&n / 2).floor().eq(&n / 2), &n, |n| n / 2, |n| n * 3 + 1));
/// assert_eq!(halve_or_three.call(6.0)?.item(), 3.0);
/// assert_eq!(halve_or_three.call(7.0)?.item(), 22.0);
/// # Ok::<(), flowline::Error>(())
/// ```
#[track_caller]
pub fn cond<A: Tree, R: Output>(
    pred: &Tensor,
    at: &A,
    then: impl FnOnce(&A) -> R,
    otherwise: impl FnOnce(&A) -> R,
) -> R::Of<R::Tree> {
    R::answer(one_of(pred, at, |x| then(x).into_result(), |x| otherwise(x).into_result()))
}

#[track_caller]
fn one_of<A: Tree, R: Tree>(
    pred: &Tensor,
    at: &A,
    then: impl FnOnce(&A) -> Result<R>,
    otherwise: impl FnOnce(&A) -> Result<R>,
) -> Result<R> {
    let one = pred.dtype() == DType::Bool && pred.rank() == 0;
    assert!(one, "cond: pred is {}, expected one boolean, bool[]", pred.ty());
    if !pred.is_traced() {
        return if pred.item() == 0.0 { otherwise(at) } else { then(at) };
    }
    let leaves = at.leaves();
    let ((then, result), (otherwise, other)) =
        (recorded(then, at, &leaves)?, recorded(otherwise, at, &leaves)?);
    let outlines = [outline(&result), outline(&other)];
    Ok(result.with_leaves(chosen(pred, &leaves, [then, otherwise], outlines)?))
}

/// The results of the first branch if `pred` is true, else those of the second branch. The branches are
/// functions of `leaves` and their captures, and their results must have equal outlines.
#[track_caller]
fn chosen(
    pred: &Tensor,
    leaves: &[Tensor],
    branches: [Traced; 2],
    outlines: [Vec<String>; 2],
) -> Result<Vec<Tensor>> {
    let [a, b] = outlines;
    if let Some((a, b)) = a.iter().zip(&b).find(|(a, b)| a != b) {
        panic!("cond: one branch returns {a}, but the other returns {b}");
    }
    assert!(
        a.len() == b.len(),
        "cond: one branch returns {} leaves, but the other returns {}",
        a.len(),
        b.len()
    );
    let num_outs = branches[0].num_outputs;
    let both = branches.map(checked);
    let (mut bodies, captures) = align(&both.each_ref());
    let (otherwise, then) = (bodies.remove(1), bodies.remove(0));
    let args = std::iter::once(pred).chain(leaves).chain(&captures);
    let mut results = tuple(Op::Cond(Arc::new(graph::Cond { then, otherwise })), args);
    for values in results.split_off(num_outs) {
        Check { values }.settle()?;
    }
    Ok(results)
}

/// A branch with one check as its last result: the worst row of the checks of the branch, or a check that
/// passes if the branch has none.
fn checked(branch: Traced) -> Traced {
    let Traced { func, captures, num_outputs } = branch;
    let again = trace(&func.input_types(), &mut |x| {
        let mut out = apply(&func, x);
        let own = out.split_off(num_outputs);
        out.push(worst_check(Check::passed().values, &own));
        out
    });
    Traced { num_outputs: num_outputs + 1, func: again.func, captures }
}
