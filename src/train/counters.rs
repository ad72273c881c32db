//! `counters.json`: what a run counted that its rows of metrics do not tell, for the report of a resumed run.
//!
//! Clocks and memory have no place in a checkpoint, whose bytes are a function of the options alone; so they lie beside
//! it. The file is written before each checkpoint and read in good faith: without it, or with one that is broken, a
//! resumed run tells what it counted itself.

use super::ToleranceRow;
use super::plan::Work;
use crate::io::{IoError, write_atomic};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Counts up to the last checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Counters {
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
    /// What lies in a file; zeros where there is none.
    pub(super) fn read(path: &Path) -> Counters {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Writes the file.
    ///
    /// # Errors
    /// [`IoError::Write`].
    pub(super) fn write(&self, path: &Path) -> Result<(), IoError> {
        let text = serde_json::to_string_pretty(self).expect("invariant: counters are plain values");
        write_atomic(path, |file| writeln!(file, "{text}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_come_back_and_a_broken_file_is_none() {
        let folder = crate::io::scratch();
        let path = folder.path().join("counters.json");
        assert_eq!(Counters::read(&path), Counters::default());
        let work = Some(Work { kernels: 4, flops: 1.5e9, bytes_moved: 0.1 });
        let phases =
            vec![PhaseCounters { recomputed: 12.5, attempted: 9.25, accepted: 9.0, updates: 3, work }];
        let counters =
            Counters { first_update_s: Some(0.25), plan_peak_bytes: 7, phases, ..Counters::default() };
        counters.write(&path).unwrap();
        assert_eq!(Counters::read(&path), counters);
        std::fs::write(&path, "{\"phases\": 3").unwrap();
        assert_eq!(Counters::read(&path), Counters::default());
    }
}
