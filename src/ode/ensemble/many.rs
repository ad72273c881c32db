//! Shares the trajectories of an ensemble among threads.
//!
//! Each chunk of trajectories writes into its own part of the results, so nothing is collected or sorted
//! afterwards. No result depends on the chunk size.

use super::EnsembleProgress;
use super::drive::Out;
use crate::ode::{Outcome, Stats, Warning};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of threads that share the work: those of rayon's current pool, or 1 without the feature
/// `rayon`.
pub(super) fn num_threads() -> usize {
    #[cfg(feature = "rayon")]
    return rayon::current_num_threads();
    #[cfg(not(feature = "rayon"))]
    1
}

/// Calls `work` with each index below `n`, on all threads.
fn in_parallel(n: usize, work: &(dyn Fn(usize) + Sync)) {
    #[cfg(feature = "rayon")]
    {
        use rayon::prelude::*;
        (0..n).into_par_iter().with_max_len(1).for_each(work);
    }
    #[cfg(not(feature = "rayon"))]
    (0..n).for_each(work);
}

/// Trajectories per chunk: small enough that all threads end at about the same time, large enough to fill the
/// lanes.
fn chunk_len(n: usize) -> usize {
    n.div_ceil(num_threads() * 8).clamp(256, 4096)
}

/// The message for a poisoned lock.
const LOCK: &str = "invariant: no panic while the lock is held";

/// Stores `failure`, unless a failure with a lower index is stored.
fn keep_first<E>(first: &Mutex<Option<(usize, E)>>, failure: (usize, E)) {
    let mut first = first.lock().expect(LOCK);
    if first.as_ref().is_none_or(|(index, _)| failure.0 < *index) {
        *first = Some(failure);
    }
}

/// The progress callback.
pub(super) type OnProgress<'a> = Box<dyn Fn(EnsembleProgress) + Sync + 'a>;

/// The results of some trajectories, in their order.
pub struct Results<Y> {
    /// All components of the first trajectory, then those of the second, and so on; `Y` is the type of a
    /// component.
    pub y1: Vec<Y>,
    pub stats: Vec<Stats>,
    pub outcomes: Vec<Outcome>,
    pub warnings: Vec<Option<Warning>>,
}

/// The warnings, each with the index of its trajectory.
pub(super) fn warned(warnings: &[Option<Warning>]) -> Vec<(usize, Warning)> {
    warnings.iter().enumerate().filter_map(|(index, warning)| Some((index, (*warning)?))).collect()
}

/// Some of the trajectories, and the destination of their results.
type Chunk<'a, Y> = (Range<usize>, Out<'a, Y>);

/// Divides `n` trajectories into chunks and calls `run` with each chunk, on all threads. `y1` has `width`
/// entries per trajectory.
///
/// # Errors
/// The error of the first chunk, in the order of the trajectories, that failed.
pub(super) fn for_each_chunk<Y: Send, E: Send>(
    n: usize,
    (mut y1, width): (Vec<Y>, usize),
    on_progress: Option<&OnProgress<'_>>,
    run: &(dyn Fn(Chunk<'_, Y>) -> Result<(), E> + Sync),
) -> Result<Results<Y>, E> {
    let (mut stats, mut outcomes) = (vec![Stats::default(); n], vec![Outcome::Completed; n]);
    let mut warnings = vec![None; n];
    let mut chunks: Vec<Mutex<Option<Chunk<'_, Y>>>> = Vec::new();
    let mut rest = Out { y1: &mut y1, stats: &mut stats, outcomes: &mut outcomes, warnings: &mut warnings };
    for start in (0..n).step_by(chunk_len(n)) {
        let end = n.min(start + chunk_len(n));
        let (some, others) = rest.split_at(end - start, width);
        chunks.push(Mutex::new(Some((start..end, some))));
        rest = others;
    }
    let (done, failed) = (AtomicUsize::new(0), Mutex::new(None));
    in_parallel(chunks.len(), &|index| {
        let Some(chunk) = chunks[index].lock().expect(LOCK).take() else { return };
        let some = chunk.0.len();
        match run(chunk) {
            Ok(()) => {
                if let Some(tell) = on_progress {
                    let num_done = done.fetch_add(some, Ordering::Relaxed) + some;
                    tell(EnsembleProgress { num_done, num_trajectories: n });
                }
            }
            Err(error) => keep_first(&failed, (index, error)),
        }
    });
    drop(chunks);
    match failed.into_inner().expect(LOCK) {
        Some((_, error)) => Err(error),
        None => Ok(Results { y1, stats, outcomes, warnings }),
    }
}

impl<Y> Out<'_, Y> {
    /// The results of the first `n` trajectories, and of the others.
    fn split_at(self, n: usize, width: usize) -> (Self, Self) {
        let (y1, y1_rest) = self.y1.split_at_mut(n * width);
        let (stats, stats_rest) = self.stats.split_at_mut(n);
        let (outcomes, outcomes_rest) = self.outcomes.split_at_mut(n);
        let (warnings, warnings_rest) = self.warnings.split_at_mut(n);
        let rest = Out { y1: y1_rest, stats: stats_rest, outcomes: outcomes_rest, warnings: warnings_rest };
        (Out { y1, stats, outcomes, warnings }, rest)
    }
}
