//! Anomaly scores in ten dimensions, where the mean of the data is as unusual as an outlier.
//!
//! Neighboring columns have the correlation 0.8. `cargo run --release --example anomalies -- [SECONDS]` trains for SECONDS
//! (default 60) on 4,000 rows and scores three: a row like the others; the mean of all rows, whose log-density is the
//! highest; and a row each of whose numbers is ordinary, but which changes sign from column to column.
use flowline::cnf::extra::AnomalyScore;
use flowline::cnf::prelude::*;

const DIM: usize = 10;

/// Normal rows of unit variance, row-major.
fn rows(n: usize, key: &Key) -> Vec<f64> {
    let mut rows = key.normal([n, DIM]).to_vec();
    for row in rows.chunks_exact_mut(DIM) {
        (1..DIM).for_each(|i| row[i] = 0.8 * row[i - 1] + 0.6 * row[i]);
    }
    rows
}

/// The training rows.
fn table() -> flowline::Result<Points> {
    let table: Vec<[f64; DIM]> = rows(4000, &Key::new(0)).as_chunks().0.to_vec();
    Ok(Points::from_rows(table)?)
}

/// Trains on the table. The scores of a row like the others, of the mean, and of the row of alternating signs.
fn run(trainer: Trainer, draws: usize) -> flowline::Result<Vec<AnomalyScore>> {
    let learned = trainer.run()?;
    let alternating = (0..DIM).map(|i| if i % 2 == 0 { 1.5 } else { -1.5 });
    let scored = [rows(1, &Key::new(2)), vec![0.0; DIM], alternating.collect()];
    learned.anomaly_scores(&scored[..], draws, &Key::new(1))
}

fn main() -> flowline::Result<()> {
    let seconds = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(60.0);
    let scores = run(Trainer::new(table()?).time_limit(seconds), 4096)?;
    println!("{:>18} {:>8} {:>16} {:>10} {:>6}", "row", "log p", "p-value", "two-sided", "|z|^2");
    for (name, score) in ["like the others", "the mean", "alternating signs"].into_iter().zip(scores) {
        let p = format!("{:.4} ± {:.4}", score.p_value, score.p_value_stderr);
        println!(
            "{name:>18} {:>8.2} {p:>16} {:>10.4} {:>6.1}",
            score.log_prob,
            score.two_sided(),
            score.z_squared
        );
    }
    Ok(())
}

#[cfg(test)]
#[path = "../tests/examples/anomalies.rs"]
mod tests;
