//! The command line: one file per subcommand. Results go to standard output, messages to standard error.
//!
//! Each subcommand reads its arguments, calls the library and prints the results; it computes nothing itself.
//! The library prints nothing, except figures in notebooks (feature `evcxr`).
//!
//! Exit codes: 0 success, 1 failure, 2 wrong usage. A run stopped by a signal ends by that signal.

mod anomaly;
mod bar;
mod config;
mod density;
mod documented;
mod duration;
mod error;
mod file_kind;
mod given;
mod help;
mod info;
mod input;
mod live;
mod log_prob;
mod machine;
mod manuals;
mod plot;
mod ranks;
mod run_folder;
mod runs;
mod sample;
mod say;
mod signals;
mod table;
mod threads;
mod train;
mod typed;

#[cfg(test)]
mod tests;

use clap::{ArgAction, ColorChoice, FromArgMatches, Parser, Subcommand};
use error::{CliError, Result};
use flowline::__internal::Level;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

/// Heading of the options that every command has.
const GLOBAL: &str = "Global options";

/// Learn, sample and evaluate densities with continuous normalizing flows.
#[derive(Parser)]
#[command(name = "flowline", bin_name = "flowline", version, propagate_version = true)]
#[command(max_term_width = 100, after_help = help::TOP, disable_help_flag = true, disable_version_flag = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Print no progress, warnings or text summary; results and errors are printed
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    quiet: bool,
    /// Print the summary as JSON on standard output
    #[arg(long, global = true, help_heading = GLOBAL)]
    json: bool,
    /// Use colors in messages: auto, always, never [default: auto]
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "WHEN", hide_possible_values = true)]
    color: Option<ColorChoice>,
    /// Print help: -h lists the common options, --help all options
    #[arg(short, long, global = true, help_heading = GLOBAL, action = ArgAction::Help)]
    help: Option<bool>,
    /// Print the version
    #[arg(short = 'V', long, global = true, help_heading = GLOBAL, action = ArgAction::Version)]
    version: Option<bool>,
}

#[derive(Subcommand)]
enum Command {
    /// Train a flow on an image, a table, a toy density or a set of images
    Train(Box<train::Args>),
    /// Draw samples from a trained flow
    Sample(sample::Args),
    /// Plot a learned density over the plane, or write it as an array
    Density(density::Args),
    /// Plot the marginal densities of chosen columns, and the joint density of each pair
    Plot(plot::Args),
    /// Evaluate a learned log-density at given points or images
    LogProb(log_prob::Args),
    /// Print the data, model, configuration and scores of a run
    Info(info::Args),
    /// List the runs in a folder
    Runs(runs::Args),
    /// Print a completion script for a shell
    Completions(manuals::CompletionsArgs),
    /// Write a man page for each command
    Man(manuals::ManArgs),
}

fn main() -> ExitCode {
    let started = Instant::now();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let cli = match parse(&arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let is_json = arguments.iter().take_while(|text| *text != "--").any(|text| text == "--json");
            let json = is_json && ranks::is_root();
            say::set(say::Style { quiet: false, json, color: color(&arguments) });
            return if let CliError::Clap(error) = error {
                help::refuse(&error)
            } else {
                ended(&error, &arguments)
            };
        }
    };
    let (quiet, json) = (cli.quiet || !ranks::is_root(), cli.json && ranks::is_root());
    say::set(say::Style { quiet, json, color: color(&arguments) });
    match run(&cli.command, started) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => ended(&error, &arguments),
    }
}

fn ended(error: &CliError, arguments: &[OsString]) -> ExitCode {
    let code = if error.is_usage() { 2 } else { 1 };
    if !matches!(error, CliError::Silent) {
        let command = help::command(arguments, ColorChoice::Never);
        say::failure(&typed::as_typed(&error.to_string(), &command, arguments), Some(code));
    }
    ExitCode::from(code)
}

/// Reads the arguments, including those from a `--config` file.
fn parse(arguments: &[OsString]) -> Result<Cli> {
    let command = || help::command(arguments, color(arguments));
    let matches = command().try_get_matches_from(arguments)?;
    let matches = match config::arguments(&command(), &matches, arguments)? {
        Some(arguments) => command().try_get_matches_from(arguments)?,
        None => matches,
    };
    Ok(Cli::from_arg_matches(&matches)?)
}

/// The value of `--color`, read from the unparsed arguments, because errors of the parser are colored too.
fn color(arguments: &[OsString]) -> ColorChoice {
    let texts: Vec<&str> = arguments.iter().filter_map(|argument| argument.to_str()).collect();
    let after = texts.windows(2).find(|pair| pair[0] == "--color").map(|pair| pair[1]);
    let value = texts.iter().find_map(|text| text.strip_prefix("--color=")).or(after);
    match value {
        Some("always") => ColorChoice::Always,
        Some("never") => ColorChoice::Never,
        _ => ColorChoice::Auto,
    }
}

/// Runs a subcommand, after checking that the CPU has the instructions that FLOWLINE_LEVEL names.
fn run(command: &Command, started: Instant) -> Result<()> {
    Level::try_detect().map_err(flowline::Error::from)?;
    match command {
        Command::Sample(_) => ranks::check_alone("sample")?,
        Command::Density(_) => ranks::check_alone("density")?,
        Command::Plot(_) => ranks::check_alone("plot")?,
        Command::LogProb(_) => ranks::check_alone("log-prob")?,
        Command::Train(_)
        | Command::Info(_)
        | Command::Runs(_)
        | Command::Completions(_)
        | Command::Man(_) => {}
    }
    match command {
        Command::Train(args) => args.threads.run(|| train::run(args, started)),
        Command::Sample(args) => args.threads.run(|| sample::run(args)),
        Command::Density(args) => args.threads.run(|| density::run(args)),
        Command::Plot(args) => args.threads.run(|| plot::run(args)),
        Command::LogProb(args) => args.threads.run(|| log_prob::run(args)),
        Command::Info(args) => info::run(args),
        Command::Runs(args) => runs::run(args),
        Command::Completions(args) => {
            manuals::completions(args);
            Ok(())
        }
        Command::Man(args) => manuals::man(args),
    }
}
