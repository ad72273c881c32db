//! Loops along a schedule that is the same for all examples: tangents and cotangents through one solve.
//!
//! All examples share the trips, so the loop stays one loop and its step is batched. The set of carried
//! values with an axis of examples is a fixed point: it contains the values that have the axis at the start,
//! and those to which a trip adds the axis. A loop does not fit this form if its tape was filled with another
//! set of values that have the axis, or if it has taps or other additional operands or results. Such a loop
//! runs alone, together with its search.

use super::{MappedValue, Marks, Searches, batch_as, with_examples};
use crate::graph::{Builder, Func, Node, NodeId, Op, Rev, Scan, Type};
use crate::transform::bodies::{Source, resign};
use std::sync::Arc;

/// Which values of a `Scan` or `Rev` have an axis of examples, given the marks `m` of its operands. `None` if
/// the loop cannot run for all examples at once, and for other ops.
pub(super) fn values(f: &Func, node: &Node, m: &Marks) -> Option<Vec<bool>> {
    let on: Vec<bool> = node.args.iter().map(|a| m.any(a.index())).collect();
    match &node.op {
        // In lockstep, the first axis is already the axis of rows.
        Op::Scan(s) if s.rows().is_some() => None,
        Op::Rev(r) if r.rows().is_some() => None,
        Op::Scan(s) if !on[0] && is_plain(&s.step, s.num_carry, node.args.len() - 1) => {
            let carry = carried(&s.step, s.num_carry, &on[1..]);
            Some([&carry[..], &[carry.contains(&true)]].concat())
        }
        Op::Rev(r) if !on[0] && is_plain(&r.step, r.num_carry, node.args.len() - 2 - r.num_ct) => {
            let marks = Backward::of(r, &on);
            let fits = tape_layout(f, node.args[1], m)? == marks.carry;
            fits.then(|| [&marks.cts[..], &marks.sums].concat())
        }
        _ => None,
    }
}

/// Whether a step has no inputs except step times, carry and captures, and no outputs except the carry.
fn is_plain(step: &Func, num_carry: usize, num_operands: usize) -> bool {
    step.num_inputs() == STEP_TIMES.len() + num_operands && step.num_outputs() == num_carry
}

/// Which carried values of the loop that filled a tape have an axis of examples.
fn tape_layout(f: &Func, tape: NodeId, m: &Marks) -> Option<Vec<bool>> {
    let loop_id = *f.node(tape).args.first()?;
    let num_carry = match &f.node(loop_id).op {
        Op::Solve(s) => s.num_carry,
        Op::Scan(s) => s.num_carry,
        _ => return None,
    };
    Some(m.on[loop_id.index()][..num_carry].to_vec())
}

/// Which carried values of a step have an axis of examples, given the flags of its carry and captures at the start.
fn carried(step: &Func, num_carry: usize, values: &[bool]) -> Vec<bool> {
    let (start, captures) = values.split_at(num_carry);
    fixed_point(start, |carry| {
        let captures = &captures[..step.num_inputs() - STEP_TIMES.len() - num_carry];
        outputs(step, &[&STEP_TIMES[..], carry, captures].concat())
    })
}

/// first, last, t, t_next: the same for all examples.
const STEP_TIMES: [bool; 4] = [false; 4];

