//! Loops: a search that rejects every second attempt, and its gradient against the closed form.

use super::{Rng, bits, f64s, run};
use crate::array::{Array, DType, Shape};
use crate::backend::Counters;
use crate::backend::cpu::{Plan, Workspace};
use crate::graph::{
    Builder, Checkpoints, CompareOp, Func, NodeId, Op, Policy, ReduceOp, Replay, Solve, Taps, TileOut, Tiles,
    Type,
};
use crate::simd::Level;
use std::sync::Arc;

const ROWS: usize = 5;
const DT: f64 = 0.07;

fn scalar(dtype: DType) -> Type {
    Type::scalar(dtype)
}

/// y (1 + a h) with h = t_next - t.
fn growth(b: &mut Builder, t: NodeId, t_next: NodeId, y: NodeId, a: NodeId) -> (NodeId, NodeId) {
    let shape = b.ty(y).shape().clone();
    let h = b.sub(t_next, t);
    let ah = b.mul(a, h);
    let one = b.splat_like(ah, 1.0);
    let factor = b.add(ah, one);
    let factor = b.broadcast(factor, &shape, vec![]);
    (b.mul(y, factor), h)
}

/// first, last, t, t_next, y, a -> y'
fn step(rows: usize) -> Func {
    let (s, flag) = (scalar(DType::F64), scalar(DType::Bool));
    let (mut b, x) = Builder::with_inputs(&[flag.clone(), flag, s.clone(), s.clone(), f64s([rows]), s]);
    let (y, _) = growth(&mut b, x[2], x[3], x[4], x[5]);
    b.finish(&[y])
}

/// first, last, t, t_next, y, a, ct_y -> ct_y, ct_a
fn bwd(rows: usize) -> Func {
    let (s, flag) = (scalar(DType::F64), scalar(DType::Bool));
    let (mut b, x) =
        Builder::with_inputs(&[flag.clone(), flag, s.clone(), s.clone(), f64s([rows]), f64s([rows]), s]);
    let (ct, y, a) = (x[4], x[5], x[6]);
    let product = b.mul(y, ct);
    let (ct, h) = growth(&mut b, x[2], x[3], ct, a);
    let sum = b.reduce(ReduceOp::Sum, product, vec![0]);
    let ct_a = b.mul(sum, h);
    b.finish(&[ct, ct_a])
}

/// step time, y, parity, a -> accept, running, reached, step time', y', parity'
fn attempt(rows: usize) -> Func {
    let s = scalar(DType::F64);
    let (mut b, x) = Builder::with_inputs(&[s.clone(), f64s([rows]), s.clone(), s]);
    let (step_time, y, parity, a) = (x[0], x[1], x[2], x[3]);
    let (dt, one, half) =
        (b.splat_like(step_time, DT), b.splat_like(step_time, 1.0), b.splat_like(step_time, 0.5));
    let proposed = b.add(step_time, dt);
    let beyond = b.compare(CompareOp::Lt, one, proposed);
    let next = b.select(beyond, one, proposed);
    let (grown, _) = growth(&mut b, step_time, next, y, a);
    let accept = b.compare(CompareOp::Lt, half, parity);
    let step_time2 = b.select(accept, next, step_time);
    let wide = b.broadcast(accept, &Shape::from([rows]), vec![]);
    let y2 = b.select(wide, grown, y);
    let parity2 = b.sub(one, parity);
    let running = b.compare(CompareOp::Lt, step_time2, one);
    let reached = b.compare(CompareOp::Eq, step_time2, one);
    b.finish(&[accept, running, reached, step_time2, y2, parity2])
}

fn solve_op(rows: usize, policy: Policy) -> Op {
    Op::Solve(Arc::new(Solve {
        attempt: attempt(rows),
        step: step(rows),
        inverse: None,
        num_carry: 1,
        num_ext: 1,
        num_own: 0,
        num_first: 0,
        taps: Taps::default(),
        policy,
    }))
}

