//! Rules for movement ops, reductions and matrix products.

use super::{insert, splat, splat_of};
use crate::array::Shape;
use crate::graph::{BinaryOp, Builder, NodeId, Op, ReduceOp, ScatterOp, Type, turned};

/// A simpler form of an operation that is not elementwise.
pub(super) fn rewrite(b: &mut Builder, op: &Op, x: &[NodeId], ty: &Type) -> Option<NodeId> {
    let first = *x.first()?;
    match op {
        Op::Broadcast { dims } => broadcast(b, dims, first, ty),
        Op::Reshape if b.ty(first) == ty => Some(first),
        Op::Reshape => {
            let from = operand(b, first, |op| *op == Op::Reshape)?;
            Some(insert(b, &Op::Reshape, &[from], ty))
        }
        Op::Transpose { perm } => transpose(b, perm, first, ty),
        Op::Slice { start, limit } => slice(b, start, limit, first, ty),
        Op::Pad { lo, hi } => pad(b, lo, hi, first, ty),
        Op::Concat { axis } => concat(b, *axis, x, ty),
        Op::Reduce { op, axes } => reduce(b, *op, axes, first, ty),
        Op::Dot { ta, tb } => dot(b, [*ta, *tb], [x[0], x[1]], ty),
        Op::Gather => splat(b, first).map(|c| splat_of(b, ty, c)),
        Op::Scatter(ScatterOp::Add) => (splat(b, x[2]) == Some(0.0)).then_some(first),
        _ => None,
    }
}

/// The operand of a node whose operation satisfies `wanted`.
fn operand(b: &Builder, x: NodeId, wanted: impl Fn(&Op) -> bool) -> Option<NodeId> {
    let node = b.node(x);
    wanted(&node.op).then(|| node.args[0])
}

fn broadcast(b: &mut Builder, dims: &[usize], x: NodeId, ty: &Type) -> Option<NodeId> {
    if b.ty(x) == ty {
        return Some(x);
    }
    let node = b.node(x).clone();
    match node.op {
        Op::Broadcast { dims: inner } => {
            let dims = inner.iter().map(|&i| dims[i]).collect();
            Some(insert(b, &Op::Broadcast { dims }, &node.args, ty))
        }
        Op::Reshape => {
            // Inserted or removed axes of length 1 do not affect a broadcast.
            let (from, to) = (b.ty(node.args[0]).clone(), node.ty.shape());
            let long = |s: &Shape| (0..s.rank()).filter(|&i| s[i] != 1).collect::<Vec<_>>();
            let (a, c) = (long(from.shape()), long(to));
            if a.iter().map(|&i| from.shape()[i]).ne(c.iter().map(|&i| to[i])) {
                return None;
            }
            let narrow = from.with_shape(c.iter().map(|&i| to[i]).collect::<Vec<_>>());
            if narrow == node.ty {
                return None;
            }
            let x = insert(b, &Op::Reshape, &node.args, &narrow);
            Some(insert(b, &Op::Broadcast { dims: c.iter().map(|&i| dims[i]).collect() }, &[x], ty))
        }
        _ => None,
    }
}

fn transpose(b: &mut Builder, perm: &[usize], x: NodeId, ty: &Type) -> Option<NodeId> {
    let shape = b.ty(x).shape().clone();
    if perm.iter().filter(|&&p| shape[p] != 1).is_sorted() {
        return Some(insert(b, &Op::Reshape, &[x], ty));
    }
    let node = b.node(x).clone();
    match node.op {
        Op::Transpose { perm: inner } => {
            let perm = perm.iter().map(|&p| inner[p]).collect();
            Some(insert(b, &Op::Transpose { perm }, &node.args, ty))
        }
        Op::Broadcast { dims } => {
            let at = |d: usize| perm.iter().position(|&p| p == d).expect("invariant: a permutation");
            let dims: Vec<usize> = dims.into_iter().map(at).collect();
            dims.is_sorted().then(|| insert(b, &Op::Broadcast { dims }, &node.args, ty))
        }
        _ => None,
    }
}

