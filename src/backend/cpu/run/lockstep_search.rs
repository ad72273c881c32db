//! The search in lockstep: attempts of all rows at once, accepted or rejected per row.
//!
//! The search fills the rows' schedules and a tape. Rows have different numbers of accepted trips during the
//! search, so the first row that reaches a state determines its slot, and every row then writes its own part.

use super::bind::Body;
use super::lockstep::{LockstepRows, furthest, keep_taps};
use super::loops::{LoopSpace, Solve};
use super::tape::{Schedule, Tape};
use super::taps;
use crate::backend::cpu::address::{Address, Bound, Env};

/// A search in progress.
struct Search<'a> {
    s: &'a Solve,
    rows: &'a LockstepRows,
    env: Env,
    schedules: &'a mut [Schedule],
    tape: &'a mut Tape,
    /// Number of states offered to the checkpoint rule.
    visited: usize,
    /// A word for each row: 1 while the row runs, else 0.
    live: Bound,
    /// accept, running and reached of each row.
    verdicts: [Bound; 3],
    /// The step times before and after an attempt; the two buffers alternate.
    step_times: [Bound; 2],
}

impl LoopSpace {
    /// [`LoopSpace::solve`] in lockstep.
    pub fn solve_rows(&mut self, s: &Solve, rows: &LockstepRows, env: Env) {
        let LoopSpace { schedules, tapes, inner, counters, .. } = self;
        let schedules = &mut schedules[s.schedule..s.schedule + rows.num];
        let mut body = Body { plan: &s.attempt, ws: &mut inner[s.space] };
        let num_carried = s.carried.bytes.len();
        let mut search = Search::start(s, rows, (schedules, &mut tapes[s.tape]), env);
        taps::clear(&s.taps, search.num_tapped_rows(), env);
        taps::bind(&mut body, 4 + num_carried, &s.taps, env);
        body.inputs(2 + num_carried, &s.captures, env);
        body.pack();
        (0..3).for_each(|k| body.output(k, search.verdicts[k]));
        if let Some(left) = &s.left {
            left.start(search.tape, env);
            body.outputs(left.first, &left.spare, env);
        }
        body.input(1, search.live);
        let (live, accepts) = (search.live, search.verdicts[0]);
        let (mut attempts, mut running) = (0, rows.num);
        while running > 0 {
            let [from, to] = [attempts, attempts + 1].map(|k| search.step_times[k % 2]);
            body.input(0, from);
            body.inputs(2, s.carried.before(attempts), env);
            body.output(3, to);
            body.outputs(4, s.carried.after(attempts), env);
            body.run();
            if let Some(left) = &s.left {
                let accepted = |r: usize| live.read::<u32>(r) != 0 && accepts.read::<u32>(r) != 0;
                let step = |r: usize| accepted(r).then(|| search.schedules[r].count());
                left.keep_rows(rows.num, step, search.tape, env);
            }
            for r in (0..rows.num).filter(|&r| live.read::<u32>(r) != 0) {
                counters.attempts += 1;
                if accepts.read::<u32>(r) != 0 {
                    counters.accepted += 1;
                    search.accept(r, s.carried.before(attempts), to.read(r));
                }
            }
            running -= search.end();
            attempts += 1;
        }
        s.carried.settle(env, attempts);
        if s.records {
            let furthest = furthest(search.schedules);
            rows.lend(&s.layout, search.tape, search.schedules, furthest);
            if let Some(left) = &s.left {
                left.finish_rows(rows, search.tape, search.schedules, furthest);
            }
            counters.note_kept(search.tape, search.schedules[furthest].count());
        }
    }
}

impl<'a> Search<'a> {
    /// All rows are live and at their first step time.
    fn start(
        s: &'a Solve,
        rows: &'a LockstepRows,
        (schedules, tape): (&'a mut [Schedule], &'a mut Tape),
        env: Env,
    ) -> Search<'a> {
        let expected = env.bound(s.expected).read::<u32>(0) as usize;
        tape.start((expected > 0).then_some(expected));
        let (live, verdicts) = (env.bound(rows.flags[2]), rows.verdicts.map(|l| env.bound(l)));
        let step_times = rows.step_times.map(|l| env.bound(l));
        env.bound(s.step_time).copy_to(step_times[0], rows.num * size_of::<f64>());
        for (r, schedule) in schedules.iter_mut().enumerate() {
            schedule.start(step_times[0].read(r));
            live.write(r, 1u32);
        }
        Search { s, rows, env, schedules, tape, visited: 0, live, verdicts, step_times }
    }

    /// Number of tapped rows.
    fn num_tapped_rows(&self) -> usize {
        self.s.tapped.map_or(0, |tapped| tapped.taps.num_rows())
    }

    /// Records that a row accepted a trip, from `state` to the step time `to`.
    fn accept(&mut self, row: usize, state: &[Address], to: f64) {
        let (n, num, env) = (self.schedules[row].count(), self.num_tapped_rows(), self.env);
        if self.s.records {
            self.keep(row, n, state);
        }
        let schedule = &mut self.schedules[row];
        if let Some(tapped) = self.s.tapped {
            tapped.note(schedule, row, to, env);
            keep_taps(&self.s.taps, self.rows.num, num, row, schedule, n, env);
        }
        if self.s.is_replayed {
            schedule.step_times.push(to);
        }
    }

    /// Stores a row of the state before its trip `n` if the checkpoint rule selects this state, and parks the
    /// row.
    fn keep(&mut self, row: usize, n: usize, state: &[Address]) {
        let Search { s, rows, env, schedules, tape, visited, live, .. } = self;
        let (layout, env) = (&s.layout, *env);
        if n == *visited {
            *visited += 1;
            if let Some(slot) = tape.recorder.visit(n) {
                let slot = tape.slots.at(slot);
                tape.make_room();
                let ended = |&r: &usize| live.read::<u32>(r) == 0 && schedules[r].count() > 0;
                (0..rows.num).filter(ended).for_each(|r| rows.unpark(r, layout, slot, env));
            }
        }
        if let Ok(i) = tape.recorder.kept().binary_search_by_key(&n, |kept| kept.index) {
            let slot = tape.slots.at(tape.recorder.kept()[i].slot);
            rows.copy(row, layout, |k| env.bound(state[k]), |k| layout.part(slot, k));
        }
        rows.park(row, layout, state, env);
    }

    /// Marks rows that stopped as not live, and fills all later slots with their parked states; returns the
    /// number of such rows.
    fn end(&mut self) -> usize {
        let Search { s, rows, env, schedules, tape, live, verdicts, .. } = self;
        let mut ended = 0;
        for r in (0..rows.num).filter(|&r| live.read::<u32>(r) != 0 && verdicts[1].read::<u32>(r) == 0) {
            schedules[r].reached = verdicts[2].read::<u32>(r) != 0;
            live.write(r, 0u32);
            ended += 1;
            let count = schedules[r].count();
            if s.records && count > 0 {
                let behind = tape.recorder.kept().partition_point(|kept| kept.index < count);
                for i in behind..tape.recorder.kept().len() {
                    let slot = tape.slots.at(tape.recorder.kept()[i].slot);
                    rows.unpark(r, &s.layout, slot, *env);
                }
            }
        }
        ended
    }
}

impl Schedule {
    /// Clears the schedule and adds the first step time.
    pub fn start(&mut self, step_time: f64) {
        self.step_times.clear();
        self.step_times.push(step_time);
        self.held.clear();
        self.reached = false;
    }
}
