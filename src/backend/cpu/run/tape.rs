//! The results of a loop that later passes read: the schedule of accepted step times, and the tape of stored
//! states and residuals.
//!
//! Both are in the workspace of the plan that contains the loop and keep their capacity between runs. The
//! checkpoint rule decides which states are stored.

use crate::backend::LoopRun;
use crate::backend::checkpoint::tape_shape::slots_per_chunk;
use crate::backend::checkpoint::{Recorder, TapeShape};
use crate::backend::cpu::address::Bound;
use crate::backend::cpu::memory::{Storage, aligned};
use crate::graph::TapRows;
use std::ops::Range;
use std::ptr::null_mut;

/// The accepted step times of a search.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    /// One more than the number of steps.
    pub step_times: Vec<f64>,
    /// Whether the last step time equals the end time of the search exactly.
    pub reached: bool,
    /// The tapped rows that trips hold.
    pub held: TapRows,
}

impl Schedule {
    /// Number of steps.
    pub fn count(&self) -> usize {
        self.step_times.len().saturating_sub(1)
    }
}

/// The parts of a carried state and their offsets in a slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlotLayout {
    /// Offset and length in bytes of each part.
    pub parts: Box<[(usize, usize)]>,
    /// Bytes of a state.
    pub bytes: usize,
}

impl SlotLayout {
    /// Contiguous parts with the given lengths in bytes.
    pub fn of(lengths: impl Iterator<Item = usize>) -> SlotLayout {
        let mut bytes = 0;
        let mut parts = Vec::new();
        for len in lengths {
            parts.push((bytes, len));
            bytes += aligned(len);
        }
        SlotLayout { parts: parts.into(), bytes }
    }

    /// Part `k` of a slot.
    #[inline]
    pub fn part(&self, slot: Bound, k: usize) -> Bound {
        let (offset, bytes) = self.parts[k];
        slot.part(offset, bytes)
    }
}

/// Slots of equal size, for states, residuals or the values of a sequence. They are allocated on first use
/// and stay allocated between runs.
#[derive(Debug)]
pub(crate) struct Slots {
    name: &'static str,
    state_bytes: usize,
    chunk: usize,
    chunks: Vec<Storage>,
    /// The slots of the chunk that was accessed last; accesses are mostly sequential.
    near: Range<usize>,
    at: *mut u8,
}

// SAFETY: the address points into a chunk, which this value owns.
unsafe impl Send for Slots {}

impl Slots {
    /// At most `num` slots of `state_bytes` bytes.
    pub fn new(state_bytes: usize, num: usize) -> Slots {
        Slots::in_chunks("stored states", state_bytes, slots_per_chunk(state_bytes, num))
    }

    fn in_chunks(name: &'static str, state_bytes: usize, chunk: usize) -> Slots {
        Slots { name, state_bytes, chunk, chunks: Vec::new(), near: 0..0, at: null_mut() }
    }

    /// Slot `i`.
    #[inline]
    pub fn at(&mut self, i: usize) -> Bound {
        if !self.near.contains(&i) {
            self.find(i);
        }
        let at = self.at.wrapping_add((i - self.near.start) * self.state_bytes);
        // SAFETY: the slot lies within the chunk whose slots are `near`. A chunk stays in place until `shrink`
        // drops it, and loops bind slots anew for each trip.
        unsafe { Bound::new(at, self.state_bytes) }
    }

    #[cold]
    fn find(&mut self, i: usize) {
        let chunk = i / self.chunk;
        while self.chunks.len() <= chunk {
            self.chunks.push(Storage::new(self.name, self.chunk * self.state_bytes));
        }
        (self.near, self.at) = (chunk * self.chunk..(chunk + 1) * self.chunk, self.chunks[chunk].ptr());
    }

    /// Number of allocated slots.
    fn len(&self) -> usize {
        self.chunks.len() * self.chunk
    }

    fn bytes(&self) -> usize {
        self.len() * self.state_bytes
    }

