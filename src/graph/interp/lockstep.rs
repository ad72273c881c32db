//! Loops in lockstep, trip by trip, as [`crate::graph::Solve`] documents them.
//!
//! For each trip and each row, the tape stores the state at the start of the trip. A row with fewer trips
//! repeats the state before its last accepted trip, and the residuals of that trip. Rows are sliced from arrays and written back, so this
//! file does not depend on the bodies.

use super::loops::{Schedule, Tape, add, cut, stack};
use super::{Counting, GraphError, Value, run};
use crate::array::{Array, DType, Data, Shape};
use crate::graph::{AttemptInputs, SearchValues, Solve, TapRows, Taps, Type};
use std::sync::Arc;

/// The schedules of all rows.
pub(super) struct Schedules<'a>(pub(super) &'a [Schedule]);

impl Schedules<'_> {
    pub(super) fn count(&self) -> usize {
        self.0.iter().map(Schedule::num_steps).max().unwrap_or(0)
    }

    /// The inputs first, last, t, t_next and live of trip `n`; a trip that recomputes states omits the last trip of
    /// each row. A row without any trip gets the first trip of the row with the most trips.
    pub(super) fn trip(&self, n: usize, recomputes: bool) -> [Value; 5] {
        let furthest =
            self.0.iter().find(|s| s.num_steps() == self.count()).expect("invariant: there is a row");
        let of = |r: usize| {
            let s = &self.0[r];
            let (count, own) = (s.num_steps(), if s.num_steps() == 0 { furthest } else { s });
            let i = n.min(count.max(1) - 1);
            let last = i + 1 == own.num_steps() && own.reached;
            let live = n + usize::from(recomputes) < count;
            let flag = |on: bool| f64::from(u8::from(on));
            [flag(i == 0), flag(last), own.step_times[i], own.step_times[i + 1], flag(live)]
        };
        let each: Vec<[f64; 5]> = (0..self.0.len()).map(of).collect();
        let column = |k: usize| each.iter().map(|row| row[k]).collect::<Vec<f64>>();
        [(0, DType::Bool), (1, DType::Bool), (2, DType::F64), (3, DType::F64), (4, DType::Bool)]
            .map(|(k, dtype)| vector(&column(k), dtype))
    }

    /// `given` in the rows that have a trip, else `stored`.
    pub(super) fn own(&self, given: &Value, stored: &Value) -> Value {
        choose(given, stored, |r| self.0[r].num_steps() > 0)
    }

    /// The values of each tap for all rows of the loop and all tap rows. A tap row that no trip holds is
    /// zero.
    pub(super) fn tapped(&self, num: usize, taps: &[Vec<Value>], types: &[Type]) -> Vec<Value> {
        let rows = self.0.len();
        let of = |(j, ty): (usize, &Type)| {
            let zeros = Value::from(Array::zeros(ty.dtype(), ty.shape().with_axis(0, 1)));
            let mut places = vec![zeros; rows * num];
            for (r, schedule) in self.0.iter().enumerate() {
                for &(trip, k) in schedule.held.pairs() {
                    places[r * num + k] = cut(&taps[trip][j], r, 1);
                }
            }
            stack(&places, Taps::at(num).tapped(ty, Some(rows)).shape())
        };
        types.iter().enumerate().map(of).collect()
    }

    /// For each row, the sum of the tap rows that its trip `n` holds.
    pub(super) fn sum_of_rows(&self, n: usize, all: &Value) -> Value {
        let shape = all.array().shape().clone();
        let (num, one) = (shape[1], shape.without_axes(&[1]));
        let flat = [&[shape[0] * num], &one[1..]].concat();
        let flat = Value::from(Array::new(Shape::from(flat), all.array().data().clone()));
        let row = |(r, s): (usize, &Schedule)| {
            let held = s.held.rows_of(n).map(|k| cut(&flat, r * num + k, 1));
            let zeros = || Array::zeros(all.array().dtype(), one.with_axis(0, 1)).into();
            held.reduce(|a, b| add(&a, &b)).unwrap_or_else(zeros)
        };
        stack(&self.0.iter().enumerate().map(row).collect::<Vec<_>>(), &one)
    }
}

fn vector(xs: &[f64], dtype: DType) -> Value {
    let mut data = Data::zeros(dtype, 0);
    xs.iter().for_each(|&x| super::movement::append(&mut data, Array::scalar(dtype, x).data()));
    Array::new([xs.len()], data).into()
}

