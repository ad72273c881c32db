//! Where solves meet tensors: the stepping algorithm of [`ode`](crate::ode) recorded into a graph.
//!
//! `ode` writes one attempted step over a clock and a state; here the clock is a traced f64 and the
//! state a tree of traced tensors. Running `attempt` once on tracers gives the body of a search loop,
//! running `step` once gives the meaning of its accepted trips, and the graph's `Solve` op puts them
//! together. Counters, t, dt and the controller's history are values that the loop carries, so step
//! 10,000 runs what step 1 compiled. Nothing here knows how loops run or are differentiated.
//!
//! Recording is plain Rust code that runs once, so it is compiled once: for [`leaves`] and fields behind pointers, whatever
//! states and fields users have. Only `drive` is generic over those.

mod algorithm;
mod apart;
mod backsolve;
mod bodies;
mod clock;
mod curve;
mod dense;
mod drive;
mod event;
mod event_records;
mod leaves;
mod options;
mod pieces;
mod reversible;
mod root;
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
pub use options::{Adjoint, Batching, ExpectedSteps};
pub use solution::{TensorSolution, TensorStats};

pub mod extra {
    //! Less common options.
    pub use super::options::PartNorm;
}
pub(crate) use extra::PartNorm;

// Bounds of what is public: nobody has to name them.
#[doc(hidden)]
pub use self::{options::Options, state::TensorState};

#[cfg(test)]
mod tests;
