//! `flowline sample`: draws points or images from a trained flow.

use super::bar::Count;
use super::error::{CliError, Result};
use super::file_kind::FileKind;
use super::given;
use super::input;
use super::run_folder;
use super::say::{check, done, is_json, note};
use super::table::grouped;
use super::threads::Threads;
use flowline::__internal::{
    Estimate, ImagesFrame, check_output, heading, write_csv_parts, write_npy_parts, write_row,
};
use flowline::cnf::extra::Inpainted;
use flowline::data::Rows;
use flowline::plot::{self, ImageGrid, extra::Plane};
use flowline::tensor::Key;
use flowline::train::{TrainError, TrainedFlow};
use std::fmt::Display;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Maximum number of points or images. As .npy, this many 2-D points take 16 GB.
const MOST: usize = 1_000_000_000;

/// Maximum number of steps; adaptive steps are more accurate long before.
const MOST_STEPS: usize = 1024;

/// Arguments of `flowline sample`.
#[derive(clap::Args)]
#[command(after_help = "\
Samples are in the units of the data. For an image these are pixels, with x to
the right and y down.

Examples:
  flowline sample latest -o points.csv
  flowline sample latest --given height=180 -o tall.csv
  flowline sample runs/mnist -n 100 --label 7 -o sevens.png")]
pub struct Args {
    /// Run folder, or `latest` for the newest run in runs/
    run: PathBuf,
    /// Number of points or images
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1000, allow_negative_numbers = true)]
    count: usize,
    /// Output file: .npy, .csv, .png or .svg; - prints CSV [default: RUN/samples.npy]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Class of the rows, by its name, or of the images, a whole number from 0; required for a run that was
    /// trained with --labels, an error for others
    #[arg(long, value_name = "CLASS", allow_hyphen_values = true)]
    label: Option<String>,
    /// Draw in N steps of 2 evaluations of the vector field, 1 to 1024: fast, not exact [default: as many
    /// as a tolerance of 1e-4 needs; image sets 1e-3]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    steps: Option<usize>,
    /// Value of a column, which every row has; the other columns are drawn given it. Several values are
    /// separated by commas; a column is a heading or a number from 1 [default: none]
    #[arg(long, value_name = "COLUMN=X", allow_hyphen_values = true)]
    given: Vec<String>,
    /// Random seed
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    pub(super) threads: Threads,
}

