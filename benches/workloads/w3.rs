//! W3: fits a neural ODE to trajectories. One training step at stored weights, 32 trajectories of 100 saved times,
//! each with its own steps.
//!
//! The value is the loss at tolerances of 1e-6. At the tolerances of the training step the loss has an error of
//! 2 %, and rounding changes the steps, so that even two programs of one library differ by 1 %.

use crate::measure::{Measured, Options, Result, time};
use crate::splitmix::{SplitMix, matrix, transposed};
use flowline::adjoint::Batching;
use flowline::nn::prelude::*;
use flowline::ode::ConstantStepSize;
use flowline::optim::extra::AdaBelief;
use flowline::tensor::{Jit, map_rows};

pub const VARIANTS: &[&str] = &["step"];

const PATHS: usize = 32;
const TIMES: usize = 100;
const END: f64 = 10.0;
/// The relative tolerance of a training step.
const RTOL: f64 = 1e-3;
const ATOL: f64 = 1e-6;
const WIDTH: usize = 64;

tree! {
    /// `scale * tanh(mlp(y))`.
    struct Field { mlp: Mlp, scale: Tensor }
}
tree! { struct State { field: Field, optimizer: OptState } }

type Step = Jit<'static, (State, Tensor), (State, Tensor)>;

fn times() -> Vec<f64> {
    (0..TIMES).map(|i| END * i as f64 / (TIMES - 1) as f64).collect()
}

/// Rows per tile. One thread computes the rows of a tile in lockstep, each row with its own steps.
const TILE: usize = 16;

/// The mean squared distance to `paths` `[path, time, 2]`, each solved from its first point.
fn loss(field: &Field, paths: &Tensor, rtol: f64) -> flowline::Result<Tensor> {
    let ts = times();
    let (_, sums) = map_rows(std::slice::from_ref(paths), TILE, |rows| {
        let y0 = rows[0].slice(1, 0..1).reshape([rows[0].shape()[0], 2]);
        let ode = Ode::new(|_t, y: &Tensor| field.mlp.forward(y).tanh() * &field.scale);
        let ode =
            ode.rtol(rtol).atol(ATOL).dt0(ts[1] - ts[0]).save_at(SaveAt::ts(&ts)).batching(Batching::PerRow);
        let ys = ode.solve(0.0, END, &y0)?.ys;
        Ok((vec![], vec![(ys - rows[0].permute(&[1, 0, 2])).square().sum()]))
    })?;
    Ok(&sums[0] * (1.0 / paths.size() as f64))
}

fn step() -> (Step, Optimizer) {
    let optimizer = AdaBelief::new(3e-3).build();
    let rule = optimizer.clone();
    let step = jit(move |state: State, paths: Tensor| {
        let (value, grads) = value_and_grad(|field| loss(field, &paths, RTOL), &state.field)?;
        let (field, optimizer) = rule.update(&state.field, grads, state.optimizer);
        Ok((State { field, optimizer }, value))
    });
    (step.max_traces(1), optimizer)
}

/// The initial weights.
fn drawn() -> Field {
    let mlp = SplitMix::new(1).mlp(&[2, WIDTH, WIDTH, 2], Activation::Softplus);
    Field { mlp, scale: Tensor::from(1.0f32) }
}

/// Weights after 500 updates on the first ten times and 500 on all: `[out, in]` matrices, their biases, the scale.
fn stored() -> Field {
    let text = include_str!("w3_weights.json");
    let words = text.split(['[', ']', ',', ' ', '\n']).filter(|word| !word.is_empty());
    let mut numbers = words.map(|word| word.parse().expect("the file holds numbers"));
    let mut take = |n: usize| -> Vec<f64> { numbers.by_ref().take(n).collect() };
    let mut linear = |inputs, outputs| {
        let weight = transposed(&take(inputs * outputs), outputs, inputs);
        Linear { weight: matrix(&weight, [inputs, outputs]), bias: Some(matrix(&take(outputs), [outputs])) }
    };
    let layers = vec![linear(2, WIDTH), linear(WIDTH, WIDTH), linear(WIDTH, 2)];
    Field {
        mlp: Mlp { layers, activation: Activation::Softplus },
        scale: matrix(&numbers.collect::<Vec<_>>(), []),
    }
}

/// The trajectories to fit: `x = y / (1 + y)`, `y' = (x_1, -x_0)`, with steps of 0.1.
fn paths() -> Result<Tensor> {
    let starts: Vec<f64> = SplitMix::new(3).uniforms(2 * PATHS).iter().map(|u| 1.6 * u - 0.6).collect();
    let truth = Ode::new(|_t, y: &[f64; 2]| [y[1] / (1.0 + y[1]), -y[0] / (1.0 + y[0])]);
    let truth = truth.controller(ConstantStepSize { dt0: 0.1 }).save_at(SaveAt::ts(&times()));
    let mut all = vec![];
    for y0 in starts.chunks_exact(2) {
        all.extend(truth.solve(0.0, END, [y0[0], y0[1]])?.ys.concat());
    }
    Ok(matrix(&all, [PATHS, TIMES, 2]))
}

pub fn measure(_: &str, options: &Options) -> Result<Measured> {
    let ((step, optimizer), paths, field) = (step(), paths()?, stored());
    let begin = State { optimizer: optimizer.init(&field), field };
    let value = jit(|field: Field, paths: Tensor| loss(&field, &paths, 1e-6));
    let value = value.call(begin.field.clone(), &paths)?.item();
    let times = time(options, || {
        step.step(&mut begin.clone(), paths.clone())?;
        Ok(())
    })?;
    Ok(Measured::new(times, [value]))
}

/// The loss of the first update.
pub fn first() -> Result<f64> {
    let ((step, optimizer), field) = (step(), drawn());
    let mut state = State { optimizer: optimizer.init(&field), field };
    Ok(step.step(&mut state, paths()?)?.item())
}
