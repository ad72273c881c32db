//! Memory diagnostics: live arrays with their names, and the caches of compiled programs.
//!
//! The counters and the list of live buffers are in [`array::memory`](crate::array::memory), the caches in
//! `tensor`. They are for diagnosis and for tests: no result of the crate depends on them. [`regressions`]
//! describes known memory problems of other systems and the tests against them.

pub use crate::array::memory::{LiveArray, live_arrays, live_buffers, live_bytes, peak_bytes, reset_peak};
pub use crate::tensor::caches::{Caches, caches, clear_caches};

use crate::tensor::Tree;

/// Names the arrays of a tree in [`live_arrays`] by `prefix` and their paths: `model.layers.0.weight`.
///
/// A name belongs to an array. The name persists when [`Jit::step`](crate::tensor::Jit::step) replaces the old state by
/// the new state. A copy has no name.
///
/// # Panics
/// When a leaf is traced.
#[track_caller]
pub fn set_names(prefix: &str, tree: &impl Tree) {
    for (path, leaf) in tree.named_leaves() {
        leaf.array().set_name(if path.is_empty() { prefix.to_owned() } else { format!("{prefix}.{path}") });
    }
}

#[doc = include_str!("memory.md")]
pub mod regressions {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::{Tensor, jit};

    fn named(name: &str) -> usize {
        live_arrays().iter().filter(|a| a.name.as_deref() == Some(name)).count()
    }

    #[test]
    fn a_name_stays_with_the_array_of_a_state_and_not_with_one_given_up() {
        let step = jit(|(w, n): (Tensor, Tensor), x: Tensor| ((w + &x, n + 1), x));
        let mut state = (Tensor::from([1.0, 2.0, 3.0]), Tensor::from(0u32));
        set_names("tests.state", &state);
        for _ in 0..3 {
            step.step(&mut state, Tensor::from(1.0)).unwrap();
        }
        assert_eq!((named("tests.state.0"), named("tests.state.1"), state.1.item()), (1, 1, 3.0));
        let w = jit(|w: Tensor| w * 2).call(state.0).unwrap();
        assert_eq!((named("tests.state.0"), w.to_vec()), (0, vec![8.0, 10.0, 12.0]));
    }
}