/// Runs the subcommand.
///
/// # Errors
/// No run in the folder, a file that cannot be written, a solve that ended early.
pub fn run(args: &Args) -> Result<()> {
    let kinds = [FileKind::Npy, FileKind::Csv, FileKind::Png, FileKind::Svg, FileKind::Standard];
    let kind = args.out.as_ref().map_or(Ok(FileKind::Npy), |path| FileKind::of(path, &kinds))?;
    if kind == FileKind::Standard && is_json() {
        return Err(CliError::Usage(
            "--json and --out - both write to standard output; give --out a file".into(),
        ));
    }
    let n = args.count;
    if !(1..=MOST).contains(&n) {
        let (option, value, range) = ("count", n.to_string(), "from 1 to 1000000000");
        return Err(TrainError::Option { option, value, range }.into());
    }
    if let Some(steps) = args.steps.filter(|steps| !(1..=MOST_STEPS).contains(steps)) {
        let (option, value, range) = ("steps", steps.to_string(), "from 1 to 1024");
        return Err(TrainError::Option { option, value, range }.into());
    }
    check_given(args)?;
    args.out.as_deref().map_or(Ok(()), check_output)?;
    let run = run_folder::folder(&args.run, args.out.as_deref())?;
    let path = args.out.clone().unwrap_or_else(|| run.join("samples.npy"));
    let mut learned = TrainedFlow::open(&run)?;
    input::check_chosen(&learned, args.label.is_some(), "choose one with --label")?;
    let class = args.label.as_ref().map(|label| input::class(&learned, label)).transpose()?;
    if let Some(class) = class {
        learned = learned.class(class);
    }
    if let Some(steps) = args.steps {
        learned = learned.steps(steps);
    }
    let key = Key::new(args.seed);
    let mut inpainted = None;
    match &learned.header.frames.images {
        Some(frame) if args.given.is_empty() => images(args, &learned, frame, (&path, kind), &key)?,
        _ => inpainted = points(args, &learned, (&path, kind), &key)?,
    }
    let what = if learned.header.frames.images.is_some() { "images" } else { "points" };
    let file = if kind == FileKind::Standard { "standard output".into() } else { path.display().to_string() };
    let place = if kind == FileKind::Standard { "on" } else { "in" };
    let more = inpainted.as_ref().map_or_else(String::new, weighed);
    done(&format!("{} {what} {place} {file}{more}", grouped(n as u64)), || {
        let columns = learned.header.frames.images.is_none().then(|| learned.columns());
        let mut summary = serde_json::json!({
            "run": run, "file": path, "count": n, "dim": learned.dim(), "columns": columns, "seed": args.seed,
            "label": class, "steps": args.steps,
        });
        if !learned.class_names().is_empty() {
            summary["label"] = args.label.clone().into();
        }
        if let Some(found) = &inpainted {
            summary["given"] = args.given.clone().into();
            summary["effective_sample_size"] = found.effective_sample_size.into();
            summary["proposals"] = found.num_proposals.into();
            summary["log_prob_given_nats"] = found.log_prob_given.into();
            summary["log_prob_given_stderr_nats"] = found.log_prob_given_stderr.into();
        }
        summary
    });
    Ok(())
}

/// Maximum number of rows with given columns, which are in memory together with four proposals each.
const MOST_GIVEN: usize = 1_000_000;

/// Refuses options that do not go together with `--given`.
fn check_given(args: &Args) -> Result<()> {
    if args.given.is_empty() {
        return Ok(());
    }
    if args.steps.is_some() {
        return Err(TrainError::Exclusive { first: "steps", second: "given" }.into());
    }
    if args.count > MOST_GIVEN {
        let range = "from 1 to 1000000 together with `given`";
        return Err(TrainError::Option { option: "count", value: args.count.to_string(), range }.into());
    }
    Ok(())
}

/// The summary of weighted proposals.
fn weighed(found: &Inpainted) -> String {
    let [effective, proposals] =
        [found.effective_sample_size as u64, found.num_proposals as u64].map(grouped);
    let given = Estimate { mean: found.log_prob_given, stderr: Some(found.log_prob_given_stderr), count: 0 };
    format!(
        "; effective sample size {effective} of {proposals} proposals; log-density of the given columns {given} nats"
    )
}

/// Rows with given columns, and a warning if they repeat often.
fn sample_given(args: &Args, learned: &TrainedFlow, key: &Key) -> Result<Inpainted> {
    if learned.header.frames.images.is_some() {
        // The library says why not.
        return Ok(learned.sample_given(&[], args.count, key)?);
    }
    let found = learned.sample_given(&given::row(&args.given, &learned.columns())?, args.count, key)?;
    if found.effective_sample_size < args.count as f64 {
        let [effective, n] = [found.effective_sample_size as u64, args.count as u64].map(grouped);
        note(&format!(
            "warning: the effective sample size is {effective}, less than the {n} rows, so rows repeat; a mean over them is as precise as one over {effective} rows"
        ));
    }
    Ok(found)
}

/// Samples in parts.
type Parts<'a, T> = Box<dyn Iterator<Item = flowline::Result<Vec<T>>> + 'a>;

