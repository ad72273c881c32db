//! `flowline log-prob`: evaluate a learned density at given points.

use super::bar::Count;
use super::table::grouped;
use super::{FileKind, note, result};
use flowline::__internal::{
    Estimate, EvalError, IMAGE_TOLERANCE, MEASURE_TOLERANCE, check_tolerances, write_csv, write_npy,
};
use flowline::data::{DataError, ImageSet};
use flowline::io::{IoError, read_csv, read_npy};
use flowline::tensor::Key;
use flowline::train::{TrainError, TrainedFlow};
use flowline::{Error, Result};
use std::path::{Path, PathBuf};

/// Arguments of `flowline log-prob`.
#[derive(clap::Args)]
pub struct Args {
    /// A run folder
    dir: PathBuf,
    /// Points [n, d] in the units of the data (pixels, x to the right and y down, of an image), .npy or .csv; or a set of images
    points: PathBuf,
    /// The class of each image, of a run that has classes
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// Draws of noise and probe for each image, averaged
    #[arg(long, value_name = "K", allow_negative_numbers = true, default_value_t = 1)]
    draws: usize,
    /// Seed of noise and probes
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 1)]
    seed: u64,
    /// Where to: the log-density of each point in nats, per square pixel of an image or per unit of points, or the
    /// log-probability of the gray levels of each image, .npy or .csv [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Relative tolerance of the solve [default: 1e-6, of images 1e-3]
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    rtol: Option<f64>,
    /// Absolute tolerance of the solve, in standardized coordinates [default: 1e-6, of images 1e-3]
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    atol: Option<f64>,
}

/// Runs the subcommand.
///
/// # Errors
/// No run in the folder, points that cannot be read, a file that cannot be written, a solve that ended early.
pub fn run(args: &Args) -> Result<()> {
    let tolerances = |by: f64| (args.rtol.unwrap_or(by), args.atol.unwrap_or(by));
    let (rtol, atol) = tolerances(MEASURE_TOLERANCE);
    check_tolerances(rtol, atol)?;
    let kinds = [FileKind::Npy, FileKind::Csv];
    let kind = args.out.as_ref().map(|path| FileKind::of(path, &kinds)).transpose()?;
    if let Some(path) = args.out.as_ref().filter(|path| is_same(path, &args.points)) {
        let (option, value) = ("--out", path.display().to_string());
        let range = "another file than the points, which would be lost";
        return Err(TrainError::Option { option, value, range }.into());
    }
    let learned = TrainedFlow::open(&args.dir)?;
    if learned.frames.images.is_some() {
        return images(args, &learned, tolerances(IMAGE_TOLERANCE), kind);
    }
    let d = learned.dim();
    let points = Points::read(&args.points, d)?;
    let mut count = Count::new(points.rows.len() / d, "points");
    let mut log_probs = Vec::with_capacity(points.rows.len() / d);
    let parts = learned.log_prob_parts(&points.rows, rtol, atol).map_err(|e| points.located(e))?;
    for part in parts {
        let part = part.map_err(|e| points.located(e))?;
        count.add(part.len());
        log_probs.extend(part);
    }
    drop(count);
    write(args, kind, &log_probs)?;
    let mean = Estimate::of(&log_probs);
    note(&match log_probs.len() {
        0 => format!("{} holds no points", args.points.display()),
        n => {
            let area = if learned.frames.points.is_some() { "unit" } else { "square pixel" };
            format!("{} points, mean log-density {mean} nats per {area}", grouped(n as u64))
        }
    });
    Ok(())
}

/// Whether two paths are of one file.
fn is_same(a: &Path, b: &Path) -> bool {
    a.canonicalize().ok().zip(b.canonicalize().ok()).is_some_and(|(a, b)| a == b)
}