/// Inserts a backward pass; returns ct_y0 and ct_a.
fn back(b: &mut Builder, rows: usize, [schedule, tape, y0, a, ct]: [NodeId; 5]) -> [NodeId; 2] {
    let (num_carry, num_states, num_sums) = (1, 1, 1);
    let step = Some(step(rows));
    let l = Replay { step, is_reversed: true, num_carry, num_states, num_sums, ..Replay::new(bwd(rows)) };
    let places = l.places();
    let all = b.push(Op::Replay(Arc::new(l)), &[schedule, tape, y0, ct, a], None);
    [places.carry[0], places.sums[0]].map(|k| b.proj(all, k))
}

/// expected, y0, a, ct -> y1, y1 of the scan, and ct_y0, ct_a of each backward pass.
fn gradient(rows: usize, policy: Policy, passes: usize) -> Func {
    let s = scalar(DType::F64);
    let (mut b, x) = Builder::with_inputs(&[scalar(DType::U32), f64s([rows]), s, f64s([rows])]);
    let zero = b.splat_like(x[2], 0.0);
    let solved = b.push(solve_op(rows, policy), &[x[0], zero, x[1], zero, x[2]], None);
    let out = b.projections(solved);
    let (y1, schedule, tape) = (out[0], out[2], out[3]);
    let scan = Op::Replay(Arc::new(Replay { num_carry: 1, policy, ..Replay::new(step(rows)) }));
    let scanned = b.push(scan, &[schedule, x[1], x[2]], None);
    let again = b.proj(scanned, 0);
    let mut outputs = vec![y1, again];
    for pass in 0..passes {
        let ct = b.scale(x[3], 1.0 + pass as f64);
        outputs.extend(back(&mut b, rows, [schedule, tape, x[1], x[2], ct]));
    }
    b.finish(&outputs)
}

fn inputs(expected: u32) -> Vec<Array> {
    let mut rng = Rng(3);
    let (y, ct) = (rng.array(&f64s([ROWS])), rng.array(&f64s([ROWS])));
    vec![Array::scalar(DType::U32, expected.into()), y, Array::scalar(DType::F64, 0.8), ct]
}

/// The lengths of the steps.
fn lengths() -> Vec<f64> {
    let (mut t, mut out) = (0.0, vec![]);
    while t < 1.0 {
        let next = (t + DT).min(1.0);
        out.push(next - t);
        t = next;
    }
    out
}

#[test]
fn the_gradient_of_a_search_is_that_of_its_accepted_steps() {
    let (h, x) = (lengths(), inputs(0));
    let (y0, a, ct) = (x[1].to_f64(), 0.8, x[3].to_f64());
    let product: f64 = h.iter().map(|h| 1.0 + a * h).product();
    let by_a: f64 = h.iter().map(|h| h * product / (1.0 + a * h)).sum();
    let dot: f64 = y0.iter().zip(&ct).map(|(y, c)| y * c).sum();
    for level in Level::available() {
        let plan = Plan::compile(&gradient(ROWS, Policy::Direct, 1), level);
        let out = run(&plan, &x);
        for i in 0..ROWS {
            assert!((out[0].to_f64()[i] - y0[i] * product).abs() < 1e-13);
            assert!((out[2].to_f64()[i] - ct[i] * product).abs() < 1e-13);
        }
        assert_eq!(bits(&out[0]), bits(&out[1]), "the scan must give the search's end to the bit");
        assert!((out[3].to_f64()[0] - dot * by_a).abs() < 1e-12);
    }
}

#[test]
fn every_number_of_checkpoints_gives_the_same_bits_and_counts() {
    let n = lengths().len();
    let plan = Plan::compile(&gradient(ROWS, Policy::Direct, 2), Level::detect());
    let want: Vec<_> = run(&plan, &inputs(0)).iter().map(bits).collect();
    for slots in 1..=n + 1 {
        for expected in [0, n as u32, 3, 100] {
            let policy = Policy::Checkpoint(Checkpoints::Count(slots));
            let plan = Plan::compile(&gradient(ROWS, policy, 2), Level::detect());
            let got: Vec<_> = run(&plan, &inputs(expected)).iter().map(bits).collect();
            assert_eq!(got, want, "{slots} slots, expected {expected} steps");
        }
    }
}

fn counted(plan: &Plan, x: &[Array]) -> Counters {
    let mut out: Vec<Array> =
        plan.output_types().iter().map(|t| Array::zeros(t.dtype(), t.shape().clone())).collect();
    let mut ws = Workspace::new();
    for _ in 0..2 {
        plan.run_arrays(&mut ws, &x.iter().collect::<Vec<_>>(), &mut out);
    }
    ws.counters()
}

