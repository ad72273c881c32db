//! Batching: vectorizes a function over many examples.
//!
//! Values that depend on a mapped input get a leading axis with one entry per example; the others are
//! unchanged and computed once. Each op has one rule (`rules`), which emits ordinary nodes, so a batched
//! function can be differentiated, batched again and compiled like any other. Some ops have no common form
//! for several examples: searches, because the number of trips differs per example, loops with sequences, tiles,
//! random bits from many keys, and a `cond` with one predicate per example. They run for each example alone,
//! in tiles of one row (`alone`), with the same bits as single calls. If all examples share one schedule
//! (tangents or cotangents through one solve), a replay becomes a loop of batched bodies (`shared`).
//!
//! A search can also run for all examples in lockstep until the last example has ended (`lockstep`); each
//! example then has the same trips and bits as in a search of its own. Neither form is always faster:
//! separate searches run in parallel, and in lockstep each operation computes the whole batch. Callers choose
//! with [`Searches`].

mod alone;
mod lockstep;
mod rules;
mod shared;

use super::flow::num_values;
use crate::graph::{Builder, Func, NodeId, Op, Type};

/// Vectorizes `f` over `n` examples: `(x..) -> (f(x)..)` with a leading axis of length `n` on the inputs that
/// `mapped` marks, and on every output.
///
/// Example `i` of an output equals the output of `f` at example `i` of the mapped inputs, with the other inputs
/// unchanged; in the interpreter, bit for bit.
///
/// # Panics
/// If `mapped` does not have one entry per input, or `n` is 0.
#[track_caller]
pub fn batch(f: &Func, mapped: &[bool], n: usize) -> Func {
    batch_with(f, mapped, n, Searches::Alone)
}

/// [`batch`] with a choice of how the function's own searches run.
///
/// # Panics
/// As for [`batch`].
#[track_caller]
pub fn batch_with(f: &Func, mapped: &[bool], n: usize, searches: Searches) -> Func {
    assert!(mapped.len() == f.num_inputs(), "invariant: a flag for each input of a batched function");
    assert!(n > 0, "invariant: a batch has at least one example");
    emit(f, mapped, n, &vec![true; f.num_outputs()], searches)
}

/// [`batch`] with an axis of examples only on the outputs that `carry` marks; the other outputs must be the
/// same for all examples.
fn batch_as(f: &Func, mapped: &[bool], n: usize, carry: &[bool]) -> Func {
    emit(f, mapped, n, carry, Searches::Alone)
}

/// How a search runs for many examples. Searches inside bodies, and nodes that need the schedule of a search,
/// always run alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Searches {
    /// Each example alone, in parallel.
    Alone,
    /// All examples in lockstep.
    Lockstep,
}

fn emit(f: &Func, mapped: &[bool], n: usize, carry: &[bool], searches: Searches) -> Func {
    let types = f.input_types().into_iter().zip(mapped);
    let types: Vec<Type> = types.map(|(ty, &on)| if on { with_examples(&ty, n) } else { ty }).collect();
    let (mut b, args) = Builder::with_inputs(&types);
    let values = batch_into(&mut b, f, &args, &Marks::of(f, mapped, searches), n);
    let outputs = values.into_iter().zip(carry).map(|(v, &on)| if on { v.spread(&mut b, n) } else { v.id });
    let outputs: Vec<NodeId> = outputs.collect();
    b.finish(&outputs)
}

/// A value of the batched function. If `on`, it has a leading axis of examples; else all examples share it.
#[derive(Clone, Copy, Debug)]
struct MappedValue {
    id: NodeId,
    on: bool,
}

impl MappedValue {
    /// The value with an axis of examples, broadcast if it has none.
    fn spread(self, b: &mut Builder, n: usize) -> NodeId {
        if self.on {
            return self.id;
        }
        let ty = with_examples(b.ty(self.id), n);
        let dims = (1..ty.shape().rank()).collect();
        b.broadcast(self.id, ty.shape(), dims)
    }
}

/// The type of the values of `n` examples.
fn with_examples(ty: &Type, n: usize) -> Type {
    ty.with_shape([&[n][..], ty.shape()].concat())
}

