//! Removes unused inputs and outputs from the bodies of a replay, as `prune` does for the other loops.
//!
//! Unused stored, summed and tapped values are removed with their computation, and inputs that the body does not
//! read. A carried value that every trip passes on unchanged becomes a capture, if no node reads the states of the
//! loop. All other carried values stay. So do the states that the loop reads, because a tape has their layout.

use super::prune::{NewPlace, captures_used, plan};
use crate::graph::{
    Builder, Func, NodeId, Op, Replay, ReplayOperands, ReplayValues, TripInputs, TripOutputs, Type, indices,
};
use crate::transform::bodies::{Source, only, used_inputs, with_inputs, with_outputs};
use std::sync::Arc;

fn not(flags: &[bool]) -> Vec<bool> {
    flags.iter().map(|on| !on).collect()
}

fn num(flags: &[bool]) -> usize {
    flags.iter().filter(|on| **on).count()
}

pub(super) fn replay(
    b: &Builder,
    l: &Replay,
    x: &[NodeId],
    needed: &[bool],
    found: &mut [NewPlace],
) -> (Op, Vec<NodeId>) {
    let (operands, needed) = (l.operands(x), l.values(needed));
    let (takes, gives) = (l.inputs(&indices(l.body.num_inputs())), l.outputs(&indices(l.body.num_outputs())));
    let has_states = needed.tape[0] || needed.states.contains(&true) || l.inverse.is_some();
    let passes = |j: usize| l.body.outputs()[gives.carry[j]] == l.body.inputs()[takes.carry[j]];
    let moves: Vec<bool> = (0..l.num_carry).map(|j| has_states || !passes(j)).collect();
    let still = not(&moves);

    let outputs = TripOutputs {
        carry: only(&gives.carry, &moves),
        ys: only(&gives.ys, &needed.ys),
        sums: only(&gives.sums, &needed.sums),
        taps: only(&gives.taps, &needed.tapped),
        residuals: gives.residuals,
    };
    // An input counts if the remaining outputs need it.
    let used = used_inputs(&with_outputs(&l.body, &outputs.clone().join()));
    let read = |group: &[usize]| group.iter().map(|&k| used[k]).collect::<Vec<bool>>();
    let (xs, rows) = (read(&takes.xs), read(&takes.rows));
    let inputs = TripInputs {
        carry: only(&takes.carry, &moves),
        xs: only(&takes.xs, &xs),
        captures: [&takes.captures[..], &only(&takes.carry, &still)].concat(),
        rows: only(&takes.rows, &rows),
        ..takes.clone()
    };
    let body = with_inputs(&l.body, &inputs.join(), &[], |_| Source::Splat(0.0), &outputs.join());
    let further: Vec<Type> =
        only(&takes.carry, &still).iter().map(|&k| l.body.input_type(k).clone()).collect();
    let with_further = |f: &Func| {
        let all = indices(f.num_inputs());
        with_inputs(f, &all, &further, |_| Source::Splat(0.0), &indices(f.num_outputs()))
    };
    let at_rows = num(&needed.tapped) + num(&rows);
    let smaller = Replay {
        body,
        step: l.step.as_ref().map(with_further),
        inverse: l.inverse.clone(),
        num_carry: num(&moves),
        num_xs: num(&xs),
        num_ys: num(&needed.ys),
        num_sums: num(&needed.sums),
        num_rows: num(&rows),
        num_tap_rows: if at_rows > 0 { l.num_tap_rows } else { 0 },
        ..*l
    };
    let of_states = if l.lockstep().is_some() { vec![] } else { moves.clone() };
    let kept = ReplayValues {
        tape: vec![true],
        states: of_states,
        carry: moves.clone(),
        ys: needed.ys,
        sums: needed.sums,
        tapped: needed.tapped,
    };
    place(found, (l.places(), smaller.places()), &kept);
    for (j, &at) in l.places().carry.iter().enumerate().filter(|(j, _)| still[*j]) {
        found[at] = NewPlace::Outside(operands.carry[j]);
    }
    let operands = ReplayOperands {
        captures: [&operands.captures[..], &only(&operands.carry, &still)].concat(),
        carry: only(&operands.carry, &moves),
        xs: only(&operands.xs, &xs),
        rows: only(&operands.rows, &rows),
        ..operands
    };
    with_fewer_captures(b, smaller, operands)
}

/// The new places of a loop's values, given which of them the smaller loop has.
fn place(
    found: &mut [NewPlace],
    (before, after): (ReplayValues<usize>, ReplayValues<usize>),
    kept: &ReplayValues<bool>,
) {
    let pairs = before.with(kept, |was, kept| was.iter().copied().zip(kept.iter().copied()).collect());
    let pairs = pairs.with(&after, |pairs: &[(usize, bool)], is| {
        let mut is = is.iter().copied();
        pairs.iter().map(|&(was, kept)| (was, if kept { is.next() } else { None })).collect()
    });
    pairs.join().into_iter().for_each(|(was, is)| found[was] = is.map_or(NewPlace::Nowhere, NewPlace::Value));
}

fn with_fewer_captures(b: &Builder, l: Replay, mut x: ReplayOperands<NodeId>) -> (Op, Vec<NodeId>) {
    let (at, at_step) = (l.first_capture(), l.first_step_capture());
    let of_step = l.step.as_ref().map(|f| (f, at_step));
    let bodies = [Some((&l.body, at)), of_step, l.inverse.as_ref().map(|f| (f, at))];
    let n = x.captures.len();
    let used = captures_used(bodies.into_iter().flatten(), n);
    let p = plan(b, &x.captures, &used, &l.body.input_types()[at..at + n]);
    x.captures.clone_from(&p.operands);
    let (body, step) = (p.apply_all(&l.body, at), l.step.as_ref().map(|f| p.apply_all(f, at_step)));
    let inverse = l.inverse.as_ref().map(|f| p.apply_all(f, at));
    (Op::Replay(Arc::new(Replay { body, step, inverse, ..l })), x.join())
}
