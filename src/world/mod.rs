//! Ranks: threads or processes that work on one job together, and the bytes that they exchange.
//!
//! A [`World`] is one rank's view of all of them. What carries the bytes is a [`Collective`]: nothing for a rank alone,
//! memory for ranks that are threads, MPI for ranks that are processes. Everything else stands above it and is written
//! once: agreement on errors, comparison of what all ranks must have in common, and [sums](sum) in an order that depends
//! on the number of parts and never on the number of ranks. So almost every test runs on threads.
//!
//! All ranks make the same calls in the same order. This layer knows no model, no data and no file.

mod agree;
mod alone;
mod collective;
mod error;
#[cfg(feature = "mpi")]
mod mpi;
pub(crate) mod sum;
#[cfg(test)]
mod tests;
mod threads;
mod tree;

pub use collective::{Collective, Parts, Patience};
pub use error::WorldError;

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::time::Duration;

/// One rank's view of all ranks of a job.
///
/// # Examples
/// Each of four threads has a pool of its own, and knows its number:
/// ```
/// use flowline::world::World;
/// let ranks = World::threads(4, |world| (world.rank(), world.size()));
/// assert_eq!(ranks, [(0, 4), (1, 4), (2, 4), (3, 4)]);
/// ```
pub struct World {
    collective: RefCell<Box<dyn Collective>>,
    /// How long a call waits for other ranks; forever where none.
    deadline: Cell<Option<Duration>>,
    traffic: Cell<Traffic>,
}

/// What a rank has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Collective calls.
    pub calls: u64,
    /// Bytes for other ranks, as a rank writes them: how often a broadcast is repeated on its way is not counted.
    pub bytes: u64,
}

impl World {
    /// One rank without others.
    pub fn alone() -> World {
        World::of(Box::new(alone::Alone))
    }

    /// Runs `job` on `ranks` threads, each with a rayon pool of one thread, and returns what each rank returns, in order.
    ///
    /// A rank that ends while others wait for it makes their calls return [`WorldError::Ended`].
    ///
    /// # Panics
    /// When a rank panics, after all have ended; when `ranks` is 0 or the system has no room for their threads.
    pub fn threads<R: Send>(ranks: usize, job: impl Fn(&World) -> R + Sync) -> Vec<R> {
        threads::run(ranks, job)
    }

    /// The world of a process that `mpirun`, `srun` or another MPI launcher started; a rank alone in any other process.
    ///
    /// Call it once per process, on the thread that trains or solves, inside of the rayon pool if there is one.
    ///
    /// # Errors
    /// MPI cannot be initialized, or was initialized before.
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

    /// The number of this rank, from 0.
    pub fn rank(&self) -> usize {
        self.collective.borrow().rank()
    }

    /// How many ranks there are.
    pub fn size(&self) -> usize {
        self.collective.borrow().size()
    }

    /// Whether this rank is 0, which has the files and the terminal.
    pub fn is_root(&self) -> bool {
        self.rank() == 0
    }

    /// What this rank has sent so far.
    pub fn traffic(&self) -> Traffic {
        self.traffic.get()
    }

    /// This rank's part of `n` things: contiguous, in order of the ranks, sizes differ by at most 1.
    pub fn part(&self, n: usize) -> Range<usize> {
        part(n, self.rank(), self.size())
    }

    /// How long a call waits for other ranks before it returns [`WorldError::Silent`]; forever where none.
    pub fn set_deadline(&self, deadline: Option<Duration>) {
        self.deadline.set(deadline);
    }

    /// The bytes of all ranks.
    ///
    /// # Errors
    /// A rank that has ended, is silent for longer than the deadline, or makes another call.
    pub fn all_gather(&self, mine: &[u8]) -> Result<Parts, WorldError> {
        self.all_gather_or(mine, &mut |_| {})
    }

    /// [`World::all_gather`] that calls `on_silent` before it gives ranks up. Under MPI the job is aborted behind it.
    pub(crate) fn all_gather_or(&self, mine: &[u8], on_silent: OnSilent<'_>) -> Result<Parts, WorldError> {
        let mut all = Parts::default();
        let others = self.size() - 1;
        self.call(mine.len() * others, on_silent, |c, patience| c.all_gather(mine, &mut all, patience))?;
        Ok(all)
    }

    /// Part i of `mine` goes to rank i; the answer has the part for this rank from each.
    pub(crate) fn all_to_all_or(&self, mine: &Parts, on_silent: OnSilent<'_>) -> Result<Parts, WorldError> {
        let mut all = Parts::default();
        let sent = mine.bytes().len() - mine.get(self.rank()).len();
        self.call(sent, on_silent, |c, patience| c.all_to_all(mine, &mut all, patience))?;
        Ok(all)
    }

    /// The bytes of rank 0, in place of what `bytes` holds.
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
        call: impl FnOnce(&mut dyn Collective, &mut Patience<'_>) -> Result<(), WorldError>,
    ) -> Result<(), WorldError> {
        let Traffic { calls, bytes } = self.traffic.get();
        self.traffic.set(Traffic { calls: calls + 1, bytes: bytes + sent as u64 });
        let mut patience = Patience { deadline: self.deadline.get(), on_silent };
        call(self.collective.borrow_mut().as_mut(), &mut patience)
    }
}

/// Sees the error before ranks that are silent are given up.
pub(crate) type OnSilent<'a> = &'a mut dyn FnMut(&WorldError);

/// Part `i` of `n` things in `of` contiguous parts.
pub(crate) fn part(n: usize, i: usize, of: usize) -> Range<usize> {
    let cut = |i: usize| (n as u128 * i as u128 / of as u128) as usize;
    cut(i)..cut(i + 1)
}
