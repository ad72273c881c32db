//! Loops for users: [`scan`], [`fori_loop`], [`map`] and [`while_loop`].
//!
//! A loop traces its function once. The compiled program runs it as often as needed, so the number of trips changes
//! neither the size of the program nor the time of its compilation. A loop over rows is a replay along a schedule of as
//! many trips ([`trips`]); a loop that ends itself is a search ([`repeat`]). Derivatives, checkpoints and `vmap` are
//! those of these two operations.

mod repeat;
mod scan;
#[cfg(test)]
mod tests;
mod trips;
mod while_loop;

pub(crate) use repeat::{Trip, repeat};
pub use scan::{Scan, fori_loop, map, scan};
pub use while_loop::{WhileLoop, while_loop};

use super::Tensor;
use super::tree::{Tree, outline};
use crate::graph::{Checkpoints, Policy, Type};

/// The number of bytes of states that a loop stores by default.
const STORED_BYTES: usize = 32 << 20;

/// Which states of a loop are stored for its backward pass.
#[derive(Clone, Copy, Debug, Default)]
enum Stored {
    /// All of them, if their number is known and they fit into [`STORED_BYTES`]; else those that fit.
    #[default]
    Fitting,
    All,
    Few(Checkpoints),
}

impl Stored {
    /// The policy of a loop over a state of `bytes` bytes, for a number of trips that may be unknown.
    fn policy(self, bytes: usize, num_trips: Option<usize>) -> Policy {
        match self {
            Stored::All => Policy::Direct,
            Stored::Few(checkpoints) => Policy::Checkpoint(checkpoints),
            Stored::Fitting => match num_trips {
                Some(n) if bytes.saturating_mul(n) <= STORED_BYTES => Policy::Direct,
                _ => Policy::Checkpoint(Checkpoints::Auto),
            },
        }
    }
}

/// The number of bytes of a state.
fn bytes(state: &[Tensor]) -> usize {
    state.iter().map(|x| x.ty().bytes()).sum()
}

/// Panics unless a trip returns a state like the one that it receives.
#[track_caller]
fn same_state(name: &str, before: &impl Tree, after: &impl Tree) {
    let (before, after) = (outline(before), outline(after));
    if let Some((a, b)) = before.iter().zip(&after).find(|(a, b)| a != b) {
        panic!("{name}: the state starts as {a}, but the function returns {b}: cast or reshape one of them");
    }
    let (a, b) = (before.len(), after.len());
    assert!(a == b, "{name}: the state starts with {a} leaves, but the function returns {b}");
}

/// The types of tensors.
fn types(x: &[Tensor]) -> Vec<Type> {
    x.iter().map(Tensor::ty).collect()
}
