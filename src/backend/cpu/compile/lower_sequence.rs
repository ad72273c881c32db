//! Lowers general loops: compiles their bodies and assigns their buffers and sequences.

use super::lower::Lower;
use super::places::Place;
use crate::backend::cpu::memory::aligned;
use crate::backend::cpu::plan::Trips;
use crate::backend::cpu::run::sequence::{Loop, Output};
use crate::backend::cpu::run::step::Step;
use crate::graph::{self, Op, Type};

impl Lower<'_> {
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

    /// The index of the sequence that is argument `k` of node `id`.
    fn read(&self, id: usize, k: usize) -> usize {
        let Place::Opaque { node } = self.units.operands[id][k] else {
            panic!("invariant: argument {k} of %{id} is a sequence");
        };
        let node = &self.func.nodes()[node];
        let Op::Proj(value) = node.op else {
            panic!("invariant: a sequence is produced in the plan that reads it")
        };
        let made = (node.args[0].index(), value);
        self.sequences.iter().find(|(of, _)| *of == made).expect("invariant: loops are lowered in order").1
    }

    pub fn general(&mut self, id: usize, l: &graph::Loop) {
        let (takes, gives) = (l.body.input_types(), l.body.output_types());
        let (carry, rest) = gives.split_at(l.num_carry);
        let (ys, rest) = rest.split_at(l.num_ys);
        let (sums, taps) = rest.split_at(l.num_sums);
        let carried = self.carried(id, 1, 0, carry);
        let first_capture = l.first_capture() - 3;
        let captures = self.operands(id, first_capture, l.num_captures());
        let xs = (1 + l.num_carry..first_capture).map(|k| self.read(id, k)).collect();
        let rows = self.tap_cotangents(id, l.first_row() - 3, &takes[l.first_row()..]);
        let states = carry.iter().enumerate();
        let states = states.filter_map(|(j, ty)| Some((j, self.stored(id, l.first_state() + j, ty)?)));
        let states = states.collect();
        let ys = ys.iter().enumerate().map(|(i, ty)| match self.stored(id, l.first_y() + i, ty) {
            Some(sequence) => Output::Stored(sequence),
            None => Output::Dropped(self.buffers.arena(ty.bytes())),
        });
        let ys = ys.collect();
        let sums = self.totals(id, l.first_sum(), sums);
        let taps = self.taps(id, l.first_tapped(), (graph::Taps::at(l.num_tap_rows), None), taps);
        let first_sum = l.num_carry + l.num_ys;
        let captured = l.first_capture()..l.first_capture() + l.num_captures();
        let body = self.body("loop", &l.body, Trips { captured, sums: first_sum..first_sum + l.num_sums });
        let schedule = self.made(id, 0).schedule;
        let space = self.inner(&body);
        let (is_reversed, num_tap_rows) = (l.is_reversed, l.num_tap_rows);
        let step = Loop {
            body,
            is_reversed,
            carried,
            xs,
            captures,
            rows,
            states,
            ys,
            sums,
            taps,
            num_tap_rows,
            schedule,
            space,
        };
        self.push(Step::Loop(Box::new(step)), vec![]);
    }
}
