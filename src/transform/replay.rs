//! Derivatives of searches and replays: the derivative of a loop is a replay of the derivative of its body.
//!
//! The search itself is not differentiated: its accepted step times are data, rejected attempts are left out, and a step
//! leads from one step time to the next. A search therefore has the derivatives of the [`Replay`] of its step.
//!
//! [`tangents`] run in the direction of the loop, [`transpose`]d loops in the opposite one. Both are closed, so
//! derivatives of any order and mix are replays. A transposed loop needs the carried values before each trip, its
//! *states*. A loop that repeats a step leaves them on a tape under its policy; any other loop leaves them as
//! sequences, which must store every state. The transpose of a loop that reads states stores its own states as
//! sequences, too, so it exists only if every state is stored.
//!
//! Carried values have no tangent if they do not depend on the arguments, and no cotangent if no output with
//! a cotangent depends on them. The ext values of a search have neither tangents nor cotangents.

mod tangents;
mod transpose;

use super::bodies::{plain_replay, with_outputs};
use super::jvp::JvpRule;
use super::vjp::VjpRule;
use super::{Cotangents, Tangents, TransformError};
use crate::graph::{
    Builder, NodeId, Op, Replay, ReplayOperands, ReplayValues, SearchOperands, SearchValues, Solve, Type,
    indices,
};
use tangents::tangents;
use transpose::{Loop, transpose};

/// The operands of the replay of a search's step, from the operands of the search.
fn of_search<T>(schedule: T, x: SearchOperands<T>) -> ReplayOperands<T> {
    ReplayOperands {
        schedule: vec![schedule],
        carry: x.carry,
        captures: x.captures,
        ..ReplayOperands::default()
    }
}

pub(super) fn jvp_solve(b: &mut Builder, s: &Solve, rule: &JvpRule) -> Tangents {
    let schedule = b.proj(rule.y, s.places().schedule[0]);
    let (x, dx) = (of_search(schedule, s.operands(rule.x)), of_search(None, s.operands(rule.dx)));
    let active = s.values(rule.active);
    let num_ext = active.ext.len();
    let active = ReplayValues { carry: active.carry, tapped: active.tapped, ..ReplayValues::default() };
    let d = tangents(b, &s.replay(), (&x, &dx), &active);
    let opaque = vec![None];
    SearchValues {
        carry: d.carry,
        ext: vec![None; num_ext],
        schedule: opaque.clone(),
        tape: opaque,
        tapped: d.tapped,
    }
    .join()
}

pub(super) fn jvp_replay(b: &mut Builder, l: &Replay, rule: &JvpRule) -> Tangents {
    let (x, dx) = (l.operands(rule.x), l.operands(rule.dx));
    tangents(b, l, (&x, &dx), &l.values(rule.active)).join()
}

/// The operands whose cotangents are needed.
fn both(a: &[bool], b: &[bool]) -> Vec<bool> {
    a.iter().zip(b).map(|(a, b)| *a && *b).collect()
}

pub(super) fn vjp_solve(b: &mut Builder, s: &Solve, rule: &VjpRule) -> Result<Cotangents, TransformError> {
    let counts = rule.counting();
    let wanted = s.operands(&both(rule.on, &counts));
    let carried = both(&s.values(rule.active).carry, &s.operands(&counts).carry);
    let wanted = ReplayOperands { carry: carried, ..of_search(false, wanted) };
    let schedule = b.proj(rule.y, s.places().schedule[0]);
    let (g, places) = (s.values(rule.g), s.places());
    let found = transpose(
        b,
        &Loop {
            l: &s.replay(),
            y: rule.y,
            places: ReplayValues { carry: places.carry, tape: places.tape, ..ReplayValues::default() },
            x: of_search(schedule, s.operands(rule.x)),
            g: ReplayValues { carry: g.carry, tapped: g.tapped, ..ReplayValues::default() },
            wanted,
        },
    )?;
    let mut out = s.operands(&vec![None; rule.x.len()]);
    (out.carry, out.captures) = (found.carry, found.captures);
    Ok(only(out.join(), rule.on))
}

