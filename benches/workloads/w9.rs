//! W9: the density of an image by flow matching. An update of 1,024 points, with the average of the weights; the value is the
//! loss of given points at the initial weights.
//!
//! `--one "W9 gap"` trains to the end, which takes a minute. Its value is the KL divergence: the NLL of 4,000 further points under
//! the averaged weights minus the entropy, in nats.

use crate::measure::{Measured, Options, Result, time};
use crate::splitmix::{SplitMix, matrix};
use crate::w4::{density, picture};
use flowline::cnf::prelude::*;
use flowline::data::extra::SamplingRule;
use flowline::nn::FourierMlp;
use flowline::nn::extra::Buffer;
use flowline::optim::Ema;
use flowline::train::Tables;
use std::time::Instant;

pub const VARIANTS: &[&str] = &["update"];

const BATCH: usize = 1024;
const FEATURES: usize = 16;
const LOG_FREQUENCY_MAX: f64 = 2.6;
const WIDTH: usize = 82;
/// Updates over which the learning rate decays to 0.
const UPDATES: u32 = 60_000;
const HELD_OUT: usize = 4_000;

tree! {
    struct State { net: FourierMlp, average: FourierMlp, optimizer: OptState, update: Tensor }
}

fn net() -> FourierMlp {
    let mut draws = SplitMix::new(9);
    let scale = |j: usize| (LOG_FREQUENCY_MAX * j as f64 / (FEATURES - 1) as f64).exp();
    let normals = draws.normals(2 * FEATURES);
    let frequencies: Vec<f64> = normals.iter().enumerate().map(|(k, x)| x * scale(k % FEATURES)).collect();
    FourierMlp {
        frequencies: Buffer::new(matrix(&frequencies, [2, FEATURES])),
        mlp: draws.mlp(&[2 + 2 * FEATURES + 8, WIDTH, WIDTH, WIDTH, 2], Activation::Silu),
        damping: 0.0,
    }
}

/// `mean |f(t, x_t) - (x1 - x0)|^2` for normal x1 and x0 of seeds 90 and 91, t = (u + i / batch) mod 1 with u the first number
/// of seed 92.
fn value(net: &FourierMlp) -> f64 {
    let [x1, x0] = [90, 91].map(|seed| matrix(&SplitMix::new(seed).normals(2 * BATCH), [BATCH, 2]));
    let u = SplitMix::new(92).uniform();
    let t: Vec<f64> = (0..BATCH).map(|i| (u + i as f64 / BATCH as f64).fract()).collect();
    let t = matrix(&t, [BATCH, 1]);
    let velocity = net.eval(&t, &((1.0 - &t) * &x0 + &t * &x1));
    (velocity - (x1 - x0)).square().sum().item() / BATCH as f64
}

fn flow(net: FourierMlp) -> Cnf<FourierMlp> {
    Cnf::new(net)
}

/// The KL divergence: the NLL on unseen points, solved to 1e-6, minus the entropy.
fn gap(net: FourierMlp, tables: &Tables, options: &Options) -> Result<f64> {
    let points = tables.draw(HELD_OUT, &Key::new(94)).points;
    let flow = flow(net).rtol(1e-6).atol(1e-6);
    let loss = -flow.log_prob(&points)?.mean().item();
    Ok(loss - density(options)?.with_rule(SamplingRule::Default)?.entropy_nats())
}

pub fn measure(variant: &str, options: &Options) -> Result<Measured> {
    let (net, tables) = (net(), picture(options, SamplingRule::Default)?);
    let value = value(&net);
    let optimizer = chain((
        clip_by_global_norm(1.0),
        AdamW::new(Schedule::cosine_decay(3e-3, UPDATES)).weight_decay(1e-5),
    ));
    let optimized = optimizer.init(&net);
    let mut state = State { average: net.clone(), net, optimizer: optimized, update: Tensor::from(0u32) };
    let step = jit(move |state: State, tables: Tables| {
        let [draw, noise] = Key::new(0).fold_in(&state.update).split();
        let points = tables.draw(BATCH, &draw).points;
        let loss = |net: &FourierMlp| flow(net.clone()).flow_matching_loss(&points, &noise);
        let (value, grads) = value_and_grad(loss, &state.net)?;
        let (net, optimizer) = optimizer.update(&state.net, grads, state.optimizer);
        let average = Ema::new(0.999).update(&state.average, &net, &state.update);
        Ok((State { net, average, optimizer, update: state.update + 1 }, value))
    })
    .max_traces(1);
    if variant == "gap" {
        let begun = Instant::now();
        for _ in 0..UPDATES {
            step.step(&mut state, tables.clone())?;
        }
        let ms = begun.elapsed().as_secs_f64() * 1e3 / f64::from(UPDATES);
        return Ok(Measured::new((ms, vec![ms]), [gap(state.average, &tables, options)?]));
    }
    let times = time(options, || {
        step.step(&mut state, tables.clone())?;
        Ok(())
    })?;
    Ok(Measured::new(times, [value]))
}
