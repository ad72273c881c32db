//! The notebook `notebooks/03_density.ipynb` as a program. Lines that begin with `//|` are the text of the notebook,
//! and the code between them is its cells.
//!
//! `cargo run --release --example notebook_density -- [FOLDER]` prints the output of the cells and writes their
//! figures to FOLDER.

#[path = "notebook/show.rs"]
mod shown;

use shown::show;

#[allow(clippy::too_many_lines, reason = "all cells of a notebook are in `main`")]
fn main() -> flowline::Result<()> {
    //| # Densities as flows
    //|
    //| Sample points from a normal density, and let them follow a vector field, $\dot x = f(t, x)$. The points at
    //| time $t$ have a density $p$. Along each trajectory, $\log p$ changes at a known rate (Chen et al. 2018,
    //| equation 8):
    //|
    //| $$\frac{d \log p(x(t))}{dt} = -\operatorname{div} f(t, x(t)).$$
    //|
    //| A vector field therefore defines a density at the end time, $t = 1$. The log-density of a point follows from
    //| the start of its trajectory and the integral of the divergence along the trajectory. Such a model is called a
    //| continuous normalizing flow. Training fits the vector field so that the flow maps noise to data.
    //|
    //| ## The target density
    //|
    //| The target is a pinwheel with five arms, whose density and entropy are known. No model has a mean negative
    //| log-likelihood (NLL) below the entropy.
    use flowline::cnf::extra::ProbeDistribution;
    use flowline::cnf::{Cnf, Divergence};
    use flowline::data::{Points, ToyDensity};
    use flowline::nn::ConcatSquash;
    use flowline::nn::prelude::*;
    use flowline::plot::{self, Axes, ColorScale, Extent, Heatmap};
    use flowline::tensor::extra::tree_summary;
    use flowline::train::Trainer;
    use std::time::Instant;

    type Flow = Cnf<ConcatSquash>;
    let key = Key::new(0);
    let [model_key, data_key, training_key, probe_key, sample_key] = key.split();
    let pinwheel = ToyDensity::Pinwheel.sample(200_000, &mut data_key.rng());
    let frame = Extent { x: [-4.0, 4.0], y: [4.0, -4.0] };
    println!("entropy {:.4} nats", ToyDensity::Pinwheel.entropy_nats());
    show(&plot::extra::histogram("200,000 samples of the pinwheel", &pinwheel, frame, None)?);
    //| ## An untrained flow
    //|
    //| The vector field has three hidden layers and an output layer. Functions of $t$ scale and shift the output of
    //| each layer. The field defines a density even without training, and this density integrates to 1. The sum over
    //| a grid on $[-6, 6]^2$ confirms this.
    let untrained: Flow = Cnf::new(ConcatSquash::new(2, [64, 64, 64], &model_key));
    println!("{}", tree_summary(&untrained));

    /// The centers of the n x n cells of a grid on the square [-half, half]^2, row by row from the top.
    fn cells(n: usize, half: f64) -> Vec<[f64; 2]> {
        let center = |i: usize| half * ((2 * i + 1) as f64 / n as f64 - 1.0);
        (0..n * n).map(|i| [center(i % n), -center(i / n)]).collect()
    }

    /// The density at the center of each cell.
    fn on_grid(flow: &Flow, n: usize, half: f64) -> flowline::Result<Vec<f64>> {
        let centers = Tensor::from(cells(n, half).concat()).reshape([n * n, 2]);
        Ok(flow.log_prob(&centers)?.exp().to_vec())
    }

    let total = on_grid(&untrained, 120, 6.0)?.iter().sum::<f64>() * (12.0_f64 / 120.0).powi(2);
    println!("total probability {total:.6}");
    //| ## Maximum likelihood
    //|
    //| For each data point $x_1$, the solver integrates backward from $t = 1$ to the noise $x_0$ at $t = 0$, and
    //| integrates the divergence along the way. $p_0$ is the normal density. Training minimizes the mean over the
    //| data of
    //|
    //| $$-\log p(x_1) = -\log p_0(x_0) + \int_0^1 \operatorname{div} f \, dt.$$
    //|
    //| The gradient of this loss is computed through the solve. `Fit` draws batches and random keys, and calls one
    //| compiled function per update. The KL divergence between the target density and the density of the flow measures the error of
    //| the flow. It is estimated on 4,000 held-out points, which are used for nothing else, and is printed with its
    //| standard error.
    let data = Tensor::from(pinwheel.concat()).reshape([200_000, 2]).cast(flowline::tensor::DType::F32);
    let held_out = ToyDensity::Pinwheel.sample(4_000, &mut data_key.fold_in(1).rng());
    let truth = ToyDensity::Pinwheel.density();
    let rows = Tensor::from(held_out.concat()).reshape([4_000, 2]);
    let log_p: Vec<f64> = held_out.iter().map(|&x| truth.log_prob(x)).collect();

    /// The mean and the standard deviation of numbers.
    fn mean_and_deviation(x: &[f64]) -> (f64, f64) {
        let n = x.len() as f64;
        let mean = x.iter().sum::<f64>() / n;
        (mean, (x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt())
    }

    /// Estimates the KL divergence from p to q: the mean of log p - log q over points sampled from p, with its
    /// standard error.
    fn kl_divergence(log_p: &[f64], log_q: &[f64]) -> String {
        let differences: Vec<f64> = log_p.iter().zip(log_q).map(|(p, q)| p - q).collect();
        let (mean, deviation) = mean_and_deviation(&differences);
        format!("{mean:.3} ± {:.3} nats", deviation / (log_p.len() as f64).sqrt())
    }

    println!(
        "KL divergence before training: {}",
        kl_divergence(&log_p, &untrained.log_prob(&rows)?.to_vec())
    );
    /// Clips gradients; the learning rate falls from 5e-3 to 0.
    fn optimizer(updates: u32) -> Optimizer {
        chain((clip_by_global_norm(1.0), Adam::new(Schedule::cosine_decay(5e-3, updates))))
    }

    let (updates, start) = (200, Instant::now());
    let fit = Fit::new(untrained.clone(), data.clone())
        .batch(512)
        .updates(updates)
        .optimizer(optimizer(200))
        .key(&training_key)
        .run(|flow, x, update| flow.nll_loss(x, &update.key))?;
    let likelihood_flow = fit.model.clone();
    println!("{updates} updates in {:.1} s", start.elapsed().as_secs_f64());
    println!("KL divergence: {}", kl_divergence(&log_p, &likelihood_flow.log_prob(&rows)?.to_vec()));
    let numbers: Vec<f64> = (1..=updates).map(|i| i as f64).collect();
    show(&Axes::new("update", "NLL (nats)").line("", &numbers, &fit.losses).render()?);
    //| ## Flow matching
    //|
    //| Flow matching (Lipman et al. 2023) needs no solves in training. It samples noise $x_0$, a data point $x_1$ and
    //| a time $t$. A point that moves from $x_0$ to $x_1$ on a straight path has the velocity $x_1 - x_0$. The vector
    //| field is fitted to this velocity by least squares:
    //|
    //| $$L(\theta) = \mathbb E \, \lVert f_\theta(t, (1 - t) x_0 + t x_1) - (x_1 - x_0) \rVert^2.$$
    //|
    //| The flow of the minimizer maps the normal density to the density of the data. An update takes one evaluation
    //| of the field instead of dozens, so a hundred times as many updates take a similar time.
    let (updates, start) = (20_000, Instant::now());
    let fit = Fit::new(untrained.clone(), data.clone())
        .batch(512)
        .updates(updates)
        .optimizer(optimizer(20_000))
        .key(&training_key)
        .run(|flow: &Flow, x, update| flow.flow_matching_loss(x, &update.key))?;
    let matching_flow = fit.model.clone();
    println!("{updates} updates in {:.1} s", start.elapsed().as_secs_f64());
    println!("KL divergence: {}", kl_divergence(&log_p, &matching_flow.log_prob(&rows)?.to_vec()));
    //| ## The learned densities
    //|
    //| The figure shows three densities on one color scale: the true density, the density learned by maximum
    //| likelihood, and the density learned by flow matching.
    let n = 200;
    let true_values: Vec<f64> = cells(n, 4.0).into_iter().map(|x| truth.log_prob(x).exp()).collect();
    let values = [true_values, on_grid(&likelihood_flow, n, 4.0)?, on_grid(&matching_flow, n, 4.0)?];
    fn heatmap(values: &[f64], frame: Extent) -> Heatmap<'_> {
        Heatmap { values, rows: 200, cols: 200, frame }
    }
    show(&plot::density_comparison(
        &[
            ("true density", &heatmap(&values[0], frame)),
            ("maximum likelihood", &heatmap(&values[1], frame)),
            ("flow matching", &heatmap(&values[2], frame)),
        ],
        ColorScale::of(&heatmap(&values[0], frame)),
    )?);
    //| The next figure shows 12,000 samples at six times, from the noise at $t = 0$ to the pinwheel at $t = 1$.
    let trajectories = matching_flow.sample_trajectories(12_000, &sample_key, 6)?;
    let mut panels = Vec::new();
    for i in 0..6 {
        panels.push(trajectories.index(i).to_vec().chunks_exact(2).map(|p| [p[0], p[1]]).collect::<Vec<_>>());
    }
    show(&plot::flow_panels(
        &panels.iter().enumerate().map(|(i, p)| (i as f64 / 5.0, &p[..])).collect::<Vec<_>>(),
        frame,
    )?);
    //| ## Estimating the divergence
    //|
    //| The exact divergence takes one directional derivative of $f$ per dimension. Hutchinson's estimate,
    //| $e^\top (\partial f / \partial x) e$ with a vector $e$ of random signs (a probe), takes one directional
    //| derivative in any number of dimensions. Its expected value is the divergence. In two dimensions the exact
    //| divergence is cheap, so the estimate can be compared with it. The estimate of $\log p$ has no bias, and its
    //| standard deviation is proportional to $1 / \sqrt{n}$ for $n$ probes.
    let exact = matching_flow.log_prob(&rows)?;
    for num_probes in [1, 4, 16] {
        let estimator = matching_flow
            .clone()
            .divergence(Divergence::Hutchinson { probe: ProbeDistribution::Rademacher, num_probes });
        let estimate = estimator.log_prob_estimate(&rows, &probe_key.fold_in(num_probes as u32))?;
        let errors = (estimate - &exact).to_vec();
        let (mean, deviation) = mean_and_deviation(&errors);
        println!(
            "{num_probes:2} probes: mean error {mean:+.4} ± {:.4} nats, standard deviation {deviation:.3} nats",
            deviation / 4_000_f64.sqrt()
        );
    }
    //| ## Training with `Trainer`
    //|
    //| `train::Trainer` trains by flow matching. It averages the weights,
    //| selects the best weights on validation points, and observes a time limit. The points can have any unit. The
    //| command `flowline train points.npy` does the same for points in a file.
    let learned = Trainer::new(Points::from_rows(pinwheel.clone())?).time_limit(40.0).run()?;
    let log_probs = learned.log_prob(&held_out)?;
    println!("KL divergence: {}", kl_divergence(&log_p, &log_probs));
    show(&learned.density_figure(300)?);
    //| The next cell prints the log-densities of four held-out points, in the units of the data, and the true values.
    for (x, log_prob) in held_out.iter().zip(log_probs).take(4) {
        println!("log p({:+.3}, {:+.3}) = {log_prob:+.3}, true value {:+.3}", x[0], x[1], truth.log_prob(*x));
    }
    //| Next: in [`04_images`](04_images.ipynb) each point is an image.
    Ok(())
}
