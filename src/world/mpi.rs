//! Ranks as processes, over MPI.
//!
//! Calls are non-blocking collectives that are polled, so that a silent rank is detected at the deadline. A
//! pending call cannot be canceled: after the deadline, rank 0 (or another rank, if rank 0 is silent) reports
//! the silent ranks and aborts the job.
//! Lengths may differ between ranks, so they are sent first. Then all ranks send blocks of the maximum
//! length (in a broadcast, rank 0 sends its bytes). If this length is 0, nothing more is sent.

use super::{Collective, Parts, WaitLimit, WorldError};
use crate::time_source::TimeSource;
use mpi::environment::{Threading, Universe, initialize_with_threading, processor_name};
use mpi::request::{Request, Scope, scope};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Root, Source};
use std::time::Duration;

/// The tag of the message by which a waiting rank reports to rank 0 that it is alive.
const WAITING: i32 = 0x666c;
/// Bytes of the buffer for such reports.
const REPORTS: usize = 1 << 16;
/// A call is polled without pauses for this long.
const BUSY: Duration = Duration::from_millis(2);
/// After that, the pauses between two polls grow up to this one.
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// A process of an MPI job.
pub(super) struct Mpi {
    world: SimpleCommunicator,
    hosts: Vec<String>,
    /// Finalizes MPI when it is dropped.
    _universe: Universe,
}

impl Mpi {
    pub(super) fn new() -> Result<Mpi, WorldError> {
        let unusable = |reason: &str| WorldError::Mpi { reason: reason.to_owned() };
        let (mut universe, threading) = initialize_with_threading(Threading::Funneled)
            .ok_or_else(|| unusable("this process has initialized it before: call `World::mpi` only once"))?;
        if threading < Threading::Funneled {
            return Err(unusable(
                "it does not support processes with threads (MPI_THREAD_FUNNELED): use another MPI library",
            ));
        }
        universe.set_buffer_size(REPORTS);
        let world = universe.world();
        let host = processor_name().unwrap_or_else(|_| "unknown machine".to_owned());
        let mut mpi = Mpi { world, hosts: Vec::new(), _universe: universe };
        let mut hosts = Parts::default();
        let mut wait = WaitLimit { deadline: None, on_silent: &mut |_| {} };
        mpi.all_gather(host.as_bytes(), &mut hosts, &mut wait)?;
        mpi.hosts = hosts.iter().map(|host| String::from_utf8_lossy(host).into_owned()).collect();
        Ok(mpi)
    }

    /// Waits until a call is complete. Aborts the job after the deadline.
    fn complete<'a, D: ?Sized, S: Scope<'a>>(&self, mut call: Request<'a, D, S>, wait: &mut WaitLimit<'_>) {
        let (time, mut pause, mut turns) = (TimeSource::machine(), Duration::from_micros(5), 0);
        loop {
            call = match call.test() {
                Ok(_) => return,
                Err(pending) => pending,
            };
            let waited = Duration::from_secs_f64(time.now_s());
            if let Some(deadline) = wait.deadline {
                // From half the deadline on, waiting ranks report to rank 0 at each quarter of the deadline.
                // After its first quarter, rank 0 discards older reports, because they may belong to an
                // earlier call. A rank may wait in another call than rank 0, because a call can be complete
                // on some ranks only. Rank 0 gives up first, because it can save the run and name the silent
                // ranks.
                if waited > deadline / 4 * (turns + 1) {
                    turns += 1;
                    if self.rank() == 0 && turns == 1 {
                        self.waiting();
                    } else if self.rank() != 0 && turns > 1 {
                        let report = [self.rank() as u64];
                        self.world.process_at_rank(0).buffered_send_with_tag(&report, WAITING);
                    }
                }
                if waited > deadline && self.rank() == 0 || waited > deadline.mul_f64(1.5) {
                    self.give_up(deadline, wait);
                }
            }
            if waited > BUSY {
                std::thread::sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            } else {
                std::thread::yield_now();
            }
        }
    }

    /// Finds the silent ranks, calls `on_silent`, and aborts the job.
    fn give_up(&self, deadline: Duration, wait: &mut WaitLimit<'_>) -> ! {
        let mut silent: Vec<bool> = (0..self.size()).map(|rank| rank != self.rank()).collect();
        if self.rank() == 0 {
            for rank in self.waiting() {
                silent[rank] = false;
            }
        } else {
            // Only rank 0 can be silent: if it were waiting, it would have given up earlier.
            silent = (0..self.size()).map(|rank| rank == 0).collect();
        }
        let ranks = silent.iter().enumerate().filter(|(_, silent)| **silent);
        let ranks = ranks.map(|(rank, _)| (rank, self.host(rank))).collect();
        let error = WorldError::Silent { ranks, seconds: deadline.as_secs() };
        (wait.on_silent)(&error);
        self.world.abort(1)
    }

