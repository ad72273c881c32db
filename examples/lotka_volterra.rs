//! Parameters of the Lotka-Volterra equations from a hundred noisy counts, with their standard errors.
//!
//! The loss is differentiated through the solve with respect to the logarithms of the parameters, so these stay
//! positive. The fit starts at an equilibrium, p = (1, 1, 1, 1) with both populations at 1, and weights only the
//! first two units of time. The weighted range grows to all ten during training, because a fit to a whole cycle at
//! once ends with a wrong period. The weights are inputs of the program, so it is traced once. The fit recovers the
//! true p = (1.5, 1, 3, 1) to within 1.1 % and 1.2 standard errors. The standard errors come from the Gauss-Newton
//! Hessian: four forward derivatives of one solve.
//!
//! `cargo run --release --example lotka_volterra` takes a second and plots `lotka_volterra.png`.

use flowline::nn::prelude::*;
use flowline::plot::Axes;
use std::path::Path;

tree! { struct FitState { ln_p: Tensor, optimizer: OptState } }
tree! {
    /// The counts, and the weight of each time.
    struct Counts {
        /// [time].
        ts: Tensor,
        /// [time, species], prey first.
        counted: Tensor,
        /// [time].
        weight: Tensor,
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
        Tensor::stack(&[&(p.index(0) * x - p.index(1) * &met), &(p.index(3) * met - p.index(2) * y)])
    });
    Ok(field.rtol(1e-6).atol(1e-6).save_at(ts).solve(0.0, T1, Tensor::from([1.0, 1.0]))?.ys)
}

/// The mean squared error in units of the noise variance: 1 for a perfect fit.
fn loss(ln_p: &Tensor, counts: &Counts) -> flowline::Result<Tensor> {
    let off = (populations(&ln_p.exp(), &counts.ts)? - &counts.counted) * (1.0 / NOISE);
    let each = off.square().mean_axes(&[1]);
    Ok((each * &counts.weight).sum() / counts.weight.sum())
}

/// Fifty counts of each species.
fn counted(key: &Key) -> flowline::Result<Counts> {
    let ts = Tensor::from((1..=50).map(|i| T1 * f64::from(i) / 50.0).collect::<Vec<_>>());
    let noise = key.normal([50, 2]) * NOISE;
    let counted = populations(&Tensor::from(P), &ts)? + noise.cast(flowline::tensor::DType::F64);
    Ok(Counts { counted, weight: Tensor::from(vec![1.0; 50]), ts })
}

/// One standard error per parameter: the square roots of the diagonal of (J^T J)^-1 NOISE^2, for the logarithms; J
/// is the derivative of all populations.
fn standard_errors(ln_p: &Tensor, ts: &Tensor) -> [f64; 4] {
    let all = |ln_p: &Tensor| populations(&ln_p.exp(), ts).expect("the fit was solved before");
    let along = |direction: &Tensor| jvp(all, ln_p, direction).1;
    let unit = |i: usize| std::array::from_fn::<f64, 4, _>(|j| f64::from(i == j));
    let slopes = vmap(along, &Tensor::from(std::array::from_fn::<_, 4, _>(unit)));
    let jacobian = slopes.reshape([4, slopes.size() / 4]);
    let hessian = jacobian.matmul(&jacobian.transpose()).to_vec();
    let inverse = inverse(std::array::from_fn(|i| std::array::from_fn(|j| hessian[4 * i + j])));
    std::array::from_fn(|i| NOISE * inverse[i][i].sqrt() * ln_p.to_vec()[i].exp())
}

/// The inverse of a positive definite matrix, by elimination.
fn inverse(mut a: [[f64; 4]; 4]) -> [[f64; 4]; 4] {
    for k in 0..4 {
        let pivot = std::mem::replace(&mut a[k][k], 1.0);
        a[k] = a[k].map(|x| x / pivot);
        for i in (0..4).filter(|i| *i != k) {
            let factor = std::mem::replace(&mut a[i][k], 0.0);
            a[i] = std::array::from_fn(|j| a[i][j] - factor * a[k][j]);
        }
    }
    a
}

/// The results of a fit.
#[derive(Debug)]
pub struct Fit {
    /// The parameters.
    pub p: [f64; 4],
    /// The standard error of each.
    pub error: [f64; 4],
    /// The loss over all counts, in units of the noise.
    pub loss: f64,
    /// How often the update was traced.
    pub traces: usize,
}

/// Fits and plots `lotka_volterra.png`.
pub fn run(folder: &Path, updates: usize) -> flowline::Result<Fit> {
    let counts = counted(&Key::new(1))?;
    // A small beta2, so that the average of squared gradients forgets the first gradients, which are a hundred
    // times the last.
    let optimizer = Adam::new(Schedule::cosine_decay(0.05, updates as u32)).beta2(0.95).build();
    let step = jit(|state: FitState, counts: Counts| {
        let (value, slope) = value_and_grad(|ln_p| loss(ln_p, &counts), &state.ln_p)?;
        let (ln_p, optimizer) = optimizer.update(&state.ln_p, slope, state.optimizer);
        Ok((FitState { ln_p, optimizer }, value))
    })
    .max_traces(1);
    let ln_p = Tensor::from([0.0; 4]);
    let mut state = FitState { optimizer: optimizer.init(&ln_p), ln_p };
    let mut losses = Vec::new();
    for i in 0..updates {
        // From 2 units of time to all of them during the first half of the updates.
        let end = T1 * (0.2 + 1.6 * i as f64 / updates as f64);
        let weight = counts.ts.to_vec().iter().map(|t| f64::from(*t <= end)).collect::<Vec<_>>();
        let value = step.step(&mut state, Counts { weight: weight.into(), ..counts.clone() })?;
        losses.push([(i + 1) as f64, value.item()]);
    }
    let p = state.ln_p.exp();
    draw(folder, &p, &counts, losses)?;
    let found = p.to_vec();
    Ok(Fit {
        p: [found[0], found[1], found[2], found[3]],
        error: standard_errors(&state.ln_p, &counts.ts),
        loss: loss(&state.ln_p, &counts)?.item(),
        traces: step.num_traces(),
    })
}

/// The counts and the fit on the left, the loss on the right.
fn draw(folder: &Path, p: &Tensor, counts: &Counts, losses: Vec<[f64; 2]>) -> flowline::Result<()> {
    let fine = Tensor::from((0..=400).map(|i| T1 * f64::from(i) / 400.0).collect::<Vec<_>>());
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
    left.hstack(&right).save(folder.join("lotka_volterra.png"))?;
    Ok(())
}

fn main() -> flowline::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let fit = run(Path::new(&folder), 600)?;
    for (i, ((found, error), truth)) in fit.p.iter().zip(fit.error).zip(P).enumerate() {
        println!("p{i} = {found:.4} +- {error:.4}, true value {truth}");
        assert!((found - truth).abs() < 0.015 * truth, "a parameter is not found");
    }
    println!("mean squared error {:.3} noise variances, traced {} time(s)", fit.loss, fit.traces);
    println!("{folder}/lotka_volterra.png written");
    Ok(())
}

#[cfg(test)]
#[path = "../tests/examples/lotka_volterra.rs"]
mod tests;
