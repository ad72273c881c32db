//! The rules of loops and tiles.
//!
//! The search accepts every other attempt. Its step times depend on its arguments, but the derivative holds
//! the step times fixed. It is therefore compared with finite differences of a scan along a fixed schedule.

use super::*;
use crate::graph::{BinaryOp, CompareOp, Op, Policy, ReduceOp, Replay, Solve, Taps, TileOut, Tiles, UnaryOp};
use std::sync::Arc;

/// The carried values: y, logp (an integral, which the step does not read), trips (an integer), still
/// (constant).
const NUM_CARRY: usize = 4;

fn carry_types(rows: usize) -> Vec<Type> {
    vec![f64s([rows, 2]), f64s([rows]), Type::scalar(DType::I32), f64s([])]
}

/// The types of the captures t0, t1, dt, w.
pub(crate) fn capture_types() -> Vec<Type> {
    vec![f64s([]), f64s([]), f64s([]), f64s([2, 2])]
}

/// One explicit Euler step from t to t_next of y' = tanh(y w^T) + still t, logp' = sum y^2.
fn advance(b: &mut Builder, t: NodeId, t_next: NodeId, carry: &[NodeId], w: NodeId) -> Vec<NodeId> {
    let h = b.sub(t_next, t);
    let shape = b.ty(carry[0]).shape().clone();
    let pre = b.dot(carry[0], w, false, true);
    let pre = b.unary(UnaryOp::Tanh, pre);
    let field = b.mul(carry[3], t);
    let field = b.broadcast(field, &shape, vec![]);
    let f = b.add(pre, field);
    let wide = b.broadcast(h, &shape, vec![]);
    let dy = b.mul(wide, f);
    let square = b.mul(carry[0], carry[0]);
    let rate = b.reduce(ReduceOp::Sum, square, vec![1]);
    let narrow = b.broadcast(h, &Shape::from([shape[0]]), vec![]);
    let rate = b.mul(rate, narrow);
    let one = b.splat(DType::I32, [], 1.0);
    vec![b.add(carry[0], dy), b.add(carry[1], rate), b.add(carry[2], one), carry[3]]
}

fn step(rows: usize) -> Func {
    let flags = [Type::scalar(DType::Bool), Type::scalar(DType::Bool), f64s([]), f64s([])];
    func(&[&flags[..], &carry_types(rows), &capture_types()].concat(), |b, x| {
        let c = &x[4 + NUM_CARRY..];
        let (t, t_next) = (b.select(x[0], c[0], x[2]), b.select(x[1], c[1], x[3]));
        advance(b, t, t_next, &x[4..4 + NUM_CARRY], c[3])
    })
}

fn attempt(rows: usize) -> Func {
    let tries = Type::scalar(DType::U32);
    func(&[&[f64s([])], &carry_types(rows)[..], &[tries], &capture_types()].concat(), |b, x| {
        let (t, carry, tries, c) = (x[0], &x[1..=NUM_CARRY], x[1 + NUM_CARRY], &x[2 + NUM_CARRY..]);
        let one = b.splat(DType::U32, [], 1.0);
        let next = b.add(tries, one);
        let times = b.cast(next, DType::F64);
        let h = b.mul(c[2], times);
        let aim = b.add(t, h);
        let step_time = b.binary(BinaryOp::Min, aim, c[1]);
        // Odd attempts are accepted.
        let half = b.scale(times, 0.5);
        let floor = b.unary(UnaryOp::Floor, half);
        let accept = b.compare(CompareOp::Ne, half, floor);
        let new = advance(b, t, step_time, carry, c[3]);
        let mut out: Vec<NodeId> = carry.to_vec();
        for (o, n) in out.iter_mut().zip(new) {
            let shape = b.ty(n).shape().clone();
            let wide = b.broadcast(accept, &shape, vec![]);
            *o = b.select(wide, n, *o);
        }
        let step_time = b.select(accept, step_time, t);
        let running = b.compare(CompareOp::Lt, step_time, c[1]);
        let reached = b.unary(UnaryOp::Not, running);
        [&[accept, running, reached, step_time], &out[..], &[next]].concat()
    })
}

