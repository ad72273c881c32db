//! RAdam in a loop, jitted and not.
//!
//! Its rule has two branches and a counter that chooses. The choice is a `select`, the counter a tensor, and
//! operations outside `jit` run by plans that are kept.

use super::watch::{Report, Watch, on_threads};
use flowline::prelude::*;

pub fn run(iterations: usize) -> Report {
    on_threads(1, || both(iterations))
}

fn both(iterations: usize) -> Report {
    let mut watch = Watch::begin();
    let optimiser = radam(1e-3);
    let update = |x: Tensor, state: OptState| optimiser.update(&x, x.clone(), state);
    let jitted = jit(update).max_traces(1);
    let x = Tensor::from([1.0, -2.0, 3.0]);
    let (mut at_once, mut compiled) = ((x.clone(), optimiser.init(&x)), (x.clone(), optimiser.init(&x)));
    for _ in 0..iterations {
        at_once = update(at_once.0, at_once.1);
        compiled = jitted.call(compiled.0, compiled.1).unwrap();
        watch.tick();
    }
    let report = watch.end(jitted.traces());
    let apart = (&at_once.0 - &compiled.0).abs().max().item();
    report.with("counter", at_once.1.get("0.count").unwrap().item()).with("apart", apart)
}

pub fn hold(report: &Report) {
    report.is_flat();
    assert_eq!((report.traces, report.get("counter")), (1, report.iterations as f64));
    assert!(report.compiles <= 30, "{} compiles", report.compiles);
    report.at_most("apart", 1e-9);
}
