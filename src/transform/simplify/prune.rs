//! Removes unused inputs and outputs from the bodies of loops and tiles.
//!
//! Unread captures and tile inputs are removed, and equal inputs are merged. Constants move into the bodies,
//! where they can be folded. If all rows of a tile input repeat one value, only this value is passed. Unused
//! outputs of tiles, branches and replays are removed. Other files have the carried values of searches ([`carries`])
//! and the values of replays ([`prune_loop`]).

use super::{carries, prune_loop, splat};
use crate::graph::{
    Builder, Cond, Func, Node, NodeId, NodeIds, Op, SearchOperands, Solve, TileOut, Tiles, Type, indices,
};
use crate::transform::bodies::{Source, only, plain_replay, plain_search, resign, used_inputs};
use std::sync::Arc;

/// The location of a tuple's value after pruning.
#[derive(Clone, Copy)]
pub(super) enum NewPlace {
    /// The value is unused.
    Nowhere,
    /// The value of this index in the tuple of the new node.
    Value(usize),
    /// The value is a node outside of the body.
    Outside(NodeId),
}

/// The places of values of which only the marked ones stay, in their order.
pub(super) fn places(stays: impl IntoIterator<Item = bool>) -> Vec<NewPlace> {
    let mut num = 0;
    let place = |stays| {
        num += usize::from(stays);
        if stays { NewPlace::Value(num - 1) } else { NewPlace::Nowhere }
    };
    stays.into_iter().map(place).collect()
}

/// The same function with smaller signatures of its bodies.
pub(super) fn prune(f: &Func) -> Func {
    if !f.nodes().iter().any(|n| matches!(n.ty, Type::Tuple(_))) {
        return f.clone();
    }
    let needed = needed(f);
    let (mut b, ids) = Builder::with_inputs(&f.input_types());
    let mut map: Vec<NodeId> = Vec::with_capacity(f.nodes().len());
    let mut found: Vec<Vec<NewPlace>> = vec![vec![]; f.nodes().len()];
    for (i, node) in f.nodes().iter().enumerate() {
        let x: NodeIds = node.args.iter().map(|a| map[a.index()]).collect();
        map.push(match &node.op {
            Op::Input(k) => ids[*k],
            Op::Proj(k) => match found[node.args[0].index()][*k] {
                NewPlace::Value(j) => b.proj(x[0], j),
                NewPlace::Outside(id) => id,
                NewPlace::Nowhere => unreachable!("invariant: a projected value is needed"),
            },
            _ => smaller(&mut b, node, &x, &needed[i], &mut found[i]),
        });
    }
    let outputs: Vec<NodeId> = f.outputs().iter().map(|o| map[o.index()]).collect();
    b.finish(&outputs)
}

/// For each tuple, which of its values are used.
fn needed(f: &Func) -> Vec<Vec<bool>> {
    let mut needed: Vec<Vec<bool>> = f
        .nodes()
        .iter()
        .map(|n| if let Type::Tuple(types) = &n.ty { vec![false; types.len()] } else { vec![] })
        .collect();
    for node in f.nodes() {
        if let Op::Proj(k) = node.op {
            needed[node.args[0].index()][k] = true;
        }
    }
    needed
}

fn smaller(b: &mut Builder, node: &Node, x: &[NodeId], needed: &[bool], found: &mut Vec<NewPlace>) -> NodeId {
    *found = (0..needed.len()).map(NewPlace::Value).collect();
    match &node.op {
        Op::Tiles(t) => tiles(b, t, x, needed, found),
        Op::Solve(s) => {
            let mut s = carries::running(b, s, x).unwrap_or_else(|| Solve::clone(s));
            let mut x = x.to_vec();
            // Residuals without a tape have no reader.
            if s.num_residuals() > 0 && !s.values(needed).tape[0] {
                x = SearchOperands { first: vec![], ..s.operands(&x) }.join();
                s = plain_search(&s);
            }
            let (s, x) = carries::fewer(b, &s, &x, needed, found).unwrap_or((s, x));
            solve(b, &s, &x)
        }
        Op::Replay(l) => {
            let no_reader = l.num_residuals > 0 && !l.reads_states() && !l.values(needed).tape[0];
            let plain = no_reader.then(|| plain_replay(l));
            let (l, x) = prune_loop::replay(b, plain.as_ref().unwrap_or(l), x, needed, found);
            b.replay(l, x)
        }
        Op::Cond(c) => cond(b, c, x, needed, found),
        plain => b.push(plain.clone(), x, Some(&node.ty)),
    }
}