fn slice(b: &mut Builder, start: &[usize], limit: &[usize], x: NodeId, ty: &Type) -> Option<NodeId> {
    if b.ty(x) == ty {
        return Some(x);
    }
    let node = b.node(x).clone();
    let plus = |a: &[usize], c: &[usize]| a.iter().zip(c).map(|(a, c)| a + c).collect::<Vec<_>>();
    match &node.op {
        Op::Slice { start: inner, .. } => {
            let op = Op::Slice { start: plus(start, inner), limit: plus(limit, inner) };
            Some(insert(b, &op, &node.args, ty))
        }
        Op::Pad { lo, .. } => {
            let end = plus(lo, b.ty(node.args[0]).shape());
            let axes = || 0..start.len();
            if axes().any(|i| limit[i] <= lo[i] || start[i] >= end[i]) {
                return Some(splat_of(b, ty, 0.0));
            }
            let inside = axes().all(|i| lo[i] <= start[i] && limit[i] <= end[i]);
            let minus = |a: &[usize]| a.iter().zip(lo).map(|(a, l)| a - l).collect::<Vec<_>>();
            inside.then(|| {
                let op = Op::Slice { start: minus(start), limit: minus(limit) };
                insert(b, &op, &node.args, ty)
            })
        }
        Op::Concat { axis } => {
            let mut before = 0;
            for &part in &node.args {
                let end = before + b.ty(part).shape()[*axis];
                if before <= start[*axis] && limit[*axis] <= end && start[*axis] < limit[*axis] {
                    let (mut start, mut limit) = (start.to_vec(), limit.to_vec());
                    start[*axis] -= before;
                    limit[*axis] -= before;
                    return Some(insert(b, &Op::Slice { start, limit }, &[part], ty));
                }
                before = end;
            }
            None
        }
        Op::Broadcast { dims } => {
            let from = b.ty(node.args[0]).shape();
            let whole = |(i, &d): (usize, &usize)| from[i] == 1 || from[i] == ty.shape()[d];
            dims.iter().enumerate().all(whole).then(|| insert(b, &node.op, &node.args, ty))
        }
        _ => None,
    }
}

fn pad(b: &mut Builder, lo: &[usize], hi: &[usize], x: NodeId, ty: &Type) -> Option<NodeId> {
    if b.ty(x) == ty {
        return Some(x);
    }
    let node = b.node(x).clone();
    let Op::Pad { lo: l, hi: h } = &node.op else { return None };
    let plus = |a: &[usize], c: &[usize]| a.iter().zip(c).map(|(a, c)| a + c).collect::<Vec<_>>();
    Some(insert(b, &Op::Pad { lo: plus(lo, l), hi: plus(hi, h) }, &node.args, ty))
}

/// A simpler form of a sum of padded arrays that are adjacent or at the same position. Such sums are the
/// derivative of splitting an array.
pub(super) fn sum_of_pads(b: &mut Builder, x: [NodeId; 2], ty: &Type) -> Option<NodeId> {
    let parts = |b: &Builder, x: NodeId| match &b.node(x).op {
        Op::Pad { lo, hi } => Some((lo.clone(), hi.clone(), b.node(x).args[0])),
        _ => None,
    };
    let (p, q) = (parts(b, x[0])?, parts(b, x[1])?);
    let differ: Vec<usize> = (0..p.0.len()).filter(|&i| p.0[i] != q.0[i] || p.1[i] != q.1[i]).collect();
    match differ[..] {
        [] => {
            let inner = b.ty(p.2).clone();
            let sum = insert(b, &Op::Binary(BinaryOp::Add), &[p.2, q.2], &inner);
            Some(insert(b, &Op::Pad { lo: p.0, hi: p.1 }, &[sum], ty))
        }
        [axis] => {
            let (first, second) = if p.0[axis] < q.0[axis] { (p, q) } else { (q, p) };
            let len = |b: &Builder, x: NodeId| b.ty(x).shape()[axis];
            if first.0[axis] + len(b, first.2) != second.0[axis] {
                return None;
            }
            let both = len(b, first.2) + len(b, second.2);
            let joined = b.ty(first.2).with_shape(b.ty(first.2).shape().with_axis(axis, both));
            let joined = insert(b, &Op::Concat { axis }, &[first.2, second.2], &joined);
            Some(insert(b, &Op::Pad { lo: first.0, hi: second.1 }, &[joined], ty))
        }
        _ => None,
    }
}

