//! Passes preserve results.

use super::*;
use crate::graph::tests::arbitrary::{Recipe, function};
use crate::graph::{Node, Op, ReduceOp, Replay, TileOut, Tiles, UnaryOp};
use crate::transform::{erase_stop_gradient, hoist, merge_tiles, optimize, simplify, vjp_into};
use std::sync::Arc;

/// Asserts that elements are equal up to the error `tol`, relative for numbers above 1. NaN equals NaN, and 0
/// equals -0.
pub(super) fn assert_same(got: &[Array], want: &[Array], tol: f64, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (k, (g, w)) in got.iter().zip(want).enumerate() {
        assert_eq!((g.shape(), g.dtype()), (w.shape(), w.dtype()), "{what}");
        for (g, w) in g.to_f64().into_iter().zip(w.to_f64()) {
            let close = (g - w).abs() <= tol * w.abs().max(1.0);
            assert!(g == w || close || (g.is_nan() && w.is_nan()), "{what}, output {k}: {g} is not {w}");
        }
    }
}

/// Random functions, their gradients, and the forward derivatives of the gradients.
pub(super) fn samples(seeds: u64) -> impl Iterator<Item = (String, Func, Vec<Array>)> {
    (0..seeds).flat_map(|seed| {
        let float = if seed % 3 == 0 { DType::F32 } else { DType::F64 };
        let recipe = Recipe {
            ops: 10 + seed as usize % 30,
            float,
            loops: seed % 2 == 0,
            short: false,
            singular: false,
        };
        let (f, x) = function(seed, recipe);
        let outs: Vec<usize> = (0..f.num_outputs()).filter(|&k| f.output_type(k).is_float()).collect();
        let wrt = [0, 1, 2, 3, 4, 6];
        let g = vjp(&f, &outs, &wrt).expect("a first derivative");
        let mut draws = Draws::new(seed + 1000);
        let u: Vec<Array> = outs.iter().map(|&k| draws.array(f.output_type(k))).collect();
        let dx: Vec<Array> = wrt.iter().map(|&k| draws.array(f.input_type(k))).collect();
        let (gx, hx) = ([&x[..], &u].concat(), [&x[..], &u, &dx].concat());
        let h = jvp(&g, &wrt);
        [
            (format!("seed {seed}"), f, x),
            (format!("gradient, seed {seed}"), g, gx),
            (format!("hessian, seed {seed}"), h, hx),
        ]
    })
}

#[test]
fn random_functions_have_right_gradients() {
    for seed in 0..200 {
        let (f, x) =
            function(seed, Recipe { ops: 8, float: DType::F64, loops: false, short: false, singular: false });
        let outs: Vec<usize> = (0..f.num_outputs()).filter(|&k| f.output_type(k).is_float()).collect();
        let wrt = [0, 1, 2, 3, 4, 6];
        let mut draws = Draws::new(seed);
        let u: Vec<Array> = outs.iter().map(|&k| draws.array(f.output_type(k))).collect();
        let dx: Vec<Array> = wrt.iter().map(|&k| draws.array(f.input_type(k))).collect();
        let g = eval(&vjp(&f, &outs, &wrt).unwrap(), &[&x[..], &u].concat()).split_off(f.num_outputs());
        let dy = eval(&jvp(&f, &wrt), &[&x[..], &dx].concat()).split_off(f.num_outputs());
        let (l, r) = (inner(&g, &dx), inner(&u, &dy));
        assert!((l - r).abs() <= 1e-10 * (1.0 + l.abs()), "seed {seed}: {l} is not {r}");
    }
}

#[test]
fn simplification_keeps_the_meaning() {
    let (mut before, mut after) = (0, 0);
    for (what, f, x) in samples(80) {
        let s = simplify(&f);
        before += f.nodes().len();
        after += s.nodes().len();
        // Sums of equal terms are rounded once; all other results are bit-equal.
        let tol = if f.input_type(0).dtype() == DType::F32 { 1e-5 } else { 1e-13 };
        assert_same(&eval(&s, &x), &eval(&f, &x), tol, &what);
        assert_eq!(simplify(&s), s, "{what}: simplified again");
    }
    assert!(after * 10 < before * 9, "{before} nodes became {after}");
}

