//! Solves on tensors: the stepping algorithm of [`ode`](crate::ode) recorded into a graph.
//!
//! `ode` defines one attempted step over a clock and a state. Here the clock is a traced f64 and the state a
//! tree of traced tensors. One run of `attempt` on tracers records the body of the search (the loop that
//! finds the accepted steps), and one run of `step` records the replay of an accepted step; the graph's
//! `Solve` op holds both. Counters, t, dt and the controller's history are values that the loop carries, so
//! step 10,000 runs the program that was compiled for step 1. This module does not depend on how loops run or
//! are differentiated.
//!
//! Recording runs once per trace, so its speed does not matter. Its code is therefore compiled once, over
//! [`leaves`] and fields behind pointers. Only `drive` is generic over the user's states and fields.

mod algorithm;
mod apart;
mod as_numbers;
mod backsolve;
mod behind;
mod bodies;
mod clock;
mod curve;
mod dense;
mod diagnosis;
mod drive;
mod evaluations;
mod event;
mod event_records;
mod input;
mod leaves;
mod mass;
mod options;
mod pieces;
mod problem;
mod reversible;
mod root;
mod rosenbrock;
mod rows;
mod saved;
mod solution;
mod solve;
mod state;
mod stiffness;
mod sweep;
mod union;

pub use crate::graph::Checkpoints;
pub use dense::TensorDenseOutput;
pub use event_records::EventRecords;
pub use input::TensorInterpolation;
pub use options::{Adjoint, Batching, ExpectedSteps};
pub use solution::{TensorSolution, TensorStats};

pub mod extra {
    //! Less common options.
    pub use super::options::PartNorm;
}
pub(crate) use extra::PartNorm;

// Bounds of public items. Users do not need these names.
#[doc(hidden)]
pub use self::{options::Options, state::TensorState};

#[cfg(test)]
mod tests;
