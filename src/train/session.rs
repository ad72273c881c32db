//! The training loop.
//!
//! The state is a function of options, data, key and update alone. Whatever depends on the time (when to save,
//! validate, draw, report) reads the state and never writes it, so a run that is killed and resumed any number of
//! times is bit-identical to an uninterrupted one. The exception is a time limit: the schedule then follows the time
//! ([`budget`](super::budget)), and a resumed run has the rest of its seconds.
//!
//! This file holds the state and its updates; [`parts`] has the programs, the time and the scores. [`look`] validates
//! and draws, [`keep`] writes to the folder, [`alarm`] determines when to do so, [`checks`] selects the best weights,
//! [`ahead`] says what remains.

mod ahead;
mod alarm;
mod checks;
mod keep;
mod look;
mod parts;

#[cfg(feature = "plot")]
use super::PlotsKind;
use super::budget::Before;
use super::data::Prepared;
use super::metrics::{Metrics, Row};
use super::run::{RunInfo, Trainer};
use super::state::{Source, TrainState};
use super::step::{self, Means, Step};
use super::team::{Order, Team};
use super::{Activity, PixelTables, TrainError, TrainedFlow, bounds, estimator};
use crate::array::memory;
use crate::cnf::FlowMatching;
use crate::error::{Error, Result};
use crate::eval::{HeldOut, Work};
use crate::io::process;
use crate::io::run::RunFolder;
use crate::ode::SolveError;
use crate::world::WorldError;
use parts::{Judging, PhasePrograms, Timing};
use std::rc::Rc;