pub(super) fn vjp_replay(b: &mut Builder, l: &Replay, rule: &VjpRule) -> Result<Cotangents, TransformError> {
    if l.reads_states() {
        return vjp_of_two(b, l, rule);
    }
    let counts = rule.counting();
    let carried = both(&l.values(rule.active).carry, &l.operands(&counts).carry);
    let wanted = ReplayOperands { carry: carried, ..l.operands(&both(rule.on, &counts)) };
    let (x, g, places) = (l.operands(rule.x), l.values(rule.g), l.places());
    let found = transpose(b, &Loop { l, y: rule.y, places, x, g, wanted })?;
    Ok(only(found.join(), rule.on))
}

fn only(found: Cotangents, on: &[bool]) -> Cotangents {
    found.into_iter().zip(on).map(|(ct, on)| ct.filter(|_| *on)).collect()
}

/// The reverse derivative of a loop that reads states. The loop equals two loops: the first one computes the states and
/// leaves them as sequences, the second one reads these sequences. This is the reverse derivative of the two.
fn vjp_of_two(b: &mut Builder, l: &Replay, rule: &VjpRule) -> Result<Cotangents, TransformError> {
    transpose::needs_all_states(l)?;
    let types: Vec<Type> = rule.x.iter().map(|&id| b.ty(id).clone()).collect();
    let (mut f, x) = Builder::with_inputs(&types);
    let x = l.operands(&x);
    let step = l.step.clone().expect("invariant: a loop that reads states has a step");
    let (num_rows, num_tap_rows) = (l.num_rows, if l.num_rows > 0 { l.num_tap_rows } else { 0 });
    let of_step = Replay::new(with_outputs(&step, &indices(l.num_states)));
    let walk = Replay { num_carry: l.num_states, num_rows, num_tap_rows, ..of_step };
    let places = walk.places();
    let operands = ReplayOperands {
        schedule: x.schedule.clone(),
        carry: x.states,
        captures: x.captures.clone(),
        rows: x.rows.clone(),
        ..ReplayOperands::default()
    };
    let walked = f.replay(walk, operands);
    let states: Vec<NodeId> = places.states.iter().map(|&k| f.proj(walked, k)).collect();
    let operands = ReplayOperands { xs: [states, x.xs].concat(), states: vec![], tape: vec![], ..x };
    // In a body, states come right before the entries of sequences.
    let num_xs = l.num_states + l.num_xs;
    let back = f.replay(Replay { step: None, num_states: 0, num_xs, ..plain_replay(l) }, operands);
    let values = l.places();
    // No cotangent reaches a tape.
    let given: Vec<usize> = (0..rule.g.len()).filter(|k| !values.tape.contains(k)).collect();
    let outputs: Vec<NodeId> = given.iter().map(|&k| f.proj(back, k)).collect();
    let g: Cotangents = given.iter().map(|&k| rule.g[k]).collect();
    Ok(super::vjp::vjp_into(b, &f.finish(&outputs), rule.x, rule.on, &g)?.1)
}

/// The sum of two sequences along one schedule.
pub(super) fn add(b: &mut Builder, x: NodeId, y: NodeId) -> NodeId {
    let Type::Sequence { dtype, shape } = b.ty(x).clone() else {
        panic!("invariant: {x} is not a sequence");
    };
    let maker = b.node(x).args[0];
    let schedule = match &b.node(maker).op {
        Op::Replay(l) => l.operands(&b.node(maker).args).schedule[0],
        other => panic!("invariant: {} stores no sequence", other.name()),
    };
    let one = Type::array(dtype, shape);
    let (mut body, ids) = Builder::with_inputs(&[&trip_types()[..], &[one.clone(), one]].concat());
    let [.., left, right] = ids[..] else { unreachable!("invariant: two values follow") };
    let sum = body.add(left, right);
    let l = Replay { num_xs: 2, num_ys: 1, ..Replay::new(body.finish(&[sum])) };
    let sums = l.places().ys[0];
    let operands = ReplayOperands { schedule: vec![schedule], xs: vec![x, y], ..ReplayOperands::default() };
    let all = b.replay(l, operands);
    b.proj(all, sums)
}

/// The types of first, last, t, t_next.
fn trip_types() -> [Type; 4] {
    use crate::array::DType::{Bool, F64};
    [Bool, Bool, F64, F64].map(Type::scalar)
}

fn pick<T: Clone>(values: &[T], of: &[usize]) -> Vec<T> {
    of.iter().map(|&k| values[k].clone()).collect()
}
