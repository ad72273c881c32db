//! Residuals: values that trips store for the backward pass besides their states.
//!
//! A forward body writes its residuals to their final location; trips that store none write to a spare buffer.
//! A backward trip reads them in place, or recomputes them into a spare buffer
//! ([`crate::transform::residuals`]). The transform decides which values are residuals.

use super::bind::{Body, State};
use super::exec::Workspace;
use super::lockstep::{Along, LockstepRows};
use super::tape::{Schedule, SlotLayout, Tape};
use super::taps::{self, TapCotangent};
use crate::backend::cpu::address::{Address, Env};
use crate::backend::cpu::plan::Plan;
use crate::simd::prefetch::prefetch;

/// Bytes to prefetch per trip: the hardware prefetches the rest of a longer value.
const AHEAD_BYTES: usize = 1024;

/// Prefetches values of the next trip: residuals, or a stored state. When the trip starts, they are no longer
/// in L1, and the hardware does not predict the order in which trips read them.
pub fn prefetch_next(at: *const u8, bytes: usize) {
    prefetch(at, bytes.min(AHEAD_BYTES));
}

/// The residuals of a forward body: those of its own step, then those that the next step reads.
#[derive(Debug)]
pub(crate) struct StoredResiduals {
    pub layout: SlotLayout,
    /// The residuals of the first trip that later trips take from the one before; the last parts of the layout.
    pub first_trip: Box<[Address]>,
    /// The first output that is a residual.
    pub first: usize,
    /// Buffers for residuals that are not stored.
    pub spare: Box<[Address]>,
}

impl StoredResiduals {
    /// Stores the residuals of the first trip that it cannot take from a previous one, if there is room.
    pub fn start(&self, tape: &mut Tape, env: Env) {
        let Some(to) = (!self.first_trip.is_empty()).then(|| tape.lead()).flatten() else { return };
        let parts = self.layout.parts.len() - self.first_trip.len()..;
        for (k, from) in parts.zip(&self.first_trip) {
            env.bound(*from).copy_to(self.layout.part(to, k), self.layout.parts[k].1);
        }
    }

    /// Binds the residual outputs of a trip that becomes step `n` if it is accepted; returns whether they are
    /// stored.
    pub fn bind(&self, body: &mut Body<'_>, tape: &mut Tape, n: usize, env: Env) -> bool {
        if let Some(at) = tape.residuals_of_next(n) {
            prefetch_next(at.ptr().wrapping_add(self.layout.bytes), self.layout.bytes);
            for k in 0..self.layout.parts.len() {
                body.output(self.first + k, self.layout.part(at, k));
            }
            return true;
        }
        body.outputs(self.first, &self.spare, env);
        false
    }

    /// Copies the residuals that a trip in lockstep left in the spare buffers to the slots of the steps that the rows have
    /// accepted. `step` is the step of a row that has accepted one. Adjacent rows at one step are copied together.
    pub fn keep_rows(&self, num: usize, step: impl Fn(usize) -> Option<usize>, tape: &mut Tape, env: Env) {
        let mut end = 0;
        while end < num {
            let (first, at) = (end, step(end));
            end += 1;
            while end < num && step(end) == at {
                end += 1;
            }
            let Some(to) = at.and_then(|n| tape.residuals_of_row(n)) else { continue };
            for (k, &(_, bytes)) in self.layout.parts.iter().enumerate() {
                let (start, len) = (first * (bytes / num), (end - first) * (bytes / num));
                env.bound(self.spare[k]).from(start).copy_to(self.layout.part(to, k).from(start), len);
            }
        }
    }

    /// After a forward pass in lockstep, gives each row that has ended the residuals of its last step, and each row
    /// without a step those of the first step of row `furthest`.
    pub fn finish_rows(&self, rows: &LockstepRows, tape: &mut Tape, schedules: &[Schedule], furthest: usize) {
        let num_own = self.layout.parts.len() - self.first_trip.len();
        for (r, schedule) in schedules.iter().enumerate() {
            let (from, row) = schedule.count().checked_sub(1).map_or((0, furthest), |last| (last, r));
            for n in schedule.count()..tape.num_residuals() {
                let (Some(from), Some(to)) = (tape.residuals(from), tape.residuals(n)) else { return };
                for (k, &(_, bytes)) in self.layout.parts.iter().enumerate() {
                    let (bytes, slot) = (bytes / rows.num, usize::from(k < num_own));
                    let [from, to] = [(from, row), (to, r)]
                        .map(|(slots, row)| self.layout.part(slots[slot], k).from(row * bytes));
                    from.copy_to(to, bytes);
                }
            }
        }
    }
}

/// How a backward pass obtains the residuals of a trip.
#[derive(Debug)]
pub(crate) struct ReadResiduals {
    /// Recomputes the residuals from the inputs of a step.
    pub recompute: Plan,
    pub layout: SlotLayout,
    /// Number of residuals that come from the previous trip; they are the last parts of the layout.
    pub num_before: usize,
    /// Buffers for recomputed residuals.
    pub spare: Box<[Address]>,
    /// The first input of the backward body that is a residual.
    pub first: usize,
}

/// A backward pass that reads residuals.
pub struct ResidualReader<'a> {
    taken: &'a ReadResiduals,
    body: Body<'a>,
    /// The first input of the body that is a tap row.
    first_row: usize,
    is_packed: bool,
    /// Number of trips whose residuals were recomputed.
    pub made: u64,
}

impl<'a> ResidualReader<'a> {
    pub fn new(
        taken: &'a ReadResiduals,
        ws: &'a mut Workspace,
        ((first_row, captures), rows): ((usize, &[Address]), &[TapCotangent]),
        env: Env,
    ) -> ResidualReader<'a> {
        let mut body = Body { plan: &taken.recompute, ws };
        body.inputs(first_row - captures.len(), captures, env);
        taps::bind_zeros(&mut body, first_row, rows, env);
        body.outputs(0, &taken.spare, env);
        ResidualReader { taken, body, first_row, is_packed: false, made: 0 }
    }

    /// Binds the residuals of step `n`, which starts from `state`, as inputs of `bwd`.
    pub fn bind(
        &mut self,
        bwd: &mut Body<'_>,
        tape: &mut Tape,
        (along, n, state, rows): (&Along<'_>, usize, &State<'_>, (&[TapCotangent], usize)),
        env: Env,
    ) {
        let ReadResiduals { layout, num_before, spare, first, .. } = self.taken;
        if let Some([before, own]) = tape.residuals(n) {
            let next = before.ptr().wrapping_sub(if *num_before > 0 { 0 } else { layout.bytes });
            prefetch_next(next, layout.bytes);
            let num_own = layout.parts.len() - num_before;
            for k in 0..layout.parts.len() {
                bwd.input(first + k, layout.part(if k < num_own { own } else { before }, k));
            }
            return;
        }
        if !std::mem::replace(&mut self.is_packed, true) {
            self.body.pack();
        }
        along.bind(&mut self.body, n, false, env);
        state.bind(&mut self.body, along.head());
        along.bind_cotangents(&mut self.body, self.first_row, rows, n, env);
        self.body.run();
        bwd.inputs(*first, spare, env);
        self.made += 1;
    }
}
