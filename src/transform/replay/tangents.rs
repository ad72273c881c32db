//! The tangents of a replay: a loop in the same direction over values and tangents.
//!
//! A *doubled* body computes values and tangents together. For stored, summed and tapped values, the loop has
//! only the tangents. The tape that a loop reads has no tangents; if a state moves, a loop of the doubled step
//! therefore fills a new tape.

use super::pick;
use crate::graph::{
    Builder, Func, NodeId, Replay, ReplayOperands, ReplayValues, TripInputs, TripOutputs, Type, indices,
};
use crate::transform::flow::state_flows;
use crate::transform::jvp::{jvp_into, or_zero};
use crate::transform::{marked, placed, present};

/// For each group of a body's inputs, the indices of the values that have a tangent.
type Moving = TripInputs<usize>;

/// The values of a group and the tangents of those that move.
fn with_tangents(b: &mut Builder, x: &[NodeId], dx: &[Option<NodeId>], moving: &[usize]) -> Vec<NodeId> {
    let mut all = x.to_vec();
    all.extend(moving.iter().map(|&k| or_zero(b, dx[k], x[k])));
    all
}

fn moving(l: &Replay, dx: &ReplayOperands<Option<NodeId>>, active: &ReplayValues<bool>) -> Moving {
    let flows = state_flows(l);
    let given = dx.clone().join();
    let moves = |j: usize| flows[j].iter().any(|k| given[k].is_some());
    Moving {
        states: (0..l.num_states).filter(|&j| moves(j)).collect(),
        carry: marked(&active.carry),
        xs: present(&dx.xs),
        captures: present(&dx.captures),
        rows: present(&dx.rows),
        ..Moving::default()
    }
}

/// The doubled form of `f`, whose inputs have the types `own`. `finish` chooses the outputs from values and tangents.
fn doubled(
    f: &Func,
    own: &TripInputs<Type>,
    moving: &Moving,
    finish: impl FnOnce(&mut Builder, &[NodeId], &[Option<NodeId>]) -> Vec<NodeId>,
) -> Func {
    let types = own.with(moving, |types, moving| [types, &pick(types, moving)].concat());
    let (mut b, ids) = Builder::with_inputs(&types.clone().join());
    let ids = types.like(&ids);
    let x = ids.with(own, |ids, own| ids[..own.len()].to_vec());
    let tangents = ids.with(own, |ids, own| ids[own.len()..].to_vec());
    let tangents = tangents.with(moving, |ids, moving| moving.iter().copied().zip(ids.to_vec()).collect());
    let d = own.with(&tangents, |own, tangents| {
        let mut d = vec![None; own.len()];
        tangents.iter().for_each(|&(k, id)| d[k] = Some(id));
        d
    });
    let (y, dy) = jvp_into(&mut b, f, &x.join(), &d.join());
    let outputs = finish(&mut b, &y, &dy);
    b.finish(&outputs)
}

/// The loop that computes its tangents, too. `active` are the indices of the ys, sums and taps that have tangents.
fn with_its_tangents(l: &Replay, moving: &Moving, active: [&[usize]; 3]) -> Replay {
    let [ys, sums, taps] = active;
    // A new tape stores the tangents of residuals, too. The tape of another loop does not.
    let fills = !moving.states.is_empty() || !l.reads_states();
    let residuals = |b: &mut Builder, y: &[NodeId], dy: &[Option<NodeId>]| -> Vec<NodeId> {
        let of = if fills { indices(y.len()) } else { vec![] };
        with_tangents(b, y, dy, &of)
    };
    let body = doubled(&l.body, &l.inputs(&l.body.input_types()), moving, |b, y, dy| {
        let (y, dy) = (l.outputs(y), l.outputs(dy));
        let mut only = |y: &[NodeId], dy: &[Option<NodeId>], of: &[usize]| -> Vec<NodeId> {
            of.iter().map(|&k| or_zero(b, dy[k], y[k])).collect()
        };
        let (of_ys, of_sums, of_taps) =
            (only(&y.ys, &dy.ys, ys), only(&y.sums, &dy.sums, sums), only(&y.taps, &dy.taps, taps));
        let carry = with_tangents(b, &y.carry, &dy.carry, &moving.carry);
        let residuals = residuals(b, &y.residuals, &dy.residuals);
        TripOutputs { carry, ys: of_ys, sums: of_sums, taps: of_taps, residuals }.join()
    });
    let inverse = l.inverse.as_ref().map(|f| {
        let own = l.inputs(&f.input_types());
        doubled(f, &own, moving, |b, y, dy| with_tangents(b, y, dy, &moving.carry))
    });
    let of_states = Moving {
        carry: moving.states.clone(),
        captures: moving.captures.clone(),
        rows: moving.rows.clone(),
        ..Moving::default()
    };
    let step = l.step.as_ref().map(|f| {
        let own = l.step_inputs(&f.input_types());
        doubled(f, &own, &of_states, |b, y, dy| {
            let (y, dy) = (l.step_outputs(y), l.step_outputs(dy));
            let states = with_tangents(b, &y.carry, &dy.carry, &moving.states);
            [states, residuals(b, &y.residuals, &dy.residuals)].concat()
        })
    });
    let num_rows = l.num_rows + moving.rows.len();
    Replay {
        body,
        step,
        inverse,
        is_reversed: l.is_reversed,
        num_carry: l.num_carry + moving.carry.len(),
        num_states: l.num_states + moving.states.len(),
        num_xs: l.num_xs + moving.xs.len(),
        num_ys: ys.len(),
        num_sums: sums.len(),
        num_rows,
        num_tap_rows: if num_rows + taps.len() > 0 { l.num_tap_rows } else { 0 },
        num_residuals: if fills { 2 * l.num_residuals } else { l.num_residuals },
        policy: l.policy,
    }
}

