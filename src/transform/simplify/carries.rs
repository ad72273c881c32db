//! Removes unused carried values from searches.
//!
//! A carried value is used if it is read outside, or if a flag, the step time, a tap or another used value
//! depends on it. Examples of unused values are the integrals of a backward solve whose gradients are not
//! needed, and the counters and the controller's history of most solves. Unused values are removed from the
//! loop with the work that computes them. An ext value that every attempt returns unchanged becomes a
//! constant or a capture. If a node reads the tape, or the step has an inverse, all values of the state stay,
//! since every loop that reads the tape must agree on its layout. The ext values may still be removed.
//!
//! If a search runs while a comparison holds, and the comparison holds at the start of the search, then it
//! holds at the start of every attempt. There it is replaced by a constant ([`running`]).

use super::fold::compare;
use super::prune::{NewPlace, places};
use super::splat;
use crate::array::DType;
use crate::graph::{
    AttemptInputs, AttemptOutputs, Builder, Func, Literal, NodeId, Op, SearchOperands, SearchValues, Solve,
    TripInputs, Type, indices,
};
use crate::transform::bodies::{Source, only, with_inputs};
use crate::transform::flow::num_values;

/// The positions of the values that a search carries, first the state, then the ext values: inputs and outputs of
/// the attempt.
struct Carried {
    inputs: Vec<usize>,
    outputs: Vec<usize>,
}

impl Carried {
    fn of(s: &Solve) -> Carried {
        let takes = s.attempt_inputs(&indices(s.attempt.num_inputs()));
        let gives = s.attempt_outputs(&indices(s.attempt.num_outputs()));
        Carried { inputs: [takes.carry, takes.ext].concat(), outputs: [gives.carry, gives.ext].concat() }
    }
}

/// What becomes of a carried value.
#[derive(Clone, Copy)]
enum Fate {
    /// The search still carries it.
    Carried,
    /// Every attempt returns it unchanged, and it is this constant.
    Constant(f64),
    /// Every attempt returns it unchanged; it becomes a capture, of this index among the new ones.
    Captured(usize),
    /// No used value depends on it.
    Unused,
}

/// The search without its unused carried values, its operands, and the new locations of its values.
pub(super) fn fewer(
    b: &Builder,
    s: &Solve,
    x: &[NodeId],
    needed: &[bool],
    found: &mut [NewPlace],
) -> Option<(Solve, Vec<NodeId>)> {
    let operands = s.operands(x);
    let initial = [&operands.carry[..], &operands.ext].concat();
    let fates = fates(b, s, &initial, &s.values(needed));
    let kept: Vec<bool> = fates.iter().map(|fate| matches!(fate, Fate::Carried)).collect();
    let (of_carry, of_ext) = kept.split_at(s.num_carry);
    if !kept.contains(&false) || !of_carry.contains(&true) {
        return None;
    }
    let is_captured: Vec<bool> = fates.iter().map(|fate| matches!(fate, Fate::Captured(_))).collect();
    let captures = only(&initial, &is_captured);
    let types: Vec<Type> = captures.iter().map(|&id| b.ty(id).clone()).collect();
    let smaller = without(s, &fates, &types, (of_carry, of_ext));

    let values = s.places();
    let stays =
        SearchValues { carry: of_carry.to_vec(), ext: of_ext.to_vec(), ..values.clone().map(|_| true) };
    found.copy_from_slice(&places(stays.join()));
    for (j, &place) in values.carry.iter().chain(&values.ext).enumerate() {
        if let Fate::Constant(_) | Fate::Captured(_) = fates[j] {
            found[place] = NewPlace::Outside(initial[j]);
        }
    }
    let operands = SearchOperands {
        carry: only(&operands.carry, of_carry),
        ext: only(&operands.ext, of_ext),
        captures: [operands.captures, captures].concat(),
        ..operands
    };
    Some((smaller, operands.join()))
}

/// The search that carries only the values marked in `of_carry` and `of_ext`. The captured ones are inputs of the
/// given types behind those of its bodies.
fn without(s: &Solve, fates: &[Fate], types: &[Type], (of_carry, of_ext): (&[bool], &[bool])) -> Solve {
    let takes = s.attempt_inputs(&indices(s.attempt.num_inputs()));
    let gives = s.attempt_outputs(&indices(s.attempt.num_outputs()));
    let carried = Carried::of(s);
    let inputs =
        AttemptInputs { carry: only(&takes.carry, of_carry), ext: only(&takes.ext, of_ext), ..takes };
    let outputs =
        AttemptOutputs { carry: only(&gives.carry, of_carry), ext: only(&gives.ext, of_ext), ..gives };
    let inputs = inputs.join();
    let dropped = |input: usize| {
        let j = carried.inputs.iter().position(|&k| k == input).expect("invariant: others are kept");
        match fates[j] {
            Fate::Captured(at) => Source::Input(inputs.len() + at),
            Fate::Constant(number) => Source::Splat(number),
            // A placeholder; no remaining node depends on it.
            Fate::Unused | Fate::Carried => Source::Splat(0.0),
        }
    };
    let attempt = with_inputs(&s.attempt, &inputs, types, dropped, &outputs.join());
    let of_step = |f: &Func| {
        let takes = s.step_inputs(&indices(f.num_inputs()));
        let inputs = TripInputs { carry: only(&takes.carry, of_carry), ..takes }.join();
        let state = only(&indices(s.num_carry), of_carry);
        let outputs = [state, (s.num_carry..f.num_outputs()).collect()].concat();
        with_inputs(f, &inputs, types, |_| Source::Splat(0.0), &outputs)
    };
    let (step, inverse) = (of_step(&s.step), s.inverse.as_ref().map(of_step));
    let num = |kept: &[bool]| kept.iter().filter(|kept| **kept).count();
    Solve { attempt, step, inverse, num_carry: num(of_carry), num_ext: num(of_ext), ..*s }
}

