//! A conditional: runs the plan of one of two bodies.
//!
//! Inputs and outputs are bound as addresses, so nothing is copied or allocated. This file does not depend on
//! the operations of the bodies.

use super::bind::Body;
use super::exec::Workspace;
use crate::backend::cpu::address::{Address, Env};
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
    /// Runs a branch in one of the workspaces of the plan's bodies.
    pub fn run(&self, env: Env, inner: &mut [Workspace]) {
        // A truth value is a `u32`.
        let chosen = usize::from(env.bound(self.pred).read::<u32>(0) == 0);
        let mut body = Body { plan: &self.branches[chosen], ws: &mut inner[self.space + chosen] };
        body.inputs(0, &self.inputs, env);
        body.outputs(0, &self.outputs, env);
        body.run();
    }
}
