//! Ranks as threads of one process.
//!
//! Each call has a `Round` in shared memory. A rank stores the bytes that it sends, waits until the bytes
//! that it needs are stored, and copies them. The last rank removes the round. A rank sleeps while it waits.

use super::{Collective, Parts, WaitLimit, World, WorldError};
use crate::time_source::TimeSource;
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The host of ranks that share a process.
pub(super) const HERE: &str = "this process";

/// Runs a job on each of `ranks` threads, whose deadlines are measured by `time`.
pub(super) fn run<R: Send>(time: &TimeSource, ranks: usize, job: impl Fn(&World) -> R + Sync) -> Vec<R> {
    assert!(ranks > 0, "`World::threads`: ranks=0, must be at least 1");
    let hub = Hub { time: time.clone(), size: ranks, rounds: Mutex::default(), news: Condvar::new() };
    let hub = Arc::new(hub);
    let (hub, job) = (&hub, &job);
    std::thread::scope(|scope| {
        let start = |rank| {
            scope.spawn(move || {
                let _ended = Ended { hub, rank };
                let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
                let pool = pool.expect("cannot start a thread for a rank's pool");
                let seat = || Seat { hub: hub.clone(), rank, round: 0 };
                pool.install(|| job(&World::of(Box::new(seat()))))
            })
        };
        let ranks: Vec<_> = (0..ranks).map(start).collect();
        ranks
            .into_iter()
            .map(|rank| rank.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// The state that all threads share.
struct Hub {
    time: TimeSource,
    size: usize,
    rounds: Mutex<Rounds>,
    news: Condvar,
}

#[derive(Default)]
struct Rounds {
    open: HashMap<u64, Round>,
    ended: Vec<usize>,
}

/// The state of a collective call.
struct Round {
    call: &'static str,
    /// The parts that each rank has sent so far.
    sent: Vec<Option<Arc<Parts>>>,
    /// The number of ranks that have received their bytes.
    done: usize,
}

impl Hub {
    fn lock(&self) -> MutexGuard<'_, Rounds> {
        self.rounds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Marks a rank as ended when dropped, even by a panic.
struct Ended<'a> {
    hub: &'a Hub,
    rank: usize,
}

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.hub.lock().ended.push(self.rank);
        self.hub.news.notify_all();
    }
}

/// A rank's connection to the hub.
struct Seat {
    hub: Arc<Hub>,
    rank: usize,
    round: u64,
}

impl Seat {
    /// Sends `mine`, and waits for the parts that the ranks in `from` send.
    fn exchange(
        &mut self,
        call: &'static str,
        mine: Parts,
        from: std::ops::Range<usize>,
        wait: &mut WaitLimit<'_>,
    ) -> Result<Vec<Arc<Parts>>, WorldError> {
        let (hub, round) = (self.hub.clone(), self.round);
        self.round += 1;
        let mut rounds = hub.lock();
        let board =
            rounds.open.entry(round).or_insert_with(|| Round { call, sent: vec![None; hub.size], done: 0 });
        if board.call != call {
            let rank = board.sent.iter().position(Option::is_some).unwrap_or(0);
            return Err(WorldError::OtherCall {
                rank,
                host: HERE.to_owned(),
                theirs: board.call,
                ours: call,
            });
        }
        board.sent[self.rank] = Some(Arc::new(mine));
        hub.news.notify_all();
        let since_s = hub.time.now_s();
        loop {
            let board = &rounds.open[&round];
            let silent: Vec<usize> = from.clone().filter(|&rank| board.sent[rank].is_none()).collect();
            if silent.is_empty() {
                break;
            }
            if let Some(&rank) = silent.iter().find(|rank| rounds.ended.contains(rank)) {
                return Err(WorldError::Ended { rank, host: HERE.to_owned() });
            }
            let left_s = wait.deadline.map(|deadline| deadline.as_secs_f64() - (hub.time.now_s() - since_s));
            if left_s.is_some_and(|left_s| left_s <= 0.0) {
                drop(rounds);
                let ranks = silent.into_iter().map(|rank| (rank, HERE.to_owned())).collect();
                let error = WorldError::Silent { ranks, seconds: wait.deadline.map_or(0, |d| d.as_secs()) };
                (wait.on_silent)(&error);
                return Err(error);
            }
            rounds = match left_s {
                None => hub.news.wait(rounds).unwrap_or_else(PoisonError::into_inner),
                Some(left_s) => hub.time.wait(&hub.news, rounds, left_s),
            };
        }
        let board = rounds.open.get_mut(&round).expect("invariant: a round is open until all ranks are done");
        let found = board.sent[from].iter().flatten().cloned().collect();
        board.done += 1;
        if board.done == hub.size {
            rounds.open.remove(&round);
        }
        Ok(found)
    }
}

impl Collective for Seat {
    fn rank(&self) -> usize {
        self.rank
    }
    fn size(&self) -> usize {
        self.hub.size
    }
    fn host(&self, _rank: usize) -> String {
        HERE.to_owned()
    }
    fn all_gather(
        &mut self,
        mine: &[u8],
        all: &mut Parts,
        wait: &mut WaitLimit<'_>,
    ) -> Result<(), WorldError> {
        let found = self.exchange("all_gather", Parts::from_iter([mine]), 0..self.hub.size, wait)?;
        *all = found.iter().map(|parts| parts.get(0)).collect();
        Ok(())
    }
    fn all_to_all(
        &mut self,
        mine: &Parts,
        all: &mut Parts,
        wait: &mut WaitLimit<'_>,
    ) -> Result<(), WorldError> {
        let found = self.exchange("all_to_all", mine.clone(), 0..self.hub.size, wait)?;
        *all = found.iter().map(|parts| parts.get(self.rank)).collect();
        Ok(())
    }
    fn broadcast(&mut self, bytes: &mut Vec<u8>, wait: &mut WaitLimit<'_>) -> Result<(), WorldError> {
        let mine = if self.rank == 0 { Parts::from_iter([&bytes[..]]) } else { Parts::default() };
        let found = self.exchange("broadcast", mine, 0..1, wait)?;
        if self.rank != 0 {
            bytes.clear();
            bytes.extend_from_slice(found[0].get(0));
        }
        Ok(())
    }
}
