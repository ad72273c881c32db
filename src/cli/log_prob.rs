//! `flowline log-prob`: evaluate a learned density at given points.

use super::{FileKind, note, result};
use crate::error::Result;
use crate::io::{IoError, read_csv, read_npy, write_csv, write_npy};
use crate::train::{Learned, MEASURE_TOLERANCE, check_tolerances};
use std::path::{Path, PathBuf};

/// Arguments of `flowline log-prob`.
#[derive(clap::Args)]
pub struct Args {
    /// A run folder
    dir: PathBuf,
    /// Points [n, 2] in pixels (x to the right, y down), .npy or .csv
    points: PathBuf,
    /// Where to: the log-density of each point per square pixel in nats, .npy or .csv [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Relative tolerance of the solve
    #[arg(long, value_name = "X", allow_hyphen_values = true, default_value_t = MEASURE_TOLERANCE)]
    rtol: f64,
    /// Absolute tolerance of the solve, in standardised coordinates
    #[arg(long, value_name = "X", allow_hyphen_values = true, default_value_t = MEASURE_TOLERANCE)]
    atol: f64,
}

/// Runs the subcommand.
///
/// # Errors
/// No run in the folder, points that cannot be read, a file that cannot be written, a solve that ended early.
pub fn run(args: &Args) -> Result<()> {
    check_tolerances(args.rtol, args.atol)?;
    let kinds = [FileKind::Npy, FileKind::Csv];
    let kind = args.out.as_ref().map(|path| FileKind::of(path, &kinds)).transpose()?;
    let learned = Learned::open(&args.dir)?;
    let points = read_points(&args.points)?;
    let log_probs = learned.log_prob(&points, args.rtol, args.atol)?;
    match (&args.out, kind) {
        (Some(path), Some(FileKind::Npy)) => {
            let values: Vec<f32> = log_probs.iter().map(|&x| x as f32).collect();
            write_npy(path, &[values.len()], &values)?;
        }
        (Some(path), _) => write_csv(path, "log_prob", log_probs.chunks(1))?,
        (None, _) => log_probs.iter().for_each(|x| result(&x.to_string())),
    }
    let mean = log_probs.iter().sum::<f64>() / log_probs.len().max(1) as f64;
    note(&format!("{} points, mean log-density {mean:.4} nats per square pixel", log_probs.len()));
    Ok(())
}

/// Points by the kind of file that its name ends in.
fn read_points(path: &Path) -> Result<Vec<[f64; 2]>> {
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("csv")) {
        return Ok(read_csv(path, 2)?.as_chunks::<2>().0.to_vec());
    }
    let array = read_npy(path)?;
    if let [_, 2] = array.shape[..] {
        return Ok(array.data.as_chunks::<2>().0.to_vec());
    }
    let reason = format!("its shape is {:?}, points have shape [n, 2]", array.shape);
    Err(IoError::Npy { path: path.to_owned(), reason }.into())
}