#[test]
fn counters_tell_attempts_accepted_kept_and_recomputed_steps() {
    let n = lengths().len();
    let of = |policy, passes| {
        counted(&Plan::compile(&gradient(ROWS, policy, passes), Level::detect()), &inputs(0))
    };
    let Counters { attempts, accepted, recomputed, states_kept_max, .. } = of(Policy::Direct, 2);
    assert_eq!((attempts, accepted, recomputed, states_kept_max), (2 * n as u64, n as u64, 0, n));
    let one = of(Policy::Checkpoint(Checkpoints::Count(1)), 1);
    assert_eq!((one.recomputed, one.states_kept_max), ((n * (n - 1) / 2) as u64, 1));
    let bytes = of(Policy::Checkpoint(Checkpoints::Bytes(64 * 4)), 1);
    assert_eq!(bytes.states_kept_max, 4);
    assert_eq!(of(Policy::Checkpoint(Checkpoints::Auto), 1).recomputed, 0);
    // Nothing is stored because the tape is not read.
    assert_eq!(of(Policy::Direct, 0).states_kept_max, 0);
}

/// row0, y0 [rows], ct [rows], a -> y1 [rows], ct_y0 [rows], ct_a, row0 per row
fn tile(rows: usize) -> Func {
    let s = scalar(DType::F64);
    let types = [scalar(DType::U32), f64s([rows]), f64s([rows]), s];
    let (mut b, x) = Builder::with_inputs(&types);
    let zero = b.splat_like(x[3], 0.0);
    let expected = b.splat(DType::U32, Shape::scalar(), 0.0);
    let policy = Policy::Checkpoint(Checkpoints::Count(3));
    let solved = b.push(solve_op(rows, policy), &[expected, zero, x[1], zero, x[3]], None);
    let out = b.projections(solved);
    let ct = back(&mut b, rows, [out[2], out[3], x[1], x[3], x[2]]);
    let row0 = b.cast(x[0], DType::F64);
    let row0 = b.broadcast(row0, &Shape::from([rows]), vec![]);
    b.finish(&[out[0], ct[0], ct[1], row0])
}

fn tiled(rows: usize, tile_rows: usize) -> Func {
    let (mut b, x) = Builder::with_inputs(&[f64s([rows]), f64s([rows]), scalar(DType::F64)]);
    let tail = rows % tile_rows;
    let outs = vec![TileOut::Rows, TileOut::Rows, TileOut::Sum, TileOut::Rows];
    let op = Op::Tiles(Arc::new(Tiles {
        rows,
        tile: tile_rows,
        body: tile(tile_rows),
        tail: (tail > 0).then(|| tile(tail)),
        num_rowed: 2,
        outs,
    }));
    let t = b.push(op, &x, None);
    let out = b.projections(t);
    b.finish(&out)
}

#[test]
fn tiles_give_the_same_bits_on_any_number_of_threads() {
    for (rows, tile_rows) in [(100, 50), (103, 10), (7, 7), (64, 1), (0, 4)] {
        let func = tiled(rows, tile_rows);
        let mut rng = Rng(9);
        let x = [rng.array(&f64s([rows])), rng.array(&f64s([rows])), Array::scalar(DType::F64, 0.8)];
        let plan = Plan::compile(&func, Level::detect());
        let of = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| (run(&plan, &x), counted(&plan, &x)))
        };
        let (one, counts) = of(1);
        for threads in [2, 3] {
            let (more, again) = of(threads);
            assert_eq!(one.iter().map(bits).collect::<Vec<_>>(), more.iter().map(bits).collect::<Vec<_>>());
            assert_eq!(counts, again);
        }
        let num_tiles = rows.div_ceil(tile_rows) as u64;
        assert_eq!(counts.accepted, num_tiles * lengths().len() as u64);
        let product: f64 = lengths().iter().map(|h| 1.0 + 0.8 * h).product();
        for i in 0..rows {
            assert!((one[0].to_f64()[i] - x[0].to_f64()[i] * product).abs() < 1e-12);
            assert!((one[1].to_f64()[i] - x[1].to_f64()[i] * product).abs() < 1e-12);
            assert_eq!(one[3].to_f64()[i], (i / tile_rows * tile_rows) as f64);
        }
        let by_a: f64 = lengths().iter().map(|h| h * product / (1.0 + 0.8 * h)).sum();
        let dot: f64 = x[0].to_f64().iter().zip(x[1].to_f64()).map(|(y, c)| y * c).sum();
        assert!((one[2].to_f64()[0] - dot * by_a).abs() < 1e-11);
    }
}

