//! Removal of unused carried values from searches.

use super::super::simplify;
use super::*;
use crate::graph::{BinaryOp, CompareOp, Op, Policy, Solve, Taps, UnaryOp};
use std::sync::Arc;

/// An attempt of a search that ends when five attempts have started with a status below 1/2, which means
/// running. The carry is y. The ext values are the count, a sum of counts, the number 2, the step size and
/// the status.
fn attempt() -> Func {
    let y = f64s([2]);
    func(&[vec![f64s([]), y.clone()], vec![f64s([]); 6]].concat(), |b, x| {
        let &[t, y, count, sum, two, h, status, scale] = x else { panic!("eight inputs") };
        let [half, one, zero, five] = [0.5, 1.0, 0.0, 5.0].map(|c| b.splat(DType::F64, [], c));
        let running = b.compare(CompareOp::Lt, status, half);
        let step = b.select(running, one, zero);
        let count = b.add(count, step);
        let sum = b.add(sum, count);
        let next = b.add(t, h);
        let new = advance(b, y, scale);
        let wide = b.broadcast(running, &Shape::from([2]), vec![]);
        let y = b.select(wide, new, y);
        let ends = b.compare(CompareOp::Le, five, count);
        let end = b.select(ends, one, zero);
        let status = b.select(running, end, status);
        let goes_on = b.compare(CompareOp::Lt, status, half);
        let ended = b.unary(UnaryOp::Not, goes_on);
        vec![running, goes_on, ended, next, y, count, sum, two, h, status]
    })
}

fn advance(b: &mut Builder, y: NodeId, scale: NodeId) -> NodeId {
    let wide = b.broadcast(scale, &Shape::from([2]), vec![]);
    let scaled = b.mul(y, wide);
    b.binary(BinaryOp::Add, scaled, y)
}

/// A function of y, a step size, a scale and a status, which runs the search. The search starts with the
/// status `status`, or with the last input.
fn search(outputs: &[usize], status: Option<f64>) -> Func {
    let flags = vec![Type::scalar(DType::Bool); 2];
    let step = func(&[flags, vec![f64s([]); 2], vec![f64s([2]), f64s([])]].concat(), |b, x| {
        vec![advance(b, x[4], x[5])]
    });
    let taps = Taps::default();
    let policy = Policy::Direct;
    let solve = Solve {
        attempt: attempt(),
        step,
        inverse: None,
        num_carry: 1,
        num_ext: 5,
        num_own: 0,
        num_first: 0,
        taps,
        policy,
    };
    func(&[f64s([2]), f64s([]), f64s([]), f64s([])], |b, x| {
        let &[y, h, scale, given] = x else { panic!("four inputs") };
        let [zero, two] = [0.0, 2.0].map(|c| b.splat(DType::F64, [], c));
        let expected = b.splat(DType::U32, [], 0.0);
        let status = status.map_or(given, |c| b.splat(DType::F64, [], c));
        let args = [expected, zero, y, zero, zero, two, h, status, scale];
        let all = b.push(Op::Solve(Arc::new(solve)), &args, None);
        outputs.iter().map(|&k| b.proj(all, k)).collect()
    })
}

fn solve_of(f: &Func) -> &Solve {
    f.nodes().iter().find_map(|n| if let Op::Solve(s) = &n.op { Some(&**s) } else { None }).unwrap()
}

fn inputs(status: f64) -> Vec<Array> {
    let y = Array::from_vec([2], vec![1.0, -0.5]);
    [vec![y], [0.25, 0.5, status].map(|c| Array::scalar(DType::F64, c)).to_vec()].concat()
}

#[test]
fn unread_counters_and_constant_carries_leave_the_loop() {
    // Used outside: y, the count, the number 2 and the step size.
    let f = search(&[0, 1, 3, 4], Some(0.0));
    let g = simplify(&f);
    verify(&g).unwrap();
    let s = solve_of(&g);
    assert_eq!((s.num_carry, s.num_ext), (1, 1), "only the count is left: every attempt starts running\n{g}");
    assert_eq!(interpret(&g, &inputs(0.0)).unwrap(), interpret(&f, &inputs(0.0)).unwrap());
}

#[test]
fn a_tape_keeps_the_state_and_nothing_else() {
    let f = search(&[0], Some(0.0));
    let f = vjp(&f, &[0], &[0, 2]).unwrap();
    let g = simplify(&f);
    verify(&g).unwrap();
    assert_eq!((solve_of(&g).num_carry, solve_of(&g).num_ext), (1, 1), "{g}");
    let x = [inputs(0.0), vec![Array::from_vec([2], vec![1.0, 3.0])]].concat();
    assert_eq!(interpret(&g, &x).unwrap(), interpret(&f, &x).unwrap());
}

#[test]
fn an_attempt_of_a_search_that_starts_running_does_not_ask_whether_it_runs() {
    let asks = |f: &Func| {
        let attempt = &solve_of(f).attempt;
        attempt.nodes().iter().filter(|n| matches!(n.op, Op::Compare(CompareOp::Lt))).count()
    };
    let all = [0, 1, 2, 5];
    assert_eq!(asks(&simplify(&search(&all, Some(0.0)))), 1);
    for f in [search(&all, None), search(&all, Some(1.0))] {
        let g = simplify(&f);
        assert_eq!(asks(&g), 2, "{g}");
        for status in [0.0, 1.0] {
            assert_eq!(interpret(&g, &inputs(status)).unwrap(), interpret(&f, &inputs(status)).unwrap());
        }
    }
}
