//! The general loop, trip by trip, as documented at [`crate::graph::Loop`].

use super::loops::{Schedule, add, owned, schedule, step};
use super::{GraphError, Value};
use crate::array::Array;
use crate::graph::{Loop, Type};
use std::sync::Arc;

/// The values that the trips stored, indexed by trip.
type Stored = Vec<Option<Value>>;

fn sequence(value: &Value) -> &[Value] {
    match value {
        Value::Sequence(v) => v,
        other => panic!("invariant: expected a sequence, found {other:?}"),
    }
}

fn finished(stored: Stored) -> Value {
    let all = stored.into_iter().map(|v| v.expect("invariant: every trip stores a value"));
    Value::Sequence(Arc::new(all.collect()))
}

pub(super) fn run_loop(
    l: &Loop,
    args: &[&Value],
    malformed: &dyn Fn(String) -> GraphError,
) -> Result<Value, GraphError> {
    let along: &Schedule = schedule(args[0]);
    let (carry, rest) = args[1..].split_at(l.num_carry);
    let (xs, rest) = rest.split_at(l.num_xs);
    let (captures, rows) = rest.split_at(l.num_captures());
    let (mut carry, captures, n) = (owned(carry), owned(captures), along.num_steps());
    if let Some(x) = xs.iter().find(|x| sequence(x).len() != n) {
        let has = sequence(x).len();
        return Err(malformed(format!("a sequence has {has} values, but the schedule has {n} steps")));
    }
    let mut stored: Vec<Stored> = vec![vec![None; n]; l.num_carry + l.num_ys];
    let mut taps: Vec<Vec<Value>> = vec![vec![]; n];
    let types = l.body.output_types();
    let (sum_types, tap_types) = types[l.num_carry + l.num_ys..].split_at(l.num_sums);
    let mut sums: Vec<Option<Value>> = vec![None; l.num_sums];
    let order: Vec<usize> = if l.is_reversed { (0..n).rev().collect() } else { (0..n).collect() };
    for i in order {
        let x: Vec<Value> = xs.iter().map(|x| sequence(x)[i].clone()).collect();
        let row: Vec<Value> = rows.iter().map(|all| along.sum_of_rows(i, all)).collect();
        let mut next = step(&l.body, along, i, &[&carry, &x, &captures, &row])?;
        taps[i] = next.split_off(l.num_carry + l.num_ys + l.num_sums);
        let terms = next.split_off(l.num_carry + l.num_ys);
        let ys = next.split_off(l.num_carry);
        let kept = std::mem::replace(&mut carry, next).into_iter().chain(ys);
        stored.iter_mut().zip(kept).for_each(|(to, v)| to[i] = Some(v));
        for (sum, term) in sums.iter_mut().zip(terms) {
            *sum = Some(sum.as_ref().map_or_else(|| term.clone(), |sum| add(sum, &term)));
        }
    }
    carry.extend(stored.into_iter().map(finished));
    let zeros = |ty: &Type| Value::from(Array::zeros(ty.dtype(), ty.shape().clone()));
    carry.extend(sums.into_iter().zip(sum_types).map(|(sum, ty)| sum.unwrap_or_else(|| zeros(ty))));
    carry.extend(along.tapped(l.num_tap_rows, &taps, tap_types));
    Ok(Value::Tuple(carry))
}
