//! Finds the operation that made an output non-finite.
//!
//! The function is evaluated and all its values are stored. A walk goes backward from the output, through
//! loops trip by trip, to an operation with finite operands and a non-finite result, or to an input. It
//! visits only values that reach the output: it skips the unselected side of a `select`, and so the state
//! that a rejected attempt of a search computed. This module does not depend on trees or names.

use super::loops::{Schedule, schedule};
use super::{GraphError, Value, run, values_of};
use crate::array::{Array, DType};
use crate::graph::{Func, Node, NodeId, Op, Rev, Scan, Solve, Tiles};
use std::sync::Arc;

/// A step of a loop, or a tile, that contains an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trip {
    /// A step of a loop.
    Step {
        /// The number of accepted steps before it.
        step: usize,
        /// The start of the step.
        t: f64,
        /// Whether the step belongs to a backward pass.
        is_backward: bool,
    },
    /// A tile of rows.
    Tile {
        /// The index of its first row.
        row: usize,
    },
}

/// An operation with finite operands and a non-finite result.
#[derive(Clone, Debug)]
pub struct Origin {
    /// Its name.
    pub op: String,
    /// Its operands that are arrays.
    pub operands: Vec<Arc<Array>>,
    /// Its result.
    pub result: Arc<Array>,
    /// The steps and tiles that contain it, from the outside in.
    pub places: Vec<Trip>,
    /// The node of the outermost function that is the operation or contains it.
    pub node: NodeId,
}

/// The source of a non-finite value.
#[derive(Clone, Debug)]
pub enum Source {
    /// An operation.
    Origin(Box<Origin>),
    /// The input of this index is not finite.
    Input(usize),
}

pub(super) type Located = Result<Source, GraphError>;

/// The first of these outputs that is not finite, and its source; `None` if all are finite.
///
/// # Errors
/// The errors of [`interpret_values`](super::interpret_values).
pub fn locate(f: &Func, inputs: &[Value], outputs: &[usize]) -> Result<Option<(usize, Source)>, GraphError> {
    let values = values_of(f, inputs)?;
    let bad = outputs.iter().copied().find(|&k| is_bad(&values[f.outputs()[k].index()]));
    bad.map(|k| Ok((k, walk(f, &values, f.outputs()[k])?))).transpose()
}

pub(super) fn is_bad(value: &Value) -> bool {
    match value {
        Value::Array(a) => a.dtype().is_float() && a.to_f64().iter().any(|x| !x.is_finite()),
        _ => false,
    }
}

fn has_nan(value: &Value) -> bool {
    value.array().to_f64().iter().any(|x| x.is_nan())
}

/// Walks back from the node `at`, whose value is not finite.
pub(super) fn walk(f: &Func, values: &[Value], mut at: NodeId) -> Located {
    loop {
        let node = f.node(at);
        match node.op {
            Op::Input(k) => return Ok(Source::Input(k)),
            Op::Proj(k) => {
                let maker = node.args[0];
                let (node, value) = (f.node(maker), &values[maker.index()]);
                let args: Vec<&Value> = node.args.iter().map(|a| &values[a.index()]).collect();
                match inside(node, &args, value, k)? {
                    Source::Input(i) if is_bad(args[i]) => at = node.args[i],
                    Source::Input(_) => return Ok(origin(values, at, node)),
                    Source::Origin(mut found) => {
                        found.node = maker;
                        return Ok(Source::Origin(found));
                    }
                }
            }
            _ => match cause(f, node, values, &values[at.index()]) {
                Some(arg) => at = arg,
                None => return Ok(origin(values, at, node)),
            },
        }
    }
}

fn origin(values: &[Value], at: NodeId, node: &Node) -> Source {
    let array = |a: &NodeId| match &values[a.index()] {
        Value::Array(a) => Some(a.clone()),
        _ => None,
    };
    let Value::Array(result) = &values[at.index()] else {
        panic!("invariant: a non-finite value is an array")
    };
    let operands = node.args.iter().filter_map(array).collect();
    let (op, result) = (node.op.name().to_string(), result.clone());
    Source::Origin(Box::new(Origin { op, operands, result, places: vec![], node: at }))
}