#[test]
fn hoisting_and_merging_keep_every_bit() {
    let mut merged = 0;
    for (what, f, x) in samples(40) {
        let want = eval(&f, &x);
        assert_same(&eval(&hoist(&f), &x), &want, 0.0, &format!("hoist, {what}"));
        let m = merge_tiles(&f);
        let tiles = |f: &Func| f.nodes().iter().filter(|n| matches!(n.op, Op::Tiles(_))).count();
        merged += tiles(&f) - tiles(&m);
        assert_same(&eval(&m, &x), &want, 0.0, &format!("merge, {what}"));
    }
    assert!(merged > 15, "{merged} tiles were merged");
}

#[test]
fn all_passes_together_keep_the_meaning() {
    for (what, f, x) in samples(40) {
        let tol = if f.input_type(0).dtype() == DType::F32 { 1e-5 } else { 1e-13 };
        assert_same(&eval(&optimize(&f), &x), &eval(&f, &x), tol, &what);
    }
}

/// All nodes, including nodes of bodies.
fn all_nodes(f: &Func) -> Vec<Node> {
    let mut all = f.nodes().to_vec();
    for node in f.nodes() {
        node.op.bodies().iter().for_each(|(_, body)| all.extend(all_nodes(body)));
    }
    all
}

pub(super) fn count(f: &Func, wanted: impl Fn(&Op) -> bool) -> usize {
    all_nodes(f).iter().filter(|n| wanted(&n.op)).count()
}

#[test]
fn a_tiled_loss_and_its_gradient_solve_once() {
    let body = |rows: usize| {
        func(
            &[&[Type::scalar(DType::U32), f64s([rows, 2])], &super::loops::capture_types()[..]].concat(),
            |b, x| {
                let zeros = b.splat(DType::F64, [rows], 0.0);
                let (trips, still) = (b.splat(DType::I32, [], 0.0), b.splat(DType::F64, [], 0.5));
                let out =
                    super::loops::insert_solve(b, rows, &[&[x[1], zeros, trips, still], &x[2..]].concat());
                let loss = b.mul(out[1], out[1]);
                vec![b.reduce(ReduceOp::Sum, loss, vec![0])]
            },
        )
    };
    let types = [&[f64s([5, 2])], &super::loops::capture_types()[..]].concat();
    let loss = func(&types, |b, x| {
        let outs = vec![TileOut::Sum];
        let t = Tiles { rows: 5, tile: 2, body: body(2), tail: Some(body(1)), num_rowed: 1, outs };
        let all = b.push(Op::Tiles(Arc::new(t)), x, None);
        let sum = b.proj(all, 0);
        vec![b.scale(sum, 0.2)]
    });
    let both = func(&types, |b, x| {
        let one = b.splat(DType::F64, [], 1.0);
        let wrt = [false, false, false, false, true];
        let (y, g) = vjp_into(b, &loss, x, &wrt, &[Some(one)]).unwrap();
        vec![y[0], g[4].unwrap()]
    });
    let tiles = |op: &Op| matches!(op, Op::Tiles(_));
    let (solves, revs) = (|op: &Op| matches!(op, Op::Solve(_)), |op: &Op| matches!(op, Op::Replay(_)));
    let fast = optimize(&both);
    // Each tiles node has a body and a tail with one search each.
    assert_eq!((count(&both, tiles), count(&both, solves)), (2, 4));
    assert_eq!((count(&fast, tiles), count(&fast, solves), count(&fast, revs)), (1, 2, 2));
    let mut draws = Draws::new(3);
    let scalar = |x| Array::scalar(DType::F64, x);
    let x = [draws.array(&f64s([5, 2])), scalar(0.1), scalar(1.0), scalar(0.07), draws.array(&f64s([2, 2]))];
    assert_same(&eval(&fast, &x), &eval(&both, &x), 1e-15, "optimized");
    // The weights are transposed once, before the tiles.
    let outside = |f: &Func| f.nodes().iter().filter(|n| matches!(n.op, Op::Transpose { .. })).count();
    assert_eq!((outside(&fast), count(&fast, |op| matches!(op, Op::Transpose { .. }))), (1, 1));
    assert_eq!(count(&fast, |op| matches!(op, Op::Dot { tb: true, .. })), 0);
}

