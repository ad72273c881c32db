//! The driver of replays: it runs the body along a schedule, trip by trip; see [`crate::graph::Replay`].
//!
//! A trip reads and writes its entries of sequences in place; only states are copied, and values without readers
//! are not stored. A loop that reads states asks the replayer of `backend/checkpoint` for its next action, and
//! runs its body at each state that the replayer delivers.

use super::bind::{Body, State};
use super::exec::Workspace;
use super::lockstep::{Along, LockstepRows};
use super::loops::{Carried, LoopSpace, Restorer};
use super::residuals::{ReadResiduals, ResidualReader, StoredResiduals, prefetch_next};
use super::tape::{SlotLayout, Slots, Tape};
use super::taps::{self, Tap, TapCotangent};
use super::totals::Total;
use crate::backend::checkpoint::Action;
use crate::backend::cpu::address::{Address, Env};
use crate::backend::cpu::plan::Plan;

/// The destination of a trip's output.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Output {
    /// The slot of the trip in this sequence.
    Stored(usize),
    /// A scratch location, which nothing reads.
    Dropped(Address),
}

/// The tape that a loop fills for another one.
#[derive(Debug)]
pub(crate) struct Record {
    pub tape: usize,
    pub layout: SlotLayout,
    /// The residuals of the body, stored if the tape has room.
    pub stored: Option<StoredResiduals>,
}

/// The states that a loop reads.
#[derive(Debug)]
pub(crate) struct Restore {
    /// The step that recomputes states. Its workspace comes right after the workspace of the body.
    pub step: Plan,
    pub layout: SlotLayout,
    /// Two buffers for recomputed states, which alternate.
    pub running: [Box<[Address]>; 2],
    /// Whether the step reads tap rows.
    pub reads_rows: bool,
    /// The residuals that the body reads.
    pub residuals: Option<ReadResiduals>,
    pub tape: usize,
    /// Whether no later step reads the tape, so that its slots may be overwritten.
    pub is_last: bool,
    /// The index of this operation's replayer in the workspace.
    pub restorer: usize,
}

/// The first positions of the groups of a body's inputs and outputs; 0 for empty groups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Positions {
    pub carry: usize,
    pub states: usize,
    pub xs: usize,
    pub captures: usize,
    pub rows: usize,
    pub ys: usize,
    pub sums: usize,
    pub taps: usize,
}

/// Runs `body` along a schedule.
#[derive(Debug)]
pub(crate) struct Replay {
    pub body: Plan,
    pub at: Positions,
    pub is_reversed: bool,
    pub carried: Carried,
    /// The sequences that the loop reads.
    pub xs: Box<[usize]>,
    pub captures: Box<[Address]>,
    /// The values that a trip reads from the tap rows that it holds.
    pub tap_rows: Box<[TapCotangent]>,
    /// Which of its own carried values are stored before each trip, and in which sequences.
    pub stored_states: Box<[(usize, usize)]>,
    pub ys: Box<[Output]>,
    pub sums: Box<[Total]>,
    pub taps: Box<[Tap]>,
    pub num_tap_rows: usize,
    /// The additional buffers of a loop in lockstep.
    pub lockstep: Option<LockstepRows>,
    pub record: Option<Record>,
    pub restore: Option<Restore>,
    pub schedule: usize,
    /// Workspace index of the body.
    pub space: usize,
}

impl Replay {
    fn stores_sequences(&self) -> bool {
        !self.stored_states.is_empty() || self.ys.iter().any(|y| matches!(y, Output::Stored(_)))
    }
}

/// A replay in progress.
struct Run<'a> {
    l: &'a Replay,
    along: Along<'a>,
    body: Body<'a>,
    sequences: &'a mut [Slots],
    env: Env,
    /// Trips so far.
    trips: usize,
}

