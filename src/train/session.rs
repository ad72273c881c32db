//! The loop of a run.
//!
//! What it keeps apart: the state, which is a function of options, key and update alone, and everything that looks at
//! the clock (when to save, measure, draw, report). The second reads the first and never writes it, so a run that was
//! killed and resumed any number of times ends with the same bits as one that was not. Under a time limit alone the
//! schedule follows the clock ([`budget`](super::budget)): a resumed run has what is left of its seconds.
//!
//! Here is the state and its updates. [`look`] measures and draws, [`keep`] writes to the folder, [`alarm`] has the clock.

mod alarm;
mod keep;
mod look;

#[cfg(feature = "plot")]
use super::PlotsKind;
use super::best::{self, Best, MEASURES, Measured};
use super::budget::Clock;
use super::data::Prepared;
use super::metrics::{Metrics, Row};
use super::progress::{Pace, Progress};
use super::run::{RunInfo, Trainer};
use super::state::{Source, TrainState};
use super::step::{self, Step, Told};
use super::tally::Tallies;
use super::{
    Activity, DRAW_TOLERANCE, MEASURE_TOLERANCE, PixelTables, TrainError, TrainedFlow, TrainingData, bounds,
};
use crate::array::memory;
use crate::error::{Error, Result};
#[cfg(feature = "plot")]
use crate::eval::figures::Artist;
use crate::eval::{Deadline, HeldOut, LogDensity, Score, bits_of_nats};
use crate::io::process;
use crate::io::run::RunFolder;
use crate::ode::SolveError;
use alarm::Alarm;
use std::time::Instant;

