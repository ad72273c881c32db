//! Samples of one coordinate given the other: y given x = 0.8 of the toy density `moons`, which has a branch above and a
//! branch below.
//!
//! `cargo run --release --example inpaint -- [SECONDS]` trains for SECONDS (default 60), draws 10,000 rows and compares the
//! share of the upper branch and log p(x) with those of the density itself, by quadrature.
use flowline::cnf::prelude::*;

const X: f64 = 0.8;
/// Between the branches.
const BETWEEN: f64 = -0.3;

/// Trains on [`ToyDensity::Moons`]. The share of the upper branch and log p(x), of the samples and of the density, and the effective sample size.
fn run(trainer: Trainer, n: usize) -> flowline::Result<([f64; 2], [f64; 2], f64)> {
    let learned = trainer.run()?;
    let found = learned.sample_given(&[X, f64::NAN], n, &Key::new(1))?;
    let above = found.rows.chunks_exact(2).filter(|row| row[1] > BETWEEN).count() as f64 / n as f64;
    let (density, step) = (ToyDensity::Moons.density(), 1e-3);
    let at = |i: i32| (f64::from(i) + 0.5) * step;
    let mass =
        |from: i32, to: i32| (from..to).map(|i| density.log_prob([X, at(i)]).exp() * step).sum::<f64>();
    let [lower, upper] = [mass(-4000, -300), mass(-300, 4000)];
    let exact = [upper / (lower + upper), (lower + upper).ln()];
    Ok(([above, found.log_prob_given], exact, found.effective_sample_size))
}

fn main() -> flowline::Result<()> {
    let seconds = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(60.0);
    let trainer = Trainer::new(ToyDensity::Moons).time_limit(seconds);
    let ([above, log_p], [exact, exact_log_p], effective) = run(trainer, 10_000)?;
    println!("share of the upper branch at x = {X}: {above:.3}, of the density {exact:.3}");
    println!("log p(x): {log_p:.3}, of the density {exact_log_p:.3}");
    println!("effective sample size {effective:.0}");
    Ok(())
}

#[cfg(test)]
#[path = "../tests/examples/inpaint.rs"]
mod tests;
