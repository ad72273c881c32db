//! A loop of a known number of trips, as a replay.
//!
//! A search without a state makes the schedule: trip i leads from i to i + 1, and holds tap row i. The replay along this
//! schedule reads the rows of float tensors, stores the taps y, and carries the state. Its transpose therefore adds the
//! cotangent of a row where the row is. Rows of integers and bools have no cotangent; a trip takes them from the whole
//! tensor.

use super::{Stored, bytes, types};
use crate::array::DType;
use crate::error::{Error, Result};
use crate::graph::{Builder, Func, NodeId, Replay, ReplayOperands, SearchOperands, Solve, Taps, Type};
use crate::tensor::trace::Check;
use crate::tensor::{Tensor, Traced, align, apply, try_trace};

/// The trips of a loop.
pub(super) struct Trips {
    pub(super) num: usize,
    pub(super) stored: Stored,
    /// Whether the last row belongs to the first trip.
    pub(super) is_reversed: bool,
}

/// A function of the number of a trip, the state and the row; it returns the next state and what the trip stores.
type Body<'a> = dyn FnMut(&Tensor, &[Tensor], &[Tensor]) -> Result<(Vec<Tensor>, Vec<Tensor>)> + 'a;

/// first, last, t, t_next
fn trip_types() -> Vec<Type> {
    [DType::Bool, DType::Bool, DType::F64, DType::F64].map(Type::scalar).to_vec()
}

/// Runs the trips from the state `init`; returns the last state and all that the trips stored, along a new first axis.
pub(super) fn trips(
    of: &Trips,
    init: Vec<Tensor>,
    rows: Vec<Tensor>,
    f: &mut Body<'_>,
) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
    let num = of.num;
    let turned = |x: &Tensor| if of.is_reversed { x.take_clamped(&backwards(num)) } else { x.clone() };
    // Without trips, nothing is read.
    let rows: Vec<Tensor> = match num {
        0 => rows.iter().map(|x| Tensor::full(x.dtype(), x.shape().with_axis(0, 1), 0.0)).collect(),
        _ => rows.iter().map(turned).collect(),
    };
    let (floats, others): (Vec<usize>, Vec<usize>) =
        (0..rows.len()).partition(|&k| rows[k].dtype().is_float());
    let row_type = |x: &Tensor| x.ty().with_shape(x.shape().without_axes(&[0]));
    let of_floats: Vec<Type> = floats.iter().map(|&k| row_type(&rows[k])).collect();
    let mut num_ys = 0;
    let body = try_trace(&[trip_types(), types(&init), of_floats].concat(), &mut |x| {
        let i = x[2].cast(DType::I32);
        let (state, read) = x[4..].split_at(init.len());
        let mut row = rows.clone();
        floats.iter().zip(read).for_each(|(&k, x)| row[k] = x.clone());
        others.iter().for_each(|&k| row[k] = rows[k].take_clamped(&i));
        let number = if of.is_reversed { num as i32 - 1 - &i } else { i };
        let (next, ys) = f(&number, state, &row)?;
        num_ys = ys.len();
        Ok::<_, Error>([next, ys].concat())
    })?;
    let read: Vec<Tensor> = floats.into_iter().map(|k| rows[k].clone()).collect();
    let (state, mut tapped) = looped(of, &body, &init, &read);
    for check in tapped.split_off(num_ys) {
        let columns = check.shape()[2];
        let rows = check.size() / columns;
        Check { values: check.reshape([rows, columns]) }.settle()?;
    }
    Ok((state, tapped.iter().map(turned).collect()))
}

/// The places of rows from the last one to the first one.
fn backwards(num: usize) -> Tensor {
    num as i32 - 1 - Tensor::iota(DType::I32, [num], 0)
}