/// A run in progress.
pub(super) struct Session<'a> {
    pub(super) trainer: Trainer<'a>,
    /// The ranks that share the updates; this one is rank 0.
    pub(super) team: Rc<Team<'a>>,
    pub(super) header: RunInfo,
    pub(super) state: TrainState,
    /// Which figures are drawn.
    #[cfg(feature = "plot")]
    pub(super) plots: PlotsKind,
    /// Updates done: the state's counter as an integer.
    pub(super) update: u64,
    pub(super) folder: Option<RunFolder>,
    pub(super) source: Source,
    matching: FlowMatching,
    /// The pixel transform as stored in a checkpoint.
    pub(super) pixels: Option<PixelTables>,
    metrics: Option<Metrics>,
    pub(super) held_out: HeldOut,
    pub(super) resumed_from: Option<u64>,
    pub(super) programs: PhasePrograms,
    pub(super) timing: Timing,
    pub(super) judging: Judging,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        trainer: Trainer<'a>,
        team: Rc<Team<'a>>,
        prepared: Prepared,
        header: RunInfo,
        state: TrainState,
        folder: Option<RunFolder>,
        resumed: bool,
    ) -> Result<Session<'a>> {
        let (update, prepared_s) = (state.update.item() as u64, trainer.time.now_s());
        let pixels = prepared.pixels();
        let Prepared { source, matching, exact, mut held_out, .. } = prepared;
        let exact = exact.filter(|_| header.kl_estimate);
        let estimator = exact.map(|exact| exact.estimator(&trainer.data, &header));
        if let (Some(_), HeldOut::Images(images)) = (header.options.time_limit, &mut held_out) {
            images.in_short_calls();
        }
        let mut session = Session {
            resumed_from: resumed.then_some(update),
            programs: PhasePrograms::new(&header),
            timing: Timing::new(&trainer, &header, prepared_s),
            judging: Judging::new(&trainer, &header, &state, estimator),
            state,
            update,
            folder,
            source,
            matching,
            #[cfg(feature = "plot")]
            plots: trainer.plots_kind(),
            pixels,
            metrics: None,
            held_out,
            trainer,
            team,
            header,
        };
        if resumed {
            session.reopen_files()?;
        } else {
            if session.timing.budget.is_limited() {
                session.header.config.phases.iter_mut().for_each(|phase| phase.updates = 0);
                session.prepare(0)?;
                let reading = session.trainer.read_s;
                let compiling = session.timing.now_s() - prepared_s;
                session.timing.budget.check(Before {
                    reading,
                    preparing: prepared_s - reading,
                    compiling,
                })?;
            }
            session.begin_files()?;
        }
        Ok(session)
    }

    /// Runs the remaining phases, then the final evaluation.
    pub(super) fn run(self) -> Result<TrainedFlow> {
        let lr = self.header.config.phases[0].lr;
        // The errors of updates name their update: other solves that end early are those of an evaluation.
        self.run_phases().map_err(|e| match e {
            Error::Solve(SolveError::Incomplete { outcome, .. }) => {
                TrainError::Unsolved { outcome, lr }.into()
            }
            e => e,
        })
    }

    fn run_phases(mut self) -> Result<TrainedFlow> {
        self.judging.stopped = self.is_out_of_patience();
        for phase in 0..self.header.config.phases.len() {
            if self.judging.stopped {
                break;
            }
            if self.is_over(phase) {
                continue;
            }
            self.begin(phase)?;
            self.check_start(phase)?;
            // The reserve for the end may change, but a phase that has ended stays so.
            let mut is_over = false;
            while !is_over && !self.judging.stopped {
                self.check_stop()?;
                is_over = self.advance(phase)?;
            }
            self.programs.end(phase);
        }
        super::finish::finish(self)
    }

    /// Saves and returns an error if a stop is requested.
    fn check_stop(&mut self) -> Result<()> {
        if !(self.trainer.stop)() && !self.team.is_stopped() {
            return Ok(());
        }
        self.save()?;
        let (updates, folder) = (self.updates(), self.trainer.folder.clone());
        Err(TrainError::Stopped { update: self.update, updates, folder }.into())
    }

    /// Reports a part of the final evaluation before it starts, unless a stop is requested.
    pub(super) fn stage(&mut self, stage: Activity) -> Result<()> {
        self.check_stop()?;
        (self.trainer.on_stage)(stage, 0.0);
        Ok(())
    }

    /// The last phase with updates so far.
    pub(super) fn last_phase(&self) -> usize {
        (0..self.header.config.phases.len()).rev().find(|&phase| self.update > self.first(phase)).unwrap_or(0)
    }

    /// Updates before a phase.
    pub(super) fn first(&self, phase: usize) -> u64 {
        self.header.config.phases[..phase].iter().map(|p| p.updates).sum()
    }

    /// Whether all updates of a phase are done, or all of its seconds but less than half of an update, or a later
    /// phase has begun. The first update of a run is always made.
    fn is_over(&self, phase: usize) -> bool {
        match self.timing.budget.left_s(phase) {
            None => self.update >= self.first(phase) + self.header.config.phases[phase].updates,
            Some(left_s) => {
                let is_past = left_s <= 0.5 * self.timing.watch.expected_s(Work::Update, 1.0);
                self.update > 0 && (is_past || self.update > self.first(phase + 1))
            }
        }
    }

    /// The number by which the schedule of a phase divides the updates done, for the next update.
    fn updates_of(&self, phase: usize) -> f64 {
        let of_seconds = self.timing.budget.updates(phase, self.update - self.first(phase));
        of_seconds.unwrap_or(self.header.config.phases[phase].updates as f64)
    }

    /// Total number of updates: under a time limit, of the phases begun so far.
    fn updates(&self) -> u64 {
        let phases = 0..self.header.config.phases.len();
        let begun = |&phase: &usize| !self.timing.budget.is_limited() || self.update > self.first(phase);
        phases
            .filter(begun)
            .map(|phase| {
                let is_last = self.timing.budget.is_limited() && self.update == self.first(phase + 1);
                if is_last {
                    self.updates_of(phase).round() as u64
                } else {
                    self.header.config.phases[phase].updates
                }
            })
            .sum()
    }

    /// Compiles the programs of a phase, and checks that there is enough free memory to run them.
    fn prepare(&mut self, phase: usize) -> Result<()> {
        if self.programs.steps[phase].is_some() {
            return Ok(());
        }
        let (config, plan) = (&self.header.config, self.header.config.phases[phase]);
        let step = Step::new(config, &plan, (&self.source, &self.matching), self.first(phase));
        let planned = step.plan(&self.state, self.team.own_shards())?;
        let peak_bytes = planned.peak_bytes(config.steps().1) as u64;
        bounds::check_update((&self.header.options, config), plan.objective.name(), peak_bytes)?;
        self.programs.tallies.counters.plan_peak_bytes = peak_bytes;
        self.programs.tallies.planned(phase, planned);
        self.programs.steps[phase] = Some(step);
        Ok(())
    }

    fn begin(&mut self, phase: usize) -> Result<()> {
        let (config, first) = (&self.header.config, self.first(phase));
        let is_new = phase > 0 && self.update == first;
        self.team.order(&Order::Begin { phase, first, is_new })?;
        if is_new {
            self.state = step::begin_phase(config, &config.phases[phase], self.state.clone());
        }
        self.timing.begin();
        self.prepare(phase)?;
        self.begin_checks(phase);
        Ok(())
    }

    /// Makes one update, then validates, saves and draws if these are due. Returns whether the phase is over.
    fn advance(&mut self, phase: usize) -> Result<bool> {
        let mut row = self.step(phase)?;
        let last = self.is_over(phase);
        if last && phase + 1 == self.header.config.phases.len() {
            self.timing.budget.end_training();
        }
        let first_look = !self.timing.looked && self.first_look(phase);
        self.timing.looked |= first_look;
        let mut due = self.is_due(phase, last);
        // Under a time limit the final evaluation scores the end of the last phase.
        let now_s = self.timing.now_s();
        let ends = last && !self.timing.budget.is_limited();
        self.judging.last_score = self.judging.last_score.filter(|_| !last);
        if due && self.judging.estimator.is_some() {
            row.kl_estimate = self.estimate()?.map(estimator::to_row);
            due = false;
        }
        if ends || first_look || due || self.timing.measuring.rings(now_s) {
            let score = self.check(phase, ends || due)?;
            let nll = score.best_nll(self.header.frames.entropy_nats());
            (row.nll_nats, row.nll_stderr_nats) = (Some(nll.mean), nll.stderr);
            if due {
                self.keep_by_score(&score)?;
            }
        }
        self.programs.tallies.update(phase, &row);
        if let Some(metrics) = &mut self.metrics {
            metrics.push(&row)?;
        }
        if last || self.judging.stopped || self.timing.saving.rings(self.timing.now_s()) {
            self.save()?;
        }
        #[cfg(feature = "plot")]
        if self.folder.is_some() && self.plots != PlotsKind::None {
            // Under a time limit, the first figure tells how long the final ones will take.
            let first =
                first_look && !(self.timing.budget.is_limited() && self.timing.watch.knows(Work::Figures));
            if first || self.timing.drawing.rings(self.timing.now_s()) {
                self.draw()?;
            }
        }
        if self.timing.budget.is_limited() {
            self.timing.budget.reserve(self.end_of_run().expected_s(&self.timing.watch));
        }
        let progress = self.progress(phase, &row);
        (self.trainer.on_update)(&progress);
        Ok(last)
    }

    /// Makes an update and counts its cost.
    fn step(&mut self, phase: usize) -> Result<Row> {
        let plan = self.header.config.phases[phase];
        let (started_s, updates) = (self.timing.now_s(), self.updates_of(phase));
        let step = self.programs.steps[phase].take().expect("invariant: a phase that has begun has a step");
        let watch = self.timing.watch.clone();
        let means = watch.run(Work::Update, 1.0, || self.make_update(phase, &step, updates))?;
        let Means { loss, steps, field_evals } = means;
        let ms = (self.timing.now_s() - started_s) * 1e3;
        if self.timing.pace.is_new() {
            // The time of the first update is not typical.
            self.timing.watch.forget(Work::Update);
        }
        self.update += 1;
        if self.timing.budget.is_limited() {
            self.header.config.phases[phase].updates += 1;
        }
        if self.update == self.resumed_from.unwrap_or(0) + 1 {
            self.programs.tallies.counters.first_update_s = Some(self.timing.now_s());
        }
        self.programs.tallies.solves(phase, step.last_run(), steps);
        let traces = step.traces();
        self.programs.steps[phase] = Some(step);
        Ok(Row {
            update: self.update,
            phase: plan.objective.name().to_owned(),
            loss,
            nll_nats: None,
            nll_stderr_nats: None,
            kl_estimate: None,
            ms,
            field_evals: field_evals.round() as u64,
            live_buffers: memory::live_buffers(),
            live_bytes: memory::live_bytes(),
            rss_mb: process::rss_mb(),
            traces,
        })
    }

    /// Makes an update with the other ranks. Saves the run if a rank does not answer in time.
    fn make_update(&mut self, phase: usize, step: &Step, updates: f64) -> Result<Means> {
        let (plan, team) = (self.header.config.phases[phase], self.team.clone());
        team.order(&Order::Update { phase, updates })?;
        let state = self.state.clone();
        let save = &mut |e: &WorldError| {
            (self.trainer.on_note)(&format!("error: {e}"));
            let saved = self.write().map_or_else(|e| e.to_string(), |()| "the run is saved".to_owned());
            (self.trainer.on_note)(&saved);
        };
        let found = team.gradient(Ok(step), &state, false, save);
        let (means, gradient) = step::checked(found, self.update + 1, &plan).inspect_err(|_| team.fail())?;
        drop(state);
        step.apply(&mut self.state, gradient, updates)?;
        Ok(means)
    }
}
