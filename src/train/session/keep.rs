//! Writing to the run folder during training: checkpoints, metrics rows, counters.
//!
//! Files are written in an order from which a run can resume after a kill at any moment: rows, then the
//! counters that cover them, then their checkpoint. A resumed run reads and checks all files before it writes
//! any. Without a folder nothing is written.

use super::Session;
use crate::error::{Error, Result};
use crate::io::process;
use crate::io::run::metrics::{Kept, Metrics};
use crate::io::run::{COUNTERS_FILE, METRICS_FILE, MODEL_FILE, RunFolder};
use crate::io::{write_checkpoint, write_sealed};
use crate::tensor::{Tensor, Tree};
use crate::train::best::Best;
use crate::train::recorded::{Counters, counts};
use crate::train::run::RESTART;
use crate::train::state::Stored;
use crate::train::team::Order;
use crate::train::{Scores, TrainError};

/// The remedy when `counters.json` or `metrics.csv` is damaged, or when both do not belong together: only the report and a
/// time limit depend on them.
const WITHOUT: &str = "restore it from a backup, or delete it; a run with the same `run_dir` then continues without its numbers";
const WITHOUT_BOTH: &str = "restore the one that was replaced, or delete both; a run with the same `run_dir` then continues without their numbers";

impl Session<'_> {
    /// Writes the first checkpoint, without rows.
    pub(super) fn begin_files(&mut self) -> Result<()> {
        self.header.run = self.header.id(&self.state, &self.timing.budget.time);
        let Some(folder) = &mut self.folder else { return Ok(()) };
        if let Some(aside) = self.trainer.restart.then(|| folder.move_aside()).transpose()?.flatten() {
            let (from, to) = (folder.path().display(), aside.display());
            (self.trainer.on_note)(&format!("the run in {from} was moved to {to}"));
        }
        folder.sweep();
        let stored = Stored::of(&self.state, self.pixels.clone());
        write_checkpoint(folder.target(MODEL_FILE)?, &self.header, &stored)?;
        folder.keep();
        let rows = Kept::none(&folder.target(METRICS_FILE)?, self.header.kl_estimate);
        self.metrics = Some(rows.resume()?);
        let path = folder.target(COUNTERS_FILE)?;
        Ok(write_sealed(&path, self.counters())?)
    }

    /// Reads the files of the earlier part of the run.
    pub(super) fn reopen_files(&mut self) -> Result<()> {
        let folder = self.folder.as_ref().expect("invariant: a run that is resumed lies in a folder");
        let unusable = |remedy| move |e: Error| TrainError::unusable(&e, remedy);
        let found = counts(folder.path(), &self.header, self.update);
        let (counters, rows) = found.map_err(|e| match e {
            Error::Train(TrainError::OtherRows { .. }) => unusable(WITHOUT_BOTH)(e),
            e => unusable(WITHOUT)(e),
        })?;
        let best = self
            .judging
            .best
            .as_ref()
            .map(|_| Best::read(folder, &self.header, self.update, &self.state.ema));
        let best = best.transpose().map_err(unusable(RESTART))?.flatten();
        // All files are read and consistent: writing starts here.
        folder.sweep();
        for (file, is_lost) in [(COUNTERS_FILE, counters.is_none()), (METRICS_FILE, rows.is_none())] {
            if is_lost && self.update > 0 {
                let (path, update) = (folder.file(file), self.update);
                let path = path.display();
                let text = format!("{path} is missing: its records of updates 1 to {update} are lost");
                (self.trainer.on_note)(&text);
            }
        }
        let none = || Kept::none(&folder.file(METRICS_FILE), self.header.kl_estimate);
        let rows = rows.unwrap_or_else(none);
        let (run, metrics) = (self.header.run.clone(), Some(rows.extent()));
        let mut earlier = Counters { run, metrics, ..counters.unwrap_or_default() };
        // The counters must cover fewer rows before rows are removed.
        write_sealed(&folder.target(COUNTERS_FILE)?, &earlier)?;
        self.timing.budget.resume(earlier.seconds);
        earlier.measured_at.retain(|&update| update <= self.update);
        self.programs.tallies.restore(earlier);
        rows.rows.iter().for_each(|row| self.programs.tallies.read(&self.header.config, row));
        self.judging.best = best.or(self.judging.best.take());
        self.judging.rows_checked = self.judging.best.as_ref().and_then(|best| best.measured?.rows);
        self.metrics = Some(rows.resume()?);
        Ok(())
    }

    /// Writes a checkpoint, while other ranks wait. Refuses weights that are not finite, from which no run
    /// could resume.
    pub(in crate::train) fn save(&mut self) -> Result<()> {
        self.team.order(&Order::Wait)?;
        self.write()
    }

    pub(super) fn write(&mut self) -> Result<()> {
        let since_s = self.timing.now_s();
        let target = |folder: &Option<RunFolder>, name| folder.as_ref().map(|folder| folder.target(name));
        let Some(path) = target(&self.folder, COUNTERS_FILE).transpose()? else { return Ok(()) };
        let finite = |t: &Tensor| !t.dtype().is_float() || t.to_vec().iter().all(|x| x.is_finite());
        if !self.state.model.leaves().iter().all(finite) {
            let phase = self.header.config.phase_of(self.update);
            let (update, objective, lr) = (self.update, phase.objective.name(), phase.lr);
            return Err(TrainError::Loss { loss: f64::NAN, update, objective, lr }.into());
        }
        self.metrics.as_mut().map(Metrics::sync).transpose()?;
        write_sealed(&path, self.counters())?;
        let stored = Stored::of(&self.state, self.pixels.clone());
        let Some(path) = target(&self.folder, MODEL_FILE).transpose()? else { return Ok(()) };
        write_checkpoint(path, &self.header, &stored)?;
        self.timing.saving.done(since_s, self.timing.now_s());
        Ok(())
    }

    /// Writes the final scores to `counters.json`.
    pub(in crate::train) fn keep_scores(&mut self, scores: Scores) -> Result<()> {
        self.programs.tallies.counters.scores = Some(scores);
        let path = self.folder.as_ref().map(|folder| folder.target(COUNTERS_FILE)).transpose()?;
        let Some(path) = path else { return Ok(()) };
        Ok(write_sealed(&path, self.counters())?)
    }

    /// The counters for the report, over this process and earlier ones, as of now.
    pub(in crate::train) fn counters(&mut self) -> &Counters {
        self.programs.tallies.settle();
        let counters = &mut self.programs.tallies.counters;
        counters.run.clone_from(&self.header.run);
        counters.seconds = Some(self.timing.budget.trained_s());
        counters.metrics = self.metrics.as_ref().map(Metrics::extent);
        counters.peak_rss_mb = process::peak_rss_mb().max(counters.peak_rss_mb);
        counters.threads = rayon::current_num_threads();
        counters
    }
}