fn solve_of(rows: usize) -> Solve {
    let policy = Policy::Direct;
    Solve {
        attempt: attempt(rows),
        step: step(rows),
        inverse: None,
        num_carry: NUM_CARRY,
        num_ext: 1,
        num_own: 0,
        num_first: 0,
        taps: Taps::default(),
        policy,
    }
}

/// Inserts the search: `carry.., captures..` -> `carry.., ext, schedule, tape`.
pub(crate) fn insert_solve(b: &mut Builder, rows: usize, x: &[NodeId]) -> Vec<NodeId> {
    insert(b, x, solve_of(rows))
}

/// [`insert_solve`] for two rows, with another policy.
pub(super) fn insert_kept(b: &mut Builder, x: &[NodeId], policy: Policy) -> Vec<NodeId> {
    insert(b, x, Solve { policy, ..solve_of(2) })
}

fn insert(b: &mut Builder, x: &[NodeId], solve: Solve) -> Vec<NodeId> {
    let zero = b.splat(DType::U32, [], 0.0);
    let args = [&[zero, x[NUM_CARRY]], &x[..NUM_CARRY], &[zero], &x[NUM_CARRY..]].concat();
    let all = b.push(Op::Solve(Arc::new(solve)), &args, None);
    b.projections(all)
}

fn own_types() -> Vec<Type> {
    [carry_types(2), capture_types()].concat()
}

/// The carried values at the end, as a function of their initial values and the captures.
pub(crate) fn solved() -> Func {
    func(&own_types(), |b, x| {
        let out = insert_solve(b, 2, x);
        out[..NUM_CARRY].to_vec()
    })
}

/// Like [`solved`] for the second half of the inputs, but along the schedule of a solve of the first half.
pub(super) fn scanned() -> Func {
    func(&[own_types(), own_types()].concat(), |b, x| {
        let out = insert_solve(b, 2, &x[..8]);
        let scan = Replay { num_carry: NUM_CARRY, ..Replay::new(step(2)) };
        let args = [&[out[NUM_CARRY + 1]], &x[8..]].concat();
        let all = b.push(Op::Replay(Arc::new(scan)), &args, None);
        (0..NUM_CARRY).map(|k| b.proj(all, k)).collect()
    })
}

pub(super) fn inputs() -> Vec<Array> {
    let mut draws = Draws::new(12);
    let scalar = |x| Array::scalar(DType::F64, x);
    let mut x: Vec<Array> = carry_types(2).iter().map(|t| draws.array(t)).collect();
    x[2] = Array::scalar(DType::I32, 0.0);
    x.extend([scalar(0.1), scalar(1.0), scalar(0.07), draws.array(&f64s([2, 2]))]);
    x
}

fn check_first(f: &Func, x: &[Array], wrt: &[usize], what: &str) {
    check(f, x, wrt, what);
    let mut draws = Draws::new(11);
    let outs: Vec<usize> = (0..f.num_outputs()).filter(|&k| f.output_type(k).is_float()).collect();
    let u: Vec<Array> = outs.iter().map(|&k| draws.array(f.output_type(k))).collect();
    let dx: Vec<Array> = wrt.iter().map(|&k| draws.array(f.input_type(k))).collect();
    let all = |n: usize| wrt.iter().copied().chain(f.num_inputs()..f.num_inputs() + n).collect::<Vec<_>>();
    check(&jvp(f, wrt), &[x, &dx].concat(), &all(dx.len()), &format!("jvp of {what}"));
    let g = vjp(f, &outs, wrt).unwrap();
    check_forward(&g, &[x, &u].concat(), &all(u.len()), &format!("vjp of {what}"));
    check_forward(&g, &[x, &u].concat(), &wrt[..1], &format!("vjp of {what}, wrt one argument"));
    let only_cotangents: Vec<usize> = (f.num_inputs()..f.num_inputs() + u.len()).collect();
    check_forward(&g, &[x, &u].concat(), &only_cotangents, &format!("vjp of {what}, wrt cotangents"));
}

#[test]
fn the_search_takes_the_steps_of_its_replay() {
    let x = inputs();
    let (solved, scanned) = (eval(&solved(), &x), eval(&scanned(), &[x.clone(), x].concat()));
    assert_eq!(solved, scanned);
    assert_eq!(solved[2].to_f64(), [4.0]);
}

