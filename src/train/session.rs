//! The loop of a run.
//!
//! What it keeps apart: the state, which is a function of options, key and update alone, and everything that looks at
//! the clock (when to save, measure, draw, tell). The second reads the first and never writes it, so a run that was
//! killed and resumed any number of times ends with the same bits as one that was not.

use super::best::{self, Best, Measured};
use super::counters::Counters;
use super::data::{Data, HeldOut, Prepared};
use super::evaluate::{DRAW_TOLERANCE, LogDensity, MEASURE_TOLERANCE, nll, on_cells};
use super::folder::{COUNTERS_FILE, RunFolder};
use super::images::{Gallery, Images, PixelTables, ToleranceRow};
use super::images::{bits_of_nats, nats_of_bits};
use super::metrics::{Metrics, Row};
use super::pictures::Artist;
use super::progress::{Pace, Progress};
use super::report::{Solved, Tallies};
use super::run::{Density, Header};
use super::state::{Source, Stored, TrainState};
use super::step::{self, Step, Told};
use super::{
    ImageFrame, Learned, METRICS_FILE, MODEL_FILE, Phase, Stage, TrainError, bounds, budget, process,
};
use crate::array::memory;
use crate::backend::PlanReport;
use crate::error::{Error, Result};
use crate::io::write_checkpoint;
use crate::tensor::{Tensor, Tree};
use std::time::{Duration, Instant};

/// Longest time between two checkpoints, less the time of an update, where writing one takes less than a 50th of it.
const SAVE_EVERY: Duration = Duration::from_secs(3);
/// Shortest times between two measures of the held-out NLL and between two pictures, and the least multiple of what one
/// takes: the clock of a run belongs to training.
const MEASURE_EVERY: Duration = Duration::from_secs(10);
const DRAW_EVERY: Duration = Duration::from_secs(20);
const LOOK_SHARE: u32 = 20;
/// As much for checkpoints, whose models may have millions of weights.
const SAVE_SHARE: u32 = 50;
/// The first look of a phase comes after so many updates or so long, whichever is first: before memory is noted at its
/// update 100, so that what looking allocates once is there by then.
const FIRST_LOOK_UPDATES: u64 = 50;
const FIRST_LOOK: Duration = Duration::from_secs(8);
/// Cells along the longer side of pictures on the way.
const COARSE: usize = 96;

/// Something that is done every now and then.
#[derive(Clone, Copy, Debug)]
struct Alarm {
    every: Duration,
    /// The least multiple of what it takes.
    share: u32,
    last: Option<Instant>,
    took: Duration,
}

impl Alarm {
    fn new(every: Duration, share: u32) -> Alarm {
        Alarm { every, share, last: None, took: Duration::ZERO }
    }

    fn rings(&self) -> bool {
        self.last.is_some_and(|last| last.elapsed() >= self.every.max(self.took * self.share))
    }

    fn done(&mut self, since: Instant) {
        (self.last, self.took) = (Some(Instant::now()), since.elapsed());
    }
}

