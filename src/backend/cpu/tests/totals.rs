//! Sums over the trips of a body: deferred products, and products that are added at once.

use super::{Rng, f32s};
use crate::array::Array;
use crate::backend::cpu::Workspace;
use crate::backend::cpu::address::{Address, Bound, Env};
use crate::backend::cpu::plan::{Plan, Trips};
use crate::backend::cpu::run::bind::Body;
use crate::backend::cpu::run::step::Step;
use crate::backend::cpu::run::totals;
use crate::backend::cpu::run::totals::Total;
use crate::graph::{Builder, Func, ReduceOp};
use crate::simd::Level;
use std::ptr::null_mut;

/// x `[rows, m]`, d `[rows, n]`, w `[n, n]` captured -> x^T (d w) + x^T d, the sum of d over its rows, and 2
/// x^T d.
fn body(rows: usize, [m, n]: [usize; 2]) -> Func {
    let (mut b, x) = Builder::with_inputs(&[f32s([rows, m]), f32s([rows, n]), f32s([n, n])]);
    let turned = b.dot(x[1], x[2], false, false);
    let (first, second) = (b.dot(x[0], turned, true, false), b.dot(x[0], x[1], true, false));
    let sum = b.add(first, second);
    let rows = b.reduce(ReduceOp::Sum, x[1], vec![0]);
    let twice = b.scale(x[1], 2.0);
    let alone = b.dot(x[0], twice, true, false);
    b.finish(&[sum, rows, alone])
}

/// The sums over the trips, computed by a plan and by plain loops in f64.
fn sums(plan: &Plan, rows: usize, [m, n]: [usize; 2], trips: usize) -> [Vec<f64>; 2] {
    let mut rng = Rng(7);
    let mut draw = |shape: [usize; 2]| rng.array(&f32s(shape));
    let w = draw([n, n]);
    let data: Vec<[Array; 2]> = (0..trips).map(|_| [draw([rows, m]), draw([rows, n])]).collect();
    let sizes = [m * n, n, m * n];
    let mut got = sizes.map(|size| vec![f32::NAN; size]);
    // SAFETY: arrays and results outlive the runs, and only the runs use the results until then.
    let bound = |at: *mut u8, bytes: usize| unsafe { Bound::new(at, bytes) };
    let bases: Vec<Bound> = got.iter_mut().map(|v| bound(v.as_mut_ptr().cast(), 4 * v.len())).collect();
    // SAFETY: the totals below name three bases.
    let env = unsafe { Env::new(bases.as_ptr(), null_mut(), null_mut()) };
    let totals =
        [0, 1, 2].map(|k| Total { at: Address { base: k, offset: 0 }, bytes: sizes[k as usize] * 4 });
    let mut ws = Workspace::of(plan);
    let mut run = Body { plan, ws: &mut ws };
    let input = |a: &Array| bound(a.data().as_ptr().cast_mut(), a.bytes());
    run.input(2, input(&w));
    run.pack();
    run.start_totals(&totals, 0, env);
    for [x, d] in &data {
        run.input(0, input(x));
        run.input(1, input(d));
        run.run();
    }
    run.finish_totals();
    let mut want = vec![0.0; 2 * m * n + n];
    let w = w.to_f64();
    for [x, d] in data.iter().map(|pair| pair.each_ref().map(Array::to_f64)) {
        for r in 0..rows {
            for j in 0..n {
                let dw: f64 = (0..n).map(|p| d[r * n + p] * w[p * n + j]).sum();
                for i in 0..m {
                    want[i * n + j] += x[r * m + i] * (dw + d[r * n + j]);
                    want[(m + 1 + i) * n + j] += 2.0 * x[r * m + i] * d[r * n + j];
                }
                want[m * n + j] += d[r * n + j];
            }
        }
    }
    [got.concat().into_iter().map(f64::from).collect(), want]
}

#[test]
fn what_trips_give_is_added_up() {
    for level in Level::available() {
        for (rows, shape) in
            [1, 3, 4, 5, 40].into_iter().flat_map(|r| [[5, 7], [1, 7], [5, 1]].map(|s| (r, s)))
        {
            let plan = Plan::of_body(&body(rows, shape), level, Trips { captured: 2..3, sums: 0..3 });
            for trips in [0, 1, 2, 8, 9, 33] {
                let [got, want] = sums(&plan, rows, shape, trips);
                for (g, w) in got.iter().zip(&want) {
                    let near = (g - w).abs() <= 1e-6 * (rows * trips + 1) as f64;
                    assert!(near, "got {g}, expected {w}: {rows} rows, {shape:?}, {trips} trips, {level:?}");
                }
            }
        }
    }
}

#[test]
fn products_of_few_rows_are_put_off_and_others_add_as_they_go() {
    let kinds = |rows| {
        let plan = Plan::of_body(&body(rows, [5, 7]), Level::detect(), Trips { captured: 2..3, sums: 0..3 });
        let count = |is: fn(&Step) -> bool| plan.0.steps.iter().filter(|s| is(s)).count();
        let put_off = count(|s| matches!(s, Step::DeferredProduct(_)));
        (put_off, count(|s| matches!(s, Step::Dot(_))), plan.0.rings.len(), plan.0.packed.len())
    };
    assert_eq!(kinds(1), (3, 1, 2, 1));
    assert_eq!(kinds(4), (3, 1, 2, 1));
    assert_eq!(kinds(5), (0, 4, 0, 1));
}

#[test]
fn a_chain_of_sums_starts_with_the_total() {
    let f = totals::with_totals(&body(6, [5, 7]), 0..3);
    let types = [f32s([5, 7]), f32s([7]), f32s([5, 7])];
    assert_eq!(f.input_types()[3..], types);
    let sum = f.node(f.outputs()[0]);
    let first = f.node(sum.args[0]);
    assert_eq!(first.args[0], f.inputs()[3], "{:?}", f.nodes());
}
