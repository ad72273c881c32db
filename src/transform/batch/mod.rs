//! Batching: the function of many examples at once.
//!
//! Values that depend on a mapped input carry a further axis in front, one entry an example; the others stay
//! as they are and are computed once. Each op has one rule (`rules`), which emits ordinary nodes, so a
//! batched function is differentiated, batched again and compiled like any other. What has no common form
//! for several examples - a loop, whose number of trips is each example's own; tiles; draws by many keys -
//! runs for each example alone, in tiles of one row (`alone`), which gives the bits of single calls.
//!
//! The alternative for loops, to run them in lockstep until the last example is done, is another program:
//! norms and accepted steps would be those of the batch. Who wants that says so where the solve is built.

mod alone;
mod rules;

use crate::graph::{Builder, Func, NodeId, Op, Type};

/// The function of `n` examples: `(x..) -> (f(x)..)` with a leading axis of length `n` on the inputs in
/// `mapped`, and on every output.
///
/// Example `i` of an output is that output of `f` at example `i` of the mapped inputs and at the others as
/// they are; by the interpreter, to the bit.
///
/// # Panics
/// When `mapped` has not one entry an input, or `n` is 0.
#[track_caller]
pub fn batch(f: &Func, mapped: &[bool], n: usize) -> Func {
    assert!(mapped.len() == f.num_inputs(), "invariant: a flag for each input of a batched function");
    assert!(n > 0, "invariant: a batch has an example");
    let types: Vec<Type> = f
        .input_types()
        .into_iter()
        .zip(mapped)
        .map(|(ty, &on)| if on { with_examples(&ty, n) } else { ty })
        .collect();
    let (mut b, args) = Builder::with_inputs(&types);
    let values = batch_into(&mut b, f, &args, mapped, n);
    let outputs: Vec<NodeId> = values.into_iter().map(|v| v.spread(&mut b, n)).collect();
    b.finish(&outputs)
}

/// A value of the batched function: with a leading axis of examples, or the same for all of them.
#[derive(Clone, Copy, Debug)]
struct Value {
    id: NodeId,
    on: bool,
}

impl Value {
    /// The value with its axis of examples, repeated where it has none.
    fn spread(self, b: &mut Builder, n: usize) -> NodeId {
        if self.on {
            return self.id;
        }
        let ty = with_examples(b.ty(self.id), n);
        let dims = (1..ty.shape().rank()).collect();
        b.broadcast(self.id, ty.shape(), dims)
    }
}

/// The type of `n` values.
fn with_examples(ty: &Type, n: usize) -> Type {
    ty.with_shape([&[n][..], ty.shape()].concat())
}

/// Inserts `f` for `n` examples; returns its outputs.
///
/// Nodes of `f` that wait for no loop may come behind one, so those that do are emitted last.
fn batch_into(b: &mut Builder, f: &Func, args: &[NodeId], mapped: &[bool], n: usize) -> Vec<Value> {
    let on = depends(f, mapped);
    let alone = alone::nodes(f, &on);
    let mut map: Vec<Option<Value>> = vec![None; f.nodes().len()];
    for i in (0..f.nodes().len()).filter(|&i| !alone[i]) {
        if on[i] && matches!(f.nodes()[i].op, Op::RandomBits { .. }) {
            let only: Vec<bool> = (0..on.len()).map(|j| j == i).collect();
            alone::emit(b, f, &only, &on, n, &mut map);
        } else {
            map[i] = Some(Value { id: together(b, f, i, args, &on, n, &map), on: on[i] });
        }
    }
    alone::emit(b, f, &alone, &on, n, &mut map);
    f.outputs().iter().map(|o| map[o.index()].expect("invariant: every output is emitted")).collect()
}

/// The value of node `i` for all examples at once.
fn together(
    b: &mut Builder,
    f: &Func,
    i: usize,
    args: &[NodeId],
    on: &[bool],
    n: usize,
    map: &[Option<Value>],
) -> NodeId {
    let node = &f.nodes()[i];
    let value = |a: &NodeId| map[a.index()].expect("invariant: operands come first");
    let x: Vec<Value> = node.args.iter().map(value).collect();
    match node.op {
        Op::Input(k) => args[k],
        _ if on[i] => rules::rule(b, f, node, &x, n),
        _ => b.push(node.op.clone(), &x.iter().map(|v| v.id).collect::<Vec<_>>(), Some(&node.ty)),
    }
}

/// For each node, whether it depends on a mapped input.
fn depends(f: &Func, mapped: &[bool]) -> Vec<bool> {
    let mut on: Vec<bool> = Vec::with_capacity(f.nodes().len());
    for node in f.nodes() {
        on.push(match node.op {
            Op::Input(k) => mapped[k],
            _ => node.args.iter().any(|a| on[a.index()]),
        });
    }
    on
}
