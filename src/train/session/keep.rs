//! What a run keeps in its folder on the way: checkpoints, rows of metrics, counters.
//!
//! It knows the folder's files and in which order they are written, so that a kill between any two leaves a folder that
//! goes on: rows, then counters that vouch for them, then the checkpoint that they belong to. A run that is resumed reads
//! and believes all of them before it writes one. A run without a folder keeps nothing and goes on all the same.

use super::Session;
use crate::error::{Error, Result};
use crate::io::process;
use crate::io::run::metrics::{Kept, Metrics};
use crate::io::run::{COUNTERS_FILE, METRICS_FILE, MODEL_FILE};
use crate::io::write_checkpoint;
use crate::tensor::{Tensor, Tree};
use crate::train::TrainError;
use crate::train::best::Best;
use crate::train::counters::Counters;
use crate::train::recorded::counts;
use crate::train::run::RESTART;
use crate::train::state::Stored;
use std::time::Instant;

/// The remedy where what lies beside a checkpoint is damaged: only the report is of it.
const WITHOUT: &str = "delete it, and --resume goes on without its numbers";

impl Session<'_> {
    /// The first checkpoint, and no rows.
    pub(super) fn begin_files(&mut self) -> Result<()> {
        self.header.run = self.header.id(&self.state);
        let Some(folder) = &mut self.folder else { return Ok(()) };
        if let Some(aside) = self.density.restart.then(|| folder.move_aside()).transpose()?.flatten() {
            let (from, to) = (folder.path().display(), aside.display());
            (self.density.on_note)(&format!("the run in {from} was moved to {to}"));
        }
        folder.sweep();
        let stored = Stored::of(&self.state, self.pixels.clone());
        write_checkpoint(folder.file(MODEL_FILE), &self.header, &stored)?;
        folder.keep();
        let rows = Kept::none(&folder.file(METRICS_FILE));
        let (run, metrics) = (self.header.run.clone(), Some(rows.extent()));
        self.metrics = Some(rows.resume()?);
        let seconds = Some(self.clock.trained_s());
        Ok(Counters { run, seconds, metrics, ..Counters::default() }.write(&folder.file(COUNTERS_FILE))?)
    }

    /// The files of an earlier part of the run.
    pub(super) fn reopen_files(&mut self) -> Result<()> {
        let folder = self.folder.as_ref().expect("invariant: a run that is resumed lies in a folder");
        let unusable = |remedy| move |e: Error| TrainError::Unusable { cause: e.to_string(), remedy };
        let (counters, rows) = counts(folder.path(), &self.header, self.update).map_err(unusable(WITHOUT))?;
        let best = self.best.as_ref().map(|_| Best::read(folder, &self.header, self.update, &self.state.ema));
        let best = best.transpose().map_err(unusable(RESTART))?.flatten();
        // Everything was read and fits together: from here on the folder is written.
        folder.sweep();
        for (file, is_lost) in [(COUNTERS_FILE, counters.is_none()), (METRICS_FILE, rows.is_none())] {
            if is_lost && self.update > 0 {
                let (path, update) = (folder.file(file), self.update);
                let path = path.display();
                let text = format!("{path} is missing: what it told of updates 1 to {update} is lost");
                (self.density.on_note)(&text);
            }
        }
        let rows = rows.unwrap_or_else(|| Kept::none(&folder.file(METRICS_FILE)));
        let (run, metrics) = (self.header.run.clone(), Some(rows.extent()));
        self.earlier = Counters { run, metrics, ..counters.unwrap_or_default() };
        self.clock.resume(self.earlier.seconds);
        self.measured_at.clone_from(&self.earlier.measured_at);
        self.measured_at.retain(|&update| update <= self.update);
        self.tolerances.clone_from(&self.earlier.tolerances);
        self.tallies.restore(&self.earlier);
        self.plan_peak_bytes = self.earlier.plan_peak_bytes;
        rows.rows.iter().for_each(|row| self.tallies.read(&self.header.recipe, row));
        self.best = best.or(self.best.take());
        // The counters vouch for fewer rows before there are fewer.
        self.earlier.write(&folder.file(COUNTERS_FILE))?;
        self.metrics = Some(rows.resume()?);
        Ok(())
    }

    /// Writes a checkpoint; refuses numbers that a resume could not go on from.
    pub(in crate::train) fn save(&mut self) -> Result<()> {
        let since = Instant::now();
        let (Some(folder), Some(metrics)) = (&self.folder, &mut self.metrics) else { return Ok(()) };
        let finite = |t: &Tensor| !t.dtype().is_float() || t.to_vec().iter().all(|x| x.is_finite());
        if !self.state.model.leaves().iter().all(finite) {
            let phase = self.header.recipe.phase_of(self.update);
            let (update, objective, lr) = (self.update, phase.objective.name(), phase.lr);
            return Err(TrainError::Loss { loss: f64::NAN, update, objective, lr }.into());
        }
        metrics.sync()?;
        self.counters().write(&folder.file(COUNTERS_FILE))?;
        let stored = Stored::of(&self.state, self.pixels.clone());
        write_checkpoint(folder.file(MODEL_FILE), &self.header, &stored)?;
        self.saving.done(since);
        Ok(())
    }

    /// What the report will need of this process and of those before it.
    pub(in crate::train) fn counters(&self) -> Counters {
        Counters {
            run: self.header.run.clone(),
            seconds: Some(self.clock.trained_s()),
            measured_at: self.measured_at.clone(),
            metrics: self.metrics.as_ref().map(Metrics::extent),
            first_update_s: self.first_update_s.or(self.earlier.first_update_s),
            plan_peak_bytes: self.plan_peak_bytes,
            states_kept_max: self.tallies.states_kept_max,
            peak_rss_mb: process::peak_rss_mb().max(self.earlier.peak_rss_mb),
            threads: rayon::current_num_threads(),
            phases: self.tallies.phase_counters(),
            tolerances: self.tolerances.clone(),
        }
    }
}
