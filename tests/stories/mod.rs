//! Regression tests for failures that users of other libraries reported: growing memory, repeated compilation.
//! Each is a flowline program that is measured while it runs, with limits.
//!
//! Shared by `tests/memory.rs`, which runs each at a sufficient size, and `benches/stories.rs`, which runs one
//! at any size and prints the measurements. They must run one after the other in a process without other work,
//! because the measurements are for the whole process.

pub mod watch;

mod attention;
mod cache;
mod counter;
mod last_batch;
mod linear;
mod parameters;
mod plans;
mod radam;
mod step;
mod vmap_grad;

use watch::Report;

/// A regression test.
pub struct Story {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it checks, as a sentence with underscores.
    pub holds: &'static str,
    /// A sufficient number of iterations.
    pub iterations: usize,
    /// Runs it for this number of iterations.
    pub run: fn(usize) -> Report,
    /// Panics if a measurement exceeds its limit.
    pub hold: fn(&Report),
}

macro_rules! stories {
    ($($name:literal $module:ident $iterations:literal $holds:ident;)*) => {
        [$(Story {
            name: $name,
            holds: stringify!($holds),
            iterations: $iterations,
            run: $module::run,
            hold: $module::hold,
        }),*]
    };
}

/// All regression tests.
pub const ALL: [Story; 10] = stories! {
    "counter" counter 10_000 a_step_counter_never_retraces_and_a_static_one_is_named;
    "last-batch" last_batch 2_000 the_last_batch_of_an_epoch_takes_no_program_of_its_own;
    "radam" radam 10_000 radam_leaves_nothing_behind_jitted_or_not;
    "attention" attention 1 attention_over_hundreds_of_nodes_keeps_to_a_few_edge_tensors;
    "linear" linear 10_000 wide_layers_called_in_a_loop_leave_nothing_behind;
    "parameters" parameters 10_000 parameters_replaced_in_every_iteration_leave_nothing_behind;
    "vmap-grad" vmap_grad 20 a_gradient_over_a_batch_holds_no_copy_of_the_parameters_for_each_example;
    "plans" plans 1 a_call_outside_jit_with_other_numbers_compiles_nothing;
    "cache" cache 1_500 caches_are_bounded_and_give_their_memory_back;
    "step" step 3_000 a_training_step_with_an_adaptive_solve_leaves_nothing_behind;
};
