//! Layers, and the vector fields of flows made of them.
//!
//! A layer is a tree of tensors with a `forward`; a [`Drift`] is a tree with a vector field
//! `dy/dt = f(t, y)`. Both are plain functions of their own tensors: nothing here knows how a field
//! is solved, trained or stored. Rows are independent everywhere (no batch statistics), which is what
//! lets a solve work on tiles of rows.
//!
//! Alternatives considered: layers as boxed trait objects (cannot be named in a file, need a walk of
//! their own) and layers generic over the activation (a type for each network). A closed enum where
//! one type must stand for several ([`DriftNet`]), a trait where users add their own ([`Drift`]).

mod concat_squash;
mod drift;
mod fixed;
mod fourier;
mod linear;
mod mlp;

pub use concat_squash::{ConcatSquash, ConcatSquashLayer};
pub use drift::{Drift, DriftNet};
pub use fixed::{Fixed, is_fixed};
pub use fourier::{FourierMlp, golden_frequencies, normal_frequencies};
pub use linear::{Activation, Linear, dropout};
pub use mlp::Mlp;

#[cfg(test)]
mod tests;
