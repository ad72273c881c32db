//! Ranks: threads or processes that work on one job and exchange bytes.
//!
//! A [`World`] is one rank's view of the job. A [`Collective`] transports the bytes: through shared memory
//! for threads, with MPI for processes; a single rank needs no transport. The rest is the same for all
//! transports: common errors, comparison of values that must be equal on all ranks, and [sums](sum) whose
//! order depends on the number of parts, never on the number of ranks. Almost every test can therefore run on
//! threads.
//!
//! All ranks make the same calls in the same order. This layer does not depend on models, data or files.

mod agree;
mod alone;
mod collective;
mod error;
#[cfg(feature = "mpi")]
mod mpi;
#[cfg(feature = "train")]
pub(crate) mod sum;
#[cfg(all(test, feature = "train"))]
mod tests;
mod threads;
#[cfg(feature = "train")]
mod tree;

pub use error::WorldError;

pub mod extra {
    //! The transport of bytes between ranks, and counters of a rank's traffic.
    pub use super::Traffic;
    pub use super::collective::{Collective, Parts, WaitLimit};
}

use crate::time_source::TimeSource;
use collective::{Collective, Parts, WaitLimit};
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::time::Duration;

/// One rank's view of all ranks of a job.
///
/// # Examples
/// Four threads, each with its own pool:
/// ```
/// use flowline::world::World;
/// let ranks = World::threads(4, |world| (world.rank(), world.size()));
/// assert_eq!(ranks, [(0, 4), (1, 4), (2, 4), (3, 4)]);
/// ```
pub struct World {
    collective: RefCell<Box<dyn Collective>>,
    /// How long a call waits for other ranks; `None` waits forever.
    deadline: Cell<Option<Duration>>,
    traffic: Cell<Traffic>,
}

/// Counters of what a rank has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// The number of collective calls.
    pub calls: u64,
    /// Bytes that this rank sent to other ranks, without bytes that it passed on inside a broadcast, and
    /// without the lengths and the padding that MPI needs.
    pub bytes: u64,
}

impl World {
    /// A world with a single rank.
    pub fn alone() -> World {
        World::of(Box::new(alone::Alone))
    }

    /// Runs `job` on `ranks` threads, each with a rayon pool of one thread, and returns the results in order
    /// of the ranks.
    ///
    /// If a rank ends while others wait for it, the calls of the others return [`WorldError::Ended`].
    ///
    /// # Panics
    /// If a rank panics (after all ranks have ended), if `ranks` is 0, or if the system cannot start the
    /// threads.
    pub fn threads<R: Send>(ranks: usize, job: impl Fn(&World) -> R + Sync) -> Vec<R> {
        threads::run(&TimeSource::machine(), ranks, job)
    }

    /// [`World::threads`] with deadlines that are measured by `time`.
    #[cfg(all(test, feature = "train"))]
    pub(crate) fn threads_by<R: Send>(
        time: &TimeSource,
        ranks: usize,
        job: impl Fn(&World) -> R + Sync,
    ) -> Vec<R> {
        threads::run(time, ranks, job)
    }

    /// The world of a process started by `mpirun`, `srun` or another MPI launcher; a single rank in any other
    /// process.
    ///
    /// Call it once per process, on the thread that trains or solves, and inside the rayon pool if there is
    /// one.
    ///
    /// # Errors
    /// If MPI cannot be initialized, was initialized before, or does not support processes with threads.
    #[cfg(feature = "mpi")]
    pub fn mpi() -> Result<World, WorldError> {
        Ok(World::of(Box::new(mpi::Mpi::new()?)))
    }

    pub(crate) fn of(collective: Box<dyn Collective>) -> World {
        World {
            collective: RefCell::new(collective),
            deadline: Cell::new(None),
            traffic: Cell::new(Traffic::default()),
        }
    }

    /// The index of this rank, from 0.
    pub fn rank(&self) -> usize {
        self.collective.borrow().rank()
    }

