//! A conditional: runs the plan of one of two bodies.
//!
//! Inputs and outputs are bound as addresses, so nothing is copied or allocated. This file does not depend on
//! the operations of the bodies.

use super::bind::Body;
use super::exec::Workspace;
use crate::backend::cpu::address::{Access, Address, Env};
use crate::backend::cpu::plan::Plan;

/// Runs one of two bodies; see [`crate::graph::Cond`].
#[derive(Debug)]
pub(crate) struct Cond {
    pub pred: Address,
    /// The branches for a true and a false predicate.
    pub branches: [Plan; 2],
    pub inputs: Box<[Address]>,
    pub outputs: Box<[Address]>,
    /// Workspace index of the first branch; the second follows.
    pub space: usize,
}

impl Cond {
    pub fn each_address(&mut self, f: &mut dyn FnMut(&mut Address, Access)) {
        f(&mut self.pred, Access::Read);
        self.inputs.iter_mut().for_each(|l| f(l, Access::Read));
        self.outputs.iter_mut().for_each(|l| f(l, Access::Write));
    }

    /// # Safety
    /// The locations are valid in `env`, and the workspaces are prepared for the bodies.
    pub unsafe fn run(&self, env: Env, inner: &mut [Workspace]) {
        // SAFETY: locations of this plan; a truth value is a `u32`.
        unsafe {
            let chosen = usize::from(env.at(self.pred).cast::<u32>().read() == 0);
            let mut body = Body { plan: &self.branches[chosen], ws: &mut inner[self.space + chosen] };
            body.inputs(0, &self.inputs, env);
            body.outputs(0, &self.outputs, env);
            body.run();
        }
    }
}
