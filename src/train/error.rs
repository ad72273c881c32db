//! Errors of training. Each message names the option or file, the value and the remedy. An option has its name of
//! [`TrainOptions`](super::TrainOptions) in backquotes, to which the command line adds its dashes.

use crate::data::Parts;
use crate::eval::stopped;
use crate::io::IoError;
use std::path::PathBuf;

/// Why a run cannot start or continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// An option is out of range.
    #[error("`{option}`={value}: must be {range}")]
    Option {
        /// Its name.
        option: &'static str,
        /// The value given.
        value: String,
        /// The allowed values.
        range: &'static str,
    },
    /// An option has no effect in this run.
    #[error("`{option}`={value}: {reason}; leave `{option}` out")]
    Useless {
        /// Its name.
        option: &'static str,
        /// Its value.
        value: String,
        /// The reason.
        reason: &'static str,
    },
    /// Two options exclude each other.
    #[error("`{first}` and `{second}` cannot be combined; leave one out")]
    Exclusive {
        /// The first.
        first: &'static str,
        /// The second.
        second: &'static str,
    },
    /// A run cannot be resumed with another value of an option.
    #[error(
        "the run in {} was begun with `{option}`={was}, not `{option}`={asked}; resume it without that option, or start another run with `run_dir`",
        folder.display()
    )]
    OtherOption {
        /// The run's folder.
        folder: PathBuf,
        /// The option.
        option: String,
        /// The run's value.
        was: String,
        /// The value given now.
        asked: String,
    },
    /// A run cannot be resumed on another image.
    #[error(
        "the run in {} was begun with an image of {was}; {name} ({asked}) is another image; give the run's image, or start another run with `run_dir`",
        folder.display()
    )]
    OtherImage {
        /// The run's folder.
        folder: PathBuf,
        /// The image given.
        name: String,
        /// Size of the run's image.
        was: String,
        /// Size of the image given.
        asked: String,
    },
    /// A run cannot be resumed on other points, or on points instead of an image.
    #[error(
        "the run in {} was begun with {was}; {name} holds other data ({difference}); give the run's data, or start another run with `run_dir`",
        folder.display()
    )]
    OtherData {
        /// The run's folder.
        folder: PathBuf,
        /// The data given.
        name: String,
        /// The run's data.
        was: String,
        /// What differs, with both values.
        difference: String,
    },
    /// A run cannot be resumed with another split of the same data.
    #[error(
        "the run in {} split its rows into {was}; these options give {asked}; give the same `validation` and `test` as that run",
        folder.display()
    )]
    OtherParts {
        /// The run's folder.
        folder: PathBuf,
        /// Sizes of the run's parts.
        was: Parts,
        /// Sizes of the parts given now.
        asked: Parts,
    },
    /// Labels were given to a model without classes.
    #[error("`field`={field} takes no classes; leave the labels out, or choose `field` unet or mlp")]
    NoClasses {
        /// The model.
        field: &'static str,
    },
    /// A file in the folder belongs to a different run from the checkpoint.
    #[error("{} belongs to another run than the model.safetensors next to it; restore this run's own file", path.display())]
    OtherRun {
        /// The file.
        path: PathBuf,
    },
    /// `metrics.csv` does not begin with the rows that `counters.json` recorded, although they are rows.
    #[error("{} and {} do not belong together: {reason}", counters.display(), metrics.display())]
    OtherRows {
        /// The path of `counters.json`.
        counters: PathBuf,
        /// The path of `metrics.csv`.
        metrics: PathBuf,
        /// What differs.
        reason: String,
    },
    /// A file in the folder prevents the run from being resumed.
    #[error("{cause}; {remedy}; nothing was changed")]
    Unusable {
        /// The file and its problem.
        cause: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// The run was stopped on request.
    #[error("stopped after update {update}{}; {}", of(*updates), kept(folder.as_ref()))]
    Stopped {
        /// Updates done.
        update: u64,
        /// Updates of the whole run; under a time limit, the expected number for the phases begun so far.
        updates: u64,
        /// The run folder, if there is one.
        folder: Option<PathBuf>,
    },
    /// The run does not fit into memory.
    #[error(
        "{options}{what} needs {} of memory and {} are free; make one of these numbers smaller",
        gigabytes(*needed), gigabytes(*free)
    )]
    Memory {
        /// Those of the options that determine the memory which were given, with their values and a colon; may be empty.
        options: String,
        /// What needs the memory, and the sizes that determine it.
        what: String,
        /// Bytes needed.
        needed: u64,
        /// Bytes available.
        free: u64,
    },
    /// The model has too many layers to compile in reasonable time.
    #[error(
        "{options}this configuration compiles {layers} layers (depth {depth}, {blocks} blocks, {probes} probes or coordinates of the divergence); the limit is {limit}; make one of these numbers smaller"
    )]
    Layers {
        /// Those of the options that determine the number which were given, with their values and a colon; may be empty.
        options: String,
        /// Hidden layers per vector field.
        depth: usize,
        /// Number of vector fields.
        blocks: usize,
        /// Probes; with the exact divergence, the number of coordinates.
        probes: usize,
        /// Layers of all vector fields, for the velocity and for each direction of the divergence.
        layers: usize,
        /// The limit.
        limit: usize,
    },
    /// No explicit method has this name.
    #[error("`solver`={name}: no explicit method has this name; choose one of {known}")]
    Solver {
        /// The name given.
        name: String,
        /// The names of the explicit methods.
        known: String,
    },
    /// Adaptive steps need a method with an error estimate.
    #[error(
        "`solver`={method} has no error estimate, so `{option}` cannot choose its steps; give `fixed_steps` instead, or choose tsit5 or dopri5"
    )]
    NoErrorEstimate {
        /// The method.
        method: &'static str,
        /// The option that requires adaptive steps.
        option: &'static str,
    },
    /// The time limit is too short to train.
    #[error(
        "a time limit of {limit_s} s leaves no time to train: reading the data took {reading_s:.1} s, preparing them {preparing_s:.1} s, compiling {compiled_s:.1} s, and scores and figures need a part of the limit; allow at least {least_s:.0} s"
    )]
    NoTime {
        /// The limit in seconds.
        limit_s: f64,
        /// Seconds from the start of the process until the data were read.
        reading_s: f64,
        /// Seconds of splitting the data and of preparing the validation points.
        preparing_s: f64,
        /// Seconds of compiling.
        compiled_s: f64,
        /// A sufficient limit in seconds.
        least_s: f64,
    },
    /// A batch cannot be divided into this many shards.
    #[error("`shards`={shards} does not divide a batch of {batch} points: choose a divisor of {batch}")]
    Shards {
        /// Number of shards.
        shards: usize,
        /// Points per update.
        batch: usize,
    },
    /// There are more ranks than shards.
    #[error("{ranks} ranks cannot share {shards} shard(s) of a batch: give `shards` of at least {ranks}")]
    Ranks {
        /// Number of ranks.
        ranks: usize,
        /// Number of shards.
        shards: usize,
    },
    /// The thread pool cannot be started.
    #[error("`threads`={threads}: {reason}; give a smaller number")]
    Threads {
        /// Number of threads.
        threads: usize,
        /// The system's message.
        reason: String,
    },
    /// A solve in an update ended early.
    #[error("{}, at update {update} ({objective}); {}", stopped(outcome), remedy(outcome, *lr))]
    Diverged {
        /// Why the solve ended, with t and the number of steps.
        outcome: crate::ode::Outcome,
        /// The update.
        update: u64,
        /// The phase's objective.
        objective: &'static str,
        /// The phase's peak learning rate.
        lr: f64,
    },
    /// A solve in an evaluation of the flow ended early.
    #[error(
        "{} in an evaluation of the flow, which has probably diverged; lower the learning rate with `lr` (its peak in the first phase was {lr}) and train again",
        stopped(outcome)
    )]
    Unsolved {
        /// Why the solve ended, with t and the number of steps.
        outcome: crate::ode::Outcome,
        /// The peak learning rate of the first phase.
        lr: f64,
    },
    /// The loss or a weight is not finite although every solve succeeded.
    #[error(
        "the loss is {loss} at update {update} ({objective}); lower the learning rate with `lr` (its peak in this phase was {lr}) and train again"
    )]
    Loss {
        /// The loss; NaN if a weight is not finite.
        loss: f64,
        /// The update.
        update: u64,
        /// The phase's objective.
        objective: &'static str,
        /// The phase's peak learning rate.
        lr: f64,
    },
}

