//! A search for many examples in lockstep: one loop whose bodies are batched over its rows.
//!
//! Each row has its own schedule, so its accepted trips, and the bits of its carry, are the same as in a
//! search for this row alone. The advantage of lockstep is that an operation runs for all rows at once.
//! Selects in the bodies leave rows that are not live unchanged. The derivatives of the selects mask the
//! cotangents of these rows, so the loop needs no special rule.

use super::{MappedValue, batch};
use crate::array::DType;
use crate::graph::{Builder, Func, NodeId, Op, ReduceOp, Solve, Type};
use std::sync::Arc;

/// The search of `n` examples as rows; at least one operand has an axis of examples.
pub(super) fn solve(b: &mut Builder, s: &Solve, x: &[MappedValue], n: usize) -> NodeId {
    let moving = s.num_carry + s.num_ext;
    let first = s.first_carry();
    let captures: Vec<bool> = x[first + moving..].iter().map(|v| v.on).collect();
    let flags = |ahead: usize| [&vec![true; ahead][..], &captures].concat();
    let attempt = batch(&s.attempt, &flags(s.attempt_head() + moving), n);
    let step = batch(&s.step, &flags(s.head() + s.num_carry), n);
    let rows = Solve {
        attempt: masked(&attempt, s.attempt_head(), 3, 1 + moving, n),
        step: masked(&step, s.head(), 0, s.num_carry, n),
        ..s.clone()
    };
    let mut args = vec![expected(b, x[0])];
    args.extend(x[1..first + moving].iter().map(|v| v.spread(b, n)));
    args.extend(x[first + moving..].iter().map(|v| v.id));
    b.push(Op::Solve(Arc::new(rows)), &args, None)
}

/// The expected number of trips, which decides where checkpoints are placed: the maximum over the rows.
fn expected(b: &mut Builder, x: MappedValue) -> NodeId {
    if x.on { b.reduce(ReduceOp::Max, x.id, vec![0]) } else { x.id }
}

/// A body with an additional input `at`, live: bool[n], that leaves rows that are not live unchanged. In these
/// rows, the `num` outputs from `out` on have the values of the corresponding inputs.
fn masked(f: &Func, at: usize, out: usize, num: usize, n: usize) -> Func {
    let mut types = f.input_types();
    types.insert(at, Type::array(DType::Bool, [n]));
    let (mut b, mut x) = Builder::with_inputs(&types);
    let live = x.remove(at);
    let mut y = b.inline(f, &x);
    // The outputs correspond to step time and carry in an attempt, to carry in a step. The step time is the
    // input before `live`; the carry comes after `live`.
    let olds = &x[if out == 0 { at } else { at - 1 }..];
    for (y, &old) in y[out..out + num].iter_mut().zip(olds) {
        let shape = b.ty(old).shape().clone();
        let on = b.broadcast(live, &shape, vec![0]);
        *y = b.select(on, *y, old);
    }
    b.finish(&y)
}
