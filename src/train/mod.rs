//! Training a flow on an image, points, a toy density or a set of images: configuration, training loop, run
//! folder.
//!
//! A run folder holds a checkpoint, rows of metrics and, with the feature `plot`, figures. This module uses
//! the layers below it (flows, optimizers, images, figures, files) and prints nothing: callbacks receive progress
//! and notes as values.
//!
//! - [`TrainOptions`] is what the user sets; `presets` turn it into a complete [`TrainConfig`]. The checkpoint holds
//!   both.
//! - `step` is one update, a jitted function. Its state is a tree, and its random numbers are a function of
//!   (key, update).
//! - `run` is the builder; it decides whether there is a run to resume.
//! - `session` is the loop. Whatever depends on the clock (checkpoints, validation, figures) reads the state and never
//!   writes it: **a run with a fixed number of updates that is killed and resumed is bit-identical to an uninterrupted
//!   one.**
//! - Tables and image sets are split into training, validation (selects the weights) and test (scored once,
//!   at the end).
//! - [`eval`](crate::eval) scores and plots the trained flow; it does not depend on training.
//!
//! # Examples
//! ```no_run
//! use flowline::data::ImageDensity;
//! use flowline::train::Trainer;
//! let flow = Trainer::new(ImageDensity::open("cat.png")?)
//!     .updates(2_000)
//!     .run_dir("runs/cat")
//!     .on_update(|progress| println!("{progress}"))
//!     .run()?;
//! # #[cfg(feature = "plot")]
//! flow.plot_density("density.png", 512)?;
//! println!("{}", flow.summary()); // the KL divergence and the other scores
//! # Ok::<(), flowline::Error>(())
//! ```

mod agree;
mod best;
mod bounds;
mod budget;
mod config;
mod data;
mod effect;
mod error;
mod estimator;
mod feed;
#[cfg(feature = "plot")]
mod figures;
mod finish;
mod follow;
mod learned;
mod options;
mod plan;
mod presets;
mod progress;
mod recorded;
mod report;
mod run;
mod scores;
mod session;
mod start;
mod state;
mod step;
mod tally;
mod team;
#[cfg(test)]
mod tests;
mod warnings;

pub use crate::eval::TrainingData;
pub use error::TrainError;
pub use learned::TrainedFlow;
pub use options::{Preset, TrainOptions};
pub use progress::Progress;
pub use report::{PhaseReport, TrainReport};
pub use run::Trainer;

pub mod extra {
    //! Named options, and the description of a run.
    pub use super::config::{Objective, Phase, TrainConfig};
    pub use super::estimator::LearnedFrom;
    pub use super::options::{
        InitialFlowKind, ModelKind, ObjectiveKind, OptimizerKind, PlotsKind, TargetKind, TimesKind,
    };
    pub use super::progress::Activity;
    pub use super::run::RunInfo;
    pub use super::scores::Scores;
    pub use crate::cnf::config::{ActivationKind, DivergenceKind};
    pub use crate::data::Given;
    pub use crate::eval::{
        BitsPerDim, DensityGrid, EvalError, ImageScores, IntoRows, PixelTransformKind, Units,
    };
    pub use crate::heatmap::{ColorScale, Extent};
}
pub(crate) use extra::*;

// Internals that the command line and the benches use through `__internal`.
#[doc(hidden)]
pub use self::{
    feed::Feed,
    options::{INPUT, MODEL, OBJECTIVE, OPTIMIZER, OPTIONS, OUTPUT, RUN, SOLVER, TrainOption, Values},
    plan::{FlopsOf, PhasePlan, StatesPlan},
    recorded::{Recorded, seconds_trained},
    state::{Batch, ImageRows, ImageTables, PointsTable, Source, Stored, Tables, TrainState},
};
#[doc(hidden)]
pub use crate::{
    cnf::config::{FieldConfig, Flow, Kept, ModelConfig, SolveConfig, Steps},
    data::{HELD_OUT_SHARE, Parts},
    eval::{
        DRAW_TOLERANCE, FAR, GridAccuracy, IMAGE_TOLERANCE, ImageFrame, ImagesFrame, MEASURE_TOLERANCE,
        PixelTables, PointsFrame, ToleranceRow, check_tolerances,
    },
    io::run::{METRICS_FILE, MODEL_FILE, check_free, check_output, default_folder, metrics},
};
