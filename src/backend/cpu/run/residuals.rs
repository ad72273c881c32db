//! Residuals: values that trips store for the backward pass besides their states.
//!
//! A forward body writes its residuals to their final location; trips that store none write to a spare buffer.
//! A backward trip reads them in place, or recomputes them into a spare buffer
//! ([`crate::transform::residuals`]). The transform decides which values are residuals.

use super::bind::{Body, State};
use super::exec::Workspace;
use super::lockstep::Along;
use super::tape::{SlotLayout, Tape};
use crate::backend::cpu::address::{Address, Bound, Env};
use crate::backend::cpu::plan::Plan;
use crate::simd::prefetch::prefetch;
use std::slice::from_raw_parts;

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
    /// Computes the values that the first trip reads from a previous one.
    pub opening: Option<Opening>,
    /// The first output that is a residual.
    pub first: usize,
    /// Buffers for residuals that are not stored.
    pub spare: Box<[Address]>,
}

/// The residuals that the first trip reads from a previous one, computed when a search starts.
#[derive(Debug)]
pub(crate) struct Opening {
    /// Computes the residuals from the inputs of the loop's body.
    pub body: Plan,
    /// Number of residuals. They are the last parts of the layout and the first outputs of the body.
    pub num: usize,
    /// The other outputs of the body must equal some carried values. For each: the position among the carried
    /// values, its bytes, and the location of the output.
    pub carried: Box<[(usize, usize, Address)]>,
}

impl Opening {
    /// Computes the residuals that the first trip reads. Opens the tape for residuals only if the search
    /// starts from the values that a step would produce.
    fn run(&self, tape: &mut Tape, layout: &SlotLayout, body: &mut Body<'_>, initial: &[Address], env: Env) {
        let Some(at) = tape.lead() else { return };
        for k in 0..self.num {
            body.output(k, layout.part(at, layout.parts.len() - self.num + k));
        }
        let mut is_equal = true;
        self.carried.iter().enumerate().for_each(|(k, c)| body.output(self.num + k, env.bound(c.2)));
        body.run();
        for &(position, bytes, made) in &self.carried {
            let [made, given] = [made, initial[position]].map(|l| env.bound(l).part(0, bytes).ptr());
            // SAFETY: `StoredResiduals::each_span` and `Carried::each_span` give these bytes of both values.
            is_equal &= unsafe { from_raw_parts(made, bytes) == from_raw_parts(given, bytes) };
        }
        if is_equal {
            tape.open();
        }
    }
}

impl StoredResiduals {
    /// Runs the opening, if any, for a search that starts from `step_time` and `initial`.
    pub fn open(
        &self,
        tape: &mut Tape,
        others: &mut [Workspace],
        (step_time, initial, captures): (Bound, &[Address], &[Address]),
        env: Env,
    ) {
        let Some(opening) = &self.opening else { return };
        let mut body = Body { plan: &opening.body, ws: &mut others[0] };
        body.input(0, step_time);
        body.inputs(1, initial, env);
        body.inputs(1 + initial.len(), captures, env);
        opening.run(tape, &self.layout, &mut body, initial, env);
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
    is_packed: bool,
    /// Number of trips whose residuals were recomputed.
    pub made: u64,
}

impl<'a> ResidualReader<'a> {
    pub fn new(
        taken: &'a ReadResiduals,
        ws: &'a mut Workspace,
        captures: &[Address],
        env: Env,
    ) -> ResidualReader<'a> {
        let mut body = Body { plan: &taken.recompute, ws };
        let first = taken.recompute.input_types().len() - captures.len();
        body.inputs(first, captures, env);
        body.outputs(0, &taken.spare, env);
        ResidualReader { taken, body, is_packed: false, made: 0 }
    }

    /// Binds the residuals of step `n`, which starts from `state`, as inputs of `bwd`.
    pub fn bind(
        &mut self,
        bwd: &mut Body<'_>,
        tape: &mut Tape,
        (along, n, state): (&Along<'_>, usize, &State<'_>),
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
        self.body.run();
        bwd.inputs(*first, spare, env);
        self.made += 1;
    }
}
