//! Concrete arrays: element types, shapes, and buffers whose number and size are counted.
//!
//! This layer knows the memory layout (row-major, without gaps) and nothing about graphs, traces or
//! differential equations. Every buffer of a tensor is an [`Array`], so the counters and the list of
//! [`memory`] are complete, and a leak appears as a growing number of buffers.
//!
//! Booleans are stored as `u32` 0 or 1, so vector masks of 4-byte lanes need no widening, and kernels need no
//! fourth element size. Buffers are `Vec`s, not aligned allocations: conversion from and to `ndarray` is a
//! move, and unaligned vector loads cost nothing on the machines measured.

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
