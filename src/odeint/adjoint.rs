//! What only a traced solve can be asked: how its gradient is taken and which rows share steps.

use crate::graph::{Checkpoints, Policy};

#[doc = include_str!("adjoint.md")]
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Adjoint {
    /// Keeps at most so many states and recomputes the others: O(checkpoints) memory whatever the
    /// number of steps, and the fewest recomputed steps there can be where that number is known before.
    RecursiveCheckpoint {
        /// How many.
        checkpoints: Checkpoints,
    },
    /// Keeps every state: no step is recomputed, memory grows with their number.
    Direct,
    /// Solves the adjoint equation backward in time, the state along with it, and keeps no state: the
    /// continuous adjoint, which is not the exact derivative of the steps taken.
    Backsolve {
        /// The relative tolerance of the backward solve; that of the solve if not said.
        rtol: Option<f64>,
        /// Its absolute tolerance.
        atol: Option<f64>,
    },
    /// Forward derivatives alone ([`jvp`](crate::tensor::jvp)); a reverse one is an error.
    Forward,
}

impl Adjoint {
    /// [`Adjoint::RecursiveCheckpoint`] with so many states kept, the first included.
    pub fn recursive_checkpoint(checkpoints: usize) -> Adjoint {
        Adjoint::RecursiveCheckpoint { checkpoints: Checkpoints::Count(checkpoints) }
    }

    /// [`Adjoint::Backsolve`] with the tolerances of the solve.
    pub fn backsolve() -> Adjoint {
        Adjoint::Backsolve { rtol: None, atol: None }
    }

    pub(super) fn policy(self) -> Policy {
        match self {
            Adjoint::RecursiveCheckpoint { checkpoints } => Policy::Checkpoint(checkpoints),
            Adjoint::Direct => Policy::Direct,
            Adjoint::Forward => Policy::Forward,
            Adjoint::Backsolve { .. } => Policy::Checkpoint(Checkpoints::Auto),
        }
    }
}

/// As many checkpoints as fit into 32 MiB.
impl Default for Adjoint {
    fn default() -> Self {
        Adjoint::RecursiveCheckpoint { checkpoints: Checkpoints::Auto }
    }
}

/// Which rows of a batch share their steps. To let every tile of rows have steps of its own, solve
/// inside [`map_rows`](crate::tensor::map_rows).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Batching {
    /// All rows: the error norm is taken over the whole state.
    #[default]
    Joint,
}

/// Options of a traced solve.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// How its gradient is taken.
    pub adjoint: Adjoint,
    /// Which rows share their steps.
    pub batching: Batching,
}
