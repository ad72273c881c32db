//! The notebook `notebooks/02_neural_ode.ipynb` as a program: lines that begin with `//|` are its text, the code
//! between them is its cells.
//!
//! `cargo run --release --example notebook_neural_ode -- [FOLDER]` prints the output of the cells and writes their
//! figures to FOLDER.

#[path = "notebook/show.rs"]
mod shown;

use shown::show;

#[allow(clippy::too_many_lines, reason = "a notebook is one story")]
fn main() -> flowline::Result<()> {
    //| # Neural ordinary differential equations
    //|
    //| The data are noisy points of a motion at some times. The differential equation of the motion is unknown. A
    //| neural ODE (Chen et al. 2018) replaces it with a network,
    //|
    //| $$\frac{dy}{dt} = f_\theta(y), \qquad L(\theta) = \sum_i \lVert y(t_i; \theta) - y_i \rVert^2,$$
    //|
    //| and learns $\theta$ by differentiating the loss through the solver.
    //|
    //| ## Data
    //|
    //| Spirals of $\dot y = A y^3$ (the cube of each component) with
    //| $A = \begin{pmatrix} -0.1 & 2 \\ -2 & -0.1 \end{pmatrix}$, each from its own initial state, at a hundred times
    //| between 0 and 5, with noise of standard deviation 0.03. The model does not use this equation.
    use flowline::nn::prelude::*;
    use flowline::plot::Axes;
    use flowline::tensor::DType::{F32, F64};
    use flowline::tensor::extra::tree_summary;
    use std::time::Instant;

    fn law(_t: f64, y: &[f64; 2]) -> [f64; 2] {
        let [a, b] = [y[0].powi(3), y[1].powi(3)];
        [-0.1 * a + 2.0 * b, -2.0 * a - 0.1 * b]
    }

    /// n spirals from between the circles of radius 1 and 2: [n, 101, 2], the start first.
    fn spirals(n: usize, key: &Key) -> flowline::Result<Tensor> {
        let times: Vec<f64> = (0..=100).map(|i| 0.05 * f64::from(i)).collect();
        let mut ys = Vec::new();
        for draw in key.uniform([n, 2]).to_vec().chunks_exact(2) {
            let (angle, radius) = (std::f64::consts::TAU * draw[0], 1.0 + draw[1]);
            let start = [radius * angle.cos(), radius * angle.sin()];
            ys.extend(Ode::new(law).save_at(times.clone()).solve(0.0, 5.0, start)?.ys);
        }
        Ok(Tensor::from(ys.concat()).reshape([n, 101, 2]).cast(F32))
    }

    /// Rows of [n, time, 2] as paths to draw.
    fn paths(ys: &Tensor, n: usize) -> Vec<Vec<[f64; 2]>> {
        (0..n).map(|i| ys.index(i).to_vec().chunks_exact(2).map(|y| [y[0], y[1]]).collect()).collect()
    }

    let key = Key::new(0);
    let [for_model, for_data, for_noise, for_batches] = key.split();
    let clean = spirals(256, &for_data)?;
    let seen = &clean + for_noise.normal([256, 101, 2]) * 0.03;
    let axes = paths(&seen, 5)
        .iter()
        .enumerate()
        .fold(Axes::new("x", "y").size(800, 800), |axes, (i, path)| axes.scatter("", path, i));
    show(&axes.title("five of the 256 series").render()?);
    //| ## The model and its loss
    //|
    //| The vector field is an MLP with two hidden layers of width 64. One solve integrates a batch of initial states
    //| and is saved at some of the times. `times` is a tensor, so its values can change from call to call without a new
    //| trace.
    /// The model's solutions from the initial states, [n, time, 2]. Time is the first axis of the values that a solve
    /// saves.
    fn follow(model: &Mlp, starts: &Tensor, times: &Tensor, adjoint: Adjoint) -> flowline::Result<Tensor> {
        let field = Ode::new(|_t, y: &Tensor| model.forward(y)).rtol(1e-3).atol(1e-4).adjoint(adjoint);
        let solution = field.save_at(times).solve(0.0, times.index(times.size() - 1), starts)?;
        Ok(solution.ys.permute(&[1, 0, 2]))
    }

    /// The mean squared error of a batch [n, 101, 2] at the time indices `which`.
    fn loss(model: &Mlp, ys: &Tensor, which: &Tensor, adjoint: Adjoint) -> flowline::Result<Tensor> {
        let by_time = ys.permute(&[1, 0, 2]);
        let followed = follow(model, &by_time.index(0), &(which.cast(F64) * 0.05), adjoint)?;
        Ok((followed - by_time.take(which).permute(&[1, 0, 2])).square().mean())
    }

    /// The first n indices of every `every`-th time.
    fn every(every: u32, n: u32) -> Tensor {
        Tensor::from((1..=n).map(|i| i * every).collect::<Vec<_>>())
    }

    let model = Mlp::new([2, 64, 64, 2], Activation::Tanh, &for_model);
    println!("{}", tree_summary(&model));
    println!("loss before training: {:.3}", loss(&model, &seen, &every(4, 25), Adjoint::default())?.item());
    //| ## Gradients and stored states
    //|
    //| The backward pass needs the states of the forward pass in reverse order. Storing all states takes memory that
    //| grows with the number of steps. Storing $K$ states (checkpoints) and recomputing the others takes time. The
    //| schedule has the minimum number of recomputed steps, and the gradient has the same bits for every $K$.
    let batch = seen.slice(0, 0..32);
    for adjoint in [
        Adjoint::recursive_checkpoint(1),
        Adjoint::recursive_checkpoint(4),
        Adjoint::default(),
        Adjoint::Direct,
    ] {
        let gradient = jit(|model: Mlp, batch: Tensor| {
            let (_, slopes) = value_and_grad(|model| loss(model, &batch, &every(4, 25), adjoint), &model)?;
            Ok(slopes)
        });
        gradient.call(model.clone(), &batch)?;
        let start = Instant::now();
        let slopes = gradient.call(model.clone(), &batch)?;
        let bits =
            slopes.layers[0].weight.to_vec().iter().fold(0_u64, |bits, w| bits.rotate_left(5) ^ w.to_bits());
        println!("{adjoint:?}: {:.1} ms, bits {bits:016x}", 1e3 * start.elapsed().as_secs_f64());
    }
    //| ## Training
    //|
    //| An update is one compiled call: solve, gradient, clipping, Adam. It is traced once. While the field is wrong at
    //| early times, late times give no useful gradient. The 25 times of a batch therefore cover a quarter of the
    //| interval first, then half, then all.
    let updates = 1_500_u32;
    let optimizer = chain((clip_by_global_norm(1.0), Adam::new(Schedule::cosine_decay(1e-2, updates))));
    let mut state = (model.clone(), optimizer.init(&model));
    let step = jit(move |(model, memory): (Mlp, OptState), (ys, which): (Tensor, Tensor)| {
        let (value, slopes) = value_and_grad(|model| loss(model, &ys, &which, Adjoint::default()), &model)?;
        let (model, memory) = optimizer.update(&model, slopes, memory);
        Ok(((model, memory), value))
    });
    let step = step.max_traces(1);
    let mut losses = Vec::new();
    let start = Instant::now();
    for (i, ys) in (0..updates).zip(Dataset::new(seen.clone())?.batches(32, &for_batches)) {
        let value = step.step(&mut state, (ys, every([1, 2, 4, 4][(4 * i / updates) as usize], 25)))?.item();
        losses.push([f64::from(i + 1), value]);
        if (i + 1) % 300 == 0 {
            println!("update {:5}  loss {value:.5}", i + 1);
        }
    }
    println!(
        "{updates} updates in {:.1} s, traced {} time(s)",
        start.elapsed().as_secs_f64(),
        step.num_traces()
    );
    show(
        &Axes::new("update", "loss")
            .title("a quarter, a half, all of the time")
            .log_y()
            .lines("", &[losses], 0)
            .render()?,
    );
    //| ## Unseen series
    //|
    //| The background is the learned vector field. Dots are five new series, curves are the model's solutions from
    //| their initial states.
    let learned = state.0.clone();
    let unseen = spirals(64, &for_data.fold_in(1))?;
    println!(
        "mean square distance on 64 new series, all times: {:.1e}",
        loss(&learned, &unseen, &every(1, 100), Adjoint::default())?.item()
    );

    let places: Vec<f32> =
        (0..34 * 34).flat_map(|i| [i / 34, i % 34]).map(|i| i as f32 / 33.0 * 4.6 - 2.3).collect();
    let places = Tensor::from(places).reshape([34 * 34, 2]);
    let strokes = Ode::new(|_t, y: &Tensor| {
        let motion = learned.forward(y);
        let speed = motion.square().sum_axes(&[1]).sqrt().expand_dims(1);
        motion / (speed + 0.5)
    })
    .save_at([0.02, 0.04, 0.06, 0.08, 0.1, 0.12])
    .solve(0.0, 0.12, &places)?
    .ys
    .permute(&[1, 0, 2]);
    let starts = unseen.slice(0, 0..5).slice(1, 0..1).reshape([5, 2]);
    let fine = Tensor::from((1..=1_000).map(|i| 0.005 * f64::from(i)).collect::<Vec<_>>());
    let curves = paths(&follow(&learned, &starts, &fine, Adjoint::default())?, 5);
    let mut axes = Axes::new("x", "y").size(800, 800).streamlines(&paths(&strokes, 34 * 34));
    for (i, (curve, dots)) in curves.iter().zip(paths(&unseen, 5)).enumerate() {
        axes = axes.lines("", std::slice::from_ref(curve), i).scatter("", &dots, i);
    }
    show(&axes.title("new series: truth (dots), learned (curves)").render()?);
    //| ## Extrapolation
    //|
    //| The data end at $t = 5$. The vector field is autonomous, so a solve can continue beyond this time, but small
    //| errors add up: near the end the amplitude of the learned spiral is far too small.
    let long: Vec<f64> = (1..=400).map(|i| 0.05 * f64::from(i)).collect();
    let first = starts.index(0).to_vec();
    let truth = Ode::new(law).save_at(long.clone()).solve(0.0, 20.0, [first[0], first[1]])?.ys;
    let guess = follow(&learned, &starts, &Tensor::from(long.clone()), Adjoint::default())?.index(0).to_vec();
    let told: Vec<[f64; 2]> = long.iter().zip(&truth).map(|(&t, y)| [t, y[0]]).collect();
    let learned_x: Vec<[f64; 2]> = long.iter().zip(guess.chunks_exact(2)).map(|(&t, y)| [t, y[0]]).collect();
    show(
        &Axes::new("t", "x")
            .title("seen up to t = 5")
            .size(1200, 500)
            .scatter("truth", &told, 0)
            .lines("learned", &[learned_x], 1)
            .render()?,
    );
    //| Next: [`03_density`](03_density.ipynb) transports whole densities instead of single points.
    Ok(())
}
