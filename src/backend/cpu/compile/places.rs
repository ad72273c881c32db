//! The place of each node's value: a number, or a view of another node's buffer.
//!
//! Layout operations become [`View`]s, which cost nothing. This file determines which nodes own a buffer
//! (*roots*): inputs, constant arrays, results of computations, and the few layout operations that strides
//! cannot express.

use crate::array::{DType, Shape};
use crate::backend::cpu::access::View;
use crate::graph::{Func, Literal, Op};

/// A view of the buffer of node `root`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Operand {
    pub root: usize,
    pub view: View,
}

/// The place of a value: a number, a view of a buffer, or neither.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Place {
    /// All elements equal this number.
    Splat { dtype: DType, bits: u64 },
    /// In a buffer.
    At(Operand),
    /// The value of `node` is a tuple, schedule, tape or sequence, which has no place in a buffer.
    Opaque { node: usize },
}

impl Place {
    /// The whole buffer of a node of this shape.
    pub fn own(root: usize, shape: &Shape) -> Place {
        Place::At(Operand { root, view: View::contiguous(shape) })
    }

    /// The root: the node whose buffer holds the value, or the node of an opaque value.
    pub fn root(&self) -> Option<usize> {
        match self {
            Place::Splat { .. } => None,
            Place::At(o) => Some(o.root),
            Place::Opaque { node } => Some(*node),
        }
    }

    fn map(&self, f: impl FnOnce(&View) -> View) -> Place {
        match self {
            Place::At(o) => Place::At(Operand { root: o.root, view: f(&o.view) }),
            other => other.clone(),
        }
    }
}

/// The place of node `id`, given the places of earlier nodes. A computed node, and a reshape that strides
/// cannot express, are their own roots.
pub(crate) fn place(func: &Func, id: usize, places: &[Place]) -> Place {
    let node = &func.nodes()[id];
    if !matches!(node.ty, crate::graph::Type::Array { .. }) {
        return Place::Opaque { node: id };
    }
    let shape = node.ty.shape();
    let arg = || &places[node.args[0].index()];
    match &node.op {
        Op::Const(Literal::Splat { dtype, bits }) => Place::Splat { dtype: *dtype, bits: *bits },
        Op::StopGradient => arg().clone(),
        Op::Broadcast { dims } => arg().map(|v| v.broadcast(dims, shape)),
        Op::Transpose { perm } => arg().map(|v| v.transpose(perm)),
        Op::Slice { start, limit } => arg().map(|v| v.slice(start, limit)),
        Op::Reshape => match arg() {
            Place::At(o) => match o.view.reshape(shape) {
                Some(view) => Place::At(Operand { root: o.root, view }),
                None => Place::own(id, shape),
            },
            other => other.clone(),
        },
        _ => Place::own(id, shape),
    }
}

/// Whether the operation only changes how elements are addressed. Strides express all such operations except
/// some reshapes.
pub(crate) fn is_layout(op: &Op) -> bool {
    matches!(
        op,
        Op::StopGradient | Op::Broadcast { .. } | Op::Transpose { .. } | Op::Slice { .. } | Op::Reshape
    )
}

/// A reduction in memory order: `out[o, i] = sum over r of x[o, r, i]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Geometry {
    pub outer: usize,
    pub reduced: usize,
    pub inner: usize,
}

impl Geometry {
    /// The geometry of a reduction over `axes` of `shape`, if those axes are adjacent.
    pub fn of(shape: &Shape, axes: &[usize]) -> Option<Geometry> {
        let mut g = Geometry { outer: 1, reduced: 1, inner: 1 };
        let mut past = false;
        for (axis, &len) in shape.iter().enumerate().filter(|(_, len)| **len != 1) {
            match (axes.contains(&axis), past) {
                (true, false) => g.reduced *= len,
                (true, true) => return None,
                (false, _) if axes.iter().any(|&a| a < axis && shape[a] != 1) => {
                    past = true;
                    g.inner *= len;
                }
                (false, _) => g.outer *= len,
            }
        }
        Some(g)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reductions_over_adjacent_axes_have_a_geometry() {
        let s = Shape::from([2, 1, 3, 4]);
        let g = |axes: &[usize]| Geometry::of(&s, axes).map(|g| (g.outer, g.reduced, g.inner));
        assert_eq!(g(&[0]), Some((1, 2, 12)));
        assert_eq!(g(&[2]), Some((2, 3, 4)));
        assert_eq!(g(&[0, 1, 2, 3]), Some((1, 24, 1)));
        assert_eq!(g(&[1, 3]), Some((6, 4, 1)));
        assert_eq!(g(&[1]), Some((24, 1, 1)));
        assert_eq!(g(&[0, 3]), None);
    }
}
