//! Concrete arrays: element types, shapes, and buffers whose number and size are counted.
//!
//! It knows how numbers lie in memory (row-major, without gaps) and nothing of graphs, traces or
//! differential equations. Every buffer that a tensor owns is an [`Array`], so the counters and
//! the list of [`memory`] have all of them; a leak shows as a number that grows.
//!
//! Booleans are stored as `u32` 0 or 1: vector masks of 4-byte lanes then need no widening, and no
//! kernel needs a fourth element size. Buffers are `Vec`s, not aligned allocations: conversion from
//! and to `ndarray` is a move, and unaligned vector loads cost nothing on the machines we measured.

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
