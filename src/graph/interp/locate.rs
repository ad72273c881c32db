//! Finds the operation that made an output non-finite.
//!
//! The function is evaluated and all its values are stored. A walk goes backward from the output, through
//! loops trip by trip, to an operation with finite operands and a non-finite result, or to an input. It
//! visits only values that reach the output: it skips the unselected side of a `select`, and so the state
//! that a rejected attempt of a search computed. This module does not depend on trees or names.

use super::loops::{Attempt, Schedule, attempts, each_tile, number, schedule};
use super::replay::{Along, Ran, recomputing, trips};
use super::{Counting, GraphError, Value, chosen, owned, values_of};
use crate::array::Array;
use crate::graph::{Func, Node, NodeId, Op, Replay, ReplayOperands, Solve, Tiles, indices};
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
    match &node.op {
        Op::Solve(s) if s.rows().is_none() => in_solve(s, &owned(args), value, k),
        Op::Replay(l) if l.lockstep().is_none() => in_replay(l, &owned(args), k),
        // Rows in lockstep are not examined separately: the loop is the origin, unless an operand is not finite.
        Op::Solve(_) | Op::Replay(_) => {
            Ok(Source::Input(args.iter().position(|arg| is_bad(arg)).unwrap_or(0)))
        }
        Op::Tiles(t) => in_tiles(t, &owned(args), k),
        Op::Custom(c) => walk_into(&c.body, &owned(args), k),
        Op::Cond(c) => Ok(shifted(walk_into(chosen(c, args[0]), &owned(&args[1..]), k)?, 1)),
        other => panic!("invariant: {} has one value", other.name()),
    }
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
    all: Vec<Attempt>,
}

