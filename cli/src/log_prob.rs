//! `flowline log-prob`: evaluates a learned log-density at given points or images.

use super::anomaly;
use super::bar::Count;
use super::error::Result;
use super::file_kind::FileKind;
use super::input::{self, Cells};
use super::run_folder;
use super::say::{done, is_json, result};
use super::table::grouped;
use super::threads::Threads;
use flowline::__internal::{
    Estimate, EvalError, IMAGE_TOLERANCE, MEASURE_TOLERANCE, check_output, check_tolerances, listed, place,
    plain,
};
use flowline::Error;
use flowline::data::{DataError, ImageSet, Rows};
use flowline::io::{CsvOptions, IoError, read_npy, write_csv, write_npy};
use flowline::tensor::Key;
use flowline::train::{TrainError, TrainedFlow};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Arguments of `flowline log-prob`.
#[derive(clap::Args)]
#[command(after_help = "\
Values are in nats. For an image they are log-densities per square pixel, for
points per unit volume. For a set of images they are estimates of lower bounds
(ELBO) of the log-probabilities of the pixel values.

Examples:
  flowline log-prob latest new.csv -o nats.csv
  flowline log-prob latest new.csv --anomaly -o scores.csv
  flowline log-prob runs/mnist t10k-images-idx3-ubyte.gz")]
pub struct Args {
    /// Run folder, or `latest` for the newest run in runs/
    run: PathBuf,
    /// Points (.npy, .csv, .tsv, .txt, .dat, .csv.gz, - for standard input) or a set of images
    data: PathBuf,
    /// Columns of DATA, if it is a table, by heading or by number from 1 [default: as in the run]
    #[arg(long, value_name = "A,B")]
    columns: Option<String>,
    #[command(flatten)]
    cells: Cells,
    /// Class of each row or image, for a run that was trained with --labels, an error for others. For tables: a
    /// column [default: as in the run]; for image sets: whole numbers from 0, an IDX, .npy or .csv file
    #[arg(long, value_name = "LABELS")]
    labels: Option<PathBuf>,
    /// Class of all rows of a table, by its name, in place of --labels
    #[arg(long, value_name = "CLASS", conflicts_with = "labels", allow_hyphen_values = true)]
    label: Option<String>,
    /// Number of noise samples. For image sets, per image; the log-probabilities are averaged [default: 1]. For
    /// a run with --dequantize, per row; the densities are averaged over one step [default: none, the density at
    /// the row]
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    draws: Option<usize>,
    /// Also print how unusual each row is: the probability that a sample of the model has a lower
    /// log-density, from N samples, and |z|^2 of its noise [default without =N: 4096]
    #[arg(
        long,
        value_name = "N",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "4096",
        allow_negative_numbers = true
    )]
    anomaly: Option<usize>,
    /// Random seed: of noise and probes for image sets, of the samples of --anomaly
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 1)]
    pub(super) seed: u64,
    /// Relative tolerance of the solver [default: 1e-6; image sets 1e-3]
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    rtol: Option<f64>,
    /// Absolute tolerance of the solver, in standardized coordinates [default: 1e-6; image sets 1e-3]
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    atol: Option<f64>,
    /// Output file: .npy or .csv; - is standard output [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
    #[command(flatten)]
    pub(super) threads: Threads,
}