/// A run while it runs.
pub(super) struct Session<'a> {
    pub(super) density: Density<'a>,
    pub(super) header: Header,
    pub(super) state: TrainState,
    /// Updates done: the state's own number, on the host.
    pub(super) update: u64,
    pub(super) folder: Option<RunFolder>,
    pub(super) source: Source,
    /// What a checkpoint keeps of the transform of images.
    pixels: Option<PixelTables>,
    /// Step functions of phases that have one by now.
    pub(super) steps: Vec<Option<Step>>,
    pub(super) tallies: Tallies,
    metrics: Option<Metrics>,
    pub(super) measure: LogDensity,
    pub(super) draw: LogDensity,
    pub(super) held_out: HeldOut,
    pub(super) artist: Option<Artist>,
    pub(super) resumed_from: Option<u64>,
    pub(super) first_update_s: Option<f64>,
    pub(super) compiles: usize,
    pub(super) plan_peak_bytes: u64,
    /// What earlier processes of a resumed run counted.
    earlier: Counters,
    pub(super) last_nll: Option<f64>,
    /// Bits of images by tolerance, once the end has measured them.
    pub(super) tolerances: Vec<ToleranceRow>,
    /// Of points and images: one image and a toy are never learned by heart.
    pub(super) best: Option<Best>,
    /// Whether measures have not become better for as long as the run is patient.
    stopped: bool,
    /// When the phase began in this process, and whether it has been looked at.
    begun: Instant,
    looked: bool,
    pace: Pace,
    saving: Alarm,
    measuring: Alarm,
    drawing: Alarm,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        density: Density<'a>,
        prepared: Prepared,
        header: Header,
        state: TrainState,
        folder: Option<RunFolder>,
        resumed: bool,
    ) -> Result<Session<'a>> {
        let (update, now) = (state.update.item() as u64, Instant::now());
        let pixels = prepared.pixels();
        let Prepared { source, held_out, points, .. } = prepared;
        // Points may lie anywhere; an image's do not.
        let measure = if points.is_some() { LogDensity::everywhere } else { LogDensity::new };
        let mut session = Session {
            tallies: Tallies::new(&header.recipe, header.entropy_nats()),
            steps: header.recipe.phases.iter().map(|_| None).collect(),
            resumed_from: resumed.then_some(update),
            density,
            header,
            state,
            update,
            folder,
            source,
            pixels,
            metrics: None,
            measure: measure(MEASURE_TOLERANCE, MEASURE_TOLERANCE),
            draw: LogDensity::new(DRAW_TOLERANCE, DRAW_TOLERANCE),
            held_out,
            artist: None,
            first_update_s: None,
            compiles: 0,
            plan_peak_bytes: 0,
            earlier: Counters::default(),
            last_nll: None,
            tolerances: Vec::new(),
            best: None,
            stopped: false,
            begun: now,
            looked: false,
            pace: Pace::default(),
            saving: Alarm { last: Some(now), ..Alarm::new(SAVE_EVERY, SAVE_SHARE) },
            measuring: Alarm::new(MEASURE_EVERY, LOOK_SHARE),
            drawing: Alarm::new(DRAW_EVERY, LOOK_SHARE),
        };
        if !resumed && let Some(limit) = session.header.options.time_limit {
            budget::fix_updates(&mut session, limit)?;
        }
        session.open_files(resumed)?;
        Ok(session)
    }

    /// The first checkpoint, which has the number of updates, and the rows of an earlier part of the run.
    fn open_files(&mut self, resumed: bool) -> Result<()> {
        self.tallies = Tallies::new(&self.header.recipe, self.header.entropy_nats());
        let Some(folder) = &mut self.folder else { return Ok(()) };
        if resumed {
            self.earlier = Counters::read(&folder.file(COUNTERS_FILE));
            self.tolerances.clone_from(&self.earlier.tolerances);
            self.tallies.restore(&self.earlier);
            self.plan_peak_bytes = self.earlier.plan_peak_bytes;
            if keeps_best(&self.density.data) {
                self.best = Best::read(folder, &self.header.recipe, &self.state.ema)?;
            }
        } else {
            Counters::default().write(&folder.file(COUNTERS_FILE))?;
            write_checkpoint(
                folder.file(MODEL_FILE),
                &self.header,
                &Stored::of(&self.state, self.pixels.clone()),
            )?;
            folder.keep();
        }
        let path = folder.file(METRICS_FILE);
        self.metrics = Some(if resumed {
            let (tallies, header) = (&mut self.tallies, &self.header);
            Metrics::resume(&path, self.update, |row| tallies.read(&header.recipe, &row))?
        } else {
            Metrics::create(&path)?
        });
        Ok(())
    }

    /// Runs what is left of the phases, then the end.
    pub(super) fn run(mut self) -> Result<Learned> {
        self.stopped = self.is_out_of_patience();
        for phase in 0..self.header.recipe.phases.len() {
            if self.stopped {
                break;
            }
            let end = self.first(phase) + self.header.recipe.phases[phase].updates;
            if self.update >= end {
                continue;
            }
            self.begin(phase)?;
            while self.update < end && !self.stopped {
                self.advance(phase, self.update + 1 == end)?;
            }
            self.end(phase);
        }
        super::finish::finish(self)
    }

    /// Updates before a phase.
    pub(super) fn first(&self, phase: usize) -> u64 {
        self.header.recipe.phases[..phase].iter().map(|p| p.updates).sum()
    }

    fn begin(&mut self, phase: usize) -> Result<()> {
        let (first, plan) = (self.first(phase), self.header.recipe.phases[phase]);
        let step = Step::new(&self.header.recipe, &plan, &self.source, first);
        self.steps[phase].get_or_insert(step).set_updates(first, plan.updates);
        if phase > 0 && self.update == first {
            self.state = step::begin_phase(&self.header.recipe, &plan, self.state.clone());
        }
        (self.pace, self.begun, self.looked) = (Pace::default(), Instant::now(), false);
        let step = self.steps[phase].as_ref().expect("invariant: a phase that has begun has a step");
        let planned = self.check_memory(&plan, step, &self.state)?;
        self.plan_peak_bytes = self.peak_bytes(&planned);
        self.tallies.planned(phase, planned);
        Ok(())
    }

    /// The plan of an update, once it is known that its bytes are free.
    pub(super) fn check_memory(&self, phase: &Phase, step: &Step, state: &TrainState) -> Result<PlanReport> {
        let planned = step.plan(state)?;
        bounds::check_update(&self.header.recipe, phase.objective.name(), self.peak_bytes(&planned))?;
        Ok(planned)
    }

    /// Planned bytes of an update at their peak.
    fn peak_bytes(&self, planned: &PlanReport) -> u64 {
        let (_, most_steps) = self.header.recipe.steps();
        super::plan::peak_bytes(planned, most_steps).0 as u64
    }

    /// One update, and what the clock asks for after it.
    fn advance(&mut self, phase: usize, last: bool) -> Result<()> {
        let mut row = self.step(phase)?;
        let first_look = !self.looked && self.first_look(phase);
        self.looked |= first_look;
        let of_phase = &self.header.recipe.phases[phase];
        let due = keeps_best(&self.density.data) && best::is_due(of_phase, self.update - self.first(phase));
        if last || first_look || due || self.measuring.rings() {
            (self.density.on_stage)(Stage::Measuring);
            let nll_nats = self.measure()?;
            row.nll_nats = Some(nll_nats);
            if due {
                let measured = Measured { nll_nats, update: self.update };
                Best::keep(&mut self.best, measured, &self.state.ema, self.folder.as_ref())?;
                self.stopped = self.is_out_of_patience();
            }
        }
        self.tallies.update(phase, &row);
        if let Some(metrics) = &mut self.metrics {
            metrics.push(&row)?;
        }
        if last || self.stopped || self.saving.rings() {
            self.save()?;
        }
        if self.folder.is_some() && (first_look || self.drawing.rings()) {
            self.draw(first_look)?;
        }
        let progress = self.progress(phase, &row);
        (self.density.on_update)(&progress);
        Ok(())
    }

    /// Runs the step function and counts what it took.
    fn step(&mut self, phase: usize) -> Result<Row> {
        let step = self.steps[phase].as_ref().expect("invariant: a phase that has begun has a step");
        let (objective, lr) =
            (self.header.recipe.phases[phase].objective, self.header.recipe.phases[phase].lr);
        let started = Instant::now();
        let next = self.update + 1;
        let told = step.run(&mut self.state).map_err(|e| match e {
            Error::Solve { outcome } => {
                TrainError::Diverged { outcome, update: next, objective: objective.name(), lr }.into()
            }
            e => e,
        });
        let Told { loss, steps, field_evals } = told?;
        let ms = started.elapsed().as_secs_f64() * 1e3;
        self.update += 1;
        if !loss.is_finite() {
            let (update, objective) = (self.update, objective.name());
            return Err(TrainError::Loss { loss, update, objective, lr }.into());
        }
        self.first_update_s.get_or_insert_with(|| self.density.started.elapsed().as_secs_f64());
        let counts = step.last_run();
        // The backend counts over all tiles; a tile's solves attempt `steps` steps.
        let tiles = if steps > 0.0 { (counts.attempts as f64 / steps).max(1.0) } else { 1.0 };
        let solved = Solved {
            attempted: counts.attempts as f64 / tiles,
            accepted: counts.accepted as f64 / tiles,
            recomputed: counts.recomputed as f64 / tiles,
            states_kept: counts.states_kept_max as u64,
        };
        self.tallies.solves(phase, solved);
        Ok(Row {
            update: self.update,
            phase: objective.name().to_owned(),
            loss,
            nll_nats: None,
            ms,
            field_evals: field_evals.round() as u64,
            live_buffers: memory::live_buffers(),
            live_bytes: memory::live_bytes(),
            rss_mb: process::rss_mb(),
            traces: step.traces(),
        })
    }

    /// Whether the best weights are so many measures old as the run is patient. A run that stopped stops again where it is
    /// resumed: the best and the update tell.
    fn is_out_of_patience(&self) -> bool {
        let (Some(patience), Some(best)) = (self.header.recipe.patience, &self.best) else { return false };
        best::measures_since(&self.header.recipe, best.measured.update, self.update) >= patience
    }

    fn first_look(&self, phase: usize) -> bool {
        let begun = self.first(phase).max(self.resumed_from.unwrap_or(0));
        self.update - begun >= FIRST_LOOK_UPDATES || self.begun.elapsed() >= FIRST_LOOK
    }

    /// NLL of the held-out points by the averaged weights; where the true density is known, less what that has more than
    /// its entropy on these points, which is a draw's and no model's.
    pub(super) fn measure(&mut self) -> Result<f64> {
        let since = Instant::now();
        let found = match &self.held_out {
            HeldOut::Rows(rows) => {
                let found = nll(&self.measure, &self.state.ema, rows, self.header.dim())?;
                found + self.header.told_nats() - self.header.offset_nats()
            }
            HeldOut::Images(images) => nats_of_bits(images.watch(&self.state.ema)?, self.header.dim()),
        };
        self.measuring.done(since);
        self.last_nll = Some(found);
        Ok(found)
    }

    /// `density.png` on a coarse grid.
    ///
    /// The first picture of a phase is drawn twice: the allocator gives the pages of a first large buffer back and keeps
    /// those of a second, so that resident memory would grow by a picture at some later update.
    fn draw(&mut self, first: bool) -> Result<()> {
        let since = Instant::now();
        if let (Some(gallery), true) = (self.gallery(), self.update > 0) {
            let key = self.state.key.fold_in(Tensor::from(super::finish::SAMPLE_STREAM));
            gallery.samples(&self.state.ema, &key, self.update)?;
            self.drawing.done(since);
            return Ok(());
        }
        let Some(image) = &self.header.image else { return Ok(()) };
        let count = |side: usize| (side * COARSE).div_ceil(image.side()).max(2);
        let cells = image.cells(0.0, count(image.height), count(image.width));
        let density = on_cells(&self.draw, &self.state.ema, image, &cells)?;
        let learned = (density, cells.rows, cells.cols);
        for _ in 0..=usize::from(first) {
            self.draw_map(&learned)?;
        }
        self.drawing.done(since);
        Ok(())
    }

    /// Who draws images, where there are some.
    pub(super) fn gallery(&self) -> Option<Gallery<'_>> {
        let HeldOut::Images(images) = &self.held_out else { return None };
        let (folder, frame) = (self.folder.as_ref()?, self.header.images.as_ref()?);
        Some(Gallery { folder, frame, images })
    }

    /// Programs of measures.
    pub(super) fn measure_traces(&self) -> usize {
        match &self.held_out {
            HeldOut::Rows(_) => self.measure.traces(),
            HeldOut::Images(images) => images.traces(),
        }
    }

    /// The images of the run, where there are some.
    pub(super) fn images(&mut self) -> Option<&mut Images> {
        match &mut self.held_out {
            HeldOut::Images(images) => Some(images),
            HeldOut::Rows(_) => None,
        }
    }

    /// `density.png` of a density over the image.
    pub(super) fn draw_map(&mut self, learned: &super::pictures::Learned) -> Result<()> {
        let (Some(folder), Some(image)) = (&self.folder, &self.header.image) else { return Ok(()) };
        let data = &self.density.data;
        let artist = self.artist.get_or_insert_with(|| Artist::new(data, image, cells_per_pixel(image)));
        artist.density(folder, learned, self.update)
    }

    /// Writes a checkpoint; refuses numbers that a resume could not go on from.
    pub(super) fn save(&mut self) -> Result<()> {
        let since = Instant::now();
        let (Some(folder), Some(metrics)) = (&self.folder, &mut self.metrics) else { return Ok(()) };
        let finite = |t: &Tensor| !t.dtype().is_float() || t.to_vec().iter().all(|x| x.is_finite());
        if !self.state.model.leaves().iter().all(finite) {
            let phase = self.header.recipe.phase_of(self.update);
            let (update, objective, lr) = (self.update, phase.objective.name(), phase.lr);
            return Err(TrainError::Loss { loss: f64::NAN, update, objective, lr }.into());
        }
        metrics.flush()?;
        self.counters().write(&folder.file(COUNTERS_FILE))?;
        let stored = Stored::of(&self.state, self.pixels.clone());
        write_checkpoint(folder.file(MODEL_FILE), &self.header, &stored)?;
        self.saving.done(since);
        Ok(())
    }

    /// What the report will need of this process and of those before it.
    pub(super) fn counters(&self) -> Counters {
        Counters {
            first_update_s: self.first_update_s.or(self.earlier.first_update_s),
            plan_peak_bytes: self.plan_peak_bytes,
            states_kept_max: self.tallies.states_kept_max,
            peak_rss_mb: process::peak_rss_mb().max(self.earlier.peak_rss_mb),
            threads: rayon::current_num_threads(),
            phases: self.tallies.phase_counters(),
            tolerances: self.tolerances.clone(),
        }
    }

    fn progress(&mut self, phase: usize, row: &Row) -> Progress {
        let recipe = &self.header.recipe;
        let ms = self.pace.add(row.ms);
        let (plan, shares) = (recipe.phases[phase], recipe.time_shares());
        let end = self.first(phase) + plan.updates;
        let whole = ms * plan.updates as f64 / shares[phase];
        let later = recipe.phases.iter().zip(&shares).skip(phase + 1).filter(|(p, _)| p.updates > 0);
        let later: f64 = later.map(|(_, share)| share * whole).sum();
        Progress {
            update: self.update,
            updates: recipe.updates(),
            phase,
            phases: recipe.phases.len(),
            objective: plan.objective,
            loss: row.loss,
            ms,
            seconds_left: (ms * (end - self.update) as f64 + later) / 1e3,
            gap_nats: self.last_nll.zip(self.header.entropy_nats()).map(|(nll, entropy)| nll - entropy),
            bits_per_dim: self
                .last_nll
                .filter(|_| self.header.images.is_some())
                .map(|nll| bits_of_nats(nll, self.header.dim())),
        }
    }

    /// Keeps what is told of a phase's program at the end, and lets the program go.
    fn end(&mut self, phase: usize) {
        self.compiles += self.steps[phase].take().map_or(0, |step| step.traces());
    }
}

/// Whether a run may learn its data by heart, and ends with the best weights rather than the last.
fn keeps_best(data: &Data) -> bool {
    matches!(data, Data::Points(..) | Data::Images(..))
}

/// Cells along a pixel of the final picture and of the mass: of an image at least 2, and about 400 along the longer side; of
/// a window of points 2, which is 200 along its longer side and half of the finest toy's deviation.
pub(super) fn cells_per_pixel(image: &ImageFrame) -> usize {
    if image.units.is_some() { 2 } else { 400usize.div_ceil(image.side()).clamp(2, 8) }
}
