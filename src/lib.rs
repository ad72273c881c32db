//! flowline: ODEs, gradients through them, and flows.

#[cfg(feature = "tensor")]
pub mod array;
#[cfg(feature = "tensor")]
pub mod backend;
#[cfg(feature = "tensor")]
pub mod graph;
#[cfg(feature = "tensor")]
pub mod transform;
