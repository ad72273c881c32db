//! One rule per op for operands with an axis of examples: the same op with an additional leading axis.
//!
//! Shared operands are broadcast only if the op needs equal shapes. A product does not broadcast a shared
//! operand; the examples become additional rows. Weights are therefore read once, and their cotangent is one
//! product over all rows of all examples.

use super::{MappedValue, batch, with_examples};
use crate::graph::{BinaryOp, Builder, Cond, Custom, Node, NodeId, Op};
use std::sync::Arc;

/// The node's value for `n` examples; at least one operand has an axis of examples.
pub(super) fn rule(b: &mut Builder, node: &Node, x: &[MappedValue], n: usize) -> NodeId {
    match &node.op {
        Op::Custom(c) => return custom(b, c, x, n),
        Op::Cond(c) => return cond(b, c, x, n),
        _ => {}
    }
    let ty = with_examples(&node.ty, n);
    let first = |b: &mut Builder, op: Op| b.push(op, &[x[0].id], Some(&ty));
    match &node.op {
        // An observer is called once, with all examples.
        Op::Unary(_) | Op::Cast | Op::StopGradient | Op::Observe(_) | Op::Reshape => {
            first(b, node.op.clone())
        }
        Op::Binary(_) | Op::Scalar(_) | Op::Compare(_) | Op::Select | Op::Lincomb { .. } => {
            all(b, node.op.clone(), x, n)
        }
        Op::Concat { axis } => all(b, Op::Concat { axis: axis + 1 }, x, n),
        Op::Broadcast { dims } => first(b, Op::Broadcast { dims: behind(0, dims) }),
        Op::Transpose { perm } => first(b, Op::Transpose { perm: behind(0, perm) }),
        Op::Slice { start, limit } => {
            let with = |all: usize, inner: &[usize]| [&[all][..], inner].concat();
            first(b, Op::Slice { start: with(0, start), limit: with(n, limit) })
        }
        Op::Pad { lo, hi } => {
            let with = |inner: &[usize]| [&[0][..], inner].concat();
            first(b, Op::Pad { lo: with(lo), hi: with(hi) })
        }
        Op::Reduce { op, axes } => {
            first(b, Op::Reduce { op: *op, axes: axes.iter().map(|a| a + 1).collect() })
        }
        Op::Dot { ta, tb } => Product { n, rank: node.ty.shape().rank(), ta: *ta, tb: *tb }.emit(b, x),
        Op::Conv { .. } if x[0].on && !x[1].on => images(b, &node.op, x, n),
        Op::Conv { .. } | Op::ConvKernel { .. } => all(b, node.op.clone(), x, n),
        Op::Factor(_) | Op::Lines(_) => first(b, node.op.clone()),
        Op::LuSolve { .. } if !x[0].on && !x[1].on => columns_of_examples(b, &node.op, x, n),
        Op::TriangularSolve(_) if !x[0].on => columns_of_examples(b, &node.op, x, n),
        Op::LuSolve { .. } | Op::TriangularSolve(_) => all(b, node.op.clone(), x, n),
        Op::Gather => gather(b, x, n),
        Op::Scatter(_) => scatter(b, node, x, n),
        Op::Input(_) | Op::Const(_) | Op::Iota { .. } => {
            unreachable!("invariant: {} has no operand with an axis of examples", node.op.name())
        }
        Op::Custom(_)
        | Op::Cond(_)
        | Op::RandomBits { .. }
        | Op::Solve(_)
        | Op::Replay(_)
        | Op::Tiles(_)
        | Op::Proj(_) => {
            unreachable!("invariant: {} runs for each example alone", node.op.name())
        }
    }
}

/// A function with custom derivatives; its rules are batched too.
///
/// Without a reverse rule, shared operands stay shared: the transpose of the forward rule sums over the examples. A
/// reverse rule computes the cotangents of one example, so every operand gets an axis of examples. For a shared operand,
/// the transpose of its broadcast then sums these cotangents.
fn custom(b: &mut Builder, c: &Custom, x: &[MappedValue], n: usize) -> NodeId {
    let on: Vec<bool> = x.iter().map(|v| v.on || c.vjp.is_some()).collect();
    let outs = vec![true; c.num_outs];
    let tangents = c.float_inputs().into_iter().map(|k| on[k]).collect();
    let body = batch(&c.body, &on, n);
    let jvp = c.jvp.as_ref().map(|f| batch(f, &[on.clone(), outs.clone(), tangents].concat(), n));
    let vjp = c.vjp.as_ref().map(|f| batch(f, &vec![true; f.num_inputs()], n));
    let x: Vec<NodeId> = x.iter().zip(on).map(|(v, on)| if on { v.spread(b, n) } else { v.id }).collect();
    b.push(Op::Custom(Arc::new(Custom { body, jvp, vjp, num_outs: c.num_outs })), &x, None)
}

