//! Samples of the built-in image in a few steps: how far they are from samples of the adaptive solve.
//!
//! Both map the same points of the normal density. `cargo run --release --example few_steps -- [SECONDS]` trains for
//! SECONDS (default 60) and prints, for each number of steps, the evaluations of the vector field, the median distance in
//! pixels and the share of the samples that are more than a pixel off.
use flowline::cnf::ErrorNorm;
use flowline::cnf::prelude::*;

/// A number of steps, the median distance in pixels, and the share of samples that are more than a pixel off.
type Row = (usize, f64, f64);

/// Trains, and returns a row per number of steps and the evaluations of the adaptive solve.
fn run(trainer: Trainer, n: usize) -> flowline::Result<(Vec<Row>, f64)> {
    let (learned, key) = (trainer.run()?, Key::new(1));
    let exact = learned.sample(n, &key)?;
    let mut rows = Vec::new();
    for steps in [1, 2, 4, 8, 16, 32, 64] {
        let drawn = learned.clone().steps(steps).sample(n, &key)?;
        let off = |(a, b): (&[f64], &[f64])| (a[0] - b[0]).hypot(a[1] - b[1]);
        let mut off: Vec<f64> = drawn.iter().zip(&exact).map(off).collect();
        off.sort_by(f64::total_cmp);
        let beyond = off.iter().filter(|off| **off > 1.0).count() as f64 / n as f64;
        rows.push((steps, off[n / 2], beyond));
    }
    let adaptive = learned.cnf().clone().rtol(1e-4).atol(1e-4).error_norm(ErrorNorm::State);
    let x = adaptive.sample(512, &key)?;
    let (_, stats) = adaptive.log_prob_with_stats(&x, &key)?;
    Ok((rows, stats.num_fn_evals.item()))
}

fn main() -> flowline::Result<()> {
    let seconds = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(60.0);
    let (rows, adaptive) = run(Trainer::new(ImageDensity::embedded()).time_limit(seconds), 4096)?;
    println!("{:>9} {:>12} {:>16} {:>14}", "steps", "evaluations", "median (pixels)", "beyond a pixel");
    for (steps, median, beyond) in rows {
        println!("{steps:>9} {:>12} {median:>16.4} {:>13.1}%", 2 * steps, 100.0 * beyond);
    }
    println!("{:>9} {adaptive:>12.0}", "adaptive");
    Ok(())
}

#[cfg(test)]
#[path = "../tests/examples/few_steps.rs"]
mod tests;
