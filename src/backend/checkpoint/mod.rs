//! Checkpointing: which states of a forward sweep to store, and how to recompute the others.
//!
//! N steps lead through the states y_0, ..., y_N. The backward sweep needs y_{N-1}, ..., y_0 in this order,
//! with a bounded number of stored states. In the forward sweep, the [`Recorder`] decides which state goes
//! into which slot. In the backward sweep, the [`Replayer`] turns the stored states into a sequence of
//! [`Action`]s that delivers all states. Both are pure integer arithmetic: they neither access the states of
//! a solve nor know their size. They are therefore tested without a solve, for thousands of values of N.
//! README.md in this folder states the rules and how close they are to the optimum.
//!
//! A precomputed schedule (`revolve`) needs N, which an adaptive solve does not know. One rule for known and
//! unknown N needs only one code path. Published online rules recompute up to twice the optimum. The greedy
//! rule used here is cheap because of the closed forms in [`cost`], and costs at most 1.22 times the optimum
//! (for N up to 10,000).

pub mod cost;
mod recorder;
mod replayer;
pub(crate) mod tape_shape;

pub use recorder::{Recorder, StoredState};
pub use replayer::{Action, Replayer};
pub(crate) use tape_shape::TapeShape;

use crate::graph::{Checkpoints, Policy};

/// Memory budget of [`Checkpoints::Auto`] in bytes.
pub const AUTO_BYTES: usize = 32 << 20;

/// The number of slots that a policy allows for states of `state_bytes` bytes: `usize::MAX` for
/// [`Policy::Direct`] (slots are used in order, so only N of them are ever used), 0 where no tape is read,
/// else at least 1.
pub fn num_slots(policy: Policy, state_bytes: usize) -> usize {
    let fit = |bytes: usize| (bytes / state_bytes.max(1)).max(1);
    match policy {
        Policy::Direct => usize::MAX,
        // These policies read no tape.
        Policy::Forward | Policy::Reversible => 0,
        Policy::Checkpoint(Checkpoints::Count(n)) => n.max(1),
        Policy::Checkpoint(Checkpoints::Bytes(bytes)) => fit(bytes),
        Policy::Checkpoint(Checkpoints::Auto) => fit(AUTO_BYTES),
    }
}

/// The number of steps that [`Checkpoints::Auto`] assumes if it is not known.
const ASSUMED_STEPS: usize = 16;

/// The bytes that a step stores: its state, and residuals for its derivative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepBytes {
    /// Bytes of the state.
    pub state: usize,
    /// Bytes of the residuals.
    pub residuals: usize,
}

/// The joint budget in bytes for states and residuals; 0 if residuals are not stored. A fixed number of
/// states leaves no budget for residuals. [`Checkpoints::Auto`] stores residuals only if those of half the
/// steps fit beside all states. The residuals of fewer steps would save less than the 6 % that splitting the
/// body costs (benchmark W8, 64 rows).
pub fn residual_budget(policy: Policy, step: StepBytes, steps: Option<usize>) -> usize {
    let StepBytes { state, residuals } = step;
    let half = steps.unwrap_or(ASSUMED_STEPS).saturating_mul(state + residuals / 2);
    match policy {
        Policy::Direct => usize::MAX,
        Policy::Checkpoint(Checkpoints::Bytes(bytes)) => bytes,
        Policy::Checkpoint(Checkpoints::Auto) if half <= AUTO_BYTES => AUTO_BYTES,
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
    fn the_automatic_choice_stores_residuals_that_fit_for_half_of_the_steps() {
        let of = |state, residuals, steps| {
            residual_budget(Policy::Checkpoint(Checkpoints::Auto), StepBytes { state, residuals }, steps)
        };
        assert_eq!(of(48 << 10, 32 << 10, Some(512)), AUTO_BYTES);
        assert_eq!(of(48 << 10, 32 << 10, Some(513)), 0);
        assert_eq!(of(1 << 20, 2 << 20, None), AUTO_BYTES);
        assert_eq!(of(1 << 20, (2 << 20) + 2, None), 0);
    }
}
