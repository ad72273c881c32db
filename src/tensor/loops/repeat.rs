//! A loop that repeats a function until the function ends it.
//!
//! The loop is a search: its step time counts the trips, and its step computes what the attempt computes. This module
//! does not depend on what is repeated.

use crate::array::DType;
use crate::graph::{Op, Policy, SearchOperands, Solve, Taps, Type};
use crate::tensor::{Tensor, Traced, align, apply, cond, search, trace};
use crate::transform::has_loops;

/// What a loop repeats.
pub(crate) struct Trip<'a> {
    /// From the number of the trip, counted from 0, and the state.. to whether the loop goes on and the next state...
    pub traced: &'a Traced,
    /// The first values of the state have derivatives, as many as this number. Derivatives use the other values as they
    /// are at the start.
    pub num_carry: usize,
    /// The index of a bool in the state, if there is one. If it is false, the loop ends with the values with derivatives
    /// unchanged, and without a trip.
    pub guard: Option<usize>,
}

/// Repeats a trip from the state `start`; returns the state after the last trip. `num_trips` is 0 if the number of trips
/// is unknown.
pub(crate) fn repeat(of: &Trip<'_>, start: &[Tensor], (num_trips, policy): (usize, Policy)) -> Vec<Tensor> {
    let Trip { traced, num_carry, guard } = *of;
    let run = |x: Vec<Tensor>| {
        let mut out = apply(&traced.func, &[&x[..], &traced.captures].concat());
        let next = out.split_off(1);
        (out.remove(0), next[..start.len()].to_vec())
    };
    let types: Vec<Type> = start.iter().map(Tensor::ty).collect();
    let (flag, time) = (Type::scalar(DType::Bool), Type::scalar(DType::F64));
    let attempt = trace(&[std::slice::from_ref(&time), &types].concat(), &mut |x| {
        let yes = Tensor::scalar(DType::Bool, 1.0);
        // Without carried values, no derivative needs a schedule of the trips.
        let mut accept = Tensor::scalar(DType::Bool, f64::from(u8::from(num_carry > 0)));
        let mut after = &x[0] + 1.0;
        let (goes_on, next) = match guard {
            None => run(x.to_vec()),
            Some(k) => {
                accept = x[1 + k].clone();
                after = accept.select(&after, &x[0]);
                run_if(&accept, x, num_carry, traced, &run)
            }
        };
        [vec![accept, goes_on, yes, after], next].concat()
    });
    let of_step = [&[flag.clone(), flag, time.clone(), time], &types[..num_carry]].concat();
    let step = trace(&of_step, &mut |x| match num_carry {
        0 => vec![],
        n => run([&x[2..3], &x[4..], &start[n..]].concat()).1[..n].to_vec(),
    });
    let (bodies, captures) = align(&[&attempt, &step]);
    let [attempt, step]: [_; 2] = bodies.try_into().expect("invariant: a body for each trace");
    let (num_ext, taps) = (start.len() - num_carry, Taps::default());
    let s =
        Solve { attempt, step, inverse: None, num_carry, num_ext, num_own: 0, num_first: 0, taps, policy };
    let (carry, ext) = start.split_at(num_carry);
    let operands = SearchOperands {
        expected: vec![Tensor::scalar(DType::U32, num_trips as f64)],
        step_time: vec![Tensor::scalar(DType::F64, 0.0)],
        carry: carry.to_vec(),
        ext: ext.to_vec(),
        captures,
        ..SearchOperands::default()
    };
    search(s, operands).join()
}

/// The trip, if it counts; else that the loop ends, and the same state. A function with a loop or a callback does not run if
/// the trip does not count: the loop might never end. Other functions run, because a branch would cost more.
fn run_if(
    counts: &Tensor,
    x: &[Tensor],
    num_carry: usize,
    traced: &Traced,
    run: &dyn Fn(Vec<Tensor>) -> (Tensor, Vec<Tensor>),
) -> (Tensor, Vec<Tensor>) {
    let all = |x: &Vec<Tensor>| {
        let (goes_on, next) = run(x.clone());
        [vec![goes_on], next].concat()
    };
    if has_loops(&traced.func) || traced.func.nodes().iter().any(|node| matches!(node.op, Op::Observe(_))) {
        let no = Tensor::scalar(DType::Bool, 0.0);
        let mut out = cond(counts, &x.to_vec(), all, |x| [std::slice::from_ref(&no), &x[1..]].concat());
        let next = out.split_off(1);
        return (out.remove(0), next);
    }
    let (goes_on, mut next) = run(x.to_vec());
    for (next, old) in next[..num_carry].iter_mut().zip(&x[1..]) {
        *next = counts.select(next, old);
    }
    (goes_on.and(counts), next)
}
