//! The notebook `notebooks/03_density.ipynb` as a program: lines that begin with `//|` are its text, the code between
//! them is its cells.
//!
//! `cargo run --release --example notebook_density -- [FOLDER]` prints the output of the cells and writes their figures
//! to FOLDER.

#[path = "notebook/show.rs"]
mod shown;

use shown::show;

#[allow(clippy::too_many_lines, reason = "a notebook is one story")]
fn main() -> flowline::Result<()> {
    //| # Densities as flows
    //|
    //| Points that are sampled from a normal density move along a vector field, $\dot x = f(t, x)$. Along each
    //| trajectory, their log-density changes at a rate that can be computed (Chen et al. 2018, equation 8):
    //|
    //| $$\frac{d \log p(x(t))}{dt} = -\operatorname{div} f(t, x(t)).$$
    //|
    //| A vector field therefore defines a density. The log-probability of a point follows from the start of its
    //| trajectory and the integral of the divergence along the trajectory. This is a continuous normalizing flow.
    //| Training finds a vector field that maps noise to data.
    //|
    //| ## The target density
    //|
    //| A pinwheel with five arms. Its density and its entropy are known. The entropy is the smallest possible mean
    //| negative log-likelihood of a model.
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
    let [for_model, for_data, for_training, for_probes, for_samples] = key.split();
    let pinwheel = ToyDensity::Pinwheel.sample(200_000, &mut for_data.rng());
    let frame = Extent { x: [-4.0, 4.0], y: [4.0, -4.0] };
    println!("entropy {:.4} nats", ToyDensity::Pinwheel.entropy_nats());
    show(&plot::extra::histogram("200,000 points of the pinwheel", &pinwheel, frame, None)?);
    //| ## An untrained flow
    //|
    //| The vector field has three hidden layers whose outputs are scaled and shifted by functions of $t$. It defines a
    //| density even without training, and this density integrates to 1. The grid below covers $[-6, 6]^2$.
    let untrained: Flow = Cnf::new(ConcatSquash::new(2, [64, 64, 64], &for_model));
    println!("{}", tree_summary(&untrained));

    /// The centers of n x n cells of [-half, half] squared, the first row on top.
    fn cells(n: usize, half: f64) -> Vec<[f64; 2]> {
        let middle = |i: usize| half * ((2 * i + 1) as f64 / n as f64 - 1.0);
        (0..n * n).map(|i| [middle(i % n), -middle(i / n)]).collect()
    }

    /// The density at the center of each cell.
    fn on_grid(flow: &Flow, n: usize, half: f64) -> flowline::Result<Vec<f64>> {
        let places = Tensor::from(cells(n, half).concat()).reshape([n * n, 2]);
        Ok(flow.log_prob(&places)?.exp().to_vec())
    }

    let mass = on_grid(&untrained, 120, 6.0)?.iter().sum::<f64>() * (12.0_f64 / 120.0).powi(2);
    println!("mass {mass:.6}");
    //| ## Maximum likelihood
    //|
    //| The solver integrates data points back to the noise, together with the divergence. Training minimizes the mean
    //| of
    //|
    //| $$-\log p(x_1) = -\log p_0(x_0) + \int_0^1 \operatorname{div} f \, dt.$$
    //|
    //| The loss is differentiated through the solve. An update is one compiled call, traced once.
    let data = Tensor::from(pinwheel.concat()).reshape([200_000, 2]).cast(flowline::tensor::DType::F32);
    let held_out = ToyDensity::Pinwheel.sample(4_000, &mut for_data.fold_in(1).rng());
    let truth = ToyDensity::Pinwheel.density();
    let their_own = held_out.iter().map(|&x| truth.log_prob(x)).sum::<f64>() / 4_000.0;

    /// The KL divergence: the mean of ln p - ln q over points of p.
    fn gap(flow: &Flow, points: &[[f64; 2]], their_own: f64) -> flowline::Result<f64> {
        let rows = Tensor::from(points.concat()).reshape([points.len(), 2]);
        Ok(their_own - flow.log_prob(&rows)?.mean().item())
    }

    println!("gap before: {:.3} nats", gap(&untrained, &held_out, their_own)?);
    let updates = 200_u32;
    let optimizer = chain((clip_by_global_norm(1.0), Adam::new(Schedule::cosine_decay(5e-3, updates))));
    let mut state = (untrained.clone(), optimizer.init(&untrained));
    let step = jit(move |(flow, memory): (Flow, OptState), (x, key): (Tensor, Key)| {
        let (value, slopes) = value_and_grad(|flow| flow.nll_loss(&x, &key), &flow)?;
        let (flow, memory) = optimizer.update(&flow, slopes, memory);
        Ok(((flow, memory), value))
    });
    let step = step.max_traces(1);
    let mut likelihood = Vec::new();
    let start = Instant::now();
    for (i, x) in (0..updates).zip(Dataset::new(data.clone())?.batches(512, &for_training)) {
        let value = step.step(&mut state, (x, for_training.fold_in(i)))?.item();
        likelihood.push([f64::from(i + 1), value]);
    }
    let by_likelihood = state.0.clone();
    println!("{updates} updates in {:.1} s", start.elapsed().as_secs_f64());
    println!("gap after: {:.3} nats", gap(&by_likelihood, &held_out, their_own)?);
    show(&Axes::new("update", "negative log-likelihood, nats").lines("", &[likelihood], 0).render()?);
    //| ## Flow matching
    //|
    //| Flow matching (Lipman et al. 2023) needs no solves in training. It samples noise $x_0$, data $x_1$ and a time.
    //| On the straight line between them the field should be $x_1 - x_0$:
    //|
    //| $$L(\theta) = \mathbb E \, \lVert f_\theta(t, (1 - t) x_0 + t x_1) - (x_1 - x_0) \rVert^2.$$
    //|
    //| The field at the minimum maps the normal density to the density of the data. An update takes one evaluation of
    //| the field instead of dozens, so a hundred times as many updates take a similar time.
    let updates = 20_000_u32;
    let optimizer = chain((clip_by_global_norm(1.0), Adam::new(Schedule::cosine_decay(5e-3, updates))));
    let mut state = (untrained.clone(), optimizer.init(&untrained));
    let step = jit(move |(flow, memory): (Flow, OptState), (x, key): (Tensor, Key)| {
        let (value, slopes) = value_and_grad(|flow: &Flow| flow.flow_matching_loss(&x, &key), &flow)?;
        let (flow, memory) = optimizer.update(&flow, slopes, memory);
        Ok(((flow, memory), value))
    });
    let step = step.max_traces(1);
    let start = Instant::now();
    for (i, x) in (0..updates).zip(Dataset::new(data.clone())?.batches(512, &for_training)) {
        step.step(&mut state, (x, for_training.fold_in(i)))?;
    }
    let flow = state.0.clone();
    println!("{updates} updates in {:.1} s", start.elapsed().as_secs_f64());
    println!("gap after: {:.3} nats", gap(&flow, &held_out, their_own)?);
    //| ## The learned densities
    //|
    //| Three densities on one color scale: the true density, and those learned by maximum likelihood and by flow
    //| matching.
    let n = 200;
    let true_values: Vec<f64> = cells(n, 4.0).into_iter().map(|x| truth.log_prob(x).exp()).collect();
    let values = [true_values, on_grid(&by_likelihood, n, 4.0)?, on_grid(&flow, n, 4.0)?];
    fn map(values: &[f64], frame: Extent) -> Heatmap<'_> {
        Heatmap { values, rows: 200, cols: 200, frame }
    }
    let scale = ColorScale::of(&map(&values[0], frame));
    let true_one = plot::density("the truth", &map(&values[0], frame), scale)?;
    let of_likelihood = plot::density("by maximum likelihood", &map(&values[1], frame), scale)?;
    let of_matching = plot::density("by flow matching", &map(&values[2], frame), scale)?;
    show(&true_one.hstack(&of_likelihood).hstack(&of_matching));
    //| Samples at six times from noise to the pinwheel:
    let way = flow.sample_trajectories(12_000, &for_samples, 6)?;
    let mut panels = Vec::new();
    for i in 0..6 {
        panels.push(way.index(i).to_vec().chunks_exact(2).map(|p| [p[0], p[1]]).collect::<Vec<_>>());
    }
    show(&plot::flow_panels(
        &panels.iter().enumerate().map(|(i, p)| (i as f64 / 5.0, &p[..])).collect::<Vec<_>>(),
        frame,
    )?);
    //| ## Estimating the divergence
    //|
    //| The exact divergence takes one derivative per dimension. Hutchinson's estimate,
    //| $e^\top (\partial f / \partial x) e$ with random signs $e$, takes one derivative in any number of dimensions,
    //| and its mean is the divergence. Two dimensions do not need the estimate, but show its properties: it has no
    //| bias, and its standard deviation falls with the square root of the number of probes.
    let rows = Tensor::from(held_out.concat()).reshape([4_000, 2]);
    let exact = flow.log_prob(&rows)?;
    for num_probes in [1, 4, 16] {
        let estimated = flow
            .clone()
            .divergence(Divergence::Hutchinson { probe: ProbeDistribution::Rademacher, num_probes });
        let off =
            (estimated.log_prob_estimate(&rows, &for_probes.fold_in(num_probes as u32))? - &exact).to_vec();
        let mean = off.iter().sum::<f64>() / 4_000.0;
        let deviation = (off.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 3_999.0).sqrt();
        println!(
            "{num_probes:2} probes: off by {mean:+.4} +- {:.4} in the mean, by {deviation:.3} a point",
            deviation / 4_000_f64.sqrt()
        );
    }
    //| ## The same with `Trainer`
    //|
    //| `train::Trainer` adds phases, averaged weights, held-out points, and a schedule that fits into a time limit. It
    //| takes points in any unit. So does the command line: `flowline train points.npy`.
    let learned = Trainer::new(Points::from_rows(pinwheel.clone())?).time_limit(40.0).run()?;
    let of_held_out = learned.log_prob(&held_out, 1e-5, 1e-5)?;
    println!("gap after: {:.3} nats", their_own - of_held_out.iter().sum::<f64>() / 4_000.0);
    show(&learned.density_figure(300)?);
    //| Points and their log-probabilities, in the units of the data:
    for (x, log_prob) in held_out.iter().zip(of_held_out).take(4) {
        println!("log p({:+.3}, {:+.3}) = {log_prob:+.3}, in truth {:+.3}", x[0], x[1], truth.log_prob(*x));
    }
    //| Next: in [`04_images`](04_images.ipynb) each point is an image.
    Ok(())
}
