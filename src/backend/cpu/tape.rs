//! What a loop leaves behind for those that follow its steps: the schedule of accepted step times, and the
//! tape of kept states and of what steps leave beside them.
//!
//! Both live in the workspace of the plan that contains the loop and keep their capacity between
//! runs. It knows bytes and slots; which states are kept is the checkpoint rule's business.

use super::loop_report::LoopRun;
use super::memory::{Storage, aligned};
use crate::backend::checkpoint::Recorder;
use crate::graph::Held;
use std::ops::Range;
use std::ptr::null_mut;

/// Slots are allocated together up to this many bytes: a tape of small states is not a list of small
/// allocations, and one of large states grows one by one.
const CHUNK_BYTES: usize = 64 << 10;

/// The accepted step times of a search.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    /// One more than there are steps.
    pub step_times: Vec<f64>,
    /// Whether the last step time is the one that was aimed at.
    pub reached: bool,
    /// The rows of taps that trips hold.
    pub held: Held,
}

impl Schedule {
    /// Number of steps.
    pub fn count(&self) -> usize {
        self.step_times.len().saturating_sub(1)
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
    name: &'static str,
    state_bytes: usize,
    chunk: usize,
    chunks: Vec<Storage>,
    /// Where the slot found last lies: slots are asked for mostly one after the other.
    near: Range<usize>,
    at: *mut u8,
}

// SAFETY: the address is that of a chunk, which is owned.
unsafe impl Send for Slots {}

impl Slots {
    /// At most `num` slots for states of `state_bytes` bytes.
    pub fn new(state_bytes: usize, num: usize) -> Slots {
        Slots::in_chunks("kept states", state_bytes, in_a_chunk(CHUNK_BYTES, state_bytes, num))
    }

    fn in_chunks(name: &'static str, state_bytes: usize, chunk: usize) -> Slots {
        Slots { name, state_bytes, chunk, chunks: Vec::new(), near: 0..0, at: null_mut() }
    }

    /// Where slot `i` starts.
    #[inline]
    pub fn at(&mut self, i: usize) -> *mut u8 {
        if !self.near.contains(&i) {
            self.find(i);
        }
        // SAFETY: the slot lies within its chunk.
        unsafe { self.at.add((i - self.near.start) * self.state_bytes) }
    }

    #[cold]
    fn find(&mut self, i: usize) {
        let chunk = i / self.chunk;
        while self.chunks.len() <= chunk {
            self.chunks.push(Storage::new(self.name, self.chunk * self.state_bytes));
        }
        (self.near, self.at) = (chunk * self.chunk..(chunk + 1) * self.chunk, self.chunks[chunk].ptr());
    }

    /// Slots that are allocated.
    fn len(&self) -> usize {
        self.chunks.len() * self.chunk
    }

    fn bytes(&self) -> usize {
        self.len() * self.state_bytes
    }

    /// Gives the last chunk back.
    fn shrink(&mut self) {
        self.chunks.pop();
        self.near = 0..0;
    }
}

/// Slots of so many bytes that are allocated together, of at most `num`.
fn in_a_chunk(chunk_bytes: usize, bytes: usize, num: usize) -> usize {
    (chunk_bytes / bytes.max(1)).clamp(1, num.max(1))
}

/// What a tape is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TapeShape {
    pub state_bytes: usize,
    /// The most states.
    pub num: usize,
    /// Bytes of what a step leaves beside its state; 0 if it leaves nothing.
    pub residual_bytes: usize,
    /// What states and residuals may take together.
    pub budget: usize,
    /// Places for residuals ahead of those of the first step: one if trips take something of the trip before.
    pub lead: usize,
}

impl TapeShape {
    /// Slots that are allocated together, of states and of residuals.
    fn chunks(&self) -> [usize; 2] {
        // Two kinds of chunks fill a budget to a part of one.
        let chunk = if self.residual_bytes == 0 { CHUNK_BYTES } else { CHUNK_BYTES.min(self.budget / 16) };
        [in_a_chunk(chunk, self.state_bytes, self.num), in_a_chunk(chunk, self.residual_bytes, usize::MAX)]
    }

