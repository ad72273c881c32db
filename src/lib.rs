//! flowline: ODEs, gradients through them, and flows.

#[cfg(feature = "tensor")]
pub mod array;
#[cfg(feature = "tensor")]
pub mod backend;
#[cfg(feature = "tensor")]
mod error;
#[cfg(feature = "tensor")]
pub mod graph;
pub mod ode;
pub mod simd;
#[cfg(feature = "tensor")]
pub mod tensor;
#[cfg(feature = "tensor")]
pub mod transform;
#[cfg(feature = "tensor")]
pub use error::{Error, Result};

pub mod prelude {
    //! The names that programs use.
    pub use crate::tensor::*;
    pub use crate::tree;
}