    /// The number of ranks.
    pub fn size(&self) -> usize {
        self.collective.borrow().size()
    }

    /// Whether this is rank 0, the only rank of a training run that writes files and reports progress.
    pub fn is_root(&self) -> bool {
        self.rank() == 0
    }

    /// The traffic that this rank has sent so far.
    pub fn traffic(&self) -> Traffic {
        self.traffic.get()
    }

    /// This rank's part of `n` items. Parts are contiguous, in order of the ranks, and differ in size by at
    /// most 1.
    pub fn part(&self, n: usize) -> Range<usize> {
        part(n, self.rank(), self.size())
    }

    /// Sets how long a call waits for other ranks before it returns [`WorldError::Silent`]; `None` waits
    /// forever. Under MPI, such a call does not return: it aborts the job.
    #[doc(alias = "timeout")]
    pub fn set_deadline(&self, deadline: Option<Duration>) {
        self.deadline.set(deadline);
    }

    /// Gathers the bytes of all ranks, in order of the ranks.
    ///
    /// # Errors
    /// Between threads: if a rank has ended, does not answer before the deadline, or makes a different call.
    /// Under MPI there are no errors: a silent rank aborts the job, see [`World::set_deadline`].
    pub fn all_gather(&self, mine: &[u8]) -> Result<Parts, WorldError> {
        self.all_gather_or(mine, &mut |_| {})
    }

    /// [`World::all_gather`] that calls `on_silent` before it gives up on ranks. Under MPI the job is then
    /// aborted.
    pub(crate) fn all_gather_or(&self, mine: &[u8], on_silent: OnSilent<'_>) -> Result<Parts, WorldError> {
        let mut all = Parts::default();
        let others = self.size() - 1;
        self.call(mine.len() * others, on_silent, |c, patience| c.all_gather(mine, &mut all, patience))?;
        Ok(all)
    }

    /// Sends part i of `mine` to rank i; returns the parts that the ranks sent to this rank.
    #[cfg(feature = "train")]
    pub(crate) fn all_to_all_or(&self, mine: &Parts, on_silent: OnSilent<'_>) -> Result<Parts, WorldError> {
        let mut all = Parts::default();
        let sent = mine.bytes().len() - mine.get(self.rank()).len();
        self.call(sent, on_silent, |c, patience| c.all_to_all(mine, &mut all, patience))?;
        Ok(all)
    }

    /// Replaces `bytes` by those of rank 0.
    ///
    /// # Errors
    /// As [`World::all_gather`].
    pub fn broadcast(&self, bytes: &mut Vec<u8>) -> Result<(), WorldError> {
        let sent = if self.is_root() { bytes.len() * (self.size() - 1) } else { 0 };
        self.call(sent, &mut |_| {}, |c, patience| c.broadcast(bytes, patience))
    }

    fn call(
        &self,
        sent: usize,
        on_silent: OnSilent<'_>,
        call: impl FnOnce(&mut dyn Collective, &mut WaitLimit<'_>) -> Result<(), WorldError>,
    ) -> Result<(), WorldError> {
        let Traffic { calls, bytes } = self.traffic.get();
        self.traffic.set(Traffic { calls: calls + 1, bytes: bytes + sent as u64 });
        let mut patience = WaitLimit { deadline: self.deadline.get(), on_silent };
        call(self.collective.borrow_mut().as_mut(), &mut patience)
    }
}

/// A callback that receives the error before a call gives up on silent ranks.
pub(crate) type OnSilent<'a> = &'a mut dyn FnMut(&WorldError);

/// Part `i` of `n` items that are cut into `of` contiguous parts.
pub(crate) fn part(n: usize, i: usize, of: usize) -> Range<usize> {
    let cut = |i: usize| (n as u128 * i as u128 / of as u128) as usize;
    cut(i)..cut(i + 1)
}
