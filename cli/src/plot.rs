//! `flowline plot`: marginal densities of chosen columns and the joint density of each pair.

use super::bar::Count;
use super::error::{CliError, Result};
use super::file_kind::FileKind;
use super::given::place;
use super::input::{self, Cells};
use super::log_prob::Points;
use super::run_folder;
use super::say::done;
use super::table::grouped;
use super::threads::Threads;
use flowline::__internal::{check_output, listed, shortened};
use flowline::data::Rows;
use flowline::plot::pair_plot;
use flowline::tensor::Key;
use flowline::train::{TrainError, TrainedFlow};
use std::path::{Path, PathBuf};

/// Maximum number of samples, which are in memory together.
const MOST: usize = 10_000_000;
/// Maximum number of columns.
const COLUMNS: usize = 6;

/// Arguments of `flowline plot`.
#[derive(clap::Args)]
#[command(after_help = "\
RUN must be a run on a table or a toy density. For an image use `flowline density`.

Examples:
  flowline plot latest --columns height,weight
  flowline plot runs/people --columns height,weight --data people.csv -o pair.svg")]
pub struct Args {
    /// Run folder, or `latest` for the newest run in runs/
    run: PathBuf,
    /// Columns of the run, at most 6, by heading or by number from 1 [default: the first 6]
    #[arg(long, value_name = "A,B")]
    columns: Option<String>,
    /// Table (.csv, .tsv, .npy, - for standard input) with the columns of the run, which is drawn beside the
    /// model; of a run with classes, the rows of the class [default: none]
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    #[command(flatten)]
    cells: Cells,
    /// Class, by its name, of the samples; required for a run that was trained with --labels, an error for others
    #[arg(long, value_name = "CLASS", allow_hyphen_values = true)]
    label: Option<String>,
    /// Number of samples from which the densities are counted
    #[arg(short = 'n', long, value_name = "N", default_value_t = 40_000, allow_negative_numbers = true)]
    count: usize,
    /// Output file: .png or .svg [default: RUN/pairs.png]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Random seed
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    pub(super) threads: Threads,
}

/// Runs the subcommand.
///
/// # Errors
/// No run in the folder, or one on images; columns that it does not have; data that cannot be read; a file that cannot be
/// written.
pub fn run(args: &Args) -> Result<()> {
    args.out
        .as_ref()
        .map_or(Ok(FileKind::Png), |path| FileKind::of(path, &[FileKind::Png, FileKind::Svg]))?;
    if !(1..=MOST).contains(&args.count) {
        let (option, value, range) = ("count", args.count.to_string(), "from 1 to 10000000");
        return Err(TrainError::Option { option, value, range }.into());
    }
    args.out.as_deref().map_or(Ok(()), check_output)?;
    let folder = run_folder::folder(&args.run, args.out.as_deref())?;
    let path = args.out.clone().unwrap_or_else(|| folder.join("pairs.png"));
    let mut learned = TrainedFlow::open(&folder)?;
    if learned.header.frames.points.is_none() {
        let (data, other) = match learned.header.frames.images {
            Some(_) => ("a set of images", "sample"),
            None => ("an image", "density"),
        };
        let run = folder.display();
        return Err(CliError::Usage(format!(
            "{run} was trained on {data}, which has no columns; use `flowline {other} {run}`"
        )));
    }
    let (all, d) = (learned.columns(), learned.dim());
    let columns = chosen(args.columns.as_deref(), &all)?;
    input::check_chosen(&learned, args.label.is_some(), "choose one with --label")?;
    if let Some(label) = &args.label {
        let class = input::class(&learned, label)?;
        learned = learned.class(class);
    }
    if let Some((option, value)) = input::of_tables(None, args.cells)
        && !args.data.as_deref().is_some_and(input::is_table)
    {
        let reason = "it is for a table in `data`";
        return Err(TrainError::Useless { option, value, reason }.into());
    }
    let column = learned.header.frames.points.as_ref().and_then(|frame| frame.label_column.as_deref());
    let options = input::with_labels(input::options(None, args.cells)?, column.map(Path::new));
    let data = args.data.as_ref().map(|path| Points::read(path, d, &options, &all)).transpose()?;
    let data = data
        .map_or_else(Vec::new, |points| picked(&of_label(&points.rows, args.label.as_deref()), d, &columns));
    let mut count = Count::new(args.count, "samples");
    let mut samples = Vec::with_capacity(args.count * columns.len());
    for part in learned.sample_parts(args.count, &Key::new(args.seed))? {
        let part = part?;
        count.add(part.len());
        samples.extend(picked(part.values(), d, &columns));
    }
    drop(count);
    let names: Vec<String> = columns.iter().map(|&at| all[at].clone()).collect();
    let class = args.label.as_ref().map_or_else(String::new, |label| format!(", class {}", shortened(label)));
    let n = grouped(args.count as u64);
    let title = match data.len() / columns.len() {
        0 => format!("{n} samples of the model{class}"),
        rows => format!("{n} samples of the model{class}, {} rows of data", grouped(rows as u64)),
    };
    pair_plot(&title, &names, &samples, &data)?.save(&path)?;
    done(&format!("{} in {}", listed(&names, "columns"), path.display()), || {
        serde_json::json!({
            "run": folder, "file": path, "columns": names, "count": args.count, "seed": args.seed, "data": args.data,
        })
    });
    Ok(())
}

/// The values of the rows of a class; of all rows without labels.
fn of_label(rows: &Rows, label: Option<&str>) -> Vec<f64> {
    let is_chosen = |i: &usize| rows.labels().is_empty() || label == Some(&*rows.labels()[*i]);
    (0..rows.len()).filter(is_chosen).flat_map(|i| rows[i].to_vec()).collect()
}

/// The indices of the columns in `--columns`, or of the first ones.
fn chosen(text: Option<&str>, all: &[String]) -> Result<Vec<usize>> {
    let Some(text) = text else { return Ok((0..all.len().min(COLUMNS)).collect()) };
    let refused = |reason: String| Err(CliError::Usage(format!("--columns={}: {reason}", shortened(text))));
    let mut columns = Vec::new();
    for name in text.split(',').map(str::trim) {
        let Some(at) = place(name, all) else {
            let there = listed(all, "columns");
            return refused(format!("no column \"{}\"; the columns are {there}", shortened(name)));
        };
        if columns.contains(&at) {
            return refused(format!("column {} is given twice", shortened(&all[at])));
        }
        columns.push(at);
    }
    if columns.len() > COLUMNS {
        return refused(format!(
            "{} columns are too many for one figure; give at most {COLUMNS}",
            columns.len()
        ));
    }
    Ok(columns)
}

/// The values of some columns of rows.
fn picked(rows: &[f64], d: usize, columns: &[usize]) -> Vec<f64> {
    rows.chunks_exact(d).flat_map(|row| columns.iter().map(|&at| row[at])).collect()
}
