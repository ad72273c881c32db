//! Compiles and runs graphs.
//!
//! [`Plan::compile`] turns a function into a [`Plan`], which can run any number of times on a [`Workspace`]
//! that the caller owns. The CPU is the only target so far; a GPU backend could have the same interface.

pub mod checkpoint;
pub mod cpu;
mod loop_report;
mod report;
#[cfg(feature = "train")]
pub(crate) mod work;

pub use cpu::{Counters, Peak, Plan, Workspace};
pub use loop_report::{LoopReport, LoopRun};
pub use report::{BodyKind, PlanReport};

use crate::array::Array;
use crate::graph::Func;
use crate::simd::Level;

/// Compiles a function for the CPU level of this machine and runs it once. Only tests use it.
///
/// # Panics
/// If an input does not have the type that the function expects.
pub fn run_once(func: &Func, inputs: &[&Array]) -> Vec<Array> {
    let plan = Plan::compile(func, Level::detect());
    let mut outputs: Vec<Array> =
        plan.output_types().iter().map(|ty| Array::zeros(ty.dtype(), ty.shape().clone())).collect();
    plan.run_arrays(&mut Workspace::new(), inputs, &mut outputs);
    outputs
}
