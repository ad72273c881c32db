//! Parameters that are differentiated and replaced in every iteration, eagerly and jitted, on one thread and several.

use super::watch::{Report, Watch, on_threads};
use flowline::nn::prelude::*;
use flowline::tensor::map_rows;

/// The loss over tiles of rows, distributed over threads.
fn loss(model: &Mlp, x: &Tensor) -> Tensor {
    let (_, sums) = map_rows(std::slice::from_ref(x), 32, |rows| {
        (vec![], vec![(model.forward(&rows[0]) - &rows[0] * 0.5).square().sum()])
    });
    &sums[0] * (1.0 / x.shape()[0] as f64)
}

/// The model after an update by gradient descent, in new tensors.
fn descended(model: &Mlp, x: &Tensor) -> Mlp {
    let slope = grad(|model: &Mlp| loss(model, x), model);
    let mut slopes = slope.leaves().into_iter();
    model.map_leaves(|weight| weight - slopes.next().unwrap() * 0.01)
}

pub fn run(iterations: usize) -> Report {
    let several = on_threads(4, || replace(iterations));
    let blocks = several.at_end.blocks - several.at_100.blocks;
    let buffers = several.at_end.buffers as f64 - several.at_100.buffers as f64;
    let report = on_threads(1, || replace(iterations));
    report.with("blocks_more_on_4_threads", blocks as f64).with("buffers_more_on_4_threads", buffers)
}

fn replace(iterations: usize) -> Report {
    let mut watch = Watch::begin();
    let key = Key::new(0);
    let x = key.normal([128, 2]);
    let model = Mlp::new([2, 16, 2], Activation::Tanh, &key);
    let jitted = jit(|model: Mlp, x: Tensor| descended(&model, &x)).max_traces(1);
    let (mut at_once, mut compiled) = (model.clone(), model);
    for _ in 0..iterations {
        at_once = descended(&at_once, &x);
        compiled = jitted.call(compiled, &x).unwrap();
        watch.tick();
    }
    let report = watch.end(jitted.num_traces());
    let apart = at_once.leaves().into_iter().zip(compiled.leaves()).map(|(a, b)| (a - b).abs().max().item());
    report.with("apart", apart.fold(0.0, f64::max))
}

pub fn hold(report: &Report) {
    report.is_flat();
    assert_eq!(report.traces, 1);
    report.at_most("apart", 1e-4);
    report.at_most("buffers_more_on_4_threads", 0.0);
    report.at_most("blocks_more_on_4_threads", 8.0);
}
