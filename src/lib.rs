//! flowline: solve ODEs, differentiate through the solve, train continuous normalizing flows.
//!
//! - [`ode`]: solves of host values; the stepping algorithm is written there, once.
//! - `tensor`: tensors, `jit`, gradients; `adjoint`: the same solves on tensors, differentiable.
//! - `nn`, `optim`, `cnf`: layers, optimizers, flows; `memory`: what lives and what is kept compiled.
//! - `plot`, [`io`]: figures of solutions and densities, files.
//! - `data`, `eval`, `train`: images as densities, points, sets of images, what is measured of a learned density and how it
//!   is shown, the training loop, run folders.
//! - `guide`: from the first solve to an image flow, one program after the other.
//!
//! Below these, `graph`, `transform` and `backend` are the traced program, its derivatives and how it
//! runs; ARCHITECTURE.md is the map. [`prelude`] has the names that programs use.
//!
//! # Features
//! | feature | what it adds |
//! | --- | --- |
//! | `rayon` (default) | threads for ensembles of solves |
//! | `nalgebra`, `ndarray` | vectors, matrices and arrays of these crates as states; the crates are re-exported |
//! | `plot` | figures as PNG files, with a font that is compiled in |
//! | `autodiff` | tensors, gradients, layers, optimizers, flows; `tensor` is its old name |
//! | `train` | training of flows on images, points and toys; with `plot`, figures of a run |
//! | `full` | `train`, `nalgebra`, `ndarray` |
//! | `evcxr` | figures under the cells of Rust notebooks |
#![cfg_attr(docsrs, feature(doc_cfg))]

#[doc(hidden)]
#[path = "internal.rs"]
pub mod __internal;
#[cfg(feature = "autodiff")]
pub mod adjoint;
#[cfg(feature = "autodiff")]
mod array;
#[cfg(feature = "autodiff")]
mod backend;
#[cfg(feature = "autodiff")]
pub mod cnf;
#[cfg(feature = "train")]
pub mod data;
mod error;
#[cfg(feature = "train")]
mod eval;
#[cfg(all(fuzzing, feature = "autodiff"))]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(feature = "autodiff")]
mod graph;
#[cfg(any(feature = "plot", feature = "train"))]
mod heatmap;
pub mod io;
#[cfg(feature = "autodiff")]
#[doc(hidden)]
pub mod memory;
#[cfg(feature = "train")]
mod names;
#[cfg(feature = "autodiff")]
pub mod nn;
pub mod ode;
#[cfg(feature = "autodiff")]
pub mod optim;
#[cfg(feature = "plot")]
pub mod plot;
mod preludes;
mod simd;
#[cfg(feature = "autodiff")]
pub mod tensor;
#[cfg(feature = "train")]
pub mod train;
#[cfg(feature = "autodiff")]
mod transform;

pub use error::{Error, Result};
#[cfg(feature = "nalgebra")]
pub use nalgebra;
#[cfg(feature = "ndarray")]
pub use ndarray;
pub use preludes::ode as prelude;

#[cfg(feature = "autodiff")]
#[doc = include_str!("guide.md")]
#[cfg_attr(feature = "train", doc = include_str!("guide_runs.md"))]
pub mod guide {}

#[cfg(feature = "autodiff")]
pub mod extra {
    //! Tools to inspect a program's memory.
    #[doc(inline)]
    pub use crate::memory;
}

#[cfg(all(doctest, feature = "train", feature = "plot"))]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(all(doctest, feature = "train", feature = "plot"))]
#[doc = include_str!("../docs/programs/01-first-solve.md")]
#[doc = include_str!("../docs/programs/04-events.md")]
#[doc = include_str!("../docs/programs/05-ensemble.md")]
#[doc = include_str!("../docs/programs/06-parameter-fit.md")]
#[doc = include_str!("../docs/programs/07-neural-ode.md")]
#[doc = include_str!("../docs/programs/08-cnf-from-csv.md")]
#[doc = include_str!("../docs/programs/09-one-picture.md")]
#[doc = include_str!("../docs/programs/10-images.md")]
#[doc = include_str!("../docs/programs/11-gradient-of-an-event.md")]
#[doc = include_str!("../docs/programs/12-hessian-vector-product.md")]
struct Programs;

#[cfg(all(doctest, feature = "nalgebra"))]
#[doc = include_str!("../docs/programs/02-nalgebra.md")]
struct ProgramOfNalgebra;

#[cfg(all(doctest, feature = "ndarray"))]
#[doc = include_str!("../docs/programs/03-ndarray.md")]
struct ProgramOfNdarray;
