//! `counters.json`: what a run counted that its rows of metrics do not hold; and the contents of both, read again.
//!
//! Clocks and memory have no place in a checkpoint, whose bytes are a function of the options alone; so they lie beside
//! it. The file is written before each checkpoint. It says which run it is of and how much of `metrics.csv` it vouches
//! for; one that is damaged is refused, and without one a resumed run reports what it counted itself. What is reported later is
//! counted as the run counts.

use super::tally::Tallies;
use super::{PhaseReport, RunInfo, Scores, ToleranceRow, TrainError};
use crate::backend::work::Work;
use crate::error::Result;
use crate::io::read_sealed;
use crate::io::run::metrics::{Extent, Kept};
use crate::io::run::{COUNTERS_FILE, METRICS_FILE};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Counts up to the last checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Counters {
    /// The run's [`id`](super::RunInfo::run).
    pub run: String,
    /// Seconds of the run up to the checkpoint, of all processes together, without the end; none in earlier runs.
    pub seconds: Option<f64>,
    /// Updates at which a run under a time limit measured for its best weights.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub measured_at: Vec<u64>,
    /// Rows of `metrics.csv` that were there.
    pub metrics: Option<Extent>,
    /// Seconds from the start of the process to the end of its first update, of the latest process that did one.
    pub first_update_s: Option<f64>,
    /// Planned bytes of an update at their peak, of the last phase that was begun.
    pub plan_peak_bytes: u64,
    /// The most states that a gradient kept at once.
    pub states_kept_max: u64,
    /// The largest resident memory of any process of the run.
    pub peak_rss_mb: f64,
    /// Threads that the latest process ran updates on.
    pub threads: usize,
    /// Bits of images by tolerance, once a run has ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerances: Vec<ToleranceRow>,
    /// What the end of the run measured, once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scores: Option<Scores>,
    /// Each phase's.
    pub phases: Vec<PhaseCounters>,
}

/// Counts of one phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct PhaseCounters {
    /// Steps run again for gradients.
    pub recomputed: f64,
    /// Steps that solves tried, of all blocks together.
    pub attempted: f64,
    /// Those they took.
    pub accepted: f64,
    /// Updates that these are sums over.
    pub updates: u64,
    /// What an update of so many steps computes; none before the first.
    pub work: Option<Work>,
}

/// The trained part of a run, as its folder records it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Recorded {
    /// The phases that have updates, in order.
    pub phases: Vec<PhaseReport>,
    /// Bits of images by tolerance, where a run on images has ended.
    pub tolerances: Vec<ToleranceRow>,
    /// What the end of the run measured, where it has ended.
    pub scores: Option<Scores>,
    /// Threads that the latest process ran updates on, where that was noted.
    pub threads: Option<usize>,
}

impl Recorded {
    /// Reads the files beside a checkpoint with this header after so many updates; rows of later updates, which a killed
    /// run may have left, do not count. Missing files count as empty.
    ///
    /// # Errors
    /// A file that is damaged, or of another run.
    pub fn read(folder: impl AsRef<Path>, header: &RunInfo, update: u64) -> Result<Recorded> {
        let (counters, kept) = counts(folder.as_ref(), header, update)?;
        let mut tallies = Tallies::new(&header.config, header.frames.entropy_nats());
        tallies.restore(counters.unwrap_or_default());
        kept.iter().flat_map(|kept| &kept.rows).for_each(|row| tallies.read(&header.config, row));
        Ok(Recorded {
            phases: tallies.phase_reports(),
            threads: Some(tallies.counters.threads).filter(|&threads| threads > 0),
            scores: tallies.counters.scores.filter(|scores| scores.update == update),
            tolerances: tallies.counters.tolerances,
        })
    }
}

/// Counters and rows up to an update of the run with this header, where there are such files.
///
/// # Errors
/// As [`Recorded::read`].
pub(super) fn counts(
    folder: &Path,
    header: &RunInfo,
    update: u64,
) -> Result<(Option<Counters>, Option<Kept>)> {
    let path = folder.join(COUNTERS_FILE);
    let counters = read_sealed::<Counters>(&path)?;
    if counters.as_ref().is_some_and(|counters| counters.run != header.run) {
        return Err(TrainError::OtherRun { path }.into());
    }
    let known = counters.as_ref().and_then(|counters| counters.metrics.as_ref());
    let rows = Kept::read(&folder.join(METRICS_FILE), update, known)?;
    Ok((counters, rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::write_sealed;

    #[test]
    fn counters_come_back_and_a_damaged_file_is_refused() {
        let read = |path: &Path| read_sealed::<Counters>(path);
        let folder = crate::io::scratch();
        let path = folder.path().join("counters.json");
        assert_eq!(read(&path).unwrap(), None);
        let work = Some(Work { kernels: 4, flops: 1.5e9, bytes_moved: 0.1 });
        let phases =
            vec![PhaseCounters { recomputed: 12.5, attempted: 9.25, accepted: 9.0, updates: 3, work }];
        let counters =
            Counters { first_update_s: Some(0.25), plan_peak_bytes: 7, phases, ..Counters::default() };
        write_sealed(&path, &counters).unwrap();
        assert_eq!(read(&path).unwrap(), Some(counters));
        let text = std::fs::read_to_string(&path).unwrap();
        for damaged in [&text.replace("12.5", "12.4"), "{\"phases\": 3", "[]"] {
            std::fs::write(&path, damaged).unwrap();
            let message = read(&path).unwrap_err().to_string();
            assert!(message.contains("counters.json is damaged"), "{message}");
        }
        // Written before there was a checksum.
        std::fs::write(&path, "{\"plan_peak_bytes\": 3}").unwrap();
        assert_eq!(read(&path).unwrap().unwrap().plan_peak_bytes, 3);
    }
}