/// Draws points. Returns the weights of rows with given columns.
fn points(
    args: &Args,
    learned: &TrainedFlow,
    (path, kind): (&Path, FileKind),
    key: &Key,
) -> Result<Option<Inpainted>> {
    let n = args.count;
    let mut count = Count::new(n, "points");
    let d = learned.dim();
    let counted =
        |part: &flowline::Result<Vec<f64>>| count.add(part.as_ref().map_or(0, |part| part.len() / d));
    let inpainted = if args.given.is_empty() { None } else { Some(sample_given(args, learned, key)?) };
    let parts: Parts<f64> = match &inpainted {
        Some(found) => Box::new(std::iter::once(Ok(found.rows.clone()))),
        None => Box::new(learned.sample_parts(n, key)?.map(|part| part.map(Rows::into_values))),
    };
    let parts = parts.inspect(counted);
    // Points are written in 64 bits, like the data. In 32 bits, points near a large number would become equal.
    match kind {
        FileKind::Npy => write_npy_parts(path, &[n, d], parts)?,
        FileKind::Csv => write_csv_parts(path, &learned.columns(), parts)?,
        FileKind::Standard => print_csv(&learned.columns(), parts)?,
        FileKind::Png | FileKind::Svg => {
            let (title, image) = (format!("{} samples", grouped(n as u64)), learned.plane("a histogram")?);
            let parts = parts.map(|part| part.map(|part| part.as_chunks::<2>().0.to_vec()));
            let names = learned.header.frames.axis_names();
            let names = names.each_ref().map(String::as_str);
            let plane = Plane { frame: image.window(), names, scale: image.scale() };
            plane.histogram(&title, n, parts)?.save(path)?;
        }
    }
    drop(count);
    if let Some(points) = &learned.header.frames.points
        && let Some(columns) = points.dequantized_text()
    {
        note(&format!("note: samples are not rounded: the run has noise of one step in {columns}"));
    }
    Ok(inpainted)
}

/// Prints rows as they are computed.
fn print_csv<T: Display>(
    columns: &[String],
    parts: impl Iterator<Item = flowline::Result<Vec<T>>>,
) -> Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    check(write!(out, "{}", heading(columns)));
    for part in parts {
        let part = part?;
        if let Err(e) = part.chunks(columns.len()).try_for_each(|row| write_row(row, &mut out)) {
            check(Err(e));
            // The reader closed the pipe.
            return Ok(());
        }
    }
    check(out.flush());
    Ok(())
}

/// Maximum number of images in a figure, and of columns of the figure.
const SHEET: usize = 400;
const COLUMNS: usize = 20;

/// Draws images.
fn images(
    args: &Args,
    learned: &TrainedFlow,
    frame: &ImagesFrame,
    (path, kind): (&Path, FileKind),
    key: &Key,
) -> Result<()> {
    let n = if kind.is_figure() { args.count.min(SHEET) } else { args.count };
    let (mut count, d) = (Count::new(n, "images"), frame.dim());
    let counted =
        |part: &flowline::Result<Vec<u8>>| count.add(part.as_ref().map_or(0, |part| part.len() / d));
    let parts = learned.sample_parts(n, key)?.map(|part| part.map(|rows| rows.to_pixel_bytes()));
    let parts = parts.inspect(counted);
    match kind {
        FileKind::Npy => {
            let colors = (frame.channels > 1).then_some(frame.channels);
            let shape: Vec<usize> = [n, frame.height, frame.width].into_iter().chain(colors).collect();
            write_npy_parts(path, &shape, parts)?;
        }
        FileKind::Csv => write_csv_parts(path, &learned.columns(), parts)?,
        FileKind::Standard => print_csv(&learned.columns(), parts)?,
        FileKind::Png | FileKind::Svg => {
            let images = parts.collect::<flowline::Result<Vec<_>>>()?.concat();
            let of_class = args.label.as_ref().map_or_else(String::new, |k| format!(" of class {k}"));
            let title = format!("{} samples{of_class}", grouped(n as u64));
            let columns = COLUMNS.min((n as f64).sqrt().ceil() as usize);
            let sheet =
                ImageGrid { title: &title, images: &images, size: frame.size(), columns, headings: &[] };
            plot::image_grid(&sheet)?.save(path)?;
        }
    }
    drop(count);
    Ok(())
}