#[test]
fn a_scan_has_derivatives_of_first_and_mixed_second_order() {
    let x = [inputs(), inputs()].concat();
    let f = scanned();
    for wrt in [vec![8, 9, 11, 12, 13, 15], vec![15], vec![8], vec![9], vec![12, 13], vec![11, 15]] {
        check_first(&f, &x, &wrt, &format!("scan by {wrt:?}"));
    }
}

#[test]
fn a_solve_has_the_derivatives_of_its_accepted_steps() {
    let x = inputs();
    let mut draws = Draws::new(2);
    let wrt = [0, 1, 3, 4, 5, 7];
    let u: Vec<Array> = [0, 1, 3].iter().map(|&k| draws.array(&carry_types(2)[k])).collect();
    let dx: Vec<Array> = wrt.iter().map(|&k| draws.array(&own_types()[k])).collect();
    let shifted: Vec<usize> = wrt.iter().map(|k| k + 8).collect();
    let twice = [x.clone(), x.clone()].concat();
    let (solve, scan) = (solved(), scanned());
    let g = |f: &Func, x: &[Array], wrt: &[usize]| {
        eval(&vjp(f, &[0, 1, 3], wrt).unwrap(), &[x, &u].concat()).split_off(NUM_CARRY)
    };
    assert_eq!(g(&solve, &x, &wrt), g(&scan, &twice, &shifted));
    let d =
        |f: &Func, x: &[Array], wrt: &[usize]| eval(&jvp(f, wrt), &[x, &dx].concat()).split_off(NUM_CARRY);
    assert_eq!(d(&solve, &x, &wrt), d(&scan, &twice, &shifted));
}

/// The backward loops of a function.
pub(super) fn backward(f: &Func) -> Vec<&Replay> {
    let all = f.nodes().iter().filter_map(|n| if let Op::Replay(l) = &n.op { Some(&**l) } else { None });
    all.filter(|l| l.reads_states()).collect()
}

#[test]
fn only_what_moves_and_counts_is_carried_back() {
    let f = solved();
    let g = vjp(&f, &[0], &[7]).unwrap();
    let counts = |g: &Func| backward(g).iter().map(|l| (l.num_carry, l.num_sums)).collect::<Vec<_>>();
    assert_eq!(counts(&g), [(1, 1)], "only y and w have cotangents");
    let g = vjp(&f, &[1], &[0, 4, 5]).unwrap();
    assert_eq!(counts(&g), [(2, 2)]);
    // No step depends on dt, so its cotangent is zero, and there is no reverse loop.
    let g = vjp(&f, &[0, 1], &[6]).unwrap();
    assert!(backward(&g).is_empty());
    let out = eval(
        &g,
        &[inputs(), vec![Draws::new(1).array(&f64s([2, 2])), Draws::new(2).array(&f64s([2]))]].concat(),
    );
    assert_eq!(out[NUM_CARRY].to_f64(), [0.0]);
}

#[test]
fn values_beside_a_gradient_and_tangents_have_reverse_derivatives() {
    let g = vjp(&solved(), &[0], &[7]).unwrap();
    assert!(vjp(&g, &[0], &[7]).is_ok(), "the primal outputs can be differentiated");
    assert!(vjp(&jvp(&solved(), &[0]), &[4], &[7]).is_ok(), "reverse over forward");
}

/// row0, x: [rows, 2], scale: [rows], w: [2, 2], shift: [] -> y = sin(x w) scale + row0 shift, and the sum of
/// y x.
fn body(rows: usize) -> Func {
    let row0 = Type::scalar(DType::U32);
    func(&[row0, f64s([rows, 2]), f64s([rows]), f64s([2, 2]), f64s([])], |b, x| {
        let shape = b.ty(x[1]).shape().clone();
        let wide = b.broadcast(x[2], &shape, vec![0]);
        let y = b.dot(x[1], x[3], false, false);
        let y = b.unary(UnaryOp::Sin, y);
        let y = b.mul(y, wide);
        let first = b.cast(x[0], DType::F64);
        let shift = b.mul(first, x[4]);
        let wide = b.broadcast(shift, &shape, vec![]);
        let y = b.add(y, wide);
        let square = b.mul(y, x[1]);
        let sum = b.reduce(ReduceOp::Sum, square, vec![0, 1]);
        vec![y, sum]
    })
}

