//! The CPU target.
pub mod kernels;
