//! Taps: values that the trips of a loop output, and their cotangents.
//!
//! A trip writes its taps to one location, from which they are copied to the rows that the trip holds. In
//! reverse, a trip reads its row of cotangents in place, or the sum of its rows, or zeros. The schedule
//! records which trip holds which rows.

use super::bind::Body;
use super::tape::Schedule;
use crate::backend::cpu::address::{Access, Address, Env};
use crate::backend::cpu::kernels::StripFn;
use crate::graph::Taps;
use std::ptr::{copy_nonoverlapping, null, write_bytes};

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

pub fn each_tap(taps: &mut [Tap], f: &mut dyn FnMut(&mut Address, Access)) {
    for tap in taps {
        f(&mut tap.trip, Access::Write);
        f(&mut tap.rows, Access::Write);
    }
}

impl TapCotangent {
    pub fn each_address(&mut self, f: &mut dyn FnMut(&mut Address, Access)) {
        f(&mut self.rows, Access::Read);
        f(&mut self.sum, Access::Write);
        f(&mut self.zeros, Access::Write);
    }
}

impl Tapped {
    /// Records in a schedule which remaining rows the trip to step time `to` holds. `lane` is the row of the
    /// batch in lockstep, else 0.
    pub unsafe fn note(&self, schedule: &mut Schedule, lane: usize, to: f64, env: Env) {
        let num = self.taps.times;
        let times = self.times.map_or(&[][..], |at| {
            // SAFETY: the location holds an f64 array of this length per lane.
            unsafe { std::slice::from_raw_parts(env.at(at).cast::<f64>().add(lane * num), num) }
        });
        let (trip, from) = (schedule.count(), schedule.step_times[schedule.count()]);
        schedule.held.note(&self.taps, times, trip, (from, to));
    }
}

/// Binds the taps as outputs of a body, from `first` on.
pub unsafe fn bind(body: &mut Body<'_>, first: usize, taps: &[Tap], env: Env) {
    for (i, tap) in taps.iter().enumerate() {
        // SAFETY: a location of this plan.
        body.output(first + i, unsafe { env.at(tap.trip) });
    }
}

/// Copies the taps of trip `n` to the rows that it holds.
pub unsafe fn keep(taps: &[Tap], schedule: &Schedule, n: usize, env: Env) {
    for k in schedule.held.rows_of(n) {
        for tap in taps {
            // SAFETY: row `k` exists, has these bytes and does not overlap the trip's location.
            unsafe { copy_nonoverlapping(env.at(tap.trip), env.at(tap.rows).add(k * tap.bytes), tap.bytes) };
        }
    }
}

/// Sets all `num` rows to zero; rows that no trip holds stay zero.
pub unsafe fn clear(taps: &[Tap], num: usize, env: Env) {
    for tap in taps {
        // SAFETY: there are `num` rows of these bytes.
        unsafe { write_bytes(env.at(tap.rows), 0, num * tap.bytes) };
    }
}

/// Writes the zeros that trips without a row read.
pub unsafe fn clear_zeros(cotangents: &[TapCotangent], env: Env) {
    for ct in cotangents {
        // SAFETY: the location has these bytes.
        unsafe { write_bytes(env.at(ct.zeros), 0, ct.bytes) };
    }
}

/// Binds the cotangents of the taps of trip `n` as inputs of a body, from `first` on.
pub unsafe fn bind_cotangents(
    body: &mut Body<'_>,
    first: usize,
    cotangents: &[TapCotangent],
    schedule: &Schedule,
    n: usize,
    env: Env,
) {
    for (i, ct) in cotangents.iter().enumerate() {
        let mut rows = schedule.held.rows_of(n);
        // SAFETY: these rows exist; the sum is as long as one row and is read and written at the same address.
        unsafe {
            let row = |k: usize| env.at(ct.rows).add(k * ct.bytes);
            let at = match (rows.next(), rows.next()) {
                (None, _) => env.at(ct.zeros),
                (Some(k), None) => row(k),
                (Some(k), Some(l)) => {
                    let sum = env.at(ct.sum);
                    copy_nonoverlapping(row(k), sum, ct.bytes);
                    for k in std::iter::once(l).chain(rows) {
                        (ct.add)(sum, sum, row(k), null(), [0.0; 2], ct.len);
                    }
                    sum
                }
            };
            body.input(first + i, at);
        }
    }
}
