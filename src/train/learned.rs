//! The result of a run: a trained density and its report, from a run that ended or from its folder.

mod density;
#[cfg(feature = "plot")]
mod figures;

use super::scores::lines;
use super::state::TrainState;
use super::{Flow, MODEL_FILE, PixelTables, RunInfo, Scores, TrainReport, recorded, start};
use crate::cnf::Cnf;
use crate::data::{PixelTransform, grouped};
use crate::error::Result;
use crate::eval::{Fitted, PointsFrame};
use crate::io::{IoError, read_checkpoint};
use crate::nn::AnyVelocityField;
use crate::tensor::Tensor;
use std::path::Path;

/// A trained density of an image, of points, of a toy density or of a set of images.
///
/// Rows are in the units of the data, with as many numbers as the data have columns: x and y in pixels for an image,
/// the units of a table, pixel values from 0 to 255 for a set of images. Log-densities are in nats: per square pixel for
/// an image, per unit volume for points; for image sets they are lower bounds of log-probabilities.
///
/// | to | call |
/// | --- | --- |
/// | draw rows | [`sample`](Self::sample); in parts [`sample_parts`](Self::sample_parts) |
/// | score rows | [`log_prob`](Self::log_prob); in parts [`log_prob_parts`](Self::log_prob_parts) |
/// | draw rows and score them | [`sample_with_log_prob`](Self::sample_with_log_prob) |
/// | set tolerances, steps, class, noise | [`rtol`](Self::rtol), [`atol`](Self::atol), [`steps`](Self::steps), [`class`](Self::class), [`noise_draws`](Self::noise_draws) |
/// | complete rows, find unusual rows | [`sample_given`](Self::sample_given), [`anomaly_scores`](Self::anomaly_scores) |
/// | evaluate the flow in its own, standardized coordinates | [`cnf`](Self::cnf), [`standardizer`](Self::standardizer) |
///
/// # Examples
/// ```
/// use flowline::cnf::prelude::*;
/// let row = |i: u32| [f64::from(i % 7), f64::from(i % 11), f64::from(i % 13)];
/// let points = Points::from_rows((0..200).map(row).collect::<Vec<_>>())?;
/// # let small = TrainOptions { width: Some(8), depth: Some(1), batch: Some(64), ..Default::default() };
/// let flow = Trainer::new(points).updates(20)
/// #   .options(&small)
///     .run()?;
/// let rows = flow.sample(100, &Key::new(1))?;
/// let nats = flow.log_prob(&rows)?;
/// assert_eq!((rows.len(), rows.dim(), nats.len()), (100, 3, 100));
/// let of_one = flow.rtol(1e-4).atol(1e-4).log_prob([[3.0, 5.0, 6.0]])?;
/// assert!(of_one[0].is_finite());
/// # Ok::<(), flowline::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TrainedFlow {
    /// The header of the checkpoint: options, configuration, frames of the data.
    pub header: RunInfo,
    /// The number of updates of the run.
    #[doc(alias = "iteration")]
    pub num_updates: u64,
    /// The final scores of the run, also of a run that was read from its folder; `None` on ranks other than 0, and if the
    /// folder has none. [`summary`](Self::summary) returns them as text, or why there are none.
    pub scores: Option<Scores>,
    /// Scores, times and costs of the run; `None` if the run was read from its folder, and on ranks other than 0.
    pub report: Option<TrainReport>,
    pub(super) fitted: Fitted,
    /// Why there are no scores.
    without_scores: String,
}

impl TrainedFlow {
    pub(super) fn new(
        state: TrainState,
        header: RunInfo,
        report: Option<TrainReport>,
        pixels: Option<PixelTransform>,
    ) -> TrainedFlow {
        let num_updates = state.update.item() as u64;
        let (scores, without_scores) =
            (report.as_ref().map(TrainReport::scores), "rank 0 has them".to_owned());
        let fitted = Fitted::new(state.ema, &header.frames, pixels);
        TrainedFlow { header, num_updates, scores, report, fitted, without_scores }
    }

    /// The [`scores`](Self::scores), one per line, means with their standard errors; if there are none, the number of
    /// updates and the reason.
    pub fn summary(&self) -> String {
        let Some(scores) = &self.scores else {
            return format!("{} updates, no scores: {}", grouped(self.num_updates), self.without_scores);
        };
        let points = self.header.frames.points.as_ref();
        let dropped = points.and_then(PointsFrame::dropped_text);
        let noise = points.and_then(PointsFrame::dequantized_text);
        let from = self.header.config.start_normals().map(start::named);
        let classes = points.and_then(PointsFrame::classes_text);
        let more = [("classes", classes), ("dropped", dropped), ("dequantized", noise), ("start", from)];
        let more = more.into_iter().filter_map(|(name, value)| Some((name, value?)));
        lines(&scores.figures().into_iter().chain(more).collect::<Vec<_>>())
    }

    /// Reads a run folder: the flow, and the scores if the run has ended.
    ///
    /// # Errors
    /// The checkpoint is missing, damaged or of an incompatible version.
    #[doc(alias = "load")]
    pub fn open(folder: impl AsRef<Path>) -> Result<TrainedFlow> {
        let path = folder.as_ref().join(MODEL_FILE);
        let checkpoint = read_checkpoint::<RunInfo>(&path)?;
        let like = checkpoint.header.config.model.build_like(checkpoint.num_elements());
        let like = like.map_err(|e| IoError::Layout { path: path.clone(), reason: e.to_string() })?;
        let dim = checkpoint.header.config.model.dim;
        if let Some(frame) = checkpoint.header.frames.images.as_ref().filter(|frame| !frame.has_dim(dim)) {
            let [h, w, c] = [frame.height, frame.width, frame.channels];
            let reason = format!("its images are {h} x {w} x {c}, but its flow has {dim} coordinates");
            return Err(IoError::Layout { path, reason }.into());
        }
        let flow: Flow = checkpoint.part("ema", &like)?;
        let num_updates = checkpoint.part("update", &Tensor::from(0u32))?.item() as u64;
        let tables = checkpoint.header.frames.images.as_ref();
        let tables = tables.map(|frame| PixelTables::like(frame.pixels, frame.dim()));
        let pixels = match tables {
            Some(like) => checkpoint.part("pixels", &Some(like))?.map(|tables| tables.transform()),
            None => None,
        };
        let header = checkpoint.header;
        let (scores, without_scores) = match recorded::scores(folder.as_ref(), &header, num_updates) {
            Ok(scores) => (Some(scores), String::new()),
            Err(reason) => (None, reason),
        };
        let fitted = Fitted::new(flow, &header.frames, pixels);
        Ok(TrainedFlow { header, num_updates, scores, report: None, fitted, without_scores })
    }
}

impl Cnf<AnyVelocityField> {
    /// The flow of a run folder, with its averaged weights, in standardized coordinates.
    ///
    /// # Errors
    /// The checkpoint is missing, damaged or of an incompatible version.
    #[doc(alias = "load")]
    pub fn open(folder: impl AsRef<Path>) -> Result<Self> {
        Ok(TrainedFlow::open(folder)?.fitted.flow)
    }
}
