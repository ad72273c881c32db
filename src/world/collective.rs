//! What carries bytes between ranks.

use super::{OnSilent, WorldError};
use std::time::Duration;

/// Collective calls of bytes, with deadlines.
///
/// All ranks make the same calls in the same order; each call blocks until it has what it returns.
pub trait Collective {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;
    /// How many ranks there are.
    fn size(&self) -> usize;
    /// The name of the machine that a rank runs on.
    fn host(&self, rank: usize) -> String;
    /// `all` becomes the bytes of every rank, in order.
    ///
    /// # Errors
    /// Ranks that have ended, are silent, or make another call.
    fn all_gather(&mut self, mine: &[u8], all: &mut Parts, wait: &mut Patience<'_>)
    -> Result<(), WorldError>;
    /// Part i of `mine` goes to rank i; `all` becomes the parts for this rank, in order of the ranks that they come from.
    ///
    /// # Errors
    /// As [`Collective::all_gather`].
    fn all_to_all(
        &mut self,
        mine: &Parts,
        all: &mut Parts,
        wait: &mut Patience<'_>,
    ) -> Result<(), WorldError>;
    /// `bytes` becomes that of rank 0.
    ///
    /// # Errors
    /// As [`Collective::all_gather`].
    fn broadcast(&mut self, bytes: &mut Vec<u8>, wait: &mut Patience<'_>) -> Result<(), WorldError>;
}

/// How long a call waits, and who is notified before it gives up.
pub struct Patience<'a> {
    /// The longest wait; forever where none.
    pub deadline: Option<Duration>,
    /// Sees the error before the call gives up. Under MPI it is the last that runs: a pending call cannot be taken back,
    /// so the job is aborted.
    pub on_silent: OnSilent<'a>,
}

/// Byte strings, one behind the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Parts {
    /// Puts a part behind the others.
    pub fn push(&mut self, part: &[u8]) {
        self.bytes.extend_from_slice(part);
        self.ends.push(self.bytes.len());
    }

    /// How many parts there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Part i.
    ///
    /// # Panics
    /// When there is none.
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

    /// No parts; the room is kept.
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
