//! Linear algebra of implicit steps: square matrices, dense or banded, and their LU factors.
//!
//! Plain Rust for small matrices over any [`Real`](super::Real): f64, dual numbers (their factors carry derivatives)
//! and SIMD lanes (each pivots on its own). The order of elimination is fixed, so results depend on the numbers alone,
//! to the bit. Nothing here allocates after a matrix is made. Alternatives considered: nalgebra's LU, which allocates,
//! and faer, a dependency larger than this crate's solver. This module must never know what its matrices are the
//! Jacobian of.

mod lu;
mod mass;
mod matrix;
mod sparsity;

pub use lu::Lu;
pub use mass::Mass;
pub use matrix::Matrix;
pub use sparsity::{Plan, Sparsity};