#[test]
fn a_search_without_an_accepted_step_gives_its_start_and_a_zero_gradient() {
    let mut func = None;
    let s = scalar(DType::F64);
    let (mut b, x) = Builder::with_inputs(&[s.clone(), f64s([ROWS]), s.clone(), s]);
    let never = b.splat(DType::Bool, Shape::scalar(), 0.0);
    let attempt = b.finish(&[never, never, never, x[0], x[1], x[2]]);
    let solve = Solve {
        attempt,
        step: step(ROWS),
        inverse: None,
        num_carry: 1,
        num_ext: 1,
        num_own: 0,
        num_first: 0,
        taps: Taps::default(),
        policy: Policy::Direct,
    };
    let (mut b, x) = Builder::with_inputs(&[f64s([ROWS]), scalar(DType::F64), f64s([ROWS])]);
    let zero = b.splat_like(x[1], 0.0);
    let expected = b.splat(DType::U32, Shape::scalar(), 0.0);
    let solved = b.push(Op::Solve(Arc::new(solve)), &[expected, zero, x[0], zero, x[1]], None);
    let out = b.projections(solved);
    let ct = back(&mut b, ROWS, [out[2], out[3], x[0], x[1], x[2]]);
    func.replace(b.finish(&[out[0], ct[0], ct[1]]));
    let x = inputs(0);
    let got =
        run(&Plan::compile(&func.unwrap(), Level::detect()), &[x[1].clone(), x[2].clone(), x[3].clone()]);
    assert_eq!(
        (got[0].to_f64(), got[1].to_f64(), got[2].to_f64()),
        (x[1].to_f64(), x[3].to_f64(), vec![0.0])
    );
}

#[test]
fn a_run_allocates_nothing_once_its_workspace_has_been_used() {
    let policy = Policy::Checkpoint(Checkpoints::Count(3));
    let x = inputs(0);
    let y = [x[1].clone(), x[3].clone(), x[2].clone()];
    for (func, x) in
        [(gradient(ROWS, policy, 2), &x[..]), (gradient(ROWS, Policy::Direct, 1), &x), (tiled(ROWS, 2), &y)]
    {
        let plan = Plan::compile(&func, Level::detect());
        let mut out: Vec<Array> =
            plan.output_types().iter().map(|t| Array::zeros(t.dtype(), t.shape().clone())).collect();
        let refs: Vec<&Array> = x.iter().collect();
        let mut ws = Workspace::new();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        pool.install(|| {
            plan.run_arrays(&mut ws, &refs, &mut out);
            let before = super::allocations();
            (0..3).for_each(|_| plan.run_arrays(&mut ws, &refs, &mut out));
            assert_eq!(super::allocations() - before, 0);
        });
    }
}

#[test]
fn a_search_that_nobody_replays_keeps_no_step_times() {
    let (mut b, x) = Builder::with_inputs(&[f64s([ROWS]), scalar(DType::F64)]);
    let (zero, unknown) = (b.splat_like(x[1], 0.0), b.splat(DType::U32, [], 0.0));
    let solved = b.push(solve_op(ROWS, Policy::Direct), &[unknown, zero, x[0], zero, x[1]], None);
    let y1 = b.proj(solved, 0);
    let plan = Plan::compile(&b.finish(&[y1]), Level::detect());
    let x = [inputs(0)[1].clone(), inputs(0)[2].clone()];
    let (mut ws, mut out) = (Workspace::of(&plan), [Array::zeros(DType::F64, [ROWS])]);
    plan.run_arrays(&mut ws, &x.each_ref(), &mut out);
    assert!(ws.counters().accepted > 1 && ws.counters().states_kept_max == 0);
    assert_eq!(ws.num_step_times(), 1, "only the first step time");
}
