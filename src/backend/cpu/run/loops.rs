//! Loop drivers: they run the plan of a body trip by trip.
//!
//! A body's inputs and outputs are bound as addresses. Carried values alternate between two buffers, so no
//! trip copies them; captured values are bound once. Control does not return to the caller between trips. A
//! loop allocates nothing once its schedule and tape have the capacity that they need. This file implements
//! the contract of the loop operations (`graph::loops`).

use super::bind::{Body, State};
use super::exec::Workspace;
use super::lockstep::{Along, LockstepRows, Trip};
use super::residuals::{ReadResiduals, ResidualReader, StoredResiduals, prefetch_next};
use super::tape::{Schedule, SlotLayout, Slots, Tape};
use super::taps::{self, Tap, TapCotangent, Tapped};
use super::totals::Total;
use crate::backend::checkpoint::{Action, Replayer};
use crate::backend::cpu::address::{Access, Address, Env};
use crate::backend::cpu::plan::Plan;
use std::ptr::copy_nonoverlapping;

/// Values that each trip receives from the previous one.
#[derive(Debug)]
pub(crate) struct Carried {
    /// The values that the first trip receives.
    pub initial: Box<[Address]>,
    /// The buffers that trips 0, 2, 4, ... write. At the end they hold the values of the last trip.
    pub result: Box<[Address]>,
    /// The buffers that trips 1, 3, 5, ... write.
    pub other: Box<[Address]>,
    pub bytes: Box<[usize]>,
}

/// Runs `attempt` until it stops; see [`crate::graph::Solve`].
#[derive(Debug)]
pub(crate) struct Solve {
    pub attempt: Plan,
    pub expected: Address,
    pub step_time: Address,
    /// Which trips are tapped, if any.
    pub tapped: Option<Tapped>,
    pub taps: Box<[Tap]>,
    /// The values that the step carries, then those that only the search carries.
    pub carried: Carried,
    pub captures: Box<[Address]>,
    /// The additional buffers of a loop in lockstep.
    pub rows: Option<LockstepRows>,
    pub layout: SlotLayout,
    /// The residuals of the attempt, stored if the tape has room.
    pub left: Option<StoredResiduals>,
    /// Whether a backward pass reads the tape.
    pub records: bool,
    /// Whether another operation or a tap reads the schedule.
    pub is_replayed: bool,
    pub schedule: usize,
    pub tape: usize,
    pub space: usize,
}

/// Runs `step` along a schedule; see [`crate::graph::Scan`].
#[derive(Debug)]
pub(crate) struct Scan {
    pub step: Plan,
    pub taps: Box<[Tap]>,
    pub num_rows: usize,
    pub carried: Carried,
    pub captures: Box<[Address]>,
    pub rows: Option<LockstepRows>,
    pub layout: SlotLayout,
    /// The residuals of the step, stored if the tape has room.
    pub left: Option<StoredResiduals>,
    pub records: bool,
    pub schedule: usize,
    pub tape: usize,
    pub space: usize,
}

/// Runs `bwd` along a schedule in reverse; see [`crate::graph::Rev`].
#[derive(Debug)]
pub(crate) struct Rev {
    pub step: Plan,
    pub bwd: Plan,
    /// The residuals that the backward body reads.
    pub taken: Option<ReadResiduals>,
    pub captures: Box<[Address]>,
    pub rows: Option<LockstepRows>,
    pub layout: SlotLayout,
    /// Two buffers for recomputed states, which alternate.
    pub running: [Box<[Address]>; 2],
    pub cotangents: Carried,
    pub tap_cotangents: Box<[TapCotangent]>,
    pub num_rows: usize,
    pub sums: Box<[Total]>,
    /// Whether no later step reads the tape, so that its slots may be overwritten.
    pub is_last: bool,
    pub schedule: usize,
    pub tape: usize,
    /// Workspace index of the step; `bwd` follows.
    pub space: usize,
    /// The workspace index of this operation's replayer.
    pub replay: usize,
}

/// Counts of the loops in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Attempted steps.
    pub attempts: u64,
    /// Accepted steps.
    pub accepted: u64,
    /// Steps that backward passes recomputed to restore states.
    pub recomputed: u64,
    /// Steps whose stages backward passes recomputed for the derivative, in loops that can store stages.
    pub recomputed_residuals: u64,
    /// The maximum number of states stored by one tape, or of values stored by one sequence.
    pub states_kept_max: usize,
}