/// Inserts `f` for `n` examples; returns its outputs.
///
/// Nodes that run alone are emitted last, as one set of tiles, because other nodes of `f` may come between
/// them.
fn batch_into(b: &mut Builder, f: &Func, args: &[NodeId], marks: &Marks, n: usize) -> Vec<MappedValue> {
    let mut map: Vec<Option<MappedValue>> = vec![None; f.nodes().len()];
    for (i, node) in f.nodes().iter().enumerate().filter(|(i, _)| !marks.alone[*i]) {
        if marks.any(i) && matches!(node.op, Op::RandomBits { .. }) {
            let only: Vec<bool> = (0..map.len()).map(|j| j == i).collect();
            alone::emit(b, f, &only, marks, n, &mut map);
            continue;
        }
        let value = |a: &NodeId| map[a.index()].expect("invariant: operands come first");
        let x: Vec<MappedValue> = node.args.iter().map(value).collect();
        // A loop may ignore an operand with an axis of examples. The values of the loop then have no axis of
        // examples, but the type of its step still changes.
        let carries = x.iter().any(|v| v.on);
        let id = match &node.op {
            Op::Input(k) => args[*k],
            Op::Solve(s) if carries => lockstep::solve(b, s, &x, n),
            Op::Replay(l) if carries => shared::replay(b, l, &x, n),
            Op::Proj(k) => match &f.node(node.args[0]).op {
                Op::Replay(l) => shared::value(b, l, x[0].id, (*k, marks.any(i))),
                _ => b.proj(x[0].id, *k),
            },
            _ if marks.any(i) => rules::rule(b, node, &x, n),
            op => b.push(op.clone(), &x.iter().map(|v| v.id).collect::<Vec<_>>(), Some(&node.ty)),
        };
        map[i] = Some(MappedValue { id, on: marks.any(i) });
    }
    alone::emit(b, f, &marks.alone, marks, n, &mut map);
    f.outputs().iter().map(|o| map[o.index()].expect("invariant: every output is emitted")).collect()
}

/// Whether a function contains searches, loops or tiles.
pub fn has_loops(f: &Func) -> bool {
    f.nodes().iter().any(|node| match &node.op {
        Op::Solve(_) | Op::Replay(_) | Op::Tiles(_) => true,
        Op::Custom(c) => has_loops(&c.body),
        Op::Cond(c) => has_loops(&c.then) || has_loops(&c.otherwise),
        _ => false,
    })
}

/// The effect of the mapped inputs on the nodes of a function.
struct Marks {
    /// For each value of each node, whether it has an axis of examples.
    on: Vec<Vec<bool>>,
    /// For each node, whether it runs alone: it has an axis of examples, and has no common form for several
    /// examples or depends on a node that runs alone.
    alone: Vec<bool>,
}

impl Marks {
    fn of(f: &Func, mapped: &[bool], searches: Searches) -> Marks {
        let mut m = Marks { on: vec![], alone: vec![] };
        for node in f.nodes() {
            let num = num_values(&node.ty);
            let carries = node.args.iter().any(|a| m.any(a.index()));
            let waits = node.args.iter().any(|a| m.alone[a.index()]);
            let (on, alone) = match &node.op {
                Op::Input(k) => (vec![mapped[*k]], false),
                Op::Proj(k) => (vec![m.on[node.args[0].index()][*k]], waits),
                _ if !carries => (vec![false; num], false),
                Op::Solve(s)
                    if searches == Searches::Lockstep && s.rows().is_none() && s.inverse.is_none() =>
                {
                    (vec![true; num], waits)
                }
                Op::Solve(_) | Op::Tiles(_) => (vec![true; num], true),
                Op::Custom(c) if has_loops(&c.body) => (vec![true; num], true),
                // Each example chooses its branch.
                Op::Cond(_) if m.any(node.args[0].index()) => (vec![true; num], true),
                Op::Replay(l) => {
                    let along = if waits { None } else { shared::values(f, node, l, &m) };
                    (along.clone().unwrap_or(vec![true; num]), along.is_none())
                }
                _ => (vec![true; num], waits),
            };
            m.on.push(on);
            m.alone.push(alone);
        }
        m
    }

    /// Whether at least one value of node `i` has an axis of examples.
    fn any(&self, i: usize) -> bool {
        self.on[i].contains(&true)
    }

    /// The outputs of `f` that have an axis of examples.
    fn outputs(&self, f: &Func) -> Vec<bool> {
        f.outputs().iter().map(|o| self.any(o.index())).collect()
    }
}
