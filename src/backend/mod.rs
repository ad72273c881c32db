//! From a graph to something that runs.
pub mod cpu;
