//! Which states of a forward sweep to keep, and how to recompute the others on the way back.
//!
//! N steps lead through the states y_0, ..., y_N; the backward sweep needs y_{N-1}, ..., y_0 in this
//! order, and only a bounded number of them may be kept. The [`Recorder`] says in the forward sweep
//! which state goes into which slot; the [`Replayer`] turns what was kept into a sequence of
//! [`Action`]s that delivers the states. Both are pure integer arithmetic: they hold no state of a
//! solve, know neither its size nor where it lies, and so are tested alone, over every N.
//! README.md in this folder states the rules and how near they come to the optimum.
//!
//! A schedule computed beforehand (`revolve`) needs N, which an adaptive solve does not know; one
//! rule for both cases leaves one code path to be wrong. Published online rules recompute up to twice
//! the optimum; the closed-form cost in [`cost`] makes a greedy rule cheap that stays within 1.22.

pub mod cost;
mod recorder;
mod replayer;

pub use recorder::{Kept, Recorder};
pub use replayer::{Action, Replayer};

use crate::graph::{Checkpoints, Policy};

/// Bytes that [`Checkpoints::Auto`] may take.
pub const AUTO_BYTES: usize = 32 << 20;

/// The number of slots that a policy allows for states of `state_bytes` bytes; never 0, and
/// `usize::MAX` for [`Policy::Direct`] (slots are used in order, so only N of them are ever named).
pub fn num_slots(policy: Policy, state_bytes: usize) -> usize {
    let fit = |bytes: usize| (bytes / state_bytes.max(1)).max(1);
    match policy {
        Policy::Direct => usize::MAX,
        // nobody reads such a tape
        Policy::Forward | Policy::Reversible => 0,
        Policy::Checkpoint(Checkpoints::Count(n)) => n.max(1),
        Policy::Checkpoint(Checkpoints::Bytes(bytes)) => fit(bytes),
        Policy::Checkpoint(Checkpoints::Auto) => fit(AUTO_BYTES),
    }
}

/// The most bytes that one step may leave beside its state for [`Checkpoints::Auto`]. Those of steps of many rows cost
/// nearly as much on their way to memory and back as to make again (8 % of a training step of W4), ten of them are more
/// than all else that a tile works with, and where states alone fill the budget the cut body costs 6 % (W8, 64 rows).
const AUTO_RESIDUAL_BYTES: usize = 32 << 10;

/// The bytes that states may take together with what steps leave beside them for their derivatives, `bytes` each: whoever
/// asks for a number of states has said what is kept.
pub fn residual_budget(policy: Policy, bytes: usize) -> usize {
    match policy {
        Policy::Direct => usize::MAX,
        Policy::Checkpoint(Checkpoints::Bytes(bytes)) => bytes,
        Policy::Checkpoint(Checkpoints::Auto) if bytes <= AUTO_RESIDUAL_BYTES => AUTO_BYTES,
        Policy::Checkpoint(Checkpoints::Auto) => 0,
        Policy::Checkpoint(Checkpoints::Count(_)) | Policy::Forward | Policy::Reversible => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_allows_at_least_one_slot() {
        let of = |c| num_slots(Policy::Checkpoint(c), 1 << 20);
        assert_eq!(of(Checkpoints::Count(0)), 1);
        assert_eq!(of(Checkpoints::Bytes(1000)), 1);
        assert_eq!(of(Checkpoints::Auto), 32);
        assert_eq!(num_slots(Policy::Direct, 8), usize::MAX);
    }
}
