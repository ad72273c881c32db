//! Converts constant arrays to inputs, so that one compiled function serves calls with different data.

use super::{Builder, Func, Literal, Node, NodeId, Op, Tiles, Type};
use crate::array::Array;
use rustc_hash::FxHashMap;
use std::sync::Arc;

impl Func {
    /// The function with its constant arrays as additional inputs, and these arrays. Constant arrays in the
    /// bodies of tiles become inputs, too, as shared operands of the tiles. Constant arrays in other bodies
    /// remain constants.
    pub fn with_arrays_as_inputs(&self) -> (Func, Vec<Arc<Array>>) {
        let mut lift = Lift {
            nodes: vec![],
            inputs: self.inputs().to_vec(),
            arrays: vec![],
            known: FxHashMap::default(),
        };
        let mut at: Vec<NodeId> = Vec::with_capacity(self.nodes().len());
        for node in self.nodes() {
            let args = node.args.iter().map(|a| at[a.index()]).collect();
            let id = match &node.op {
                Op::Const(Literal::Array(array)) => lift.input(array, &node.ty),
                Op::Tiles(tiles) => {
                    let (tiles, arrays) = lifted(tiles);
                    let shared: Vec<NodeId> = arrays.iter().map(|a| lift.input(a, &type_of(a))).collect();
                    let args = [args, shared].concat();
                    lift.push(Node { op: Op::Tiles(tiles), args, ty: node.ty.clone() })
                }
                op => lift.push(Node { op: op.clone(), args, ty: node.ty.clone() }),
            };
            at.push(id);
        }
        if lift.arrays.is_empty() {
            return (self.clone(), vec![]);
        }
        for input in &mut lift.inputs[..self.num_inputs()] {
            *input = at[input.index()];
        }
        let outputs = self.outputs().iter().map(|o| at[o.index()]).collect();
        (Func::new(lift.nodes, lift.inputs, outputs), lift.arrays)
    }
}

fn type_of(array: &Array) -> Type {
    Type::array(array.dtype(), array.shape().clone())
}

/// The tiles with the constant arrays of their bodies as additional operands, and these arrays.
fn lifted(tiles: &Arc<Tiles>) -> (Arc<Tiles>, Vec<Arc<Array>>) {
    let (body, of_body) = tiles.body.with_arrays_as_inputs();
    let tail = tiles.tail.as_ref().map(Func::with_arrays_as_inputs);
    let of_tail = tail.as_ref().map_or(&[][..], |(_, arrays)| arrays);
    if of_body.is_empty() && of_tail.is_empty() {
        return (tiles.clone(), vec![]);
    }
    let types = |arrays: &[Arc<Array>]| arrays.iter().map(|a| type_of(a)).collect::<Vec<_>>();
    let arrays = [&of_body[..], of_tail].concat();
    let body = with_inputs_between(&body, tiles.body.num_inputs() + of_body.len(), &types(of_tail));
    let tail = tail.map(|(tail, _)| with_inputs_between(&tail, tiles.body.num_inputs(), &types(&of_body)));
    (Arc::new(Tiles { body, tail, ..(**tiles).clone() }), arrays)
}

/// The function with unused inputs of the given types inserted before input `at`.
fn with_inputs_between(func: &Func, at: usize, types: &[Type]) -> Func {
    let mut all = func.input_types();
    all.splice(at..at, types.iter().cloned());
    let (mut b, mut ids) = Builder::with_inputs(&all);
    ids.drain(at..at + types.len());
    let outputs = b.inline(func, &ids);
    b.finish(&outputs)
}

/// The function under construction.
struct Lift {
    nodes: Vec<Node>,
    inputs: Vec<NodeId>,
    arrays: Vec<Arc<Array>>,
    /// The input node of each array.
    known: FxHashMap<*const Array, NodeId>,
}

impl Lift {
    fn push(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        NodeId((self.nodes.len() - 1) as u32)
    }

    fn input(&mut self, array: &Arc<Array>, ty: &Type) -> NodeId {
        if let Some(&id) = self.known.get(&Arc::as_ptr(array)) {
            return id;
        }
        let op = Op::Input(self.inputs.len());
        let id = self.push(Node { op, args: vec![], ty: ty.clone() });
        self.inputs.push(id);
        self.arrays.push(array.clone());
        self.known.insert(Arc::as_ptr(array), id);
        id
    }
}
