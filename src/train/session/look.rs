//! What a run looks at on its way: the NLL of what is held out, and pictures of what is learned so far.
//!
//! It reads the state by its averaged weights and never writes it: when it is asked depends on the clock, and a resumed run
//! must have the bits of one that was not.

use super::Session;
use crate::data::Estimate;
use crate::error::Result;
use crate::eval::pictures::Artist;
use crate::eval::{Deadline, Gallery, Images, Score, on_cells, score};
use crate::io::run::RunFolder;
use crate::tensor::Tensor;
use crate::train::Stage;
use crate::train::data::HeldOut;
use crate::train::finish::SAMPLE_STREAM;
use std::time::{Duration, Instant};

/// The first look of a phase comes after so many updates or so long, whichever is first: before memory is noted at its
/// update 100, so that what looking allocates once is there by then.
const FIRST_LOOK_UPDATES: u64 = 50;
const FIRST_LOOK: Duration = Duration::from_secs(8);
/// Cells along the longer side of pictures on the way.
const COARSE: usize = 96;
/// Standard error of the gap at the end, in nats, and the most points that it is measured by: a flow whose gap is 0.1 nats
/// needs about 50,000.
const GAP_STDERR: f64 = 0.002;
const GAP_POINTS: u64 = 1 << 16;
/// Points that are drawn at a time for it.
const DRAWN: usize = 4096;

impl Session<'_> {
    /// Whether a phase that has not been looked at is due to be. Under a time limit looks cost updates: a phase that is over
    /// before as long again has none.
    pub(super) fn first_look(&self, phase: usize) -> bool {
        let begun = self.first(phase).max(self.resumed_from.unwrap_or(0));
        match self.clock.left_s(phase) {
            None => self.update - begun >= FIRST_LOOK_UPDATES || self.begun.elapsed() >= FIRST_LOOK,
            Some(left_s) => self.begun.elapsed() >= FIRST_LOOK && left_s >= FIRST_LOOK.as_secs_f64(),
        }
    }

    /// What the validation part says of the averaged weights, by as many of its points as there is time for.
    pub(in crate::train) fn measure(&mut self, by: Deadline) -> Result<Score> {
        let (since, dim) = (Instant::now(), self.header.dim());
        let (flow, on_stage) = (&self.state.ema, &mut self.density.on_stage);
        on_stage(Stage::Measuring, 0.0);
        let found = match &self.held_out {
            HeldOut::Rows { validation, .. } => {
                let told = |share| on_stage(Stage::Measuring, share);
                let found = score(&self.measure, flow, validation, dim, by, told)?;
                self.told(found)
            }
            HeldOut::Images(images) => Score { nll: images.watch(flow)?, gap: None },
        };
        self.measuring.done(since);
        self.last_score = Some(found);
        Ok(found)
    }

    /// What the test part says of the averaged weights, by as many of its points as there is time for. Points of a known
    /// density are drawn until the gap is known well enough.
    pub(in crate::train) fn test(&mut self, by: Deadline) -> Result<Score> {
        let (dim, seed, standard) = (self.header.dim(), self.header.recipe.seed, self.header.standard());
        let (flow, on_stage) = (&self.state.ema, &mut self.density.on_stage);
        let mut told = |share| on_stage(Stage::Testing, share);
        told(0.0);
        match &self.held_out {
            HeldOut::Images(images) => Ok(Score { nll: images.test(flow, by, &mut told)?, gap: None }),
            HeldOut::Rows { test: Some(rows), .. } => {
                let found = score(&self.measure, flow, rows, dim, by, told)?;
                Ok(self.told(found))
            }
            HeldOut::Rows { test: None, .. } => {
                let (begun, mut all) = (Instant::now(), None);
                let next = |part: u32| -> Result<Option<Estimate>> {
                    let a_part_s = begun.elapsed().as_secs_f64() / f64::from(part.max(1));
                    if part > 0 && !by.fits(a_part_s) {
                        return Ok(None);
                    }
                    let rows = self.density.data.fresh(&standard, DRAWN, seed, part);
                    let rows = rows.expect("invariant: only a known density has no test rows");
                    let found = score(&self.measure, flow, &rows, dim, Deadline(None), |_| ())?;
                    let so_far = all.map_or(found, |all: Score| all.merge(found));
                    all = Some(so_far);
                    let stderr = so_far.gap.and_then(|gap| gap.stderr).unwrap_or(f64::INFINITY);
                    told((GAP_STDERR / stderr).powi(2).min(1.0));
                    Ok(found.gap)
                };
                Estimate::until(GAP_STDERR, GAP_POINTS, next)?;
                Ok(self.told(all.expect("invariant: the first part is always drawn")))
            }
        }
    }

    /// A score in the coordinates that NLLs are told in.
    fn told(&self, score: Score) -> Score {
        Score { nll: score.nll.plus(self.header.frames.told_nats()), ..score }
    }

    /// `density.png` on a coarse grid.
    pub(super) fn draw(&mut self) -> Result<()> {
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
            artist.density(folder, &learned, update)?;
        }
        self.drawing.done(since);
        Ok(())
    }

    /// Who draws images, where there are some.
    pub(in crate::train) fn gallery(&self) -> Option<Gallery<'_>> {
        let HeldOut::Images(images) = &self.held_out else { return None };
        let (folder, frame) = (self.folder.as_ref()?, self.header.frames.images.as_ref()?);
        Some(Gallery { folder, frame, images })
    }

    /// Programs of measures.
    pub(in crate::train) fn measure_traces(&self) -> usize {
        match &self.held_out {
            HeldOut::Rows { .. } => self.measure.traces(),
            HeldOut::Images(images) => images.traces(),
        }
    }

    /// The images of the run, where there are some.
    pub(in crate::train) fn images(&mut self) -> Option<&mut Images> {
        match &mut self.held_out {
            HeldOut::Images(images) => Some(images),
            HeldOut::Rows { .. } => None,
        }
    }

    /// Who draws the plane, where there is one and a folder.
    pub(in crate::train) fn artist(&mut self) -> Option<(&Artist, &RunFolder)> {
        let (folder, image) = (self.folder.as_ref()?, self.header.frames.image.as_ref()?);
        let data = &self.density.data;
        let new = || Artist::new(image, data.title(), data.truth(image, image.cells_per_pixel()));
        Some((self.artist.get_or_insert_with(new), folder))
    }
}
