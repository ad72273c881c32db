//! The notebook `notebooks/02_neural_ode.ipynb` as a program. Lines that begin with `//|` are the text of the
//! notebook, and the code between them is its cells.
//!
//! `cargo run --release --example notebook_neural_ode -- [FOLDER]` prints the output of the cells and writes their
//! figures to FOLDER.

#[path = "notebook/show.rs"]
mod shown;

use shown::show;

#[allow(clippy::too_many_lines, reason = "all cells of a notebook are in `main`")]
fn main() -> flowline::Result<()> {
    //| # Neural ordinary differential equations
    //|
    //| The data are noisy observations $y_i$ of a motion at times $t_i$. The differential equation of the motion is
    //| unknown. A neural ODE (Chen et al. 2018) uses a network with weights $\theta$ as the vector field,
    //|
    //| $$\frac{dy}{dt} = f_\theta(y), \qquad L(\theta) = \sum_i \lVert y(t_i; \theta) - y_i \rVert^2.$$
    //|
    //| An optimizer minimizes the loss $L$ with gradients that are computed through the solver.
    //|
    //| ## Data
    //|
    //| The data are 256 spirals, solutions of $\dot y = A y^3$ (the cube of each component) with
    //| $A = \begin{pmatrix} -0.1 & 2 \\ -2 & -0.1 \end{pmatrix}$. Each spiral has its own random initial state and is
    //| observed at 101 times from 0 to 5, with noise of standard deviation 0.03. The model does not use this
    //| equation.
    use flowline::nn::prelude::*;
    use flowline::plot::Axes;
    use flowline::tensor::DType::{F32, F64, U32};
    use flowline::tensor::extra::tree_summary;
    use std::time::Instant;

    fn true_field(_t: f64, y: &[f64; 2]) -> [f64; 2] {
        let [a, b] = [y[0].powi(3), y[1].powi(3)];
        [-0.1 * a + 2.0 * b, -2.0 * a - 0.1 * b]
    }

    /// n spirals, [n, 101, 2]. Their initial states lie between the circles of radius 1 and 2.
    fn spirals(n: usize, key: &Key) -> flowline::Result<Tensor> {
        let times: Vec<f64> = (0..=100).map(|i| 0.05 * f64::from(i)).collect();
        let mut ys = Vec::new();
        for draw in key.uniform([n, 2]).to_vec().chunks_exact(2) {
            let (angle, radius) = (std::f64::consts::TAU * draw[0], 1.0 + draw[1]);
            let y0 = [radius * angle.cos(), radius * angle.sin()];
            ys.extend(Ode::new(true_field).save_at(times.clone()).solve(0.0, 5.0, y0)?.ys);
        }
        Ok(Tensor::from(ys.concat()).reshape([n, 101, 2]).cast(F32))
    }

    /// The first n series of ys, [series, time, 2], as lists of points for figures.
    fn paths(ys: &Tensor, n: usize) -> Vec<Vec<[f64; 2]>> {
        (0..n).map(|i| ys.index(i).to_vec().chunks_exact(2).map(|y| [y[0], y[1]]).collect()).collect()
    }

    let key = Key::new(0);
    let [model_key, data_key, noise_key, batch_key] = key.split();
    let clean = spirals(256, &data_key)?;
    let observed = &clean + noise_key.normal([256, 101, 2]) * 0.03;
    let axes = paths(&observed, 5)
        .iter()
        .enumerate()
        .fold(Axes::new("x", "y").size(800, 800), |axes, (i, path)| axes.scatter("", path, i));
    show(&axes.title("five of the 256 series").render()?);
    //| ## The model and its loss
    //|
    //| The vector field is an MLP with two hidden layers of width 64. One solve integrates a batch of initial states
    //| and saves the solutions at `times`. Because `times` is a tensor, its values can change without a new trace.
    //| The loss is the mean, not the sum, of the squared errors.
    /// The model's solutions from the initial states y0, [n, time, 2].
    fn predict(model: &Mlp, y0: &Tensor, times: &Tensor, adjoint: Adjoint) -> flowline::Result<Tensor> {
        let field = Ode::new(|_t, y: &Tensor| model.forward(y)).rtol(1e-3).atol(1e-4).adjoint(adjoint);
        let solution = field.save_at(times).solve(0.0, times.index(times.size() - 1), y0)?;
        // In the saved values, time is the first axis.
        Ok(solution.ys.permute(&[1, 0, 2]))
    }

    /// The mean squared error over a batch ys [n, 101, 2] at the times with these indices. The solves start from the
    /// first observations.
    fn loss(model: &Mlp, ys: &Tensor, indices: &Tensor, adjoint: Adjoint) -> flowline::Result<Tensor> {
        let by_time = ys.permute(&[1, 0, 2]);
        let predicted = predict(model, &by_time.index(0), &(indices.cast(F64) * 0.05), adjoint)?;
        Ok((predicted - by_time.take(indices).permute(&[1, 0, 2])).square().mean())
    }

    /// The time indices stride, 2 stride, ..., n stride.
    fn time_indices(stride: u32, n: u32) -> Tensor {
        Tensor::from((1..=n).map(|i| i * stride).collect::<Vec<_>>())
    }

    let model = Mlp::new([2, 64, 64, 2], Activation::Tanh, &model_key);
    println!("{}", tree_summary(&model));
    let before = loss(&model, &observed, &time_indices(4, 25), Adjoint::default())?.item();
    println!("loss before training: {before:.3}");
    //| ## Gradients and stored states
    //|
    //| The backward pass needs the states of the forward pass in reverse order. Storing all states takes memory that
    //| grows with the number of steps (`Direct`). Recursive checkpointing stores $K$ states (checkpoints) and
    //| recomputes the others, which takes time. The default chooses $K$ so that the checkpoints fit into 32 MiB. This
    //| solve has few steps, so the times differ little. A checksum of the first layer's gradient shows that the bits
    //| are the same for every $K$.
    let batch = observed.slice(0, 0..32);
    for adjoint in [
        Adjoint::recursive_checkpoint(1),
        Adjoint::recursive_checkpoint(4),
        Adjoint::default(),
        Adjoint::Direct,
    ] {
        let gradient = jit(|model: Mlp, batch: Tensor| {
            let (_, grads) =
                value_and_grad(|model| loss(model, &batch, &time_indices(4, 25), adjoint), &model)?;
            Ok(grads)
        });
        gradient.call(model.clone(), &batch)?;
        let start = Instant::now();
        let grads = gradient.call(model.clone(), &batch)?;
        let checksum =
            grads.layers[0].weight.to_vec().iter().fold(0_u64, |sum, g| sum.rotate_left(5) ^ g.to_bits());
        println!("{adjoint:?}: {:.1} ms, checksum {checksum:016x}", 1e3 * start.elapsed().as_secs_f64());
    }
    //| ## Training
    //|
    //| `Fit` calls one compiled function per update: solve, gradient, clipping, Adam. It traces this function once; a
    //| second trace is an error. As long as the solution is wrong at early times, late times contribute no useful
    //| gradient. The 25 times of a batch therefore cover a quarter of the interval first, then half of it, then all
    //| of it. The index of the update is a tensor, so the times are computed in the compiled function.
    let (updates, start) = (1_500, Instant::now());
    let fit = Fit::new(model.clone(), observed.clone())
        .batch(32)
        .updates(updates)
        .optimizer(chain((clip_by_global_norm(1.0), Adam::new(Schedule::cosine_decay(1e-2, 1_500)))))
        .key(&batch_key)
        .report_every(300)
        .on_progress(|progress| println!("{progress}"))
        .run(|model, ys, update| {
            let quarter = (update.index.cast(F64) * (4.0 / updates as f64)).floor().cast(U32);
            let stride = Tensor::from([1_u32, 2, 4, 4]).take(&quarter);
            loss(model, ys, &(time_indices(1, 25) * stride), Adjoint::default())
        })?;
    println!("{updates} updates in {:.1} s", start.elapsed().as_secs_f64());

    /// The median of each 25 neighboring values, at their middle.
    fn medians(values: &[f64]) -> Vec<[f64; 2]> {
        let median = |mut part: Vec<f64>| {
            part.sort_by(f64::total_cmp);
            part[part.len() / 2]
        };
        values
            .chunks(25)
            .enumerate()
            .map(|(i, part)| [25.0 * i as f64 + 13.0, median(part.to_vec())])
            .collect()
    }
    let every = fit.losses.iter().enumerate().map(|(i, &loss)| [i as f64 + 1.0, loss]).collect();
    show(
        &Axes::new("update", "loss")
            .log_y()
            .thin_lines("each update", &[every], 0)
            .lines("median of 25 updates", &[medians(&fit.losses)], 1)
            .vline(375.5, "half of the interval")
            .vline(750.5, "all of it")
            .render()?,
    );
    //| ## Unseen series
    //|
    //| The background shows the learned vector field. The dots are five new spirals without noise, and the curves are
    //| the model's solutions from the same initial states.
    let learned = fit.model.clone();
    let unseen = spirals(64, &data_key.fold_in(1))?;
    println!(
        "mean squared error on 64 new series at all times: {:.1e}",
        loss(&learned, &unseen, &time_indices(1, 100), Adjoint::default())?.item()
    );

    let grid: Vec<f32> =
        (0..34 * 34).flat_map(|i| [i / 34, i % 34]).map(|i| i as f32 / 33.0 * 4.6 - 2.3).collect();
    let grid = Tensor::from(grid).reshape([34 * 34, 2]);
    let streamlines = Ode::new(|_t, y: &Tensor| {
        let velocity = learned.forward(y);
        let speed = velocity.square().sum_axes(&[1]).sqrt().expand_dims(1);
        velocity / (speed + 0.5)
    })
    .save_at([0.02, 0.04, 0.06, 0.08, 0.1, 0.12])
    .solve(0.0, 0.12, &grid)?
    .ys
    .permute(&[1, 0, 2]);
    let y0 = unseen.slice(0, 0..5).slice(1, 0..1).reshape([5, 2]);
    let fine_times = Tensor::from((1..=1_000).map(|i| 0.005 * f64::from(i)).collect::<Vec<_>>());
    let curves = paths(&predict(&learned, &y0, &fine_times, Adjoint::default())?, 5);
    let mut axes = Axes::new("x", "y").size(800, 800).streamlines(&paths(&streamlines, 34 * 34));
    for (i, (curve, dots)) in curves.iter().zip(paths(&unseen, 5)).enumerate() {
        axes = axes.lines("", std::slice::from_ref(curve), i).scatter("", &dots, i);
    }
    show(&axes.title("new series: true solution (dots), learned solution (curves)").render()?);
    //| ## Extrapolation
    //|
    //| The data end at $t = 5$. The vector field does not depend on $t$, so a solve can continue beyond this time,
    //| but its errors accumulate. Near $t = 20$ the amplitude of the learned solution is far too small.
    let long_times: Vec<f64> = (1..=400).map(|i| 0.05 * f64::from(i)).collect();
    let start = y0.index(0).to_vec();
    let truth = Ode::new(true_field).save_at(long_times.clone()).solve(0.0, 20.0, [start[0], start[1]])?.ys;
    let times = Tensor::from(long_times.clone());
    let predicted = predict(&learned, &y0, &times, Adjoint::default())?.index(0).to_vec();
    let true_x: Vec<[f64; 2]> = long_times.iter().zip(&truth).map(|(&t, y)| [t, y[0]]).collect();
    let predicted_x: Vec<[f64; 2]> =
        long_times.iter().zip(predicted.chunks_exact(2)).map(|(&t, y)| [t, y[0]]).collect();
    show(
        &Axes::new("t", "x")
            .title("extrapolation: the data end at t = 5")
            .size(1200, 500)
            .scatter("true solution", &true_x, 0)
            .lines("learned solution", &[predicted_x], 1)
            .render()?,
    );
    //| Next: [`03_density`](03_density.ipynb) learns vector fields that transport densities.
    Ok(())
}