    /// Receives the reports that have arrived at this rank, and returns the ranks that sent them.
    fn waiting(&self) -> Vec<usize> {
        let mut ranks = Vec::new();
        while let Some(status) = self.world.any_process().immediate_probe_with_tag(WAITING) {
            let from = status.source_rank();
            self.world.process_at_rank(from).receive_vec_with_tag::<u64>(WAITING);
            ranks.push(from as usize);
        }
        ranks
    }

    /// Gathers blocks of equal length from all ranks.
    fn gather_equal(&self, mine: &[u8], wait: &mut WaitLimit<'_>) -> Vec<u8> {
        let mut all = vec![0; mine.len() * self.size()];
        scope(|scope| self.complete(self.world.immediate_all_gather_into(scope, mine, &mut all[..]), wait));
        all
    }

    /// Gathers the lengths of all ranks.
    fn lengths(&self, mine: &[usize], wait: &mut WaitLimit<'_>) -> Vec<usize> {
        let mine: Vec<u8> = mine.iter().flat_map(|&n| (n as u64).to_le_bytes()).collect();
        let number = |x: &[u8]| x.iter().rev().fold(0, |sum, &byte| sum << 8 | usize::from(byte));
        self.gather_equal(&mine, wait).chunks_exact(8).map(number).collect()
    }
}

impl Drop for Mpi {
    /// Aborts the job if the rank panics, because finalizing MPI would wait for the other ranks.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.world.abort(1);
        }
    }
}

impl Collective for Mpi {
    fn rank(&self) -> usize {
        self.world.rank() as usize
    }
    fn size(&self) -> usize {
        self.world.size() as usize
    }
    fn host(&self, rank: usize) -> String {
        self.hosts[rank].clone()
    }
    fn all_gather(
        &mut self,
        mine: &[u8],
        all: &mut Parts,
        wait: &mut WaitLimit<'_>,
    ) -> Result<(), WorldError> {
        let lengths = self.lengths(&[mine.len()], wait);
        let block = lengths.iter().copied().max().unwrap_or(0);
        all.clear();
        if block == 0 {
            lengths.iter().for_each(|_| all.push(&[]));
            return Ok(());
        }
        let mut padded = mine.to_vec();
        padded.resize(block, 0);
        let found = self.gather_equal(&padded, wait);
        found.chunks_exact(block).zip(&lengths).for_each(|(bytes, &n)| all.push(&bytes[..n]));
        Ok(())
    }
    fn all_to_all(
        &mut self,
        mine: &Parts,
        all: &mut Parts,
        wait: &mut WaitLimit<'_>,
    ) -> Result<(), WorldError> {
        let (size, rank) = (self.size(), self.rank());
        let lengths = self.lengths(&mine.iter().map(<[u8]>::len).collect::<Vec<_>>(), wait);
        let block = lengths.iter().copied().max().unwrap_or(0);
        all.clear();
        if block == 0 {
            (0..size).for_each(|_| all.push(&[]));
            return Ok(());
        }
        let mut padded = vec![0; block * size];
        for (room, part) in padded.chunks_exact_mut(block).zip(mine.iter()) {
            room[..part.len()].copy_from_slice(part);
        }
        let mut found = vec![0; block * size];
        scope(|scope| {
            self.complete(self.world.immediate_all_to_all_into(scope, &padded[..], &mut found[..]), wait);
        });
        for (from, bytes) in found.chunks_exact(block).enumerate() {
            all.push(&bytes[..lengths[from * size + rank]]);
        }
        Ok(())
    }
    fn broadcast(&mut self, bytes: &mut Vec<u8>, wait: &mut WaitLimit<'_>) -> Result<(), WorldError> {
        let root = self.world.process_at_rank(0);
        let mut len = [bytes.len() as u64];
        scope(|scope| self.complete(root.immediate_broadcast_into(scope, &mut len[..]), wait));
        bytes.resize(len[0] as usize, 0);
        if !bytes.is_empty() {
            scope(|scope| self.complete(root.immediate_broadcast_into(scope, &mut bytes[..]), wait));
        }
        Ok(())
    }
}