#[test]
fn invariant_computations_leave_the_loop() {
    let f = super::loops::solved();
    let types = f.input_types();
    let g = func(&types, |b, x| {
        let sharp = b.unary(UnaryOp::Tanh, x[7]);
        let inner = b.inline(&f, &[&x[..7], &[sharp]].concat());
        vec![inner[0]]
    });
    assert_eq!(count(&hoist(&g), |op| matches!(op, Op::Transpose { .. })), 1);
    let field = |b: &mut Builder, y: NodeId, w: NodeId, s: NodeId| {
        let sharp = b.unary(UnaryOp::Tanh, w);
        let square = b.dot(sharp, w, false, false);
        let gate = b.broadcast(s, &Shape::from([3, 2]), vec![1]);
        let y = b.dot(y, square, false, false);
        b.mul(y, gate)
    };
    let flags = [Type::scalar(DType::Bool), Type::scalar(DType::Bool), f64s([]), f64s([])];
    let step = func(&[&flags[..], &[f64s([3, 2]), f64s([2, 2]), f64s([2])]].concat(), |b, x| {
        vec![field(b, x[4], x[5], x[6])]
    });
    let scan = Replay { num_carry: 1, ..Replay::new(step) };
    let g = func(&[Type::Schedule, f64s([3, 2]), f64s([2, 2]), f64s([2])], |b, x| {
        let all = b.push(Op::Replay(Arc::new(scan)), x, None);
        vec![b.proj(all, 0)]
    });
    let h = optimize(&g);
    let Some(Op::Replay(s)) = h.nodes().iter().map(|n| &n.op).find(|op| matches!(op, Op::Replay(_))) else {
        panic!("no replay")
    };
    let names: Vec<&str> = s.body.nodes().iter().map(|n| n.op.name()).filter(|n| *n != "input").collect();
    assert_eq!(names, ["broadcast", "dot", "mul"], "the product of weights moved out, the broadcast stayed");
    assert_eq!(s.num_captures(), 2, "the gate and the product");
}

#[test]
fn stopped_values_pass_once_derivatives_are_taken() {
    let f = func(&[f64s([2])], |b, x| {
        let stop = b.push(Op::StopGradient, &[x[0]], None);
        vec![b.mul(stop, x[0])]
    });
    assert_eq!(count(&simplify(&f), |op| *op == Op::StopGradient), 1);
    assert_eq!(count(&erase_stop_gradient(&f), |op| *op == Op::StopGradient), 0);
    assert_eq!(count(&optimize(&f), |op| *op == Op::StopGradient), 0);
}

#[test]
fn signatures_of_loops_shrink_to_what_is_used() {
    let f = super::loops::solved();
    let g = func(&f.input_types(), |b, x| {
        // dt and t0 = 0 are constants, which are folded in the bodies.
        let (zero, dt) = (b.splat(DType::F64, [], 0.0), b.splat(DType::F64, [], 0.25));
        let out = b.inline(&f, &[&x[..4], &[zero, x[5], dt, x[7]]].concat());
        let u = b.splat(DType::F64, [2], 1.0);
        let (_, g) = vjp_into(
            b,
            &f,
            &[&x[..4], &[zero, x[5], dt, x[7]]].concat(),
            &[false, false, false, false, false, false, false, true],
            &[None, Some(u), None, None],
        )
        .unwrap();
        vec![out[1], g[7].unwrap()]
    });
    let s = simplify(&g);
    let solves: Vec<_> = s
        .nodes()
        .iter()
        .filter_map(|n| if let Op::Solve(s) = &n.op { Some(s.clone()) } else { None })
        .collect();
    assert_eq!(solves.len(), 1, "the value and the gradient share one search");
    assert_eq!(solves[0].num_captures(), 2, "t1 and w");
    let back = super::loops::backward(&s)[0];
    // logp is an integral that the step does not read, so its cotangent is always 1 and becomes a constant.
    assert_eq!((back.num_carry, back.num_captures(), back.num_sums), (1, 2, 1));
    let mut x: Vec<Array> = {
        let mut draws = Draws::new(4);
        f.input_types().iter().map(|t| draws.array(t)).collect()
    };
    x[5] = Array::scalar(DType::F64, 1.0);
    assert_same(&eval(&s, &x), &eval(&g, &x), 0.0, "pruned");
}