impl Run<'_> {
    /// Binds what is the same in all trips.
    fn start(&mut self) {
        let Run { l, body, env, .. } = self;
        let at = l.at;
        body.inputs(at.captures, &l.captures, *env);
        body.pack();
        body.start_totals(&l.sums, at.sums, *env);
        taps::clear_zeros(&l.tap_rows, *env);
        // In lockstep, there are `num_tap_rows` rows for each row of the batch, and a tap has all of them.
        taps::clear(&l.taps, l.num_tap_rows, *env);
        taps::bind(body, at.taps, &l.taps, *env);
    }

    /// Binds the values of trip `n`, but the states that it reads from a tape; stores its own.
    fn bind(&mut self, n: usize) {
        let Run { l, along, body, sequences, env, trips } = self;
        let at = l.at;
        let (before, after) = (l.carried.before(*trips), l.carried.after(*trips));
        along.bind(body, n, false, *env);
        body.inputs(at.carry, before, *env);
        for (i, &x) in l.xs.iter().enumerate() {
            body.input(at.xs + i, sequences[x].at(n));
        }
        along.bind_cotangents(body, at.rows, (&l.tap_rows, l.num_tap_rows), n, *env);
        for &(j, to) in &l.stored_states {
            env.bound(before[j]).copy_to(sequences[to].at(n), l.carried.bytes[j]);
        }
        body.outputs(0, after, *env);
        for (i, y) in l.ys.iter().enumerate() {
            let to = match *y {
                Output::Stored(to) => sequences[to].at(n),
                Output::Dropped(at) => env.bound(at),
            };
            body.output(at.ys + i, to);
        }
    }

    /// Runs trip `n`, whose values are bound.
    fn trip(&mut self, n: usize) {
        self.body.run();
        self.along.keep_taps(&self.l.taps, self.l.num_tap_rows, n, self.env);
        self.trips += 1;
    }

    /// Runs all trips, and fills a tape if there is one.
    fn all(&mut self, mut record: Option<(&Record, &mut Tape)>) {
        let count = self.along.count();
        if let Some((_, tape)) = &mut record {
            tape.start(Some(count));
        }
        for trip in 0..count {
            let n = if self.l.is_reversed { count - 1 - trip } else { trip };
            self.bind(n);
            if let Some((of, tape)) = &mut record {
                self.along.keep(tape, n, &of.layout, self.l.carried.before(trip), self.env);
                if of.stored.as_ref().is_some_and(|of| of.bind(&mut self.body, tape, n, self.env)) {
                    tape.keep_residuals(n);
                }
            }
            self.trip(n);
        }
        if let Some((of, tape)) = &mut record {
            self.along.finish(tape, &of.layout, of.stored.as_ref());
        }
    }

    /// Runs the trips at the states that the replayer delivers, from the last one to the first one.
    fn restored(&mut self, r: &Restore, tape: &mut Tape, restorer: &mut Restorer, spaces: &mut [Workspace]) {
        let [step_ws, others @ ..] = spaces else { unreachable!("invariant: the step has a workspace") };
        let mut step = Body { plan: &r.step, ws: step_ws };
        let Restorer { replayer, slots, own, recomputed_residuals, .. } = restorer;
        let (env, head, captures) = (self.env, self.along.head(), &self.l.captures);
        replayer.start(&tape.recorder, self.along.count());
        own.clear();
        let mut state = State::new(&r.layout);
        let mut is_packed = false;
        step.inputs(head + r.layout.parts.len(), captures, env);
        let first_row = head + r.layout.parts.len() + captures.len();
        taps::bind_zeros(&mut step, first_row, &self.l.tap_rows, env);
        let rows = if r.reads_rows { &self.l.tap_rows[..] } else { &[] };
        let rows = (rows, self.l.num_tap_rows);
        let mut residuals = r.residuals.as_ref().map(|of| {
            ResidualReader::new(of, &mut others[0], ((first_row, captures), &self.l.tap_rows), env)
        });
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
                    self.along.bind(&mut step, n, true, env);
                    self.along.bind_cotangents(&mut step, first_row, rows, n, env);
                    state.bind(&mut step, head);
                    let to = &r.running[n % 2];
                    step.outputs(0, to, env);
                    step.run();
                    state.in_buffer(to, env);
                }
                Action::Deliver { step: n } => {
                    self.bind(n);
                    state.bind(&mut self.body, self.l.at.states);
                    let ahead = replayer.next_slot();
                    ahead.inspect(|&slot| prefetch_next(tape.slots.at(slot).ptr(), r.layout.bytes));
                    if let Some(residuals) = &mut residuals {
                        residuals.bind(&mut self.body, tape, (&self.along, n, &state, rows), env);
                    }
                    self.trip(n);
                }
            }
        }
        *recomputed_residuals += residuals.map_or(0, |residuals| residuals.made);
    }
}

impl LoopSpace {
    /// Runs a replay of the plan that `env` belongs to. The sequences and the tape that it reads were stored in
    /// this run, along the same schedule. The rows that trips of the schedule hold are fewer than the loop's tap
    /// rows.
    pub fn replay(&mut self, l: &Replay, env: Env) {
        let LoopSpace { schedules, tapes, sequences, restorers, inner, counters } = self;
        let along = Along::new(l.lockstep.as_ref(), schedules, l.schedule);
        let (own, others) = inner[l.space..].split_first_mut().expect("invariant: a loop has a workspace");
        let (body, count) = (Body { plan: &l.body, ws: own }, along.count());
        let mut run = Run { l, along, body, sequences, env, trips: 0 };
        run.start();
        match &l.restore {
            None => run.all(l.record.as_ref().map(|of| (of, &mut tapes[of.tape]))),
            Some(of) => {
                let restorer = &mut restorers[of.restorer];
                let before = restorer.recomputed_residuals;
                run.restored(of, &mut tapes[of.tape], restorer, others);
                counters.recomputed_residuals += restorer.recomputed_residuals - before;
                restorer.recomputed += restorer.replayer.num_extra();
                counters.recomputed += restorer.replayer.num_extra();
            }
        }
        run.body.finish_totals();
        l.carried.settle(env, run.trips);
        if let Some(of) = &l.record {
            counters.note_kept(&mut tapes[of.tape], count);
        }
        if l.stores_sequences() {
            counters.states_kept_max = counters.states_kept_max.max(count);
        }
    }
}
