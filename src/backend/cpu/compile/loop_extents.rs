//! The bytes that loops, tiles and conditionals use at their addresses.
//!
//! These steps bind their values to the inputs and outputs of other plans, so the types of these plans give the
//! bytes.

use super::extents::{bytes, elements};
use crate::backend::cpu::address::{Access, Address, Extent, Visit};
use crate::backend::cpu::run::cond::Cond;
use crate::backend::cpu::run::lockstep::LockstepRows;
use crate::backend::cpu::run::loops::{Carried, Solve};
use crate::backend::cpu::run::replay::{Output, Replay, Restore};
use crate::backend::cpu::run::residuals::{ReadResiduals, StoredResiduals};
use crate::backend::cpu::run::tape::SlotLayout;
use crate::backend::cpu::run::taps::{Tap, TapCotangent};
use crate::backend::cpu::run::tiles::{Out, Tiles};
use crate::graph::Type;

/// A value of this type.
fn value(ty: &Type, access: Access) -> Extent {
    Extent { bytes: ty.bytes(), align: ty.dtype().size(), access }
}

/// Values of these types, one per address.
fn values(all: &mut [Address], types: &[Type], access: Access, f: &mut Visit<'_>) {
    let types = &types[..all.len()];
    for (at, ty) in all.iter_mut().zip(types) {
        f(at, value(ty, access));
    }
}

impl Carried {
    /// `types` starts with the types of the carried values.
    fn each_span(&mut self, types: &[Type], f: &mut Visit<'_>) {
        let is_typed = self.bytes.iter().zip(types).all(|(&bytes, ty)| bytes == ty.bytes());
        assert!(is_typed, "invariant: carried values have the bytes of their types");
        values(&mut self.initial, types, Access::Read, f);
        values(&mut self.result, types, Access::Write, f);
        values(&mut self.other, types, Access::Write, f);
    }
}

fn each_tap(taps: &mut [Tap], num_rows: usize, types: &[Type], f: &mut Visit<'_>) {
    let types = &types[..taps.len()];
    for (tap, ty) in taps.iter_mut().zip(types) {
        assert_eq!(tap.bytes, ty.bytes(), "invariant: a tap has the bytes of its type");
        f(&mut tap.trip, value(ty, Access::Write));
        f(&mut tap.rows, bytes(num_rows * tap.bytes, Access::Write));
    }
}

impl TapCotangent {
    fn each_span(&mut self, num_rows: usize, ty: &Type, f: &mut Visit<'_>) {
        assert_eq!((self.bytes, self.len), (ty.bytes(), ty.shape().size()), "invariant: of {ty}");
        let rows = Extent { bytes: num_rows * self.bytes, ..value(ty, Access::Read) };
        f(&mut self.rows, rows);
        f(&mut self.sum, value(ty, Access::Write));
        f(&mut self.zeros, value(ty, Access::Write));
    }
}

impl LockstepRows {
    fn each_span(&mut self, layout: Option<&SlotLayout>, f: &mut Visit<'_>) {
        let words = elements(self.num, size_of::<u32>(), Access::Write);
        self.flags.iter_mut().chain(&mut self.verdicts).for_each(|at| f(at, words));
        let times = elements(self.num, size_of::<f64>(), Access::Write);
        self.step_times.iter_mut().for_each(|at| f(at, times));
        let parts = layout.map_or(&[][..], |layout| &layout.parts[..self.parked.len()]);
        assert_eq!(self.parked.len(), parts.len(), "invariant: parked values are parts of a state");
        for (at, &(_, len)) in self.parked.iter_mut().zip(parts) {
            f(at, bytes(len, Access::Write));
        }
    }
}

impl StoredResiduals {
    /// `outputs` are the types of the outputs of the body that stores them.
    fn each_span(&mut self, outputs: &[Type], f: &mut Visit<'_>) {
        values(&mut self.spare, &outputs[self.first..], Access::Write, f);
        let last = outputs.len() - self.first_trip.len();
        values(&mut self.first_trip, &outputs[last..], Access::Read, f);
    }
}

impl ReadResiduals {
    fn each_span(&mut self, f: &mut Visit<'_>) {
        values(&mut self.spare, self.recompute.output_types(), Access::Write, f);
    }
}

impl Restore {
    fn each_span(&mut self, f: &mut Visit<'_>) {
        for running in &mut self.running {
            values(running, self.step.output_types(), Access::Write, f);
        }
        self.residuals.iter_mut().for_each(|residuals| residuals.each_span(f));
    }
}

