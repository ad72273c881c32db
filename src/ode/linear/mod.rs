//! Linear algebra of implicit steps: square matrices, dense or banded, and their LU factors.
//!
//! Plain Rust for small matrices over any [`Real`](super::Real): f64, dual numbers (their factors carry
//! derivatives) and SIMD lanes (each lane has its own pivots). The order of elimination is fixed, so results
//! depend only on the numbers, bit for bit. Nothing here allocates after the first factorization.
//! Alternatives considered: nalgebra's LU, which allocates, and faer, a dependency larger than this crate's
//! solver. This module does not depend on vector fields or states.

mod blocks;
mod constraints;
mod lu;
mod mass;
mod matrix;
mod sparsity;

pub use blocks::BLOCK;
pub use constraints::{Constraints, Row, row_of};
pub use lu::Lu;
#[cfg(feature = "autodiff")]
pub(crate) use mass::Elimination;
pub use mass::Mass;
pub use matrix::Matrix;
pub use sparsity::{Coloring, Sparsity};
