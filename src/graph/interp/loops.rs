//! Searches and tiles, as documented at [`crate::graph::Solve`] and [`crate::graph::Tiles`].
//!
//! Here a tape stores the state before every accepted trip, and the residuals of the trip.

use super::movement::append;
use super::{Counting, GraphError, Value, elementwise, lockstep, run};
use crate::array::{Array, DType, Data, Shape};
use crate::graph::{
    AttemptInputs, AttemptOutputs, BinaryOp, Func, SearchValues, Solve, TapRows, TileOut, Tiles, Type,
};
use std::sync::Arc;

/// The accepted step times of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// The first step time, and the step time after each accepted attempt.
    pub step_times: Vec<f64>,
    /// Whether the last step time is exactly the target.
    pub reached: bool,
    /// The tap rows that trips hold.
    pub(crate) held: TapRows,
    /// For a search in lockstep: the schedule of each row, in place of the other fields.
    pub rows: Vec<Schedule>,
}

/// The states of one forward pass.
#[derive(Clone, Debug)]
pub struct Tape {
    /// The carry before each accepted trip.
    pub states: Vec<Vec<Value>>,
    /// The residuals of each accepted trip.
    pub residuals: Vec<Vec<Value>>,
}

impl Schedule {
    /// Number of accepted trips.
    pub fn num_steps(&self) -> usize {
        self.step_times.len() - 1
    }

    /// The first four inputs of a step: first, last, t, t_next.
    pub(super) fn trip(&self, i: usize) -> [Value; 4] {
        let flag = |b: bool| Value::from(Array::scalar(DType::Bool, f64::from(u8::from(b))));
        let last = i + 1 == self.num_steps() && self.reached;
        [flag(i == 0), flag(last), step_time(self.step_times[i]), step_time(self.step_times[i + 1])]
    }
}

impl Schedule {
    /// The rows of each tap. A row that no trip holds is zero.
    pub(super) fn tapped(&self, num_rows: usize, taps: &[Vec<Value>], types: &[Type]) -> Vec<Value> {
        let of = |(j, ty): (usize, &Type)| {
            let zeros = Value::from(Array::zeros(ty.dtype(), ty.shape().clone()));
            let mut rows = vec![zeros; num_rows];
            self.held.pairs().iter().for_each(|&(trip, row)| rows[row] = taps[trip][j].clone());
            stack(&rows, &Shape::from([&[rows.len()], &ty.shape()[..]].concat()))
        };
        types.iter().enumerate().map(of).collect()
    }

    /// The sum of the rows that trip `i` holds.
    pub(super) fn sum_of_rows(&self, i: usize, rows: &Value) -> Value {
        let shape = rows.array().shape().without_axes(&[0]);
        let row = |k: usize| -> Value {
            let data = cut(rows, k, 1).array().data().clone();
            Array::new(shape.clone(), data).into()
        };
        let zeros = || Array::zeros(rows.array().dtype(), shape.clone()).into();
        self.held.rows_of(i).map(row).reduce(|a, b| add(&a, &b)).unwrap_or_else(zeros)
    }
}

fn step_time(t: f64) -> Value {
    Array::scalar(DType::F64, t).into()
}

pub(super) fn number(value: &Value) -> f64 {
    value.array().data().get_f64(0)
}

pub(super) fn schedule(value: &Value) -> &Schedule {
    match value {
        Value::Schedule(s) => s,
        other => panic!("invariant: expected a schedule, found {other:?}"),
    }
}

/// An attempt of a search.
pub(super) struct Attempt {
    pub(super) inputs: AttemptInputs<Value>,
    pub(super) outputs: AttemptOutputs<Value>,
    /// The number of accepted attempts before it.
    pub(super) step: usize,
}

impl Attempt {
    /// Whether the attempt is accepted, whether the search goes on, and whether the target is reached.
    pub(super) fn verdict(&self) -> [bool; 3] {
        [0, 1, 2].map(|k: usize| number(&self.outputs.verdict[k]) != 0.0)
    }
}

/// All attempts of a search that is not in lockstep.
pub(super) fn attempts(s: &Solve, args: &[Value], counting: &Counting) -> Result<Vec<Attempt>, GraphError> {
    let x = s.operands(args);
    let (mut step_time, mut carry, mut ext, mut step) = (x.step_time, x.carry, x.ext, 0);
    let mut all = vec![];
    loop {
        let inputs = AttemptInputs { step_time, live: vec![], carry, ext, captures: x.captures.clone() };
        let outputs = s.attempt_outputs(&run(&s.attempt, &inputs.clone().join(), counting)?);
        (step_time, carry, ext) = (outputs.step_time.clone(), outputs.carry.clone(), outputs.ext.clone());
        let attempt = Attempt { inputs, outputs, step };
        let [accepted, goes_on, _] = attempt.verdict();
        step += usize::from(accepted);
        counting.attempt(accepted);
        all.push(attempt);
        if !goes_on {
            return Ok(all);
        }
    }
}

