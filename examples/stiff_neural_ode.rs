//! A stiff neural ODE: a network learns Robertson's reaction from fifty states over ten decades of time.
//!
//! The concentrations and their rates of change differ by orders of magnitude, so the equations and the loss are scaled
//! (Kim, Ji, Deng, Ma and Rackauckas 2021, Stiff neural ordinary differential equations). With y_scale, the largest
//! value of each component, `dy/dt = y_scale / t_scale * network(y / y_scale)`, and the loss is the mean of
//! |y - data| / y_scale. In the paper, t_scale is the length of the interval. Here it is one time per component:
//! y_scale over the largest rate of change in the data, which gives 25, 9e-4 and 25. The outputs of the network then
//! have the order of 1. Its inputs are clamped, because the solution of an untrained network can otherwise grow
//! without bound.
//!
//! After training, `Rodas5P` takes 53 steps from 0 to 1e5; `Tsit5` takes 900 steps from 0 to 1 alone. At 49 times between
//! the times of the data, the mean error is at most 0.4 % of the largest value of each substance, and the largest
//! error is 2.8 %.
//!
//! `cargo run --release --example stiff_neural_ode -- [FOLDER]` takes ten seconds and plots `stiff_neural_ode.png` and
//! `stiff_neural_ode-dark.png`.

use flowline::nn::prelude::*;
use flowline::plot::Axes;
use flowline::tensor::DType::F64;
use std::path::Path;

tree! {
    /// States at the times of the data, of shapes [time] and [time, substance].
    struct Series { ts: Tensor, ys: Tensor }
}

/// The units of the equations: one number per substance.
struct Scales {
    y: Tensor,
    t: Tensor,
}

/// n times from 10^first to 10^last, at equal ratios.
fn times(first: f64, last: f64, n: usize) -> Tensor {
    (Tensor::linspace(first, last, n) * std::f64::consts::LN_10).exp()
}

/// Robertson's reaction at the given times.
fn series(ts: Tensor) -> flowline::Result<Series> {
    let ode = Ode::new(|_t, y: &[f64; 3]| {
        let (change, last) = (0.04 * y[0] - 1e4 * y[1] * y[2], 3e7 * y[1] * y[1]);
        [-change, change - last, last]
    });
    let ode = ode.method(Method::Rodas5P).rtol(1e-8).atol([1e-12, 1e-16, 1e-12]).save_at(ts.to_vec());
    let ys = ode.solve(0.0, ts.index(ts.size() - 1).item(), [1.0, 0.0, 0.0])?.ys;
    Ok(Series { ys: Tensor::from_vec([ts.size(), 3], ys.into_flattened()), ts })
}

/// The scales of the data: the largest value and the shortest time scale of each substance.
fn scales(data: &Series) -> Scales {
    let n = data.ts.size();
    let y = data.ys.max_axes(&[0]);
    let between = |x: &Tensor| x.slice(0, 1..n) - x.slice(0, 0..n - 1);
    let rates = between(&data.ys).abs() / between(&data.ts).expand_dims(1);
    Scales { t: &y / rates.max_axes(&[0]), y }
}

/// The learned solution at the given times, and the number of steps.
fn solve(model: &Mlp, scales: &Scales, ts: &Tensor) -> flowline::Result<(Tensor, Tensor)> {
    let units = &scales.y / &scales.t;
    let (low, high) = (Tensor::from(-0.1), Tensor::from(1.1));
    let field = Ode::new(|_t, y: &Tensor| {
        let x = (y / &scales.y).maximum(&low).minimum(&high);
        model.forward(&x.expand_dims(0)).index(0) * &units
    });
    let field = field.method(Method::Rodas5P).rtol(1e-4).atol([1e-6, 1e-10, 1e-6]).save_at(ts);
    let solution = field.solve(0.0, ts.index(ts.size() - 1), Tensor::from([1.0, 0.0, 0.0]))?;
    Ok((solution.ys, solution.stats.num_accepted))
}

/// The absolute errors in units of the scales: [time, substance].
fn errors(model: &Mlp, scales: &Scales, data: &Series) -> flowline::Result<Tensor> {
    Ok((solve(model, scales, &data.ts)?.0 - &data.ys).abs() / &scales.y)
}

