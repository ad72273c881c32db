//! `flowline runs`: the runs in a folder as a table, the one written last first.

use super::error::Result;
use super::run_folder::{RUNS, written};
use super::say::{is_json, note, result};
use super::table::{Columns, grouped, quantity};
use super::typed::flags;
use flowline::__internal::{Estimate, Scores, listed, lock_holder, seconds_trained};
use flowline::io::IoError;
use flowline::train::TrainedFlow;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Arguments of `flowline runs`.
#[derive(clap::Args)]
#[command(after_help = "\
A run is interrupted if it has not ended and no process trains in its folder;
`flowline train --resume` continues it.

Examples:
  flowline runs
  flowline runs /data/runs --json")]
pub struct Args {
    /// Folder that contains run folders, or a run folder
    #[arg(value_name = "DIR", default_value = RUNS)]
    folder: PathBuf,
}

/// What a run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It has its scores.
    Finished,
    /// It has a checkpoint without scores, and no process trains in its folder.
    Interrupted,
    /// A process trains in its folder; its number, if known.
    Running(Option<u32>),
    /// Its checkpoint cannot be read.
    Unreadable,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Finished => "finished",
            State::Interrupted => "interrupted",
            State::Running(_) => "running",
            State::Unreadable => "unreadable",
        }
    }
}

/// A run folder.
struct Run {
    name: String,
    folder: PathBuf,
    written: SystemTime,
    bytes: u64,
    state: State,
    about: Option<About>,
    /// Why there is nothing about the run, unless it has no checkpoint yet.
    error: Option<String>,
}

/// What the checkpoint of a run says.
struct About {
    data: String,
    kind: &'static str,
    updates: u64,
    planned: u64,
    seconds: Option<f64>,
    scores: Option<Scores>,
}

/// Runs the subcommand.
///
/// # Errors
/// A folder that cannot be read, unless it is the default one and does not exist.
pub fn run(args: &Args) -> Result<()> {
    let folder = &args.folder;
    let (mut runs, mut others) = (Vec::new(), Vec::new());
    if let Some(run) = Run::read(folder) {
        runs.push(run);
    } else {
        for entry in entries(folder)? {
            match Run::read(&entry) {
                Some(run) => runs.push(run),
                None => others.push(name_of(&entry)),
            }
        }
    }
    runs.sort_by(|a, b| b.written.cmp(&a.written).then_with(|| a.name.cmp(&b.name)));
    if is_json() {
        let runs: Vec<Value> = runs.iter().map(Run::json).collect();
        result(&json!({"folder": folder, "runs": runs, "other_folders": others}).to_string());
    } else if !runs.is_empty() {
        result(&table(&runs, width_of_output()));
    }
    if runs.is_empty() {
        note(&format!("no runs in {}; `flowline train` writes one", folder.display()));
    }
    for run in &runs {
        run.error.iter().for_each(|error| note(&format!("warning: {}", flags(error))));
    }
    if !others.is_empty() {
        note(&format!("not runs: {}", listed(&others, "folders")));
    }
    Ok(())
}

/// The folders in a folder, by name.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    if folder == Path::new(RUNS) && !folder.exists() {
        return Ok(Vec::new());
    }
    let found = fs::read_dir(folder).map_err(|source| IoError::Read { path: folder.to_owned(), source })?;
    let mut folders: Vec<PathBuf> = found.filter_map(|entry| Some(entry.ok()?.path())).collect();
    folders.retain(|path| path.is_dir());
    folders.sort();
    Ok(folders)
}

fn name_of(folder: &Path) -> String {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| folder.display().to_string())
}

impl Run {
    /// The run in a folder; `None` if it has no checkpoint and no process trains in it.
    fn read(folder: &Path) -> Option<Run> {
        let holder = lock_holder(folder);
        let of_model = written(folder);
        let of_folder = || fs::metadata(folder).ok()?.modified().ok().filter(|_| holder.is_some());
        let written = of_model.or_else(of_folder)?;
        let opened = of_model.map(|_| TrainedFlow::open(folder));
        let (about, error) = match opened {
            None => (None, None),
            Some(Ok(learned)) => (Some(About::of(&learned, folder)), None),
            Some(Err(e)) => (None, Some(flags(&e.to_string()))),
        };
        let state = match (holder, &about) {
            (Some(process), _) => State::Running(process),
            (None, None) => State::Unreadable,
            (None, Some(about)) if about.scores.is_some() => State::Finished,
            (None, Some(_)) => State::Interrupted,
        };
        let (name, folder, bytes) = (name_of(folder), folder.to_owned(), size(folder));
        Some(Run { name, folder, written, bytes, state, about, error })
    }

    /// The cells of its line; with the standard error of the score or without.
    fn cells(&self, with_errors: bool) -> [String; 8] {
        let about = self.about.as_ref();
        let of = |cell: fn(&About) -> String| about.map_or_else(|| "-".to_owned(), cell);
        let score = about.and_then(|about| about.scores.as_ref()).map(|scores| score(scores, with_errors));
        [
            self.name.clone(),
            of(|about| about.data.clone()),
            of(|about| about.kind.to_owned()),
            of(|about| grouped(about.updates)),
            of(|about| about.seconds.map_or_else(|| "-".to_owned(), rounded)),
            score.unwrap_or_else(|| "-".to_owned()),
            self.state.name().to_owned(),
            quantity(self.bytes as f64, "B"),
        ]
    }

