//! A closed function: an arena of nodes in topological order.

use super::{Literal, Op, Type};
use rustc_hash::FxHasher;
use smallvec::SmallVec;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The index of a node in its function, printed `%3`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The index into the arena.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The operands of a node. Few nodes have more than four, so a copy of a node rarely allocates.
pub type NodeIds = SmallVec<[NodeId; 4]>;

/// An operation applied to earlier nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// The operation.
    pub op: Op,
    /// Its operands; each comes before this node.
    pub args: NodeIds,
    /// The result's type.
    pub ty: Type,
}

impl Node {
    /// The value of every element, if the node is a splat constant.
    pub fn splat(&self) -> Option<f64> {
        match &self.op {
            Op::Const(literal) => literal.as_splat(),
            _ => None,
        }
    }
}

#[derive(Debug)]
struct Inner {
    nodes: Vec<Node>,
    inputs: Vec<NodeId>,
    outputs: Vec<NodeId>,
    fingerprint: u64,
}

/// A closed function: nodes in topological order, including its inputs and outputs.
///
/// A `Func` is immutable and cheap to clone. It has two invariants: operands come before their users;
/// `inputs[k]` is the node `Op::Input(k)`, and no other node is an input. `verify` checks these and further
/// invariants.
#[derive(Clone)]
pub struct Func(Arc<Inner>);

impl Func {
    /// A function from its parts, which must satisfy the invariants of [`Func`].
    pub(crate) fn new(nodes: Vec<Node>, inputs: Vec<NodeId>, outputs: Vec<NodeId>) -> Func {
        let mut hasher = FxHasher::default();
        (&nodes, &inputs, &outputs).hash(&mut hasher);
        let fingerprint = hasher.finish();
        Func(Arc::new(Inner { nodes, inputs, outputs, fingerprint }))
    }

    /// All nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.0.nodes
    }

    /// One node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.0.nodes[id.index()]
    }

    /// The input nodes.
    pub fn inputs(&self) -> &[NodeId] {
        &self.0.inputs
    }

    /// The output nodes; one node may be several outputs.
    pub fn outputs(&self) -> &[NodeId] {
        &self.0.outputs
    }

    /// Number of inputs.
    pub fn num_inputs(&self) -> usize {
        self.0.inputs.len()
    }

    /// Number of outputs.
    pub fn num_outputs(&self) -> usize {
        self.0.outputs.len()
    }

    /// Type of input `k`.
    pub fn input_type(&self, k: usize) -> &Type {
        &self.node(self.0.inputs[k]).ty
    }

    /// Type of output `k`.
    pub fn output_type(&self, k: usize) -> &Type {
        &self.node(self.0.outputs[k]).ty
    }

    /// Types of all inputs.
    pub fn input_types(&self) -> Vec<Type> {
        (0..self.num_inputs()).map(|k| self.input_type(k).clone()).collect()
    }

    /// Types of all outputs.
    pub fn output_types(&self) -> Vec<Type> {
        (0..self.num_outputs()).map(|k| self.output_type(k).clone()).collect()
    }

    /// Whether the function or a body in it refers to shared data: constant arrays or observers.
    pub fn holds_data(&self) -> bool {
        let holds = |node: &Node| {
            matches!(node.op, Op::Const(Literal::Array(_)) | Op::Observe(_))
                || node.op.bodies().into_iter().any(|(_, body)| body.holds_data())
        };
        self.nodes().iter().any(holds)
    }

    /// A hash of the function. Within one process, equal functions have equal hashes.
    pub fn fingerprint(&self) -> u64 {
        self.0.fingerprint
    }
}

impl PartialEq for Func {
    fn eq(&self, other: &Func) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || self.0.fingerprint == other.0.fingerprint
                && self.0.inputs == other.0.inputs
                && self.0.outputs == other.0.outputs
                && self.0.nodes == other.0.nodes
    }
}

impl Eq for Func {}

impl Hash for Func {
    fn hash<H: Hasher>(&self, h: &mut H) {
        self.0.fingerprint.hash(h);
    }
}

impl fmt::Debug for Func {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Func({} inputs, {} nodes, {} outputs)",
            self.num_inputs(),
            self.nodes().len(),
            self.num_outputs()
        )
    }
}
