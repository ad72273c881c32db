//! Stories that are told of other systems - memory that grows, programs compiled again and again - each as a
//! program of flowline that is watched while it runs, and the limits it is held to.
//!
//! Shared by `tests/memory.rs`, which runs each at a size that says enough, and `benches/stories.rs`, which
//! runs one at any size and prints what it measured. A story never knows who runs it. They must run one after
//! the other in a process without other work: what they watch is the process's.

pub mod watch;

mod attention;
mod cache;
mod counter;
mod last_batch;
mod linear;
mod parameters;
mod radam;
mod step;
mod vmap_grad;

use watch::Report;

/// A story.
pub struct Story {
    /// Its name on the command line.
    pub name: &'static str,
    /// What holds, as a sentence without blanks.
    pub holds: &'static str,
    /// Iterations that say enough.
    pub iterations: usize,
    /// Runs it for so many iterations.
    pub run: fn(usize) -> Report,
    /// Panics when what was measured is past a limit.
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

/// All of them.
pub const ALL: [Story; 9] = stories! {
    "counter" counter 10_000 a_step_counter_never_retraces_and_a_static_one_is_named;
    "last-batch" last_batch 2_000 the_last_batch_of_an_epoch_takes_no_program_of_its_own;
    "radam" radam 10_000 radam_leaves_nothing_behind_jitted_or_not;
    "attention" attention 1 attention_over_hundreds_of_nodes_keeps_to_a_few_edge_tensors;
    "linear" linear 10_000 wide_layers_called_in_a_loop_leave_nothing_behind;
    "parameters" parameters 10_000 parameters_replaced_in_every_iteration_leave_nothing_behind;
    "vmap-grad" vmap_grad 20 a_gradient_over_a_batch_holds_no_copy_of_the_parameters_for_each_example;
    "cache" cache 1_500 caches_are_bounded_and_give_their_memory_back;
    "step" step 3_000 a_training_step_with_an_adaptive_solve_leaves_nothing_behind;
};
