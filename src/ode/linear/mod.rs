//! Linear algebra of implicit steps: square matrices, dense or banded, and their LU factors.
//!
//! Small and in plain Rust, over any [`Real`](super::Real): f64, dual numbers, whose factors carry derivatives, and lanes,
//! which pivot each on its own. The order of elimination is fixed, so that bits depend on the numbers alone; nothing here
//! allocates after a matrix was made. Alternatives considered: nalgebra's LU, which allocates, and faer, a dependency
//! larger than this crate's solver. It knows numbers; it must never know what they are the Jacobian of.

mod lu;
mod mass;
mod matrix;
mod sparsity;

pub use lu::Lu;
pub use mass::Mass;
pub use matrix::Matrix;
pub use sparsity::{Plan, Sparsity};
