//! The loop of a run.
//!
//! What it keeps apart: the state, which is a function of options, key and update alone, and everything that looks at
//! the clock (when to save, measure, draw, tell). The second reads the first and never writes it, so a run that was
//! killed and resumed any number of times ends with the same bits as one that was not.
//!
//! Here is the state and its updates. [`look`] measures and draws, [`keep`] writes to the folder, [`alarm`] has the clock.

mod alarm;
mod keep;
mod look;

pub(super) use look::cells_per_pixel;

use super::best::{self, Best, Measured};
use super::counters::Counters;
use super::data::{Data, HeldOut, Prepared};
use super::evaluate::{DRAW_TOLERANCE, LogDensity, MEASURE_TOLERANCE, Score};
use super::folder::RunFolder;
use super::images::{PixelTables, ToleranceRow, bits_of_nats};
use super::metrics::{Metrics, Row};
use super::pictures::Artist;
use super::progress::{Pace, Progress};
use super::report::{Solved, Tallies};
use super::run::{Density, Header};
use super::state::{Source, TrainState};
use super::step::{self, Step, Told};
use super::{Learned, Phase, Stage, TrainError, bounds, budget, process};
use crate::array::memory;
use crate::backend::PlanReport;
use crate::error::{Error, Result};
use alarm::Alarm;
use std::time::Instant;

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
    /// What the validation part said when it was last measured.
    pub(super) last_score: Option<Score>,
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
        let Prepared { source, held_out, .. } = prepared;
        let best = keeps_best(&density.data).then(|| Best::room(&state.ema));
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
            measure: LogDensity::everywhere(MEASURE_TOLERANCE, MEASURE_TOLERANCE),
            draw: LogDensity::new(DRAW_TOLERANCE, DRAW_TOLERANCE),
            held_out,
            artist: None,
            first_update_s: None,
            compiles: 0,
            plan_peak_bytes: 0,
            earlier: Counters::default(),
            last_score: None,
            tolerances: Vec::new(),
            best,
            stopped: false,
            begun: now,
            looked: false,
            pace: Pace::default(),
            saving: Alarm::of_saving(now),
            measuring: Alarm::of_measuring(),
            drawing: Alarm::of_drawing(),
        };
        if resumed {
            session.reopen_files()?;
        } else {
            if let Some(limit) = session.header.options.time_limit {
                budget::fix_updates(&mut session, limit)?;
            }
            session.begin_files()?;
        }
        Ok(session)
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
                self.check_stop()?;
                self.advance(phase, self.update + 1 == end)?;
            }
            self.end(phase);
        }
        super::finish::finish(self)
    }

    /// Saves and ends where somebody asks the run to stop.
    fn check_stop(&mut self) -> Result<()> {
        if !(self.density.stop)() {
            return Ok(());
        }
        self.save()?;
        let (updates, folder) = (self.header.recipe.updates(), self.density.folder.clone());
        Err(TrainError::Stopped { update: self.update, updates, folder }.into())
    }

    /// Tells of a part of the end before it is done.
    pub(super) fn stage(&mut self, stage: Stage) -> Result<()> {
        self.check_stop()?;
        (self.density.on_stage)(stage);
        Ok(())
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
        let due = self.best.is_some() && best::is_due(of_phase, self.update - self.first(phase));
        if last || first_look || due || self.measuring.rings() {
            (self.density.on_stage)(Stage::Measuring);
            let nll = self.measure()?.best_nll(self.header.entropy_nats());
            (row.nll_nats, row.nll_stderr_nats) = (Some(nll.mean), nll.stderr);
            if let Some(best) = self.best.as_mut().filter(|_| due) {
                let (nll_nats, nll_stderr_nats) = (nll.mean, nll.stderr);
                let measured = Measured { nll_nats, nll_stderr_nats, update: self.update };
                best.keep(measured, &self.state.ema, self.folder.as_ref(), &self.header.run)?;
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
            nll_stderr_nats: None,
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
        let recipe = &self.header.recipe;
        let kept = self.best.as_ref().and_then(|best| best.measured);
        let is_over = |(patience, kept): (u64, Measured)| {
            best::measures_since(recipe, kept.update, self.update) >= patience
        };
        recipe.patience.zip(kept).is_some_and(is_over)
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
            gap_nats: self.last_score.and_then(|score| score.gap),
            bits_per_dim: self
                .last_score
                .filter(|_| self.header.images.is_some())
                .map(|score| score.nll.times(bits_of_nats(1.0, self.header.dim()))),
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