/// A `cond` with one predicate for all examples: the chosen branch runs for the whole batch.
fn cond(b: &mut Builder, c: &Cond, x: &[MappedValue], n: usize) -> NodeId {
    let mapped: Vec<bool> = x[1..].iter().map(|v| v.on).collect();
    let (then, otherwise) = (batch(&c.then, &mapped, n), batch(&c.otherwise, &mapped, n));
    let x: Vec<NodeId> = x.iter().map(|v| v.id).collect();
    b.push(Op::Cond(Arc::new(Cond { then, otherwise })), &x, None)
}

/// `first`, followed by `axes` shifted by 1 because of the new leading axis.
fn behind(first: usize, axes: &[usize]) -> Vec<usize> {
    std::iter::once(first).chain(axes.iter().map(|a| a + 1)).collect()
}

/// The op on operands that all have an axis of examples.
fn all(b: &mut Builder, op: Op, x: &[MappedValue], n: usize) -> NodeId {
    let x: Vec<NodeId> = x.iter().map(|v| v.spread(b, n)).collect();
    b.push(op, &x, None)
}

/// x with its axes permuted, if the permutation is not the identity.
fn permute(b: &mut Builder, x: NodeId, perm: Vec<usize>) -> NodeId {
    if perm.is_sorted() { x } else { b.transpose(x, perm) }
}

/// A product of batches of matrices.
#[derive(Clone, Copy)]
struct Product {
    n: usize,
    /// The rank of an operand of one example.
    rank: usize,
    ta: bool,
    tb: bool,
}

impl Product {
    fn emit(self, b: &mut Builder, x: &[MappedValue]) -> NodeId {
        let (p, q) = (x[0].id, x[1].id);
        match (x[0].on, x[1].on) {
            (true, false) => self.rows(b, p, q, [self.ta, self.tb], false),
            // Computed as the transpose of q^T p^T, where the examples of q are additional rows.
            (false, true) if self.tb || b.ty(q).shape()[self.rank] == 1 => {
                self.rows(b, q, p, [!self.tb, !self.ta], true)
            }
            (false, true) => self.columns(b, p, q),
            _ => b.dot(p, q, self.ta, self.tb),
        }
    }

    /// `p q` with the examples of `p` as additional rows. The flags transpose `p` and `q`; `turn` transposes
    /// each result.
    fn rows(self, b: &mut Builder, p: NodeId, q: NodeId, flags: [bool; 2], turn: bool) -> NodeId {
        let (n, last, lead) = (self.n, self.rank, self.rank - 2);
        let (row, inner) = if flags[0] { (last, last - 1) } else { (last - 1, last) };
        // [n, .., m, k] -> [.., n, m, k] -> [.., n m, k]
        let p = permute(b, p, (1..=lead).chain([0, row, inner]).collect());
        let mut s = b.ty(p).shape().to_vec();
        let (rows, inner) = (s[lead + 1], s[lead + 2]);
        s.truncate(lead);
        let p = b.reshape(p, [&s[..], &[n * rows, inner]].concat());
        let y = b.dot(p, q, false, flags[1]);
        let cols = b.ty(y).shape()[lead + 1];
        let y = b.reshape(y, [&s[..], &[n, rows, cols]].concat());
        let ends = if turn { [lead + 2, lead + 1] } else { [lead + 1, lead + 2] };
        permute(b, y, std::iter::once(lead).chain(0..lead).chain(ends).collect())
    }

    /// `p q` with the examples of `q`, which is not transposed, as additional columns.
    fn columns(self, b: &mut Builder, p: NodeId, q: NodeId) -> NodeId {
        let (n, last, lead) = (self.n, self.rank, self.rank - 2);
        // [n, .., k, c] -> [.., k, n, c] -> [.., k, n c]
        let q = permute(b, q, (1..=lead).chain([last - 1, 0, last]).collect());
        let mut s = b.ty(q).shape().to_vec();
        let (inner, cols) = (s[lead], s[lead + 2]);
        s.truncate(lead);
        let q = b.reshape(q, [&s[..], &[inner, n * cols]].concat());
        let y = b.dot(p, q, self.ta, false);
        let rows = b.ty(y).shape()[lead];
        let y = b.reshape(y, [&s[..], &[rows, n, cols]].concat());
        permute(b, y, std::iter::once(lead + 1).chain(0..lead).chain([lead, lead + 2]).collect())
    }
}

