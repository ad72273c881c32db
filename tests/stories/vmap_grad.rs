//! The gradient of a mean over examples, which could use a copy of the parameters' gradient per example: 500 times
//! 18,448 values.
//!
//! Three programs with this number of parameters. The first writes out the batch axis: the likelihood of a flow
//! over rows. The second maps a loss of one example with `vmap` and differentiates its mean: batching moves the
//! axis into the operations, and the products of the gradient contract over it. The third maps the gradient
//! itself, which needs a copy per example. Its examples come in tiles of [`TILE`], chosen so that a tile's
//! copies stay below 2 MB, and a tile returns their sum.

use super::watch::{Report, Watch, on_threads};
use flowline::cnf::prelude::*;
use flowline::memory;
use flowline::tensor::extra::num_elements;
use flowline::tensor::map_rows;

const EXAMPLES: usize = 500;
const STEPS: usize = 10;
/// Examples whose gradients are live at once per thread: 20 x 18,448 x 4 bytes is 1.5 MB.
const TILE: usize = 20;

type Flow = Cnf<ConcatSquash>;

/// Two blocks of three hidden layers of 64, ten steps of Tsit5 each, exact divergence.
fn flow(key: &Key) -> Flow {
    let [a, b] = key.split();
    let blocks = vec![ConcatSquash::new(2, [64, 64, 64], &a), ConcatSquash::new(2, [64, 64, 64], &b)];
    Cnf::from_blocks(blocks).t1(0.5).fixed_steps(STEPS)
}

fn gradient(flow: &Flow, x: &Tensor) -> flowline::Result<Flow> {
    let loss = |flow: &Flow| Ok(-flow.log_prob(x)?.mean());
    Ok(value_and_grad(loss, flow)?.1)
}

/// The loss of one example, [37] to [4].
fn example_loss(model: &Mlp, (x, y): &(Tensor, Tensor)) -> Tensor {
    (model.forward(x) - y).square().sum()
}

/// The gradient of the mean of mapped losses.
fn of_mapped(model: &Mlp, xs: &Tensor, ys: &Tensor) -> Mlp {
    grad(|model: &Mlp| vmap(|one| example_loss(model, one), &(xs.clone(), ys.clone())).mean(), model)
}

/// The mean of mapped gradients.
fn mapped(model: &Mlp, xs: &Tensor, ys: &Tensor) -> Mlp {
    let (_, sums) = map_rows(&[xs.clone(), ys.clone()], TILE, |rows| {
        let each = |one: &(Tensor, Tensor)| grad(|model: &Mlp| example_loss(model, one), model);
        let grads = vmap(each, &(rows[0].clone(), rows[1].clone()));
        (vec![], grads.leaves().iter().map(|g| g.sum_axes(&[0])).collect())
    });
    model.with_leaves(sums.iter().map(|sum| sum * (1.0 / EXAMPLES as f64)))
}

/// Workspace of a plan, the states that its loops store, and the workspace of the bodies that run inside it.
fn planned(plan: &flowline::__internal::backend::PlanReport) -> usize {
    plan.arena_bytes + plan.kept_bytes(STEPS)
}

pub fn run(iterations: usize) -> Report {
    let of = |num_threads: usize, iterations: usize, flow: fn(&Key) -> Flow| {
        on_threads(num_threads, move || differentiate(iterations, flow(&Key::new(0))))
    };
    let two = of(2, 3, flow).get("measured_bytes");
    let narrow = of(2, 3, |key| flow(key).rows_per_tile(32)).get("measured_bytes");
    let maps = on_threads(2, || differentiate_maps(3));
    let mut report = of(1, iterations, flow);
    report.measured.extend(maps);
    report.with("measured_bytes_on_2_threads", two).with("measured_bytes_on_2_threads_tile_32", narrow)
}

