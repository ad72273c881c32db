//! The command line: one file a subcommand, messages for people on standard error, results on standard output.
//!
//! It knows flags, formats and exit codes, and nothing of how anything is computed: each subcommand reads its
//! arguments, calls the library and prints the results. This is the only package that prints.
//!
//! Exit codes: 0 done, 1 the run failed, 2 wrong usage; a run that SIGINT or SIGTERM stopped ends by that signal.

mod bar;
mod density;
mod documented;
mod info;
mod live;
mod log_prob;
mod machine;
mod sample;
mod signals;
mod table;
mod train;

use clap::{Parser, Subcommand};
use flowline::__internal::{EvalError, Level};
use flowline::ode::ConfigError;
use flowline::train::TrainError;
use flowline::{Error, Result};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

/// Learn the density of an image or of points with a continuous normalizing flow, sample it, evaluate it.
#[derive(Parser)]
#[command(
    name = "flowline",
    bin_name = "flowline",
    version,
    propagate_version = true,
    disable_help_subcommand = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Learn the density of an image, of points or of a toy; without DATA, of an image that ships with flowline
    Train(Box<train::Args>),
    /// Draw points from a learned density
    Sample(sample::Args),
    /// Draw a learned density, or write its logarithm on a grid
    Density(density::Args),
    /// Evaluate a learned density at given points
    LogProb(log_prob::Args),
    /// Print what a run folder holds
    Info(info::Args),
}

fn main() -> ExitCode {
    let started = Instant::now();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    match run(cli.command, started) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note(&format!("error: {error}"));
            ExitCode::from(if is_usage(&error) { 2 } else { 1 })
        }
    }
}

/// Runs a subcommand, once the level of instructions that the environment asks for is known to be there.
fn run(command: Command, started: Instant) -> Result<()> {
    Level::try_detect()?;
    match command {
        Command::Train(args) => train::run(*args, started),
        Command::Sample(args) => sample::run(&args),
        Command::Density(args) => density::run(&args),
        Command::LogProb(args) => log_prob::run(&args),
        Command::Info(args) => info::run(&args),
    }
}

/// Prints what is wrong with the arguments in at most three lines, or the help or the version that was asked for.
fn refuse(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    match error.kind() {
        DisplayHelp | DisplayVersion => {
            // A reader that went away is no failure.
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
        DisplayHelpOnMissingArgumentOrSubcommand => {
            note("error: no subcommand is given; give train, sample, density, log-prob or info");
            note("`flowline train` learns an image that ships with it; `flowline --help` lists everything");
        }
        _ => note(&shortened(&error.render().to_string())),
    }
    ExitCode::from(2)
}

/// The paragraphs of a message of clap as a line each, the first two and where to find help.
fn shortened(message: &str) -> String {
    let paragraphs = message.split("\n\n").map(|paragraph| {
        let lines: Vec<&str> = paragraph.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        lines.join(" ")
    });
    let is_wanted = |line: &String| !line.is_empty() && !line.starts_with("For more information");
    // The value that was taken for an option is no place to go on from.
    let is_helpful = |line: &String| !line.starts_with("tip: to pass");
    let mut lines: Vec<String> = paragraphs.filter(is_wanted).filter(is_helpful).take(2).collect();
    lines.push("for more: add --help".to_owned());
    let numbers = [
        ("invalid digit found in string", "give a whole number"),
        ("invalid float literal", "give a number"),
        ("number too large to fit in target type", "give a smaller number"),
    ];
    numbers.iter().fold(lines.join("\n"), |text, (theirs, ours)| text.replace(theirs, ours))
}

/// Whether a message is about how the program was called, and not about what happened then.
fn is_usage(error: &Error) -> bool {
    use TrainError::{Exclusive, Layers, Memory, NoErrorEstimate, Option, OtherOption, Solver};
    match error {
        Error::Train(e) => matches!(
            e,
            Option { .. }
                | Exclusive { .. }
                | OtherOption { .. }
                | Solver { .. }
                | NoErrorEstimate { .. }
                | Layers { .. }
                | Memory { .. }
        ),
        Error::Eval(e) => {
            matches!(e, EvalError::NoDraws | EvalError::Margin { .. } | EvalError::NoPlane { .. })
        }
        Error::Config(e) => matches!(
            e,
            ConfigError::Tolerance { .. }
                | ConfigError::UnknownMethod { .. }
                | ConfigError::NoErrorEstimate { .. }
        ),
        Error::Level(_) => true,
        _ => false,
    }
}

/// A message for people; nothing ends because nobody reads it.
fn note(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr().lock(), "{text}");
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
