//! Addresses of a loop's body, bound before each trip, and the running state of a backward pass.
//!
//! This file defines the meaning of a body's inputs; the callers determine the order of trips.

use super::exec::{Workspace, execute};
use super::tape::{Schedule, SlotLayout};
use crate::backend::cpu::address::{Address, Env};
use crate::backend::cpu::plan::{INPUTS, Plan};
use std::ptr::{copy_nonoverlapping, from_ref, null_mut};

/// The plan of a body, and the workspace that holds its addresses.
pub struct Body<'a> {
    pub plan: &'a Plan,
    pub ws: &'a mut Workspace,
}

impl Body<'_> {
    pub fn input(&mut self, k: usize, at: *const u8) {
        self.ws.bases[INPUTS as usize + k] = at.cast_mut();
    }

    pub fn output(&mut self, k: usize, at: *mut u8) {
        self.ws.bases[self.plan.0.first_output() + k] = at;
    }

    pub unsafe fn inputs(&mut self, first: usize, locs: &[Address], env: Env) {
        for (k, loc) in locs.iter().enumerate() {
            // SAFETY: locations of the surrounding plan.
            self.input(first + k, unsafe { env.at(*loc) });
        }
    }

    pub unsafe fn outputs(&mut self, first: usize, locs: &[Address], env: Env) {
        for (k, loc) in locs.iter().enumerate() {
            // SAFETY: locations of the surrounding plan.
            self.output(first + k, unsafe { env.at(*loc) });
        }
    }

    /// Binds inputs 0 to 3 of step `n`: whether it is the first, whether it is the last, t, and t_next.
    pub fn step(&mut self, schedule: &Schedule, n: usize) {
        let (first, last) = (n == 0, n + 1 == schedule.count() && schedule.reached);
        let flag = |set: bool| from_ref(&FLAGS[usize::from(set)]).cast();
        self.input(0, flag(first));
        self.input(1, flag(last));
        self.input(2, from_ref(&schedule.step_times[n]).cast());
        self.input(3, from_ref(&schedule.step_times[n + 1]).cast());
    }

    pub unsafe fn run(&mut self) {
        // SAFETY: all inputs and outputs are bound.
        unsafe { execute(&self.plan.0, self.ws) };
    }
}

/// False and true, as stored in buffers.
static FLAGS: [u32; 2] = [0, 1];

/// The running state of a backward pass: in a slot, or in a running buffer.
pub struct State<'a> {
    layout: &'a SlotLayout,
    slot: *mut u8,
    buffer: Option<(&'a [Address], Env)>,
}

impl<'a> State<'a> {
    pub fn new(layout: &'a SlotLayout) -> State<'a> {
        State { layout, slot: null_mut(), buffer: None }
    }

    pub fn in_slot(&mut self, at: *mut u8) {
        (self.slot, self.buffer) = (at, None);
    }

    pub fn in_buffer(&mut self, locs: &'a [Address], env: Env) {
        self.buffer = Some((locs, env));
    }

    /// The address of part `k`.
    pub unsafe fn part(&self, k: usize) -> *mut u8 {
        // SAFETY: the slot or the buffer holds a state of this layout.
        unsafe {
            match self.buffer {
                Some((locs, env)) => env.at(locs[k]),
                None => self.slot.add(self.layout.parts[k].0),
            }
        }
    }

    pub unsafe fn bind(&self, body: &mut Body<'_>, first: usize) {
        for k in 0..self.layout.parts.len() {
            // SAFETY: as for `part`.
            body.input(first + k, unsafe { self.part(k) });
        }
    }

    pub unsafe fn copy_to(&self, slot: *mut u8) {
        for (k, &(offset, bytes)) in self.layout.parts.iter().enumerate() {
            // SAFETY: the slot has the layout's bytes and is not the one that holds the state.
            unsafe { copy_nonoverlapping(self.part(k), slot.add(offset), bytes) };
        }
    }
}
