//! Evaluation of a learned density: log-densities, samples and figures, in the coordinates of its data.
//!
//! Log-densities have their own tolerance, independent of the settings in training. They use the exact
//! divergence; for image sets, they are estimates with a standard error.
//!
//! - [`Fitted`] is a flow in the coordinates of its data; a [`TrainedFlow`](crate::train::TrainedFlow) evaluates by it.
//! - [`Frames`] are the properties of the data that a [`Fitted`] stores: sizes, units, entropies.
//! - [`TrainingData`] is the data of a run, and the target density if it is known.
//! - `measure` scores held-out points, `domain` computes the total probability over the plane by the rules of
//!   `integral` from the cells that `refine` solves, `images` scores image sets.
//! - `inpaint` and `anomaly` are uses of a density: rows with given coordinates, and how unusual rows are.
//! - `figures` plots, with the feature `plot`. A `Deadline` limits the time of scores and figures.

mod anomaly;
mod deadline;
mod domain;
mod draws;
mod error;
mod exact;
#[cfg(feature = "plot")]
pub(crate) mod figures;
mod fitted;
mod frame;
mod frames;
mod grid;
mod held_out;
mod images;
mod inpaint;
mod input;
mod integral;
mod measure;
mod most;
mod points_frame;
mod refine;
#[cfg(feature = "plot")]
mod samples;
mod settings;
mod target;
mod tensors;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use deadline::Machine;
pub(crate) use deadline::{Deadline, Stopwatch, Work};
#[cfg(feature = "plot")]
pub(crate) use domain::Inner;
pub(crate) use domain::{OUTER_MASS, OnPlane, TotalProbability};
pub use error::{EvalError, stopped};
pub(crate) use fitted::{DATA, Fitted, check_rows};
pub use fitted::{FAR, check_tolerances};
pub(crate) use frame::file_name;
pub use frame::{ImageFrame, Units};
pub use frames::Frames;
pub use grid::DensityGrid;
pub(crate) use held_out::HeldOut;
#[cfg(feature = "plot")]
pub(crate) use images::Gallery;
pub use images::{
    BitsPerDim, IMAGE_TOLERANCE, ImageScores, ImagesFrame, PixelTables, PixelTransformKind, ToleranceRow,
};
pub(crate) use images::{Images, bits_of_nats};
pub use input::{Input, IntoRows};
pub(crate) use integral::ERROR as QUADRATURE_ERROR;
pub use measure::{DRAW_TOLERANCE, MEASURE_TOLERANCE, SCORE_TOLERANCE};
pub(crate) use measure::{HeldOutRows, LogDensity, Sampler, Score, drawable};
pub use most::with_at_most;
pub(crate) use most::{at_most, side_at_most};
pub use points_frame::PointsFrame;
pub(crate) use points_frame::{classes_text, dequantized_text, dropped_text};
pub use refine::Accuracy as GridAccuracy;
pub(crate) use target::TEST_STREAM;
pub use target::TrainingData;