pub(super) fn solve(s: &Solve, args: &[Value], counting: &Counting) -> Result<Value, GraphError> {
    if let Some(rows) = s.rows() {
        return lockstep::solve(s, args, rows, counting);
    }
    let x = s.operands(args);
    let times = x.times.first().map_or(vec![], |times| times.array().to_f64());
    let step_times = vec![number(&x.step_time[0])];
    let mut found = Schedule { step_times, reached: false, held: TapRows::default(), rows: vec![] };
    let all = attempts(s, args, counting)?;
    let (mut states, mut taps, mut residuals, mut first) = (vec![], vec![], vec![], x.first);
    for attempt in all.iter().filter(|attempt| attempt.verdict()[0]) {
        let (from, to) = (found.step_times[found.num_steps()], number(&attempt.outputs.step_time[0]));
        found.held.note(&s.taps, &times, found.num_steps(), (from, to));
        found.step_times.push(to);
        states.push(attempt.inputs.carry.clone());
        taps.push(attempt.outputs.taps.clone());
        residuals.push([&attempt.outputs.own[..], &first].concat());
        first.clone_from(&attempt.outputs.last);
    }
    let last = all.last().expect("invariant: a search makes an attempt");
    found.reached = last.verdict()[2];
    let tapped = found.tapped(s.taps.num_rows(), &taps, &s.step_outputs(&s.step.output_types()).taps);
    let values = SearchValues {
        carry: last.outputs.carry.clone(),
        ext: last.outputs.ext.clone(),
        schedule: vec![Value::Schedule(Arc::new(found))],
        tape: vec![Value::Tape(Arc::new(Tape { states, residuals }))],
        tapped,
    };
    Ok(Value::Tuple(values.join()))
}

pub(super) fn add(a: &Value, b: &Value) -> Value {
    let sum = elementwise::binary(BinaryOp::Add, a.array().data(), b.array().data());
    Array::new(a.array().shape().clone(), sum).into()
}

/// Rows `from .. from + n` of an array.
pub(super) fn cut(x: &Value, from: usize, n: usize) -> Value {
    let x = x.array();
    let mut start = vec![0; x.shape().rank()];
    start[0] = from;
    let to = x.shape().with_axis(0, n);
    let data = super::movement::slice(x, &to, &start);
    Array::new(to, data).into()
}

/// The tiles in order: the first row, the body and its inputs.
pub(super) fn each_tile<'a>(
    t: &'a Tiles,
    args: &'a [Value],
) -> impl Iterator<Item = (usize, &'a Func, Vec<Value>)> {
    let (rowed, shared) = args.split_at(t.num_rowed);
    (0..t.rows).step_by(t.tile).map(move |row| {
        let n = t.tile.min(t.rows - row);
        let body = if n == t.tile { &t.body } else { t.tail.as_ref().expect("invariant: rows remain") };
        let mut inputs = vec![Value::from(Array::scalar(DType::U32, row as f64))];
        inputs.extend(rowed.iter().map(|x| cut(x, row, n)));
        inputs.extend(shared.iter().cloned());
        (row, body, inputs)
    })
}

pub(super) fn tiles(t: &Tiles, args: &[Value], counting: &Counting) -> Result<Value, GraphError> {
    let mut outs: Vec<Vec<Value>> = vec![Vec::new(); t.outs.len()];
    for (_, body, inputs) in each_tile(t, args) {
        outs.iter_mut().zip(run(body, &inputs, counting)?).for_each(|(all, out)| all.push(out));
    }
    let join = |(k, parts): (usize, Vec<Value>)| match t.outs[k] {
        _ if t.rows == 0 => {
            let ty = t.out_type(k);
            Array::zeros(ty.dtype(), ty.shape().clone()).into()
        }
        TileOut::Sum => parts.into_iter().reduce(|a, b| add(&a, &b)).expect("invariant: there is a tile"),
        TileOut::Rows => stack(&parts, t.out_type(k).shape()),
    };
    Ok(Value::Tuple(outs.into_iter().enumerate().map(join).collect()))
}

/// Concatenates the rows of all parts.
pub(super) fn stack(parts: &[Value], shape: &Shape) -> Value {
    let mut all = Data::zeros(parts[0].array().dtype(), 0);
    for part in parts {
        append(&mut all, part.array().data());
    }
    Array::new(shape.clone(), all).into()
}
