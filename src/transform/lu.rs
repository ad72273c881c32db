//! The derivatives of LU factorizations and of linear systems.
//!
//! With P a = L U and X = L^-1 P da U^-1, dL = L tril(X) (strictly lower) and dU = triu(X) U. With a x = b, a dx = db -
//! da x. The rule of a solution differentiates with respect to the matrix, not to its factors: the cotangent of a is a product
//! of the solution and of another solution. All rules consist of the same two operations.

use crate::array::Shape;
use crate::graph::{Builder, CompareOp, NodeId, Op};

/// The tangent of the solution y of a system, for the tangents `d` of its operands `x`.
pub(super) fn tangent_of_solution(
    b: &mut Builder,
    transposed: bool,
    (x, y): (&[NodeId], NodeId),
    d: &[Option<NodeId>],
) -> Option<NodeId> {
    let moved = d[1].map(|da| b.dot(da, y, transposed, false));
    let right = match (d[2], moved) {
        (Some(db), Some(moved)) => b.sub(db, moved),
        (None, Some(moved)) => b.neg(moved),
        (db, None) => db?,
    };
    Some(b.push(Op::LuSolve { transposed }, &[x[0], x[1], right], None))
}

/// The cotangent of operand k of a system with the solution y, for the cotangent g of y.
pub(super) fn cotangent_of_solution(
    b: &mut Builder,
    transposed: bool,
    (x, y): (&[NodeId], NodeId),
    (g, k): (NodeId, usize),
) -> Option<NodeId> {
    if k == 0 {
        return None;
    }
    let of_b = b.push(Op::LuSolve { transposed: !transposed }, &[x[0], x[1], g], None);
    if k == 2 {
        return Some(of_b);
    }
    let product = if transposed { b.dot(y, of_b, false, true) } else { b.dot(of_b, y, false, true) };
    Some(b.neg(product))
}

/// The parts of a factorization P a = L U.
struct Parts {
    /// Whether an entry is below the diagonal.
    is_below: NodeId,
    zero: NodeId,
    /// L with its ones, and the matrix P^T L with its factors.
    lower: NodeId,
    permuted: [NodeId; 2],
    /// U and its factors.
    upper: [NodeId; 2],
}

/// Rows `from..to` of each matrix.
fn rows(b: &mut Builder, x: NodeId, from: usize, to: usize) -> NodeId {
    let s = b.ty(x).shape().to_vec();
    let lead = s.len() - 2;
    let mut start = vec![0; s.len()];
    let mut limit = s;
    (start[lead], limit[lead]) = (from, to);
    b.push(Op::Slice { start, limit }, &[x], None)
}

impl Parts {
    fn of(b: &mut Builder, factors: NodeId) -> Parts {
        let ty = b.ty(factors).clone();
        let (axis, n) = (ty.shape().rank() - 2, ty.shape()[ty.shape().rank() - 1]);
        let square = ty.with_shape(ty.shape().with_axis(axis, n));
        let (top, permutation) = (rows(b, factors, 0, n), rows(b, factors, n, n + 1));
        let mut count = |ty: &crate::graph::Type, axis| b.push(Op::Iota { axis }, &[], Some(ty));
        let (row, column) = (count(&square, axis), count(&square, axis + 1));
        let same_order = count(&ty.with_shape(ty.shape().with_axis(axis, 1)), axis + 1);
        let is_below = b.compare(CompareOp::Lt, column, row);
        let is_diagonal = b.compare(CompareOp::Eq, column, row);
        let (zero, identity) = (b.splat_like(top, 0.0), b.cast(is_diagonal, ty.dtype()));
        let lower = b.select(is_below, top, identity);
        let upper = b.select(is_below, zero, top);
        let mut join = |x, row| b.push(Op::Concat { axis }, &[x, row], None);
        let (of_permuted, of_upper) = (join(lower, permutation), join(upper, same_order));
        let only_permutes = join(identity, permutation);
        let permuted = b.push(Op::LuSolve { transposed: true }, &[only_permutes, identity, lower], None);
        Parts { is_below, zero, lower, permuted: [of_permuted, permuted], upper: [of_upper, upper] }
    }

    /// The entries of x below the diagonal, and the others.
    fn split(&self, b: &mut Builder, x: NodeId) -> [NodeId; 2] {
        [b.select(self.is_below, x, self.zero), b.select(self.is_below, self.zero, x)]
    }
}

/// The solution x of `a x = right`, or of `a^T x = right`, for the factors of a and a.
fn solution(b: &mut Builder, transposed: bool, [factors, a]: [NodeId; 2], right: NodeId) -> NodeId {
    b.push(Op::LuSolve { transposed }, &[factors, a, right], None)
}

/// The tangent of the factors y of a, for the tangent `da`.
pub(super) fn tangent(b: &mut Builder, y: NodeId, da: NodeId) -> NodeId {
    let parts = Parts::of(b, y);
    let left = solution(b, false, parts.permuted, da);
    let left = b.turn(left);
    let x = solution(b, true, parts.upper, left);
    let x = b.turn(x);
    let [below, above] = parts.split(b, x);
    let (below, above) =
        (b.dot(parts.lower, below, false, false), b.dot(above, parts.upper[1], false, false));
    let top = b.add(below, above);
    padded(b, top, y)
}

/// The cotangent of a, for the cotangent g of its factors y.
pub(super) fn cotangent(b: &mut Builder, y: NodeId, g: NodeId) -> NodeId {
    let parts = Parts::of(b, y);
    let n = b.ty(y).shape()[b.ty(y).shape().rank() - 1];
    let g = rows(b, g, 0, n);
    let [below, above] = parts.split(b, g);
    let (below, above) = (b.dot(parts.lower, below, true, false), b.dot(above, parts.upper[1], false, true));
    let (below, above) = (parts.split(b, below)[0], parts.split(b, above)[1]);
    let middle = b.add(below, above);
    let middle = b.turn(middle);
    let right = solution(b, false, parts.upper, middle);
    let right = b.turn(right);
    solution(b, true, parts.permuted, right)
}

/// `top` with zeros below it, in the shape of the factors `like`.
fn padded(b: &mut Builder, top: NodeId, like: NodeId) -> NodeId {
    let shape: Shape = b.ty(like).shape().clone();
    let (lo, mut hi) = (vec![0; shape.rank()], vec![0; shape.rank()]);
    hi[shape.rank() - 2] = 1;
    b.push(Op::Pad { lo, hi }, &[top], None)
}
