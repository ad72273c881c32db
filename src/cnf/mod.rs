//! Continuous normalizing flows: densities as solutions of differential equations.
//!
//! `x = flow(z)`, z from a base density. A flow is one or more vector fields ("blocks"), each integrated over t
//! in `[0, t1]` from the base end to the data end. The density follows the instantaneous change of variables
//! (Chen et al. 2018, eq. 8): along a trajectory, `d log p / dt = -div f`. A [`Cnf`] is a tree: its tensors are
//! the weights and, if the flow is conditioned, the labels; its solver settings are one static leaf.
//!
//! Rows are independent, so every solve runs through [`map_rows`](crate::tensor::map_rows): a tile of rows is
//! solved block by block with its own steps (`per_row`: one set of steps per row), on one thread from start to
//! end. Only `solve` calls the ODE solver; the other files define flows, densities, samples and losses. The module
//! depends on no optimizer, data set or file format.

mod anomaly;
mod base;
#[cfg(feature = "train")]
pub(crate) mod config;
mod density;
mod divergence;
mod estimate;
mod flow;
mod inpaint;
mod matching;
mod mixture;
mod objective;
mod proposal;
mod rows;
mod sample;
mod settings;
mod solve;
mod steps;
mod stream;
mod times;

pub use base::StandardNormal;
pub use divergence::Divergence;
pub use flow::Cnf;
pub use settings::{ErrorNorm, PathRegularization};

pub mod extra {
    //! Less common options, and the return types of a flow's functions.
    pub use super::anomaly::{AnomalyScore, Typicality};
    pub use super::divergence::ProbeDistribution;
    pub use super::estimate::{KlEstimate, KlEstimator};
    pub use super::inpaint::Inpainted;
    pub use super::matching::{ExactVelocity, FlowMatching, FlowPath, PathPoints};
    pub use super::mixture::NormalMixture;
    pub use super::settings::{CnfOptions, StepControl};
    pub use super::solve::FlowStats;
    pub use super::stream::Chunked;
    pub use super::times::Times;
}
pub(crate) use extra::*;

pub use crate::preludes::cnf as prelude;

#[cfg(test)]
mod tests;
