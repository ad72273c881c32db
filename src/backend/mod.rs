//! From a graph to something that runs.
//!
//! [`Plan::compile`] turns a function into a [`Plan`], which runs any number of times on a
//! [`Workspace`] that the caller owns. The CPU is the first target; a GPU fits the same three words.

pub mod checkpoint;
pub mod cpu;
#[cfg(feature = "train")]
pub(crate) mod work;

pub use cpu::{Counters, LoopReport, LoopRun, Peak, Plan, PlanReport, Workspace};

use crate::array::Array;
use crate::graph::Func;
use crate::simd::Level;

/// Compiles a function and runs it once, for work whose shape is not worth keeping.
///
/// # Panics
/// If an input does not have the type that the function wants.
pub fn run_once(func: &Func, inputs: &[&Array]) -> Vec<Array> {
    let plan = Plan::compile(func, Level::detect());
    let mut outputs: Vec<Array> =
        plan.output_types().iter().map(|ty| Array::zeros(ty.dtype(), ty.shape().clone())).collect();
    plan.run_arrays(&mut Workspace::new(), inputs, &mut outputs);
    outputs
}
