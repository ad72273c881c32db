//! What a run can be asked wrongly. Each message names the option or file, the value and the remedy.

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
    /// Two options that exclude each other.
    #[error("{first} and {second} exclude each other: leave out one")]
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
        "the run in {} learns an image of {was}, {name} is one of {asked} with other pixels; give the run's image, or start another run with --out",
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
    /// The folder holds a run that would be overwritten.
    #[error("{} holds a run already; resume it with --resume, or choose another folder with --out", folder.display())]
    Occupied {
        /// The folder.
        folder: PathBuf,
    },
    /// The time limit leaves no time to train.
    #[error(
        "a time limit of {limit_s:.0} s leaves {left_s:.1} s to train once measuring and drawing ({reserved_s:.1} s) are done; allow at least {least_s:.0} s"
    )]
    NoTime {
        /// The limit.
        limit_s: f64,
        /// What is left of it for updates.
        left_s: f64,
        /// What measuring and drawing are expected to take.
        reserved_s: f64,
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
    /// A point is not finite.
    #[error("point {row} is {value}: coordinates must be finite numbers of pixels")]
    Point {
        /// Which, from 1.
        row: usize,
        /// The point.
        value: String,
    },
    /// A solve of an update ended early.
    #[error(
        "{outcome}, at update {update} ({objective}); lower the learning rate (--lr {lr}) and train again"
    )]
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
        "the loss is {loss} at update {update} ({objective}); lower the learning rate (--lr {lr}) and resume"
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
