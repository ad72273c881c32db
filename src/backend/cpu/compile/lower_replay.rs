//! Lowers replays: compiles their bodies, and assigns their buffers, tapes and sequences.

use super::lower::Lower;
use super::lower_loops::{Made, captured};
use crate::backend::BodyKind;
use crate::backend::cpu::memory::aligned;
use crate::backend::cpu::plan::{Plan, Trips};
use crate::backend::cpu::run::replay::{Output, Positions, Record, Replay, Restore};
use crate::backend::cpu::run::residuals::ReadResiduals;
use crate::backend::cpu::run::step::Step;
use crate::backend::cpu::run::tape::SlotLayout;
use crate::graph::{self, Type, indices};
use crate::transform::{plain_replay, used_inputs};

/// Where the groups of the inputs and outputs of a body start.
fn positions(l: &graph::Replay) -> Positions {
    let first = |group: Vec<usize>| group.first().copied().unwrap_or(0);
    let takes = l.inputs(&indices(l.body.num_inputs()));
    let gives = l.outputs(&indices(l.body.num_outputs()));
    Positions {
        carry: first(takes.carry),
        states: first(takes.states),
        xs: first(takes.xs),
        captures: first(takes.captures),
        rows: first(takes.rows),
        ys: first(gives.ys),
        sums: first(gives.sums),
        taps: first(gives.taps),
    }
}

