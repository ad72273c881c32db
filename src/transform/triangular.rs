//! The derivatives of triangular systems.
//!
//! With t the triangle of a that is read, `t x = b` has `t dx = db - dt x`. The cotangent of b is the solution z of the transposed
//! system, and that of a is the triangle of `-z x^T`; for the transposed system, that of `-x z^T`.

use crate::graph::{Builder, CompareOp, NodeId, Op, Triangle};

/// x with zeros outside of the triangle.
fn inside(b: &mut Builder, triangle: Triangle, x: NodeId) -> NodeId {
    let ty = b.ty(x).clone();
    let (axis, zero) = (ty.shape().rank() - 2, b.splat_like(x, 0.0));
    let [row, column] = [axis, axis + 1].map(|axis| b.push(Op::Iota { axis }, &[], Some(&ty)));
    let order = if triangle.upper { [row, column] } else { [column, row] };
    let compare = if triangle.unit_diagonal { CompareOp::Lt } else { CompareOp::Le };
    let is_inside = b.compare(compare, order[0], order[1]);
    b.select(is_inside, x, zero)
}

/// The tangent of the solution y, for the tangents `d` of the operands `x`.
pub(super) fn tangent(
    b: &mut Builder,
    triangle: Triangle,
    (x, y): (&[NodeId], NodeId),
    d: &[Option<NodeId>],
) -> Option<NodeId> {
    let moved = d[0].map(|da| {
        let dt = inside(b, triangle, da);
        b.dot(dt, y, triangle.transposed, false)
    });
    let right = match (d[1], moved) {
        (Some(db), Some(moved)) => b.sub(db, moved),
        (None, Some(moved)) => b.neg(moved),
        (db, None) => db?,
    };
    Some(b.push(Op::TriangularSolve(triangle), &[x[0], right], None))
}

/// The cotangent of operand k, for the solution y and its cotangent g.
pub(super) fn cotangent(
    b: &mut Builder,
    triangle: Triangle,
    (x, y): (&[NodeId], NodeId),
    (g, k): (NodeId, usize),
) -> NodeId {
    let of_b = b.push(Op::TriangularSolve(triangle.transposed()), &[x[0], g], None);
    if k == 1 {
        return of_b;
    }
    let (left, right) = if triangle.transposed { (y, of_b) } else { (of_b, y) };
    let product = b.dot(left, right, false, true);
    let inside = inside(b, triangle, product);
    b.neg(inside)
}