    /// Frees the last chunk.
    fn shrink(&mut self) {
        self.chunks.pop();
        self.near = 0..0;
    }
}

/// The stored states of one forward pass, and the residuals of its first steps.
#[derive(Debug)]
pub(crate) struct Tape {
    pub recorder: Recorder,
    pub slots: Slots,
    residuals: Slots,
    /// The residuals of this many steps, from the first step on, are stored, after `lead` positions.
    num_residuals: usize,
    lead: usize,
    budget: usize,
    /// Result of the current run of the plan.
    pub run: LoopRun,
}

impl Tape {
    pub fn new(shape: TapeShape) -> Tape {
        let TapeShape { state_bytes, num, residual_bytes, budget, lead } = shape;
        let [states, residuals] = shape.chunks();
        Tape {
            recorder: Recorder::new(num, None),
            slots: Slots::in_chunks("stored states", state_bytes, states),
            residuals: Slots::in_chunks("stored residuals", residual_bytes, residuals),
            num_residuals: 0,
            lead,
            budget,
            run: LoopRun::default(),
        }
    }

    /// Starts a forward pass, with the expected number of steps if it is known.
    pub fn start(&mut self, expected: Option<usize>) {
        self.recorder.reset(expected);
        self.num_residuals = 0;
    }

    /// The slot for residuals that the first step reads from a previous one, if there is room for residuals.
    pub fn lead(&mut self) -> Option<Bound> {
        (self.residuals.len() > 0 || self.fits_one_more()).then(|| self.residuals.at(0))
    }

    /// The slot for the residuals of step `n`, if they are stored: residuals are stored for the first steps,
    /// as many as fit beside the states.
    #[inline]
    pub fn residuals_of_next(&mut self, n: usize) -> Option<Bound> {
        let (is_next, place) = (n == self.num_residuals, n + self.lead);
        let is_there = is_next && (place < self.residuals.len() || self.fits_one_more());
        is_there.then(|| self.residuals.at(place))
    }

    #[cold]
    fn fits_one_more(&self) -> bool {
        let more = self.residuals.chunk * self.residuals.state_bytes;
        self.slots.bytes() + self.residuals.bytes() + more <= self.budget
    }

    /// Records that step `n` was accepted and wrote its residuals to [`Tape::residuals_of_next`].
    #[inline]
    pub fn keep_residuals(&mut self, n: usize) {
        self.num_residuals = n + 1;
    }

    /// The slot for the residuals of one row's step `n` in lockstep, if they are stored. The first row that reaches the
    /// step takes the slot.
    pub fn residuals_of_row(&mut self, n: usize) -> Option<Bound> {
        let next = self.residuals_of_next(n);
        self.num_residuals += usize::from(next.is_some());
        next.or_else(|| (n < self.num_residuals).then(|| self.residuals.at(n + self.lead)))
    }

    /// The number of steps whose residuals are stored.
    pub fn num_residuals(&self) -> usize {
        self.num_residuals
    }

    /// Makes room for a stored state. States have priority, so the residuals of the last steps are dropped.
    #[inline]
    pub fn make_room(&mut self) {
        while self.residuals.len() > 0 && self.slots.bytes() + self.residuals.bytes() > self.budget {
            self.residuals.shrink();
            self.num_residuals = self.num_residuals.min(self.residuals.len().saturating_sub(self.lead));
        }
    }

    /// The residuals of steps n - 1 and n, if they were stored; the same address twice if trips read no
    /// residuals of the previous trip.
    #[inline]
    pub fn residuals(&mut self, n: usize) -> Option<[Bound; 2]> {
        (n < self.num_residuals).then(|| [self.residuals.at(n), self.residuals.at(n + self.lead)])
    }

    /// Records a forward pass of this many steps.
    pub fn note(&mut self, steps: usize) {
        self.run.runs += 1;
        self.run.steps = self.run.steps.max(steps);
        self.run.kept = self.run.kept.max(self.recorder.kept().len());
    }
}