/// The tangents of a loop's values, given operands and their tangents. `active` marks the values that depend on
/// the variables of the derivative.
pub(super) fn tangents(
    b: &mut Builder,
    l: &Replay,
    (x, dx): (&ReplayOperands<NodeId>, &ReplayOperands<Option<NodeId>>),
    active: &ReplayValues<bool>,
) -> ReplayValues<Option<NodeId>> {
    let moving = moving(l, dx, active);
    let (ys, sums, taps) = (marked(&active.ys), marked(&active.sums), marked(&active.tapped));
    let twice = with_its_tangents(l, &moving, [&ys, &sums, &taps]);
    let mut operands = ReplayOperands {
        schedule: x.schedule.clone(),
        tape: x.tape.clone(),
        states: with_tangents(b, &x.states, &dx.states, &moving.states),
        carry: with_tangents(b, &x.carry, &dx.carry, &moving.carry),
        xs: with_tangents(b, &x.xs, &dx.xs, &moving.xs),
        captures: with_tangents(b, &x.captures, &dx.captures, &moving.captures),
        rows: with_tangents(b, &x.rows, &dx.rows, &moving.rows),
    };
    if !moving.states.is_empty() {
        operands.tape = vec![new_tape(b, &twice, &operands)];
    }
    let places = twice.places();
    let all = b.replay(twice, operands);
    let mut among =
        |n: usize, moving: &[usize], at: &[usize]| placed(n, moving, at.iter().map(|&at| b.proj(all, at)));
    let (nc, states) = (l.num_carry, active.states.len());
    ReplayValues {
        carry: among(nc, &moving.carry, &places.carry[nc..]),
        tape: vec![None; active.tape.len()],
        states: match states {
            0 => vec![],
            _ => among(nc, &moving.carry, &places.states[nc..]),
        },
        ys: among(l.num_ys, &ys, &places.ys),
        sums: among(l.num_sums, &sums, &places.sums),
        tapped: among(l.num_taps(), &taps, &places.tapped),
    }
}

/// The tape that the step of `l` fills from the states among its operands.
fn new_tape(b: &mut Builder, l: &Replay, x: &ReplayOperands<NodeId>) -> NodeId {
    let step = l.step.clone().expect("invariant: a loop that reads states has a step");
    let (num_carry, num_residuals, policy) = (l.num_states, l.num_residuals, l.policy);
    let (num_rows, num_tap_rows) = (l.num_rows, if l.num_rows > 0 { l.num_tap_rows } else { 0 });
    let forward = Replay { num_carry, num_rows, num_tap_rows, num_residuals, policy, ..Replay::new(step) };
    let tape = forward.places().tape[0];
    let operands = ReplayOperands {
        schedule: x.schedule.clone(),
        carry: x.states.clone(),
        captures: x.captures.clone(),
        rows: x.rows.clone(),
        ..ReplayOperands::default()
    };
    let all = b.replay(forward, operands);
    b.proj(all, tape)
}
