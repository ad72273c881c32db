//! W4: a flow of two blocks learns the density of an image, as in diffrax's example. An update of 1,000 points with the exact
//! divergence or one normal probe; the value is the loss of given points and probes at the initial weights.

use crate::measure::{Measured, Options, Result, time};
use crate::splitmix::{SplitMix, matrix};
use flowline::cnf::extra::ProbeDistribution;
use flowline::cnf::prelude::*;
use flowline::data::ImageDensity;
use flowline::data::extra::SamplingRule;
use flowline::tensor::Jit;
use flowline::train::Tables;

pub const VARIANTS: &[&str] = &["exact", "hutchinson"];

/// Points per update; the example takes them in two halves.
const POINTS: usize = 1000;

tree! {
    struct State { flow: Cnf<ConcatSquash>, optimizer: OptState, update: Tensor }
}

type Step = Jit<'static, (State, Tables), (State, Tensor)>;

/// The flow at its initial weights.
pub fn flow(divergence: Divergence) -> Cnf<ConcatSquash> {
    let mut draws = SplitMix::new(4);
    let mut block =
        || ConcatSquash { layers: draws.concat_squash(&[2, 64, 64, 64, 2]), activation: Activation::Tanh };
    let blocks = vec![block(), block()];
    Cnf::from_blocks(blocks).t1(0.5).fixed_steps(10).divergence(divergence)
}

fn divergence(variant: &str) -> Divergence {
    match variant {
        "hutchinson" => Divergence::hutchinson(ProbeDistribution::Gaussian),
        _ => Divergence::Exact,
    }
}

/// The image of the options with a sampling rule.
pub fn picture(options: &Options, rule: SamplingRule) -> Result<Tables> {
    Ok(Tables::new(&density(options)?.with_rule(rule)?))
}

/// The image's density.
pub fn density(options: &Options) -> Result<ImageDensity> {
    Ok(match &options.image {
        Some(file) => ImageDensity::open(file)?,
        None => ImageDensity::embedded(),
    })
}

fn step() -> (Step, Optimizer) {
    let optimizer = AdamW::new(1e-3).weight_decay(1e-5).build();
    let rule = optimizer.clone();
    let step = jit(move |state: State, tables: Tables| {
        let [draw, probe] = Key::new(2).fold_in(&state.update).split();
        let batch = tables.draw(POINTS, &draw);
        let loss = |flow: &Cnf<ConcatSquash>| {
            Ok(flow.nll_loss_with_stats(&batch.points, Some(&batch.weight), &probe)?.0)
        };
        let (value, grads) = value_and_grad(loss, &state.flow)?;
        let (flow, optimizer) = rule.update(&state.flow, grads, state.optimizer);
        Ok((State { flow, optimizer, update: state.update + 1 }, value))
    });
    (step.max_traces(1), optimizer)
}

fn begin(variant: &str, optimizer: &Optimizer) -> State {
    let flow = flow(divergence(variant));
    State { optimizer: optimizer.init(&flow), flow, update: Tensor::from(0u32) }
}

/// `-mean log p` of 2 x 500 normal points of seeds 40 and 41, the probes of both blocks of seeds 42 and 43.
fn value(flow: &Cnf<ConcatSquash>) -> Result<f64> {
    let halves = |seeds: [u64; 2]| {
        let both = seeds.map(|seed| SplitMix::new(seed).normals(POINTS)).concat();
        matrix(&both, [POINTS, 2])
    };
    let log_prob = jit(|flow: Cnf<ConcatSquash>, x: Tensor, probe: Tensor| {
        flow.log_prob_with_probes(&x, &[probe.clone(), probe])
    });
    Ok(-log_prob.call(flow.clone(), halves([40, 41]), halves([42, 43]))?.mean().item())
}

pub fn measure(variant: &str, options: &Options) -> Result<Measured> {
    let ((step, optimizer), tables) = (step(), picture(options, SamplingRule::Uniform { below: 254 })?);
    let mut state = begin(variant, &optimizer);
    let value = value(&state.flow)?;
    let times = time(options, || {
        step.step(&mut state, tables.clone())?;
        Ok(())
    })?;
    Ok(Measured::new(times, [value]))
}

/// The loss of the first update.
pub fn first(options: &Options) -> Result<f64> {
    let ((step, optimizer), tables) = (step(), picture(options, SamplingRule::Uniform { below: 254 })?);
    Ok(step.step(&mut begin("exact", &optimizer), tables)?.item())
}
