//! The trajectories of an ensemble shared among threads, and ensembles of plain closures.
//!
//! Chunks of trajectories write into their own part of the results, so nothing is collected or sorted afterwards.
//! How they are cut is free: no result depends on it.

use super::{Ensemble, EnsembleProgress};
use crate::ode::host::solve;
use crate::ode::{Field, HostState, Ode, OdeError, Outcome, Real, Resolved, Stats};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Some of the parameters, and where their results go.
pub(super) struct Chunk<'a, P, Y> {
    pub params: &'a [P],
    pub y1: &'a mut [Y],
    pub stats: &'a mut [Stats],
    pub outcomes: &'a mut [Outcome],
}

/// The threads that share the work.
pub(super) struct Threads {
    count: usize,
}

impl Threads {
    /// Those of the current pool of rayon, one without it.
    pub fn new() -> Self {
        #[cfg(feature = "rayon")]
        let count = rayon::current_num_threads();
        #[cfg(not(feature = "rayon"))]
        let count = 1;
        Threads { count }
    }
    pub fn count(&self) -> usize {
        self.count
    }

    /// Trajectories of a chunk: enough chunks that threads end together, few enough that each keeps its lanes full.
    fn chunk_len(&self, n: usize) -> usize {
        n.div_ceil(self.count * 8).clamp(256, 4096)
    }
}

type Results<Y> = (Vec<Y>, Vec<Stats>, Vec<Outcome>);

/// Runs `run` on each chunk, all threads together; `y1` has a place for each trajectory.
pub(super) fn for_each_chunk<P: Sync, Y: Send, E: Send>(
    threads: &Threads,
    params: &[P],
    mut y1: Vec<Y>,
    on_progress: Option<&(dyn Fn(EnsembleProgress) + Sync + '_)>,
    run: impl Fn(Chunk<'_, P, Y>) -> Result<(), E> + Sync,
) -> Result<Results<Y>, E> {
    let n = params.len();
    let len = threads.chunk_len(n);
    let mut stats = vec![Stats::default(); n];
    let mut outcomes = vec![Outcome::Completed; n];
    let done = AtomicUsize::new(0);
    let work = |chunk: Chunk<'_, P, Y>| {
        let some = chunk.params.len();
        run(chunk)?;
        if let Some(tell) = on_progress {
            let num_done = done.fetch_add(some, Ordering::Relaxed) + some;
            tell(EnsembleProgress { num_done, num_trajectories: n });
        }
        Ok(())
    };
    #[cfg(feature = "rayon")]
    {
        use rayon::prelude::*;
        params
            .par_chunks(len)
            .zip(y1.par_chunks_mut(len))
            .zip(stats.par_chunks_mut(len).zip(outcomes.par_chunks_mut(len)))
            .try_for_each(|((params, y1), (stats, outcomes))| work(Chunk { params, y1, stats, outcomes }))?;
    }
    #[cfg(not(feature = "rayon"))]
    for (((params, y1), stats), outcomes) in
        params.chunks(len).zip(y1.chunks_mut(len)).zip(stats.chunks_mut(len)).zip(outcomes.chunks_mut(len))
    {
        work(Chunk { params, y1, stats, outcomes })?;
    }
    Ok((y1, stats, outcomes))
}

impl<Y: HostState + Send + Sync, F: Field<Y> + Sync> Ode<'_, Y, F>
where
    Y::Options: Sync,
{
    /// One trajectory from each of `y0s`, one at a time on each thread (`rayon`): a closure knows one kind of
    /// number. A [`field!`](crate::field) in an [ensemble](Ode::ensemble) is many times faster.
    ///
    /// A y0 that is not finite is an outcome of its trajectory.
    ///
    /// # Errors
    /// An option out of range, an interval that is not finite, a field that failed for one of them.
    ///
    /// # Examples
    /// ```
    /// use flowline::ode::Ode;
    /// let decay = Ode::new(|_t, y: &[f64; 1]| [-y[0]]);
    /// let many = decay.solve_many(0.0, 1.0, &[[1.0], [2.0]])?;
    /// assert!((many.y1[1][0] - 2.0 * (-1.0_f64).exp()).abs() < 1e-6);
    /// assert!(many.to_string().contains("one at a time"));
    /// # Ok::<(), flowline::ode::OdeError>(())
    /// ```
    pub fn solve_many(&self, t0: f64, t1: f64, y0s: &[Y]) -> Result<Ensemble<Y>, OdeError> {
        let (default, parts) = match y0s.first() {
            Some(y0) => (y0.default_tolerance(), y0.parts()),
            None => (<f64 as Real>::TOLERANCE, vec![0]),
        };
        let Resolved { rtol, atol, .. } = self.settings.resolve(default, &parts, Some((t0, t1)))?;
        let threads = Threads::new();
        let run = |chunk: Chunk<'_, Y, Y>| {
            for (index, y0) in chunk.params.iter().enumerate() {
                match solve(self, t0, t1, y0.clone()) {
                    Ok(solution) => {
                        chunk.y1[index] = solution.y1;
                        chunk.stats[index] = solution.stats;
                        chunk.outcomes[index] = solution.outcome;
                    }
                    Err(OdeError::InitialState { component }) => {
                        chunk.y1[index] = y0.clone();
                        let component = Some(component);
                        chunk.outcomes[index] = Outcome::NonFinite { t: t0, dt: 0.0, step: 0, component };
                    }
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        };
        let (y1, stats, outcomes) = for_each_chunk(&threads, y0s, y0s.to_vec(), None, run)?;
        Ok(Ensemble { y1, stats, outcomes, num_lanes: 1, num_threads: threads.count(), rtol, atol })
    }
}
