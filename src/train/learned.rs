//! What a run leaves behind: a fitted density and what the run was, from its end or from its folder.

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

/// A learned density of an image, of points or of images. It is [`Fitted`], which evaluates, samples and draws it.
#[derive(Debug)]
#[non_exhaustive]
pub struct TrainedFlow {
    /// What was learned.
    pub fitted: Fitted,
    /// What the checkpoint says: options, configuration, image or points.
    pub header: RunInfo,
    /// Updates done.
    pub update: u64,
    /// The run in numbers; none where it was only read. As text: [`report`](Self::report).
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

    /// What the run found of the model, one figure per line, each with its standard error; of a run that was only read, how far
    /// it came.
    pub fn report(&self) -> String {
        match &self.train_report {
            Some(report) => report.to_string(),
            None => format!("{} updates, opened from its run folder", grouped(self.update)),
        }
    }

    /// Reads a run folder.
    ///
    /// # Errors
    /// No checkpoint, a damaged one, one of another version.
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
    /// No checkpoint, a damaged one, one of another version.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self> {
        Ok(TrainedFlow::open(folder)?.fitted.flow)
    }
}