    /// Of how many of `steps` steps the residuals are kept.
    pub fn with_residuals(&self, steps: usize) -> usize {
        let [states, residuals] = self.chunks();
        if self.residual_bytes == 0 {
            return 0;
        }
        let taken = self.num.min(steps).next_multiple_of(states) * self.state_bytes;
        let left = self.budget.saturating_sub(taken) / (residuals * self.residual_bytes);
        left.saturating_mul(residuals).saturating_sub(self.lead).min(steps)
    }
}

/// The kept states of one forward pass, and the residuals of its first steps.
#[derive(Debug)]
pub(crate) struct Tape {
    pub recorder: Recorder,
    pub slots: Slots,
    residuals: Slots,
    /// The steps from the first on whose residuals lie there, behind `lead` places.
    num_residuals: usize,
    lead: usize,
    /// Whether residuals of this pass are kept at all.
    is_open: bool,
    budget: usize,
    /// What was kept since the plan began to run.
    pub run: LoopRun,
}

impl Tape {
    pub fn new(shape: TapeShape) -> Tape {
        let TapeShape { state_bytes, num, residual_bytes, budget, lead } = shape;
        let [states, residuals] = shape.chunks();
        Tape {
            recorder: Recorder::new(num, None),
            slots: Slots::in_chunks("kept states", state_bytes, states),
            residuals: Slots::in_chunks("kept stages", residual_bytes, residuals),
            num_residuals: 0,
            lead,
            is_open: false,
            budget,
            run: LoopRun::default(),
        }
    }

    /// Starts a forward pass, of so many steps if that is known.
    pub fn start(&mut self, expected: Option<usize>) {
        self.recorder.reset(expected);
        self.num_residuals = 0;
        self.is_open = self.lead == 0;
    }

    /// Where goes what the first step takes of the one before, if there is room for residuals.
    pub fn lead(&mut self) -> Option<*mut u8> {
        (self.residuals.len() > 0 || self.fits_one_more()).then(|| self.residuals.at(0))
    }

    /// Notes that the first step's place has been filled.
    pub fn open(&mut self) {
        self.is_open = true;
    }

    /// Where the residuals of step `n` go, if they are kept: those of the first steps are, as many as fit beside the
    /// states.
    #[inline]
    pub fn residuals_of_next(&mut self, n: usize) -> Option<*mut u8> {
        let (is_next, place) = (self.is_open && n == self.num_residuals, n + self.lead);
        let is_there = is_next && (place < self.residuals.len() || self.fits_one_more());
        is_there.then(|| self.residuals.at(place))
    }

    #[cold]
    fn fits_one_more(&self) -> bool {
        let more = self.residuals.chunk * self.residuals.state_bytes;
        self.slots.bytes() + self.residuals.bytes() + more <= self.budget
    }

    /// Notes that step `n` was accepted and has left its residuals where [`Tape::residuals_of_next`] said.
    #[inline]
    pub fn keep_residuals(&mut self, n: usize) {
        self.num_residuals = n + 1;
    }

    /// Makes room for a state that has been kept: states come first, and what they have taken the residuals of the last
    /// steps give back.
    #[inline]
    pub fn make_room(&mut self) {
        while self.residuals.len() > 0 && self.slots.bytes() + self.residuals.bytes() > self.budget {
            self.residuals.shrink();
            self.num_residuals = self.num_residuals.min(self.residuals.len().saturating_sub(self.lead));
        }
    }

    /// Where lies what the trip before step `n` and what its own trip have left, if it was kept; the same place where
    /// trips take nothing of the one before.
    #[inline]
    pub fn residuals(&mut self, n: usize) -> Option<[*mut u8; 2]> {
        (n < self.num_residuals).then(|| [self.residuals.at(n), self.residuals.at(n + self.lead)])
    }

    /// Notes a forward pass of so many steps.
    pub fn note(&mut self, steps: usize) {
        self.run.runs += 1;
        self.run.steps = self.run.steps.max(steps);
        self.run.kept = self.run.kept.max(self.recorder.kept().len());
    }
}
