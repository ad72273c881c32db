//! `flowline train`: learns the density of an image, points, a toy density or a set of images.

mod args;
mod data;
mod report;

pub use args::{ADVANCED, Args};

use super::bar::Bar;
use super::documented::DiffraxExample;
use super::error::{CliError, Result, nearest};
use super::run_folder::RUNS;
use super::say::{error_line, failed, note};
use super::signals::Signals;
use super::typed::flags;
use super::{input, ranks, table::seconds};
use flowline::__internal::{check_free, default_folder};
use flowline::Error;
use flowline::train::{Preset, TrainError, TrainOptions, TrainedFlow, Trainer};
use flowline::world::WorldError;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The default name of a run on the built-in image.
const EMBEDDED: &str = "flowlines";

/// Runs the subcommand; `started` is the start of the process.
///
/// # Errors
/// Invalid options, data that cannot be read, a folder that cannot be written, a failed run.
pub fn run(args: &Args, started: Instant) -> Result<()> {
    let options = args.options();
    options.check().map_err(suggested)?;
    train(args, &options, started)
}

/// Adds the nearest method name to an error about an unknown method.
fn suggested(error: Error) -> CliError {
    match error {
        Error::Train(TrainError::Solver { name, known }) => {
            let near = nearest(&name, known.split(", ")).map(str::to_owned);
            CliError::Method { name, near, known }
        }
        error => error.into(),
    }
}

fn train(args: &Args, options: &TrainOptions, started: Instant) -> Result<()> {
    let world = ranks::world()?;
    if world.is_root() {
        ranks::unused_cores(&world, rayon::current_num_threads()).iter().for_each(|text| note(text));
    }
    if let Err(e) = data::check_input(args, world.size()) {
        return Err(if world.is_root() { e } else { CliError::Silent });
    }
    let folder = folder(args);
    let data = world.agree(data::open(args, &folder))?;
    let trainer = match &options.preset {
        Some(Preset::Given { .. }) => DiffraxExample::trainer(data)?,
        _ => Trainer::new(data),
    };
    let trainer = trainer.options(options).started_at(started).world(&world);
    if args.plan {
        return if world.is_root() { report::print_plan(&trainer) } else { Ok(()) };
    }
    if !(args.resume || args.restart) {
        let free = if world.is_root() { check_free(&folder) } else { Ok(()) };
        world.agree(free.map_err(CliError::from))?;
    }
    let trainer = trainer.run_dir(&folder);
    let trainer = if args.restart { trainer.restart() } else { trainer };
    // If no handler can be installed, a signal ends the run at once; its last checkpoint remains.
    let signals = Signals::watch().ok();
    let bar = RefCell::new(Bar::new(args.log_format.unwrap_or(false)));
    let learned = trainer
        .stop_when(|| signals.as_ref().is_some_and(Signals::is_requested))
        .on_update(|progress| bar.borrow_mut().show(progress))
        .on_note(|text| bar.borrow_mut().note(text))
        .on_stage(|stage, done| bar.borrow_mut().stage(stage, done))
        .run();
    drop(bar);
    if !world.is_root() {
        return followed(learned, signals.as_ref());
    }
    if let (Err(stopped @ Error::Train(TrainError::Stopped { .. })), Some(signals)) = (&learned, &signals) {
        let text = flags(&stopped.to_string());
        error_line(&text);
        failed(&text, None);
        signals.end();
    }
    let learned = learned?;
    note(&format!("done after {}", seconds(started.elapsed().as_secs_f64())));
    report::print(&learned, &folder);
    Ok(())
}

/// Converts the result of a rank other than 0. Rank 0 prints the errors that all ranks return. A rank that has lost
/// contact with others prints its own error.
fn followed(learned: flowline::Result<TrainedFlow>, signals: Option<&Signals>) -> Result<()> {
    match learned {
        Ok(_) => Ok(()),
        Err(e @ Error::World(WorldError::Silent { .. } | WorldError::Ended { .. })) => Err(e.into()),
        Err(_) => {
            signals.filter(|signals| signals.is_requested()).inspect(|signals| signals.end());
            Err(CliError::Silent)
        }
    }
}

fn folder(args: &Args) -> PathBuf {
    let data = args.data.as_deref();
    let stem = match data {
        Some(path) if path == Path::new(input::STANDARD) => Some("stdin".to_owned()),
        path => path.and_then(|path| {
            // The stem of `points.csv.gz` is `points`.
            let is_gzip = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz"));
            let table = path.with_extension("");
            let path = if is_gzip && input::is_table(path) { &table } else { path };
            path.file_stem().map(|stem| stem.to_string_lossy().into_owned())
        }),
    };
    let stem = stem.unwrap_or_else(|| EMBEDDED.to_owned());
    let default = || default_folder(Path::new(RUNS), &stem, args.resume || args.restart);
    args.out.clone().unwrap_or_else(default)
}
