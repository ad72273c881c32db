//! What a loop leaves behind for those that follow its steps: the schedule of accepted knots, and the
//! tape of kept states.
//!
//! Both live in the workspace of the plan that contains the loop and keep their capacity between
//! runs. It knows bytes and slots; which states are kept is the checkpoint rule's business.

use super::loop_report::LoopRun;
use super::memory::{Storage, aligned};
use crate::backend::checkpoint::Recorder;
use crate::graph::Held;

/// Slots are allocated together up to this many bytes: a tape of small states is not a list of small
/// allocations, and one of large states grows one by one.
const CHUNK_BYTES: usize = 64 << 10;

/// The accepted knots of a search.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    /// One more than there are steps.
    pub knots: Vec<f64>,
    /// Whether the last knot is the one that was aimed at.
    pub reached: bool,
    /// The rows of taps that trips hold.
    pub held: Held,
}

impl Schedule {
    /// Number of steps.
    pub fn count(&self) -> usize {
        self.knots.len().saturating_sub(1)
    }
}

/// The parts of a carried state and where they lie in a slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    /// Offset and length in bytes of each part.
    pub parts: Box<[(usize, usize)]>,
    /// Bytes of a state.
    pub bytes: usize,
}

impl Layout {
    /// Parts of the given lengths in bytes, one after the other.
    pub fn of(lengths: impl Iterator<Item = usize>) -> Layout {
        let mut bytes = 0;
        let mut parts = Vec::new();
        for len in lengths {
            parts.push((bytes, len));
            bytes += aligned(len);
        }
        Layout { parts: parts.into(), bytes }
    }
}

/// Slots for states, allocated when first used and kept.
#[derive(Debug)]
pub(crate) struct Slots {
    state_bytes: usize,
    chunk: usize,
    chunks: Vec<Storage>,
}

impl Slots {
    /// At most `num` slots for states of `state_bytes` bytes.
    pub fn new(state_bytes: usize, num: usize) -> Slots {
        let chunk = (CHUNK_BYTES / state_bytes.max(1)).clamp(1, num.max(1));
        Slots { state_bytes, chunk, chunks: Vec::new() }
    }

    /// Where slot `i` starts.
    pub fn at(&mut self, i: usize) -> *mut u8 {
        while self.chunks.len() <= i / self.chunk {
            self.chunks.push(Storage::new("kept states", self.chunk * self.state_bytes));
        }
        // SAFETY: the slot lies within its chunk.
        unsafe { self.chunks[i / self.chunk].ptr().add(i % self.chunk * self.state_bytes) }
    }
}

/// The kept states of one forward pass.
#[derive(Debug)]
pub(crate) struct Tape {
    pub recorder: Recorder,
    pub slots: Slots,
    /// What was kept since the plan began to run.
    pub run: LoopRun,
}

impl Tape {
    /// A tape of at most `num` states of `state_bytes` bytes.
    pub fn new(state_bytes: usize, num: usize) -> Tape {
        Tape {
            recorder: Recorder::new(num, None),
            slots: Slots::new(state_bytes, num),
            run: LoopRun::default(),
        }
    }

    /// Notes a forward pass of so many steps.
    pub fn note(&mut self, steps: usize) {
        self.run.runs += 1;
        self.run.steps = self.run.steps.max(steps);
        self.run.kept = self.run.kept.max(self.recorder.kept().len());
    }
}