    fn json(&self) -> Value {
        let about = self.about.as_ref();
        let process = if let State::Running(process) = self.state { process } else { None };
        json!({
            "name": self.name, "folder": self.folder, "state": self.state.name(), "process": process,
            "data": about.map(|about| &about.data), "kind": about.map(|about| about.kind),
            "updates": about.map(|about| about.updates), "updates_planned": about.map(|about| about.planned),
            "seconds": about.and_then(|about| about.seconds), "bytes": self.bytes,
            "written": self.written.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64()),
            "scores": about.and_then(|about| about.scores), "error": self.error,
        })
    }
}

impl About {
    fn of(learned: &TrainedFlow, folder: &Path) -> About {
        let (header, frames) = (&learned.header, &learned.header.frames);
        let (kind, data) = match (&frames.points, &frames.images, &frames.image) {
            (Some(points), ..) => (
                if points.entropy_nats.is_some() { "toy" } else { "table" },
                name_of(Path::new(&points.name)),
            ),
            (None, Some(images), _) => ("images", name_of(Path::new(&images.name))),
            (None, None, Some(image)) => ("image", format!("{} x {} pixels", image.width, image.height)),
            (None, None, None) => ("", String::new()),
        };
        let (updates, planned) = (learned.num_updates, header.config.updates());
        About {
            data,
            kind,
            updates,
            planned,
            seconds: seconds_trained(folder, header),
            scores: learned.scores,
        }
    }
}

/// The bytes of the files in a folder.
fn size(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).into_iter().flatten().filter_map(|entry| entry.ok()?.metadata().ok());
    files.filter(fs::Metadata::is_file).map(|file| file.len()).sum()
}

/// The first of the scores that a run has: the KL divergence, bits per dimension or the NLL, of its test part.
fn score(scores: &Scores, with_error: bool) -> String {
    let first = [
        ("KL", scores.gap_nats.map(|mean| (mean, scores.gap_stderr_nats))),
        ("b/d", scores.test_bits_per_dim.map(|mean| (mean, scores.test_bits_per_dim_stderr))),
        ("NLL", Some((scores.test_nll_nats, scores.test_nll_stderr_nats))),
    ];
    let found = first.into_iter().find_map(|(name, score)| Some((name, score?)));
    let (name, (mean, stderr)) = found.expect("invariant: every run has an NLL");
    let mut text = Estimate { mean, stderr, count: 0 }.to_string();
    if !with_error {
        text.truncate(text.find(" ±").unwrap_or(text.len()));
    }
    format!("{name} {text}")
}

/// A time in its largest unit.
fn rounded(s: f64) -> String {
    match s {
        s if s < 99.5 => format!("{s:.0} s"),
        s if s < 99.5 * 60.0 => format!("{:.0} min", s / 60.0),
        s if s < 99.5 * 3_600.0 => format!("{:.1} h", s / 3_600.0),
        s => format!("{:.1} d", s / 86_400.0),
    }
}

/// The table, at most `width` characters wide if possible: first without standard errors, then with shorter names.
fn table(runs: &[Run], width: Option<usize>) -> String {
    let with = |errors: bool| {
        let mut columns =
            Columns::new(["run", "data", "kind", "updates", "time", "test score", "state", "size"]);
        columns.aligned_left([1, 2, 5, 6]);
        runs.iter().for_each(|run| {
            columns.line(run.cells(errors));
        });
        columns
    };
    let (wide, width) = (with(true), width.unwrap_or(usize::MAX));
    if wide.width() <= width { wide.text() } else { with(false).squeezed([0, 1], width).text() }
}

/// The width of the terminal on standard output, or the number in COLUMNS; `None` without either.
fn width_of_output() -> Option<usize> {
    let of_terminal = || terminal_size::terminal_size_of(std::io::stdout());
    let given = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    given.or_else(|| of_terminal().map(|(terminal_size::Width(width), _)| usize::from(width)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_at_most_two_digits_before_the_point() {
        let found = [0.2, 99.4, 99.6, 600.0, 5_969.0, 5_971.0, 86_400.0, 1e6].map(rounded);
        assert_eq!(found, ["0 s", "99 s", "2 min", "10 min", "99 min", "1.7 h", "24.0 h", "11.6 d"]);
    }

    #[test]
    fn a_table_without_checkpoints_fits_narrow_terminals() {
        let run = |name: &str, state| Run {
            name: name.to_owned(),
            folder: PathBuf::from(name),
            written: UNIX_EPOCH,
            bytes: 1_234_567,
            state,
            about: None,
            error: None,
        };
        let runs = [run(&"long".repeat(30), State::Running(None)), run("a", State::Unreadable)];
        for width in [72, 80, 100, 200] {
            let text = table(&runs, Some(width));
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}: {text}");
        }
        assert!(table(&runs, None).contains(&"long".repeat(30)));
    }
}
