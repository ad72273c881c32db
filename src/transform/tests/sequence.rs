//! Replays with sequences: derivatives up to third order, in mixed modes.
//!
//! Loops run along the schedule of a search that does not depend on the differentiated values.

use super::loops::{scanned, solved};
use super::*;
use crate::graph::{Checkpoints, Op, Policy, ReduceOp, Replay, Taps, UnaryOp};
use crate::transform::{TransformError, optimize};
use std::sync::Arc;

const NUM_TIMES: usize = 5;

fn trip() -> Vec<Type> {
    [DType::Bool, DType::Bool, DType::F64, DType::F64].map(Type::scalar).to_vec()
}

fn plain(body: Func) -> Replay {
    Replay { num_carry: 1, num_tap_rows: NUM_TIMES, ..Replay::new(body) }
}

/// A loop with carry y, capture w and row r: y' = sin(y w) (1 + t) + r. It stores y w, sums y^2 and taps y'.
fn walk() -> Replay {
    let vector = f64s([2]);
    let body = func(&[trip(), vec![vector.clone(), f64s([2, 2]), vector]].concat(), |b, x| {
        let row = b.reshape(x[4], [1, 2]);
        let product = b.dot(row, x[5], false, false);
        let product = b.reshape(product, [2]);
        let wave = b.unary(UnaryOp::Sin, product);
        let one = b.splat(DType::F64, [], 1.0);
        let later = b.add(x[2], one);
        let later = b.broadcast(later, &Shape::from([2]), vec![]);
        let next = b.mul(wave, later);
        let next = b.add(next, x[6]);
        let square = b.mul(x[4], x[4]);
        vec![next, product, square, next]
    });
    Replay { num_ys: 1, num_sums: 1, num_rows: 1, ..plain(body) }
}

/// A reversed loop with carry z that reads y and y w and captures w: z' = tanh(z y) + y w. It stores z, sums
/// z y times the column sums of w, and taps z y w.
fn back() -> Replay {
    let vector = f64s([2]);
    let types = [trip(), vec![vector; 3], vec![f64s([2, 2])]].concat();
    let body = func(&types, |b, x| {
        let both = b.mul(x[4], x[5]);
        let next = b.unary(UnaryOp::Tanh, both);
        let next = b.add(next, x[6]);
        let tap = b.mul(x[4], x[6]);
        let trace = b.reduce(ReduceOp::Sum, x[7], vec![0]);
        let term = b.mul(both, trace);
        vec![next, x[4], term, tap]
    });
    Replay { is_reversed: true, num_xs: 2, num_ys: 1, num_sums: 1, ..plain(body) }
}

/// A function of y0, w, rows, z0 that returns the end, sum and taps of y, the end, sum and taps of z, and the
/// end and sum of a third loop, which runs forward and reads what the second loop stored.
fn both_ways() -> Func {
    let types = [f64s([2]), f64s([2, 2]), f64s([NUM_TIMES, 2]), f64s([2])];
    func(&types, |b, x| {
        let (schedule, _) = schedule(b);
        let mut push = |l: Replay, x: &[NodeId]| {
            let places = l.places();
            let all = b.push(Op::Replay(Arc::new(l)), x, None);
            places.map(|k| b.proj(all, k))
        };
        let first = push(walk(), &[schedule, x[0], x[1], x[2]]);
        let second = push(back(), &[schedule, x[3], first.states[0], first.ys[0], x[1]]);
        let third = Replay { is_reversed: false, ..back() };
        let third = push(third, &[schedule, first.carry[0], first.states[0], second.ys[0], x[1]]);
        let all = [first.carry, first.sums, first.tapped, second.carry, second.sums, second.tapped];
        [all.concat(), third.carry, third.sums].concat()
    })
}

/// The schedule and the end state of a tapped search of three steps.
fn schedule(b: &mut Builder) -> (NodeId, NodeId) {
    let field = func(&[f64s([]), f64s([1, 2])], |_, x| vec![x[1]]);
    let search = crate::graph::tests::arbitrary::search(
        &field,
        &f64s([1, 2]),
        &[],
        Taps::at(NUM_TIMES),
        Policy::Forward,
    );
    let places = search.places();
    let (none, zero, y) =
        (b.splat(DType::U32, [], 0.0), b.splat(DType::F64, [], 0.0), b.splat(DType::F64, [1, 2], 1.0));
    let times = crate::graph::tests::arbitrary::times(b, NUM_TIMES);
    let all = b.push(Op::Solve(Arc::new(search)), &[none, zero, times[0], y, none], None);
    (b.proj(all, places.schedule[0]), b.proj(all, places.carry[0]))
}