fn fates(b: &Builder, s: &Solve, initial: &[NodeId], needed: &SearchValues<bool>) -> Vec<Fate> {
    let (counts, carried) = (counting(s, needed), Carried::of(s));
    let (inputs, outputs) = (s.attempt.inputs(), s.attempt.outputs());
    let is_held = |j: usize| j >= s.num_carry && outputs[carried.outputs[j]] == inputs[carried.inputs[j]];
    let mut captures = 0..;
    let fate = |j: usize| match splat(b, initial[j]) {
        _ if !counts[j] => Fate::Unused,
        _ if !is_held(j) => Fate::Carried,
        Some(number) => Fate::Constant(number),
        None => Fate::Captured(captures.next().expect("invariant: no end")),
    };
    (0..counts.len()).map(fate).collect()
}

/// Which of the carried values are used: those that `needed` marks, and those on which used values depend.
fn counting(s: &Solve, needed: &SearchValues<bool>) -> Vec<bool> {
    let keeps_state = needed.tape[0] || s.inverse.is_some();
    let state = needed.carry.iter().map(|needed| *needed || keeps_state);
    let mut counts: Vec<bool> = state.chain(needed.ext.iter().copied()).collect();
    let (carried, of_step) = (Carried::of(s), s.step_inputs(&indices(s.step.num_inputs())).carry);
    loop {
        let is_live =
            |output: usize| carried.outputs.iter().position(|&k| k == output).is_none_or(|j| counts[j]);
        let by_attempt = reached(&s.attempt, is_live);
        let by_step = reached(&s.step, |k| k >= s.num_carry || counts[k]);
        let reads = |j: usize| by_attempt[carried.inputs[j]] || of_step.get(j).is_some_and(|&k| by_step[k]);
        let more: Vec<bool> = (0..counts.len()).map(|j| counts[j] || reads(j)).collect();
        if more == counts {
            return counts;
        }
        counts = more;
    }
}

/// Which inputs the outputs chosen by `wanted` depend on. A nested search depends only on its used carried
/// values. A value that an outer and an inner search only pass on unchanged is therefore removed from both.
fn reached(f: &Func, wanted: impl Fn(usize) -> bool) -> Vec<bool> {
    let mut on = vec![false; f.nodes().len()];
    let mut needed: Vec<Vec<bool>> = f.nodes().iter().map(|node| vec![false; num_values(&node.ty)]).collect();
    let outputs = f.outputs().iter().enumerate().filter(|(k, _)| wanted(*k));
    outputs.for_each(|(_, id)| on[id.index()] = true);
    for (i, node) in f.nodes().iter().enumerate().rev() {
        if !on[i] {
            continue;
        }
        if let Op::Proj(k) = node.op {
            needed[node.args[0].index()][k] = true;
        }
        let mut idle = vec![false; node.args.len()];
        if let Op::Solve(s) = &node.op {
            let counts = counting(s, &s.values(&needed[i]));
            let operands = s.operands(&indices(node.args.len()));
            let carried = operands.carry.iter().chain(&operands.ext);
            carried.zip(counts).for_each(|(&k, counts)| idle[k] = !counts);
        }
        let args = node.args.iter().zip(idle).filter(|(_, idle)| !idle);
        args.for_each(|(a, _)| on[a.index()] = true);
    }
    f.inputs().iter().map(|id| on[id.index()]).collect()
}

/// The search with an attempt that assumes that the search is running. If a search continues while a
/// comparison of a carried number with a constant holds, and the comparison holds at the start of the first
/// attempt, then it holds at the start of every attempt. `None` if this is not the case, and for rows in
/// lockstep, which run until all rows have ended.
pub(super) fn running(b: &Builder, s: &Solve, x: &[NodeId]) -> Option<Solve> {
    if s.rows().is_some() {
        return None;
    }
    let f = &s.attempt;
    let (takes, gives) =
        (s.attempt_inputs(&indices(f.num_inputs())), s.attempt_outputs(&indices(f.num_outputs())));
    let goes_on = f.node(f.outputs()[gives.verdict[1]]);
    let (Op::Compare(op), [value, number]) = (&goes_on.op, &goes_on.args[..]) else { return None };
    let number = f.node(*number).splat().filter(|_| f.node(*value).ty == Type::scalar(DType::F64))?;
    let j = gives.ext.iter().position(|&k| f.outputs()[k] == *value)?;
    if !compare(*op, splat(b, s.operands(x).ext[j])?, number) {
        return None;
    }
    let input = f.inputs()[takes.ext[j]];
    let is_known = |id: usize| {
        let node = &f.nodes()[id];
        matches!(&node.op, Op::Compare(o) if o == op)
            && node.args[0] == input
            && f.node(node.args[1]).splat() == Some(number)
    };
    let known = (0..f.nodes().len()).find(|&id| is_known(id))?;
    let mut nodes = f.nodes().to_vec();
    nodes[known].args.clear();
    nodes[known].op = Op::Const(Literal::splat(DType::Bool, 1.0));
    Some(Solve { attempt: Func::new(nodes, f.inputs().to_vec(), f.outputs().to_vec()), ..s.clone() })
}