/// The operand that made the result of `node` non-finite; if the result has a NaN, an operand with a NaN is
/// preferred. Constants are excluded, because their infinities are intended.
fn cause(f: &Func, node: &Node, values: &[Value], result: &Value) -> Option<NodeId> {
    let taken = |i: usize| match &node.op {
        Op::Select => i > 0 && is_selected(values, node, result, i),
        Op::Lincomb { coeffs } => f64::from_bits(coeffs[i]) != 0.0,
        _ => true,
    };
    let bad = |(i, id): (usize, &NodeId)| {
        (is_bad(&values[id.index()]) && taken(i) && !leads_to_constant(f, *id)).then_some(*id)
    };
    let bad: Vec<NodeId> = node.args.iter().enumerate().filter_map(bad).collect();
    let nan = bad.iter().copied().find(|id| has_nan(&values[id.index()]));
    if has_nan(result) { nan.or(bad.first().copied()) } else { bad.first().copied() }
}

pub(super) fn leads_to_constant(f: &Func, id: NodeId) -> bool {
    match &f.node(id).op {
        Op::Const(_) => true,
        Op::Broadcast { .. } => leads_to_constant(f, f.node(id).args[0]),
        _ => false,
    }
}

/// Whether a `select` took a non-finite element from its operand `i`.
fn is_selected(values: &[Value], node: &Node, result: &Value, i: usize) -> bool {
    let choice = values[node.args[0].index()].array().to_f64();
    let at = |j: usize| choice[if choice.len() == 1 { 0 } else { j }] != 0.0;
    result.array().to_f64().iter().enumerate().any(|(j, x)| !x.is_finite() && at(j) == (i == 1))
}

/// The source of value `k` of a loop, of tiles, of a `Custom` or a `Cond`; inputs are its operands.
fn inside(node: &Node, args: &[&Value], value: &Value, k: usize) -> Located {
    // Rows in lockstep are not examined separately: the loop is the origin, unless an operand is not finite.
    let lanes = match &node.op {
        Op::Solve(s) => s.rows(),
        Op::Scan(s) => s.rows(),
        Op::Rev(r) => r.rows(),
        _ => None,
    };
    if lanes.is_some() {
        return Ok(Source::Input(args.iter().position(|arg| is_bad(arg)).unwrap_or(0)));
    }
    match &node.op {
        Op::Solve(s) => in_solve(s, args, value, k),
        Op::Scan(s) => in_scan(s, args, k),
        Op::Rev(r) => in_rev(r, args, k),
        Op::Tiles(t) => in_tiles(t, args, k),
        Op::Custom(c) => walk_into(&c.body, &owned(args), k),
        Op::Cond(c) => {
            let chosen = if args[0].array().data().get_f64(0) == 0.0 { &c.otherwise } else { &c.then };
            Ok(shifted(walk_into(chosen, &owned(&args[1..]), k)?, 1))
        }
        // A general loop may read values that other loops stored, so the walk does not enter it.
        Op::Loop(_) => Ok(Source::Input(args.iter().position(|arg| is_bad(arg)).unwrap_or(0))),
        other => panic!("invariant: {} has one value", other.name()),
    }
}

pub(super) fn owned(values: &[&Value]) -> Vec<Value> {
    values.iter().map(|&v| v.clone()).collect()
}

pub(super) fn walk_into(f: &Func, inputs: &[Value], output: usize) -> Located {
    walk(f, &values_of(f, inputs)?, f.outputs()[output])
}

pub(super) fn shifted(found: Source, by: usize) -> Source {
    match found {
        Source::Input(i) => Source::Input(i + by),
        found @ Source::Origin(_) => found,
    }
}

pub(super) fn placed(found: Source, place: Trip) -> Source {
    match found {
        Source::Origin(mut origin) => {
            origin.places.insert(0, place);
            Source::Origin(origin)
        }
        found @ Source::Input(_) => found,
    }
}

fn number(value: &Value) -> f64 {
    value.array().data().get_f64(0)
}

/// The trip that holds the first non-finite row of a tapped value.
fn bad_trip(tapped: &Value, along: &Schedule) -> Option<usize> {
    let tapped = tapped.array();
    let row = tapped.data().len() / tapped.shape()[0].max(1);
    let bad = tapped.to_f64().iter().position(|x| !x.is_finite())? / row.max(1);
    along.held.pairs().iter().find(|pair| pair.1 == bad).map(|pair| pair.0)
}

