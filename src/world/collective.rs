//! The transport between ranks.

use super::{OnSilent, WorldError};
use std::time::Duration;

/// Collective calls on bytes, with deadlines.
///
/// All ranks make the same calls in the same order. Each call blocks until its result is complete.
pub trait Collective {
    /// The index of this rank, from 0.
    fn rank(&self) -> usize;
    /// The number of ranks.
    fn size(&self) -> usize;
    /// The name of the machine that a rank runs on.
    fn host(&self, rank: usize) -> String;
    /// Gathers the bytes of every rank into `all`, in order of the ranks.
    ///
    /// # Errors
    /// If a rank has ended, does not answer in time, or makes a different call. Under MPI there are no
    /// errors: a silent rank aborts the job.
    fn all_gather(
        &mut self,
        mine: &[u8],
        all: &mut Parts,
        wait: &mut WaitLimit<'_>,
    ) -> Result<(), WorldError>;
    /// Sends part i of `mine` to rank i; `all` becomes the parts for this rank, in the order of their
    /// senders.
    ///
    /// # Errors
    /// As [`Collective::all_gather`].
    fn all_to_all(
        &mut self,
        mine: &Parts,
        all: &mut Parts,
        wait: &mut WaitLimit<'_>,
    ) -> Result<(), WorldError>;
    /// Replaces `bytes` by those of rank 0.
    ///
    /// # Errors
    /// As [`Collective::all_gather`].
    fn broadcast(&mut self, bytes: &mut Vec<u8>, wait: &mut WaitLimit<'_>) -> Result<(), WorldError>;
}

/// How long a call waits for other ranks, and what it calls before it gives up.
#[doc(alias = "timeout")]
pub struct WaitLimit<'a> {
    /// The longest wait for an answer; `None` waits forever. Under MPI, ranks other than 0 wait 1.5 times as
    /// long.
    pub deadline: Option<Duration>,
    /// Called with the error before the call gives up on silent ranks. Under MPI nothing runs after it: a
    /// pending call cannot be canceled, so the job is aborted.
    pub on_silent: OnSilent<'a>,
}

/// Byte strings, stored contiguously.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    bytes: Vec<u8>,
    /// The end of each part.
    ends: Vec<usize>,
}

impl Parts {
    /// Appends a part.
    pub fn push(&mut self, part: &[u8]) {
        self.bytes.extend_from_slice(part);
        self.ends.push(self.bytes.len());
    }

    /// The number of parts.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no parts.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Part i.
    ///
    /// # Panics
    /// If `i` is out of range.
    pub fn get(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.bytes[start..self.ends[i]]
    }

    /// All parts, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|i| self.get(i))
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Removes all parts. The memory stays allocated.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

impl<'a> FromIterator<&'a [u8]> for Parts {
    fn from_iter<I: IntoIterator<Item = &'a [u8]>>(parts: I) -> Parts {
        let mut all = Parts::default();
        parts.into_iter().for_each(|part| all.push(part));
        all
    }
}
