//! Loops along a schedule that is the same for all examples: tangents and cotangents through one solve.
//!
//! All examples share the trips, so the loop stays one loop and its body is batched. The set of carried
//! values with an axis of examples is a fixed point: it contains the values that have the axis at the start,
//! and those to which a trip adds the axis. A loop does not fit this form if its tape was filled with another
//! set of values that have the axis, or if it has sequences. Such a loop runs alone, together with its search.
//!
//! A trip reads one tap row of all examples, so in a loop the axis of tap rows comes before the axis of
//! examples; [`exchanged`] exchanges the two.

use super::{MappedValue, Marks, Searches, batch_as};
use crate::graph::{
    Builder, Func, Node, NodeId, Op, Replay, ReplayOperands, ReplayValues, TripInputs, TripOutputs,
};

/// Which values of a replay have an axis of examples, given the marks `m` of its operands. `None` if the loop
/// cannot run for all examples at once.
pub(super) fn values(f: &Func, node: &Node, l: &Replay, m: &Marks) -> Option<Vec<bool>> {
    // In lockstep, the first axis is already the axis of rows.
    if l.lockstep().is_some() || l.num_xs + l.num_ys > 0 || states_are_read(f, node, l) {
        return None;
    }
    let on: Vec<bool> = node.args.iter().map(|a| m.any(a.index())).collect();
    let on = l.operands(&on);
    let of = Mapped::of(l, &on);
    let fits =
        !on.schedule[0] && l.operands(&node.args).tape.iter().all(|&tape| fills(f, tape, m, &of.states));
    fits.then(|| {
        let values = ReplayValues {
            tape: vec![of.carry.contains(&true)],
            states: of.carry.clone(),
            carry: of.carry,
            sums: of.sums,
            tapped: of.taps,
            ..ReplayValues::default()
        };
        values.join()
    })
}

/// Whether a node reads the states of a loop as sequences.
fn states_are_read(f: &Func, node: &Node, l: &Replay) -> bool {
    let places = l.places();
    let reads = |n: &Node| {
        matches!(n.op, Op::Proj(k) if places.states.contains(&k)) && std::ptr::eq(f.node(n.args[0]), node)
    };
    f.nodes().iter().any(reads)
}

/// Whether the states on a tape have an axis of examples where `wanted` says so.
fn fills(f: &Func, tape: NodeId, m: &Marks, wanted: &[bool]) -> bool {
    let Some(maker) = f.node(tape).args.first() else { return false };
    let of = f.node(*maker).op.states();
    of.is_some_and(|of| of.values.iter().map(|&k| m.on[maker.index()][k]).eq(wanted.iter().copied()))
}

/// first, last, t, t_next: the same for all examples.
fn trip() -> TripInputs<bool> {
    TripInputs { trip: vec![false; 4], ..TripInputs::default() }
}

fn outputs(f: &Func, mapped: &TripInputs<bool>) -> Vec<bool> {
    Marks::of(f, &mapped.clone().join(), Searches::Alone).outputs(f)
}

/// The smallest superset of `start` to which a trip adds no values.
fn fixed_point(start: &[bool], trip: impl Fn(&[bool]) -> Vec<bool>) -> Vec<bool> {
    let mut on = start.to_vec();
    loop {
        let next: Vec<bool> = on.iter().zip(trip(&on)).map(|(&a, b)| a || b).collect();
        if next == on {
            return on;
        }
        on = next;
    }
}

/// Which values of a loop have an axis of examples.
struct Mapped {
    states: Vec<bool>,
    carry: Vec<bool>,
    sums: Vec<bool>,
    taps: Vec<bool>,
    residuals: Vec<bool>,
}

impl Mapped {
    fn of(l: &Replay, on: &ReplayOperands<bool>) -> Mapped {
        let (captures, rows) = (on.captures.clone(), on.rows.clone());
        let states = l.step.as_ref().map_or(vec![], |step| {
            fixed_point(&on.states, |states| {
                let (captures, rows) = (captures.clone(), rows.clone());
                let of = TripInputs { carry: states.to_vec(), captures, rows, ..trip() };
                l.step_outputs(&outputs(step, &of)).carry
            })
        });
        let trip = |carry: &[bool]| {
            let of = TripInputs {
                carry: carry.to_vec(),
                states: states.clone(),
                captures: captures.clone(),
                rows: rows.clone(),
                ..trip()
            };
            l.outputs(&outputs(&l.body, &of))
        };
        let carry = fixed_point(&on.carry, |carry| trip(carry).carry);
        let TripOutputs { sums, taps, residuals, .. } = trip(&carry);
        Mapped { states, carry, sums, taps, residuals }
    }
}

/// The loop over the batched bodies.
pub(super) fn replay(b: &mut Builder, l: &Replay, x: &[MappedValue], n: usize) -> NodeId {
    let on: Vec<bool> = x.iter().map(|v| v.on).collect();
    let on = l.operands(&on);
    let Mapped { states, carry, sums, taps, residuals } = Mapped::of(l, &on);
    let of_step =
        TripInputs { carry: states.clone(), captures: on.captures.clone(), rows: on.rows.clone(), ..trip() };
    let mapped = TripInputs { carry: carry.clone(), states: states.clone(), ..of_step.clone() };
    let body = batch_as(&l.body, &mapped.clone().join(), n, &[&carry[..], &sums, &taps, &residuals].concat());
    let of_states = [&states[..], &residuals].concat();
    let step = l.step.as_ref().map(|f| batch_as(f, &of_step.join(), n, &of_states));
    let inverse = l.inverse.as_ref().map(|f| batch_as(f, &mapped.join(), n, &carry));
    let wanted_rows = on.rows.clone();
    let wanted = ReplayOperands { states, carry, ..on };
    let args = x.iter().zip(wanted.join()).map(|(v, on)| if on { v.spread(b, n) } else { v.id });
    let mut args = l.operands(&args.collect::<Vec<NodeId>>());
    for (row, _) in args.rows.iter_mut().zip(&wanted_rows).filter(|(_, on)| **on) {
        *row = exchanged(b, *row);
    }
    b.replay(Replay { body, step, inverse, ..*l }, args)
}

/// Value k of the batched loop.
pub(super) fn value(b: &mut Builder, l: &Replay, loop_node: NodeId, (k, on): (usize, bool)) -> NodeId {
    let value = b.proj(loop_node, k);
    if on && l.places().tapped.contains(&k) { exchanged(b, value) } else { value }
}

/// The same array with its first two axes exchanged.
fn exchanged(b: &mut Builder, x: NodeId) -> NodeId {
    let rank = b.ty(x).shape().rank();
    let perm = [1, 0].into_iter().chain(2..rank).collect();
    b.transpose(x, perm)
}