fn tiled(rows: usize, tile: usize) -> Func {
    let types = [f64s([rows, 2]), f64s([rows]), f64s([2, 2]), f64s([])];
    func(&types, |b, x| {
        let t = Tiles {
            rows,
            tile,
            body: body(tile),
            tail: (!rows.is_multiple_of(tile)).then(|| body(rows % tile)),
            num_rowed: 2,
            outs: vec![TileOut::Rows, TileOut::Sum],
        };
        let all = b.push(Op::Tiles(Arc::new(t)), x, None);
        b.projections(all)
    })
}

#[test]
fn tiles_have_derivatives_of_first_and_second_order() {
    let mut draws = Draws::new(5);
    for (rows, tile) in [(5, 2), (4, 2)] {
        let f = tiled(rows, tile);
        let x: Vec<Array> = f.input_types().iter().map(|t| draws.array(t)).collect();
        for wrt in [vec![0, 1, 2, 3], vec![2], vec![0], vec![3, 1]] {
            check_twice(&f, &x, &wrt, &format!("tiles by {wrt:?}"));
        }
    }
}

#[test]
fn a_row_at_a_time_or_all_at_once_gives_one_gradient() {
    let mut draws = Draws::new(6);
    let mut x: Vec<Array> = tiled(6, 6).input_types().iter().map(|t| draws.array(t)).collect();
    x[3] = Array::scalar(DType::F64, 0.0);
    let u = [draws.array(&f64s([6, 2])), draws.array(&f64s([]))];
    let g =
        |tile| eval(&vjp(&tiled(6, tile), &[0, 1], &[0, 1, 2]).unwrap(), &[&x[..], &u].concat()).split_off(2);
    for tile in [1, 2, 4] {
        assert_close(&g(tile), &g(6), 1e-14, "tiles");
    }
}

#[test]
fn a_solve_runs_in_tiles() {
    let body = |rows: usize| {
        let row0 = Type::scalar(DType::U32);
        func(&[&[row0, f64s([rows, 2])], &capture_types()[..]].concat(), |b, x| {
            let zeros = b.splat(DType::F64, [rows], 0.0);
            let (count, still) = (b.splat(DType::I32, [], 0.0), b.splat(DType::F64, [], 0.5));
            let out = insert_solve(b, rows, &[&[x[1], zeros, count, still], &x[2..]].concat());
            let loss = b.mul(out[1], out[1]);
            vec![out[0], b.reduce(ReduceOp::Sum, loss, vec![0])]
        })
    };
    let tiled = func(&[&[f64s([5, 2])], &capture_types()[..]].concat(), |b, x| {
        let outs = vec![TileOut::Rows, TileOut::Sum];
        let t = Tiles { rows: 5, tile: 2, body: body(2), tail: Some(body(1)), num_rowed: 1, outs };
        let all = b.push(Op::Tiles(Arc::new(t)), x, None);
        b.projections(all)
    });
    let whole = func(&tiled.input_types(), |b, x| {
        let row0 = b.splat(DType::U32, [], 0.0);
        b.inline(&body(5), &[&[row0], x].concat())
    });
    let mut draws = Draws::new(8);
    let scalar = |x| Array::scalar(DType::F64, x);
    let x = [draws.array(&f64s([5, 2])), scalar(0.1), scalar(1.0), scalar(0.07), draws.array(&f64s([2, 2]))];
    let u = [draws.array(&f64s([5, 2])), draws.array(&f64s([]))];
    let g = |f: &Func| eval(&vjp(f, &[0, 1], &[0, 1, 2, 4]).unwrap(), &[&x[..], &u].concat());
    assert_close(&g(&tiled), &g(&whole), 1e-14, "gradient");
    let hessian = |f: &Func| {
        let g = vjp(f, &[0, 1], &[0, 4]).unwrap();
        eval(&jvp(&g, &[4]), &[&x[..], &u, &x[4..]].concat())
    };
    assert_close(&hessian(&tiled), &hessian(&whole), 1e-13, "hessian times vector");
}
