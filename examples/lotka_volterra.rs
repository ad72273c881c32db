//! Parameters of the Lotka-Volterra equations from a hundred noisy counts, with their standard errors.
//!
//! The loss is differentiated through the solve with respect to the logarithms of the parameters, so these stay
//! positive. The fit starts at an equilibrium, p = (1, 1, 1, 1) with both populations at 1, and weights only the
//! first two units of time. The weighted range grows to all ten during training, because a fit to a whole cycle at
//! once ends with a wrong period. The weights are a function of the index of the update. The fit recovers the
//! true p = (1.5, 1, 3, 1) to within 1.1 % and 1.2 standard errors. `covariance` computes the standard errors by
//! four forward derivatives of one solve.
//!
//! `cargo run --release --example lotka_volterra` takes a second and plots `lotka_volterra.png` and `lotka_volterra-dark.png`.

use flowline::nn::prelude::*;
use flowline::plot::Axes;
use flowline::tensor::DType::F64;
use std::path::Path;

tree! {
    /// The counts and their times.
    struct Counts {
        /// [time].
        ts: Tensor,
        /// [time, species], prey first.
        counted: Tensor,
    }
}

/// The true parameters, which generate the counts.
pub const P: [f64; 4] = [1.5, 1.0, 3.0, 1.0];
const NOISE: f64 = 0.1;
const T1: f64 = 10.0;

/// Prey and predators at the given times, starting from one of each: x' = p0 x - p1 x y, y' = p3 x y - p2 y.
fn populations(p: &Tensor, ts: &Tensor) -> flowline::Result<Tensor> {
    let field = Ode::new(|_t, u: &Tensor| {
        let (x, y) = (u.index(0), u.index(1));
        let met = &x * &y;
        Tensor::stack(&[p.index(0) * x - p.index(1) * &met, p.index(3) * met - p.index(2) * y])
    });
    Ok(field.rtol(1e-6).atol(1e-6).save_at(ts).solve(0.0, T1, Tensor::from([1.0, 1.0]))?.ys)
}

/// Model minus counts, in standard deviations of the noise: [time, species].
fn residuals(p: &Tensor, counts: &Counts) -> flowline::Result<Tensor> {
    Ok((populations(p, &counts.ts)? - &counts.counted) * (1.0 / NOISE))
}

/// The mean squared error up to the time `end`, in units of the noise variance: 1 for a perfect fit.
fn loss(ln_p: &Tensor, counts: &Counts, end: &Tensor) -> flowline::Result<Tensor> {
    let each = residuals(&ln_p.exp(), counts)?.square().mean_axes(&[1]);
    let weight = counts.ts.le(end).cast(F64);
    Ok((each * &weight).sum() / weight.sum())
}

/// Fifty counts of each species.
fn counted(key: &Key) -> flowline::Result<Counts> {
    let ts = Tensor::linspace(T1 / 50.0, T1, 50);
    let noise = key.normal([50, 2]) * NOISE;
    let counted = populations(&Tensor::from(P), &ts)? + noise.cast(F64);
    Ok(Counts { ts, counted })
}

/// The results of the fit.
#[derive(Debug)]
pub struct Found {
    /// The parameters.
    pub p: [f64; 4],
    /// The standard error of each.
    pub error: [f64; 4],
    /// The loss over all counts, in units of the noise.
    pub loss: f64,
}

/// Fits and plots `lotka_volterra.png` and `lotka_volterra-dark.png`.
pub fn run(folder: &Path, updates: usize) -> flowline::Result<Found> {
    let counts = counted(&Key::new(1))?;
    // A small beta2, so that the average of squared gradients forgets the first gradients, which are a hundred
    // times the last.
    let optimizer = Adam::new(Schedule::cosine_decay(0.05, updates as u32)).beta2(0.95).build();
    let fit = Fit::new(Tensor::from([0.0; 4]), counts.clone()).updates(updates).optimizer(optimizer);
    let fit = fit.run(|ln_p, counts, update| {
        // From 2 units of time to all of them during the first half of the updates.
        let part = update.index.cast(F64) * (1.0 / updates as f64);
        loss(ln_p, counts, &(T1 * (0.2 + 1.6 * part)))
    })?;
    let p = fit.model.exp();
    let losses = (1..).zip(&fit.losses).map(|(i, loss)| [f64::from(i), *loss]).collect();
    draw(folder, &p, &counts, losses)?;
    let covariance = covariance(|p| residuals(p, &counts), &p)?.with_variance(1.0);
    let four = |x: &Tensor| std::array::from_fn(|i| x.index(i).item());
    let loss = loss(&fit.model, &counts, &T1.into())?.item();
    Ok(Found { p: four(&p), error: four(&covariance.standard_errors()), loss })
}

/// The counts and the fit on the left, the loss on the right.
fn draw(folder: &Path, p: &Tensor, counts: &Counts, losses: Vec<[f64; 2]>) -> flowline::Result<()> {
    let fine = Tensor::linspace(0.0, T1, 401);
    let against = |ts: &Tensor, us: &Tensor, species: usize| -> Vec<[f64; 2]> {
        ts.to_vec().into_iter().zip(us.column(species).to_vec()).map(|(t, u)| [t, u]).collect()
    };
    let fit = populations(p, &fine)?;
    let curve = |species| [against(&fine, &fit, species)];
    let dots = |species| against(&counts.ts, &counts.counted, species);
    let left = Axes::new("t", "population").title("Counts (dots) and the fit").size(1000, 640);
    let left = left.lines("prey", &curve(0), 2).lines("predators", &curve(1), 1);
    let left = left.scatter("", &dots(0), 2).scatter("", &dots(1), 1).render()?;
    let right = Axes::new("updates", "mean squared error / noise").log_y().size(640, 640);
    let right = right.title("The loss over a growing time span").lines("", &[losses], 0).render()?;
    let figure = left.hstack(&right);
    figure.save(folder.join("lotka_volterra.png"))?;
    figure.dark().save(folder.join("lotka_volterra-dark.png"))?;
    Ok(())
}

fn main() -> flowline::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let fit = run(Path::new(&folder), 600)?;
    for (i, ((found, error), truth)) in fit.p.iter().zip(fit.error).zip(P).enumerate() {
        println!("p{i} = {found:.4} +- {error:.4}, true value {truth}");
        assert!((found - truth).abs() < 0.015 * truth, "a parameter is not found");
    }
    println!("mean squared error {:.3} noise variances", fit.loss);
    println!("{folder}/lotka_volterra.png and lotka_volterra-dark.png written");
    Ok(())
}

#[cfg(test)]
#[path = "../tests/examples/lotka_volterra.rs"]
mod tests;
