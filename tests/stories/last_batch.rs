//! An epoch whose number of rows is not a multiple of the batch size.
//!
//! A program is compiled per shape, so a smaller last batch needs a second program. The loader pads the batch
//! with rows of weight 0; a batch sliced by hand is compiled once and cached.

use super::watch::{Report, Watch, on_threads};
use flowline::nn::prelude::*;
use flowline::tensor::extra::MaskedBatch;
use std::time::Instant;

tree! { struct State { model: Mlp, optimizer: OptState } }

const ROWS: usize = 1_000;
const BATCH: usize = 256;

fn errors(model: &Mlp, x: &Tensor) -> Tensor {
    (model.forward(x) - x * 0.5).square().sum_last()
}

pub fn run(iterations: usize) -> Report {
    on_threads(1, || train(iterations))
}

fn train(iterations: usize) -> Report {
    let mut watch = Watch::begin();
    let key = Key::new(0);
    let data = Dataset::new(key.normal([ROWS, 4])).unwrap();
    let optimizer = Adam::new(1e-3).build();
    let init = || {
        let model = Mlp::new([4, 64, 64, 4], Activation::Tanh, &key);
        State { optimizer: optimizer.init(&model), model }
    };
    let update = |state: State, loss: &dyn Fn(&Mlp) -> Tensor| {
        let (value, grads) = value_and_grad(loss, &state.model);
        let (model, optimizer) = optimizer.update(&state.model, grads, state.optimizer);
        (State { model, optimizer }, value)
    };
    let padded = jit(|state: State, batch: MaskedBatch<Tensor>| {
        update(state, &|model| batch.mean(&errors(model, &batch.rows)))
    });
    let padded = padded.max_traces(1);
    let mut state = init();
    let (mut last_ms, mut lasts, mut epoch) = (0.0f64, 0, 0u32);
    let mut batches = data.epoch(BATCH, &key);
    for _ in 0..iterations {
        if batches.len() == 0 {
            epoch += 1;
            batches = data.epoch(BATCH, &key.fold_in(epoch));
        }
        let (begun, last) = (Instant::now(), batches.len() == 1);
        padded.step(&mut state, batches.next().unwrap()).unwrap();
        if last {
            last_ms = last_ms.max(begun.elapsed().as_secs_f64() * 1e3);
            lasts += 1;
        }
        watch.tick();
    }
    let report = watch
        .end(padded.num_traces())
        .with("last_batches", f64::from(lasts))
        .with("last_batch_ms_max", last_ms);
    drop((state, padded));

    let sliced = jit(|state: State, rows: Tensor| update(state, &|model| errors(model, &rows).mean()));
    let (mut state, all) = (init(), (0..ROWS).collect::<Vec<_>>());
    let mut ms = Vec::new();
    for rows in (0..3).flat_map(|_| all.chunks(BATCH)) {
        let begun = Instant::now();
        sliced.step(&mut state, data.rows(rows)).unwrap();
        ms.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    report
        .with("sliced_traces", sliced.num_traces() as f64)
        .with("sliced_last_batch_ms", ms[3])
        .with("sliced_again_ms", ms[7])
}

pub fn hold(report: &Report) {
    report.is_flat();
    assert_eq!((report.traces, report.get("sliced_traces")), (1, 2.0));
}