impl Lower<'_> {
    pub fn replay(&mut self, id: usize, l: &graph::Replay) {
        let plain = plain_replay(l);
        let l = &plain;
        let (operands, places) = (l.operands(&indices(self.func.nodes()[id].args.len())), l.places());
        let (takes, gives) = (l.inputs(&l.body.input_types()), l.outputs(&l.body.output_types()));
        let carried = self.carried(id, &operands.carry, &places.carry, &gives.carry);
        let captures = self.operands(id, &operands.captures);
        let xs = operands.xs.iter().map(|&k| self.sequence(id, k)).collect();
        let tap_rows = self.tap_rows(id, &operands.rows, &takes.rows);
        let states = places.states.iter().zip(&gives.carry).enumerate();
        let stored_states: Box<[_]> =
            states.filter_map(|(j, (&k, ty))| Some((j, self.stored(id, k, ty)?))).collect();
        let ys = places.ys.iter().zip(&gives.ys).map(|(&k, ty)| match self.stored(id, k, ty) {
            Some(sequence) => Output::Stored(sequence),
            None => Output::Dropped(self.buffers.arena(ty.bytes())),
        });
        let ys = ys.collect();
        let taps = self.taps(id, &places.tapped, &gives.taps, &l.tapped(&gives.taps));
        let at = positions(l);
        let trips = captured(l.first_capture(), captures.len());
        let trips = Trips { sums: at.sums..at.sums + gives.sums.len(), ..trips };
        let schedule = self.made(id, operands.schedule[0]).schedule;
        let (body, record, restore) = if let Some(&tape) = operands.tape.first() {
            let (body, restore) = self.restored(id, l, (tape, &takes.states), trips);
            (body, None, Some(restore))
        } else {
            let is_step = !l.is_reversed && stored_states.is_empty() && l.num_xs + l.num_ys + l.num_sums == 0;
            let kind = if is_step { BodyKind::Step } else { BodyKind::Loop };
            let (body, record) = self.recorded(id, (kind, l), (schedule, &gives.carry), trips);
            (body, record, None)
        };
        let lockstep = l.lockstep().map(|n| self.rows(n, if record.is_some() { &gives.carry } else { &[] }));
        let sums = self.totals(id, &places.sums, &gives.sums);
        let space = self.inner(&body);
        if let Some(of) = &restore {
            self.inner(&of.step);
            if let Some(residuals) = &of.residuals {
                self.inner(&residuals.recompute);
            }
        }
        let step = Replay {
            body,
            at,
            is_reversed: l.is_reversed,
            carried,
            xs,
            captures,
            tap_rows,
            stored_states,
            ys,
            sums,
            taps,
            num_tap_rows: l.num_tap_rows,
            lockstep,
            record,
            restore,
            schedule,
            space,
        };
        self.push(Step::Replay(Box::new(step)), vec![]);
    }

    /// The body of a loop that reads no states, and the tape that it fills.
    fn recorded(
        &mut self,
        id: usize,
        (kind, l): (BodyKind, &graph::Replay),
        (schedule, carry): (usize, &[Type]),
        trips: Trips,
    ) -> (Plan, Option<Record>) {
        let tape = l.places().tape[0];
        let layout = SlotLayout::of(carry.iter().map(Type::bytes));
        let residuals = self.residuals(id, tape, layout.bytes, l.policy);
        let (body, stored) = self.forward((id, kind), &l.body, (residuals.as_ref(), &[]), trips);
        if !self.is_read(id, tape) {
            self.made.push((id, Made { schedule, tape: None }));
            return (body, None);
        }
        let of_tape = self.tape(id, &layout, stored.as_ref(), l.policy);
        self.made.push((id, Made { schedule, tape: Some(of_tape) }));
        self.halves.extend(residuals.map(|r| (of_tape, r)));
        self.keeps(true, l.policy, of_tape);
        (body, Some(Record { tape: of_tape, layout, stored }))
    }

    /// The body of a loop that reads the states of operand `tape`, and how it restores them.
    fn restored(
        &mut self,
        id: usize,
        l: &graph::Replay,
        (tape, states): (usize, &[Type]),
        trips: Trips,
    ) -> (Plan, Restore) {
        let layout = SlotLayout::of(states.iter().map(Type::bytes));
        let step = l.step.as_ref().expect("invariant: a loop that reads states has a step");
        let of_step = captured(l.first_step_capture(), l.num_captures());
        let reads_rows = l.step_inputs(&used_inputs(step)).rows.contains(&true);
        let step = self.body(BodyKind::RestoringStep, step, of_step.clone());
        let tape = self.made(id, tape).tape.expect("invariant: a tape that is read is filled");
        let stored = self.spaces.tapes[tape];
        assert_eq!(
            layout.bytes, stored.state_bytes,
            "invariant: %{id} reads the states that its tape stores"
        );
        let half = self.halves.iter().position(|(of, _)| *of == tape).map(|k| self.halves.swap_remove(k).1);
        let body =
            self.body(BodyKind::BackwardStep, half.as_ref().map_or(&l.body, |half| &half.backward), trips);
        let residuals = half.map(|half| {
            let types = half.recompute.output_types();
            let layout = SlotLayout::of(types.iter().map(Type::bytes));
            let bytes = stored.residual_bytes;
            assert_eq!(layout.bytes, bytes, "invariant: %{id} reads the residuals that its tape stores");
            ReadResiduals {
                recompute: self.body(BodyKind::Stages, &half.recompute, of_step),
                layout,
                num_before: types.len() - half.num_own,
                spare: self.temporaries(&types),
                first: l.body.num_inputs(),
            }
        });
        let running = [self.temporaries(states), self.temporaries(states)];
        self.spaces.restorers.push((layout.bytes, self.spaces.tapes[tape].num));
        let restorer = self.spaces.restorers.len() - 1;
        self.loops.iter_mut().filter(|l| l.tape == tape).for_each(|l| l.restorers.push(restorer));
        // Earlier loops that read the tape are no longer its last reader.
        for earlier in &mut self.steps {
            if let Step::Replay(earlier) = earlier
                && let Some(earlier) = earlier.restore.as_mut().filter(|of| of.tape == tape)
            {
                earlier.is_last = false;
            }
        }
        (body, Restore { step, layout, running, reads_rows, residuals, tape, is_last: true, restorer })
    }

    /// Adds a sequence for value `k` of node `id` and returns its index; `None` if no node reads the value.
    fn stored(&mut self, id: usize, k: usize, ty: &Type) -> Option<usize> {
        if !self.is_read(id, k) {
            return None;
        }
        self.spaces.sequences.push(aligned(ty.bytes()));
        let sequence = self.spaces.sequences.len() - 1;
        self.sequences.push(((id, k), sequence));
        Some(sequence)
    }

    /// The index of the sequence that is operand `k` of node `id`.
    fn sequence(&self, id: usize, k: usize) -> usize {
        let made = self.maker(id, k);
        self.sequences.iter().find(|(of, _)| *of == made).expect("invariant: loops are lowered in order").1
    }
}