/// Peak bytes of a call beyond those live before, including the results.
fn measured<T>(call: impl FnOnce() -> T) -> f64 {
    let before = memory::live_bytes();
    memory::reset_peak();
    call();
    (memory::peak_bytes() - before) as f64
}

/// Both programs with `vmap`: planned and measured bytes, and the difference between their gradients.
fn differentiate_maps(iterations: usize) -> Vec<(&'static str, f64)> {
    let key = Key::new(3);
    let model = Mlp::new([37, 116, 116, 4], Activation::Tanh, &key);
    let (xs, ys) = (key.fold_in(1).normal([EXAMPLES, 37]), key.fold_in(2).normal([EXAMPLES, 4]));
    let whole = jit(|model: Mlp, xs: Tensor, ys: Tensor| of_mapped(&model, &xs, &ys)).max_traces(1);
    let each = jit(|model: Mlp, xs: Tensor, ys: Tensor| mapped(&model, &xs, &ys)).max_traces(1);
    let args = (model.clone(), xs.clone(), ys.clone());
    let plans = [whole.plan(&args).unwrap(), each.plan(&args).unwrap()].map(|plan| planned(&plan) as f64);
    let peak = |f: &dyn Fn() -> Mlp| (0..iterations).map(|_| measured(f)).fold(0.0, f64::max);
    let peaks = [
        peak(&|| whole.call(model.clone(), &xs, &ys).unwrap()),
        peak(&|| each.call(model.clone(), &xs, &ys).unwrap()),
    ];
    let (a, b) = (whole.call(model.clone(), &xs, &ys).unwrap(), each.call(model.clone(), &xs, &ys).unwrap());
    let apart =
        a.leaves().into_iter().zip(b.leaves()).map(|(a, b)| (a - b).abs().max().item()).fold(0.0, f64::max);
    vec![
        ("mapped_parameters", num_elements(&model) as f64),
        ("planned_bytes_of_mapped_losses", plans[0]),
        ("measured_bytes_of_mapped_losses", peaks[0]),
        ("planned_bytes_of_mapped_gradients", plans[1]),
        ("measured_bytes_of_mapped_gradients", peaks[1]),
        ("mapped_apart", apart),
    ]
}

fn differentiate(iterations: usize, flow: Flow) -> Report {
    let mut watch = Watch::begin();
    let key = Key::new(0);
    let x = key.normal([EXAMPLES, 2]);
    let jitted = jit(|flow: Flow, x: Tensor| gradient(&flow, &x)).max_traces(1);
    let planned = planned(&jitted.plan(&(flow.clone(), x.clone())).unwrap());
    let before = memory::live_bytes();
    memory::reset_peak();
    for _ in 0..iterations {
        jitted.call(flow.clone(), &x).unwrap();
        watch.tick();
    }
    let report = watch.end(jitted.num_traces());
    let peak = (report.peak_bytes - before) as f64;
    let report = report.with("parameters", num_elements(&flow) as f64).with("planned_bytes", planned as f64);
    report.with("measured_bytes", peak)
}

pub fn hold(report: &Report) {
    assert_eq!((report.traces, report.get("parameters")), (1, 18_448.0));
    assert_eq!(report.get("mapped_parameters"), 18_448.0);
    // Most of it are the stages of the steps, for the backward pass.
    report.at_most("planned_bytes", 24e6);
    report.at_most("measured_bytes", 24e6);
    // Each thread has its own workspace of the size of a tile; smaller tiles reduce it.
    report.at_most("measured_bytes_on_2_threads", 40e6);
    report.at_most("measured_bytes_on_2_threads_tile_32", 24e6);
    report.at_most("planned_bytes_of_mapped_losses", 2e6);
    report.at_most("measured_bytes_of_mapped_losses", 2e6);
    report.at_most("planned_bytes_of_mapped_gradients", 8e6);
    report.at_most("measured_bytes_of_mapped_gradients", 8e6);
    report.at_most("mapped_apart", 1e-5);
}
