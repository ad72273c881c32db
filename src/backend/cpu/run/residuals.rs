//! Residuals: values that trips store for the backward pass besides their states.
//!
//! A forward body writes its residuals to their final location; trips that store none write to a spare buffer.
//! A backward trip reads them in place, or recomputes them into a spare buffer
//! ([`crate::transform::residuals`]). The transform decides which values are residuals.

use super::bind::{Body, State};
use super::exec::Workspace;
use super::lockstep::Along;
use super::tape::{SlotLayout, Tape};
use crate::backend::cpu::address::{Access, Address, Env};
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
    unsafe fn run(
        &self,
        tape: &mut Tape,
        layout: &SlotLayout,
        body: &mut Body<'_>,
        initial: &[Address],
        env: Env,
    ) {
        let Some(at) = tape.lead() else { return };
        for (k, &(offset, _)) in layout.parts[layout.parts.len() - self.num..].iter().enumerate() {
            // SAFETY: the place has the layout's bytes.
            body.output(k, unsafe { at.add(offset) });
        }
        let mut is_equal = true;
        // SAFETY: inputs and outputs are bound; both values have these bytes.
        unsafe {
            self.carried.iter().enumerate().for_each(|(k, c)| body.output(self.num + k, env.at(c.2)));
            body.run();
            for &(position, bytes, made) in &self.carried {
                let [made, given] = [made, initial[position]].map(|l| from_raw_parts(env.at(l), bytes));
                is_equal &= made == given;
            }
        }
        if is_equal {
            tape.open();
        }
    }
}

impl StoredResiduals {
    pub fn each_address(&mut self, f: &mut dyn FnMut(&mut Address, Access)) {
        self.spare.iter_mut().for_each(|l| f(l, Access::Write));
        let made = self.opening.iter_mut().flat_map(|o| &mut o.carried);
        made.for_each(|(_, _, l)| f(l, Access::Write));
    }

    /// Runs the opening, if any, for a search that starts from `step_time` and `initial`.
    pub unsafe fn open(
        &self,
        tape: &mut Tape,
        others: &mut [Workspace],
        (step_time, initial, captures): (*const f64, &[Address], &[Address]),
        env: Env,
    ) {
        let Some(opening) = &self.opening else { return };
        let mut body = Body { plan: &opening.body, ws: &mut others[0] };
        body.input(0, step_time.cast());
        // SAFETY: locations of the surrounding plan.
        unsafe {
            body.inputs(1, initial, env);
            body.inputs(1 + initial.len(), captures, env);
            opening.run(tape, &self.layout, &mut body, initial, env);
        }
    }

    /// Binds the residual outputs of a trip that becomes step `n` if it is accepted; returns whether they are
    /// stored.
    pub unsafe fn bind(&self, body: &mut Body<'_>, tape: &mut Tape, n: usize, env: Env) -> bool {
        if let Some(at) = tape.residuals_of_next(n) {
            prefetch_next(at.wrapping_add(self.layout.bytes), self.layout.bytes);
            for (k, &(offset, _)) in self.layout.parts.iter().enumerate() {
                // SAFETY: the place has the layout's bytes.
                body.output(self.first + k, unsafe { at.add(offset) });
            }
            return true;
        }
        // SAFETY: locations of the surrounding plan.
        unsafe { body.outputs(self.first, &self.spare, env) };
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

impl ReadResiduals {
    pub fn each_address(&mut self, f: &mut dyn FnMut(&mut Address, Access)) {
        self.spare.iter_mut().for_each(|l| f(l, Access::Write));
    }
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
    pub unsafe fn new(
        taken: &'a ReadResiduals,
        ws: &'a mut Workspace,
        captures: &[Address],
        env: Env,
    ) -> ResidualReader<'a> {
        let mut body = Body { plan: &taken.recompute, ws };
        let first = taken.recompute.input_types().len() - captures.len();
        // SAFETY: locations of the surrounding plan.
        unsafe {
            body.inputs(first, captures, env);
            body.outputs(0, &taken.spare, env);
        }
        ResidualReader { taken, body, is_packed: false, made: 0 }
    }

    /// Binds the residuals of step `n`, which starts from `state`, as inputs of `bwd`.
    pub unsafe fn bind(
        &mut self,
        bwd: &mut Body<'_>,
        tape: &mut Tape,
        (along, n, state): (&Along<'_>, usize, &State<'_>),
        env: Env,
    ) {
        let ReadResiduals { layout, num_before, spare, first, .. } = self.taken;
        if let Some([before, own]) = tape.residuals(n) {
            prefetch_next(before.wrapping_sub(if *num_before > 0 { 0 } else { layout.bytes }), layout.bytes);
            let num_own = layout.parts.len() - num_before;
            for (k, &(offset, _)) in layout.parts.iter().enumerate() {
                // SAFETY: the places have the layout's bytes.
                bwd.input(first + k, unsafe { if k < num_own { own } else { before }.add(offset) });
            }
            return;
        }
        // SAFETY: all inputs and outputs of the body are bound; locations of the surrounding plan.
        unsafe {
            if !std::mem::replace(&mut self.is_packed, true) {
                self.body.pack();
            }
            along.bind(&mut self.body, n, false, env);
            state.bind(&mut self.body, along.head());
            self.body.run();
            bwd.inputs(*first, spare, env);
        }
        self.made += 1;
    }
}
