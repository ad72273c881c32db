//! Builds a function node by node and merges equal nodes on insertion.

use super::infer::{GraphError, infer};
use super::{
    BinaryOp, CompareOp, Func, Literal, Node, NodeId, Op, ReduceOp, Replay, ReplayOperands, SearchOperands,
    Solve, Type, UnaryOp,
};
use crate::array::{DType, Shape};
use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;
use std::hash::BuildHasher;
use std::sync::Arc;

/// A function under construction.
///
/// The map from hashes to ids is only looked up, never iterated, so its order does not affect results.
#[derive(Default, Debug)]
pub struct Builder {
    nodes: Vec<Node>,
    inputs: Vec<NodeId>,
    /// The node of each hash. On a collision, the key is the next free number after the hash.
    known: FxHashMap<u64, NodeId>,
}

impl Builder {
    /// An empty function.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// A builder with one input per type, and the input nodes.
    pub fn with_inputs(types: &[Type]) -> (Builder, Vec<NodeId>) {
        let mut b = Builder::new();
        let ids = types.iter().map(|t| b.input(t.clone())).collect();
        (b, ids)
    }

    /// The next input.
    pub fn input(&mut self, ty: Type) -> NodeId {
        let id = self.insert(Node { op: Op::Input(self.inputs.len()), args: SmallVec::new(), ty });
        self.inputs.push(id);
        id
    }

    /// Number of inputs so far.
    pub fn num_inputs(&self) -> usize {
        self.inputs.len()
    }

    /// A node of this function.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// Type of a node.
    pub fn ty(&self, id: NodeId) -> &Type {
        &self.node(id).ty
    }

