//! Times optimizer updates: `cargo bench --bench optimisers`.
//!
//! A jitted update of a tree of 100,000 f32 weights in eight leaves, on one thread. Optimizers run in turn, so that a
//! slowdown of the machine affects all of them; the result is the median of their ratios to Adam.

#[path = "common/stats.rs"]
mod stats;

use flowline::nn::prelude::*;
use flowline::optim::extra::{
    AdaBelief, Lamb, Lion, NAdam, RAdam, RmsProp, accumulate_gradients, apply_if_finite, inject_hyperparams,
};
use flowline::tensor::Jit;
use stats::median;
use std::time::Instant;

const LEAVES: usize = 8;
const SIZE: usize = 12_500;
const CALLS: usize = 20;
const ROUNDS: usize = 200;

type Weights = Vec<Tensor>;
tree! { struct State { weights: Weights, optimizer: OptState } }

/// Milliseconds of one update, one per round.
struct Timed<'f> {
    step: Jit<'f, (State, Weights), (State, Tensor)>,
    state: State,
    times: Vec<f64>,
}

fn weights(key: &Key) -> Weights {
    (0..LEAVES as u32).map(|i| key.fold_in(i).normal([SIZE])).collect()
}

fn timed(optimizer: Optimizer, model: &Weights) -> Timed<'static> {
    let state = State { weights: model.clone(), optimizer: optimizer.init(model) };
    let step = jit(move |state: State, grads: Weights| {
        let (weights, optimizer) = optimizer.update(&state.weights, grads, state.optimizer);
        (State { weights, optimizer }, Tensor::from(0.0))
    });
    Timed { step: step.max_traces(1), state, times: vec![] }
}

fn main() -> flowline::Result<()> {
    let key = Key::new(0);
    let (model, grads) = (weights(&key), weights(&key.fold_in(99)));
    let all = [
        ("adam", Adam::new(1e-3).build()),
        ("radam", RAdam::new(1e-3).build()),
        ("adamw", AdamW::new(1e-3).build()),
        ("nadam", NAdam::new(1e-3).build()),
        ("adabelief", AdaBelief::new(1e-3).build()),
        ("rmsprop", RmsProp::new(1e-3).build()),
        ("lion", Lion::new(1e-3).build()),
        ("lamb", Lamb::new(1e-3).build()),
        ("sgd, momentum", Sgd::new(1e-3).momentum(0.9).build()),
        ("skip(adam)", apply_if_finite(Adam::new(1e-3))),
        ("accumulate(adam)", accumulate_gradients(4, Adam::new(1e-3))),
        ("inject(adam)", inject_hyperparams(Adam::new(1e-3))),
    ];
    let mut all = all.map(|(name, optimizer)| (name, timed(optimizer, &model)));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool of one thread");
    pool.install(|| -> flowline::Result<()> {
        for _ in 0..ROUNDS {
            for (_, timed) in &mut all {
                let begun = Instant::now();
                for _ in 0..CALLS {
                    timed.step.step(&mut timed.state, grads.clone())?;
                }
                timed.times.push(begun.elapsed().as_secs_f64() * 1e3 / CALLS as f64);
            }
        }
        Ok(())
    })?;
    let adam = all[0].1.times.clone();
    for (name, timed) in &all {
        let ratio = median(timed.times.iter().zip(&adam).map(|(a, b)| a / b).collect());
        println!("{name:18} {:8.4} ms  {ratio:6.3} x adam", median(timed.times.clone()));
    }
    Ok(())
}