fn values(f: &Func) -> Vec<Array> {
    let mut draws = Draws::new(31);
    f.input_types().iter().map(|ty| draws.array(ty)).collect()
}

#[test]
fn loops_that_store_have_derivatives_of_first_and_second_order_in_every_mix() {
    let f = both_ways();
    let x = values(&f);
    for wrt in [vec![0, 1, 2, 3], vec![1], vec![2], vec![3], vec![0, 3]] {
        check_twice(&f, &x, &wrt, &format!("loops with respect to {wrt:?}"));
    }
}

#[test]
fn a_third_derivative_in_reverse_equals_the_forward_one() {
    let f = both_ways();
    let loss = func(&f.input_types(), |b, x| {
        let out = b.inline(&f, x);
        let ends = out.iter().map(|&y| {
            let rank = b.ty(y).shape().rank();
            let y = b.mul(y, y);
            b.reduce(ReduceOp::Sum, y, (0..rank).collect())
        });
        let ends: Vec<NodeId> = ends.collect();
        vec![ends.into_iter().reduce(|p, q| b.add(p, q)).unwrap()]
    });
    check_twice(&gradient(&loss), &values(&f)[..2 + 2], &[0, 1], "gradient");
}

/// The gradient of output 0 with respect to inputs 0 and 1.
fn gradient(f: &Func) -> Func {
    let g = vjp(f, &[0], &[0, 1]).unwrap();
    func(&f.input_types(), |b, x| {
        let one = b.splat(DType::F64, [], 1.0);
        b.inline(&g, &[x, &[one]].concat()).split_off(1)
    })
}

#[test]
fn a_scan_that_keeps_every_state_has_a_reverse_derivative_of_its_reverse_derivative() {
    let x: Vec<Array> = [super::loops::inputs(), super::loops::inputs()].concat();
    for wrt in [vec![8, 9, 11, 12, 13, 15], vec![15], vec![8]] {
        check_twice(&scanned(), &x, &wrt, &format!("scan with respect to {wrt:?}"));
    }
}

#[test]
fn policies_with_fewer_states_are_refused_by_name() {
    for kept in [Checkpoints::Count(2), Checkpoints::Auto] {
        let policy = Policy::Checkpoint(kept);
        let f = func(&solved().input_types(), |b, x| super::loops::insert_kept(b, x, policy)[..1].to_vec());
        let g = vjp(&f, &[0], &[7]).unwrap();
        let e = vjp(&g, &[1], &[7]).unwrap_err();
        assert_eq!(e, TransformError::SecondReverse { adjoint: "RecursiveCheckpoint" });
        let said = e.to_string();
        assert!(
            said.contains("`RecursiveCheckpoint`") && said.contains("use the adjoint `Direct`"),
            "{said}"
        );
        assert!(vjp(&g, &[0], &[7]).is_ok(), "the primal outputs can be differentiated");
    }
}

#[test]
fn optimization_keeps_what_second_derivatives_of_loops_are() {
    let (f, mut draws) = (both_ways(), Draws::new(4));
    let x = values(&f);
    let g = vjp(&f, &[0, 3, 5, 6], &[0, 1]).unwrap();
    let n = g.num_outputs();
    let h = vjp(&g, &[n - 1], &[0, 1, 2]).unwrap();
    let x: Vec<Array> = x.into_iter().chain(h.input_types()[4..].iter().map(|ty| draws.array(ty))).collect();
    assert_close(&eval(&optimize(&h), &x), &eval(&h, &x), 1e-12, "optimized");
}

#[test]
fn loops_print_as_what_they_read() {
    let f = both_ways();
    let g = vjp(&f, &[0, 3, 5, 6], &[0, 1]).unwrap();
    for f in [f, g] {
        assert_eq!(Func::parse(&f.to_string()).unwrap(), f);
    }
}
