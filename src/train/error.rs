//! What a run can be asked wrongly. Each message names the option or file, the value and the remedy.

use crate::data::Parts;
use crate::eval::stopped;
use std::path::PathBuf;

/// Why a run cannot start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// An option's value lies outside its range.
    #[error("{option}={value}: must be {range}")]
    Option {
        /// Which.
        option: &'static str,
        /// What it was.
        value: String,
        /// What is allowed.
        range: &'static str,
    },
    /// An option that the run has no use for.
    #[error("{option}={value}: {reason}; leave {option} out")]
    Useless {
        /// Which.
        option: &'static str,
        /// What it was.
        value: String,
        /// Why not.
        reason: &'static str,
    },
    /// Two options that exclude each other.
    #[error("{first} and {second} cannot be combined; leave one out")]
    Exclusive {
        /// One.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// A run is to be resumed with another option than it was begun with.
    #[error(
        "the run in {} was begun with {option}={was}, not {option}={asked}; resume it without that option, or start another with --out",
        folder.display()
    )]
    OtherOption {
        /// The run's folder.
        folder: PathBuf,
        /// Which option.
        option: String,
        /// Its value in the run.
        was: String,
        /// Its value now.
        asked: String,
    },
    /// A run is to be resumed on another image.
    #[error(
        "the run in {} was begun with an image of {was}; {name} ({asked}) is another image; give the run's image, or start another run with --out",
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
    /// A run is to be resumed on other points, or on points instead of an image.
    #[error(
        "the run in {} was begun with {was}; {name} holds other data; give the run's data, or start another run with --out",
        folder.display()
    )]
    OtherData {
        /// The run's folder.
        folder: PathBuf,
        /// The data given.
        name: String,
        /// The run's data.
        was: String,
    },
    /// A run is to be resumed on the same data with other parts.
    #[error(
        "the run in {} split its rows into {was}; these options give {asked}; repeat its --validation and --test",
        folder.display()
    )]
    OtherParts {
        /// The run's folder.
        folder: PathBuf,
        /// Sizes of the run's parts.
        was: Parts,
        /// Sizes of those asked for.
        asked: Parts,
    },
    /// Labels were given to a field that has no classes.
    #[error("--field={field} takes no classes; leave out --labels, or choose --field unet or mlp")]
    NoClasses {
        /// The field.
        field: &'static str,
    },
    /// A file in the folder is of another run than the checkpoint beside it.
    #[error("{} belongs to another run than model.safetensors beside it; restore the file of this run", path.display())]
    OtherRun {
        /// The file.
        path: PathBuf,
    },
    /// A run cannot be resumed because of a file in its folder.
    #[error("{cause}; {remedy}; nothing was changed")]
    Unusable {
        /// The file and what is wrong with it.
        cause: String,
        /// How to go on.
        remedy: &'static str,
    },
    /// The run was asked to stop, and did.
    #[error("stopped after update {update} of {updates}; {}", kept(folder.as_ref()))]
    Stopped {
        /// Updates done.
        update: u64,
        /// Updates of the whole run.
        updates: u64,
        /// Where it was saved, if it has a folder.
        folder: Option<PathBuf>,
    },
    /// What the options ask for does not fit into memory.
    #[error(
        "{options}: {what} needs {} of memory and {} are free; make one of these options smaller",
        gigabytes(*needed), gigabytes(*free)
    )]
    Memory {
        /// The options that it follows from, with their values.
        options: String,
        /// What takes it.
        what: String,
        /// Bytes that it takes.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// More layers than are compiled in reasonable time.
    #[error(
        "--depth={depth} --blocks={blocks} --probes={probes}: this configuration compiles {layers} layers per step; the limit is {limit}; make one of these options smaller"
    )]
    Layers {
        /// Hidden layers.
        depth: usize,
        /// Fields.
        blocks: usize,
        /// Probes, 2 where the divergence is exact.
        probes: usize,
        /// Layers of all fields along all directions.
        layers: usize,
        /// The most there may be.
        limit: usize,
    },
    /// No method has this name.
    #[error("--solver={name}: unknown method; choose one of {known}")]
    Solver {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// Steps of adaptive length were asked of a method that estimates no error.
    #[error(
        "--solver={method} has no error estimate, so {option} cannot choose its steps; give --fixed-steps N instead, or choose tsit5 or dopri5"
    )]
    NoErrorEstimate {
        /// The method.
        method: &'static str,
        /// The option that asks for it.
        option: &'static str,
    },
    /// The time limit leaves no time to train.
    #[error(
        "a time limit of {limit_s} s leaves no time to train: compiling took {compiled_s:.1} s, and scores and figures need a part of it; allow at least {least_s:.0} s"
    )]
    NoTime {
        /// The limit.
        limit_s: f64,
        /// What compiling took.
        compiled_s: f64,
        /// A limit that would do.
        least_s: f64,
    },
    /// The threads asked for cannot be had.
    #[error("--threads {threads}: {reason}; ask for fewer")]
    Threads {
        /// How many.
        threads: usize,
        /// What the system said.
        reason: String,
    },
    /// A solve of an update ended early.
    #[error("{}, at update {update} ({objective}); {}", stopped(outcome), remedy(outcome, *lr))]
    Diverged {
        /// Why, with t and step.
        outcome: crate::ode::Outcome,
        /// The update.
        update: u64,
        /// The phase's objective.
        objective: &'static str,
        /// The phase's learning rate.
        lr: f64,
    },
    /// The loss is not finite though every solve went well.
    #[error(
        "the loss is {loss} at update {update} ({objective}); lower the learning rate (--lr {lr}) and train again"
    )]
    Loss {
        /// The loss.
        loss: f64,
        /// The update that gave it.
        update: u64,
        /// The phase's objective.
        objective: &'static str,
        /// The phase's learning rate.
        lr: f64,
    },
}

fn kept(folder: Option<&PathBuf>) -> String {
    folder.map_or("the run has no folder, so nothing was saved".to_owned(), |folder| {
        format!("the run is saved in {}; --resume continues it", folder.display())
    })
}

fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}

fn remedy(outcome: &crate::ode::Outcome, lr: f64) -> String {
    if let crate::ode::Outcome::MaxSteps { .. } = outcome {
        return "loosen --rtol and --atol, or give --fixed-steps, and train again".to_owned();
    }
    format!("lower the learning rate (--lr {lr}) and train again")
}
