//! The result of a run: a fitted density and its report, from a run that ended or from its folder.

use super::state::TrainState;
use super::{Flow, MODEL_FILE, PixelTables, RunInfo, TrainReport};
use crate::cnf::Cnf;
use crate::data::{PixelTransform, grouped};
use crate::error::Result;
use crate::eval::Fitted;
use crate::io::{IoError, read_checkpoint};
use crate::nn::AnyVelocityField;
use crate::tensor::{Key, Tensor};
use std::ops::Deref;
use std::path::Path;

/// A trained flow of an image, of points, of a toy density or of a set of images. It dereferences to
/// [`Fitted`], which evaluates, samples and plots it.
#[derive(Debug)]
#[non_exhaustive]
pub struct TrainedFlow {
    /// The fitted density.
    pub fitted: Fitted,
    /// The header of the checkpoint: options, configuration, frames of the data.
    pub header: RunInfo,
    /// Updates done.
    pub update: u64,
    /// Scores and costs of the run; `None` if the run was read from its folder, and on ranks other than 0.
    /// [`report`](Self::report) returns the scores as text.
    pub train_report: Option<TrainReport>,
}

impl Deref for TrainedFlow {
    type Target = Fitted;

    fn deref(&self) -> &Fitted {
        &self.fitted
    }
}

impl TrainedFlow {
    pub(super) fn new(
        state: TrainState,
        header: RunInfo,
        train_report: Option<TrainReport>,
        pixels: Option<PixelTransform>,
    ) -> TrainedFlow {
        let update = state.update.item() as u64;
        TrainedFlow { fitted: Fitted::new(state.ema, &header.frames, pixels), header, update, train_report }
    }

    /// The scores of the model, one per line, means with their standard errors; without
    /// [`train_report`](Self::train_report), the number of updates.
    pub fn report(&self) -> String {
        match &self.train_report {
            Some(report) => report.to_string(),
            None => format!("{} updates, opened from its run folder", grouped(self.update)),
        }
    }

    /// Reads a run folder.
    ///
    /// # Errors
    /// The checkpoint is missing, damaged or of an incompatible version.
    pub fn open(folder: impl AsRef<Path>) -> Result<TrainedFlow> {
        let path = folder.as_ref().join(MODEL_FILE);
        let checkpoint = read_checkpoint::<RunInfo>(&path)?;
        let like = checkpoint.header.config.model.build(&Key::new(0));
        let like = like.map_err(|e| IoError::Layout { path, reason: e.to_string() })?;
        let flow: Flow = checkpoint.part("ema", &like)?;
        let update = checkpoint.part("update", &Tensor::from(0u32))?.item() as u64;
        let tables = checkpoint.header.frames.images.as_ref();
        let tables = tables.map(|frame| PixelTables::like(frame.pixels, frame.dim()));
        let pixels = match tables {
            Some(like) => checkpoint.part("pixels", &Some(like))?.map(|tables| tables.transform()),
            None => None,
        };
        let header = checkpoint.header;
        Ok(TrainedFlow {
            fitted: Fitted::new(flow, &header.frames, pixels),
            header,
            update,
            train_report: None,
        })
    }
}

impl Cnf<AnyVelocityField> {
    /// The flow of a run folder, with its averaged weights.
    ///
    /// # Errors
    /// The checkpoint is missing, damaged or of an incompatible version.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self> {
        Ok(TrainedFlow::open(folder)?.fitted.flow)
    }
}
