//! The derivatives of rows that are combined with updates at an index.
//!
//! Equal largest elements share the derivative of the maximum, as those of a maximum over axes do. A row that was
//! overwritten, and an update that another one replaced, have the derivative 0.

use super::jvp::or_zero;
use crate::array::DType;
use crate::graph::{Builder, CompareOp, NodeId, Op, ScatterOp, Type};

/// The elements that equal the largest one of their place, and the number of them.
struct AtMax {
    /// Of x.
    own: NodeId,
    /// Of the updates.
    new: NodeId,
    count: NodeId,
}

impl AtMax {
    fn new(b: &mut Builder, x: &[NodeId], y: NodeId) -> AtMax {
        let dtype = b.ty(y).dtype();
        let taken = b.push(Op::Gather, &[y, x[1]], None);
        let (own, new) = (b.compare(CompareOp::Eq, x[0], y), b.compare(CompareOp::Eq, x[2], taken));
        let ones = [own, new].map(|mask| b.cast(mask, dtype));
        AtMax { own, new, count: add(b, ones[0], x[1], ones[1]) }
    }
}

fn add(b: &mut Builder, x: NodeId, index: NodeId, updates: NodeId) -> NodeId {
    b.push(Op::Scatter(ScatterOp::Add), &[x, index, updates], None)
}

/// The derivative where the mask is true, else 0.
fn chosen(b: &mut Builder, mask: NodeId, d: NodeId) -> NodeId {
    let zero = b.splat_like(d, 0.0);
    b.select(mask, d, zero)
}

/// Whether each update is the last one of its row, with the shape of the updates.
fn last_ones(b: &mut Builder, x: &[NodeId]) -> NodeId {
    let (index, updates) = (b.ty(x[1]).clone(), b.ty(x[2]).clone());
    let rows = b.ty(x[0]).shape()[0];
    let count = Type::array(DType::I32, [index.shape().size()]);
    let number = b.push(Op::Iota { axis: 0 }, &[], Some(&count));
    let number = b.reshape(number, index.shape().clone());
    let none = b.splat(DType::I32, [rows], 0.0);
    let last = b.push(Op::Scatter(ScatterOp::Set), &[none, x[1], number], None);
    let last = b.push(Op::Gather, &[last, x[1]], None);
    let is_last = b.compare(CompareOp::Eq, last, number);
    b.broadcast(is_last, updates.shape(), (0..index.shape().rank()).collect())
}

/// The tangent of y.
pub(super) fn tangent(
    b: &mut Builder,
    op: ScatterOp,
    (x, y): (&[NodeId], NodeId),
    dx: &[Option<NodeId>],
) -> Option<NodeId> {
    match (op, dx[0], dx[2]) {
        (_, None, None) => None,
        (ScatterOp::Add, own, None) => own,
        (ScatterOp::Add | ScatterOp::Set, own, new) => {
            let (own, new) = (or_zero(b, own, x[0]), or_zero(b, new, x[2]));
            Some(b.push(Op::Scatter(op), &[own, x[1], new], None))
        }
        (ScatterOp::Max, own, new) => {
            let at = AtMax::new(b, x, y);
            let own = own.map(|d| chosen(b, at.own, d));
            let new = new.map(|d| chosen(b, at.new, d));
            let own = or_zero(b, own, x[0]);
            let sum = new.map_or(own, |new| add(b, own, x[1], new));
            Some(b.div(sum, at.count))
        }
    }
}

/// The cotangent of operand k.
pub(super) fn cotangent(
    b: &mut Builder,
    op: ScatterOp,
    (x, y): (&[NodeId], NodeId),
    (g, k): (NodeId, usize),
) -> NodeId {
    let taken = |b: &mut Builder, g: NodeId| if k == 0 { g } else { b.push(Op::Gather, &[g, x[1]], None) };
    match (op, k) {
        (ScatterOp::Add, _) => taken(b, g),
        (ScatterOp::Max, _) => {
            let at = AtMax::new(b, x, y);
            let shared = b.div(g, at.count);
            let shared = taken(b, shared);
            chosen(b, if k == 0 { at.own } else { at.new }, shared)
        }
        (ScatterOp::Set, 0) => {
            let zero = b.splat_like(x[2], 0.0);
            b.push(Op::Scatter(op), &[g, x[1], zero], None)
        }
        (ScatterOp::Set, _) => {
            let (mask, g) = (last_ones(b, x), taken(b, g));
            chosen(b, mask, g)
        }
    }
}
