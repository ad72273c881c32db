//! Learning the density of an image, of points, of a toy: the recipe, the loop, what it leaves behind.
//!
//! A run is a folder with one checkpoint, rows of metrics and pictures. It knows everything below it (flows, optimisers,
//! images, pictures, files) and prints nothing: progress and notes are values given to whoever asks.
//!
//! - [`Options`] is what a person says, [`Recipe`] everything that follows from it by `presets`, and both lie in the checkpoint.
//! - `step` is one update as one jitted call; its state is a tree, and randomness a function of (key, update).
//! - `run` is the builder, and finds out whether there is a run to resume.
//! - `session` is the loop. What looks at the clock (checkpoints, measures, pictures) reads the state and never
//!   writes it: **a run that was killed and resumed ends with the bits of one that was not.**
//! - Files have three parts: training, validation (which chooses weights) and test (measured once, at the end).
//! - `evaluate` measures with its own tolerances and the exact divergence, whatever the training used.
//!
//! # Examples
//! ```no_run
//! use flowline::{cnf::Cnf, data::ImageDensity, prelude::*, train};
//! let key = Key::new(0);
//! let learned = train::Density::new(Cnf::plane(&key), ImageDensity::open("cat.png")?)
//!     .updates(2_000)
//!     .run_folder("runs/cat")
//!     .on_update(|progress| println!("{progress}"))
//!     .run(&key)?;
//! learned.plot_density("density.png", 512)?;
//! # Ok::<(), flowline::Error>(())
//! ```

mod best;
mod bounds;
mod budget;
mod counters;
mod data;
mod domain;
mod error;
mod evaluate;
mod finish;
mod folder;
mod frame;
mod images;
mod learned;
pub mod metrics;
mod model;
mod options;
mod parts;
mod pictures;
mod plan;
mod presets;
mod progress;
mod recipe;
mod recorded;
mod report;
mod run;
mod session;
mod solve;
mod state;
mod step;
#[cfg(test)]
mod tests;

pub use data::Data;
pub use error::TrainError;
pub use evaluate::{DRAW_TOLERANCE, MEASURE_TOLERANCE};
pub use folder::{METRICS_FILE, MODEL_FILE, check_free, default_folder};
pub use frame::{ImageFrame, PointsFrame, Units};
pub use images::{BitsPerDim, Feed, IMAGE_TOLERANCE, ImagesFrame, PixelTables, PixelsKind, ToleranceRow};
pub use learned::{FAR, Learned, LogGrid};
pub use model::{ActivationKind, FieldConfig, Flow, ModelConfig};
pub use options::{
    DivergenceKind, FieldKind, ObjectiveKind, OptimizerKind, Options, Preset, check_tolerances,
};
pub use parts::{Given, HELD_OUT_SHARE, Parts};
pub use plan::{FlopsOf, PhasePlan, StatesPlan};
pub use progress::{Progress, Stage};
pub use recipe::{Objective, Phase, Recipe};
pub use recorded::Recorded;
pub use report::{PhaseReport, Report};
pub use run::{Density, Header, num_weights};
pub use solve::{Kept, SolveConfig, Steps};
pub use state::{Batch, ImageTables, PointsTable, Rows, Source, Stored, Tables, TrainState};