/// The loops' data in a plan's workspace.
#[derive(Default)]
pub(crate) struct LoopSpace {
    pub schedules: Vec<Schedule>,
    pub tapes: Vec<Tape>,
    pub sequences: Vec<Slots>,
    pub replays: Vec<Replay>,
    pub inner: Vec<Workspace>,
    pub counters: Counters,
}

/// The replayer of a backward pass, and its own slots for states that must not overwrite the tape.
pub(crate) struct Replay {
    pub replayer: Replayer,
    pub slots: Slots,
    /// Steps that the pass recomputed in this run of the plan.
    pub recomputed: u64,
    /// Steps whose stages the pass recomputed.
    pub recomputed_residuals: u64,
    own: Vec<bool>,
}

impl Replay {
    pub fn new(state_bytes: usize, num: usize) -> Replay {
        Replay {
            replayer: Replayer::new(),
            slots: Slots::new(state_bytes, num),
            recomputed: 0,
            recomputed_residuals: 0,
            own: Vec::new(),
        }
    }
}

impl Carried {
    pub fn each_address(&mut self, f: &mut dyn FnMut(&mut Address, Access)) {
        self.initial.iter_mut().for_each(|l| f(l, Access::Read));
        self.result.iter_mut().for_each(|l| f(l, Access::Write));
        self.other.iter_mut().for_each(|l| f(l, Access::Write));
    }

    /// The buffers of the values before trip `n`.
    pub fn before(&self, n: usize) -> &[Address] {
        match n {
            0 => &self.initial,
            n if n % 2 == 1 => &self.result,
            _ => &self.other,
        }
    }

    /// The buffers that trip `n` writes.
    pub fn after(&self, n: usize) -> &[Address] {
        self.before(n + 1)
    }

    /// Copies the values after `trips` trips to the result buffers, if they are in the other buffers.
    pub unsafe fn settle(&self, env: Env, trips: usize) {
        if trips % 2 == 1 {
            return;
        }
        for ((from, to), &bytes) in self.before(trips).iter().zip(&self.result).zip(&self.bytes) {
            // SAFETY: the buffers have these bytes and are different ones.
            unsafe { copy_nonoverlapping(env.at(*from), env.at(*to), bytes) };
        }
    }
}

impl Solve {
    pub fn each_address(&mut self, f: &mut dyn FnMut(&mut Address, Access)) {
        f(&mut self.expected, Access::Read);
        f(&mut self.step_time, Access::Read);
        self.tapped.iter_mut().flat_map(|tapped| &mut tapped.times).for_each(|l| f(l, Access::Read));
        taps::each_tap(&mut self.taps, f);
        self.captures.iter_mut().for_each(|l| f(l, Access::Read));
        self.rows.iter_mut().for_each(|rows| rows.each_address(f));
        self.left.iter_mut().for_each(|left| left.each_address(f));
        self.carried.each_address(f);
    }
}

impl Scan {
    pub fn each_address(&mut self, f: &mut dyn FnMut(&mut Address, Access)) {
        taps::each_tap(&mut self.taps, f);
        self.captures.iter_mut().for_each(|l| f(l, Access::Read));
        self.rows.iter_mut().for_each(|rows| rows.each_address(f));
        self.left.iter_mut().for_each(|left| left.each_address(f));
        self.carried.each_address(f);
    }
}

impl Rev {
    pub fn each_address(&mut self, f: &mut dyn FnMut(&mut Address, Access)) {
        self.captures.iter_mut().for_each(|l| f(l, Access::Read));
        self.rows.iter_mut().for_each(|rows| rows.each_address(f));
        self.running.iter_mut().flatten().for_each(|l| f(l, Access::Write));
        self.taken.iter_mut().for_each(|taken| taken.each_address(f));
        self.cotangents.each_address(f);
        self.tap_cotangents.iter_mut().for_each(|ct| ct.each_address(f));
        self.sums.iter_mut().for_each(|sum| f(&mut sum.at, Access::Write));
    }
}

/// Stores the state before step `n` if the checkpoint rule selects it; returns its slot.
pub unsafe fn keep(
    tape: &mut Tape,
    n: usize,
    layout: &SlotLayout,
    state: &[Address],
    env: Env,
) -> Option<*mut u8> {
    let to = tape.recorder.visit(n).map(|slot| tape.slots.at(slot))?;
    tape.make_room();
    for (&(offset, bytes), loc) in layout.parts.iter().zip(state) {
        // SAFETY: a slot has the layout's bytes; the state lies elsewhere.
        unsafe { copy_nonoverlapping(env.at(*loc), to.add(offset), bytes) };
    }
    Some(to)
}

