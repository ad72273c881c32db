//! What a run looks at on its way: the NLL of what is held out, and pictures of what is learned so far.
//!
//! It reads the state by its averaged weights and never writes it: when it is asked depends on the clock, and a resumed run
//! must have the bits of one that was not.

use super::Session;
use crate::error::{Error, Result};
use crate::tensor::Tensor;
use crate::train::budget::Deadline;
use crate::train::data::HeldOut;
use crate::train::evaluate::{PART, on_cells};
use crate::train::finish::SAMPLE_STREAM;
use crate::train::folder::RunFolder;
use crate::train::images::{Gallery, Images, nats_of_bits};
use crate::train::pictures::Artist;
use crate::train::{ImageFrame, Stage};
use std::time::{Duration, Instant};

/// The first look of a phase comes after so many updates or so long, whichever is first: before memory is noted at its
/// update 100, so that what looking allocates once is there by then.
const FIRST_LOOK_UPDATES: u64 = 50;
const FIRST_LOOK: Duration = Duration::from_secs(8);
/// Cells along the longer side of pictures on the way.
const COARSE: usize = 96;

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

    /// NLL of the held-out points by the averaged weights; where the true density is known, less what that has more than
    /// its entropy on these points, which is a draw's and no model's. As many points are measured as there is time for.
    pub(in crate::train) fn measure(&mut self, by: Deadline) -> Result<f64> {
        let (since, dim) = (Instant::now(), self.header.dim());
        let on_stage = &mut self.density.on_stage;
        on_stage(Stage::Measuring, 0.0);
        let found = match &self.held_out {
            HeldOut::Rows(rows) => {
                let (mut sum, told) = (0.0, |share| on_stage(Stage::Measuring, share));
                let measured = by.in_chunks(rows.len() / dim, PART, told, |part| {
                    let rows = &rows[part.start * dim..part.end * dim];
                    let log_probs = self.measure.eval_rows(&self.state.ema, rows, dim)?;
                    log_probs.iter().for_each(|&x| sum += f64::from(x));
                    Ok::<_, Error>(())
                })?;
                -sum / measured as f64 + self.header.told_nats() - self.header.offset_nats()
            }
            HeldOut::Images(images) => nats_of_bits(images.watch(&self.state.ema)?, dim),
        };
        self.measuring.done(since);
        self.last_nll = Some(found);
        Ok(found)
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
        let Some(image) = &self.header.image else { return Ok(()) };
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
        let (folder, frame) = (self.folder.as_ref()?, self.header.images.as_ref()?);
        Some(Gallery { folder, frame, images })
    }

    /// Programs of measures.
    pub(in crate::train) fn measure_traces(&self) -> usize {
        match &self.held_out {
            HeldOut::Rows(_) => self.measure.traces(),
            HeldOut::Images(images) => images.traces(),
        }
    }

    /// The images of the run, where there are some.
    pub(in crate::train) fn images(&mut self) -> Option<&mut Images> {
        match &mut self.held_out {
            HeldOut::Images(images) => Some(images),
            HeldOut::Rows(_) => None,
        }
    }

    /// Who draws the plane, where there is one and a folder.
    pub(in crate::train) fn artist(&mut self) -> Option<(&Artist, &RunFolder)> {
        let (folder, image) = (self.folder.as_ref()?, self.header.image.as_ref()?);
        let data = &self.density.data;
        Some((self.artist.get_or_insert_with(|| Artist::new(data, image, cells_per_pixel(image))), folder))
    }
}

/// Cells along a pixel of the final picture and of the mass: of an image at least 2, and about 400 along the longer side; of
/// a window of points 2, which is 200 along its longer side and half of the finest toy's deviation.
pub(in crate::train) fn cells_per_pixel(image: &ImageFrame) -> usize {
    if image.units.is_some() { 2 } else { 400usize.div_ceil(image.side()).clamp(2, 8) }
}
