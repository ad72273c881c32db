//! Learning the density of an image, of points, of a toy: the configuration, the loop, what it leaves behind.
//!
//! A run is a folder with one checkpoint, rows of metrics and, in builds with the feature `plot`, figures. It knows everything below it (flows, optimizers,
//! images, figures, files) and prints nothing: progress and notes are values given to whoever asks.
//!
//! - [`TrainOptions`] is what a person says, [`TrainConfig`] everything that follows from it by `presets`, and both lie in the checkpoint.
//! - `step` is one update as one jitted call; its state is a tree, and randomness a function of (key, update).
//! - `run` is the builder, and finds out whether there is a run to resume.
//! - `session` is the loop. What looks at the clock (checkpoints, measures, figures) reads the state and never
//!   writes it: **a run by updates that was killed and resumed ends with the bits of one that was not.**
//! - Files have three parts: training, validation (which chooses weights) and test (measured once, at the end).
//! - What is learned is measured and drawn by [`eval`](crate::eval), which knows no training.
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
//! println!("{}", flow.report()); // the KL divergence and its standard error
//! # Ok::<(), flowline::Error>(())
//! ```

mod best;
mod bounds;
mod budget;
mod config;
mod data;
mod error;
mod feed;
#[cfg(feature = "plot")]
mod figures;
mod finish;
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
mod state;
mod step;
mod tally;
#[cfg(test)]
mod tests;

pub use crate::eval::TrainingData;
pub use error::TrainError;
pub use learned::TrainedFlow;
pub use options::{Preset, TrainOptions};
pub use progress::Progress;
pub use report::{PhaseReport, TrainReport};
pub use run::Trainer;

pub mod extra {
    //! Options by name, and what describes a run.
    pub use super::config::{Objective, Phase, TrainConfig};
    pub use super::options::{ModelKind, ObjectiveKind, OptimizerKind, PlotsKind};
    pub use super::progress::Activity;
    pub use super::run::RunInfo;
    pub use crate::cnf::config::{ActivationKind, DivergenceKind};
    pub use crate::data::Given;
    pub use crate::eval::{BitsPerDim, DensityGrid, EvalError, PixelTransformKind, Units};
    pub use crate::heatmap::{ColorScale, Extent};
}
pub(crate) use extra::*;

// What a run is made of: the command line and the benches reach it by `__internal`.
#[doc(hidden)]
pub use self::{
    feed::Feed,
    plan::{FlopsOf, PhasePlan, StatesPlan},
    recorded::Recorded,
    scores::Scores,
    state::{Batch, ImageTables, PointsTable, Rows, Source, Stored, Tables, TrainState},
};
#[doc(hidden)]
pub use crate::{
    cnf::config::{FieldConfig, Flow, Kept, ModelConfig, SolveConfig, Steps},
    data::{HELD_OUT_SHARE, Parts},
    eval::{
        DRAW_TOLERANCE, FAR, IMAGE_TOLERANCE, ImageFrame, ImagesFrame, MEASURE_TOLERANCE, PixelTables,
        PointsFrame, ToleranceRow, check_tolerances,
    },
    io::run::{METRICS_FILE, MODEL_FILE, check_free, default_folder, metrics},
};
