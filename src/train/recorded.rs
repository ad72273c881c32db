//! What a run folder tells of the phases that were trained: its rows of metrics and its counters, read again.
//!
//! It knows the folder's files and the report's own way of counting, so that what is told later is what the run told at
//! its end. Nothing is run and nothing is written.

use super::counters::Counters;
use super::report::{PhaseReport, Tallies};
use super::run::Header;
use super::{ToleranceRow, TrainError};
use crate::error::Result;
use crate::io::run::metrics::Kept;
use crate::io::run::{COUNTERS_FILE, METRICS_FILE};
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
    /// run may have left, do not count. Files that are missing tell nothing.
    ///
    /// # Errors
    /// A file that is damaged, or of another run.
    pub fn read(folder: impl AsRef<Path>, header: &Header, update: u64) -> Result<Recorded> {
        let (counters, kept) = counts(folder.as_ref(), header, update)?;
        let counters = counters.unwrap_or_default();
        let mut tallies = Tallies::new(&header.recipe, header.frames.entropy_nats());
        tallies.restore(&counters);
        kept.iter().flat_map(|kept| &kept.rows).for_each(|row| tallies.read(&header.recipe, row));
        Ok(Recorded {
            phases: tallies.phase_reports(),
            tolerances: counters.tolerances,
            threads: (counters.threads > 0).then_some(counters.threads),
        })
    }
}

/// Counters and rows up to an update of the run with this header, where there are such files.
///
/// # Errors
/// As [`Recorded::read`].
pub(super) fn counts(
    folder: &Path,
    header: &Header,
    update: u64,
) -> Result<(Option<Counters>, Option<Kept>)> {
    let path = folder.join(COUNTERS_FILE);
    let counters = Counters::read(&path)?;
    if counters.as_ref().is_some_and(|counters| counters.run != header.run) {
        return Err(TrainError::OtherRun { path }.into());
    }
    let known = counters.as_ref().and_then(|counters| counters.metrics.as_ref());
    let rows = Kept::read(&folder.join(METRICS_FILE), update, known)?;
    Ok((counters, rows))
}
