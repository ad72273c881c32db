//! The CPU target: plans of fused kernels over one arena.
//!
//! [`compile`] turns a function into the steps of a [`Plan`], [`run`] executes them, and [`kernels`] are the inner loops.
//! README.md in this folder describes the design.
#![allow(unsafe_code, reason = "kernels run on addresses that the planner has laid out and checked")]
#![allow(
    clippy::cast_ptr_alignment,
    reason = "buffers are aligned for their elements, and parts start at whole elements"
)]

mod access;
mod address;
mod compile;
pub mod kernels;
mod memory;
mod peak;
mod plan;
mod report;
mod run;
mod target;
#[cfg(test)]
mod tests;

pub use peak::Peak;
pub use plan::Plan;
pub use run::Workspace;
pub use target::Cpu;
