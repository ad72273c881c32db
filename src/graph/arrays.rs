//! Converts constant arrays to inputs, so that one compiled function serves calls with different data.

use super::{Builder, Custom, Func, Literal, Node, NodeId, Op, Type};
use crate::array::Array;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

type Arrays = Vec<Arc<Array>>;

impl Func {
    /// The function with its constant arrays as additional inputs, and these arrays, each once. Constant arrays
    /// in the bodies of its nodes remain constants; `tensor` makes them captures when it records a body.
    pub fn with_arrays_as_inputs(&self) -> (Func, Arrays) {
        let mut nodes: Vec<Node> = Vec::with_capacity(self.nodes().len());
        let mut inputs = self.inputs().to_vec();
        let mut arrays = Arrays::new();
        // The input node of each array.
        let mut known: FxHashMap<*const Array, NodeId> = FxHashMap::default();
        let mut at: Vec<NodeId> = Vec::with_capacity(self.nodes().len());
        for node in self.nodes() {
            let new = NodeId(nodes.len() as u32);
            let Op::Const(Literal::Array(array)) = &node.op else {
                let args = node.args.iter().map(|a| at[a.index()]).collect();
                nodes.push(Node { args, ..node.clone() });
                at.push(new);
                continue;
            };
            let id = *known.entry(Arc::as_ptr(array)).or_insert(new);
            if id == new {
                nodes.push(Node { op: Op::Input(inputs.len()), args: SmallVec::new(), ty: type_of(array) });
                inputs.push(id);
                arrays.push(array.clone());
            }
            at.push(id);
        }
        if arrays.is_empty() {
            return (self.clone(), arrays);
        }
        for input in &mut inputs[..self.num_inputs()] {
            *input = at[input.index()];
        }
        let outputs = self.outputs().iter().map(|o| at[o.index()]).collect();
        (Func::new(nodes, inputs, outputs), arrays)
    }
}

impl Custom {
    /// The function with the constant arrays of its body and its rules as additional inputs, and these arrays, each
    /// once. The cotangents of the arrays are 0.
    pub fn with_arrays_as_inputs(&self) -> (Custom, Arrays) {
        let (body, of_body) = self.body.with_arrays_as_inputs();
        let rules = [&self.jvp, &self.vjp].map(|rule| rule.as_ref().map(Func::with_arrays_as_inputs));
        let mut arrays = of_body.clone();
        for array in rules.iter().flatten().flat_map(|(_, own)| own) {
            if !arrays.iter().any(|known| Arc::ptr_eq(known, array)) {
                arrays.push(array.clone());
            }
        }
        if arrays.is_empty() {
            return (self.clone(), arrays);
        }
        let at = self.body.num_inputs();
        let shared = |(func, own): &(Func, Arrays)| shared_after(func, own, &arrays, at);
        let (body, [jvp, vjp]) = (shared(&(body, of_body)), rules.map(|rule| rule.as_ref().map(shared)));
        let floats: Vec<Type> = arrays.iter().map(type_of).filter(Type::is_float).collect();
        let jvp = jvp.map(|rule| {
            let (mut b, ids) = Builder::with_inputs(&[&rule.input_types()[..], &floats].concat());
            let tangents = b.inline(&rule, &ids[..rule.num_inputs()]);
            b.finish(&tangents)
        });
        let vjp = vjp.map(|rule| {
            let (mut b, ids) = Builder::with_inputs(&rule.input_types());
            let mut cotangents = b.inline(&rule, &ids);
            cotangents.extend(floats.iter().map(|ty| b.splat(ty.dtype(), ty.shape().clone(), 0.0)));
            b.finish(&cotangents)
        });
        (Custom { body, jvp, vjp, num_outs: self.num_outs }, arrays)
    }
}

/// The function with one input for each of `all`, from input `at` on, in place of its last inputs, which are its `own`
/// arrays.
fn shared_after(func: &Func, own: &Arrays, all: &Arrays, at: usize) -> Func {
    let mut types = func.input_types();
    types.truncate(types.len() - own.len());
    types.splice(at..at, all.iter().map(type_of));
    let (mut b, mut ids) = Builder::with_inputs(&types);
    let inputs: Vec<NodeId> = ids.drain(at..at + all.len()).collect();
    let place = |a: &Arc<Array>| all.iter().position(|b| Arc::ptr_eq(a, b));
    ids.extend(own.iter().map(|a| inputs[place(a).expect("invariant: every array is shared")]));
    let outputs = b.inline(func, &ids);
    b.finish(&outputs)
}

fn type_of(array: &Arc<Array>) -> Type {
    Type::array(array.dtype(), array.shape().clone())
}
