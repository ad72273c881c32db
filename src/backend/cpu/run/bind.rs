//! Addresses of a loop's body, bound before each trip, and the running state of a backward pass.
//!
//! This file defines the meaning of a body's inputs; the callers determine the order of trips.

use super::exec::{Workspace, execute};
use super::tape::{Schedule, SlotLayout};
use crate::backend::cpu::address::{Address, Bound, Env};
use crate::backend::cpu::plan::{INPUTS, Plan};

/// The plan of a body, and the workspace that holds its addresses.
pub struct Body<'a> {
    pub plan: &'a Plan,
    pub ws: &'a mut Workspace,
}

impl Body<'_> {
    pub fn input(&mut self, k: usize, at: Bound) {
        self.ws.bases[INPUTS as usize + k] = at;
    }

    pub fn output(&mut self, k: usize, at: Bound) {
        self.ws.bases[self.plan.0.first_output() + k] = at;
    }

    pub fn inputs(&mut self, first: usize, locs: &[Address], env: Env) {
        for (k, loc) in locs.iter().enumerate() {
            self.input(first + k, env.bound(*loc));
        }
    }

    pub fn outputs(&mut self, first: usize, locs: &[Address], env: Env) {
        for (k, loc) in locs.iter().enumerate() {
            self.output(first + k, env.bound(*loc));
        }
    }

    /// Binds inputs 0 to 3 of step `n`: whether it is the first, whether it is the last, t, and t_next.
    pub fn step(&mut self, schedule: &Schedule, n: usize) {
        let (first, last) = (n == 0, n + 1 == schedule.count() && schedule.reached);
        let flag = |set: bool| Bound::of(&FLAGS[usize::from(set)]);
        self.input(0, flag(first));
        self.input(1, flag(last));
        self.input(2, Bound::of(&schedule.step_times[n]));
        self.input(3, Bound::of(&schedule.step_times[n + 1]));
    }

    /// Runs the body. All inputs and outputs are bound, and the workspace has been prepared for the plan.
    pub fn run(&mut self) {
        debug_assert_eq!(
            self.ws.bases.len(),
            self.plan.0.num_bases(),
            "invariant: the workspace of the plan"
        );
        // SAFETY: loops bind each input and output to a slot, or to an address of the surrounding plan.
        // `loop_extents` gives the type of the value for each of these addresses, and `check_plan` has checked
        // that the value fits there and that results overlap nothing else.
        unsafe { execute(&self.plan.0, self.ws) };
    }
}

/// False and true, as stored in buffers.
static FLAGS: [u32; 2] = [0, 1];

/// The running state of a backward pass: in a slot, or in a running buffer.
pub struct State<'a> {
    layout: &'a SlotLayout,
    slot: Bound,
    buffer: Option<(&'a [Address], Env)>,
}

impl<'a> State<'a> {
    pub fn new(layout: &'a SlotLayout) -> State<'a> {
        State { layout, slot: Bound::NONE, buffer: None }
    }

    pub fn in_slot(&mut self, at: Bound) {
        (self.slot, self.buffer) = (at, None);
    }

    pub fn in_buffer(&mut self, locs: &'a [Address], env: Env) {
        self.buffer = Some((locs, env));
    }

    /// Part `k`.
    pub fn part(&self, k: usize) -> Bound {
        match self.buffer {
            Some((locs, env)) => env.bound(locs[k]),
            None => self.layout.part(self.slot, k),
        }
    }

    pub fn bind(&self, body: &mut Body<'_>, first: usize) {
        for k in 0..self.layout.parts.len() {
            body.input(first + k, self.part(k));
        }
    }

    /// Copies the state to a slot, which is not the one that holds it.
    pub fn copy_to(&self, slot: Bound) {
        for (k, &(_, bytes)) in self.layout.parts.iter().enumerate() {
            self.part(k).copy_to(self.layout.part(slot, k), bytes);
        }
    }
}