/// Runs the subcommand.
///
/// # Errors
/// No run in the folder, points that cannot be read, a file that cannot be written, a solve that ended early.
pub fn run(args: &Args) -> Result<()> {
    let tolerances = |by: f64| (args.rtol.unwrap_or(by), args.atol.unwrap_or(by));
    let (rtol, atol) = tolerances(MEASURE_TOLERANCE);
    check_tolerances(rtol, atol)?;
    args.anomaly.map_or(Ok(()), anomaly::check)?;
    let kinds = [FileKind::Npy, FileKind::Csv, FileKind::Standard];
    let kind = args.out.as_ref().map_or(Ok(FileKind::Standard), |path| FileKind::of(path, &kinds))?;
    if let Some(path) = args.out.as_ref().filter(|path| is_same(path, &args.data)) {
        let (option, value) = ("out", path.display().to_string());
        let range = "a file other than DATA, which it would overwrite";
        return Err(TrainError::Option { option, value, range }.into());
    }
    args.out.as_deref().map_or(Ok(()), check_output)?;
    let run = run_folder::folder(&args.run, args.out.as_deref())?;
    let mut learned = settled(args, TrainedFlow::open(&run)?);
    check_options(args, &learned)?;
    if let Some(label) = &args.label {
        let class = input::class(&learned, label)?;
        learned = learned.class(class);
    }
    if learned.header.frames.images.is_some() {
        if let Some(draws) = args.anomaly {
            // The library says why not.
            learned.anomaly_scores(Rows::default(), draws, &Key::new(args.seed))?;
        }
        return images(args, &learned, tolerances(IMAGE_TOLERANCE), kind);
    }
    let d = learned.dim();
    if let (Some((option, value)), false) =
        (input::of_tables(args.columns.as_ref(), args.cells), input::is_table(&args.data))
    {
        let reason = "DATA is not a table";
        return Err(TrainError::Useless { option, value, reason }.into());
    }
    let options = input::options(args.columns.as_deref(), args.cells)?;
    let column = labels_of(args, &learned)?;
    let options = input::with_labels(options, column.as_deref());
    let points = Points::read(&args.data, d, &options, &learned.columns())?;
    if points.rows.is_empty() {
        let name = points.path.display().to_string();
        return Err(DataError::NoPoints { name }.into());
    }
    if let Some(draws) = args.anomaly {
        return anomaly::run(args, (&learned, &run), &points, (rtol, atol), (draws, kind));
    }
    let log_probs = log_probs(&learned, &points)?;
    write(args, kind, &log_probs)?;
    let mean = Estimate::of(&log_probs);
    let area = if learned.header.frames.points.is_some() { "unit" } else { "square pixel" };
    let n = grouped(log_probs.len() as u64);
    let text = format!("{n} points, mean log-density {mean} nats per {area}{}", of_noise(args, &learned));
    done(&text, || {
        let mut common = json!({
            "run": run, "count": log_probs.len(), "mean_log_prob_nats": mean.mean,
            "mean_log_prob_stderr_nats": mean.stderr, "rtol": rtol, "atol": atol,
        });
        if let Some(draws) = args.draws {
            common["draws"] = draws.into();
        }
        with_values(common, args, &log_probs)
    });
    Ok(())
}

/// The column of labels of DATA: the given one, or that of the run. `None` without classes, or if `--label` chooses one.
fn labels_of(args: &Args, learned: &TrainedFlow) -> Result<Option<PathBuf>> {
    let frame = learned.header.frames.points.as_ref();
    let of_run = || frame.and_then(|points| points.label_column.as_ref()).map(PathBuf::from);
    let has_classes = !learned.class_names().is_empty();
    let is_table = input::is_table(&args.data);
    let column =
        args.labels.clone().or_else(of_run).filter(|_| has_classes && args.label.is_none() && is_table);
    let is_chosen = column.is_some() || args.label.is_some();
    let remedy = match is_table {
        true => "choose the column of their labels with --labels, or one class of all rows with --label",
        false => "DATA is not a table, so choose one class of all rows with --label",
    };
    input::check_chosen(learned, is_chosen, remedy)?;
    Ok(column)
}

/// The flow with the tolerances and the noise of the options.
fn settled(args: &Args, mut learned: TrainedFlow) -> TrainedFlow {
    if let Some(rtol) = args.rtol {
        learned = learned.rtol(rtol);
    }
    if let Some(atol) = args.atol {
        learned = learned.atol(atol);
    }
    if let Some(draws) = args.draws {
        learned = learned.noise_draws(draws);
    }
    learned.noise_seed(args.seed)
}

/// The log-densities of points.
fn log_probs(learned: &TrainedFlow, points: &Points) -> Result<Vec<f64>> {
    let n = points.rows.len();
    let mut count = Count::new(n, "points");
    let mut log_probs = Vec::with_capacity(n);
    for part in learned.log_prob_parts(&points.rows).map_err(|e| points.located(e))? {
        let part = part.map_err(|e| points.located(e))?;
        count.add(part.len());
        log_probs.extend(part);
    }
    drop(count);
    Ok(log_probs)
}

