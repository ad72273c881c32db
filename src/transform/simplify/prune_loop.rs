//! Removes unused inputs and outputs from the bodies of a replay, as `prune` does for the other loops.
//!
//! Unused stored, summed and tapped values are removed with their computation, and inputs that the body does not
//! read. A carried value that every trip passes on unchanged becomes a capture, if no node reads the states of the
//! loop. All other carried values stay. So do the states that the loop reads, because a tape has their layout.

use super::prune::{NewPlace, captures_used, places, plan};
use crate::graph::{
    Builder, Func, NodeId, Replay, ReplayOperands, ReplayValues, TripInputs, TripOutputs, Type, indices,
};
use crate::transform::bodies::{Source, only, resign, used_inputs, with_inputs, with_outputs};

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
) -> (Replay, ReplayOperands<NodeId>) {
    let (operands, needed) = (l.operands(x), l.values(needed));
    let (takes, gives) = (l.inputs(&indices(l.body.num_inputs())), l.outputs(&indices(l.body.num_outputs())));
    let has_states = needed.tape[0] || needed.states.contains(&true) || l.inverse.is_some();
    let passes = |j: usize| l.body.outputs()[gives.carry[j]] == l.body.inputs()[takes.carry[j]];
    let moves: Vec<bool> = (0..l.num_carry).map(|j| has_states || !passes(j)).collect();
    let still = not(&moves);

    let given = TripOutputs {
        carry: moves.clone(),
        ys: needed.ys,
        sums: needed.sums,
        taps: needed.tapped,
        residuals: vec![true; l.num_residuals],
    };
    let outputs = gives.with(&given, only).join();
    // An input counts if the remaining outputs need it, a row also if the step needs it.
    let mut used = l.inputs(&used_inputs(&with_outputs(&l.body, &outputs)));
    if let Some(step) = &l.step {
        let of_step = l.step_inputs(&used_inputs(step)).rows;
        used.rows.iter_mut().zip(of_step).for_each(|(used, of_step)| *used |= of_step);
    }
    let taken =
        TripInputs { carry: moves.clone(), xs: used.xs, rows: used.rows, ..takes.clone().map(|_| true) };
    let mut inputs = takes.with(&taken, only);
    inputs.captures.extend(only(&takes.carry, &still));
    let body = with_inputs(&l.body, &inputs.join(), &[], |_| Source::Splat(0.0), &outputs);
    let further: Vec<Type> =
        only(&takes.carry, &still).iter().map(|&k| l.body.input_type(k).clone()).collect();
    let at_rows = num(&given.taps) + num(&taken.rows);
    let smaller = Replay {
        body,
        step: l.step.as_ref().map(|step| smaller_step(l, step, &further, &taken.rows)),
        inverse: l.inverse.clone(),
        num_carry: num(&moves),
        num_xs: num(&taken.xs),
        num_ys: num(&given.ys),
        num_sums: num(&given.sums),
        num_rows: num(&taken.rows),
        num_tap_rows: if at_rows > 0 { l.num_tap_rows } else { 0 },
        ..*l
    };
    let states = if l.lockstep().is_some() { vec![] } else { moves.clone() };
    let (carry, tape) = (moves.clone(), vec![true]);
    let stay = ReplayValues { carry, tape, states, ys: given.ys, sums: given.sums, tapped: given.taps };
    found.copy_from_slice(&places(stay.join()));
    for (j, &at) in l.places().carry.iter().enumerate().filter(|(j, _)| still[*j]) {
        found[at] = NewPlace::Outside(operands.carry[j]);
    }
    let stay =
        ReplayOperands { carry: moves, xs: taken.xs, rows: taken.rows, ..operands.clone().map(|_| true) };
    let mut fewer = operands.with(&stay, only);
    fewer.captures.extend(only(&operands.carry, &still));
    with_fewer_captures(b, smaller, fewer)
}

/// The step with additional captures of the types `further`, and only the rows `kept`.
fn smaller_step(l: &Replay, step: &Func, further: &[Type], kept: &[bool]) -> Func {
    let (types, places) = (l.step_inputs(&step.input_types()), l.step_inputs(&indices(step.num_inputs())));
    let rows = only(&types.rows, kept);
    let first_row = places.clone().join().len() - places.rows.len() + further.len();
    let mut at = first_row..;
    let of_rows = kept.iter().map(|kept| if *kept { at.next() } else { None });
    let of_rows = of_rows.map(|at| at.map_or(Source::Splat(0.0), Source::Input)).collect::<Vec<_>>();
    let own = TripInputs { rows: vec![], ..places }.join().into_iter().map(Source::Input);
    let sources: Vec<Source> = own.chain(of_rows).collect();
    let captures = [&types.captures[..], further].concat();
    let types = TripInputs { captures, rows, ..types }.join();
    resign(step, &types, &sources, &indices(step.num_outputs()))
}

fn with_fewer_captures(
    b: &Builder,
    l: Replay,
    mut x: ReplayOperands<NodeId>,
) -> (Replay, ReplayOperands<NodeId>) {
    let (at, at_step) = (l.first_capture(), l.first_step_capture());
    let of_step = l.step.as_ref().map(|f| (f, at_step));
    let bodies = [Some((&l.body, at)), of_step, l.inverse.as_ref().map(|f| (f, at))];
    let n = x.captures.len();
    let used = captures_used(bodies.into_iter().flatten(), n);
    let p = plan(b, &x.captures, &used, &l.body.input_types()[at..at + n]);
    x.captures.clone_from(&p.operands);
    let (body, step) = (p.apply_all(&l.body, at), l.step.as_ref().map(|f| p.apply_all(f, at_step)));
    let inverse = l.inverse.as_ref().map(|f| p.apply_all(f, at));
    (Replay { body, step, inverse, ..l }, x)
}
