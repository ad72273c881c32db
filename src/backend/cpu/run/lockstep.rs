//! Loops in lockstep: one run of a body is a trip of all rows, but each row has its own schedule.
//!
//! The rows' accepted trips are aligned at the start: trip n of a replay is the n-th accepted trip of each
//! row. For a row with c accepted trips, the state before trip n of the replay is the state before its own
//! trip min(n, c - 1). One checkpoint rule, driven by the row with the most trips, serves all rows. A slot is
//! assigned to a state when the first row reaches this state, and each row writes its part of the slot when
//! it reaches the state. For a row that has ended, the parts of all later slots are filled with the state
//! before its last trip, which is parked for this purpose. Bodies do not change rows that are not live. This
//! file decides which rows are live.

use super::bind::Body;
use super::loops;
use super::residuals::StoredResiduals;
use super::tape::{Schedule, SlotLayout, Tape};
use super::taps::{self, Tap, TapCotangent};
use crate::backend::cpu::address::{Address, Bound, Env};

/// Additional buffers of a loop in lockstep.
#[derive(Debug)]
pub(crate) struct LockstepRows {
    pub num: usize,
    /// first, last, live: a word per row.
    pub flags: [Address; 3],
    /// In a replay, t and t_next of a step. In a search, the step times before and after an attempt; the two
    /// buffers alternate.
    pub step_times: [Address; 2],
    /// accept, running, reached of an attempt: a word per row.
    pub verdicts: [Address; 3],
    /// For each row, the state before its last accepted trip; empty if no tape is filled.
    pub parked: Box<[Address]>,
}

/// The schedules that a replay follows.
pub enum Along<'a> {
    /// One schedule.
    One(&'a Schedule),
    /// A schedule for each row, and the row with the most trips.
    Each(&'a LockstepRows, &'a [Schedule], usize),
}

impl LockstepRows {
    /// Copies a row's part of a state.
    pub fn copy(
        &self,
        row: usize,
        layout: &SlotLayout,
        from: impl Fn(usize) -> Bound,
        to: impl Fn(usize) -> Bound,
    ) {
        for (k, (_, bytes)) in layout.parts.iter().enumerate() {
            let bytes = bytes / self.num;
            from(k).from(row * bytes).copy_to(to(k).from(row * bytes), bytes);
        }
    }

    /// Copies a row's parked state to a slot.
    pub fn unpark(&self, row: usize, layout: &SlotLayout, slot: Bound, env: Env) {
        self.copy(row, layout, |k| env.bound(self.parked[k]), |k| layout.part(slot, k));
    }

    /// Parks a row of the state in `state`.
    pub fn park(&self, row: usize, layout: &SlotLayout, state: &[Address], env: Env) {
        self.copy(row, layout, |k| env.bound(state[k]), |k| env.bound(self.parked[k]));
    }

    /// For rows without a trip, fills every slot with the first state of row `furthest`. These rows also use
    /// the first step times of row `furthest`.
    pub fn lend(&self, layout: &SlotLayout, tape: &mut Tape, schedules: &[Schedule], furthest: usize) {
        let first = tape.slots.at(0);
        for row in (0..self.num).filter(|&r| schedules[r].count() == 0 && schedules[furthest].count() > 0) {
            for i in 0..tape.recorder.kept().len() {
                let to = tape.slots.at(tape.recorder.kept()[i].slot);
                for (k, (_, bytes)) in layout.parts.iter().enumerate() {
                    let (bytes, from, to) = (bytes / self.num, layout.part(first, k), layout.part(to, k));
                    from.from(furthest * bytes).copy_to(to.from(row * bytes), bytes);
                }
            }
        }
    }
}

/// The row with the most trips.
pub fn furthest(schedules: &[Schedule]) -> usize {
    (0..schedules.len()).rev().max_by_key(|&r| schedules[r].count()).unwrap_or(0)
}

