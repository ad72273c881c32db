//! Graph to graph: derivatives, batching, simplification, hoisting and merging.
//!
//! Every transform takes closed functions ([`crate::graph::Func`]) to closed functions, and a
//! derivative is always by a function's inputs. So transforms nest in any order without markers
//! that keep one derivative's argument apart from another's, and each is tested alone: interpret
//! before and after. It knows loops and tiles, and knows no ODE, no tensor handle and no machine.

mod batch;
mod bodies;
mod cond;
mod custom;
mod flow;
mod hoist;
mod jvp;
mod loops;
mod merge;
mod partials;
mod residuals;
mod sequence;
mod simplify;
mod tiles;
mod vjp;

pub use batch::{Searches, batch, batch_with};
pub use custom::inline_custom;
pub use hoist::hoist;
pub use jvp::{jvp, jvp_into};
pub use merge::merge_tiles;
pub use residuals::{First, Residuals, residuals};
pub use simplify::{erase_stop_gradient, simplify};
pub use vjp::{vjp, vjp_into};

/// The form that a function is compiled in: derivatives taken, gradients merged with what they
/// share, simplified, invariant computations before loops.
///
/// Tiles are merged first, while their bodies are still as differentiation made them: simplification
/// fits a body to its surroundings, after which equal parts may no longer be equal. It runs again at
/// the end because hoisting leaves captures that nobody reads.
pub fn optimize(f: &crate::graph::Func) -> crate::graph::Func {
    let f = simplify::simplify_outside(&erase_stop_gradient(&inline_custom(f)));
    simplify(&hoist(&simplify(&merge_tiles(&f))))
}

/// A derivative that does not exist in the form that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransformError {
    /// A reverse derivative of a reverse derivative through a solve that does not keep every state.
    #[error(
        "a reverse derivative of a gradient through a solve with the adjoint `{adjoint}` was asked for: it has none, \
         since it does not keep every state; take the adjoint `Direct`, or take this derivative forward (jvp of the \
         gradient)"
    )]
    SecondReverse {
        /// How the solve's gradient is taken.
        adjoint: &'static str,
    },
    /// A reverse derivative of a gradient through rows in lockstep.
    #[error(
        "a reverse derivative of a gradient through rows in lockstep (`PerRow`) was asked for: it has none; take \
         `Groups(1)`, which takes the same steps, or take this derivative forward (jvp of the gradient)"
    )]
    SecondReverseOfRows,
    /// A reverse derivative of a loop that is to be differentiated forward.
    #[error(
        "a reverse derivative of a solve with forward derivatives alone (`Forward`) was asked for: take it \
         forward (jvp), or choose another adjoint"
    )]
    ForwardOnly,
}

#[cfg(test)]
pub(crate) mod tests;
