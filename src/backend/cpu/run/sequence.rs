//! The driver of the general loop, and the sequences that it reads and stores.
//!
//! A sequence lies in the workspace of the plan that contains its loop, and keeps its capacity between runs.
//! It has one slot per trip, indexed by the trip's position in the schedule. A trip reads and writes its
//! values in place; only states are copied. Values without readers are not stored. This file implements the
//! contract of [`crate::graph::Loop`].

use super::bind::Body;
use super::loops::{Carried, LoopSpace};
use super::taps::{self, Tap, TapCotangent};
use super::totals::Total;
use crate::backend::cpu::address::{Access, Address, Env};
use crate::backend::cpu::plan::Plan;
use std::ptr::copy_nonoverlapping;

/// The destination of a trip's output.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Output {
    /// The slot of the trip in this sequence.
    Stored(usize),
    /// A scratch location, which nothing reads.
    Dropped(Address),
}

/// Runs `body` along a schedule; see [`crate::graph::Loop`].
#[derive(Debug)]
pub(crate) struct Loop {
    pub body: Plan,
    pub is_reversed: bool,
    pub carried: Carried,
    /// The sequences that the loop reads.
    pub xs: Box<[usize]>,
    pub captures: Box<[Address]>,
    pub rows: Box<[TapCotangent]>,
    /// Which carried values are stored before each trip, and in which sequences.
    pub states: Box<[(usize, usize)]>,
    pub ys: Box<[Output]>,
    pub sums: Box<[Total]>,
    pub taps: Box<[Tap]>,
    pub num_tap_rows: usize,
    pub schedule: usize,
    pub space: usize,
}

impl Loop {
    pub fn each_address(&mut self, f: &mut dyn FnMut(&mut Address, Access)) {
        self.carried.each_address(f);
        self.captures.iter_mut().for_each(|l| f(l, Access::Read));
        self.rows.iter_mut().for_each(|row| row.each_address(f));
        for y in &mut self.ys {
            if let Output::Dropped(at) = y {
                f(at, Access::Write);
            }
        }
        self.sums.iter_mut().for_each(|sum| f(&mut sum.at, Access::Write));
        taps::each_tap(&mut self.taps, f);
    }

    fn stores(&self) -> bool {
        !self.states.is_empty() || self.ys.iter().any(|y| matches!(y, Output::Stored(_)))
    }
}

impl LoopSpace {
    /// # Safety
    /// As for [`LoopSpace::solve`]; the sequences read were stored in this run, along the same schedule.
    pub unsafe fn general(&mut self, l: &Loop, env: Env) {
        let LoopSpace { schedules, sequences, inner, counters, .. } = self;
        let (schedule, mut body) = (&schedules[l.schedule], Body { plan: &l.body, ws: &mut inner[l.space] });
        let (count, num_carry) = (schedule.count(), l.carried.bytes.len());
        let (first_x, first_sum) = (4 + num_carry, num_carry + l.ys.len());
        let first_capture = first_x + l.xs.len();
        // SAFETY: locations of this plan; a slot has the bytes of what it holds and lies outside of the arena.
        unsafe {
            body.inputs(first_capture, &l.captures, env);
            body.pack();
            body.start_totals(&l.sums, first_sum, env);
            taps::clear_zeros(&l.rows, env);
            taps::clear(&l.taps, l.num_tap_rows, env);
            taps::bind(&mut body, first_sum + l.sums.len(), &l.taps, env);
            for trip in 0..count {
                let n = if l.is_reversed { count - 1 - trip } else { trip };
                body.step(schedule, n);
                let (before, after) = (l.carried.before(trip), l.carried.after(trip));
                body.inputs(4, before, env);
                for (i, &x) in l.xs.iter().enumerate() {
                    body.input(first_x + i, sequences[x].at(n));
                }
                taps::bind_cotangents(&mut body, first_capture + l.captures.len(), &l.rows, schedule, n, env);
                for &(j, to) in &l.states {
                    copy_nonoverlapping(env.at(before[j]), sequences[to].at(n), l.carried.bytes[j]);
                }
                body.outputs(0, after, env);
                for (i, y) in l.ys.iter().enumerate() {
                    let at = match *y {
                        Output::Stored(to) => sequences[to].at(n),
                        Output::Dropped(at) => env.at(at),
                    };
                    body.output(num_carry + i, at);
                }
                body.run();
                taps::keep(&l.taps, schedule, n, env);
            }
            body.finish_totals();
            l.carried.settle(env, count);
        }
        if l.stores() {
            counters.states_kept_max = counters.states_kept_max.max(count);
        }
    }
}
