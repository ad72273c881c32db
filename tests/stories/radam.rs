//! RAdam in a loop, jitted and eager, and a version that chooses its branch with `cond`.
//!
//! The update of RAdam has two branches, chosen by a counter. The crate's RAdam chooses with `select`; the
//! hand-written version uses `cond`, whose branch depends on a value that changes in each update. The counter is a
//! tensor, a traced `cond` contains both branches, and eager operations use cached plans.

use super::watch::{Report, Watch, on_threads};
use flowline::nn::prelude::*;
use flowline::optim::extra::RAdam;

const RATE: f64 = 1e-3;

tree! { struct Moments { m: Tensor, v: Tensor, n: Tensor } }

/// An update by Liu et al. (2020), algorithm 2, threshold 5, with the branch chosen by `cond`.
fn by_cond(x: &Tensor, g: &Tensor, state: Moments) -> (Tensor, Moments) {
    let n = state.n + 1;
    let (m, v) = (state.m * 0.9 + g * 0.1, state.v * 0.999 + g.square() * 0.001);
    let (power1, power2) = ((&n * 0.9_f64.ln()).exp(), (&n * 0.999_f64.ln()).exp());
    let limit = 2.0 / 0.001 - 1.0;
    let rho = limit - 2.0 * &n * &power2 / (1 - &power2);
    let at = ((&m / (1 - power1), &v / (1 - power2)), rho.clone());
    let update = cond(
        &rho.ge(5.0),
        &at,
        |((m, v), rho)| {
            let square = (rho - 4) * (rho - 2) * limit / ((limit - 4.0) * (limit - 2.0) * rho);
            square.sqrt() * m / (v.sqrt() + 1e-8)
        },
        |((m, _), _)| m.clone(),
    );
    (x - update * RATE, Moments { m, v, n })
}

pub fn run(iterations: usize) -> Report {
    on_threads(1, || all(iterations))
}

fn all(iterations: usize) -> Report {
    let mut watch = Watch::begin();
    let optimizer = RAdam::new(RATE).build();
    let update = |x: Tensor, state: OptState| optimizer.update(&x, x.clone(), state);
    let choose = |x: Tensor, state: Moments| by_cond(&x, &x, state);
    let (jitted, jitted_choice) = (jit(update).max_traces(1), jit(choose).max_traces(1));
    let x = Tensor::from([1.0, -2.0, 3.0]);
    let zeros = Tensor::from([0.0; 3]);
    let moments = Moments { m: zeros.clone(), v: zeros, n: 0.0.into() };
    let (mut at_once, mut compiled) = ((x.clone(), optimizer.init(&x)), (x.clone(), optimizer.init(&x)));
    let (mut chosen, mut compiled_choice) = ((x.clone(), moments.clone()), (x.clone(), moments));
    let apart = |a: &Tensor, b: &Tensor| (a - b).abs().max().item();
    let mut from_select = 0.0_f64;
    for i in 0..iterations {
        at_once = update(at_once.0, at_once.1);
        compiled = jitted.call(compiled.0, compiled.1).unwrap();
        chosen = choose(chosen.0, chosen.1);
        compiled_choice = jitted_choice.call(compiled_choice.0, compiled_choice.1).unwrap();
        // Both branches are used early; at the end all parameters are at 0.
        if i < 100 {
            from_select = from_select.max(apart(&chosen.0, &at_once.0));
        }
        watch.tick();
    }
    let report = watch.end(jitted.num_traces()).with("traces_with_cond", jitted_choice.num_traces() as f64);
    let report = report.with("apart", apart(&at_once.0, &compiled.0));
    let report = report.with("apart_with_cond", apart(&chosen.0, &compiled_choice.0));
    let report = report.with("cond_from_select", from_select);
    report.with("counter", at_once.1.get("0.count").unwrap().item())
}

pub fn hold(report: &Report) {
    report.is_flat();
    assert_eq!((report.traces, report.get("counter")), (1, report.iterations as f64));
    assert!(report.compiles <= 30, "{} compiles", report.compiles);
    report.at_most("traces_with_cond", 1.0);
    report.at_most("apart", 1e-9);
    report.at_most("apart_with_cond", 1e-9);
    report.at_most("cond_from_select", 1e-12);
}
