//! Chooses the values of a backward body that are worth storing.
//!
//! The choice depends on the cost of operations relative to memory traffic, not on loops.

use super::pair::Matches;
use crate::graph::{Func, NodeId, Op, Type};

/// The values of a backward body that are worth storing, in the order of its nodes.
///
/// Walks from the operands of cotangent nodes towards the inputs. A value that a forward body computes and
/// that costs a matrix product or more is stored, since the forward body writes it to memory in any case.
/// Cheaper values are recomputed from stored values.
pub(super) fn kept(bwd: &Func, of: &Matches) -> Vec<NodeId> {
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
        // A value that is cheap to compute from stored values is not stored.
        if easy[i] && is_made && is_hard[i] {
            found.retain(|id| id.index() != i);
        }
        easy[i] |= is_input || is_made && !is_cotangent;
    }
    found
}

/// Whether an operation costs so much more than the memory traffic of its result that the result should be
/// stored.
fn is_hard_op(op: &Op) -> bool {
    matches!(
        op,
        Op::Dot { .. }
            | Op::Conv { .. }
            | Op::ConvKernel { .. }
            | Op::RandomBits { .. }
            | Op::ScatterAdd
            | Op::Solve(_)
            | Op::Replay(_)
            | Op::Tiles(_)
            | Op::Custom(_)
            | Op::Cond(_)
    )
}