/// The attempts of a search.
pub(super) struct Attempts<'a> {
    search: &'a Solve,
    /// The inputs of each attempt, and the number of accepted attempts before it.
    trips: Vec<(Vec<Value>, usize)>,
    /// The indices of the accepted attempts.
    accepting: Vec<usize>,
    /// Whether the last attempt reached the target.
    pub(super) reached: bool,
}

impl<'a> Attempts<'a> {
    /// Reruns the attempts of a search with these operands.
    pub(super) fn of(s: &'a Solve, args: &[&Value]) -> Result<Attempts<'a>, GraphError> {
        let n = s.num_carry + s.num_ext;
        let (moving, captures) = args[s.first_carry()..].split_at(n);
        let (mut at, mut moving, captures) = (args[1].clone(), owned(moving), owned(captures));
        let mut made = Attempts { search: s, trips: vec![], accepting: vec![], reached: false };
        loop {
            let inputs = [&[at], &moving[..], &captures[..]].concat();
            let mut out = run(&s.attempt, &inputs)?;
            moving = out.split_off(4);
            moving.truncate(n);
            made.trips.push((inputs, made.accepting.len()));
            if number(&out[0]) != 0.0 {
                made.accepting.push(made.trips.len() - 1);
            }
            at = out[3].clone();
            if number(&out[1]) == 0.0 {
                made.reached = number(&out[2]) != 0.0;
                return Ok(made);
            }
        }
    }

    /// The inputs of the last attempt.
    pub(super) fn last(&self) -> &[Value] {
        &self.trips[self.trips.len() - 1].0
    }

    /// Walks back from a source in attempt `trip` through the attempts before it. Inputs of the result are
    /// the search's operands.
    pub(super) fn back(&self, mut trip: usize, mut found: Source) -> Located {
        let s = self.search;
        loop {
            let (inputs, step) = &self.trips[trip];
            let place = Trip::Step { step: *step, t: number(&inputs[0]), is_backward: false };
            match placed(found, place) {
                Source::Input(i) if i <= s.num_carry + s.num_ext && trip > 0 => {
                    trip -= 1;
                    found = walk_into(&s.attempt, &self.trips[trip].0, 3 + i)?;
                }
                Source::Input(0) => return Ok(Source::Input(1)),
                Source::Input(i) => return Ok(Source::Input(s.first_carry() + i - 1)),
                found @ Source::Origin(_) => return Ok(found),
            }
        }
    }

    /// Walks back from a source in the last attempt.
    pub(super) fn back_from_last(&self, found: Source) -> Located {
        self.back(self.trips.len() - 1, found)
    }
}

fn in_solve(s: &Solve, args: &[&Value], value: &Value, k: usize) -> Located {
    let n = s.num_carry + s.num_ext;
    let made = Attempts::of(s, args)?;
    let Value::Tuple(all) = value else { panic!("invariant: a search has several values") };
    let (mut trip, mut output) = (made.trips.len() - 1, 4 + k);
    if k >= n + 2 {
        let Some(held) = bad_trip(&all[k], schedule(&all[n])) else { return Ok(Source::Input(1)) };
        (trip, output) = (made.accepting[held], 4 + n + (k - n - 2));
    }
    made.back(trip, walk_into(&s.attempt, &made.trips[trip].0, output)?)
}

fn in_scan(s: &Scan, args: &[&Value], k: usize) -> Located {
    let along = schedule(args[0]);
    let mut carry = owned(&args[1..=s.num_carry]);
    let captures = owned(&args[1 + s.num_carry..]);
    let (mut trips, mut taps) = (vec![], vec![]);
    for i in 0..along.num_steps() {
        let inputs = [&along.trip(i)[..], &carry, &captures].concat();
        carry = run(&s.step, &inputs)?;
        taps.push(carry.split_off(s.num_carry));
        trips.push(inputs);
    }
    let (mut trip, mut output) = (trips.len().checked_sub(1), k);
    if k > s.num_carry {
        let tap = k - s.num_carry - 1;
        trip = along.held.pairs().iter().map(|pair| pair.0).find(|&i| is_bad(&taps[i][tap]));
        output = s.num_carry + tap;
    }
    while let Some(i) = trip {
        let place = Trip::Step { step: i, t: along.step_times[i], is_backward: false };
        match placed(walk_into(&s.step, &trips[i], output)?, place) {
            Source::Input(j) if j >= 4 + s.num_carry => return Ok(Source::Input(j - 3)),
            Source::Input(j) => (trip, output) = (i.checked_sub(1), j.saturating_sub(4)),
            found @ Source::Origin(_) => return Ok(found),
        }
    }
    Ok(Source::Input(1 + output))
}

fn in_rev(r: &Rev, args: &[&Value], k: usize) -> Located {
    let along = schedule(args[0]);
    let Value::Tape(tape) = args[1] else { panic!("invariant: expected a tape, found {:?}", args[1]) };
    let (nc, np, n) = (r.num_carry, r.num_captures(), along.num_steps());
    let captures = owned(&args[2 + nc..2 + nc + np]);
    let mut ct = owned(&args[2 + nc + np..2 + nc + np + r.num_ct]);
    let rows = &args[2 + nc + np + r.num_ct..];
    let mut trips: Vec<Vec<Value>> = vec![];
    let mut terms: Vec<Vec<Value>> = vec![];
    for i in (0..n).rev() {
        let taps: Vec<Value> = rows.iter().map(|all| along.sum_of_rows(i, all)).collect();
        let inputs = [&along.trip(i)[..], &tape.states[i], &captures, &ct, &taps].concat();
        ct = run(&r.bwd, &inputs)?;
        terms.push(ct.split_off(r.num_ct));
        trips.push(inputs);
    }
    // `trips[m]` belongs to step n - 1 - m.
    let mut trip = match k.checked_sub(r.num_ct) {
        None => n.checked_sub(1),
        Some(sum) => terms.iter().position(|of| is_bad(&of[sum])),
    };
    let mut output = k;
    while let Some(m) = trip {
        let step = n - 1 - m;
        let place = Trip::Step { step, t: along.step_times[step], is_backward: true };
        let first_ct = 4 + nc + np;
        match placed(walk_into(&r.bwd, &trips[m], output)?, place) {
            Source::Input(j) if j >= first_ct && j < first_ct + r.num_ct && m > 0 => {
                (trip, output) = (Some(m - 1), j - first_ct);
            }
            Source::Input(j) if j >= 4 + nc => return Ok(Source::Input(j - 2)),
            Source::Input(j) => return in_states(r, args, &captures, step, j.saturating_sub(4)),
            found @ Source::Origin(_) => return Ok(found),
        }
    }
    Ok(Source::Input(2 + nc + np + output.min(r.num_ct.saturating_sub(1))))
}

/// The source of carried value `j` before step `step`.
fn in_states(r: &Rev, args: &[&Value], captures: &[Value], mut step: usize, mut j: usize) -> Located {
    let along = schedule(args[0]);
    let Value::Tape(tape) = args[1] else { panic!("invariant: expected a tape, found {:?}", args[1]) };
    while step > 0 {
        step -= 1;
        let inputs = [&along.trip(step)[..], &tape.states[step], captures].concat();
        let place = Trip::Step { step, t: along.step_times[step], is_backward: false };
        match placed(walk_into(&r.step, &inputs, j)?, place) {
            Source::Input(i) if i >= 4 + r.num_carry => return Ok(Source::Input(i - 2)),
            Source::Input(i) => j = i.saturating_sub(4),
            found @ Source::Origin(_) => return Ok(found),
        }
    }
    Ok(Source::Input(2 + j))
}

fn in_tiles(t: &Tiles, args: &[&Value], k: usize) -> Located {
    let (rowed, shared) = args.split_at(t.num_rowed);
    for row in (0..t.rows).step_by(t.tile) {
        let n = t.tile.min(t.rows - row);
        let body = if n == t.tile { &t.body } else { t.tail.as_ref().expect("invariant: rows remain") };
        let mut inputs = vec![Value::from(Array::scalar(DType::U32, row as f64))];
        inputs.extend(rowed.iter().map(|x| super::loops::cut(x, row, n)));
        inputs.extend(owned(shared));
        let values = values_of(body, &inputs)?;
        let output = body.outputs()[k];
        if is_bad(&values[output.index()]) {
            return Ok(match placed(walk(body, &values, output)?, Trip::Tile { row }) {
                Source::Input(i) => Source::Input(i.saturating_sub(1)),
                found @ Source::Origin(_) => found,
            });
        }
    }
    Ok(Source::Input(0))
}
