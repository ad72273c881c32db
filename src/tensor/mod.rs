//! The handle that users hold: a tensor is concrete (a shared buffer) or traced (a node of a program
//! under construction), and the same code runs on both.
//!
//! Operators on concrete tensors run at once. With at least one traced operand they record a node;
//! concrete operands become constants, and tracers of an enclosing trace become explicit inputs
//! ("captures") of the inner one. There is no run-time tape: nothing lives between two calls but
//! what the caller holds, and a trace dies with the function that made it.
//!
//! It knows graphs and transforms, and no ODE: loops enter through `trace` and
//! `apply` from `adjoint`.

pub(crate) mod caches;
mod cond;
mod conv;
mod custom;
mod dataset;
mod display;
mod einsum;
mod exec;
mod grad;
mod handle;
#[cfg(test)]
mod hostile;
mod jacobian;
mod jit;
mod key;
mod locate;
#[cfg(feature = "ndarray")]
mod ndarray;
mod operators;
mod ops;
mod output;
mod philox;
mod reduce;
mod rows;
mod shaping;
#[cfg(test)]
mod tests;
mod trace;
pub mod tree;
mod vmap;

pub use crate::array::{DType, Shape};
pub use crate::graph::CallbackValue;
pub use cond::cond;
pub(crate) use custom::poisoned;
pub use custom::{CustomFunction, custom_derivatives};
pub use dataset::{Batches, Dataset, Epoch, MaskedBatch};
pub use einsum::{EinsumPath, EinsumStep, einsum, einsum_path};
pub use exec::RunReport;
pub(crate) use grad::reverse;
pub use grad::{grad, jvp, value_and_grad, vjp};
pub use handle::Tensor;
pub use jacobian::{hvp, jacobian};
pub use jit::{Jit, Traceable, jit};
pub use key::Key;
pub use locate::{DiffPass, NanReport, ValueSummary, debug_nans};
pub use output::{Loss, Output};
pub use philox::KeyRng;
pub use rows::map_rows;
pub(crate) use rows::tuple;
pub(crate) use trace::{Check, Traced, align, apply, register_check, trace, try_trace};
pub use tree::{Leaf, LoneTree, TensorTree, Tree, TreePath, num_elements, tree_summary};
pub use vmap::vmap;
pub(crate) use vmap::{Searches, over_rows, vmap_in_lockstep};