    /// All nodes so far.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    fn insert(&mut self, node: Node) -> NodeId {
        let mut key = FxBuildHasher.hash_one(&node);
        while let Some(&id) = self.known.get(&key) {
            if self.nodes[id.index()] == node {
                return id;
            }
            key = key.wrapping_add(1);
        }
        let id = NodeId(u32::try_from(self.nodes.len()).expect("invariant: fewer than 2^32 nodes"));
        self.nodes.push(node);
        self.known.insert(key, id);
        id
    }

    /// Inserts an operation; `hint` is the result's type. It is required where the operands do not determine
    /// this type (constants, iota, casts, broadcasts, reshapes, random bits), and ignored for other
    /// operations.
    ///
    /// # Errors
    /// If the types of the operands do not fit the operation.
    pub fn try_push(&mut self, op: Op, args: &[NodeId], hint: Option<&Type>) -> Result<NodeId, GraphError> {
        let types: SmallVec<[&Type; 4]> = args.iter().map(|&a| self.ty(a)).collect();
        let ty = infer(&op, &types, hint)?;
        drop(types);
        Ok(self.insert(Node { op, args: SmallVec::from_slice(args), ty }))
    }

    /// [`Builder::try_push`] for operands that fit.
    ///
    /// # Panics
    /// If the operands do not fit the operation.
    #[track_caller]
    pub fn push(&mut self, op: Op, args: &[NodeId], hint: Option<&Type>) -> NodeId {
        self.try_push(op, args, hint).unwrap_or_else(|e| panic!("invariant: {e}"))
    }

    /// Copies the nodes of `f` with `args` in place of its inputs; returns its outputs.
    ///
    /// # Panics
    /// If the arguments differ from the inputs in number or type.
    #[track_caller]
    pub fn inline(&mut self, f: &Func, args: &[NodeId]) -> Vec<NodeId> {
        assert_eq!(f.num_inputs(), args.len(), "invariant: inline with as many arguments as inputs");
        for (k, &a) in args.iter().enumerate() {
            let (got, want) = (self.ty(a), f.input_type(k));
            assert!(got == want, "invariant: input {k} of an inlined function is {want}, not {got}");
        }
        let mut map: Vec<NodeId> = Vec::with_capacity(f.nodes().len());
        for node in f.nodes() {
            let id = if let Op::Input(k) = node.op {
                args[k]
            } else {
                let args = node.args.iter().map(|a| map[a.index()]).collect();
                self.insert(Node { op: node.op.clone(), args, ty: node.ty.clone() })
            };
            map.push(id);
        }
        f.outputs().iter().map(|o| map[o.index()]).collect()
    }

    /// The function with the given outputs. Unused nodes are removed, but no inputs.
    pub fn finish(self, outputs: &[NodeId]) -> Func {
        let mut live = vec![false; self.nodes.len()];
        for id in outputs.iter().chain(&self.inputs) {
            live[id.index()] = true;
        }
        for i in (0..self.nodes.len()).rev() {
            if live[i] {
                for a in &self.nodes[i].args {
                    live[a.index()] = true;
                }
            }
        }
        let mut map = vec![NodeId(u32::MAX); self.nodes.len()];
        let mut nodes = Vec::new();
        for (i, mut node) in self.nodes.into_iter().enumerate().filter(|(i, _)| live[*i]) {
            map[i] = NodeId(nodes.len() as u32);
            for a in &mut node.args {
                *a = map[a.index()];
            }
            nodes.push(node);
        }
        let at = |ids: &[NodeId]| ids.iter().map(|id| map[id.index()]).collect();
        Func::new(nodes, at(&self.inputs), at(outputs))
    }

    // Shorthands for `push`, which panic if the operands do not fit.

    /// A constant of the given shape.
    pub fn splat(&mut self, dtype: DType, shape: impl Into<Shape>, x: f64) -> NodeId {
        self.push(Op::Const(Literal::splat(dtype, x)), &[], Some(&Type::array(dtype, shape)))
    }

    /// A constant of the same type as `like`.
    pub fn splat_like(&mut self, like: NodeId, x: f64) -> NodeId {
        let ty = self.ty(like).clone();
        self.splat(ty.dtype(), ty.shape().clone(), x)
    }

    /// `f(x)`
    #[track_caller]
    pub fn unary(&mut self, op: UnaryOp, x: NodeId) -> NodeId {
        self.push(Op::Unary(op), &[x], None)
    }

    /// `f(a, b)`
    #[track_caller]
    pub fn binary(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> NodeId {
        self.push(Op::Binary(op), &[a, b], None)
    }

    /// a + b
    #[track_caller]
    pub fn add(&mut self, a: NodeId, b: NodeId) -> NodeId {
        self.binary(BinaryOp::Add, a, b)
    }

    /// a - b
    #[track_caller]
    pub fn sub(&mut self, a: NodeId, b: NodeId) -> NodeId {
        self.binary(BinaryOp::Sub, a, b)
    }

    /// a b
    #[track_caller]
    pub fn mul(&mut self, a: NodeId, b: NodeId) -> NodeId {
        self.binary(BinaryOp::Mul, a, b)
    }

    /// a / b
    #[track_caller]
    pub fn div(&mut self, a: NodeId, b: NodeId) -> NodeId {
        self.binary(BinaryOp::Div, a, b)
    }

    /// -x
    #[track_caller]
    pub fn neg(&mut self, x: NodeId) -> NodeId {
        self.unary(UnaryOp::Neg, x)
    }

    /// c x for a number c
    #[track_caller]
    pub fn scale(&mut self, x: NodeId, c: f64) -> NodeId {
        let c = self.splat_like(x, c);
        self.mul(x, c)
    }

    /// The elementwise comparison of a and b
    #[track_caller]
    pub fn compare(&mut self, op: CompareOp, a: NodeId, b: NodeId) -> NodeId {
        self.push(Op::Compare(op), &[a, b], None)
    }

    /// a where p, else b
    #[track_caller]
    pub fn select(&mut self, p: NodeId, a: NodeId, b: NodeId) -> NodeId {
        self.push(Op::Select, &[p, a, b], None)
    }

    /// x as another element type
    #[track_caller]
    pub fn cast(&mut self, x: NodeId, dtype: DType) -> NodeId {
        let ty = Type::array(dtype, self.ty(x).shape().clone());
        self.push(Op::Cast, &[x], Some(&ty))
    }

    /// x broadcast to `shape`; axis i of x becomes axis `dims[i]`
    #[track_caller]
    pub fn broadcast(&mut self, x: NodeId, shape: &Shape, dims: Vec<usize>) -> NodeId {
        if self.ty(x).shape() == shape {
            return x;
        }
        let ty = self.ty(x).with_shape(shape.clone());
        self.push(Op::Broadcast { dims }, &[x], Some(&ty))
    }

    /// The same elements under another shape
    #[track_caller]
    pub fn reshape(&mut self, x: NodeId, shape: impl Into<Shape>) -> NodeId {
        let ty = self.ty(x).with_shape(shape);
        if &ty == self.ty(x) {
            return x;
        }
        self.push(Op::Reshape, &[x], Some(&ty))
    }

    /// Axis i of the result is axis `perm[i]` of x
    #[track_caller]
    pub fn transpose(&mut self, x: NodeId, perm: Vec<usize>) -> NodeId {
        self.push(Op::Transpose { perm }, &[x], None)
    }

    /// Swaps the last two axes: transposes each matrix of a batch
    #[track_caller]
    pub fn turn(&mut self, x: NodeId) -> NodeId {
        let perm = turned(self.ty(x).shape().rank());
        self.transpose(x, perm)
    }

    /// Reduction over axes, which are removed
    #[track_caller]
    pub fn reduce(&mut self, op: ReduceOp, x: NodeId, axes: Vec<usize>) -> NodeId {
        if axes.is_empty() { x } else { self.push(Op::Reduce { op, axes }, &[x], None) }
    }

    /// Matrix product of a (transposed if ta) and b (transposed if tb), for each index of the leading axes
    #[track_caller]
    pub fn dot(&mut self, a: NodeId, b: NodeId, ta: bool, tb: bool) -> NodeId {
        self.push(Op::Dot { ta, tb }, &[a, b], None)
    }

    /// A search
    #[track_caller]
    pub fn search(&mut self, s: Solve, x: SearchOperands<NodeId>) -> NodeId {
        self.push(Op::Solve(Arc::new(s)), &x.join(), None)
    }

    /// A loop along a schedule
    #[track_caller]
    pub fn replay(&mut self, l: Replay, x: ReplayOperands<NodeId>) -> NodeId {
        self.push(Op::Replay(Arc::new(l)), &x.join(), None)
    }

    /// Value k of a tuple, counted from 0
    #[track_caller]
    pub fn proj(&mut self, tuple: NodeId, k: usize) -> NodeId {
        self.push(Op::Proj(k), &[tuple], None)
    }

    /// All values of a tuple
    #[track_caller]
    pub fn projections(&mut self, tuple: NodeId) -> Vec<NodeId> {
        let Type::Tuple(types) = self.ty(tuple) else { panic!("invariant: {tuple} is not a tuple") };
        (0..types.len()).map(|k| self.proj(tuple, k)).collect()
    }
}

/// The permutation of `rank >= 2` axes that swaps the last two.
pub(crate) fn turned(rank: usize) -> Vec<usize> {
    let mut perm: Vec<usize> = (0..rank).collect();
    perm.swap(rank - 2, rank - 1);
    perm
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_nodes_are_merged_and_dead_ones_removed() {
        let (mut b, x) = Builder::with_inputs(&[Type::array(DType::F32, [2, 3])]);
        let (p, q) = (b.add(x[0], x[0]), b.add(x[0], x[0]));
        assert_eq!(p, q);
        b.neg(p);
        let f = b.finish(&[q]);
        assert_eq!(f.nodes().len(), 2);
    }
}
