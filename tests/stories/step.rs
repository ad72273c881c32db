//! An update of training with an adaptive solve inside. No buffer remains after all values are dropped.

use super::watch::{Live, Report, Watch, on_threads};
use flowline::memory;
use flowline::nn::prelude::*;

tree! { struct State { model: Mlp, optimizer: OptState, update: Tensor } }

fn loss(model: &Mlp, y0: &Tensor) -> flowline::Result<Tensor> {
    let field = Ode::new(|_t, y: &Tensor| model.forward(y)).rtol(1e-3).atol(1e-4);
    let end = field.adjoint(Adjoint::recursive_checkpoint(3)).solve(0.0, 1.0, y0)?.y1;
    Ok((end - y0 * 0.5).square().mean())
}

pub fn run(iterations: usize) -> Report {
    on_threads(1, || {
        // The first run allocates what is created once per process.
        train(1);
        memory::clear_caches();
        let before = Live::now();
        let report = train(iterations);
        memory::clear_caches();
        let after = Live::now();
        let report = report.with("buffers_left", after.buffers as f64);
        report.with("blocks_left", (after.blocks - before.blocks) as f64)
    })
}

fn train(iterations: usize) -> Report {
    let mut watch = Watch::begin();
    let optimizer = chain((clip_by_global_norm(1.0), AdamW::new(Schedule::cosine_decay(1e-3, 3_000))));
    let step = jit(|state: State, key: Key| {
        let y0 = key.fold_in(&state.update).normal([40, 2]);
        let (value, grads) = value_and_grad(|model| loss(model, &y0), &state.model)?;
        let (model, optimizer) = optimizer.update(&state.model, grads, state.optimizer);
        Ok((State { model, optimizer, update: state.update + 1 }, value))
    });
    let step = step.max_traces(1);
    let key = Key::new(0);
    let model = Mlp::new([2, 16, 2], Activation::Tanh, &key);
    let mut state = State { optimizer: optimizer.init(&model), model, update: 0.into() };
    for _ in 0..iterations {
        step.step(&mut state, key.clone()).unwrap();
        watch.tick();
    }
    watch.end(step.num_traces()).with("counter", state.update.item())
}

pub fn hold(report: &Report) {
    report.is_flat();
    assert_eq!((report.traces, report.get("counter")), (1, report.iterations as f64));
    report.at_most("buffers_left", 0.0);
    // One block is left: the report itself.
    report.at_most("blocks_left", 1.0);
}
