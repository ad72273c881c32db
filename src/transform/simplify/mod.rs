//! Simplification: each node is rewritten as it is inserted into a new builder, until nothing changes.
//!
//! The results of a simplified graph have the same bits as those of the original, with three exceptions. The
//! sign of a zero may change (`x + 0` becomes x). A sum of n equal terms becomes n times the term, rounded
//! once. An operand of a `lincomb` with coefficient 0 is dropped, even if it is not finite. `x * 0` is not
//! simplified to 0, because this would change non-finite results. Sums and products are not reassociated,
//! because this would change the rounding.
//!
//! A rule looks only at a node and its operands. Equality saturation would find more simplifications, but
//! local rules suffice for the redundant nodes of derivatives: ones, zeros, double negations, transposes,
//! broadcasts of constants.

mod arith;
mod carries;
mod fold;
mod movement;
mod prune;
mod prune_loop;

use super::bodies::rebuild;
use crate::graph::{Builder, Func, NodeId, Op, Type};
use std::collections::HashMap;

/// The maximum number of rounds. Graphs of real programs take two or three.
const MAX_ROUNDS: usize = 12;

/// Simplifies a function, including its bodies. Unused inputs and outputs of bodies are removed.
pub fn simplify(f: &Func) -> Func {
    let mut known = HashMap::new();
    let mut f = f.clone();
    for _ in 0..MAX_ROUNDS {
        let next = round(&f, &mut known);
        if next == f {
            break;
        }
        f = next;
    }
    f
}

/// Removes `stop_gradient` from a function, including its bodies. To be called after differentiation.
pub fn erase_stop_gradient(f: &Func) -> Func {
    rebuild(f, |b, op, x, ty| match op {
        Op::StopGradient => x[0],
        _ => b.push(op.map_bodies(erase_stop_gradient), x, Some(ty)),
    })
}

/// Rewrites the function's own nodes and leaves bodies unchanged, so that equal bodies stay equal.
pub(super) fn simplify_outside(f: &Func) -> Func {
    rebuild(f, insert)
}

/// One round: bodies first, then the nodes, then the signatures of bodies. `known` caches simplified bodies,
/// because a step occurs in a search and in its derivatives. It is only looked up, never iterated.
fn round(f: &Func, known: &mut HashMap<Func, Func>) -> Func {
    if let Some(done) = known.get(f) {
        return done.clone();
    }
    let simpler = rebuild(f, |b, op, x, ty| {
        if op.bodies().is_empty() {
            return insert(b, op, x, ty);
        }
        b.push(op.map_bodies(|body| round(body, known)), x, Some(ty))
    });
    let done = prune::prune(&simpler);
    known.insert(f.clone(), done.clone());
    done
}

/// Inserts an operation in its simplest known form.
fn insert(b: &mut Builder, op: &Op, x: &[NodeId], ty: &Type) -> NodeId {
    let simpler = fold::fold(b, op, x, ty)
        .or_else(|| arith::rewrite(b, op, x, ty))
        .or_else(|| movement::rewrite(b, op, x, ty));
    simpler.unwrap_or_else(|| b.push(op.clone(), x, Some(ty)))
}

/// The value of every element, if the node is a splat constant.
fn splat(b: &Builder, x: NodeId) -> Option<f64> {
    b.node(x).splat()
}

fn splat_of(b: &mut Builder, ty: &Type, x: f64) -> NodeId {
    b.splat(ty.dtype(), ty.shape().clone(), x)
}
