//! Errors of the command line and of the library.

use super::input;
use flowline::__internal::{EvalError, stopped};
use flowline::data::DataError;
use flowline::io::IoError;
use flowline::ode::{ConfigError, SolveError};
use flowline::train::TrainError;
use std::path::PathBuf;

/// Why a command ends early.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// An error of the library.
    #[error("{}", of_library(.0))]
    Library(#[from] flowline::Error),
    /// DATA does not exist.
    #[error("{} cannot be read: no such file; {hint}", path.display())]
    NoData {
        /// The argument.
        path: PathBuf,
        /// A suggestion.
        hint: String,
    },
    /// RUN is not a run folder.
    #[error("{} is not a run folder: {reason}; {}", path.display(), found(runs))]
    NoRun {
        /// The argument.
        path: PathBuf,
        /// Why it is not a run folder.
        reason: &'static str,
        /// The run folders found, latest first.
        runs: Vec<PathBuf>,
    },
    /// There is no latest run.
    #[error("there is no run in {} yet; run `flowline train`, or give the folder of a run", roots.join(", "))]
    NoLatest {
        /// Folders that were searched.
        roots: Vec<String>,
    },
    /// Unknown method.
    #[error("--solver={name}: no explicit method has this name{}; choose one of {known}", meant(near.as_ref()))]
    Method {
        /// The name given.
        name: String,
        /// The nearest name.
        near: Option<String>,
        /// All names.
        known: String,
    },
    /// The config file is invalid.
    #[error("{}: {reason}; write one option per line, for example `updates = 5000`", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// The invalid part.
        reason: String,
    },
    /// A build without MPI was launched in parallel.
    #[error(
        "{processes} processes were launched, but this build has no MPI, so each would train alone; install flowline with `--features mpi`, or launch one process"
    )]
    #[cfg_attr(feature = "mpi", expect(dead_code, reason = "only builds without MPI return this error"))]
    NoMpi {
        /// The number of processes.
        processes: usize,
    },
    /// MPI does not connect the processes that were launched together.
    #[error(
        "{processes} processes were launched, but MPI connects {ranks} of them, so several would train alone in one run folder; launch with the mpirun of the MPI library of this build, or under SLURM with `srun --mpi=pmix` (`srun --mpi=list` prints the choices)"
    )]
    #[cfg_attr(not(feature = "mpi"), allow(dead_code, reason = "only builds with MPI have several ranks"))]
    Apart {
        /// The number of processes.
        processes: usize,
        /// The number of ranks.
        ranks: usize,
    },
    /// A command that does not run in parallel was launched in parallel.
    #[error(
        "{processes} processes were launched, but only `train` shares its work among processes; launch one process for `{command}`"
    )]
    Parallel {
        /// The command.
        command: &'static str,
        /// The number of processes.
        processes: usize,
    },
    /// An error that another rank prints.
    #[error("")]
    Silent,
    /// Wrong usage that clap does not detect, with the message.
    #[error("{0}")]
    Usage(String),
    /// An error of clap in the arguments or in those of a config file, or the text of `--help` or `--version`.
    #[error("{0}")]
    Clap(#[from] clap::Error),
}

macro_rules! from {
    ($($error:ty)*) => { $(
        impl From<$error> for CliError {
            fn from(error: $error) -> CliError {
                CliError::Library(error.into())
            }
        }
    )* };
}
from!(DataError EvalError IoError TrainError flowline::plot::PlotError flowline::world::WorldError);

/// Result of a command.
pub type Result<T> = std::result::Result<T, CliError>;

impl CliError {
    /// Whether the error is in the arguments rather than in the execution.
    pub fn is_usage(&self) -> bool {
        match self {
            CliError::Library(error) => is_usage(error),
            CliError::NoMpi { .. } | CliError::Apart { .. } | CliError::Parallel { .. } => true,
            CliError::Method { .. } | CliError::Usage(_) | CliError::Config { .. } | CliError::Clap(_) => {
                true
            }
            CliError::Silent
            | CliError::NoData { .. }
            | CliError::NoRun { .. }
            | CliError::NoLatest { .. } => false,
        }
    }
}

fn is_usage(error: &flowline::Error) -> bool {
    use TrainError::{
        Exclusive, Layers, Memory, NoClasses, NoErrorEstimate, Option, OtherOption, Ranks, Shards, Solver,
        Useless,
    };
    use flowline::Error;
    match error {
        Error::Train(e) => matches!(
            e,
            Option { .. }
                | Useless { .. }
                | Exclusive { .. }
                | NoClasses { .. }
                | OtherOption { .. }
                | Solver { .. }
                | NoErrorEstimate { .. }
                | Layers { .. }
                | Memory { .. }
                | Ranks { .. }
                | Shards { .. }
        ),
        Error::Eval(e) => {
            matches!(
                e,
                EvalError::NoDraws
                    | EvalError::Margin { .. }
                    | EvalError::NoPlane { .. }
                    | EvalError::NotForImages { .. }
            )
        }
        Error::Io(e) => matches!(e, IoError::NoColumn { .. } | IoError::ColumnTwice { .. }),
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

/// The message of an error of the library. A user of the command line cannot change the number of steps of a solve.
fn of_library(error: &flowline::Error) -> String {
    match error {
        flowline::Error::Solve(SolveError::Incomplete { outcome, .. }) => format!(
            "{}; the vector field of this run changes too rapidly; train it again with a lower --lr",
            stopped(outcome)
        ),
        flowline::Error::Io(IoError::Csv { path, line, reason, remedy: Some(remedy) }) => {
            format!("{} line {line}: {reason}; {}", path.display(), input::remedy(*remedy))
        }
        error => error.to_string(),
    }
}

/// The name most similar to `typed`, if any name is similar enough.
pub fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = names.into_iter().map(|name| (strsim::jaro_winkler(&typed.to_lowercase(), name), name));
    let best = near.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 > 0.8).then_some(best.1)
}

fn meant(near: Option<&String>) -> String {
    near.map_or_else(String::new, |near| format!(" (did you mean {near}?)"))
}

/// The maximum number of run folders named in a message.
const NAMED: usize = 5;

fn found(runs: &[PathBuf]) -> String {
    if runs.is_empty() {
        return "give the folder that `flowline train` wrote".to_owned();
    }
    let names: Vec<String> = runs.iter().take(NAMED).map(|run| run.display().to_string()).collect();
    let more = if runs.len() > NAMED { format!(" and {} more", runs.len() - NAMED) } else { String::new() };
    format!("runs here: {}{more}; `latest` means the first", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        let toys = ["moons", "8gaussians", "checkerboard"];
        assert_eq!(
            [nearest("moon", toys), nearest("Checkboard", toys)],
            [Some("moons"), Some("checkerboard")]
        );
        assert_eq!(nearest("cat.png", toys), None);
    }
}
