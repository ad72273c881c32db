//! The driver of searches: it runs the plan of an attempt until it stops; and what all loops share.
//!
//! A body's inputs and outputs are bound as addresses. Carried values alternate between two buffers, so no
//! run copies them; captured values are bound once. Control does not return to the caller between runs. A
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
use crate::backend::cpu::address::{Address, Bound, Env};
use crate::backend::cpu::plan::Plan;

/// Values that each run of a body receives from the run before it: trips of a replay, attempts of a search.
#[derive(Debug)]
pub(crate) struct Carried {
    /// The values that the first run receives.
    pub initial: Box<[Address]>,
    /// The buffers that runs 0, 2, 4, ... write. At the end they hold the values of the last run.
    pub result: Box<[Address]>,
    /// The buffers that runs 1, 3, 5, ... write.
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
    /// The buffers of the values before run `n`.
    pub fn before(&self, n: usize) -> &[Address] {
        match n {
            0 => &self.initial,
            n if n % 2 == 1 => &self.result,
            _ => &self.other,
        }
    }

    /// The buffers that run `n` writes.
    pub fn after(&self, n: usize) -> &[Address] {
        self.before(n + 1)
    }

    /// Copies the values after the last of `num` runs to the result buffers, if they are in the other buffers.
    pub fn settle(&self, env: Env, num: usize) {
        if num % 2 == 1 {
            return;
        }
        for ((from, to), &bytes) in self.before(num).iter().zip(&self.result).zip(&self.bytes) {
            env.bound(*from).copy_to(env.bound(*to), bytes);
        }
    }
}

/// Stores the state before step `n` if the checkpoint rule selects it; returns its slot.
pub fn keep(tape: &mut Tape, n: usize, layout: &SlotLayout, state: &[Address], env: Env) -> Option<Bound> {
    let to = tape.recorder.visit(n).map(|slot| tape.slots.at(slot))?;
    tape.make_room();
    for (k, (&(_, bytes), loc)) in layout.parts.iter().zip(state).enumerate() {
        env.bound(*loc).copy_to(layout.part(to, k), bytes);
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
    /// Runs a search of the plan that `env` belongs to.
    pub fn solve(&mut self, s: &Solve, env: Env) {
        if let Some(rows) = &s.rows {
            return self.solve_rows(s, rows, env);
        }
        let LoopSpace { schedules, tapes, inner, counters, .. } = self;
        let (schedule, tape) = (&mut schedules[s.schedule], &mut tapes[s.tape]);
        let mut body = Body { plan: &s.attempt, ws: &mut inner[s.space] };
        let num_carried = s.carried.bytes.len();
        let (mut times, mut flags, mut accepted) = ([0.0f64; 2], [0u32; 3], 0);
        // SAFETY: the two arrays outlive the loop, and are only used through these bounds.
        let (times, flags) = unsafe {
            let bytes = [2 * size_of::<f64>(), 3 * size_of::<u32>()];
            (Bound::new((&raw mut times).cast(), bytes[0]), Bound::new((&raw mut flags).cast(), bytes[1]))
        };
        let time = |k: usize| times.part(k % 2 * size_of::<f64>(), size_of::<f64>());
        let flag = |k: usize| flags.part(k * size_of::<u32>(), size_of::<u32>());
        env.bound(s.step_time).copy_to(time(0), size_of::<f64>());
        let expected = env.bound(s.expected).read::<u32>(0) as usize;
        schedule.start(time(0).read(0));
        if let Some(tapped) = &s.tapped {
            taps::clear(&s.taps, tapped.taps.num_rows(), env);
            taps::bind(&mut body, 4 + num_carried, &s.taps, env);
        }
        if s.records {
            tape.start((expected > 0).then_some(expected));
        }
        if let Some(left) = &s.left {
            left.start(tape, env);
        }
        body.inputs(1 + num_carried, &s.captures, env);
        body.pack();
        (0..3).for_each(|k| body.output(k, flag(k)));
        let mut attempts = 0;
        loop {
            let (from, to) = (time(attempts), time(attempts + 1));
            body.input(0, from);
            body.inputs(1, s.carried.before(attempts), env);
            body.output(3, to);
            body.outputs(4, s.carried.after(attempts), env);
            let is_left = s.left.as_ref().is_some_and(|left| left.bind(&mut body, tape, accepted, env));
            body.run();
            if flags.read::<u32>(0) != 0 {
                if is_left {
                    tape.keep_residuals(accepted);
                }
                if s.records {
                    keep(tape, accepted, &s.layout, s.carried.before(attempts), env);
                }
                if let Some(tapped) = &s.tapped {
                    tapped.note(schedule, 0, to.read(0), env);
                    taps::keep(&s.taps, schedule, accepted, env);
                }
                if s.is_replayed {
                    schedule.step_times.push(to.read(0));
                }
                accepted += 1;
            }
            attempts += 1;
            if flags.read::<u32>(1) == 0 {
                break;
            }
        }
        schedule.reached = flags.read::<u32>(2) != 0;
        s.carried.settle(env, attempts);
        counters.attempts += attempts as u64;
        counters.accepted += accepted as u64;
        if s.records {
            counters.note_kept(tape, accepted);
        }
    }
}