/// The pruned form of a range of operands: the new operands, and the source of each old operand.
pub(super) struct CapturePlan {
    pub(super) operands: Vec<NodeId>,
    types: Vec<Type>,
    sources: Vec<Source>,
}

/// Drops unused operands, merges equal operands, and moves constants into the body.
pub(super) fn plan(b: &Builder, x: &[NodeId], used: &[bool], types: &[Type]) -> CapturePlan {
    let mut p = CapturePlan { operands: vec![], types: vec![], sources: vec![] };
    for (k, &id) in x.iter().enumerate() {
        let known = p.operands.iter().position(|&operand| operand == id);
        p.sources.push(match (splat(b, id), known) {
            (Some(c), _) => Source::Splat(c),
            (None, Some(j)) => Source::Input(j),
            // A placeholder for an unused input; no node reads it.
            (None, None) if !used[k] && matches!(types[k], Type::Array { .. }) => Source::Splat(0.0),
            _ => {
                p.operands.push(id);
                p.types.push(types[k].clone());
                Source::Input(p.operands.len() - 1)
            }
        });
    }
    p
}

impl CapturePlan {
    /// A body whose inputs from `at` on, one for each planned operand, are replaced according to the plan.
    fn apply(&self, body: &Func, at: usize, outputs: &[usize]) -> Func {
        let n = self.sources.len();
        let all = body.input_types();
        let types = [&all[..at], &self.types, &all[at + n..]].concat();
        let behind = at + self.types.len();
        let mut sources: Vec<Source> = (0..at).map(Source::Input).collect();
        sources.extend(self.sources.iter().map(|s| match s {
            Source::Input(j) => Source::Input(at + j),
            other => other.clone(),
        }));
        sources.extend((0..all.len() - at - n).map(|k| Source::Input(behind + k)));
        resign(body, &types, &sources, outputs)
    }

    pub(super) fn apply_all(&self, body: &Func, at: usize) -> Func {
        self.apply(body, at, &(0..body.num_outputs()).collect::<Vec<_>>())
    }
}

fn either(a: &[bool], b: &[bool]) -> Vec<bool> {
    a.iter().zip(b).map(|(a, b)| *a || *b).collect()
}

fn solve(b: &mut Builder, s: &Solve, x: &[NodeId]) -> NodeId {
    let (at, at_step) = (s.first_attempt_capture(), s.first_step_capture());
    let bodies = [Some((&s.attempt, at)), Some((&s.step, at_step)), s.inverse.as_ref().map(|f| (f, at_step))];
    let mut operands = s.operands(x);
    let used = captures_used(bodies.into_iter().flatten(), operands.captures.len());
    let types = &s.step.input_types()[at_step..];
    let p = plan(b, &operands.captures, &used, types);
    operands.captures.clone_from(&p.operands);
    let (attempt, step) = (p.apply_all(&s.attempt, at), p.apply_all(&s.step, at_step));
    let inverse = s.inverse.as_ref().map(|f| p.apply_all(f, at_step));
    b.search(Solve { attempt, step, inverse, ..*s }, operands)
}

/// Which of the `num` captures any of the bodies reads; each body comes with the index of its first capture.
pub(super) fn captures_used<'a>(bodies: impl Iterator<Item = (&'a Func, usize)>, num: usize) -> Vec<bool> {
    bodies.fold(vec![false; num], |used, (f, at)| either(&used, &used_inputs(f)[at..at + num]))
}

