//! A search for many examples in lockstep: one loop whose bodies are batched over its rows.
//!
//! Each row has its own schedule, so its accepted trips, and the bits of its carry, are the same as in a
//! search for this row alone. The advantage of lockstep is that an operation runs for all rows at once.
//! Selects in the bodies leave rows that are not live unchanged. The derivatives of the selects mask the
//! cotangents of these rows, so the loop needs no special rule.

use super::{MappedValue, batch};
use crate::array::DType;
use crate::graph::{Builder, Func, NodeId, ReduceOp, SearchOperands, Solve, Type, indices};

/// The search of `n` examples as rows; at least one operand has an axis of examples.
pub(super) fn solve(b: &mut Builder, s: &Solve, x: &[MappedValue], n: usize) -> NodeId {
    let x = s.operands(x);
    let captures: Vec<bool> = x.captures.iter().map(|v| v.on).collect();
    let flags = |ahead: usize| [&vec![true; ahead][..], &captures].concat();
    let attempt = batch(&s.attempt, &flags(s.first_attempt_capture()), n);
    let step = batch(&s.step, &flags(s.first_step_capture()), n);
    let (takes, gives) = (
        s.attempt_inputs(&indices(s.attempt.num_inputs())),
        s.attempt_outputs(&indices(s.attempt.num_outputs())),
    );
    let of_step = s.step_inputs(&indices(s.step.num_inputs()));
    // Rows that are not live keep their step time and what the search carries.
    let olds = [takes.step_time, takes.carry, takes.ext].concat();
    let news = [gives.step_time, gives.carry, gives.ext].concat();
    let rows = Solve {
        attempt: masked(&attempt, 1, &olds, &news, n),
        step: masked(&step, of_step.trip.len(), &of_step.carry, &indices(s.num_carry), n),
        ..s.clone()
    };
    let mut spread =
        |values: Vec<MappedValue>| -> Vec<NodeId> { values.into_iter().map(|v| v.spread(b, n)).collect() };
    let (step_time, times, carry, ext, first) =
        (spread(x.step_time), spread(x.times), spread(x.carry), spread(x.ext), spread(x.first));
    let captures = x.captures.iter().map(|v| v.id).collect();
    let expected = vec![expected(b, x.expected[0])];
    let operands = SearchOperands { expected, step_time, times, carry, ext, first, captures };
    b.search(rows, operands)
}

/// The expected number of trips, which decides where checkpoints are placed: the maximum over the rows.
fn expected(b: &mut Builder, x: MappedValue) -> NodeId {
    if x.on { b.reduce(ReduceOp::Max, x.id, vec![0]) } else { x.id }
}

/// A body with an additional input `at`, live: bool[n], that leaves rows that are not live unchanged: in these rows,
/// the outputs `news` have the values of the inputs `olds`.
fn masked(f: &Func, at: usize, olds: &[usize], news: &[usize], n: usize) -> Func {
    let mut types = f.input_types();
    types.insert(at, Type::array(DType::Bool, [n]));
    let (mut b, mut x) = Builder::with_inputs(&types);
    let live = x.remove(at);
    let mut y = b.inline(f, &x);
    for (&new, &old) in news.iter().zip(olds) {
        let shape = b.ty(x[old]).shape().clone();
        let on = b.broadcast(live, &shape, vec![0]);
        y[new] = b.select(on, y[new], x[old]);
    }
    b.finish(&y)
}