impl Counters {
    pub(crate) fn note_kept(&mut self, tape: &mut Tape, steps: usize) {
        tape.note(steps);
        self.states_kept_max = self.states_kept_max.max(tape.recorder.kept().len());
    }
}

impl LoopSpace {
    /// # Safety
    /// The locations are valid in `env`, and the workspaces are prepared for the bodies.
    pub unsafe fn solve(&mut self, s: &Solve, env: Env) {
        if let Some(rows) = &s.rows {
            // SAFETY: the caller's promise.
            return unsafe { self.solve_rows(s, rows, env) };
        }
        let LoopSpace { schedules, tapes, inner, counters, .. } = self;
        let (schedule, tape) = (&mut schedules[s.schedule], &mut tapes[s.tape]);
        let (own, others) = inner[s.space..].split_first_mut().expect("invariant: a loop has a workspace");
        let mut body = Body { plan: &s.attempt, ws: own };
        let num_carried = s.carried.bytes.len();
        let (mut step_times, mut flags, mut accepted) = ([0.0f64; 2], [0u32; 3], 0);
        let (step_time_at, flag_at) = (step_times.as_mut_ptr(), flags.as_mut_ptr());
        // SAFETY: locations of this plan; step times and flags outlive the loop and are only used through
        // these addresses.
        unsafe {
            *step_time_at = env.at(s.step_time).cast::<f64>().read();
            let expected = env.at(s.expected).cast::<u32>().read() as usize;
            schedule.step_times.clear();
            schedule.step_times.push(*step_time_at);
            schedule.held.clear();
            if let Some(tapped) = &s.tapped {
                taps::clear(&s.taps, tapped.taps.num_rows(), env);
                taps::bind(&mut body, 4 + num_carried, &s.taps, env);
            }
            if s.records {
                tape.start((expected > 0).then_some(expected));
            }
            if let Some(left) = &s.left {
                left.open(tape, others, (step_time_at, &s.carried.initial, &s.captures), env);
            }
            body.inputs(1 + num_carried, &s.captures, env);
            body.pack();
            (0..3).for_each(|k| body.output(k, flag_at.add(k).cast()));
            let mut trips = 0;
            loop {
                let (from, to) = (step_time_at.add(trips % 2), step_time_at.add((trips + 1) % 2));
                body.input(0, from.cast());
                body.inputs(1, s.carried.before(trips), env);
                body.output(3, to.cast());
                body.outputs(4, s.carried.after(trips), env);
                let is_left = s.left.as_ref().is_some_and(|left| left.bind(&mut body, tape, accepted, env));
                body.run();
                if *flag_at != 0 {
                    if is_left {
                        tape.keep_residuals(accepted);
                    }
                    if s.records {
                        keep(tape, accepted, &s.layout, s.carried.before(trips), env);
                    }
                    if let Some(tapped) = &s.tapped {
                        tapped.note(schedule, 0, *to, env);
                        taps::keep(&s.taps, schedule, accepted, env);
                    }
                    if s.is_replayed {
                        schedule.step_times.push(*to);
                    }
                    accepted += 1;
                }
                trips += 1;
                if *flag_at.add(1) == 0 {
                    break;
                }
            }
            schedule.reached = *flag_at.add(2) != 0;
            s.carried.settle(env, trips);
            counters.attempts += trips as u64;
            counters.accepted += accepted as u64;
        }
        if s.records {
            counters.note_kept(tape, accepted);
        }
    }

    /// # Safety
    /// As for [`LoopSpace::solve`].
    pub unsafe fn scan(&mut self, s: &Scan, env: Env) {
        let LoopSpace { schedules, tapes, inner, counters, .. } = self;
        let (along, tape) = (Along::new(s.rows.as_ref(), schedules, s.schedule), &mut tapes[s.tape]);
        let mut body = Body { plan: &s.step, ws: &mut inner[s.space] };
        let (count, head) = (along.count(), along.head());
        if s.records {
            tape.start(Some(count));
        }
        // SAFETY: locations of this plan.
        unsafe {
            body.inputs(head + s.carried.bytes.len(), &s.captures, env);
            body.pack();
            taps::clear(&s.taps, s.num_rows, env);
            taps::bind(&mut body, s.carried.bytes.len(), &s.taps, env);
            for n in 0..count {
                along.bind(&mut body, n, Trip::Forward, env);
                body.inputs(head, s.carried.before(n), env);
                body.outputs(0, s.carried.after(n), env);
                if s.records {
                    along.keep(tape, n, &s.layout, s.carried.before(n), env);
                }
                if s.left.as_ref().is_some_and(|left| left.bind(&mut body, tape, n, env)) {
                    tape.keep_residuals(n);
                }
                body.run();
                along.keep_taps(&s.taps, s.num_rows, n, env);
            }
            s.carried.settle(env, count);
            if s.records {
                along.finish(tape, &s.layout);
                counters.note_kept(tape, count);
            }
        }
    }