/// The last state, and all taps over all rows.
fn looped(of: &Trips, body: &Traced, init: &[Tensor], rows: &[Tensor]) -> (Vec<Tensor>, Vec<Tensor>) {
    let num_outputs = body.func.num_outputs();
    if of.num == 0 {
        let none = |ty: &Type| Tensor::full(ty.dtype(), [&[0], &ty.shape()[..]].concat(), 0.0);
        return (init.to_vec(), body.func.output_types()[init.len()..].iter().map(none).collect());
    }
    let Traced { func, captures, .. } = body;
    // Checks are taps, too.
    let (mut bodies, captures) =
        align(&[&Traced { func: func.clone(), captures: captures.clone(), num_outputs }]);
    let body = with_rows_last(&bodies.remove(0), init.len(), rows.len());
    // Each trip holds a row, if there are rows.
    let has_rows = rows.len() + num_outputs > init.len();
    let taps = if has_rows { Taps { every: 1, groups: of.num, ..Taps::default() } } else { Taps::default() };
    let operands =
        ReplayOperands { carry: init.to_vec(), captures, rows: rows.to_vec(), ..ReplayOperands::default() };
    let args = operands.clone().join();
    let (mut b, ids) = Builder::with_inputs(&types(&args));
    let schedule = schedule(&mut b, of.num, taps);
    let l = Replay {
        num_carry: init.len(),
        num_rows: rows.len(),
        num_tap_rows: taps.num_rows(),
        policy: of.stored.policy(bytes(init), Some(of.num)),
        ..Replay::new(body)
    };
    let places = l.places();
    let all = b.replay(l, ReplayOperands { schedule: vec![schedule], ..operands.like(&ids) });
    let values: Vec<NodeId> = places.carry.iter().chain(&places.tapped).map(|&k| b.proj(all, k)).collect();
    let mut values = apply(&b.finish(&values), &args);
    let tapped = values.split_off(init.len());
    (values, tapped)
}

/// A body whose inputs are trip.., state.., row.., captures.. as the body of a replay, in which the captures come before
/// the rows.
fn with_rows_last(f: &Func, num_carry: usize, num_rows: usize) -> Func {
    let all = f.input_types();
    let (first, rows) = (&all[..4 + num_carry], &all[4 + num_carry..][..num_rows]);
    let captures = &all[first.len() + num_rows..];
    let (mut b, x) = Builder::with_inputs(&[first, captures, rows].concat());
    let (x, rest) = x.split_at(first.len());
    let (captures, rows) = rest.split_at(captures.len());
    let outputs = b.inline(f, &[x, rows, captures].concat());
    b.finish(&outputs)
}

/// The schedule of `num` trips, which hold one row each.
fn schedule(b: &mut Builder, num: usize, taps: Taps) -> NodeId {
    let time = Type::scalar(DType::F64);
    let (mut attempt, x) = Builder::with_inputs(std::slice::from_ref(&time));
    let one = attempt.splat(DType::F64, [], 1.0);
    let after = attempt.add(x[0], one);
    let end = attempt.splat(DType::F64, [], num as f64);
    let goes_on = attempt.compare(crate::graph::CompareOp::Lt, after, end);
    let yes = attempt.splat(DType::Bool, [], 1.0);
    let tapped = &[yes][..usize::from(taps.groups > 0)];
    let attempt = attempt.finish(&[&[yes, goes_on, yes, after], tapped].concat());
    let (mut step, _) = Builder::with_inputs(&trip_types());
    let yes = step.splat(DType::Bool, [], 1.0);
    let step = step.finish(&[yes][..tapped.len()]);
    let s = Solve {
        attempt,
        step,
        inverse: None,
        num_carry: 0,
        num_ext: 0,
        num_own: 0,
        num_first: 0,
        taps,
        policy: crate::graph::Policy::Direct,
    };
    let schedule = s.places().schedule[0];
    let operands = SearchOperands {
        expected: vec![b.splat(DType::U32, [], num as f64)],
        step_time: vec![b.splat(DType::F64, [], 0.0)],
        ..SearchOperands::default()
    };
    let all = b.search(s, operands);
    b.proj(all, schedule)
}
