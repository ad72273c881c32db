//! What the command line refuses by itself, and what the library refused.

use flowline::__internal::EvalError;
use flowline::data::DataError;
use flowline::io::IoError;
use flowline::ode::ConfigError;
use flowline::train::TrainError;
use std::path::PathBuf;

/// Why a command ends early.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The library's own.
    #[error(transparent)]
    Library(#[from] flowline::Error),
    /// DATA is nothing that there is.
    #[error("{} cannot be read: no such file; {hint}", path.display())]
    NoData {
        /// What was given.
        path: PathBuf,
        /// What may have been meant.
        hint: String,
    },
    /// RUN is no run folder.
    #[error("{} is not a run folder: {reason}; {}", path.display(), found(runs))]
    NoRun {
        /// What was given.
        path: PathBuf,
        /// Why not.
        reason: &'static str,
        /// Run folders that there are, the latest first.
        runs: Vec<PathBuf>,
    },
    /// There is no latest run.
    #[error("there is no run in {} yet; train one, or name its folder", roots.join(", "))]
    NoLatest {
        /// Where runs were looked for.
        roots: Vec<String>,
    },
    /// A name of a method that there is not.
    #[error("--solver={name}: unknown method{}; choose one of {known}", meant(near.as_ref()))]
    Method {
        /// What was given.
        name: String,
        /// The nearest name.
        near: Option<String>,
        /// All names.
        known: String,
    },
    /// A file of options is not one.
    #[error("{}: {reason}; write one option per line, for example `updates = 5000`", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        reason: String,
    },
    /// Two options that exclude each other.
    #[error("{0}")]
    Usage(String),
    /// Arguments that clap refused, of a file of options.
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
from!(DataError EvalError IoError TrainError flowline::plot::PlotError);

/// What a command gives.
pub type Result<T> = std::result::Result<T, CliError>;

impl CliError {
    /// Whether it is about how the program was called, and not about what happened then.
    pub fn is_usage(&self) -> bool {
        match self {
            CliError::Library(error) => is_usage(error),
            CliError::Method { .. } | CliError::Usage(_) | CliError::Config { .. } | CliError::Clap(_) => {
                true
            }
            CliError::NoData { .. } | CliError::NoRun { .. } | CliError::NoLatest { .. } => false,
        }
    }
}

fn is_usage(error: &flowline::Error) -> bool {
    use TrainError::{Exclusive, Layers, Memory, NoErrorEstimate, Option, OtherOption, Solver, Useless};
    use flowline::Error;
    match error {
        Error::Train(e) => matches!(
            e,
            Option { .. }
                | Useless { .. }
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

/// The name that is nearest to what was typed, if any is near.
pub fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = names.into_iter().map(|name| (strsim::jaro_winkler(&typed.to_lowercase(), name), name));
    let best = near.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 > 0.8).then_some(best.1)
}

fn meant(near: Option<&String>) -> String {
    near.map_or_else(String::new, |near| format!(" (did you mean {near}?)"))
}

/// Most run folders that a message names.
const NAMED: usize = 5;

fn found(runs: &[PathBuf]) -> String {
    if runs.is_empty() {
        return "give the folder that `flowline train` wrote".to_owned();
    }
    let names: Vec<String> = runs.iter().take(NAMED).map(|run| run.display().to_string()).collect();
    let more = if runs.len() > NAMED { format!(" and {} more", runs.len() - NAMED) } else { String::new() };
    format!("runs here: {}{more}; `latest` is the first", names.join(", "))
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
