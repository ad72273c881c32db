//! flowline: solve ODEs, differentiate through the solve, train continuous normalizing flows.
//!
//! - [`ode`]: solves of host values; the stepping algorithm is written there, once.
//! - `tensor`: tensors, `jit`, gradients; `adjoint`: the same solves on tensors, differentiable.
//! - `nn`, `optim`, `cnf`: layers, optimizers, flows; `memory`: what lives and what is kept compiled.
//! - `plot`, [`io`]: pictures of solutions and densities, files.
//! - `data`, `eval`, `train`: images as densities, points, sets of images, what is measured of a learned density and how it
//!   is shown, the training loop, run folders.
//! - `guide`: from the first solve to an image flow, one program after the other.
//!
//! Below these, `graph`, `transform` and `backend` are the traced program, its derivatives and how it
//! runs; ARCHITECTURE.md is the map. [`prelude`] has the names that programs use.

#[cfg(feature = "tensor")]
pub mod adjoint;
#[cfg(feature = "tensor")]
pub mod array;
#[cfg(feature = "tensor")]
pub mod backend;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "tensor")]
pub mod cnf;
#[cfg(feature = "train")]
pub mod data;
mod error;
#[cfg(feature = "train")]
pub mod eval;
#[cfg(all(fuzzing, feature = "tensor"))]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(feature = "tensor")]
pub mod graph;
pub mod io;
#[cfg(feature = "tensor")]
pub mod memory;
#[cfg(feature = "train")]
mod names;
#[cfg(feature = "tensor")]
pub mod nn;
pub mod ode;
#[cfg(feature = "tensor")]
pub mod optim;
#[cfg(feature = "plot")]
pub mod plot;
pub mod simd;
#[cfg(feature = "tensor")]
pub mod tensor;
#[cfg(feature = "train")]
pub mod train;
#[cfg(feature = "tensor")]
pub mod transform;

pub use error::{Error, Result};
#[cfg(feature = "nalgebra")]
pub use nalgebra;
#[cfg(feature = "ndarray")]
pub use ndarray;

#[cfg(feature = "tensor")]
#[doc = include_str!("guide.md")]
#[cfg_attr(feature = "train", doc = include_str!("guide_runs.md"))]
pub mod guide {}

pub mod prelude {
    //! The names that programs use.
    #[cfg(feature = "tensor")]
    pub use crate::adjoint::{Adjoint, Batching, Checkpoints, ExpectedSteps};
    pub use crate::ode::Method::{self, *};
    pub use crate::ode::{
        ConfigError, ConstantStepSize, Controller, Event, HairerController, Ode, Outcome, PidController,
        SaveAt, Solution, SolveError, StepTo, Tableau, Tolerance, VectorField, ensemble, odeint,
    };
    pub use crate::state;
    #[cfg(feature = "tensor")]
    pub use crate::tree;
    pub use crate::vector_field;
    #[cfg(feature = "tensor")]
    pub use crate::{cnf::*, nn::*, optim::*, tensor::*};
}

#[cfg(all(doctest, feature = "train"))]
#[doc = include_str!("../README.md")]
struct Readme;