impl Solve {
    pub fn each_span(&mut self, f: &mut Visit<'_>) {
        let (inputs, outputs) = (self.attempt.input_types(), self.attempt.output_types());
        let (rows, head) = self.rows.as_ref().map_or((1, 1), |rows| (rows.num, 2));
        let num_carried = self.carried.bytes.len();
        f(&mut self.expected, elements(1, size_of::<u32>(), Access::Read));
        f(&mut self.step_time, elements(rows, size_of::<f64>(), Access::Read));
        if let Some(tapped) = &mut self.tapped {
            let times = elements(rows * tapped.taps.times, size_of::<f64>(), Access::Read);
            tapped.times.iter_mut().for_each(|at| f(at, times));
        }
        let num_rows = self.tapped.map_or(0, |tapped| tapped.taps.num_rows());
        each_tap(&mut self.taps, num_rows, &outputs[4 + num_carried..], f);
        values(&mut self.captures, &inputs[head + num_carried..], Access::Read, f);
        self.rows.iter_mut().for_each(|rows| rows.each_span(Some(&self.layout), f));
        self.left.iter_mut().for_each(|left| left.each_span(outputs, f));
        self.carried.each_span(&inputs[head..], f);
    }
}

impl Replay {
    pub fn each_span(&mut self, f: &mut Visit<'_>) {
        let at = self.at;
        let (inputs, outputs) = (self.body.input_types(), self.body.output_types());
        self.carried.each_span(&inputs[at.carry..], f);
        values(&mut self.captures, &inputs[at.captures..], Access::Read, f);
        let types = &inputs[at.rows..][..self.tap_rows.len()];
        for (row, ty) in self.tap_rows.iter_mut().zip(types) {
            row.each_span(self.num_tap_rows, ty, f);
        }
        let types = &outputs[at.ys..][..self.ys.len()];
        for (y, ty) in self.ys.iter_mut().zip(types) {
            if let Output::Dropped(at) = y {
                f(at, value(ty, Access::Write));
            }
        }
        let types = &outputs[at.sums..][..self.sums.len()];
        for (sum, ty) in self.sums.iter_mut().zip(types) {
            assert_eq!(sum.bytes, ty.bytes(), "invariant: a sum has the bytes of its type");
            f(&mut sum.at, value(ty, Access::Write));
        }
        each_tap(&mut self.taps, self.num_tap_rows, &outputs[at.taps..], f);
        let layout = self.record.as_ref().map(|record| &record.layout);
        self.lockstep.iter_mut().for_each(|rows| rows.each_span(layout, f));
        let stored = self.record.iter_mut().filter_map(|record| record.stored.as_mut());
        stored.for_each(|stored| stored.each_span(outputs, f));
        self.restore.iter_mut().for_each(|restore| restore.each_span(f));
    }
}

impl Tiles {
    pub fn each_span(&mut self, f: &mut Visit<'_>) {
        let whole = self.row0.len().saturating_sub(self.tail.is_some().into());
        let tail = self.tail.as_ref();
        let inputs = self.body.input_types();
        for (k, (at, _)) in self.rowed.iter_mut().enumerate() {
            let rest = tail.map_or(0, |tail| tail.input_types()[1 + k].bytes());
            let one = value(&inputs[1 + k], Access::Read);
            f(at, Extent { bytes: whole * one.bytes + rest, ..one });
        }
        values(&mut self.shared, &inputs[1 + self.rowed.len()..], Access::Read, f);
        let types = &self.body.output_types()[..self.outs.len()];
        for (k, (out, ty)) in self.outs.iter_mut().zip(types).enumerate() {
            let one = value(ty, Access::Write);
            match out {
                Out::Rows { at, .. } => {
                    let rest = tail.map_or(0, |tail| tail.output_types()[k].bytes());
                    f(at, Extent { bytes: whole * one.bytes + rest, ..one });
                }
                Out::Sum { at, parts, stride, .. } => {
                    f(at, one);
                    let last = self.row0.len().checked_sub(2);
                    let bytes = last.map_or(0, |last| last * *stride + one.bytes);
                    f(parts, Extent { bytes, ..one });
                }
            }
        }
    }
}

impl Cond {
    pub fn each_span(&mut self, f: &mut Visit<'_>) {
        let [then, _] = &self.branches;
        f(&mut self.pred, elements(1, size_of::<u32>(), Access::Read));
        values(&mut self.inputs, then.input_types(), Access::Read, f);
        values(&mut self.outputs, then.output_types(), Access::Write, f);
    }
}
