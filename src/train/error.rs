//! What a run can be asked wrongly. Each message names the option or file, the value and the remedy.

use super::Parts;
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
    /// A run is to be resumed on other points, or on points instead of an image.
    #[error(
        "the run in {} learns {was}, {name} holds other points; give the run's data, or start another run with --out",
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
        "the rows of the run in {} are {was}; now they would be {asked}: give the --validation and --test it was begun with",
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
    /// Images to learn from have classes, and those to measure by have none.
    #[error(
        "{name} has no labels, the images to learn from have; give theirs with --validation-labels or --test-labels"
    )]
    NoLabels {
        /// The images without.
        name: String,
    },
    /// Labels were given to a field that has no classes.
    #[error("--field={field} takes no classes; leave out --labels, or take --field unet or mlp")]
    NoClasses {
        /// The field.
        field: &'static str,
    },
    /// Too few rows to hold one out and learn from others.
    #[error(
        "{kind} {name}: {found} are too few for their parts; give at least {least}, better thousands, or others with --validation and --test"
    )]
    TooFew {
        /// `points` or `images`.
        kind: &'static str,
        /// What they are called.
        name: String,
        /// How many there are.
        found: usize,
        /// How many there must be.
        least: usize,
    },
    /// A class that a run does not have was asked for, or none of a run that has some.
    #[error("{}", class_asked(*asked, *classes))]
    Class {
        /// The class asked for.
        asked: Option<usize>,
        /// How many the run has.
        classes: Option<usize>,
    },
    /// What only images have was asked of a run on other data.
    #[error("{what} is of runs on sets of images, this run learned {name}")]
    NoImages {
        /// What was asked for.
        what: &'static str,
        /// What it learned.
        name: String,
    },
    /// What only a picture of the plane has was asked of points of another number of coordinates.
    #[error(
        "{what} shows two coordinates, this run's points have {dim}; draw some with `sample` and plot pairs of them"
    )]
    NoPlane {
        /// What was asked for.
        what: &'static str,
        /// Coordinates of the points.
        dim: usize,
    },
    /// The folder holds a run that would be overwritten.
    #[error(
        "{} holds a run already; resume it with --resume, move it aside with --restart, or choose another folder with --out",
        folder.display()
    )]
    Occupied {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder holds files of a run that would be overwritten, and no checkpoint.
    #[error(
        "{} would be overwritten: {} holds a run's files and no model.safetensors; put that back and --resume, or move the files aside and begin anew with --restart",
        found.display(), folder.display()
    )]
    Lost {
        /// The folder.
        folder: PathBuf,
        /// One of the files.
        found: PathBuf,
    },
    /// A file in the folder is of another run than the checkpoint beside it.
    #[error("{} belongs to another run than the model.safetensors beside it; put the file of this run there", path.display())]
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
    /// A flow is described by sizes that none has.
    #[error("no flow has such sizes: {reason}")]
    Model {
        /// What does not fit.
        reason: String,
    },
    /// A sample is no number in the units of the data.
    #[error(
        "sample {row} is {value} in the units of the data, beyond what a number of 64 bits holds (1.8e308); scale the columns down and train again"
    )]
    Overflow {
        /// Which, from 1.
        row: usize,
        /// The sample.
        value: String,
    },
    /// The folder holds a file that would be overwritten, and no run.
    #[error("{} is there already and would be overwritten; move it away, or choose another folder with --out", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// What the options ask for does not fit into memory.
    #[error(
        "{options}: {what} takes {} and {} are free; make one of them smaller",
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
        "--depth={depth} --blocks={blocks} --probes={probes}: {layers} layers would be compiled for a step, at most {limit} are; make one of them smaller"
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
    #[error("--solver={name}: there is no such method; take one of {known}")]
    Solver {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// Steps of adaptive length were asked of a method that estimates no error.
    #[error(
        "--solver={method} has no error estimate, so {option} cannot choose its steps; give --fixed-steps N instead, or take tsit5 or dopri5"
    )]
    NoErrorEstimate {
        /// The method.
        method: &'static str,
        /// The option that asks for it.
        option: &'static str,
    },
    /// The time limit leaves no time to train.
    #[error(
        "a time limit of {limit_s} s leaves no time to train: compiling takes {compiled_s:.1} s, and a part of the limit is for measuring and drawing; allow at least {least_s:.0} s"
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
    /// A point that no density is told of.
    #[error("{place} is {value}: {reason}")]
    Point {
        /// Which: `point 3`, counted from 1, or a line of a file.
        place: String,
        /// Which, from 0.
        row: usize,
        /// The point, in pixels.
        value: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A margin that reaches farther than densities are told.
    #[error(
        "--margin={margin}: the corners would lie {reach:.0} deviations from the image's centre of mass, densities are told within {far}; give at most {most:.0} pixels"
    )]
    Margin {
        /// The margin in pixels.
        margin: f64,
        /// Where the farthest corner would lie.
        reach: f64,
        /// Where it may lie.
        far: f64,
        /// The largest margin.
        most: f64,
    },
    /// The solve of some points ended early.
    #[error(
        "{place}, {value} the farthest out: {}; loosen --rtol and --atol, or leave out far points",
        stopped(outcome)
    )]
    Unsolved {
        /// Which: `points 1 to 64` or `point 1`, counted from 1, or lines of a file.
        place: String,
        /// The first and the last, from 0.
        rows: [usize; 2],
        /// The one farthest from the image's centre of mass, in pixels.
        value: String,
        /// Why, with t and step.
        outcome: crate::ode::Outcome,
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

fn class_asked(asked: Option<usize>, classes: Option<usize>) -> String {
    match (asked, classes) {
        (Some(asked), None) => {
            format!("--label={asked}: this run was trained without classes; leave --label out")
        }
        (None, Some(classes)) => format!("this run has {classes} classes; tell one with --label K, K from 0"),
        (asked, classes) => {
            let (asked, most) = (asked.unwrap_or(0), classes.unwrap_or(1).saturating_sub(1));
            format!("--label={asked}: this run has classes 0 to {most}")
        }
    }
}

fn kept(folder: Option<&PathBuf>) -> String {
    folder.map_or("it has no folder and is lost".to_owned(), |folder| {
        format!("the run is saved in {}, --resume goes on with it", folder.display())
    })
}

fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}

/// Why a solve ended, without the remedies of who calls the solver himself.
fn stopped(outcome: &crate::ode::Outcome) -> String {
    match outcome {
        crate::ode::Outcome::MaxSteps { t, step } => format!("no solution after {step} steps, at t={t}"),
        outcome => outcome.to_string(),
    }
}

fn remedy(outcome: &crate::ode::Outcome, lr: f64) -> String {
    if let crate::ode::Outcome::MaxSteps { .. } = outcome {
        return "loosen --rtol and --atol, or give --fixed-steps, and train again".to_owned();
    }
    format!("lower the learning rate (--lr {lr}) and train again")
}
