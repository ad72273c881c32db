//! What a backend is: it compiles functions to programs, and a program runs on arrays.
//!
//! The library above names these traits and the types of reports, and never a backend. A program is immutable and shared
//! by threads. Each thread that runs it has a [`Runner`], which owns the memory of a run and the results of the last run
//! besides its outputs: counters, and how loops stored their states. A call through a trait object happens once per run.

use super::PlanReport;
use crate::array::Array;
use crate::graph::{Func, Type};
use std::sync::Arc;

/// A way to compile and run functions.
pub trait Backend: Send + Sync {
    /// The name, for messages.
    fn name(&self) -> String;

    /// Compiles a function of arrays without [`Op::Custom`](crate::graph::Op::Custom), which `transform::optimize`
    /// removes.
    ///
    /// # Panics
    /// If the function does not pass [`verify`](crate::graph::verify).
    fn compile(&self, func: &Func) -> Arc<dyn Executable>;
}

/// A compiled function.
pub trait Executable: Send + Sync {
    /// Types of the outputs.
    fn output_types(&self) -> &[Type];

    /// The cost and memory of a run; zeros if the backend does not know them.
    fn report(&self) -> &PlanReport;

    /// A runner of this program. It may allocate its memory in its first run.
    fn runner(&self) -> Box<dyn Runner>;
}

/// A compiled function and the memory of its runs.
pub trait Runner: Send {
    /// Runs the function. `outputs` have the types of the outputs and any contents; afterwards they hold the results.
    /// The results depend only on the inputs, not on earlier runs. The next run may get other arrays, and a caller may
    /// hand the arrays of this one to a user: a runner keeps no address of an input or an output after a run.
    ///
    /// # Panics
    /// If an array does not have the type that the function expects. A debug callback of the function may panic;
    /// `outputs` may then hold anything, and the runner must not be used again.
    fn run(&mut self, inputs: &[&Array], outputs: &mut [Array]);

    /// Counters of the loops in the last run.
    fn counters(&self) -> Counters;

    /// The report of the program, and how its loops stored their states in the last run. It does not panic.
    fn report(&self) -> PlanReport;
}

/// Counts of the loops in a run. A backend that stores no states, or as many as it likes, leaves the last three at 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Attempted steps.
    pub attempts: u64,
    /// Accepted steps.
    pub accepted: u64,
    /// Steps that backward passes recomputed to restore states.
    pub recomputed: u64,
    /// Steps whose stages backward passes recomputed for the derivative, in loops that can store stages.
    pub recomputed_residuals: u64,
    /// The maximum number of states stored by one tape, or of values stored by one sequence.
    pub states_kept_max: usize,
}
