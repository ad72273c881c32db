//! The tensor handle: a tensor is concrete (a shared buffer) or traced (a node of a program under
//! construction), and the same code runs on both.
//!
//! Operators on concrete tensors run immediately. With at least one traced operand they record a node;
//! concrete operands become constants, and traced tensors of an enclosing trace become explicit inputs
//! ("captures") of the inner trace. There is no run-time tape: between two calls only values that the caller
//! holds are alive, and a trace ends with the call that made it.
//!
//! This module uses graphs and transforms. It does not solve ODEs; of `ode` it uses only the outcomes and
//! errors of solves. `adjoint` records the loops of a solve through `trace` and `apply`.

mod at;
pub(crate) mod caches;
mod cond;
mod conv;
mod cumulative;
mod custom;
mod dataset;
mod display;
mod einsum;
mod exec;
mod grad;
mod handle;
#[cfg(test)]
mod hostile_tests;
mod jacobian;
mod jit;
mod key;
pub mod linalg;
mod locate;
mod loops;
#[cfg(feature = "ndarray")]
mod ndarray;
mod operators;
mod ops;
mod order;
mod output;
mod patterns;
mod philox;
mod reduce;
mod rows;
mod shaping;
mod statistics;
mod take;
#[cfg(test)]
mod tests;
mod trace;
mod tree;
mod vmap;

pub use crate::array::{DType, Shape};
pub use at::At;
pub use cond::cond;
pub use custom::custom_derivatives;
pub use dataset::Dataset;
pub use einsum::einsum;
pub use grad::{grad, jvp, value_and_grad, vjp};
pub use handle::Tensor;
pub use jacobian::{hvp, jacobian};
pub use jit::{Jit, jit};
pub use key::Key;
pub use locate::debug_nans;
pub use loops::{Scan, WhileLoop, fori_loop, map, scan, while_loop};
pub use rows::map_rows;
pub use tree::Tree;
pub use vmap::vmap;

pub mod extra {
    //! Types that functions of this module return or take, and tools for inspecting programs.
    pub use super::custom::CustomFunction;
    pub use super::dataset::{Batches, Epoch, MaskedBatch};
    pub use super::einsum::{EinsumPath, EinsumStep, einsum_path};
    pub use super::exec::RunReport;
    pub use super::key::Replacement;
    pub use super::locate::{DiffPass, NanReport, ValueSummary};
    pub use super::philox::KeyRng;
    pub use super::tree::{TreePath, num_elements, tree_summary};
    pub use crate::graph::CallbackValue;
}
pub(crate) use extra::*;

// Used in bounds of public items and in expansions of public macros; users need not name them.
#[doc(hidden)]
pub use self::{
    jit::Traceable,
    output::{Loss, Output},
    tree::{Leaf, LoneTree, TensorTree},
};

pub(crate) use self::{
    custom::{call_custom, poisoned},
    grad::reverse,
    loops::{Trip, repeat},
    rows::{search, tuple},
    trace::{Check, Traced, align, apply, register_check, trace, try_trace},
    vmap::{Searches, over_rows, vmap_in_lockstep},
};
