//! The configuration of a flow as plain values: kind and sizes of its fields, and how it is solved.
//!
//! A weights file has names and shapes, but not the kind of a field, its activation or the solver settings.
//! The values here are stored beside the weights, so a flow can be rebuilt without the program that created it.
//! They contain no optimizer settings and no data.

mod model;
mod solve;

pub use model::{ActivationKind, FieldConfig, Flow, ModelConfig};
pub(crate) use model::{is_default, of_class};
pub use solve::{DivergenceKind, Kept, SolveConfig, Steps};