/// What the densities of a run with `--dequantize` are.
fn of_noise(args: &Args, learned: &TrainedFlow) -> String {
    let is_rounded = learned.header.frames.points.as_ref().is_some_and(|points| points.rounding().is_some());
    match args.draws {
        _ if !is_rounded => String::new(),
        None => "; at the rows as they are, without the noise of --dequantize (--draws averages over it)"
            .to_owned(),
        Some(draws) => format!(
            "; the mean density over {draws} draw{} of the noise of --dequantize per row: on average a lower bound of that over all noise",
            if draws == 1 { "" } else { "s" }
        ),
    }
}

/// The summary with the name of the output file. If there is no output file, the summary has the values
/// instead.
fn with_values(mut summary: Value, args: &Args, log_probs: &[f64]) -> Value {
    match args.out.as_ref().filter(|path| path.as_path() != Path::new(input::STANDARD)) {
        Some(path) => summary["file"] = json!(path),
        None => summary["log_prob"] = json!(log_probs),
    }
    summary
}

/// Whether two paths name the same file.
fn is_same(a: &Path, b: &Path) -> bool {
    a.canonicalize().ok().zip(b.canonicalize().ok()).is_some_and(|(a, b)| a == b)
}

/// Writes the results to `--out` or to standard output.
fn write(args: &Args, kind: FileKind, log_probs: &[f64]) -> Result<()> {
    match (&args.out, kind) {
        (Some(path), FileKind::Npy) => {
            let values: Vec<f32> = log_probs.iter().map(|&x| x as f32).collect();
            write_npy(path, &[values.len()], &values)?;
        }
        (Some(path), FileKind::Csv) => write_csv(path, &["log_prob"], log_probs.chunks(1))?,
        // With `--json` the summary contains the values.
        _ if is_json() => {}
        _ => result(&log_probs.iter().map(plain).collect::<Vec<_>>().join("\n")),
    }
    Ok(())
}

/// Refuses options that have no effect for this run.
fn check_options(args: &Args, learned: &TrainedFlow) -> Result<()> {
    let useless = |option, value, reason| Err(TrainError::Useless { option, value, reason }.into());
    let no_noise = "the run was not trained on a set of images, nor on a table with `dequantize`";
    let is_rounded = learned.header.frames.points.as_ref().is_some_and(|points| points.rounding().is_some());
    match (&learned.header.frames.images, &args.labels) {
        (images, _) if args.draws == Some(0) && (is_rounded || images.is_some()) => {
            let (option, value, range) = ("draws", "0".to_owned(), "at least 1");
            Err(TrainError::Option { option, value, range }.into())
        }
        (None, _) if args.draws.is_some_and(|draws| draws != 1) && !is_rounded => {
            useless("draws", args.draws.unwrap_or_default().to_string(), no_noise)
        }
        (None, Some(path)) if learned.class_names().is_empty() => {
            useless("labels", path.display().to_string(), "the run was trained without labels")
        }
        (Some(_), _) if args.label.is_some() => useless(
            "label",
            args.label.clone().unwrap_or_default(),
            "images take their classes from `labels`",
        ),
        (Some(frame), Some(path)) if frame.classes.is_none() => {
            useless("labels", path.display().to_string(), "the run was trained without labels")
        }
        _ => Ok(()),
    }
}

/// Evaluates a set of images.
fn images(args: &Args, learned: &TrainedFlow, tolerances: (f64, f64), kind: FileKind) -> Result<()> {
    let images = ImageSet::open(&args.data)?;
    let images = if let Some(labels) = &args.labels { images.with_labels(labels)? } else { images };
    let draws = args.draws.unwrap_or(1);
    let again = if draws == 1 { images.len().min(256) } else { 0 };
    let mut count = Count::new(images.len() * draws.max(1) + again, "images");
    let scores = learned.image_scores(&images, |n| count.add(n))?;
    let (log_probs, bits) = (scores.log_probs, scores.bits_per_dim);
    drop(count);
    write(args, kind, &log_probs)?;
    let noise = bits.noise_stderr.map_or_else(String::new, |noise| {
        format!(
            ", standard error {noise:.5} from dequantization and probes alone (draws per image: {})",
            bits.draws
        )
    });
    let (rtol, atol) = tolerances;
    let text = format!(
        "{} images, {} bits/dim{noise}; {:.1} function evaluations per solve at rtol {rtol:e}, atol {atol:e}",
        grouped(bits.bits.count),
        bits.bits,
        bits.field_evals,
    );
    done(&text, || {
        let common = json!({
            "count": bits.bits.count, "bits_per_dim": bits.bits.mean, "bits_per_dim_stderr": bits.bits.stderr,
            "draws": bits.draws, "rtol": rtol, "atol": atol,
        });
        with_values(common, args, &log_probs)
    });
    Ok(())
}

