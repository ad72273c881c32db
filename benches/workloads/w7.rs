//! W7: the flow of W4 at its initial weights: 100,000 samples, or its density on a grid, with the fixed steps of W4
//! or adaptive steps whose error is not larger.
//!
//! The value of `samples` is the mean and the standard deviation of all coordinates of samples from given base
//! points; the value of `grid` is the total probability. `max_error` is the largest difference of a coordinate or
//! log-density from solves in f64 at rtol = atol = 1e-9.

use crate::measure::{Measured, Options, Result, time};
use crate::splitmix::{SplitMix, matrix};
use crate::w4;
use flowline::cnf::extra::Chunked;
use flowline::cnf::prelude::*;
use flowline::tensor::DType;

pub const VARIANTS: &[&str] = &["samples fixed", "samples adaptive", "grid fixed", "grid adaptive"];

const SAMPLES: usize = 100_000;
/// Points along an axis of the grid, which covers [-3, 3] x [-3, 3].
const GRID: usize = 256;
/// Rows per program.
const CHUNK: usize = 4096;
/// Tolerances at which the error is smaller than that of the fixed steps; the first step spans a whole block.
const TOL: f64 = 1e-5;
const FIRST: f64 = 0.5;

type Flow = Cnf<ConcatSquash>;
type Program = Chunked<'static, Flow, Tensor>;

/// The flow in f64 with tolerances far below the precision of f32.
fn reference() -> Flow {
    let flow = w4::flow(Divergence::Exact).method(Method::Vern9).rtol(1e-9).atol(1e-9);
    flow.map_leaves(|x| x.cast(DType::F64))
}

fn largest_difference(a: &Tensor, b: &Tensor) -> f64 {
    (a.cast(DType::F64) - b).abs().max().item()
}

pub fn measure(variant: &str, options: &Options) -> Result<Measured> {
    let mut flow = w4::flow(Divergence::Exact);
    if variant.ends_with("adaptive") {
        flow = flow.rtol(TOL).atol(TOL).dt0(FIRST);
    }
    if variant.starts_with("samples") { samples(&flow, options) } else { grid(&flow, options) }
}

fn samples(flow: &Flow, options: &Options) -> Result<Measured> {
    let push: Program = Chunked::new(CHUNK, |flow: &Flow, z: &Tensor, _: &Key| flow.push_forward(z));
    let key = Key::new(0);
    let times = time(options, || {
        let z = flow.base.sample(SAMPLES, DType::F32, &key);
        push.call(flow, &z, &key)?;
        Ok(())
    })?;
    let z = matrix(&SplitMix::new(10).normals(2 * SAMPLES), [SAMPLES, 2]);
    let x = push.call(flow, &z, &key)?;
    let (numbers, truth) = (x.to_vec(), reference().push_forward(&z)?);
    let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
    let variance = numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / numbers.len() as f64;
    let measured = Measured::new(times, [mean, variance.sqrt()]);
    Ok(measured.max_error(largest_difference(&x, &truth)))
}

fn grid(flow: &Flow, options: &Options) -> Result<Measured> {
    let at = |i: usize| -3.0 + 6.0 * i as f64 / (GRID - 1) as f64;
    let points: Vec<f64> = (0..GRID * GRID).flat_map(|k| [at(k / GRID), at(k % GRID)]).collect();
    let points = matrix(&points, [GRID * GRID, 2]);
    let density: Program = Chunked::new(CHUNK, |flow: &Flow, x: &Tensor, _: &Key| flow.log_prob(x));
    let (key, mut log_prob) = (Key::new(0), Tensor::zeros([0]));
    let times = time(options, || {
        log_prob = density.call(flow, &points, &key)?;
        Ok(())
    })?;
    let cell = (6.0 / (GRID - 1) as f64).powi(2);
    let mass = log_prob.to_vec().iter().map(|l| l.exp() * cell).sum::<f64>();
    let truth = reference().log_prob(&points)?;
    Ok(Measured::new(times, [mass]).max_error(largest_difference(&log_prob, &truth)))
}
