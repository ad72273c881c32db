//! Transforms of graphs: derivatives, batching, simplification, hoisting and merging.
//!
//! Every transform maps closed functions ([`crate::graph::Func`]) to closed functions, and derivatives are
//! always with respect to a function's inputs. Transforms therefore nest in any order, without markers that
//! separate the arguments of different derivatives. Each transform has its own tests, which interpret a
//! function before and after the transform. Transforms may depend on loops and tiles, but not on ODEs, tensor
//! handles or the machine.

mod batch;
mod bodies;
mod cond;
mod custom;
mod flow;
mod hoist;
mod jvp;
mod lu;
mod merge;
mod partials;
mod remat;
mod replay;
mod scatter;
mod set;
mod simplify;
mod tiles;
mod triangular;
mod vjp;

pub use batch::{Searches, batch, batch_with, has_loops};
pub use bodies::{plain_replay, plain_search, used_inputs};
pub use custom::inline_custom;
pub use flow::depends_on;
pub use hoist::hoist;
pub use jvp::{jvp, jvp_into};
pub use merge::merge_tiles;
pub use remat::{Residuals, candidates, residuals, with_worthy_residuals};
pub use set::Set;
pub use simplify::{erase_stop_gradient, simplify};
pub use vjp::{vjp, vjp_into};

use crate::graph::NodeId;

/// Converts a function to the form that is compiled. Tiles of a gradient are merged with forward tiles that
/// compute the same values, the function is simplified, and loop-invariant computations move out of loops.
///
/// Tiles are merged before their bodies are simplified, because simplification adapts a body to its
/// surroundings, so that equal parts of two bodies may differ afterwards. Simplification runs again at the
/// end because hoisting leaves unused captures.
pub fn optimize(f: &crate::graph::Func) -> crate::graph::Func {
    let f = simplify::simplify_outside(&erase_stop_gradient(&inline_custom(f)));
    simplify(&hoist(&simplify(&merge_tiles(&f))))
}

/// The tangent of each value, or of each operand; `None` is zero.
type Tangents = Vec<Option<NodeId>>;
/// The cotangent of each value, or of each operand; `None` is zero.
type Cotangents = Vec<Option<NodeId>>;

/// The indices at which a list has a derivative.
fn present(d: &[Option<NodeId>]) -> Vec<usize> {
    (0..d.len()).filter(|&k| d[k].is_some()).collect()
}

/// The indices at which a flag is set.
fn marked(flags: &[bool]) -> Vec<usize> {
    (0..flags.len()).filter(|&k| flags[k]).collect()
}

/// A list of `num` derivatives: `values` at the indices `at`, zeros elsewhere.
fn placed(num: usize, at: &[usize], values: impl IntoIterator<Item = NodeId>) -> Vec<Option<NodeId>> {
    let mut all = vec![None; num];
    at.iter().zip(values).for_each(|(&k, value)| all[k] = Some(value));
    all
}

/// A derivative that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransformError {
    /// A reverse derivative of a reverse derivative through a solve that does not store every state.
    #[error(
        "no reverse derivative of a gradient through a solve with the adjoint `{adjoint}`, or a loop like it, \
         which does not store every state; use the adjoint `Direct` (of a `Scan` or `WhileLoop`: `store_all`), or \
         take this derivative forward (jvp of the gradient)"
    )]
    SecondReverse {
        /// The adjoint of the solve.
        adjoint: &'static str,
    },
    /// A reverse derivative of a gradient through rows in lockstep.
    #[error(
        "no reverse derivative of a gradient through rows in lockstep (`PerRow`); use \
         `Groups(1)`, which takes the same steps, or take this derivative forward (jvp of the gradient)"
    )]
    SecondReverseOfRows,
    /// A reverse derivative of a solve that supports only forward derivatives.
    #[error(
        "no reverse derivative of a solve with the adjoint `ForwardMode`: differentiate it \
         forward (jvp), or choose another adjoint"
    )]
    ForwardOnly,
}

#[cfg(test)]
pub(crate) mod tests;