/// The errors at times that were not trained on, in units of the scales, and the steps of a solve.
#[derive(Debug)]
pub struct Found {
    /// The mean error of each substance.
    pub mean: [f64; 3],
    /// The largest error of each substance.
    pub largest: [f64; 3],
    /// The accepted steps.
    pub num_steps: f64,
}

/// Trains and plots `stiff_neural_ode.png` and `stiff_neural_ode-dark.png`.
pub fn run(folder: &Path, updates: usize, report: impl FnMut(String)) -> flowline::Result<Found> {
    let data = series(times(-5.0, 5.0, 50))?;
    // In the middle between the times of the data, on the logarithmic axis.
    let half = 5.0 / 49.0;
    let unseen = series(times(-5.0 + half, 5.0 - half, 49))?;
    let scales = scales(&data);
    // Six hidden layers of five units, as in the paper.
    let model = Mlp::new([3, 5, 5, 5, 5, 5, 5, 3], Activation::Silu, &Key::new(0));
    let model = model.cast_floats(F64);
    let optimizer =
        chain((clip_by_global_norm(1.0), Adam::new(Schedule::cosine_decay(5e-3, updates as u32))));
    let fit = Fit::new(model, data.clone()).updates(updates).optimizer(optimizer);
    let mut report = report;
    let fit = fit.on_progress(|progress| report(progress.to_string()));
    let fit = fit.run(|model, data, _| Ok(errors(model, &scales, data)?.mean()))?;
    let losses = (1..).zip(&fit.losses).map(|(i, loss)| [f64::from(i), *loss]).collect();
    draw(folder, &fit.model, &scales, &data, losses)?;
    let errors = errors(&fit.model, &scales, &unseen)?;
    let three = |x: Tensor| std::array::from_fn(|i| x.index(i).item());
    let (_, num_steps) = solve(&fit.model, &scales, &data.ts)?;
    Ok(Found {
        mean: three(errors.mean_axes(&[0])),
        largest: three(errors.max_axes(&[0])),
        num_steps: num_steps.item(),
    })
}

/// The data and the learned solution on the left, the loss on the right.
fn draw(
    folder: &Path,
    model: &Mlp,
    scales: &Scales,
    data: &Series,
    losses: Vec<[f64; 2]>,
) -> flowline::Result<()> {
    let fine = times(-5.0, 5.0, 400);
    let (learned, _) = solve(model, scales, &fine)?;
    let against = |ts: &Tensor, ys: &Tensor, substance: usize| -> Vec<[f64; 2]> {
        let ys = (ys / &scales.y).column(substance);
        ts.to_vec().into_iter().zip(ys.to_vec()).map(|(t, y)| [t, y]).collect()
    };
    let axes = Axes::new("t", "concentration / y_scale").title("States (dots) and the learned solution");
    let mut left = axes.log_x().size(1000, 640);
    for (i, name) in ["a", "b", "c"].into_iter().enumerate() {
        left = left.lines(name, &[against(&fine, &learned, i)], i);
        left = left.scatter("", &against(&data.ts, &data.ys, i), i);
    }
    let right = Axes::new("updates", "mean |error| / y_scale").log_y().size(640, 640);
    let right = right.title("The loss").lines("", &[losses], 0).render()?;
    let figure = left.render()?.hstack(&right);
    figure.save(folder.join("stiff_neural_ode.png"))?;
    figure.dark().save(folder.join("stiff_neural_ode-dark.png"))?;
    Ok(())
}

fn main() -> flowline::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let found = run(Path::new(&folder), 6_000, |progress| println!("{progress}"))?;
    println!("{} steps; errors at unseen times, relative to the largest value:", found.num_steps);
    for (i, name) in ["a", "b", "c"].into_iter().enumerate() {
        println!("{name}: mean {:.1e}, largest {:.1e}", found.mean[i], found.largest[i]);
        assert!(found.largest[i] < 0.1, "the reaction is not learned");
    }
    println!("{folder}/stiff_neural_ode.png and stiff_neural_ode-dark.png written");
    Ok(())
}

#[cfg(test)]
#[path = "../tests/examples/stiff_neural_ode.rs"]
mod tests;
