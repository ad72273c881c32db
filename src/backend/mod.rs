//! Compiles and runs graphs.
//!
//! A [`Backend`] compiles a function to an [`Executable`], and a [`Runner`] of it runs any number of times. There are two
//! backends: the [`cpu`], and the [`oracle`] for tests, which interprets the function. [`current`] is the one in use.
//! `docs/how-to/write-a-backend.md` describes how to add another one.

pub mod checkpoint;
mod choice;
pub mod cpu;
mod interface;
mod loop_report;
mod oracle;
mod report;
#[cfg(feature = "train")]
pub(crate) mod work;

#[cfg(test)]
pub(crate) use choice::oracle_lacks;
pub use choice::{available, current};
pub use cpu::Peak;
pub use interface::{Backend, Counters, Executable, Runner};
pub use loop_report::{LoopReport, LoopRun};
pub use oracle::Oracle;
pub use report::{BodyKind, PlanReport};

use crate::array::Array;
use crate::graph::Func;

/// Compiles a function with the backend in use and runs it once. Only tests use it.
///
/// # Panics
/// If an input does not have the type that the function expects.
pub fn run_once(func: &Func, inputs: &[&Array]) -> Vec<Array> {
    run_on(current(), func, inputs).0
}

/// Compiles a function with a backend and runs it once; returns the results and the counters of the run.
///
/// # Panics
/// If an input does not have the type that the function expects.
pub fn run_on(backend: &dyn Backend, func: &Func, inputs: &[&Array]) -> (Vec<Array>, Counters) {
    let program = backend.compile(func);
    let types = program.output_types().iter();
    let mut outputs: Vec<Array> = types.map(|ty| Array::zeros(ty.dtype(), ty.shape().clone())).collect();
    let mut runner = program.runner();
    runner.run(inputs, &mut outputs);
    (outputs, runner.counters())
}