/// Points of DATA and their line numbers.
pub struct Points {
    path: PathBuf,
    /// The rows of numbers.
    pub rows: Rows,
    /// The line number of each row, from 1; `None` for `.npy`.
    lines: Option<Vec<usize>>,
}

impl Points {
    /// Reads a table or a `.npy` array of points with `dim` columns.
    pub fn read(path: &Path, dim: usize, options: &CsvOptions, columns: &[String]) -> Result<Points> {
        if input::is_table(path) {
            let csv = input::read(path, options, columns)?;
            input::note_dropped(&csv);
            let path = csv.path.clone();
            let found = csv.columns.len();
            if csv.has_heading && csv.lines.is_empty() {
                let heading = listed(&csv.columns, "columns");
                let reason = match csv.num_dropped {
                    0 => format!("\"{heading}\" is read as a heading, and no row follows"),
                    all => format!("all {all} rows have missing cells in a column of the run"),
                };
                return Err(IoError::Csv { path, line: 1, reason, remedy: None }.into());
            }
            input::check_names(&csv, options, columns)?;
            if let Some(&line) = csv.lines.first().filter(|_| found != dim) {
                let (noun, remedy) = (
                    if found == 1 { "column" } else { "columns" },
                    match found > dim || options.has_columns() {
                        true => "; choose with --columns",
                        false => "; give a table with these columns",
                    },
                );
                let wanted = listed(columns, "columns");
                let reason = format!("{found} {noun} of numbers instead of {dim} ({wanted}){remedy}");
                return Err(IoError::Csv { path, line, reason, remedy: None }.into());
            }
            let rows = Rows::from_flat(csv.data, dim);
            let rows = if csv.labels.is_empty() { rows } else { rows.with_labels(csv.labels)? };
            return Ok(Points { path, rows, lines: Some(csv.lines) });
        }
        let (path, array) = (path.to_owned(), read_npy(path)?);
        match array.shape[..] {
            [_, d] if d == dim => Ok(Points { path, rows: Rows::from_flat(array.data, dim), lines: None }),
            _ if dim == 2 => Err(IoError::PointsShape { path, shape: array.shape }.into()),
            _ => {
                let (name, found) = (path.display().to_string(), array.shape.get(1).copied().unwrap_or(1));
                Err(DataError::OtherColumns { name, found, expected: dim }.into())
            }
        }
    }

    /// Adds the file and the line or row numbers to an error about points.
    pub fn located(&self, error: Error) -> Error {
        let file = self.path.display().to_string();
        let lines = self.lines.as_deref().unwrap_or_default();
        match error {
            Error::Eval(EvalError::Point { row, value, reason, .. }) => {
                EvalError::Point { place: place(&file, lines, row), row, value, reason }.into()
            }
            Error::Eval(EvalError::NoSuchClass { row, class, classes, .. }) => {
                EvalError::NoSuchClass { row, class, classes, place: place(&file, lines, row) }.into()
            }
            Error::Eval(EvalError::Unsolved { rows, value, outcome, .. }) => {
                let place = match (lines, rows) {
                    (_, [a, b]) if a == b => place(&file, lines, a),
                    ([], [a, b]) => format!("{file} rows {} to {} (from 1)", a + 1, b + 1),
                    (lines, [a, b]) => format!("{file} lines {} to {}", lines[a], lines[b]),
                };
                EvalError::Unsolved { place, rows, value, outcome }.into()
            }
            error => error,
        }
    }
}
