//! One file per crate: how a problem is passed to it, with options that make the crates comparable.
//!
//! Every crate uses its own controller and initial step size at rtol = atol. It saves at most the accepted steps or the end, and
//! its limit on the number of steps is raised.

pub mod differential_equations;
pub mod diffsol;
pub mod flowline;
pub mod ode_solvers;
pub mod russell;

use crate::problems::Problem;
use std::marker::PhantomData;

/// More steps than any solve here takes.
pub const MAX_STEPS: u32 = 10_000_000;

/// A problem as a value, for crates that need their own system type.
#[derive(Clone, Copy)]
pub struct System<P>(PhantomData<P>);

impl<P: Problem> System<P> {
    pub const NEW: Self = System(PhantomData);
}