impl<'a> Attempts<'a> {
    /// Reruns the attempts of a search with these operands.
    pub(super) fn of(search: &'a Solve, args: &[Value]) -> Result<Attempts<'a>, GraphError> {
        Ok(Attempts { search, all: attempts(search, args, &Counting::default())? })
    }

    /// The inputs of the last attempt.
    pub(super) fn last(&self) -> Vec<Value> {
        self.all[self.all.len() - 1].inputs.clone().join()
    }

    /// Whether the last attempt reached the target.
    pub(super) fn has_reached(&self) -> bool {
        self.all[self.all.len() - 1].verdict()[2]
    }

    /// The source of output `output` of attempt `trip`. Walks back through the attempts before it; inputs of the
    /// result are the search's operands.
    fn source(&self, mut trip: usize, mut output: usize) -> Located {
        loop {
            let inputs = self.all[trip].inputs.clone().join();
            let found = walk_into(&self.search.attempt, &inputs, output)?;
            match self.before(trip, found) {
                Ok(found) => return Ok(found),
                Err(earlier) => (trip, output) = (trip - 1, earlier),
            }
        }
    }

    /// A source in attempt `trip` by the search's operands, or the output of the attempt before it that it is.
    fn before(&self, trip: usize, found: Source) -> Result<Source, usize> {
        let (s, attempt) = (self.search, &self.all[trip]);
        let t = number(&attempt.inputs.step_time[0]);
        let found = placed(found, Trip::Step { step: attempt.step, t, is_backward: false });
        let Source::Input(input) = found else { return Ok(found) };
        let takes = s.attempt_inputs(&indices(s.attempt.num_inputs()));
        let gives = s.attempt_outputs(&indices(s.attempt.num_outputs()));
        let operands = s.operands(&indices(s.num_operands()));
        let at = |group: &[usize]| group.iter().position(|&k| k == input);
        if let Some(i) = at(&takes.captures) {
            return Ok(Source::Input(operands.captures[i]));
        }
        let moving = [
            (takes.step_time, gives.step_time, operands.step_time),
            (takes.carry, gives.carry, operands.carry),
            (takes.ext, gives.ext, operands.ext),
        ];
        let of = |(takes, gives, operands): &(Vec<usize>, Vec<usize>, Vec<usize>)| {
            at(takes).map(|i| (gives[i], operands[i]))
        };
        let (output, operand) = moving.iter().find_map(of).expect("invariant: an input of the attempt");
        if trip > 0 { Err(output) } else { Ok(Source::Input(operand)) }
    }

    /// Walks back from a source in the last attempt.
    pub(super) fn back_from_last(&self, found: Source) -> Located {
        let last = self.all.len() - 1;
        match self.before(last, found) {
            Ok(found) => Ok(found),
            Err(output) => self.source(last - 1, output),
        }
    }
}

fn in_solve(s: &Solve, args: &[Value], value: &Value, k: usize) -> Located {
    let made = Attempts::of(s, args)?;
    let Value::Tuple(all) = value else { panic!("invariant: a search has several values") };
    let (values, gives) = (s.places(), s.attempt_outputs(&indices(s.attempt.num_outputs())));
    let at = |group: &[usize]| group.iter().position(|&v| v == k);
    let last = made.all.len() - 1;
    if let Some(i) = at(&values.tapped) {
        let along = schedule(&all[values.schedule[0]]);
        let Some(held) = bad_trip(&all[k], along) else { return Ok(Source::Input(1)) };
        let accepted = made.all.iter().position(|a| a.step == held && a.verdict()[0]);
        return made.source(accepted.unwrap_or(last), gives.taps[i]);
    }
    let output = at(&values.carry).map(|i| gives.carry[i]).or(at(&values.ext).map(|i| gives.ext[i]));
    made.source(last, output.expect("invariant: an array of the search"))
}

/// The source of value `k` of a replay.
fn in_replay(l: &Replay, args: &[Value], k: usize) -> Located {
    let x = l.operands(args);
    let along = schedule(&x.schedule[0]);
    let ran = trips(l, &x, &Along::One(along), &Counting::default())?;
    let (takes, gives) = (l.inputs(&indices(l.body.num_inputs())), l.outputs(&indices(l.body.num_outputs())));
    let (operands, values) = (l.operands(&indices(args.len())), l.places());
    let at = |group: &[usize], k: usize| group.iter().position(|&of| of == k);
    let bad = |output: usize| move |trip: &Ran| is_bad(&trip.outputs[output]);
    let (mut trip, mut output) = if let Some(i) = at(&values.sums, k) {
        (ran.iter().position(bad(gives.sums[i])), gives.sums[i])
    } else if let Some(i) = at(&values.tapped, k) {
        let holds = |trip: &Ran| along.held.rows_of(trip.step).next().is_some();
        let is_bad = bad(gives.taps[i]);
        (ran.iter().position(|trip| holds(trip) && is_bad(trip)), gives.taps[i])
    } else {
        let i = at(&values.carry, k).expect("invariant: an array of the loop");
        if ran.is_empty() {
            return Ok(Source::Input(operands.carry[i]));
        }
        (ran.len().checked_sub(1), gives.carry[i])
    };
    while let Some(m) = trip {
        let step = ran[m].step;
        let place = Trip::Step { step, t: along.step_times[step], is_backward: l.is_reversed };
        let found = placed(walk_into(&l.body, &ran[m].inputs, output)?, place);
        let Source::Input(input) = found else { return Ok(found) };
        if let Some(i) = at(&takes.carry, input) {
            if m == 0 {
                return Ok(Source::Input(operands.carry[i]));
            }
            (trip, output) = (Some(m - 1), gives.carry[i]);
            continue;
        }
        if let Some(i) = at(&takes.states, input) {
            return in_states(l, &x, step, i);
        }
        let others =
            [(&takes.captures, &operands.captures), (&takes.xs, &operands.xs), (&takes.rows, &operands.rows)];
        let operand = others.iter().find_map(|(takes, operands)| at(takes, input).map(|i| operands[i]));
        return Ok(Source::Input(operand.unwrap_or(operands.schedule[0])));
    }
    Ok(Source::Input(operands.schedule[0]))
}

/// The source of value `i` of the state before step `step`.
fn in_states(l: &Replay, x: &ReplayOperands<Value>, mut step: usize, mut i: usize) -> Located {
    let along = schedule(&x.schedule[0]);
    let f = l.step.as_ref().expect("invariant: a loop that reads states has a step");
    let (takes, operands) =
        (l.step_inputs(&indices(f.num_inputs())), l.operands(&indices(x.clone().join().len())));
    while step > 0 {
        step -= 1;
        let inputs = recomputing(&Along::One(along), step, x);
        let place = Trip::Step { step, t: along.step_times[step], is_backward: false };
        let found = placed(walk_into(f, &inputs, i)?, place);
        let Source::Input(input) = found else { return Ok(found) };
        let others = [(&takes.captures, &operands.captures), (&takes.rows, &operands.rows)];
        let place = |of: &[usize]| of.iter().position(|&k| k == input);
        if let Some(operand) = others.iter().find_map(|(takes, operands)| Some(operands[place(takes)?])) {
            return Ok(Source::Input(operand));
        }
        match takes.carry.iter().position(|&k| k == input) {
            Some(before) => i = before,
            None => return Ok(Source::Input(operands.schedule[0])),
        }
    }
    Ok(Source::Input(operands.states[i]))
}

fn in_tiles(t: &Tiles, args: &[Value], k: usize) -> Located {
    for (row, body, inputs) in each_tile(t, args) {
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
