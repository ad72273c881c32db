//! flowline: ODEs, gradients through them, and flows.
pub mod backend;
pub mod simd;
