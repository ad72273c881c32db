//! What a flow is as plain values, without its numbers: kind and sizes of its fields, and how it is solved.
//!
//! A weights file has names and shapes, but not the kind of a field, its activation or how it is solved. These values
//! are kept beside it, so that a flow is built again without the program that made it. They know no training.

mod model;
mod solve;

pub use model::{ActivationKind, FieldConfig, Flow, ModelConfig};
pub use solve::{DivergenceKind, Kept, SolveConfig, Steps};
