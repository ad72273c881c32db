//! Learning the density of an image, of points, of a toy: the recipe, the loop, what it leaves behind.
//!
//! A run is a folder with one checkpoint, rows of metrics and, in builds with the feature `plot`, figures. It knows everything below it (flows, optimizers,
//! images, pictures, files) and prints nothing: progress and notes are values given to whoever asks.
//!
//! - [`TrainOptions`] is what a person says, [`TrainConfig`] everything that follows from it by `presets`, and both lie in the checkpoint.
//! - `step` is one update as one jitted call; its state is a tree, and randomness a function of (key, update).
//! - `run` is the builder, and finds out whether there is a run to resume.
//! - `session` is the loop. What looks at the clock (checkpoints, measures, pictures) reads the state and never
//!   writes it: **a run by updates that was killed and resumed ends with the bits of one that was not.**
//! - Files have three parts: training, validation (which chooses weights) and test (measured once, at the end).
//! - What is learned is measured and drawn by [`eval`](crate::eval), which knows no training.
//!
//! # Examples
//! ```no_run
//! use flowline::{data::ImageDensity, train::Trainer};
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
mod recipe;
mod recorded;
mod report;
mod run;
mod session;
mod state;
mod step;
mod tally;
#[cfg(test)]
mod tests;

pub use crate::cnf::config::{
    ActivationKind, DivergenceKind, FieldConfig, Flow, Kept, ModelConfig, SolveConfig, Steps,
};
pub use crate::data::{Given, HELD_OUT_SHARE, Parts};
pub use crate::eval::{
    BitsPerDim, DRAW_TOLERANCE, DensityGrid, FAR, IMAGE_TOLERANCE, ImageFrame, ImagesFrame,
    MEASURE_TOLERANCE, PixelTables, PixelTransformKind, PointsFrame, ToleranceRow, TrainingData, Units,
    check_tolerances,
};
pub use crate::heatmap::{ColorScale, Extent};
pub use crate::io::run::{METRICS_FILE, MODEL_FILE, check_free, default_folder, metrics};
pub use error::TrainError;
pub use feed::Feed;
pub use learned::TrainedFlow;
pub use options::{ModelKind, ObjectiveKind, OptimizerKind, Preset, TrainOptions};
pub use plan::{FlopsOf, PhasePlan, StatesPlan};
pub use progress::{Activity, Progress};
pub use recipe::{Objective, Phase, TrainConfig};
pub use recorded::Recorded;
pub use report::{PhaseReport, TrainReport};
pub use run::{RunInfo, Trainer};
pub use state::{Batch, ImageTables, PointsTable, Rows, Source, Stored, Tables, TrainState};