fn outputs(f: &Func, mapped: &[bool]) -> Vec<bool> {
    Marks::of(f, mapped, Searches::Alone).outputs(f)
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

/// Which values of a reverse loop have an axis of examples.
struct Backward {
    carry: Vec<bool>,
    cts: Vec<bool>,
    sums: Vec<bool>,
}

impl Backward {
    /// From the flags of the operands: `schedule, tape, carry.., captures.., cotangents..`.
    fn of(r: &Rev, on: &[bool]) -> Backward {
        let carry = carried(&r.step, r.num_carry, &on[2..]);
        let (captures, start) = on[2 + r.num_carry..].split_at(r.num_captures());
        let trip = |cts: &[bool]| outputs(&r.bwd, &[&STEP_TIMES[..], &carry, captures, cts].concat());
        let cts = fixed_point(start, trip);
        // A sum has an axis of examples if its capture has one, because both have the same type.
        let sums = trip(&cts).split_off(r.num_ct).into_iter().zip(&r.wrt);
        let sums = sums.map(|(on, &c)| on || captures[c]).collect();
        Backward { carry, cts, sums }
    }
}

/// The operands, with an axis of examples added to those that `wanted` marks.
fn operands(b: &mut Builder, x: &[MappedValue], wanted: &[bool], n: usize) -> Vec<NodeId> {
    x.iter().zip(wanted).map(|(v, &on)| if on { v.spread(b, n) } else { v.id }).collect()
}

fn flags(x: &[MappedValue]) -> Vec<bool> {
    x.iter().map(|v| v.on).collect()
}

/// The scan of the batched step.
pub(super) fn scan(b: &mut Builder, s: &Scan, x: &[MappedValue], n: usize) -> NodeId {
    let on = flags(x);
    let carry = carried(&s.step, s.num_carry, &on[1..]);
    let captures = &on[1 + s.num_carry..];
    let mapped = [&STEP_TIMES[..], &carry, captures].concat();
    let step = batch_as(&s.step, &mapped, n, &carry);
    let inverse = s.inverse.as_ref().map(|f| batch_as(f, &mapped, n, &carry));
    let args = operands(b, x, &[&[false][..], &carry, captures].concat(), n);
    b.push(Op::Scan(Arc::new(Scan { step, inverse, ..s.clone() })), &args, None)
}

/// The reverse loop of the batched steps.
///
/// A sum has the type of the capture that it is listed under in `wrt`. If the sum has an axis of examples and
/// the capture does not, it is listed under an additional capture of zeros, which no node reads.
pub(super) fn rev(b: &mut Builder, r: &Rev, x: &[MappedValue], n: usize) -> NodeId {
    let on = flags(x);
    let Backward { carry, cts, sums } = Backward::of(r, &on);
    let captures = &on[2 + r.num_carry..][..r.num_captures()];
    let (mut wrt, mut names) = (r.wrt.clone(), vec![]);
    for (k, c) in wrt.iter_mut().enumerate().filter(|(k, c)| sums[*k] && !captures[**c]) {
        *c = captures.len() + names.len();
        names.push(with_examples(r.bwd.output_type(r.num_ct + k), n));
    }
    let states = [&STEP_TIMES[..], &carry, captures].concat();
    let step = batch_as(&r.step, &states, n, &carry);
    let step = with_inputs(&step, states.len(), &names);
    let bwd = batch_as(&r.bwd, &[&states[..], &cts].concat(), n, &[&cts[..], &sums].concat());
    let bwd = with_inputs(&bwd, states.len(), &names);
    let mut args = operands(b, x, &[&[false; 2][..], &carry, captures, &cts].concat(), n);
    let zeros: Vec<NodeId> = names.iter().map(|ty| b.splat(ty.dtype(), ty.shape().clone(), 0.0)).collect();
    args.splice(args.len() - r.num_ct..args.len() - r.num_ct, zeros);
    b.push(Op::Rev(Arc::new(Rev { step, bwd, wrt, ..r.clone() })), &args, None)
}

/// `f` with additional inputs, which it ignores, before input `at`.
fn with_inputs(f: &Func, at: usize, further: &[Type]) -> Func {
    let mut types = f.input_types();
    types.splice(at..at, further.iter().cloned());
    let place = |k: usize| Source::Input(if k < at { k } else { k + further.len() });
    let sources: Vec<Source> = (0..f.num_inputs()).map(place).collect();
    resign(f, &types, &sources, &(0..f.num_outputs()).collect::<Vec<_>>())
}
