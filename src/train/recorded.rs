//! What a run folder tells of the phases that were trained: its rows of metrics and its counters, read again.
//!
//! It knows the folder's files and the report's own way of counting, so that what is told later is what the run told at
//! its end. Nothing is run and nothing is written.

use super::ToleranceRow;
use super::counters::Counters;
use super::folder::{COUNTERS_FILE, METRICS_FILE};
use super::metrics;
use super::report::{PhaseReport, Tallies};
use super::run::Header;
use std::path::Path;

/// The trained part of a run, as its folder tells it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Recorded {
    /// The phases that have updates, in order.
    pub phases: Vec<PhaseReport>,
    /// Bits of images by tolerance, where a run on images has ended.
    pub tolerances: Vec<ToleranceRow>,
    /// Threads that the latest process ran updates on, where that was noted.
    pub threads: Option<usize>,
}

impl Recorded {
    /// Reads the files beside a checkpoint with this header after so many updates; rows of later updates, which a killed
    /// run may have left, do not count. Files that are missing or broken tell nothing.
    pub fn read(folder: impl AsRef<Path>, header: &Header, update: u64) -> Recorded {
        let file = |name: &str| folder.as_ref().join(name);
        let counters = Counters::read(&file(COUNTERS_FILE));
        let mut tallies = Tallies::new(&header.recipe, header.entropy_nats());
        tallies.restore(&counters);
        for row in metrics::read(&file(METRICS_FILE)).take_while(|row| row.update <= update) {
            tallies.read(&header.recipe, &row);
        }
        Recorded {
            phases: tallies.phase_reports(),
            tolerances: counters.tolerances,
            threads: (counters.threads > 0).then_some(counters.threads),
        }
    }
}
