//! From a function to steps on addresses. Each pass is a file; [`Plan::compile`](super::Plan::compile) calls them in order.
//!
//! [`prepare`] replaces flags by plain operations; [`places`] decides which values move no data; [`fuse`] with
//! [`layers`] groups nodes into units, and [`recompute`] lets units recompute cheap values. [`lower`] turns units
//! into steps on [`buffers`], which [`homes`] assigns, with [`codegen`] for fused units. [`extents`] and [`loop_extents`] say which bytes
//! each step uses, [`memory_plan`] assigns memory to the buffers, and [`check_plan`] refuses a plan whose steps
//! could read or write what they must not. In tests, [`chaos`] draws the decisions of these passes.

pub mod buffers;
pub mod chains;
pub mod chaos;
pub mod check_plan;
pub mod codegen;
pub mod extents;
pub mod fuse;
pub mod homes;
pub mod layers;
pub mod loop_extents;
pub mod lower;
pub mod lower_conv;
pub mod lower_factor;
pub mod lower_lines;
pub mod lower_loops;
pub mod lower_replay;
pub mod memory_plan;
pub mod places;
pub mod prepare;
pub mod recompute;
pub mod registers;
