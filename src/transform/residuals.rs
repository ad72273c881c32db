//! Residuals: values that a forward trip computed and a backward trip would recompute, identified so that they
//! can be stored.
//!
//! The derivative of a step starts by recomputing the step. The forward body has already computed many of the
//! recomputed values for the same step times and the same state, with the same operations and therefore with
//! the same bits. These values are the *residuals*. [`residuals`] finds them and splits the backward body
//! into two parts: [`Residuals::recompute`] recomputes the residuals from the state, and [`Residuals::backward`]
//! has them as inputs. The executor decides for each trip whether to store or to recompute the residuals. No
//! result depends on this decision.
//!
//! The first stage of an adaptive step is the last stage of the previous step. There are therefore two kinds
//! of residuals: those that the trip itself computed, and those that the previous trip computed at its end
//! ([`First`]).
//!
//! The search compares nodes, not numbers: a value of the backward body equals a value of the forward body if
//! both are the same operation on equal values, starting from the state, the step times and the captures
//! ([`pair`]). The search therefore runs on optimized bodies, whose constants and layouts no longer change.
//! Recording the residuals during differentiation would fix them before simplification, and would add them to
//! the signature of every loop and to every rule for loops. [`kept`] chooses the residuals that are worth
//! their memory traffic.

mod kept;
mod pair;

use crate::graph::{Builder, Func, NodeId, Op, Replay, TripInputs, Type, indices};
use kept::kept;
use pair::{Matches, Pair};

/// The bodies of a loop and of its backward pass, and the residuals between them.
#[derive(Clone, Debug)]
pub struct Residuals {
    /// The attempt or the step of the loop. After its outputs: the residuals of the step, then those that the
    /// next trip takes from this one.
    pub forward: Func,
    /// Computes the residuals of a step, of both kinds, from its inputs.
    pub recompute: Func,
    /// The body of the backward pass, with the residuals after its inputs.
    pub backward: Func,
    /// Replaces the previous trip for the first trip. `None` if trips reuse nothing of the previous trip.
    pub first: Option<First>,
}

/// The residuals that the first trip would take from a previous trip.
#[derive(Clone, Debug)]
pub struct First {
    /// The number of residuals from the previous trip; they are the last residuals.
    pub num: usize,
    /// Computes these residuals, then a value for each of `carried`, from the inputs of the loop's body.
    pub body: Func,
    /// Indices of values that the search carries, and that trips reuse as values of the backward body. From
    /// the second trip on, the carried and the recomputed values are equal. The residuals of the first trip
    /// are valid only if these values are bit-equal at the start of the search.
    pub carried: Vec<usize>,
}

/// The residuals of the backward pass `back` and of the loop that filled its tape. `None` if the loop runs in
/// lockstep, where an attempt is not a step of every row, or if every value is as cheap to recompute as to
/// read.
pub fn residuals(f: &Func, back: NodeId) -> Option<Residuals> {
    let Op::Replay(l) = &f.node(back).op else { return None };
    let tape = *l.operands(&f.node(back).args).tape.first()?;
    if l.lockstep().is_some() {
        return None;
    }
    let maker = *f.node(tape).args.first()?;
    let pair = match &f.node(maker).op {
        Op::Solve(s) => Pair::of_solve(f, (s, maker), (l, back)),
        Op::Replay(forward) => Pair::of_replay(f, (forward, maker), (l, back)),
        _ => return None,
    };
    split(&pair, l)
}

fn split(pair: &Pair<'_>, l: &Replay) -> Option<Residuals> {
    let bwd = &l.body;
    let found = pair.find(bwd);
    let (own, before): (Vec<NodeId>, Vec<NodeId>) =
        kept(bwd, &found).into_iter().partition(|id| found.now[id.index()].at().is_some());
    let all = [&own[..], &before].concat();
    if all.is_empty() {
        return None;
    }
    let Matches { now, before: at_its_end, carried } = &found;
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
        recompute: making(l, &all),
        backward: taking(bwd, &all),
        first,
    })
}

/// `f` with other outputs.
fn with_outputs(f: &Func, outputs: &[NodeId]) -> Func {
    Func::new(f.nodes().to_vec(), f.inputs().to_vec(), outputs.to_vec())
}

/// The part of a backward body that computes `values`, from the inputs of a step.
fn making(l: &Replay, values: &[NodeId]) -> Func {
    let bwd = &l.body;
    let takes = l.inputs(&indices(bwd.num_inputs()));
    let own = TripInputs { carry: takes.states, states: vec![], xs: vec![], rows: vec![], ..takes }.join();
    let types: Vec<Type> = own.iter().map(|&k| bwd.input_type(k).clone()).collect();
    let (mut b, ids) = Builder::with_inputs(&types);
    let mut map: Vec<Option<NodeId>> = Vec::with_capacity(bwd.nodes().len());
    for node in bwd.nodes() {
        let args: Option<Vec<NodeId>> = node.args.iter().map(|a| map[a.index()]).collect();
        map.push(match (&node.op, args) {
            (Op::Input(k), _) => own.iter().position(|of| of == k).map(|at| ids[at]),
            (op, Some(args)) => Some(b.push(op.clone(), &args, Some(&node.ty))),
            (_, None) => None,
        });
    }
    let outputs: Vec<NodeId> = values.iter().filter_map(|id| map[id.index()]).collect();
    b.finish(&outputs)
}

/// `f` with the values of `given` as additional inputs.
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
            // The observer was called in the forward trip.
            (None, Op::Observe(_)) => args[0],
            (None, Op::Input(k)) => ids[*k],
            (None, op) => b.push(op.clone(), &args, Some(&node.ty)),
        });
    }
    let outputs: Vec<NodeId> = f.outputs().iter().map(|o| map[o.index()]).collect();
    b.finish(&outputs)
}
