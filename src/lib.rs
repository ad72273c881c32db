//! Solve ordinary differential equations, differentiate through the solver, and train continuous normalizing
//! flows. Pure Rust, for the CPU.
//!
//! # Solve
//! A closure is the vector field; [`Ode`](ode::Ode) takes methods, tolerances, saved times and events.
//! ```
//! use flowline::prelude::*;
//!
//! let f = |_t: f64, y: &[f64; 2]| [1.5 * y[0] - y[0] * y[1], y[0] * y[1] - 3.0 * y[1]];
//! let solution = Ode::new(f).rtol(1e-8).atol(1e-8).save_at([5.0, 10.0]).solve(0.0, 10.0, [1.0, 1.0])?;
//! assert_eq!(solution.ts, [5.0, 10.0]);
//! assert!((solution.y1[0] - 1.0263446).abs() < 1e-6);
//! # Ok::<(), flowline::Error>(())
//! ```
//!
//! # Differentiate
//! On tensors (feature `autodiff`), solves with the same builder have gradients. The gradients are exact for
//! the steps taken, and their memory is bounded.
//! ```
//! # #[cfg(feature = "autodiff")]
//! # fn main() -> flowline::Result<()> {
//! use flowline::nn::prelude::*;
//!
//! let end = |rate: &Tensor| Ok(Ode::new(|_t, y: &Tensor| -(rate * y)).solve(0.0, 2.0, Tensor::from(1.0))?.y1);
//! let (value, gradient) = value_and_grad(end, &Tensor::from(0.5))?;
//! assert!((value.item() - (-1.0_f64).exp()).abs() < 1e-5);
//! assert!((gradient.item() + 2.0 * (-1.0_f64).exp()).abs() < 1e-4);
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "autodiff"))]
//! # fn main() {}
//! ```
//!
//! # Learn a density
//! A `Trainer` (feature `train`) learns the density of an image, of the rows of a table, or of a set of images.
//! `Trainer::new(ImageDensity::open("cat.png")?)` trains on an image. This example trains on points of a disk:
//! ```
//! # #[cfg(feature = "train")]
//! # fn main() -> flowline::Result<()> {
//! use flowline::cnf::prelude::*;
//!
//! let point = |i| [f64::from(i).cos(), f64::from(i).sin()].map(|x| x * (f64::from(i) / 500.0).sqrt());
//! let points = Points::from_rows((0..500).map(point).collect::<Vec<_>>())?;
//! let flow = Trainer::new(points).updates(60)
//! #   .options(&TrainOptions { width: Some(8), depth: Some(1), batch: Some(128), ..Default::default() })
//!     .run()?;
//! let log_density = flow.log_prob([[0.0, 0.0], [1.5, 0.0]])?;
//! assert!(log_density[0] > log_density[1]);
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "train"))]
//! # fn main() {}
//! ```
//! The package `flowline-cli` trains and evaluates flows from the command line.
//!
//! # Features
//! | feature | what it adds |
//! | --- | --- |
//! | `rayon` (default) | threads for ensembles of solves; `world` |
//! | `nalgebra`, `ndarray` | vectors, matrices and arrays of these crates as states; the crates are re-exported |
//! | `autodiff` | tensors, gradients, layers, optimizers, flows |
//! | `plot` | figures as PNG and SVG files, flows as GIF, with a built-in font |
//! | `train` | training of flows on images, points and sets of images; with `plot`, figures of a run |
//! | `ensemble-f32` | ensembles in f32 |
//! | `full` | `train`, `nalgebra`, `ndarray`, `ensemble-f32` |
//! | `mpi` | training and ensembles over MPI; needs an MPI library and libclang |
//! | `evcxr` | figures under the cells of Rust notebooks |
//!
//! # Modules
//! | module | contents |
//! | --- | --- |
//! | [`prelude`], `nn::prelude`, `cnf::prelude` | names to import: for solving, differentiating, learning densities |
//! | [`ode`] | solves of plain Rust values: methods, step size controllers, events, ensembles, sensitivities |
//! | `tensor` | tensors, `jit`, gradients, `vmap`, data sets |
//! | `adjoint` | solves on tensors: how the gradient is computed, which rows share steps |
//! | `nn`, `optim` | layers; optimizers, schedules, `minimize` |
//! | `cnf` | continuous normalizing flows |
//! | `data`, `train` | images, tables and sets of images as densities; the training loop and its run folders |
//! | `world` | ranks that share a training run or an ensemble: threads, or processes over MPI |
//! | `plot`, [`io`] | figures; CSV, `.npy` and safetensors files |
//!
//! Tutorials, how-to guides and explanations are in the book, in `docs/` of the repository.
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
#[cfg(feature = "rayon")]
mod time_source;
#[cfg(feature = "train")]
pub mod train;
#[cfg(feature = "autodiff")]
mod transform;
#[cfg(feature = "autodiff")]
mod triangular;
#[cfg(feature = "rayon")]
pub mod world;

pub use error::{Error, Result};
#[cfg(feature = "nalgebra")]
pub use nalgebra;
#[cfg(feature = "ndarray")]
pub use ndarray;
pub use preludes::ode as prelude;

#[cfg(feature = "autodiff")]
pub mod extra {
    //! Tools to inspect a program's memory.
    #[doc(inline)]
    pub use crate::memory;
}
