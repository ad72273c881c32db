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
use super::prune::NewPlace;
use super::splat;
use crate::array::DType;
use crate::graph::{Builder, Func, Literal, NodeId, Op, Solve, Type};
use crate::transform::bodies::{Source, resign};
use crate::transform::flow::num_values;

/// The search without its unused carried values, its operands, and the new locations of its values.
pub(super) fn fewer(
    b: &Builder,
    s: &Solve,
    x: &[NodeId],
    needed: &[bool],
    found: &mut [NewPlace],
) -> Option<(Solve, Vec<NodeId>)> {
    let (n, first) = (s.num_carry + s.num_ext, s.first_carry());
    let keeps_state = needed[n + 1] || s.inverse.is_some();
    let counts = counting(s, &needed[..n], keeps_state);
    let is_held =
        |j: usize| j >= s.num_carry && s.attempt.outputs()[4 + j] == s.attempt.inputs()[s.attempt_head() + j];
    let kept: Vec<usize> = (0..n).filter(|&j| counts[j] && !is_held(j)).collect();
    let num_carry = kept.iter().filter(|&&j| j < s.num_carry).count();
    if kept.len() == n || num_carry == 0 {
        return None;
    }
    let mut captures = vec![];
    let sources: Vec<Source> = (0..n)
        .map(|j| match (kept.iter().position(|&k| k == j), splat(b, x[first + j])) {
            (Some(at), _) => Source::Input(s.attempt_head() + at),
            (None, None) if counts[j] => {
                captures.push(x[first + j]);
                Source::Input(s.attempt_head() + kept.len() + s.num_captures() + captures.len() - 1)
            }
            (None, Some(number)) if counts[j] => Source::Splat(number),
            // A placeholder; no remaining node depends on it.
            _ => Source::Splat(0.0),
        })
        .collect();
    for (j, found) in found.iter_mut().enumerate() {
        *found = match kept.iter().position(|&k| k == j) {
            Some(at) => NewPlace::Value(at),
            None if j >= n => NewPlace::Value(j - n + kept.len()),
            None if is_held(j) => NewPlace::Outside(x[first + j]),
            None => NewPlace::Nowhere,
        };
    }
    let types: Vec<Type> = captures.iter().map(|&id| b.ty(id).clone()).collect();
    let carried: Vec<usize> = kept.iter().copied().filter(|&j| j < s.num_carry).collect();
    let rows = |from: usize, f: &Func| (from..f.num_outputs()).collect::<Vec<_>>();
    let outputs: Vec<usize> =
        (0..4).chain(kept.iter().map(|j| 4 + j)).chain(rows(4 + n, &s.attempt)).collect();
    let attempt = with_carry(&s.attempt, s.attempt_head(), (&sources, kept.len()), &types, &outputs);
    let of_step: Vec<Source> = (0..s.num_carry)
        .map(|j| {
            carried.iter().position(|&k| k == j).map_or(Source::Splat(0.0), |at| Source::Input(s.head() + at))
        })
        .collect();
    let of_step = |f: &Func| {
        let outputs: Vec<usize> = carried.iter().copied().chain(rows(s.num_carry, f)).collect();
        with_carry(f, s.head(), (&of_step, num_carry), &types, &outputs)
    };
    let (step, inverse) = (of_step(&s.step), s.inverse.as_ref().map(of_step));
    let mut operands = x[..first].to_vec();
    operands.extend(kept.iter().map(|j| x[first + j]));
    operands.extend(&x[first + n..]);
    operands.extend(captures);
    Some((Solve { attempt, step, inverse, num_carry, num_ext: kept.len() - num_carry, ..*s }, operands))
}

/// Which of the carried values are used: those that `needed` marks, and those on which used values depend.
fn counting(s: &Solve, needed: &[bool], keeps_state: bool) -> Vec<bool> {
    let mut counts: Vec<bool> =
        needed.iter().enumerate().map(|(j, needed)| *needed || keeps_state && j < s.num_carry).collect();
    let (n, at, at_step) = (counts.len(), s.attempt_head(), s.head());
    loop {
        let live = |k: usize| k < 4 || counts.get(k - 4).is_none_or(|c| *c);
        let by_attempt = reached(&s.attempt, live);
        let by_step = reached(&s.step, |k| k >= s.num_carry || counts[k]);
        let more: Vec<bool> = (0..n)
            .map(|j| counts[j] || by_attempt[at + j] || j < s.num_carry && by_step[at_step + j])
            .collect();
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
            let (n, needed) = (s.num_carry + s.num_ext, &needed[i]);
            let counts = counting(s, &needed[..n], needed[n + 1] || s.inverse.is_some());
            counts.iter().enumerate().for_each(|(j, counts)| idle[s.first_carry() + j] = !counts);
        }
        let args = node.args.iter().zip(idle).filter(|(_, idle)| !idle);
        args.for_each(|(a, _)| on[a.index()] = true);
    }
    f.inputs().iter().map(|id| on[id.index()]).collect()
}

/// `f` with its inputs from `at` on reduced to `kept` and replaced according to `sources`, with additional
/// inputs at the end, and with these outputs.
fn with_carry(
    f: &Func,
    at: usize,
    (sources, kept): (&[Source], usize),
    further: &[Type],
    outputs: &[usize],
) -> Func {
    let (own, n) = (f.input_types(), sources.len());
    let mut carried = vec![None; kept];
    for (j, source) in sources.iter().enumerate() {
        if let Source::Input(k) = source
            && *k < at + kept
        {
            carried[k - at] = Some(own[at + j].clone());
        }
    }
    let types: Vec<Type> = own[..at]
        .iter()
        .cloned()
        .chain(carried.into_iter().flatten())
        .chain(own[at + n..].iter().cloned())
        .chain(further.iter().cloned())
        .collect();
    let behind = (at + n..own.len()).map(|k| Source::Input(k - n + kept));
    let all: Vec<Source> = (0..at).map(Source::Input).chain(sources.iter().cloned()).chain(behind).collect();
    resign(f, &types, &all, outputs)
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
    let goes_on = f.node(f.outputs()[1]);
    let (Op::Compare(op), [value, number]) = (&goes_on.op, &goes_on.args[..]) else { return None };
    let number = f.node(*number).splat().filter(|_| f.node(*value).ty == Type::scalar(DType::F64))?;
    let n = s.num_carry + s.num_ext;
    let j = (s.num_carry..n).find(|j| f.outputs()[4 + j] == *value)?;
    if !compare(*op, splat(b, x[s.first_carry() + j])?, number) {
        return None;
    }
    let input = f.inputs()[s.attempt_head() + j];
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
