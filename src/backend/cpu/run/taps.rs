//! Taps: values that the trips of a loop output, and their cotangents.
//!
//! A trip writes its taps to one location, from which they are copied to the rows that the trip holds. In
//! reverse, a trip reads its row of cotangents in place, or the sum of its rows, or zeros. The schedule
//! records which trip holds which rows.

use super::bind::Body;
use super::tape::Schedule;
use crate::backend::cpu::address::{Address, Bound, Env};
use crate::backend::cpu::kernels::StripFn;
use crate::graph::Taps;
use std::ptr::null;

/// One tapped value.
#[derive(Debug)]
pub(crate) struct Tap {
    /// The location that a trip writes.
    pub trip: Address,
    /// Location of its rows.
    pub rows: Address,
    /// Bytes per row.
    pub bytes: usize,
}

/// The cotangent of one tapped value.
#[derive(Debug)]
pub(crate) struct TapCotangent {
    /// Location of its rows.
    pub rows: Address,
    /// Location for the sum of several rows.
    pub sum: Address,
    /// Location of zeros.
    pub zeros: Address,
    pub add: StripFn,
    pub len: usize,
    /// Bytes per row.
    pub bytes: usize,
}

/// Which trips of a search are tapped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tapped {
    pub taps: Taps,
    /// Location of the times, if any.
    pub times: Option<Address>,
}

impl TapCotangent {
    /// Adds `len` elements to a part of the sum.
    pub fn add(&self, from: Bound, sum: Bound, len: usize) {
        let (from, sum) = (from.ptr(), sum.ptr());
        // SAFETY: `TapCotangent::each_span` gives the rows and the sum, in which the schedule's rows and lanes lie.
        // The kernel reads and writes the sum at one address, and `lower_loops` chose it for the level of the plan.
        unsafe { (self.add)(sum, sum, from, null(), [0.0; 2], len) }
    }
}

impl Tapped {
    /// Records in a schedule which remaining rows the trip to step time `to` holds. `lane` is the row of the
    /// batch in lockstep, else 0.
    pub fn note(&self, schedule: &mut Schedule, lane: usize, to: f64, env: Env) {
        let num = self.taps.times;
        let times = self.times.map_or(&[][..], |at| {
            let at = env.bound(at).part(lane * num * size_of::<f64>(), num * size_of::<f64>());
            // SAFETY: `Solve::each_span` gives `num` aligned numbers per lane, and no step writes them during the
            // search.
            unsafe { std::slice::from_raw_parts(at.ptr().cast::<f64>(), num) }
        });
        let (trip, from) = (schedule.count(), schedule.step_times[schedule.count()]);
        schedule.held.note(&self.taps, times, trip, (from, to));
    }
}

/// Binds the taps as outputs of a body, from `first` on.
pub fn bind(body: &mut Body<'_>, first: usize, taps: &[Tap], env: Env) {
    for (i, tap) in taps.iter().enumerate() {
        body.output(first + i, env.bound(tap.trip));
    }
}

/// Copies the taps of trip `n` to the rows that it holds.
pub fn keep(taps: &[Tap], schedule: &Schedule, n: usize, env: Env) {
    for k in schedule.held.rows_of(n) {
        for tap in taps {
            env.bound(tap.trip).copy_to(env.bound(tap.rows).from(k * tap.bytes), tap.bytes);
        }
    }
}

/// Sets all `num` rows to zero; rows that no trip holds stay zero.
pub fn clear(taps: &[Tap], num: usize, env: Env) {
    for tap in taps {
        env.bound(tap.rows).zero(num * tap.bytes);
    }
}

/// Writes the zeros that trips without a row read.
pub fn clear_zeros(cotangents: &[TapCotangent], env: Env) {
    for ct in cotangents {
        env.bound(ct.zeros).zero(ct.bytes);
    }
}

/// Binds zeros in place of the rows of a trip, from input `first` on: for a body that reads none.
pub fn bind_zeros(body: &mut Body<'_>, first: usize, cotangents: &[TapCotangent], env: Env) {
    for (i, ct) in cotangents.iter().enumerate() {
        body.input(first + i, env.bound(ct.zeros));
    }
}

/// Binds the cotangents of the taps of trip `n` as inputs of a body, from `first` on.
pub fn bind_cotangents(
    body: &mut Body<'_>,
    first: usize,
    cotangents: &[TapCotangent],
    schedule: &Schedule,
    n: usize,
    env: Env,
) {
    for (i, ct) in cotangents.iter().enumerate() {
        let mut rows = schedule.held.rows_of(n);
        let row = |k: usize| env.bound(ct.rows).part(k * ct.bytes, ct.bytes);
        let at = match (rows.next(), rows.next()) {
            (None, _) => env.bound(ct.zeros),
            (Some(k), None) => row(k),
            (Some(k), Some(l)) => {
                let sum = env.bound(ct.sum);
                row(k).copy_to(sum, ct.bytes);
                std::iter::once(l).chain(rows).for_each(|k| ct.add(row(k), sum, ct.len));
                sum
            }
        };
        body.input(first + i, at);
    }
}