    /// # Safety
    /// As for [`LoopSpace::solve`].
    pub unsafe fn rev(&mut self, r: &Rev, env: Env) {
        let LoopSpace { schedules, tapes, replays, inner, counters, .. } = self;
        let (inner, others) = inner.split_at_mut(r.space + 2);
        let [step_ws, bwd_ws] = &mut inner[r.space..] else {
            unreachable!("invariant: a backward pass has two bodies");
        };
        let (mut step, mut bwd) = (Body { plan: &r.step, ws: step_ws }, Body { plan: &r.bwd, ws: bwd_ws });
        let (along, tape) = (Along::new(r.rows.as_ref(), schedules, r.schedule), &mut tapes[r.tape]);
        let Replay { replayer, slots, recomputed, recomputed_residuals, own } = &mut replays[r.replay];
        let (head, num_carry, num_ct) = (along.head(), r.layout.parts.len(), r.cotangents.bytes.len());
        let before = *recomputed_residuals;
        replayer.start(&tape.recorder, along.count());
        own.clear();
        let mut state = State::new(&r.layout);
        let mut trips = 0;
        // SAFETY: locations of this plan; slots have the layout of a state.
        unsafe {
            step.inputs(head + num_carry, &r.captures, env);
            bwd.inputs(head + num_carry, &r.captures, env);
            bwd.pack();
            let mut taking =
                r.taken.as_ref().map(|t| ResidualReader::new(t, &mut others[0], &r.captures, env));
            let mut is_packed = false;
            bwd.start_totals(&r.sums, num_ct, env);
            taps::clear_zeros(&r.tap_cotangents, env);
            while let Some(action) = replayer.next() {
                match action {
                    Action::Load { slot } => {
                        let is_own = own.get(slot).copied().unwrap_or(false);
                        state.in_slot(if is_own { slots.at(slot) } else { tape.slots.at(slot) });
                    }
                    Action::Store { slot } => {
                        if !r.is_last {
                            own.resize(own.len().max(slot + 1), false);
                            own[slot] = true;
                        }
                        state.copy_to(if r.is_last { tape.slots.at(slot) } else { slots.at(slot) });
                    }
                    Action::Advance { step: n } => {
                        if !std::mem::replace(&mut is_packed, true) {
                            step.pack();
                        }
                        along.bind(&mut step, n, Trip::Recompute, env);
                        state.bind(&mut step, head);
                        let to = &r.running[n % 2];
                        step.outputs(0, to, env);
                        step.run();
                        state.in_buffer(to, env);
                    }
                    Action::Deliver { step: n } => {
                        along.bind(&mut bwd, n, Trip::Backward, env);
                        state.bind(&mut bwd, head);
                        replayer
                            .next_slot()
                            .inspect(|&slot| prefetch_next(tape.slots.at(slot), r.layout.bytes));
                        let first_ct = head + num_carry + r.captures.len();
                        bwd.inputs(first_ct, r.cotangents.before(trips), env);
                        let cts = (&r.tap_cotangents[..], r.num_rows);
                        along.bind_cotangents(&mut bwd, first_ct + num_ct, cts, n, env);
                        bwd.outputs(0, r.cotangents.after(trips), env);
                        taking.iter_mut().for_each(|t| t.bind(&mut bwd, tape, (&along, n, &state), env));
                        bwd.run();
                        trips += 1;
                    }
                }
            }
            bwd.finish_totals();
            r.cotangents.settle(env, trips);
            *recomputed_residuals += taking.map_or(0, |taking| taking.made);
        }
        counters.recomputed_residuals += *recomputed_residuals - before;
        *recomputed += replayer.num_extra();
        counters.recomputed += replayer.num_extra();
    }
}
