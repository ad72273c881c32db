//! The command line: one file a subcommand, messages for people on standard error, results on standard output.
//!
//! It knows flags, formats and exit codes, and nothing of how anything is computed: each subcommand reads its
//! arguments, calls the library and tells what came out. This is the only module that prints.
//!
//! Exit codes: 0 done, 1 the run failed, 2 wrong usage.

mod bar;
mod density;
mod info;
mod log_prob;
mod sample;
mod table;
mod train;

use crate::error::{Error, Result};
use crate::ode::OdeError;
use crate::train::TrainError;
use clap::{Parser, Subcommand};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

/// Learn the density of an image with a continuous normalizing flow, sample it, evaluate it.
#[derive(Parser)]
#[command(name = "flowline", version, propagate_version = true, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Learn the density of an image; without IMAGE, of a picture that ships with flowline
    Train(Box<train::Args>),
    /// Draw points from a learned density
    Sample(sample::Args),
    /// Draw a learned density, or write its logarithm on a grid
    Density(density::Args),
    /// Evaluate a learned density at given points
    LogProb(log_prob::Args),
    /// Tell what a run folder holds
    Info(info::Args),
}

/// Runs the command line; `started` is when the process did.
pub fn main(started: Instant) -> ExitCode {
    let done = match Cli::parse().command {
        Command::Train(args) => train::run(*args, started),
        Command::Sample(args) => sample::run(&args),
        Command::Density(args) => density::run(&args),
        Command::LogProb(args) => log_prob::run(&args),
        Command::Info(args) => info::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(if is_usage(&error) { 2 } else { 1 })
        }
    }
}

/// Whether a message is about how the program was called, and not about what happened then.
fn is_usage(error: &Error) -> bool {
    use TrainError::{Exclusive, Option, OtherOption};
    match error {
        Error::Train(e) => matches!(e, Option { .. } | Exclusive { .. } | OtherOption { .. }),
        Error::Ode(e) => matches!(
            e,
            OdeError::Tolerance { .. } | OdeError::UnknownMethod { .. } | OdeError::NoErrorEstimate { .. }
        ),
        _ => false,
    }
}

/// A message for people.
fn note(text: &str) {
    eprintln!("{text}");
}

/// A line of results; a reader that went away is no failure, a full disk is.
fn result(text: &str) {
    use std::io::{ErrorKind, Write};
    let mut out = std::io::stdout().lock();
    let written = writeln!(out, "{text}").and_then(|()| out.flush());
    if let Err(e) = written
        && e.kind() != ErrorKind::BrokenPipe
    {
        note(&format!("error: standard output cannot be written: {e}; free some space or write elsewhere"));
        std::process::exit(1);
    }
}

/// The kind of a file to write, by the end of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileKind {
    Npy,
    Csv,
    Png,
}

impl FileKind {
    /// The kind of a path, if it is one of those.
    fn of(path: &Path, allowed: &[FileKind]) -> Result<FileKind> {
        let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        let kind = match extension.as_str() {
            "npy" => Some(FileKind::Npy),
            "csv" => Some(FileKind::Csv),
            "png" => Some(FileKind::Png),
            _ => None,
        };
        let range = match allowed {
            [FileKind::Npy, FileKind::Csv, FileKind::Png] => "a path that ends in .npy, .csv or .png",
            [FileKind::Png, FileKind::Npy] => "a path that ends in .png or .npy",
            _ => "a path that ends in .npy or .csv",
        };
        kind.filter(|k| allowed.contains(k)).ok_or_else(|| {
            TrainError::Option { option: "--out", value: path.display().to_string(), range }.into()
        })
    }
}
