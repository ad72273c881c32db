//! What a backward trip would compute again although a forward trip did, named so that it can be kept.
//!
//! The derivative of a step starts with the step itself. Much of that the forward body has computed for the same
//! step times and the same state, by the same operations, hence to the same bits: the *residuals*. [`residuals`] finds
//! them, and cuts the backward body in two: [`Residuals::again`] makes them from the state, [`Residuals::backward`]
//! takes them. Who runs the loop decides trip by trip whether they are kept or made again; no value depends on it.
//!
//! The first stage of an adaptive step is the last one of the step before. So there are two kinds: what the trip
//! itself has computed, and what the trip before has computed at its end ([`First`]).
//!
//! It compares nodes and proves nothing by numbers: a value of the backward body is one of the forward body if the two
//! are the same operation on the same values, from the state, the step times and the captures up ([`pair`]). That is why it
//! runs on finished bodies, whose constants and layouts are what they will be. Recording the residuals while a
//! derivative is taken would fix them before simplification, and put them into the signature of every loop and every
//! rule for one. Which of them are worth their way through memory, [`kept`] says.

mod kept;
mod pair;

use crate::graph::{Builder, Func, NodeId, Op, Rev, Type};
use kept::kept;
use pair::{Found, Pair};

/// The bodies of a loop and of its backward pass, and what passes between them.
#[derive(Clone, Debug)]
pub struct Residuals {
    /// The attempt or the step of the loop. Behind its outputs: the residuals of the step, then those that the trip
    /// behind it takes of this one.
    pub forward: Func,
    /// The residuals of a step, of both kinds, from its inputs.
    pub again: Func,
    /// The body of the backward pass, with the residuals behind its inputs.
    pub backward: Func,
    /// What the first trip, which has none before it, takes instead; none where no trip takes anything of the one before.
    pub first: Option<First>,
}

/// What trips take of the trip before, for the first of them.
#[derive(Clone, Debug)]
pub struct First {
    /// How many residuals are of this kind, the last ones.
    pub num: usize,
    /// From the inputs of the loop's body: those residuals, then a value for each of `carried`.
    pub body: Func,
    /// Positions of what the search carries that its trips take for values of the backward body. From the second trip on
    /// they are; the first trip's residuals are good if they are equal to the bit when the search starts.
    pub carried: Vec<usize>,
}

/// What the node `rev`, a backward pass, could take from the trips of the loop that filled its tape; nothing where the
/// loop is in lockstep (its attempts are not its rows' steps), or where all is as cheap to make as to fetch.
pub fn residuals(f: &Func, rev: NodeId) -> Option<Residuals> {
    let Op::Rev(r) = &f.node(rev).op else { return None };
    if r.rows().is_some() {
        return None;
    }
    let maker = *f.node(f.node(rev).args[1]).args.first()?;
    let pair = match &f.node(maker).op {
        Op::Solve(s) => Pair::of_solve(f, (s, maker), (r, rev)),
        Op::Scan(s) => Pair::of_scan(f, (s, maker), (r, rev)),
        _ => return None,
    };
    split(&pair, r)
}

fn split(pair: &Pair<'_>, r: &Rev) -> Option<Residuals> {
    let bwd = &r.bwd;
    let found = pair.find(bwd);
    let (own, before): (Vec<NodeId>, Vec<NodeId>) =
        kept(bwd, &found).into_iter().partition(|id| found.now[id.index()].at().is_some());
    let all = [&own[..], &before].concat();
    if all.is_empty() {
        return None;
    }
    let Found { now, before: at_its_end, carried } = &found;
    let from = own.iter().filter_map(|id| now[id.index()].at());
    let from = from.chain(before.iter().filter_map(|id| at_its_end[id.index()].at()));
    let outputs: Vec<NodeId> = pair.forward.outputs().iter().copied().chain(from).collect();
    let first = (!carried.is_empty() || !before.is_empty()).then(|| {
        let taken: Vec<NodeId> = before.iter().copied().chain(carried.iter().map(|c| c.value)).collect();
        let body = pair.at_first(bwd, &taken);
        First { num: before.len(), body, carried: carried.iter().map(|c| c.position).collect() }
    });
    Some(Residuals {
        forward: with_outputs(pair.forward, &outputs),
        again: making(bwd, pair.num_inputs(), &all),
        backward: taking(bwd, &all),
        first,
    })
}

/// `f` with other outputs.
fn with_outputs(f: &Func, outputs: &[NodeId]) -> Func {
    Func::new(f.nodes().to_vec(), f.inputs().to_vec(), outputs.to_vec())
}

/// The part of a backward body that makes `values` from its first inputs.
fn making(bwd: &Func, num_inputs: usize, values: &[NodeId]) -> Func {
    let (mut b, ids) = Builder::with_inputs(&bwd.input_types()[..num_inputs]);
    let mut map: Vec<Option<NodeId>> = Vec::with_capacity(bwd.nodes().len());
    for node in bwd.nodes() {
        let args: Option<Vec<NodeId>> = node.args.iter().map(|a| map[a.index()]).collect();
        map.push(match (&node.op, args) {
            (Op::Input(k), _) => ids.get(*k).copied(),
            (op, Some(args)) => Some(b.push(op.clone(), &args, Some(&node.ty))),
            (_, None) => None,
        });
    }
    let outputs: Vec<NodeId> = values.iter().filter_map(|id| map[id.index()]).collect();
    b.finish(&outputs)
}

/// `f` with the values of `given` as further inputs.
fn taking(f: &Func, given: &[NodeId]) -> Func {
    let own = f.input_types();
    let types: Vec<Type> = given.iter().map(|&id| f.node(id).ty.clone()).collect();
    let (mut b, ids) = Builder::with_inputs(&[&own[..], &types].concat());
    let mut map: Vec<NodeId> = Vec::with_capacity(f.nodes().len());
    for (i, node) in f.nodes().iter().enumerate() {
        let args: Vec<NodeId> = node.args.iter().map(|a| map[a.index()]).collect();
        let given = given.iter().position(|id| id.index() == i);
        map.push(match (given, &node.op) {
            (Some(k), _) => ids[own.len() + k],
            // Whoever looks at what trips compute has seen it there.
            (None, Op::Observe(_)) => args[0],
            (None, Op::Input(k)) => ids[*k],
            (None, op) => b.push(op.clone(), &args, Some(&node.ty)),
        });
    }
    let outputs: Vec<NodeId> = f.outputs().iter().map(|o| map[o.index()]).collect();
    b.finish(&outputs)
}
