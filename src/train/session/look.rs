//! Validation and figures during training.
//!
//! Both read the averaged weights and never write the state, because their times depend on the clock and a
//! resumed run must be bit-identical to an uninterrupted one.

use super::Session;
use crate::error::Result;
use crate::eval::{Deadline, Images, Score};
use crate::train::team::Order;
use crate::train::{Activity, Trainer};
use std::time::{Duration, Instant};
#[cfg(feature = "plot")]
use {
    crate::eval::{
        Gallery,
        figures::{Artist, on_cells},
    },
    crate::io::run::RunFolder,
    crate::tensor::Tensor,
    crate::train::PlotsKind,
    crate::train::figures::SAMPLE_STREAM,
};

/// The first validation of a phase comes after this many updates (without a time limit) or this time,
/// whichever is first. It comes before memory is measured at update 100, so that the measurement includes
/// what validation allocates once.
const FIRST_LOOK_UPDATES: u64 = 50;
const FIRST_LOOK: Duration = Duration::from_secs(8);
/// Cells along the longer side of figures during training.
#[cfg(feature = "plot")]
const COARSE: usize = 96;
/// Number of test points of a known density that are sampled and scored together.
const DRAWN: usize = 4096;

impl Session<'_> {
    /// Whether the first validation of a phase is due. Under a time limit, validation takes time from updates,
    /// so a phase with less than `FIRST_LOOK` left skips it.
    pub(super) fn first_look(&self, phase: usize) -> bool {
        let begun = self.first(phase).max(self.resumed_from.unwrap_or(0));
        match self.clock.left_s(phase) {
            None => self.update - begun >= FIRST_LOOK_UPDATES || self.begun.elapsed() >= FIRST_LOOK,
            Some(left_s) => self.begun.elapsed() >= FIRST_LOOK && left_s >= FIRST_LOOK.as_secs_f64(),
        }
    }

    /// The validation score of the averaged weights, over as many points as there is time for.
    pub(in crate::train) fn measure(&mut self, by: Deadline) -> Result<Score> {
        self.team.order(&Order::Wait)?;
        let (since, on_stage) = (Instant::now(), &mut self.trainer.on_stage);
        on_stage(Activity::Measuring, 0.0);
        let progress = |share| on_stage(Activity::Measuring, share);
        let found = self.held_out.validation(&self.measure, &self.state.ema, by, progress)?;
        let found = self.reported(found);
        self.measuring.done(since);
        if self.last_score.is_none_or(|last| last.lost.is_none()) {
            self.held_out.lost(&found, false).iter().for_each(|text| (self.trainer.on_note)(text));
        }
        self.last_score = Some(found);
        Ok(found)
    }

    /// The test score of the averaged weights, over as many points as there is time for.
    pub(in crate::train) fn test(&mut self, by: Deadline) -> Result<Score> {
        let (seed, standard) = (self.header.config.seed, self.header.standard());
        let Trainer { data, on_stage, .. } = &mut self.trainer;
        let fresh = |part| data.fresh(&standard, DRAWN, seed, part);
        let progress = |share| on_stage(Activity::Testing, share);
        let found = self.held_out.test(fresh, &self.measure, &self.state.ema, by, progress)?;
        self.held_out.lost(&found, true).iter().for_each(|text| (self.trainer.on_note)(text));
        Ok(self.reported(found))
    }

    /// Converts a score to the coordinates in which NLLs are reported.
    fn reported(&self, score: Score) -> Score {
        Score { nll: score.nll.plus(self.header.frames.reported_nats()), ..score }
    }

    /// Draws `density.png` on a coarse grid; for an image set, `samples.png` if all figures are drawn.
    #[cfg(feature = "plot")]
    pub(super) fn draw(&mut self) -> Result<()> {
        if self.plots == PlotsKind::Density && self.held_out.images().is_some() {
            return Ok(());
        }
        self.team.order(&Order::Wait)?;
        let since = Instant::now();
        if let (Some(gallery), true) = (self.gallery(), self.update > 0) {
            let key = self.state.key.fold_in(Tensor::from(SAMPLE_STREAM));
            gallery.samples(&self.state.ema, &key, self.update)?;
            self.drawing.done(since);
            return Ok(());
        }
        let Some(image) = &self.header.frames.image else { return Ok(()) };
        let count = |side: usize| (side * COARSE).div_ceil(image.side()).max(2);
        let cells = image.cells(0.0, count(image.height), count(image.width));
        let density = on_cells(&self.draw, &self.state.ema, image, &cells)?;
        let learned = (density, cells.rows, cells.cols);
        let update = self.update;
        if let Some((artist, folder)) = self.artist() {
            artist.density(folder, &learned, (update, update))?;
        }
        self.drawing.done(since);
        Ok(())
    }

    /// Draws the figures of an image set, if the data are one and there is a folder.
    #[cfg(feature = "plot")]
    pub(in crate::train) fn gallery(&self) -> Option<Gallery<'_>> {
        let (images, frame) = (self.held_out.images()?, self.header.frames.images.as_ref()?);
        let folder = self.folder.as_ref()?;
        Some(Gallery { folder, frame, images })
    }

    /// Number of programs traced for scoring.
    pub(in crate::train) fn measure_traces(&self) -> usize {
        self.held_out.images().map_or_else(|| self.measure.traces(), Images::traces)
    }

    /// Draws figures over the plane, if there is a plane and a folder.
    #[cfg(feature = "plot")]
    pub(in crate::train) fn artist(&mut self) -> Option<(&Artist, &RunFolder)> {
        let (folder, image) = (self.folder.as_ref()?, self.header.frames.image.as_ref()?);
        let data = &self.trainer.data;
        let truth = || data.truth(image, image.cells_per_pixel());
        let new = || Artist::new(&self.header.frames, image, data.title(), truth());
        Some((self.artist.get_or_insert_with(new), folder))
    }
}
