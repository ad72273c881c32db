//! Validation and figures during training.
//!
//! Both read the averaged weights and never write the state, because their times depend on the clock and a
//! resumed run must be bit-identical to an uninterrupted one.

use super::Session;
use super::alarm::LOOK_SHARE;
use crate::error::Result;
use crate::eval::{Deadline, Images, Score, at_most};
use crate::train::best::MEASURES;
use crate::train::team::Order;
use crate::train::{Activity, Trainer};
#[cfg(feature = "plot")]
use {
    crate::eval::{
        Gallery, Work,
        figures::{self, Artist},
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
const FIRST_LOOK_S: f64 = 8.0;
/// Cells along the longer side of figures during training, and the smallest number under a time limit.
#[cfg(feature = "plot")]
const COARSE: usize = 96;
#[cfg(feature = "plot")]
const COARSE_LEAST: usize = 24;
/// Number of test points of a known density that are sampled and scored together without a time limit.
const DRAWN: usize = 4096;

impl Session<'_> {
    /// Whether the first validation of a phase is due. Under a time limit, it comes after a tenth of the phase at
    /// the latest, because it measures how long the end of the run will take.
    pub(super) fn first_look(&self, phase: usize) -> bool {
        let begun = self.first(phase).max(self.resumed_from.unwrap_or(0));
        let spent_s = self.timing.now_s() - self.timing.begun_s;
        match self.timing.budget.phase_s(phase) {
            None => self.update - begun >= FIRST_LOOK_UPDATES || spent_s >= FIRST_LOOK_S,
            Some(phase_s) => spent_s >= FIRST_LOOK_S.min(phase_s / MEASURES as f64),
        }
    }

    /// The validation score of the averaged weights for a check during training. Under a time limit, each check of
    /// a run scores the same random rows of the validation part: so many that all checks together take `1 / LOOK_SHARE`
    /// of the phase, and at least one call. If the estimate of the
    /// KL divergence chooses the weights, checks before the last score one call alone.
    pub(super) fn check(&mut self, phase: usize, is_last: bool) -> Result<Score> {
        let open = self.timing.watch.no_deadline();
        let Some(phase_s) = self.timing.budget.phase_s(phase) else {
            // If weights are chosen by the estimate, scores before the last only show that the run learns.
            let most = if !is_last && self.judging.estimator.is_some() {
                self.judging.measure.rows_per_call()
            } else {
                usize::MAX
            };
            return self.measure(most, &open);
        };
        let (work, call, all) = self.held_out.checks(&self.judging.measure, self.state.ema.base.dim);
        let rows = if let Some(rows) = self.judging.rows_checked {
            rows
        } else {
            if !self.timing.watch.knows(work) {
                // The first call compiles the program, the second one measures its time.
                self.measure(2 * call, &open)?;
            }
            let most_s = phase_s / self.header.checks().count() as f64 / LOOK_SHARE;
            let calls = (most_s / self.timing.watch.expected_s(work, call as f64).max(1e-9)) as usize;
            (calls.max(1).saturating_mul(call)).min(all)
        };
        self.judging.rows_checked = Some(rows);
        self.measure(rows, &open)
    }

    /// The validation score of the averaged weights, over the first `most` rows or as many as there is time for.
    pub(in crate::train) fn measure(&mut self, most: usize, by: &Deadline) -> Result<Score> {
        self.team.order(&Order::Wait)?;
        let (since_s, on_stage) = (self.timing.now_s(), &mut self.trainer.on_stage);
        on_stage(Activity::Measuring, 0.0);
        let progress = |share| on_stage(Activity::Measuring, share);
        let found = self.held_out.validation(&self.judging.measure, &self.state.ema, most, by, progress)?;
        let found = self.reported(found);
        self.timing.measuring.done(since_s, self.timing.now_s());
        if self.judging.last_score.is_none_or(|last| last.lost.is_none()) {
            self.held_out.lost(&found, false).iter().for_each(|text| (self.trainer.on_note)(text));
        }
        self.judging.last_score = Some(found);
        Ok(found)
    }

    /// The test score of the averaged weights, over as many points as there is time for.
    pub(in crate::train) fn test(&mut self, by: &Deadline) -> Result<Score> {
        let (seed, standard) = (self.header.config.seed, self.header.standard());
        let drawn = if by.is_limited() { self.judging.measure.rows_per_call() } else { at_most(DRAWN) };
        let Trainer { data, on_stage, .. } = &mut self.trainer;
        let fresh = |part| data.fresh(&standard, drawn, seed, part);
        let progress = |share| on_stage(Activity::Testing, share);
        let found = self.held_out.test(fresh, &self.judging.measure, &self.state.ema, by, progress)?;
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
        let (since_s, open) = (self.timing.now_s(), self.timing.watch.no_deadline());
        if let (Some(gallery), true) = (self.gallery(), self.update > 0) {
            let key = self.state.key.fold_in(Tensor::from(SAMPLE_STREAM));
            gallery.samples(&self.state.ema, &key, self.update, &open)?;
            self.timing.drawing.done(since_s, self.timing.now_s());
            return Ok(());
        }
        let Some((artist, folder)) = self.artist() else { return Ok(()) };
        let image = artist.frame();
        let count = |side: usize| (side * self.coarse()).div_ceil(image.side()).max(2);
        let cells = image.cells(0.0, count(image.height), count(image.width));
        let (judge, flow) = (&self.judging.draw, &self.state.ema);
        let calls = cells.centers.len().next_multiple_of(judge.rows_per_call());
        let density = || figures::on_cells(judge, flow, image, &cells);
        let density = self.timing.watch.run(Work::Grid, calls as f64, density)?;
        let learned = (density, cells.rows, cells.cols);
        let update = (self.update, self.update);
        self.timing.watch.run(Work::Figures, 1.0, || artist.density(folder, &learned, update))?;
        self.timing.drawing.done(since_s, self.timing.now_s());
        Ok(())
    }

    /// The number of cells along the longer side of a figure during training. Under a time limit, all cells take at
    /// most `1 / LOOK_SHARE` of a tenth of the training time, unless the number is the smallest.
    #[cfg(feature = "plot")]
    fn coarse(&self) -> usize {
        let Some(phase_s) = self.timing.budget.phase_s(self.last_phase()) else { return COARSE };
        let cell_s = self.timing.watch.expected_s(Work::Grid, 1.0).max(1e-9);
        let most = phase_s / MEASURES as f64 / LOOK_SHARE / cell_s;
        (most.sqrt() as usize).clamp(COARSE_LEAST, COARSE)
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
        self.held_out.images().map_or_else(|| self.judging.measure.traces(), Images::traces)
    }

    /// Draws figures over the plane, if there is a plane and a folder.
    #[cfg(feature = "plot")]
    pub(in crate::train) fn artist(&self) -> Option<(Artist, &RunFolder)> {
        let (folder, image) = (self.folder.as_ref()?, self.header.frames.image.as_ref()?);
        Some((Artist::new(&self.header.frames, image, self.trainer.data.title()), folder))
    }
}