/// The rows of `a` for which `on` is true, else the rows of `b`.
fn choose(a: &Value, b: &Value, on: impl Fn(usize) -> bool) -> Value {
    let shape = a.array().shape().clone();
    let rows: Vec<Value> = (0..shape[0]).map(|r| cut(if on(r) { a } else { b }, r, 1)).collect();
    stack(&rows, &shape)
}

pub(super) fn solve(
    s: &Solve,
    args: &[Value],
    rows: usize,
    counting: &Counting,
) -> Result<Value, GraphError> {
    let x = s.operands(args);
    let (mut step_time, mut carry, mut ext) = (x.step_time, x.carry, x.ext);
    let times = x.times.first().map_or(vec![], |times| times.array().to_f64());
    let start =
        |&t: &f64| Schedule { step_times: vec![t], reached: false, held: TapRows::default(), rows: vec![] };
    let mut found: Vec<Schedule> = step_time[0].array().to_f64().iter().map(start).collect();
    let (mut states, mut taps): (Vec<Vec<Value>>, Vec<Vec<Value>>) = (vec![], vec![]);
    let (mut own, mut first) = (vec![], vec![x.first]);
    let mut live = vec![1.0; rows];
    while live.contains(&1.0) {
        let inputs = AttemptInputs {
            step_time,
            live: vec![vector(&live, DType::Bool)],
            carry: carry.clone(),
            ext,
            captures: x.captures.clone(),
        };
        let out = s.attempt_outputs(&run(&s.attempt, &inputs.join(), counting)?);
        let [accept, running, reached] = [0, 1, 2].map(|k: usize| out.verdict[k].array().to_f64());
        let step_times = out.step_time[0].array().to_f64();
        for r in 0..rows {
            if live[r] == 0.0 {
                continue;
            }
            counting.attempt(accept[r] != 0.0);
            if accept[r] != 0.0 {
                let (trip, from) = (found[r].num_steps(), found[r].step_times[found[r].num_steps()]);
                let times = &times[r * s.taps.times..][..s.taps.times];
                found[r].held.note(&s.taps, times, trip, (from, step_times[r]));
                found[r].step_times.push(step_times[r]);
                put(&mut states, trip, &carry, r);
                put(&mut taps, trip, &out.taps, r);
                put(&mut own, trip, &out.own, r);
                put(&mut first, trip + 1, &out.last, r);
            }
            if running[r] == 0.0 {
                (live[r], found[r].reached) = (0.0, reached[r] != 0.0);
            }
        }
        (step_time, carry, ext) = (out.step_time, out.carry, out.ext);
    }
    first.truncate(states.len());
    [&mut states, &mut own, &mut first].into_iter().for_each(|values| pad(values, &found));
    let residuals = own.iter().zip(&first).map(|(own, first)| [&own[..], first].concat()).collect();
    let types = s.step_outputs(&s.step.output_types()).taps;
    let tapped = Schedules(&found).tapped(s.taps.num_rows(), &taps, &types);
    let schedule = Schedule { step_times: vec![], reached: false, held: TapRows::default(), rows: found };
    let values = SearchValues {
        carry,
        ext,
        schedule: vec![Value::Schedule(Arc::new(schedule))],
        tape: vec![Value::Tape(Arc::new(Tape { states, residuals }))],
        tapped,
    };
    Ok(Value::Tuple(values.join()))
}

/// Replaces row `r` of entry `n` by row `r` of `values`. If there is no entry `n`, appends all of `values`.
fn put(all: &mut Vec<Vec<Value>>, n: usize, values: &[Value], r: usize) {
    match all.get_mut(n) {
        None => all.push(values.to_vec()),
        Some(entry) => {
            entry.iter_mut().zip(values).for_each(|(old, new)| *old = choose(new, old, |q| q == r));
        }
    }
}

/// Fills finished rows with the values of their last trip (a state is the one before it), and rows without a trip with
/// those of the first trip of the row with the most trips.
pub(super) fn pad(states: &mut [Vec<Value>], found: &[Schedule]) {
    let furthest = found.iter().position(|s| s.num_steps() == states.len()).unwrap_or(0);
    for n in 0..states.len() {
        for (r, schedule) in found.iter().enumerate().filter(|(_, s)| s.num_steps() <= n) {
            let (from, row) = schedule.num_steps().checked_sub(1).map_or((0, furthest), |last| (last, r));
            for k in 0..states[n].len() {
                let part = cut(&states[from][k], row, 1);
                let all = &states[n][k];
                let shape = all.array().shape().clone();
                let rows: Vec<Value> =
                    (0..shape[0]).map(|q| if q == r { part.clone() } else { cut(all, q, 1) }).collect();
                states[n][k] = stack(&rows, &shape);
            }
        }
    }
}
