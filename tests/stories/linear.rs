//! A wide model called in a loop, its output fed back, with and without gradients.
//!
//! If every call extended a graph until a gradient is computed, a prediction loop would use more and more
//! memory. Here no buffer outlives its call.

use super::watch::{Report, Watch, on_threads};
use flowline::nn::prelude::*;

pub fn run(iterations: usize) -> Report {
    on_threads(1, || predict(iterations))
}

fn predict(iterations: usize) -> Report {
    let mut watch = Watch::begin();
    let key = Key::new(0);
    let model = Mlp::new([4, 8096, 4], Activation::Tanh, &key);
    let jitted = jit(|model: Mlp, x: Tensor| model.forward(&x)).max_traces(1);
    let x = key.normal([1, 4]);
    let (mut at_once, mut compiled, mut with_gradient) = (x.clone(), x.clone(), x);
    for _ in 0..iterations {
        at_once = model.forward(&at_once);
        compiled = jitted.call(model.clone(), compiled).unwrap();
        let loss = |model: &Mlp| {
            let y = model.forward(&with_gradient);
            (y.square().sum(), y)
        };
        let ((_, y), _) = value_and_grad(loss, &model);
        with_gradient = y;
        watch.tick();
    }
    let report = watch.end(jitted.num_traces());
    let apart = (&at_once - &compiled).abs().max().item() + (&at_once - &with_gradient).abs().max().item();
    report.with("apart", apart)
}

pub fn hold(report: &Report) {
    report.is_flat();
    assert_eq!(report.traces, 1);
    report.at_most("apart", 1e-3);
}
