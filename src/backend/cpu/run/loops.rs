//! The driver of searches: it runs the plan of an attempt until it stops; and what all loops share.
//!
//! A body's inputs and outputs are bound as addresses. Carried values alternate between two buffers, so no
//! trip copies them; captured values are bound once. Control does not return to the caller between trips. A
//! loop allocates nothing once its schedule and tape have the capacity that they need. This file implements
//! the contract of `graph::Solve`; `replay` implements the other loops.

use super::bind::Body;
use super::exec::Workspace;
use super::lockstep::LockstepRows;
use super::residuals::StoredResiduals;
use super::tape::{Schedule, SlotLayout, Slots, Tape};
use super::taps::{self, Tap, Tapped};
use crate::backend::Counters;
use crate::backend::checkpoint::Replayer;
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

/// The loops' data in a plan's workspace.
#[derive(Default)]
pub(crate) struct LoopSpace {
    pub schedules: Vec<Schedule>,
    pub tapes: Vec<Tape>,
    pub sequences: Vec<Slots>,
    pub restorers: Vec<Restorer>,
    pub inner: Vec<Workspace>,
    pub counters: Counters,
}

/// The replayer of a backward pass, and its own slots for states that must not overwrite the tape.
pub(crate) struct Restorer {
    pub replayer: Replayer,
    pub slots: Slots,
    /// Steps that the pass recomputed in this run of the plan.
    pub recomputed: u64,
    /// Steps whose stages the pass recomputed.
    pub recomputed_residuals: u64,
    /// Which slots are its own.
    pub own: Vec<bool>,
}

impl Restorer {
    pub fn new(state_bytes: usize, num: usize) -> Restorer {
        Restorer {
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
}