/// A run while it runs.
pub(super) struct Session<'a> {
    pub(super) trainer: Trainer<'a>,
    pub(super) header: RunInfo,
    pub(super) state: TrainState,
    /// Which figures are drawn.
    #[cfg(feature = "plot")]
    pub(super) plots: PlotsKind,
    /// Updates done: the state's own number, as a plain integer.
    pub(super) update: u64,
    pub(super) folder: Option<RunFolder>,
    pub(super) source: Source,
    pub(super) clock: Clock,
    /// What a checkpoint keeps of the transform of images.
    pixels: Option<PixelTables>,
    /// Step functions of phases that have one by now.
    pub(super) steps: Vec<Option<Step>>,
    pub(super) tallies: Tallies,
    metrics: Option<Metrics>,
    pub(super) measure: LogDensity,
    pub(super) draw: LogDensity,
    pub(super) held_out: HeldOut,
    #[cfg(feature = "plot")]
    pub(super) artist: Option<Artist>,
    pub(super) resumed_from: Option<u64>,
    pub(super) compiles: usize,
    /// What the validation part said when it was last measured.
    pub(super) last_score: Option<Score>,
    /// Of points and images: one image and a toy are never learned by heart.
    pub(super) best: Option<Best>,
    /// Whether measures have not become better for as long as the run is patient.
    stopped: bool,
    /// When the phase began in this process, and whether it has been looked at.
    begun: Instant,
    looked: bool,
    /// Tenths of the phase's seconds that had gone at its last measure for the best.
    tenths: u64,
    pace: Pace,
    saving: Alarm,
    measuring: Alarm,
    #[cfg(feature = "plot")]
    drawing: Alarm,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        trainer: Trainer<'a>,
        prepared: Prepared,
        header: RunInfo,
        state: TrainState,
        folder: Option<RunFolder>,
        resumed: bool,
    ) -> Result<Session<'a>> {
        let (update, now) = (state.update.item() as u64, Instant::now());
        let pixels = prepared.pixels();
        let Prepared { source, held_out, .. } = prepared;
        let best = keeps_best(&trainer.data).then(|| Best::room(&state.ema));
        let (limit_s, shares) = (header.options.time_limit, header.config.time_shares());
        let plots = trainer.plots();
        let mut session = Session {
            steps: header.config.phases.iter().map(|_| None).collect(),
            resumed_from: resumed.then_some(update),
            tallies: Tallies::new(&header.config, header.frames.entropy_nats()),
            state,
            update,
            folder,
            source,
            #[cfg(feature = "plot")]
            plots,
            clock: Clock::new(trainer.started, limit_s, &shares, plots),
            pixels,
            metrics: None,
            measure: LogDensity::for_measures(MEASURE_TOLERANCE, MEASURE_TOLERANCE),
            draw: LogDensity::new(DRAW_TOLERANCE, DRAW_TOLERANCE),
            held_out,
            #[cfg(feature = "plot")]
            artist: None,
            compiles: 0,
            last_score: None,
            best,
            trainer,
            header,
            stopped: false,
            begun: now,
            looked: false,
            tenths: 0,
            pace: Pace::default(),
            saving: Alarm::of_saving(now),
            measuring: Alarm::of_measuring(),
            #[cfg(feature = "plot")]
            drawing: Alarm::of_drawing(),
        };
        if resumed {
            session.reopen_files()?;
        } else {
            if session.clock.is_limited() {
                session.header.config.phases.iter_mut().for_each(|phase| phase.updates = 0);
                let since = Instant::now();
                session.prepare(0)?;
                session.clock.check(since.elapsed().as_secs_f64())?;
            }
            session.begin_files()?;
        }
        Ok(session)
    }

    /// Runs what is left of the phases, then the end.
    pub(super) fn run(mut self) -> Result<TrainedFlow> {
        self.stopped = self.is_out_of_patience();
        for phase in 0..self.header.config.phases.len() {
            if self.stopped {
                break;
            }
            if self.is_over(phase) {
                continue;
            }
            self.begin(phase)?;
            while !self.is_over(phase) && !self.stopped {
                self.check_stop()?;
                self.advance(phase)?;
            }
            self.end(phase);
        }
        super::finish::finish(self)
    }

    /// Saves and ends where somebody asks the run to stop.
    fn check_stop(&mut self) -> Result<()> {
        if !(self.trainer.stop)() {
            return Ok(());
        }
        self.save()?;
        let (updates, folder) = (self.updates(), self.trainer.folder.clone());
        Err(TrainError::Stopped { update: self.update, updates, folder }.into())
    }

    /// Reports a part of the end before it is done.
    pub(super) fn stage(&mut self, stage: Activity) -> Result<()> {
        self.check_stop()?;
        (self.trainer.on_stage)(stage, 0.0);
        Ok(())
    }

    /// The last phase that has updates by now.
    pub(super) fn last_phase(&self) -> usize {
        (0..self.header.config.phases.len()).rev().find(|&phase| self.update > self.first(phase)).unwrap_or(0)
    }

    /// Updates before a phase.
    pub(super) fn first(&self, phase: usize) -> u64 {
        self.header.config.phases[..phase].iter().map(|p| p.updates).sum()
    }

    /// Whether all updates of a phase, or all of its seconds, are done. There is a first update whatever the clock says.
    fn is_over(&self, phase: usize) -> bool {
        match self.clock.left_s(phase) {
            None => self.update >= self.first(phase) + self.header.config.phases[phase].updates,
            Some(left_s) => left_s <= 0.0 && self.update > 0,
        }
    }

    /// What the schedule of a phase takes for its number of updates before the next one.
    fn updates_of(&self, phase: usize) -> f64 {
        let of_seconds = self.clock.updates(phase, self.update - self.first(phase));
        of_seconds.unwrap_or(self.header.config.phases[phase].updates as f64)
    }

    /// Updates of all phases: under a time limit, of those begun so far.
    fn updates(&self) -> u64 {
        let phases = 0..self.header.config.phases.len();
        let begun = |&phase: &usize| !self.clock.is_limited() || self.update > self.first(phase);
        phases
            .filter(begun)
            .map(|phase| {
                let is_last = self.clock.is_limited() && self.update == self.first(phase + 1);
                if is_last {
                    self.updates_of(phase).round() as u64
                } else {
                    self.header.config.phases[phase].updates
                }
            })
            .sum()
    }

    /// Compiles the step of a phase, once it is known that its bytes are free.
    fn prepare(&mut self, phase: usize) -> Result<()> {
        if self.steps[phase].is_some() {
            return Ok(());
        }
        let (config, plan) = (&self.header.config, self.header.config.phases[phase]);
        let step = Step::new(config, &plan, &self.source, self.first(phase));
        let planned = step.plan(&self.state)?;
        let peak_bytes = planned.peak_bytes(config.steps().1) as u64;
        bounds::check_update(config, plan.objective.name(), peak_bytes)?;
        self.tallies.counters.plan_peak_bytes = peak_bytes;
        self.tallies.planned(phase, planned);
        self.steps[phase] = Some(step);
        Ok(())
    }

    fn begin(&mut self, phase: usize) -> Result<()> {
        let (config, first) = (&self.header.config, self.first(phase));
        if phase > 0 && self.update == first {
            self.state = step::begin_phase(config, &config.phases[phase], self.state.clone());
        }
        (self.pace, self.begun, self.looked) = (Pace::default(), Instant::now(), false);
        self.tenths = self.tenths_done(phase);
        self.prepare(phase)
    }

    fn tenths_done(&self, phase: usize) -> u64 {
        self.clock.share(phase).map_or(0, |share| (share * MEASURES as f64) as u64)
    }

    /// Whether weights are measured for being the best. Under a time limit that is so at fixed parts of a phase, unless
    /// measuring would take up too much of it, and at its end.
    fn is_due(&mut self, phase: usize, last: bool) -> bool {
        if self.best.is_none() {
            return false;
        }
        if !self.clock.is_limited() {
            return best::is_due(&self.header.config.phases[phase], self.update - self.first(phase));
        }
        let tenths = self.tenths_done(phase);
        let measured_at = &mut self.tallies.counters.measured_at;
        let due = last || (tenths > self.tenths && (measured_at.is_empty() || self.measuring.is_cheap()));
        if due {
            self.tenths = tenths;
            measured_at.push(self.update);
        }
        due
    }

    /// One update, and what the clock asks for after it.
    fn advance(&mut self, phase: usize) -> Result<()> {
        let mut row = self.step(phase)?;
        let last = self.is_over(phase);
        let first_look = !self.looked && self.first_look(phase);
        self.looked |= first_look;
        let due = self.is_due(phase, last);
        // Under a time limit the end of the last phase is measured by the end, for as long as there is time.
        let ends = last && (!self.clock.is_limited() || self.measuring.is_cheap());
        self.last_score = self.last_score.filter(|_| !last);
        if ends || first_look || due || self.measuring.rings() {
            let nll = self.measure(Deadline(None))?.best_nll(self.header.frames.entropy_nats());
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
        #[cfg(feature = "plot")]
        if self.folder.is_some() && self.plots != PlotsKind::None && (first_look || self.drawing.rings()) {
            self.draw()?;
        }
        let progress = self.progress(phase, &row);
        (self.trainer.on_update)(&progress);
        Ok(())
    }

    /// Runs the step function and counts what it took.
    fn step(&mut self, phase: usize) -> Result<Row> {
        let step = self.steps[phase].as_ref().expect("invariant: a phase that has begun has a step");
        let (objective, lr) =
            (self.header.config.phases[phase].objective, self.header.config.phases[phase].lr);
        let started = Instant::now();
        let (next, updates) = (self.update + 1, self.updates_of(phase));
        let told = step.run(&mut self.state, updates).map_err(|e| match e {
            Error::Solve(SolveError::Incomplete { outcome, .. }) => {
                TrainError::Diverged { outcome, update: next, objective: objective.name(), lr }.into()
            }
            e => e,
        });
        let Told { loss, steps, field_evals } = told?;
        let ms = started.elapsed().as_secs_f64() * 1e3;
        self.update += 1;
        if self.clock.is_limited() {
            self.header.config.phases[phase].updates += 1;
        }
        if !loss.is_finite() {
            let (update, objective) = (self.update, objective.name());
            return Err(TrainError::Loss { loss, update, objective, lr }.into());
        }
        if self.update == self.resumed_from.unwrap_or(0) + 1 {
            self.tallies.counters.first_update_s = Some(self.trainer.started.elapsed().as_secs_f64());
        }
        self.tallies.solves(phase, step.last_run(), steps);
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
    /// resumed: the best and the update show it.
    fn is_out_of_patience(&self) -> bool {
        let config = &self.header.config;
        let kept = self.best.as_ref().and_then(|best| best.measured);
        let is_over = |(patience, kept): (u64, Measured)| {
            let since = if self.clock.is_limited() {
                self.tallies.counters.measured_at.iter().filter(|&&update| update > kept.update).count()
                    as u64
            } else {
                best::measures_since(config, kept.update, self.update)
            };
            since >= patience
        };
        config.patience.zip(kept).is_some_and(is_over)
    }

    fn progress(&mut self, phase: usize, row: &Row) -> Progress {
        let config = &self.header.config;
        let ms = self.pace.add(row.ms);
        let (plan, shares) = (config.phases[phase], config.time_shares());
        let end = self.first(phase) + plan.updates;
        let whole = ms * plan.updates as f64 / shares[phase];
        let later = config.phases.iter().zip(&shares).skip(phase + 1).filter(|(p, _)| p.updates > 0);
        let later: f64 = later.map(|(_, share)| share * whole).sum();
        let by_updates = (ms * end.saturating_sub(self.update) as f64 + later) / 1e3;
        let (updates, left_s) = (self.updates(), self.clock.left_s(config.phases.len() - 1));
        Progress {
            update: self.update,
            updates,
            done: self.clock.done(self.update as f64 / updates as f64),
            phase,
            phases: config.phases.len(),
            objective: plan.objective,
            loss: row.loss,
            ms,
            seconds_left: left_s.map_or(by_updates, |left_s| left_s.max(0.0)),
            gap_nats: self.last_score.and_then(|score| score.gap),
            bits_per_dim: self
                .last_score
                .filter(|_| self.header.frames.images.is_some())
                .map(|score| score.nll.times(bits_of_nats(1.0, self.header.dim()))),
        }
    }

    /// Keeps what is reported of a phase's program at the end, and lets the program go.
    fn end(&mut self, phase: usize) {
        self.compiles += self.steps[phase].take().map_or(0, |step| step.traces());
    }
}

/// Whether a run may learn its data by heart, and ends with the best weights rather than the last.
fn keeps_best(data: &TrainingData) -> bool {
    matches!(data, TrainingData::Points(..) | TrainingData::Images(..))
}