impl<'a> Along<'a> {
    pub fn new(rows: Option<&'a LockstepRows>, schedules: &'a [Schedule], first: usize) -> Along<'a> {
        match rows {
            None => Along::One(&schedules[first]),
            Some(rows) => {
                let schedules = &schedules[first..first + rows.num];
                Along::Each(rows, schedules, furthest(schedules))
            }
        }
    }

    /// Number of trips.
    pub fn count(&self) -> usize {
        match self {
            Along::One(schedule) => schedule.count(),
            Along::Each(_, schedules, furthest) => schedules[*furthest].count(),
        }
    }

    /// Number of inputs of a body that precede the carried values.
    pub fn head(&self) -> usize {
        match self {
            Along::One(_) => 4,
            Along::Each(..) => 5,
        }
    }

    /// Binds the inputs of a body that precede the carried values, for trip `n`. In a trip that recomputes the state before
    /// the next one, rows in their last trip are not live.
    pub fn bind(&self, body: &mut Body<'_>, n: usize, recomputes: bool, env: Env) {
        let (rows, schedules, furthest) = match self {
            Along::One(schedule) => return body.step(schedule, n),
            Along::Each(rows, schedules, furthest) => (rows, schedules, *furthest),
        };
        let [first, last, live] = rows.flags.map(|l| env.bound(l));
        let [t, t_next] = rows.step_times.map(|l| env.bound(l));
        for r in 0..rows.num {
            let count = schedules[r].count();
            let own = if count == 0 { &schedules[furthest] } else { &schedules[r] };
            let i = n.min(count.max(1) - 1);
            first.write(r, u32::from(i == 0));
            last.write(r, u32::from(i + 1 == own.count() && own.reached));
            live.write(r, u32::from(n + usize::from(recomputes) < count));
            t.write(r, own.step_times[i]);
            t_next.write(r, own.step_times[i + 1]);
        }
        [first, last, t, t_next, live].into_iter().enumerate().for_each(|(k, at)| body.input(k, at));
    }

    /// Stores the state before trip `n` of a forward pass, given in `state`, if the checkpoint rule selects
    /// it. In lockstep, also parks the rows that take part in the trip, and stores the parked states of
    /// ended rows.
    pub fn keep(&self, tape: &mut Tape, n: usize, layout: &SlotLayout, state: &[Address], env: Env) {
        let slot = loops::keep(tape, n, layout, state, env);
        let Along::Each(rows, schedules, _) = self else { return };
        for (r, schedule) in schedules.iter().enumerate() {
            match slot {
                _ if n < schedule.count() => rows.park(r, layout, state, env),
                Some(slot) if schedule.count() > 0 => rows.unpark(r, layout, slot, env),
                _ => {}
            }
        }
    }

    /// Completes a tape after its forward pass.
    pub fn finish(&self, tape: &mut Tape, layout: &SlotLayout, stored: Option<&StoredResiduals>) {
        if let Along::Each(rows, schedules, furthest) = self {
            rows.lend(layout, tape, schedules, *furthest);
            stored.into_iter().for_each(|of| of.finish_rows(rows, tape, schedules, *furthest));
        }
    }

    /// Copies the taps of trip `n` to the tapped rows that it holds. In lockstep, each row of the batch has
    /// `num` tapped rows.
    pub fn keep_taps(&self, all: &[Tap], num: usize, n: usize, env: Env) {
        // Most loops have no taps, and the rows of a trip are found by a search.
        if all.is_empty() {
            return;
        }
        match self {
            Along::One(schedule) => taps::keep(all, schedule, n, env),
            Along::Each(rows, schedules, _) => {
                (0..rows.num).for_each(|r| keep_taps(all, rows.num, num, r, &schedules[r], n, env));
            }
        }
    }

    /// Binds the cotangents of the taps of trip `n` as inputs of a body, from `first` on. In lockstep, each
    /// row of the batch has `num` tapped rows.
    pub fn bind_cotangents(
        &self,
        body: &mut Body<'_>,
        first: usize,
        (cotangents, num): (&[TapCotangent], usize),
        n: usize,
        env: Env,
    ) {
        let (rows, schedules) = match self {
            Along::One(one) => return taps::bind_cotangents(body, first, cotangents, one, n, env),
            Along::Each(rows, schedules, _) => (rows, schedules),
        };
        for (i, ct) in cotangents.iter().enumerate() {
            let (bytes, len) = (ct.bytes / rows.num, ct.len / rows.num);
            let sum = env.bound(ct.sum);
            sum.zero(ct.bytes);
            for (r, schedule) in schedules.iter().enumerate() {
                let to = sum.part(r * bytes, bytes);
                for (m, k) in schedule.held.rows_of(n).enumerate() {
                    let from = env.bound(ct.rows).part((r * num + k) * bytes, bytes);
                    match m {
                        0 => from.copy_to(to, bytes),
                        _ => ct.add(from, to, len),
                    }
                }
            }
            body.input(first + i, sum);
        }
    }
}

/// Copies the taps of trip `n` of row `r` to the tapped rows that the trip holds.
pub fn keep_taps(all: &[Tap], rows: usize, num: usize, r: usize, schedule: &Schedule, n: usize, env: Env) {
    for k in schedule.held.rows_of(n) {
        for tap in all {
            let bytes = tap.bytes / rows;
            env.bound(tap.trip)
                .from(r * bytes)
                .copy_to(env.bound(tap.rows).from((r * num + k) * bytes), bytes);
        }
    }
}
