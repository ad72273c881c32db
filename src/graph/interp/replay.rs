//! Replays trip by trip, as documented at [`crate::graph::Replay`].
//!
//! [`trips`] runs them; the results of the loop, and the search for the source of a NaN, read the inputs and
//! outputs of each trip.

use super::lockstep::{Schedules, pad};
use super::loops::{Schedule, Tape, add, schedule};
use super::{Counting, GraphError, Value, run};
use crate::array::Array;
use crate::graph::{Replay, ReplayOperands, ReplayValues, TripInputs, Type};
use std::sync::Arc;

/// The schedule of a loop; in lockstep, one schedule per row.
pub(super) enum Along<'a> {
    One(&'a Schedule),
    Each(Schedules<'a>),
}

impl<'a> Along<'a> {
    pub(super) fn of(l: &Replay, value: &'a Value) -> Along<'a> {
        match l.lockstep() {
            None => Along::One(schedule(value)),
            Some(_) => Along::Each(Schedules(&schedule(value).rows)),
        }
    }

    pub(super) fn count(&self) -> usize {
        match self {
            Along::One(one) => one.num_steps(),
            Along::Each(each) => each.count(),
        }
    }

    /// The inputs of trip `n` before the carry. Trips that recompute states omit the last trip of each row.
    fn head(&self, n: usize, recomputes: bool) -> Vec<Value> {
        match self {
            Along::One(one) => one.trip(n).to_vec(),
            Along::Each(each) => each.trip(n, recomputes).to_vec(),
        }
    }

    /// The sums of the tap rows that trip `n` holds.
    fn rows(&self, n: usize, x: &ReplayOperands<Value>) -> Vec<Value> {
        let sum = |all: &Value| match self {
            Along::One(one) => one.sum_of_rows(n, all),
            Along::Each(each) => each.sum_of_rows(n, all),
        };
        x.rows.iter().map(sum).collect()
    }

    fn tapped(&self, num: usize, taps: &[Vec<Value>], types: &[Type]) -> Vec<Value> {
        match self {
            Along::One(one) => one.tapped(num, taps, types),
            Along::Each(each) => each.tapped(num, taps, types),
        }
    }
}

/// One trip: its position in the schedule, the inputs and the outputs of the body.
pub(super) struct Ran {
    pub(super) step: usize,
    pub(super) inputs: Vec<Value>,
    pub(super) outputs: Vec<Value>,
}

pub(super) fn sequence(value: &Value) -> &[Value] {
    match value {
        Value::Sequence(v) => v,
        other => panic!("invariant: expected a sequence, found {other:?}"),
    }
}

pub(super) fn tape(value: &Value) -> &Tape {
    match value {
        Value::Tape(tape) => tape,
        other => panic!("invariant: expected a tape, found {other:?}"),
    }
}

/// The inputs of the step that recomputes the state after step `n`.
pub(super) fn recomputing(along: &Along<'_>, n: usize, x: &ReplayOperands<Value>) -> Vec<Value> {
    let state = &tape(&x.tape[0]).states[n];
    [&along.head(n, true)[..], state, &x.captures, &along.rows(n, x)].concat()
}

/// All trips, in the order in which they run.
pub(super) fn trips(
    l: &Replay,
    x: &ReplayOperands<Value>,
    along: &Along<'_>,
    counting: &Counting,
) -> Result<Vec<Ran>, GraphError> {
    let n = along.count();
    let order: Vec<usize> = if l.is_reversed { (0..n).rev().collect() } else { (0..n).collect() };
    let mut carry = x.carry.clone();
    let mut all = vec![];
    for step in order {
        let inputs = TripInputs {
            trip: along.head(step, false),
            carry: carry.clone(),
            states: x.tape.iter().flat_map(|t| tape(t).states[step].clone()).collect(),
            xs: x.xs.iter().map(|x| sequence(x)[step].clone()).collect(),
            captures: x.captures.clone(),
            rows: along.rows(step, x),
            live: vec![],
        };
        let inputs = inputs.join();
        let outputs = run(&l.body, &inputs, counting)?;
        carry = l.outputs(&outputs).carry;
        all.push(Ran { step, inputs, outputs });
    }
    Ok(all)
}

/// Checks that the tape and the sequences fit the schedule, and that the step leads from each state of the tape to
/// the next one and has the residuals of the tape, bit for bit. If it does, a compiled plan may store fewer states and
/// residuals, and recompute the others.
fn check(
    l: &Replay,
    x: &ReplayOperands<Value>,
    along: &Along<'_>,
    malformed: &dyn Fn(String) -> GraphError,
) -> Result<(), GraphError> {
    let n = along.count();
    if let Some(x) = x.xs.iter().find(|x| sequence(x).len() != n) {
        let has = sequence(x).len();
        return Err(malformed(format!("a sequence has {has} values, but the schedule has {n} steps")));
    }
    let (Some(step), Some(states)) = (&l.step, x.tape.first().map(tape)) else { return Ok(()) };
    let (states, residuals) = (&states.states, &states.residuals);
    if states.len() != n {
        return Err(malformed(format!(
            "its tape has {} states, but its schedule has {n} steps",
            states.len()
        )));
    }
    for i in 0..n {
        let state = match i.checked_sub(1) {
            None => along.first_states(&x.states, &states[0]),
            Some(before) => run(step, &recomputing(along, before, x), &Counting::default())?,
        };
        if !state.iter().zip(&states[i]).all(|(a, b)| same_bits(a, b)) {
            return Err(malformed(format!(
                "the state recomputed before step {i} differs from the one on the tape"
            )));
        }
        let inputs = [&along.head(i, false)[..], &states[i], &x.captures, &along.rows(i, x)].concat();
        let again = if l.num_residuals > 0 { run(step, &inputs, &Counting::default())? } else { vec![] };
        if let Some(k) =
            (0..l.num_residuals).find(|&k| !same_bits(&again[l.num_states + k], &residuals[i][k]))
        {
            return Err(malformed(format!("residual {k} of step {i} differs from the one on the tape")));
        }
    }
    Ok(())
}

impl Along<'_> {
    /// The state before the first trip. A row in lockstep without a trip has the state that the tape has for it.
    fn first_states(&self, given: &[Value], stored: &[Value]) -> Vec<Value> {
        match self {
            Along::One(_) => given.to_vec(),
            Along::Each(each) => given.iter().zip(stored).map(|(a, b)| each.own(a, b)).collect(),
        }
    }
}

/// Whether two arrays are bit-equal; all NaNs count as equal.
fn same_bits(a: &Value, b: &Value) -> bool {
    let (a, b) = (a.array().to_f64(), b.array().to_f64());
    a.iter().zip(&b).all(|(x, y)| x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan())
}

pub(super) fn replay(
    l: &Replay,
    args: &[Value],
    malformed: &dyn Fn(String) -> GraphError,
    counting: &Counting,
) -> Result<Value, GraphError> {
    let x = l.operands(args);
    let along = Along::of(l, &x.schedule[0]);
    check(l, &x, &along, malformed)?;
    let ran = trips(l, &x, &along, counting)?;
    let types = l.outputs(&l.body.output_types());
    let zeros = |ty: &Type| Value::from(Array::zeros(ty.dtype(), ty.shape().clone()));
    let mut sums: Vec<Value> = types.sums.iter().map(zeros).collect();
    for trip in &ran {
        let terms = l.outputs(&trip.outputs).sums;
        sums.iter_mut().zip(&terms).for_each(|(sum, term)| *sum = add(sum, term));
    }
    let carry = ran.last().map_or(x.carry.clone(), |trip| l.outputs(&trip.outputs).carry);
    let mut in_order: Vec<&Ran> = ran.iter().collect();
    in_order.sort_by_key(|trip| trip.step);
    let mut states: Vec<Vec<Value>> = in_order.iter().map(|trip| l.inputs(&trip.inputs).carry).collect();
    let outputs: Vec<_> = in_order.iter().map(|trip| l.outputs(&trip.outputs)).collect();
    let mut residuals: Vec<Vec<Value>> = outputs.iter().map(|out| out.residuals.clone()).collect();
    for (trip, own) in in_order.iter().zip(&residuals).filter(|_| l.reads_states()) {
        let stored = &tape(&x.tape[0]).residuals[trip.step];
        if let Some(k) = (0..l.num_residuals).find(|&k| !same_bits(&own[k], &stored[k])) {
            let step = trip.step;
            return Err(malformed(format!(
                "its residual {k} in step {step} differs from the one on the tape"
            )));
        }
    }
    let taps: Vec<Vec<Value>> = outputs.iter().map(|out| out.taps.clone()).collect();
    let column = |rows: &[Vec<Value>], k: usize| {
        Value::Sequence(Arc::new(rows.iter().map(|row| row[k].clone()).collect()))
    };
    let ys: Vec<Vec<Value>> = outputs.iter().map(|out| out.ys.clone()).collect();
    let sequences = match &along {
        Along::One(_) => (0..l.num_carry).map(|k| column(&states, k)).collect(),
        Along::Each(each) => {
            pad(&mut states, each.0);
            pad(&mut residuals, each.0);
            vec![]
        }
    };
    let values = ReplayValues {
        carry,
        tape: vec![Value::Tape(Arc::new(Tape { states, residuals }))],
        states: sequences,
        ys: (0..l.num_ys).map(|k| column(&ys, k)).collect(),
        sums,
        tapped: along.tapped(l.num_tap_rows, &taps, &types.taps),
    };
    Ok(Value::Tuple(values.join()))
}