/// A convolution with a shared kernel: the images of all examples form one batch.
fn images(b: &mut Builder, op: &Op, x: &[MappedValue], n: usize) -> NodeId {
    let rank = b.ty(x[0].id).shape().rank();
    let lead = rank - 5;
    // [n, .., m, h, w, c] -> [.., n, m, h, w, c] -> [.., n m, h, w, c]
    let behind: Vec<usize> = (1..=lead).chain([0]).chain(lead + 1..rank).collect();
    let joined = permute(b, x[0].id, behind);
    let s = b.ty(joined).shape().to_vec();
    let m = s[lead + 1];
    let joined = b.reshape(joined, [&s[..lead], &[n * m], &s[lead + 2..]].concat());
    let y = b.push(op.clone(), &[joined, x[1].id], None);
    let t = b.ty(y).shape().to_vec();
    let y = b.reshape(y, [&t[..lead], &[n, m], &t[lead + 1..]].concat());
    permute(b, y, std::iter::once(lead).chain(0..lead).chain(lead + 1..rank).collect())
}

/// The solutions of systems with shared matrices: the right-hand sides of all examples, which are the last operand, are
/// columns of one system.
fn columns_of_examples(b: &mut Builder, op: &Op, x: &[MappedValue], n: usize) -> NodeId {
    let mut args: Vec<NodeId> = x.iter().map(|v| v.id).collect();
    let right = args.pop().expect("invariant: right-hand sides");
    let rank = b.ty(right).shape().rank();
    // [n, .., r, m] -> [.., r, n, m] -> [.., r, n m]
    let joined = permute(b, right, (1..rank - 1).chain([0, rank - 1]).collect());
    let s = b.ty(joined).shape().to_vec();
    let (lead, m) = (&s[..rank - 2], s[rank - 1]);
    let joined = b.reshape(joined, [lead, &[n * m]].concat());
    args.push(joined);
    let y = b.push(op.clone(), &args, None);
    let y = b.reshape(y, [lead, &[n, m]].concat());
    permute(b, y, [rank - 2].into_iter().chain(0..rank - 2).chain([rank - 1]).collect())
}

/// Concatenates the rows of all examples, and shifts the indices accordingly.
fn gather(b: &mut Builder, x: &[MappedValue], n: usize) -> NodeId {
    if !x[0].on {
        return b.push(Op::Gather, &[x[0].id, x[1].id], None);
    }
    let shape = b.ty(x[0].id).shape().clone();
    let (rows, rest) = (shape[1], shape[2..].to_vec());
    let index = x[1].spread(b, n);
    let index = shifted(b, index, n, rows);
    let x = b.reshape(x[0].id, [&[n * rows][..], &rest].concat());
    b.push(Op::Gather, &[x, index], None)
}

/// Like [`gather`]. The updates of each example are combined in order.
fn scatter(b: &mut Builder, node: &Node, x: &[MappedValue], n: usize) -> NodeId {
    let shape = node.ty.shape().clone();
    let [into, index, updates] = [x[0], x[1], x[2]].map(|v| v.spread(b, n));
    let index = shifted(b, index, n, shape[0]);
    let into = b.reshape(into, [&[n * shape[0]][..], &shape[1..]].concat());
    let rows = b.push(node.op.clone(), &[into, index, updates], None);
    b.reshape(rows, [&[n][..], &shape].concat())
}

/// Converts an index `[n, ..]` into the `rows` rows of each example to an index into the concatenated rows.
///
/// The index is clamped first, so that an index out of range does not refer to a row of another example.
fn shifted(b: &mut Builder, index: NodeId, n: usize, rows: usize) -> NodeId {
    assert!(
        i32::try_from(n * rows).is_ok(),
        "invariant: {n} examples of {rows} rows exceed the range of an i32 index"
    );
    let ty = b.ty(index).clone();
    let (zero, last) = (b.splat_like(index, 0.0), b.splat_like(index, rows as f64 - 1.0));
    let index = b.binary(BinaryOp::Max, index, zero);
    let index = b.binary(BinaryOp::Min, index, last);
    let example = b.push(Op::Iota { axis: 0 }, &[], Some(&ty));
    let first = b.scale(example, rows as f64);
    b.add(first, index)
}