fn concat(b: &mut Builder, axis: usize, x: &[NodeId], ty: &Type) -> Option<NodeId> {
    if let [one] = x {
        return Some(*one);
    }
    let is_joined = |b: &Builder, x: NodeId| b.node(x).op == Op::Concat { axis };
    if x.iter().any(|&x| is_joined(b, x)) {
        let flat = |&x: &NodeId| if is_joined(b, x) { b.node(x).args.to_vec() } else { vec![x] };
        let flat: Vec<NodeId> = x.iter().flat_map(flat).collect();
        return Some(insert(b, &Op::Concat { axis }, &flat, ty));
    }
    // Adjacent slices of one array.
    for i in 1..x.len() {
        if let Some(joined) = adjoining(b, axis, x[i - 1], x[i]) {
            let mut rest = x.to_vec();
            rest.splice(i - 1..=i, [joined]);
            return Some(insert(b, &Op::Concat { axis }, &rest, ty));
        }
    }
    None
}

fn adjoining(b: &mut Builder, axis: usize, x: NodeId, y: NodeId) -> Option<NodeId> {
    let (p, q) = (b.node(x).clone(), b.node(y).clone());
    let (Op::Slice { start, limit }, Op::Slice { start: start2, limit: limit2 }) = (p.op, q.op) else {
        return None;
    };
    let beside = |i: usize| i == axis || (start[i], limit[i]) == (start2[i], limit2[i]);
    if p.args != q.args || limit[axis] != start2[axis] || !(0..start.len()).all(beside) {
        return None;
    }
    let ty = p.ty.with_shape(p.ty.shape().with_axis(axis, limit2[axis] - start[axis]));
    Some(insert(b, &Op::Slice { start, limit: limit2 }, &p.args, &ty))
}

fn reduce(b: &mut Builder, op: ReduceOp, axes: &[usize], x: NodeId, ty: &Type) -> Option<NodeId> {
    let shape = b.ty(x).shape().clone();
    if axes.iter().all(|&a| shape[a] == 1) {
        return Some(insert(b, &Op::Reshape, &[x], ty));
    }
    let count = |axes: &[usize]| axes.iter().map(|&a| shape[a]).product::<usize>();
    if let Some(c) = splat(b, x) {
        return times(b, op, count(axes), c, ty);
    }
    let node = b.node(x).clone();
    let Op::Broadcast { dims } = node.op else { return None };
    let from = b.ty(node.args[0]).clone();
    let source = |a: usize| dims.iter().position(|&d| d == a);
    let repeated: Vec<usize> = axes
        .iter()
        .copied()
        .filter(|&a| source(a).is_none_or(|i| from.shape()[i] == 1 && shape[a] != 1))
        .collect();
    if repeated.is_empty() || count(&repeated) == 0 {
        return None;
    }
    let over: Vec<usize> = (0..dims.len()).filter(|&i| axes.contains(&dims[i])).collect();
    let small = from.with_shape(from.shape().without_axes(&over));
    let below = |d: usize| d - axes.iter().filter(|&&a| a < d).count();
    let dims = (0..dims.len()).filter(|i| !over.contains(i)).map(|i| below(dims[i])).collect();
    let mut y = node.args[0];
    if !over.is_empty() {
        y = insert(b, &Op::Reduce { op, axes: over }, &[y], &small);
    }
    if op == ReduceOp::Sum {
        let n = splat_of(b, &small, count(&repeated) as f64);
        y = insert(b, &Op::Binary(BinaryOp::Mul), &[y, n], &small);
    }
    Some(insert(b, &Op::Broadcast { dims }, &[y], ty))
}

/// The reduction of `n` copies of `c`.
fn times(b: &mut Builder, op: ReduceOp, n: usize, c: f64, ty: &Type) -> Option<NodeId> {
    match op {
        ReduceOp::Sum => {
            let (n, c) = (splat_of(b, ty, n as f64), splat_of(b, ty, c));
            Some(insert(b, &Op::Binary(BinaryOp::Mul), &[c, n], ty))
        }
        ReduceOp::Max | ReduceOp::Min => (n > 0).then(|| splat_of(b, ty, c)),
    }
}

/// Folds a transpose of an operand into the product's flag.
fn dot(b: &mut Builder, flags: [bool; 2], x: [NodeId; 2], ty: &Type) -> Option<NodeId> {
    let is_transpose = |op: &Op| matches!(op, Op::Transpose { perm } if *perm == turned(perm.len()));
    for k in 0..2 {
        if let Some(from) = operand(b, x[k], is_transpose) {
            let (mut x, mut flags) = (x, flags);
            x[k] = from;
            flags[k] = !flags[k];
            return Some(insert(b, &Op::Dot { ta: flags[0], tb: flags[1] }, &x, ty));
        }
    }
    None
}
