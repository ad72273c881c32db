//! `flowline log-prob --anomaly`: how unusual rows are.

use super::error::Result;
use super::file_kind::FileKind;
use super::log_prob::{Args, Points};
use super::say::{done, is_json, result};
use super::table::grouped;
use flowline::__internal::{Estimate, plain};
use flowline::cnf::extra::AnomalyScore;
use flowline::io::{write_csv, write_npy};
use flowline::tensor::Key;
use flowline::train::{TrainError, TrainedFlow};
use serde_json::json;
use std::path::Path;

/// Minimum and maximum number of samples to compare with. With fewer samples no two-sided p-value is below [`UNUSUAL`].
const LEAST: usize = 200;
const MOST: usize = 1_000_000;
/// Columns of the output.
const COLUMNS: [&str; 5] = ["log_prob", "p_value", "p_value_stderr", "two_sided", "z_squared"];
/// Rows with a smaller two-sided p-value are counted in the summary.
const UNUSUAL: f64 = 0.01;

/// Refuses a number of samples out of range.
///
/// # Errors
/// [`TrainError::Option`].
pub fn check(draws: usize) -> Result<()> {
    if (LEAST..=MOST).contains(&draws) {
        return Ok(());
    }
    let (option, value, range) = ("anomaly", draws.to_string(), "from 200 to 1000000");
    Err(TrainError::Option { option, value, range }.into())
}

/// Scores points, writes the scores and a summary.
///
/// # Errors
/// As [`TrainedFlow::anomaly_scores`]; a file that cannot be written.
pub fn run(
    args: &Args,
    (learned, folder): (&TrainedFlow, &Path),
    points: &Points,
    (rtol, atol): (f64, f64),
    (draws, kind): (usize, FileKind),
) -> Result<()> {
    let scores =
        learned.anomaly_scores(&points.rows, draws, &Key::new(args.seed)).map_err(|e| points.located(e))?;
    let rows: Vec<[f64; 5]> = scores.iter().map(columns).collect();
    match (&args.out, kind) {
        (Some(path), FileKind::Npy) => {
            let values: Vec<f32> = rows.as_flattened().iter().map(|&x| x as f32).collect();
            write_npy(path, &[rows.len(), COLUMNS.len()], &values)?;
        }
        (Some(path), FileKind::Csv) => {
            write_csv(path, &COLUMNS, &rows)?;
        }
        // With `--json` the summary contains the values.
        _ if is_json() => {}
        _ => {
            let line = |row: &[f64; 5]| row.each_ref().map(plain).join(",");
            let lines = std::iter::once(COLUMNS.join(",")).chain(rows.iter().map(line));
            result(&lines.collect::<Vec<_>>().join("\n"));
        }
    }
    let unusual = scores.iter().filter(|score| score.two_sided() < UNUSUAL).count();
    let mean = Estimate::of(&rows.iter().map(|row| row[0]).collect::<Vec<_>>());
    let [n, drawn, unusual_rows] = [rows.len(), draws, unusual].map(|n| grouped(n as u64));
    let text = format!(
        "{n} points, compared with {drawn} samples of the model: {unusual_rows} with a two-sided p-value below {UNUSUAL}; samples of the model would have {:.1}",
        UNUSUAL * rows.len() as f64
    );
    done(&text, || {
        let mut summary = json!({
            "run": folder, "count": rows.len(), "mean_log_prob_nats": mean.mean,
            "mean_log_prob_stderr_nats": mean.stderr, "rtol": rtol, "atol": atol, "anomaly_draws": draws,
            "unusual": unusual, "seed": args.seed,
        });
        match args.out.as_ref().filter(|_| kind != FileKind::Standard) {
            Some(path) => summary["file"] = json!(path),
            None => {
                for (k, name) in COLUMNS.into_iter().enumerate() {
                    summary[name] = json!(rows.iter().map(|row| row[k]).collect::<Vec<_>>());
                }
            }
        }
        summary
    });
    Ok(())
}

fn columns(score: &AnomalyScore) -> [f64; 5] {
    [score.log_prob, score.p_value, score.p_value_stderr, score.two_sided(), score.z_squared]
}