/// The total number of updates; 0 if a rank other than 0 does not know it, under a time limit.
impl TrainError {
    /// The error for a file that prevents a run from being resumed, with a remedy in place of the file's own.
    pub(super) fn unusable(e: &crate::error::Error, remedy: &'static str) -> TrainError {
        let cause = match e {
            crate::error::Error::Io(IoError::Damaged { path, bytes, reason }) => {
                format!("{} is damaged ({bytes} bytes): {reason}", path.display())
            }
            e => e.to_string(),
        };
        TrainError::Unusable { cause, remedy }
    }
}

fn of(updates: u64) -> String {
    if updates == 0 { String::new() } else { format!(" of {updates}") }
}

fn kept(folder: Option<&PathBuf>) -> String {
    folder.map_or("the run has no folder, so nothing was saved".to_owned(), |folder| {
        format!("the run is saved in {}; train with the same `run_dir` to continue it", folder.display())
    })
}

fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}

fn remedy(outcome: &crate::ode::Outcome, lr: f64) -> String {
    if let crate::ode::Outcome::MaxSteps { .. } = outcome {
        return format!(
            "lower the learning rate with `lr` (its peak in this phase was {lr}), loosen `rtol` and `atol`, or give `fixed_steps`, and train again"
        );
    }
    format!("lower the learning rate with `lr` (its peak in this phase was {lr}) and train again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ode::Outcome;

    #[test]
    fn a_diverged_flow_names_the_learning_rate_and_no_setting_of_the_library() {
        let outcomes = [
            Outcome::MaxSteps { t: 0.5, step: 10_000 },
            Outcome::StepSizeTooSmall { t: 0.5, dt: 1e-20, dt_min: 0.0, step: 7 },
            Outcome::NonFinite { t: 1.0, dt: 0.1, step: 0, component: Some(39) },
        ];
        for outcome in outcomes {
            let objective = "maximum_likelihood";
            let of_update = TrainError::Diverged { outcome, update: 4, objective, lr: 30.0 }.to_string();
            let of_score = TrainError::Unsolved { outcome, lr: 30.0 }.to_string();
            for message in [of_update, of_score] {
                assert!(message.contains("`lr` (its peak in") && message.contains("30"), "{message}");
                assert!(!message.contains("max_steps"), "{message}");
            }
        }
    }
}