/// Writes the results where they are wanted.
fn write(args: &Args, kind: Option<FileKind>, log_probs: &[f64]) -> Result<()> {
    match (&args.out, kind) {
        (Some(path), Some(FileKind::Npy)) => {
            let values: Vec<f32> = log_probs.iter().map(|&x| x as f32).collect();
            write_npy(path, &[values.len()], &values)?;
        }
        (Some(path), _) => write_csv(path, "log_prob", log_probs.chunks(1))?,
        (None, _) => log_probs.iter().for_each(|x| result(&x.to_string())),
    }
    Ok(())
}

/// Evaluates images.
fn images(args: &Args, learned: &TrainedFlow, tolerances: (f64, f64), kind: Option<FileKind>) -> Result<()> {
    let images = ImageSet::open(&args.points)?;
    let images = if let Some(labels) = &args.labels { images.with_labels(labels)? } else { images };
    let again = if args.draws == 1 { images.len().min(256) } else { 0 };
    let mut count = Count::new(images.len() * args.draws.max(1) + again, "images");
    let key = Key::new(args.seed);
    let (log_probs, bits) =
        learned.image_log_probs(&images, tolerances, args.draws, &key, |n| count.add(n))?;
    drop(count);
    write(args, kind, &log_probs)?;
    let noise = bits.noise_stderr.map_or_else(String::new, |noise| {
        format!(", {noise:.5} of the error by dequantization and probes ({} an image)", bits.draws)
    });
    note(&format!(
        "{} images, {} bits/dim{noise}; {:.1} evaluations at rtol {:e}, atol {:e}",
        grouped(bits.bits.count),
        bits.bits,
        bits.field_evals,
        tolerances.0,
        tolerances.1
    ));
    Ok(())
}

/// Points and where they stood.
struct Points {
    path: PathBuf,
    /// Row-major.
    rows: Vec<f64>,
    /// Their lines, from 1, in a file that has lines.
    lines: Option<Vec<usize>>,
}

impl Points {
    /// By the kind of file that its name ends in.
    fn read(path: &Path, dim: usize) -> Result<Points> {
        let path = path.to_owned();
        if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("csv")) {
            let csv = read_csv(&path)?;
            let found = csv.columns.len();
            if csv.has_heading && csv.lines.is_empty() {
                let reason =
                    format!("\"{}\" is taken for a heading, and no row follows", csv.columns.join(","));
                return Err(IoError::Csv { path, line: 1, reason }.into());
            }
            if let Some(&line) = csv.lines.first().filter(|_| found != dim) {
                let columns = if found == 1 { "column" } else { "columns" };
                let reason = format!("{found} {columns} instead of {dim}");
                return Err(IoError::Csv { path, line, reason }.into());
            }
            return Ok(Points { path, rows: csv.data, lines: Some(csv.lines) });
        }
        let array = read_npy(&path)?;
        match array.shape[..] {
            [_, d] if d == dim => Ok(Points { path, rows: array.data, lines: None }),
            _ if dim == 2 => Err(IoError::PointsShape { path, shape: array.shape }.into()),
            _ => {
                let (name, found) = (path.display().to_string(), array.shape.get(1).copied().unwrap_or(1));
                Err(DataError::OtherColumns { name, found, expected: dim }.into())
            }
        }
    }

    /// An error about points, with the file and the lines in it.
    fn located(&self, error: Error) -> Error {
        let file = self.path.display();
        match error {
            Error::Eval(EvalError::Point { row, value, reason, .. }) => {
                let place = match &self.lines {
                    Some(lines) => format!("{file} line {}", lines[row]),
                    None => format!("{file} row {}, counted from 1,", row + 1),
                };
                EvalError::Point { place, row, value, reason }.into()
            }
            Error::Eval(EvalError::Unsolved { rows, value, outcome, .. }) => {
                let place = match (&self.lines, rows) {
                    (Some(lines), [a, b]) if a == b => format!("{file} line {}", lines[a]),
                    (Some(lines), [a, b]) => format!("{file} lines {} to {}", lines[a], lines[b]),
                    (None, [a, b]) => format!("{file} rows {} to {}, counted from 1", a + 1, b + 1),
                };
                EvalError::Unsolved { place, rows, value, outcome }.into()
            }
            error => error,
        }
    }
}
