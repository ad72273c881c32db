//! What trips leave for the backward pass beside their states, and where that pass has it from.
//!
//! A forward body writes its residuals where they are kept; trips that keep none write them into a spare place. A backward
//! trip reads them where they lie, or has them made again there ([`crate::transform::residuals`]). It knows tapes and
//! addresses; which values are residuals it must never know.

use super::bind::{Body, State};
use super::exec::Workspace;
use super::lockstep::{Along, Trip};
use super::plan::Plan;
use super::step::{Access, Env, Loc};
use super::tape::{Layout, Tape};
use crate::simd::prefetch::prefetch;
use std::slice::from_raw_parts;

/// What is asked for ahead of a trip: of long values the machine finds the rest by itself.
const AHEAD_BYTES: usize = 1024;

/// Asks for what the next trip takes. What was kept has left the nearest cache by the time it is wanted, and comes back
/// in an order that no machine foresees.
pub(super) fn ask(at: *const u8, bytes: usize) {
    prefetch(at, bytes.min(AHEAD_BYTES));
}

/// The residuals of a forward body: those of its step, then those that the next one takes.
#[derive(Debug)]
pub(crate) struct Left {
    pub layout: Layout,
    /// How the first trip comes by what others take of the trip before.
    pub opening: Option<Opening>,
    /// The output that is the first of them.
    pub first: usize,
    /// Where those go that are not kept.
    pub spare: Box<[Loc]>,
}

/// What the first trip takes of the one before, made when a search starts.
#[derive(Debug)]
pub(crate) struct Opening {
    /// From the inputs of the loop's body.
    pub body: Plan,
    /// The last parts of the layout, its first outputs.
    pub num: usize,
    /// What the search carries that its other outputs must be equal to: among what is carried, bytes, where it is made.
    pub carried: Box<[(usize, usize, Loc)]>,
}

impl Opening {
    /// Fills the first place, unless the search starts from other values than a step would make.
    unsafe fn run(&self, tape: &mut Tape, layout: &Layout, body: &mut Body<'_>, initial: &[Loc], env: Env) {
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

impl Left {
    pub fn each_loc(&mut self, f: &mut dyn FnMut(&mut Loc, Access)) {
        self.spare.iter_mut().for_each(|l| f(l, Access::Write));
        let made = self.opening.iter_mut().flat_map(|o| &mut o.carried);
        made.for_each(|(_, _, l)| f(l, Access::Write));
    }

    /// Prepares a search that starts from `step time` and `initial`.
    pub(super) unsafe fn open(
        &self,
        tape: &mut Tape,
        others: &mut [Workspace],
        (step_time, initial, captures): (*const f64, &[Loc], &[Loc]),
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

    /// Says where those of a trip go that becomes step `n` if it is accepted; whether they are kept there.
    pub(super) unsafe fn bind(&self, body: &mut Body<'_>, tape: &mut Tape, n: usize, env: Env) -> bool {
        if let Some(at) = tape.residuals_of_next(n) {
            ask(at.wrapping_add(self.layout.bytes), self.layout.bytes);
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

/// How a backward pass comes by the residuals of a trip.
#[derive(Debug)]
pub(crate) struct Taken {
    /// Makes them again from what a step takes.
    pub again: Plan,
    pub layout: Layout,
    /// How many of them, the last ones, the trip before has left.
    pub num_before: usize,
    /// Where they are made.
    pub spare: Box<[Loc]>,
    /// The input of the backward body that is the first of them.
    pub first: usize,
}

impl Taken {
    pub fn each_loc(&mut self, f: &mut dyn FnMut(&mut Loc, Access)) {
        self.spare.iter_mut().for_each(|l| f(l, Access::Write));
    }
}

/// A backward pass that takes residuals.
pub(super) struct Taking<'a> {
    taken: &'a Taken,
    body: Body<'a>,
    is_packed: bool,
    /// Trips whose residuals were made again.
    pub made: u64,
}

impl<'a> Taking<'a> {
    pub(super) unsafe fn new(
        taken: &'a Taken,
        ws: &'a mut Workspace,
        captures: &[Loc],
        env: Env,
    ) -> Taking<'a> {
        let mut body = Body { plan: &taken.again, ws };
        let first = taken.again.input_types().len() - captures.len();
        // SAFETY: locations of the surrounding plan.
        unsafe {
            body.inputs(first, captures, env);
            body.outputs(0, &taken.spare, env);
        }
        Taking { taken, body, is_packed: false, made: 0 }
    }

    /// Makes the residuals of step `n`, which starts from `state`, inputs of `bwd`.
    pub(super) unsafe fn bind(
        &mut self,
        bwd: &mut Body<'_>,
        tape: &mut Tape,
        (along, n, state): (&Along<'_>, usize, &State<'_>),
        env: Env,
    ) {
        let Taken { layout, num_before, spare, first, .. } = self.taken;
        if let Some([before, own]) = tape.residuals(n) {
            ask(before.wrapping_sub(if *num_before > 0 { 0 } else { layout.bytes }), layout.bytes);
            let num_own = layout.parts.len() - num_before;
            for (k, &(offset, _)) in layout.parts.iter().enumerate() {
                // SAFETY: the places have the layout's bytes.
                bwd.input(first + k, unsafe { if k < num_own { own } else { before }.add(offset) });
            }
            return;
        }
        // SAFETY: all that the body takes is bound; locations of the surrounding plan.
        unsafe {
            if !std::mem::replace(&mut self.is_packed, true) {
                self.body.pack();
            }
            along.bind(&mut self.body, n, Trip::Backward, env);
            state.bind(&mut self.body, along.head());
            self.body.run();
            bwd.inputs(*first, spare, env);
        }
        self.made += 1;
    }
}
