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

/// The most bytes that one step may leave beside its state for [`Checkpoints::Auto`]. Of a tile of 64 rows ten steps' are
/// more than all else that it works with, 16 MB where 8 are promised (the story `vmap_grad`), for 0 to 7 % of an update of W4,
/// the more the slower a machine's products are beside its memory.
const AUTO_RESIDUAL_BYTES: usize = 32 << 10;

/// What a step keeps: bytes of its state, and of what it leaves beside it for its derivative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepBytes {
    /// Of the state.
    pub state: usize,
    /// Of the residuals.
    pub residuals: usize,
}

/// The bytes that states and residuals may take together, 0 where residuals are not kept: whoever asks for a number of
/// states has said what is kept. [`Checkpoints::Auto`] keeps small ones, where those of half of the `steps` steps fit beside
/// all states, if it is known how many there will be: for a few of them a body cut in two is not worth its price of 6 %
/// (W8, 64 rows).
pub fn residual_budget(policy: Policy, step: StepBytes, steps: Option<usize>) -> usize {
    let StepBytes { state, residuals } = step;
    let half = steps.map_or(0, |steps| steps.saturating_mul(state + residuals / 2));
    let fits = residuals <= AUTO_RESIDUAL_BYTES && half <= AUTO_BYTES;
    match policy {
        Policy::Direct => usize::MAX,
        Policy::Checkpoint(Checkpoints::Bytes(bytes)) => bytes,
        Policy::Checkpoint(Checkpoints::Auto) if fits => AUTO_BYTES,
        Policy::Checkpoint(Checkpoints::Auto | Checkpoints::Count(_)) => 0,
        Policy::Forward | Policy::Reversible => 0,
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

    #[test]
    fn the_automatic_choice_keeps_small_residuals_that_fit_for_half_of_the_steps() {
        let of = |state, residuals, steps| {
            residual_budget(Policy::Checkpoint(Checkpoints::Auto), StepBytes { state, residuals }, steps)
        };
        assert_eq!(of(48 << 10, 32 << 10, Some(512)), AUTO_BYTES);
        assert_eq!(of(48 << 10, 32 << 10, Some(513)), 0);
        assert_eq!(of(48 << 10, 32 << 10, None), AUTO_BYTES);
        assert_eq!(of(48 << 10, (32 << 10) + 1, None), 0);
    }
}
