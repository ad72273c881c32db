//! The sizes of a tape, and the number of steps whose residuals fit beside the states.
//!
//! Slots are allocated in chunks, so the number depends on the sizes of chunks. The report of a program needs it before a
//! run, and the tape of a run needs the same chunks.

/// Slots are allocated in chunks of up to this many bytes, or of one larger slot. A tape of small states
/// therefore needs few allocations, and a tape of large states grows slot by slot.
const CHUNK_BYTES: usize = 64 << 10;

/// Number of slots of `bytes` bytes per chunk, at most `num`.
pub(crate) fn slots_per_chunk(bytes: usize, num: usize) -> usize {
    in_a_chunk(CHUNK_BYTES, bytes, num)
}

fn in_a_chunk(chunk_bytes: usize, bytes: usize, num: usize) -> usize {
    (chunk_bytes / bytes.max(1)).clamp(1, num.max(1))
}

/// The sizes of a tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TapeShape {
    /// Bytes of a state.
    pub state_bytes: usize,
    /// The maximum number of states.
    pub num: usize,
    /// Bytes of residuals per step; 0 if there are none.
    pub residual_bytes: usize,
    /// The joint budget of states and residuals in bytes.
    pub budget: usize,
    /// Positions for residuals before those of the first step: 1 if trips read residuals of the previous
    /// trip.
    pub lead: usize,
}

impl TapeShape {
    /// Slots per chunk, for states and for residuals.
    pub fn chunks(&self) -> [usize; 2] {
        // With residuals, a chunk of several slots is at most a sixteenth of the budget, so that partly used
        // chunks of the two kinds waste little of it.
        let chunk = if self.residual_bytes == 0 { CHUNK_BYTES } else { CHUNK_BYTES.min(self.budget / 16) };
        [in_a_chunk(chunk, self.state_bytes, self.num), in_a_chunk(chunk, self.residual_bytes, usize::MAX)]
    }

    /// The number of steps, out of `steps`, whose residuals are stored.
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
