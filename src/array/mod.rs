//! Concrete arrays: element types, shapes, and buffers whose number and size are counted.
//!
//! This layer defines the memory layout (row-major, without gaps). It does not depend on graphs, traces or
//! differential equations. Every buffer of a tensor is an [`Array`], so the counters and the list of
//! [`memory`] are complete, and a leak appears as a growing number of buffers.
//!
//! Booleans are stored as `u32` 0 or 1, so vector masks of 4-byte lanes need no widening, and kernels need
//! only two element sizes, 4 and 8 bytes. The elements of an array are a `Vec`, not an aligned allocation:
//! `ndarray` can own the same `Vec` without a copy, and unaligned vector loads cost nothing on the machines
//! measured.

mod buffer;
mod dtype;
pub mod memory;
#[cfg(test)]
mod refusal;
mod shape;
mod slab;

pub use buffer::{Array, Data, Element};
pub use dtype::DType;
#[cfg(test)]
pub(crate) use refusal::refusal;
pub use shape::Shape;
pub(crate) use slab::Slab;
