//! Rewrites a graph before planning: replaces operation flags by operations that the other passes support.
//!
//! A transposed factor of a product becomes an explicit transpose. For the left factor, the transpose is a
//! view. For the right factor it may need a copy, which all products that use it share (equal nodes merge). A
//! reduction over axes that are not adjacent becomes a chain of reductions, innermost first. `any` of truth
//! values becomes their maximum, and `all` becomes the negated maximum of the negated values. An iota along
//! one of several axes becomes a one-axis iota that is broadcast: its numbers are in the pool of constants,
//! and only the broadcast may need a full buffer. All other nodes are copied; nodes that no output needs are
//! dropped.

use super::places::Geometry;
use crate::array::DType;
use crate::graph::{Builder, Func, Node, NodeId, NodeIds, Op, ReduceOp, Type, UnaryOp};

/// The function in the form that the planner expects.
pub(crate) fn prepare(func: &Func) -> Func {
    if !func.nodes().iter().any(|node| is_foreign(func, node)) {
        return func.clone();
    }
    let mut b = Builder::new();
    let mut map: Vec<NodeId> = Vec::with_capacity(func.nodes().len());
    for node in func.nodes() {
        let args: NodeIds = node.args.iter().map(|a| map[a.index()]).collect();
        map.push(match &node.op {
            Op::Input(_) => b.input(node.ty.clone()),
            Op::Dot { ta, tb } => {
                let x = if *ta { b.turn(args[0]) } else { args[0] };
                let y = if *tb { b.turn(args[1]) } else { args[1] };
                b.dot(x, y, false, false)
            }
            Op::Iota { axis } => iota(&mut b, *axis, &node.ty),
            Op::Reduce { op: ReduceOp::Min, axes } if node.ty.dtype() == DType::Bool => {
                let not = b.unary(UnaryOp::Not, args[0]);
                let some = reduce(&mut b, ReduceOp::Max, not, axes.clone());
                b.unary(UnaryOp::Not, some)
            }
            Op::Reduce { axes, .. } if node.ty.dtype() == DType::Bool => {
                reduce(&mut b, ReduceOp::Max, args[0], axes.clone())
            }
            Op::Reduce { op, axes } => reduce(&mut b, *op, args[0], axes.clone()),
            op => b.push(op.clone(), &args, Some(&node.ty)),
        });
    }
    let outputs: Vec<NodeId> = func.outputs().iter().map(|o| map[o.index()]).collect();
    b.finish(&outputs)
}

fn is_foreign(func: &Func, Node { op, args, ty }: &Node) -> bool {
    match op {
        Op::Dot { ta, tb } => *ta || *tb,
        Op::Iota { .. } => ty.shape().rank() != 1,
        Op::Reduce { op: ReduceOp::Sum | ReduceOp::Min, .. } if ty.dtype() == DType::Bool => true,
        Op::Reduce { axes, .. } => Geometry::of(func.node(args[0]).ty.shape(), axes).is_none(),
        _ => false,
    }
}

fn iota(b: &mut Builder, axis: usize, ty: &Type) -> NodeId {
    let count = ty.with_shape([ty.shape()[axis]]);
    let count = b.push(Op::Iota { axis: 0 }, &[], Some(&count));
    b.broadcast(count, ty.shape(), vec![axis])
}

fn reduce(b: &mut Builder, op: ReduceOp, x: NodeId, mut axes: Vec<usize>) -> NodeId {
    let mut last = Vec::new();
    let shape = b.ty(x).shape().clone();
    while Geometry::of(&shape, &axes).is_none() {
        // The outermost axes remain in `axes`; the axes moved to `last` are inside them.
        last.insert(0, axes.pop().expect("invariant: an empty set of axes has a geometry"));
    }
    if last.is_empty() {
        return b.reduce(op, x, axes);
    }
    let rest = reduce(b, op, x, last);
    b.reduce(op, rest, axes)
}
