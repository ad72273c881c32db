//! Which values of a backward body are worth keeping.
//!
//! It knows what operations cost beside a way through memory, and nothing of loops.

use super::pair::Found;
use crate::graph::{Func, NodeId, Op, Type};

/// The values of a backward body that are worth keeping, in the order of its nodes.
///
/// From what reads cotangents, down through what they need: a value that a forward body has, and that takes a product
/// or more to make, is kept as it is, for it lies in memory there anyway; what takes less is made of what is kept.
pub(super) fn kept(bwd: &Func, of: &Found) -> Vec<NodeId> {
    let nodes = bwd.nodes();
    let is_primal = |id: &NodeId| !of.is_cotangent(*id);
    let mut is_hard = vec![false; nodes.len()];
    for (i, node) in nodes.iter().enumerate() {
        is_hard[i] = is_hard_op(&node.op) || node.args.iter().any(|a| is_hard[a.index()]);
    }
    let (mut wanted, mut found) = (vec![false; nodes.len()], vec![]);
    bwd.outputs().iter().filter(|id| is_primal(id)).for_each(|id| wanted[id.index()] = true);
    for (i, node) in nodes.iter().enumerate().rev() {
        let id = NodeId(i as u32);
        if of.is_cotangent(id) {
            node.args.iter().filter(|id| is_primal(id)).for_each(|id| wanted[id.index()] = true);
        } else if wanted[i] {
            let is_array = matches!(node.ty, Type::Array { .. });
            if of.has(id) && is_hard[i] && is_array {
                found.push(id);
            } else {
                node.args.iter().for_each(|a| wanted[a.index()] = true);
            }
        }
    }
    found.reverse();
    let mut easy = vec![false; nodes.len()];
    found.iter().for_each(|id| easy[id.index()] = true);
    for (i, node) in nodes.iter().enumerate() {
        let is_cotangent = of.is_cotangent(NodeId(i as u32));
        let is_input = matches!(node.op, Op::Input(_)) && !is_cotangent;
        let is_made = !is_hard_op(&node.op) && node.args.iter().all(|a| easy[a.index()]);
        // Of two values of which each is easily made of the other the first one is kept.
        if easy[i] && is_made && is_hard[i] {
            found.retain(|id| id.index() != i);
        }
        easy[i] |= is_input || is_made && !is_cotangent;
    }
    found
}

/// Whether an operation costs so much more than its result's way through memory that the result had better be kept.
fn is_hard_op(op: &Op) -> bool {
    matches!(
        op,
        Op::Dot { .. }
            | Op::Conv { .. }
            | Op::ConvKernel { .. }
            | Op::RandomBits { .. }
            | Op::ScatterAdd
            | Op::Solve(_)
            | Op::Scan(_)
            | Op::Rev(_)
            | Op::Loop(_)
            | Op::Tiles(_)
            | Op::Custom(_)
            | Op::Cond(_)
    )
}