fn cond(b: &mut Builder, c: &Cond, x: &[NodeId], needed: &[bool], found: &mut [NewPlace]) -> NodeId {
    let outputs = only(&indices(needed.len()), needed);
    found.copy_from_slice(&places(needed.iter().copied()));
    let used = either(&used_inputs(&c.then), &used_inputs(&c.otherwise));
    let p = plan(b, &x[1..], &used, &c.then.input_types());
    let (then, otherwise) = (p.apply(&c.then, 0, &outputs), p.apply(&c.otherwise, 0, &outputs));
    b.push(Op::Cond(Arc::new(Cond { then, otherwise })), &[&x[..1], &p.operands].concat(), None)
}

fn own_inputs(f: &Func) -> Vec<Source> {
    (0..f.num_inputs()).map(Source::Input).collect()
}

fn tiles(b: &mut Builder, t: &Tiles, x: &[NodeId], needed: &[bool], found: &mut [NewPlace]) -> NodeId {
    let outputs = only(&indices(needed.len()), needed);
    found.copy_from_slice(&places(needed.iter().copied()));
    let fewer = |f: &Func| resign(f, &f.input_types(), &own_inputs(f), &outputs);
    let (body, tail) = (fewer(&t.body), t.tail.as_ref().map(fewer));
    let mut used = used_inputs(&body);
    if let Some(tail) = &tail {
        used = either(&used, &used_inputs(tail));
    }
    let inputs = TileInputs::new(b, t.num_rowed, x, &used[1..]);
    let derive = |f: &Func| {
        let of = |k: &usize| f.input_type(1 + k).clone();
        let types: Vec<Type> = std::iter::once(f.input_type(0).clone())
            .chain(inputs.rowed.iter().map(of))
            .chain(inputs.shared.iter().map(|&id| b.ty(id).clone()))
            .collect();
        resign(f, &types, &inputs.sources, &(0..outputs.len()).collect::<Vec<_>>())
    };
    let outs: Vec<TileOut> = outputs.iter().map(|&k| t.outs[k]).collect();
    let (body, tail) = (derive(&body), tail.as_ref().map(derive));
    let operands: Vec<NodeId> = inputs.rowed.iter().map(|&k| x[k]).chain(inputs.shared).collect();
    let tiles = Tiles { body, tail, num_rowed: inputs.rowed.len(), outs, ..*t };
    b.push(Op::Tiles(Arc::new(tiles)), &operands, None)
}

/// The pruned operands of tiles.
struct TileInputs {
    /// Operands that stay rowed, by their old index.
    rowed: Vec<usize>,
    /// The shared operands.
    shared: Vec<NodeId>,
    /// The source of each old input of the body, row0 included.
    sources: Vec<Source>,
}

impl TileInputs {
    fn new(b: &Builder, num_rowed: usize, x: &[NodeId], used: &[bool]) -> TileInputs {
        let (mut rowed, mut shared): (Vec<usize>, Vec<NodeId>) = (vec![], vec![]);
        let mut share = |id: NodeId| {
            shared.iter().position(|&s| s == id).unwrap_or_else(|| {
                shared.push(id);
                shared.len() - 1
            })
        };
        // Shared inputs come after the rowed inputs, whose number is not known before the end of this loop.
        let mut late: Vec<Source> = vec![];
        for (k, &id) in x.iter().enumerate() {
            let node = b.node(id);
            late.push(match (&node.op, splat(b, id)) {
                (_, Some(c)) => Source::Splat(c),
                _ if !used[k] => Source::Splat(0.0),
                (Op::Broadcast { dims }, _) if k < num_rowed && dims.first() != Some(&0) => {
                    Source::Spread(share(node.args[0]), dims.clone())
                }
                _ if k >= num_rowed => Source::Spread(share(id), vec![]),
                _ => Source::Input(
                    1 + rowed.iter().position(|&j| x[j] == id).unwrap_or_else(|| {
                        rowed.push(k);
                        rowed.len() - 1
                    }),
                ),
            });
        }
        let behind = 1 + rowed.len();
        let place = |(k, s): (usize, Source)| match s {
            Source::Spread(j, _) if k >= num_rowed => Source::Input(behind + j),
            Source::Spread(j, dims) => Source::Spread(behind + j, dims),
            other => other,
        };
        let sources =
            std::iter::once(Source::Input(0)).chain(late.into_iter().enumerate().map(place)).collect();
        TileInputs { rowed, shared, sources }
    }
}
