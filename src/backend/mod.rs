//! From graph to plan.

pub mod checkpoint;
