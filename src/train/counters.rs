//! `counters.json`: what a run counted that its rows of metrics do not tell, for the report of a resumed run.
//!
//! Clocks and memory have no place in a checkpoint, whose bytes are a function of the options alone; so they lie beside
//! it. The file is written before each checkpoint. It says which run it is of and how much of `metrics.csv` it vouches
//! for; one that is damaged is refused, and without one a resumed run tells what it counted itself.

use super::ToleranceRow;
use crate::backend::work::Work;
use crate::io::run::metrics::Extent;
use crate::io::{IoError, read_sealed, write_sealed};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Counts up to the last checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Counters {
    /// The run's [`id`](super::Header::run).
    pub run: String,
    /// Seconds of the run up to the checkpoint, of all processes together, without the end; none in runs of before.
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

impl Counters {
    /// What lies in a file; none where there is no file.
    ///
    /// # Errors
    /// [`IoError::Damaged`], [`IoError::Read`].
    pub(super) fn read(path: &Path) -> Result<Option<Counters>, IoError> {
        read_sealed(path)
    }

    /// Writes the file.
    ///
    /// # Errors
    /// [`IoError::Write`].
    pub(super) fn write(&self, path: &Path) -> Result<(), IoError> {
        write_sealed(path, self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_come_back_and_a_damaged_file_is_refused() {
        let folder = crate::io::scratch();
        let path = folder.path().join("counters.json");
        assert_eq!(Counters::read(&path).unwrap(), None);
        let work = Some(Work { kernels: 4, flops: 1.5e9, bytes_moved: 0.1 });
        let phases =
            vec![PhaseCounters { recomputed: 12.5, attempted: 9.25, accepted: 9.0, updates: 3, work }];
        let counters =
            Counters { first_update_s: Some(0.25), plan_peak_bytes: 7, phases, ..Counters::default() };
        counters.write(&path).unwrap();
        assert_eq!(Counters::read(&path).unwrap(), Some(counters));
        let text = std::fs::read_to_string(&path).unwrap();
        for damaged in [&text.replace("12.5", "12.4"), "{\"phases\": 3", "[]"] {
            std::fs::write(&path, damaged).unwrap();
            let message = Counters::read(&path).unwrap_err().to_string();
            assert!(message.contains("counters.json is damaged"), "{message}");
        }
        // Written before there was a checksum.
        std::fs::write(&path, "{\"plan_peak_bytes\": 3}").unwrap();
        assert_eq!(Counters::read(&path).unwrap().unwrap().plan_peak_bytes, 3);
    }
}
