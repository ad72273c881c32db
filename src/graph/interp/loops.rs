//! Loops and tiles, trip by trip, as documented at [`crate::graph::Solve`] and the other loops.
//!
//! Here a tape stores the state before every accepted trip. A backward loop reads its states from the tape
//! and checks that the step leads from each state to the next, bit for bit. If this check passes, a compiled
//! plan may store fewer states and recompute the others.

use super::movement::append;
use super::{GraphError, Value, elementwise, lockstep, run};
use crate::array::{Array, DType, Data, Shape};
use crate::graph::{BinaryOp, Func, Rev, Scan, Solve, TapRows, TileOut, Tiles, Type};
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
}

pub(super) type Values = Result<Vec<Value>, GraphError>;

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

pub(super) fn owned(values: &[&Value]) -> Vec<Value> {
    values.iter().map(|&v| v.clone()).collect()
}

pub(super) fn schedule(value: &Value) -> &Schedule {
    match value {
        Value::Schedule(s) => s,
        other => panic!("invariant: expected a schedule, found {other:?}"),
    }
}

pub(super) fn solve(s: &Solve, args: &[&Value]) -> Result<Value, GraphError> {
    if let Some(rows) = s.rows() {
        return lockstep::solve(s, args, rows);
    }
    let mut at = args[1].clone();
    let times = if s.taps.times > 0 { args[2].array().to_f64() } else { vec![] };
    let (moving, captures) = args[s.first_carry()..].split_at(s.num_carry + s.num_ext);
    let (mut moving, captures) = (owned(moving), owned(captures));
    let mut found =
        Schedule { step_times: vec![number(&at)], reached: false, held: TapRows::default(), rows: vec![] };
    let (mut states, mut taps) = (Vec::new(), Vec::new());
    loop {
        let mut out = run(&s.attempt, &[&[at], &moving[..], &captures[..]].concat())?;
        let mut next = out.split_off(4);
        let tapped = next.split_off(s.num_carry + s.num_ext);
        let [accept, running, reached] = [0, 1, 2].map(|k| number(&out[k]) != 0.0);
        at = out.swap_remove(3);
        if accept {
            let (trip, from) = (found.num_steps(), found.step_times[found.num_steps()]);
            found.held.note(&s.taps, &times, trip, (from, number(&at)));
            found.step_times.push(number(&at));
            states.push(moving[..s.num_carry].to_vec());
            taps.push(tapped);
        }
        moving = next;
        if !running {
            found.reached = reached;
            break;
        }
    }
    let tapped = found.tapped(s.taps.num_rows(), &taps, &s.step.output_types()[s.num_carry..]);
    moving.extend([Value::Schedule(Arc::new(found)), Value::Tape(Arc::new(Tape { states }))]);
    moving.extend(tapped);
    Ok(Value::Tuple(moving))
}

pub(super) fn step(f: &Func, schedule: &Schedule, i: usize, rest: &[&[Value]]) -> Values {
    run(f, &[&schedule.trip(i)[..], &rest.concat()].concat())
}

pub(super) fn scan(s: &Scan, args: &[&Value]) -> Result<Value, GraphError> {
    let along = schedule(args[0]);
    if s.rows().is_some() {
        return lockstep::scan(s, args, &along.rows);
    }
    let (mut carry, captures) = (owned(&args[1..=s.num_carry]), owned(&args[1 + s.num_carry..]));
    let (mut states, mut taps) = (Vec::new(), Vec::new());
    for i in 0..along.num_steps() {
        let mut next = step(&s.step, along, i, &[&carry, &captures])?;
        taps.push(next.split_off(s.num_carry));
        states.push(std::mem::replace(&mut carry, next));
    }
    carry.push(Value::Tape(Arc::new(Tape { states })));
    carry.extend(along.tapped(s.taps.num_rows(), &taps, &s.step.output_types()[s.num_carry..]));
    Ok(Value::Tuple(carry))
}

/// Whether two arrays are bit-equal; all NaNs count as equal.
pub(super) fn same_bits(a: &Value, b: &Value) -> bool {
    let (a, b) = (a.array().to_f64(), b.array().to_f64());
    a.iter().zip(&b).all(|(x, y)| x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan())
}

pub(super) fn rev(
    r: &Rev,
    args: &[&Value],
    malformed: &dyn Fn(String) -> GraphError,
) -> Result<Value, GraphError> {
    let along = schedule(args[0]);
    let Value::Tape(tape) = args[1] else { panic!("invariant: expected a tape, found {:?}", args[1]) };
    if r.rows().is_some() {
        return lockstep::rev(r, args, (&along.rows, tape), malformed);
    }
    let (carry0, rest) = args[2..].split_at(r.num_carry);
    let (captures, ct) = rest.split_at(r.num_captures());
    let (ct, ct_tapped) = ct.split_at(r.num_ct);
    let (carry0, captures, mut ct) = (owned(carry0), owned(captures), owned(ct));
    let n = along.num_steps();
    if tape.states.len() != n {
        return Err(malformed(format!(
            "its tape has {} states, but its schedule has {n} steps",
            tape.states.len()
        )));
    }
    let mut state = carry0;
    for i in 0..n {
        if !state.iter().zip(&tape.states[i]).all(|(a, b)| same_bits(a, b)) {
            return Err(malformed(format!(
                "the state recomputed before step {i} differs from the one on the tape"
            )));
        }
        state = step(&r.step, along, i, &[&state, &captures])?;
    }
    let zeros = |&c: &usize| {
        let like = captures[c].array();
        Array::zeros(like.dtype(), like.shape().clone()).into()
    };
    let mut sums: Vec<Value> = r.wrt.iter().map(zeros).collect();
    for i in (0..n).rev() {
        let ct_taps: Vec<Value> = ct_tapped.iter().map(|all| along.sum_of_rows(i, all)).collect();
        let mut out = step(&r.bwd, along, i, &[&tape.states[i], &captures, &ct, &ct_taps])?;
        let terms = out.split_off(r.num_ct);
        ct = out;
        sums.iter_mut().zip(&terms).for_each(|(sum, term)| *sum = add(sum, term));
    }
    ct.extend(sums);
    Ok(Value::Tuple(ct))
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

pub(super) fn tiles(t: &Tiles, args: &[&Value]) -> Result<Value, GraphError> {
    let (rowed, shared) = args.split_at(t.num_rowed);
    let mut outs: Vec<Vec<Value>> = vec![Vec::new(); t.outs.len()];
    for row in (0..t.rows).step_by(t.tile) {
        let n = t.tile.min(t.rows - row);
        let body = if n == t.tile { &t.body } else { t.tail.as_ref().expect("invariant: rows remain") };
        let mut inputs = vec![Value::from(Array::scalar(DType::U32, row as f64))];
        inputs.extend(rowed.iter().map(|x| cut(x, row, n)));
        inputs.extend(owned(shared));
        outs.iter_mut().zip(run(body, &inputs)?).for_each(|(all, out)| all.push(out));
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
