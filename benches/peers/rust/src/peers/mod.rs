//! The crates, each in a file of its own: how a problem is put to it, with the options that make it comparable.
//!
//! Everyone steps as its own controller says, from a first step of its own choice, at rtol = atol, with no more
//! output than the accepted steps or the end, and with its limit on the number of steps raised.

pub mod differential_equations;
pub mod diffsol;
pub mod flowline;
pub mod ode_solvers;
pub mod russell;

use crate::problems::Problem;
use std::marker::PhantomData;

/// More steps than any solve here takes.
pub const MAX_STEPS: u32 = 10_000_000;

/// A problem as a value, for the crates that want a system of a type of its own.
#[derive(Clone, Copy)]
pub struct System<P>(PhantomData<P>);

impl<P: Problem> System<P> {
    pub const NEW: Self = System(PhantomData);
}
