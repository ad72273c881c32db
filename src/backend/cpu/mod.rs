//! The CPU target: plans of fused kernels over one arena.
//!
//! Compilation of a [`Plan`] has four main passes, each in a file: [`prepare`] replaces flags by plain
//! operations, [`fuse`] groups nodes into units, [`lower`] (with [`codegen`] for fused units) turns units
//! into steps on buffers, and [`memory_plan`] assigns memory to the buffers. [`exec`] runs the steps.
//! README.md in this folder describes the design.
#![allow(unsafe_code, reason = "kernels run on addresses that the planner has laid out and checked")]
#![allow(
    clippy::cast_ptr_alignment,
    reason = "buffers are aligned for their elements, and parts start at whole elements"
)]

mod access;
mod batch;
mod bind;
mod bits;
mod buffers;
mod chains;
mod codegen;
mod cond;
mod conv;
mod copy;
mod dot;
mod exec;
mod extents;
mod fuse;
pub mod kernels;
mod layers;
mod lockstep;
mod lockstep_search;
mod loop_report;
mod loops;
mod lower;
mod lower_conv;
mod lower_loops;
mod lower_sequence;
mod memory;
mod memory_plan;
mod observe;
mod ones;
mod packed;
mod peak;
mod places;
mod plan;
mod prepare;
mod program;
mod recompute;
mod reduce;
mod registers;
mod report;
mod residuals;
mod sequence;
mod step;
mod tape;
mod taps;
#[cfg(test)]
mod tests;
mod tiles;
mod totals;
mod walk;

pub use exec::Workspace;
pub use loop_report::{LoopReport, LoopRun};
pub use loops::Counters;
pub use peak::Peak;
pub use plan::Plan;
pub use report::PlanReport;
