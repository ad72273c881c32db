//! Loops in lockstep, trip by trip, as [`crate::graph::Solve`] documents them.
//!
//! For each trip and each row, the tape stores the state at the start of the trip. A row with fewer trips
//! repeats the state before its last accepted trip. Rows are sliced from arrays and written back, so this
//! file does not depend on the bodies.

use super::loops::{Schedule, Tape, Values, add, cut, owned, same_bits, stack};
use super::{GraphError, Value, run};
use crate::array::{Array, DType, Data, Shape};
use crate::graph::{Func, Rev, Scan, Solve, TapRows, Taps, Type};
use std::sync::Arc;

/// The pass in which a trip runs; `Recompute` omits the last trip of each row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trip {
    Forward,
    Recompute,
    Backward,
}

/// The schedules of all rows.
struct Schedules<'a>(&'a [Schedule]);

impl Schedules<'_> {
    fn count(&self) -> usize {
        self.0.iter().map(Schedule::num_steps).max().unwrap_or(0)
    }

    /// The inputs first, last, t, t_next and live of trip `n`. A row without any trip gets the first trip of
    /// the row with the most trips.
    fn trip(&self, n: usize, trip: Trip) -> [Value; 5] {
        let furthest =
            self.0.iter().find(|s| s.num_steps() == self.count()).expect("invariant: there is a row");
        let of = |r: usize| {
            let s = &self.0[r];
            let (count, own) = (s.num_steps(), if s.num_steps() == 0 { furthest } else { s });
            let i = n.min(count.max(1) - 1);
            let last = i + 1 == own.num_steps() && own.reached;
            let live = n + usize::from(trip == Trip::Recompute) < count;
            let flag = |on: bool| f64::from(u8::from(on));
            [flag(i == 0), flag(last), own.step_times[i], own.step_times[i + 1], flag(live)]
        };
        let each: Vec<[f64; 5]> = (0..self.0.len()).map(of).collect();
        let column = |k: usize| each.iter().map(|row| row[k]).collect::<Vec<f64>>();
        [(0, DType::Bool), (1, DType::Bool), (2, DType::F64), (3, DType::F64), (4, DType::Bool)]
            .map(|(k, dtype)| vector(&column(k), dtype))
    }

    /// Whether row `r` has a trip `n`.
    fn has(&self, r: usize, n: usize) -> bool {
        n < self.0[r].num_steps()
    }

    /// The values of each tap for all rows of the loop and all tap rows. A tap row that no trip holds is
    /// zero.
    fn tapped(&self, all: Taps, taps: &[Vec<Value>], types: &[Type]) -> Vec<Value> {
        let (rows, num) = (self.0.len(), all.num_rows());
        let of = |(j, ty): (usize, &Type)| {
            let zeros = Value::from(Array::zeros(ty.dtype(), ty.shape().with_axis(0, 1)));
            let mut places = vec![zeros; rows * num];
            for (r, schedule) in self.0.iter().enumerate() {
                for &(trip, k) in schedule.held.pairs() {
                    places[r * num + k] = cut(&taps[trip][j], r, 1);
                }
            }
            stack(&places, all.tapped(ty, Some(rows)).shape())
        };
        types.iter().enumerate().map(of).collect()
    }

    /// For each row, the sum of the tap rows that its trip `n` holds.
    fn sum_of_places(&self, n: usize, all: &Value) -> Value {
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

pub(super) fn solve(s: &Solve, args: &[&Value], rows: usize) -> Result<Value, GraphError> {
    let mut at = args[1].clone();
    let times = if s.taps.times > 0 { args[2].array().to_f64() } else { vec![] };
    let (moving, captures) = args[s.first_carry()..].split_at(s.num_carry + s.num_ext);
    let (mut moving, captures) = (owned(moving), owned(captures));
    let start =
        |&t: &f64| Schedule { step_times: vec![t], reached: false, held: TapRows::default(), rows: vec![] };
    let mut found: Vec<Schedule> = at.array().to_f64().iter().map(start).collect();
    let (mut states, mut taps): (Vec<Vec<Value>>, Vec<Vec<Value>>) = (vec![], vec![]);
    let mut live = vec![1.0; rows];
    while live.contains(&1.0) {
        let head = [at.clone(), vector(&live, DType::Bool)];
        let mut out = run(&s.attempt, &[&head[..], &moving, &captures].concat())?;
        let mut next = out.split_off(4);
        let tapped = next.split_off(s.num_carry + s.num_ext);
        let [accept, running, reached, step_times] = [0, 1, 2, 3].map(|k: usize| out[k].array().to_f64());
        at = out.swap_remove(3);
        for r in 0..rows {
            if live[r] == 0.0 {
                continue;
            }
            if accept[r] != 0.0 {
                let (trip, from) = (found[r].num_steps(), found[r].step_times[found[r].num_steps()]);
                let times = &times[r * s.taps.times..][..s.taps.times];
                found[r].held.note(&s.taps, times, trip, (from, step_times[r]));
                found[r].step_times.push(step_times[r]);
                put(&mut states, trip, &moving[..s.num_carry], r);
                put(&mut taps, trip, &tapped, r);
            }
            if running[r] == 0.0 {
                (live[r], found[r].reached) = (0.0, reached[r] != 0.0);
            }
        }
        moving = next;
    }
    pad(&mut states, &found);
    let tapped = Schedules(&found).tapped(s.taps, &taps, &s.step.output_types()[s.num_carry..]);
    let schedule = Schedule { step_times: vec![], reached: false, held: TapRows::default(), rows: found };
    moving.extend([Value::Schedule(Arc::new(schedule)), Value::Tape(Arc::new(Tape { states }))]);
    moving.extend(tapped);
    Ok(Value::Tuple(moving))
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

/// Fills finished rows with the state before their last trip, and rows without a trip with the first state of
/// the row with the most trips.
fn pad(states: &mut [Vec<Value>], found: &[Schedule]) {
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

fn step(f: &Func, head: [Value; 5], rest: &[&[Value]]) -> Values {
    run(f, &[&head[..], &rest.concat()].concat())
}

pub(super) fn scan(s: &Scan, args: &[&Value], rows: &[Schedule]) -> Result<Value, GraphError> {
    let along = Schedules(rows);
    let (mut carry, captures) = (owned(&args[1..=s.num_carry]), owned(&args[1 + s.num_carry..]));
    let (mut states, mut taps) = (Vec::new(), Vec::new());
    for n in 0..along.count() {
        let mut next = step(&s.step, along.trip(n, Trip::Forward), &[&carry, &captures])?;
        taps.push(next.split_off(s.num_carry));
        states.push(std::mem::replace(&mut carry, next));
    }
    pad(&mut states, rows);
    carry.push(Value::Tape(Arc::new(Tape { states })));
    carry.extend(along.tapped(s.taps, &taps, &s.step.output_types()[s.num_carry..]));
    Ok(Value::Tuple(carry))
}

pub(super) fn rev(
    r: &Rev,
    args: &[&Value],
    (rows, tape): (&[Schedule], &Tape),
    malformed: &dyn Fn(String) -> GraphError,
) -> Result<Value, GraphError> {
    let along = Schedules(rows);
    let (carry0, rest) = args[2..].split_at(r.num_carry);
    let (captures, ct) = rest.split_at(r.num_captures());
    let (ct, ct_tapped) = ct.split_at(r.num_ct);
    let (captures, mut ct) = (owned(captures), owned(ct));
    let n = along.count();
    if tape.states.len() != n {
        return Err(malformed(format!(
            "its tape has {} states, but its schedules have {n} steps",
            tape.states.len()
        )));
    }
    let own = |a: &Value, b: &Value| same_bits(a, &choose(b, a, |q| along.has(q, 0)));
    if n > 0 && !carry0.iter().zip(&tape.states[0]).all(|(a, b)| own(a, b)) {
        return Err(malformed("the tape does not start from the loop's initial carry".into()));
    }
    for i in 1..n {
        let state = step(&r.step, along.trip(i - 1, Trip::Recompute), &[&tape.states[i - 1], &captures])?;
        if !state.iter().zip(&tape.states[i]).all(|(a, b)| same_bits(a, b)) {
            return Err(malformed(format!(
                "the states recomputed before step {i} differ from those on the tape"
            )));
        }
    }
    let zeros = |&c: &usize| {
        let like = captures[c].array();
        Array::zeros(like.dtype(), like.shape().clone()).into()
    };
    let mut sums: Vec<Value> = r.wrt.iter().map(zeros).collect();
    for i in (0..n).rev() {
        let ct_taps: Vec<Value> = ct_tapped.iter().map(|all| along.sum_of_places(i, all)).collect();
        let head = along.trip(i, Trip::Backward);
        let mut out = step(&r.bwd, head, &[&tape.states[i], &captures, &ct, &ct_taps])?;
        let terms = out.split_off(r.num_ct);
        ct = out;
        sums.iter_mut().zip(&terms).for_each(|(sum, term)| *sum = add(sum, term));
    }
    ct.extend(sums);
    Ok(Value::Tuple(ct))
}
