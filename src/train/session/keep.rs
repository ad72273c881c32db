//! What a run keeps in its folder on the way: checkpoints, rows of metrics, counters.
//!
//! It knows the folder's files and in which order they are written: counters and rows lie there before the checkpoint that
//! they belong to. It must never change what is kept; a run without a folder keeps nothing and goes on all the same.

use super::Session;
use crate::error::Result;
use crate::io::write_checkpoint;
use crate::tensor::{Tensor, Tree};
use crate::train::best::Best;
use crate::train::counters::Counters;
use crate::train::folder::{COUNTERS_FILE, METRICS_FILE, MODEL_FILE};
use crate::train::metrics::Metrics;
use crate::train::report::Tallies;
use crate::train::state::Stored;
use crate::train::{TrainError, process};
use std::time::Instant;

impl Session<'_> {
    /// The first checkpoint, which has the number of updates, and the rows of an earlier part of the run.
    pub(super) fn open_files(&mut self, resumed: bool) -> Result<()> {
        self.tallies = Tallies::new(&self.header.recipe, self.header.entropy_nats());
        let Some(folder) = &mut self.folder else { return Ok(()) };
        if resumed {
            self.earlier = Counters::read(&folder.file(COUNTERS_FILE));
            self.tolerances.clone_from(&self.earlier.tolerances);
            self.tallies.restore(&self.earlier);
            self.plan_peak_bytes = self.earlier.plan_peak_bytes;
            if let Some(best) = &mut self.best
                && let Some(kept) = Best::read(folder, &self.header.recipe, &self.state.ema)?
            {
                *best = kept;
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
        metrics.flush()?;
        self.counters().write(&folder.file(COUNTERS_FILE))?;
        let stored = Stored::of(&self.state, self.pixels.clone());
        write_checkpoint(folder.file(MODEL_FILE), &self.header, &stored)?;
        self.saving.done(since);
        Ok(())
    }

    /// What the report will need of this process and of those before it.
    pub(in crate::train) fn counters(&self) -> Counters {
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
}
