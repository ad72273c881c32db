//! `counters.json`: counts of a run that are not in `metrics.csv`. This module also reads both files.
//!
//! A checkpoint must be a function of options and data alone, so it cannot contain times and memory use; they
//! are stored beside it. The file is written before each checkpoint except the first. It names its run and
//! the part of `metrics.csv` that it covers. A damaged file is refused; without the file a resumed run
//! reports only its own counts.

use super::tally::Tallies;
use super::{PhaseReport, RunInfo, Scores, ToleranceRow, TrainError};
use crate::backend::work::Work;
use crate::error::Error;
use crate::io::run::metrics::{Extent, Kept};
use crate::io::run::{COUNTERS_FILE, METRICS_FILE};
use crate::io::{IoError, read_sealed};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Counts up to the last checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Counters {
    /// The run's [`id`](super::RunInfo::run).
    pub run: String,
    /// Seconds of the run up to the checkpoint, over all its processes, without the final evaluation; `None`
    /// in older runs.
    pub seconds: Option<f64>,
    /// Updates after which validation was checked for the best weights, in a run under a time limit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub measured_at: Vec<u64>,
    /// The part of `metrics.csv` that existed at the checkpoint.
    pub metrics: Option<Extent>,
    /// Seconds from the start of the process to the end of its first update, for the latest process that made one.
    pub first_update_s: Option<f64>,
    /// Planned peak bytes of an update in the last phase begun.
    pub plan_peak_bytes: u64,
    /// Maximum number of states stored for a gradient.
    pub states_kept_max: u64,
    /// Peak resident memory of any process of the run, in MB of 10^6 bytes.
    pub peak_rss_mb: f64,
    /// Number of threads of the latest process.
    pub threads: usize,
    /// Bits/dim by tolerance, once a run on images has ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerances: Vec<ToleranceRow>,
    /// The final scores, once the run has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scores: Option<Scores>,
    /// Counts of each phase.
    pub phases: Vec<PhaseCounters>,
}

/// Counts of one phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct PhaseCounters {
    /// Steps recomputed for gradients.
    pub recomputed: f64,
    /// Steps attempted, over all blocks.
    pub attempted: f64,
    /// Steps accepted.
    pub accepted: f64,
    /// The number of updates in these sums.
    pub updates: u64,
    /// Mean operations per update; `None` before the first update.
    pub work: Option<Work>,
}

/// The training of a run as its folder records it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Recorded {
    /// The phases with updates, in order.
    pub phases: Vec<PhaseReport>,
    /// Bits/dim by tolerance, if a run on images has ended.
    pub tolerances: Vec<ToleranceRow>,
    /// The final scores, if the run has ended.
    pub scores: Option<Scores>,
    /// Threads of the latest process, if recorded.
    pub threads: Option<usize>,
}

impl Recorded {
    /// Reads the files beside a checkpoint with this header and number of updates. Rows of later updates, left by a
    /// killed run, are ignored. Missing files count as empty.
    ///
    /// # Errors
    /// A file is damaged or belongs to another run.
    pub fn read(folder: impl AsRef<Path>, header: &RunInfo, update: u64) -> crate::Result<Recorded> {
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

/// Seconds of the run with this header up to its last checkpoint, over all its processes, if they are recorded.
pub fn seconds_trained(folder: &Path, header: &RunInfo) -> Option<f64> {
    let counters = read_sealed::<Counters>(&folder.join(COUNTERS_FILE)).ok()??;
    counters.seconds.filter(|_| counters.run == header.run)
}

/// The final scores of the run with this header, as `counters.json` beside its checkpoint has them.
///
/// # Errors
/// Why there are none.
pub(super) fn scores(folder: &Path, header: &RunInfo, update: u64) -> Result<Scores, String> {
    let path = folder.join(COUNTERS_FILE);
    let counters = read_sealed::<Counters>(&path).map_err(|e| e.to_string())?;
    let counters = counters.ok_or_else(|| format!("{} is missing", path.display()))?;
    if counters.run != header.run {
        return Err(TrainError::OtherRun { path }.to_string());
    }
    let of_the_end = counters.scores.filter(|scores| scores.update == update);
    of_the_end.ok_or_else(|| {
        format!("{} has none, so the run has not ended, or an older version wrote it", path.display())
    })
}

/// Counters and rows up to an update of the run with this header, if the files exist.
///
/// # Errors
/// As [`Recorded::read`].
pub(super) fn counts(
    folder: &Path,
    header: &RunInfo,
    update: u64,
) -> crate::Result<(Option<Counters>, Option<Kept>)> {
    let path = folder.join(COUNTERS_FILE);
    let counters = read_sealed::<Counters>(&path)?;
    if counters.as_ref().is_some_and(|counters| counters.run != header.run) {
        return Err(TrainError::OtherRun { path }.into());
    }
    let known = counters.as_ref().and_then(|counters| counters.metrics.as_ref());
    let metrics = folder.join(METRICS_FILE);
    let rows = Kept::read(&metrics, update, known).map_err(|e| match e {
        // If the rows can be read without the record, either file may be that of another state of the run.
        IoError::Damaged { reason, .. } if known.is_some() && Kept::read(&metrics, update, None).is_ok() => {
            TrainError::OtherRows { counters: path, metrics: metrics.clone(), reason }.into()
        }
        e => Error::from(e),
    })?;
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
        // Written by a version without checksums.
        std::fs::write(&path, "{\"plan_peak_bytes\": 3}").unwrap();
        assert_eq!(read(&path).unwrap().unwrap().plan_peak_bytes, 3);
    }
}
