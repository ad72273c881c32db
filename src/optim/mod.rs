//! Optimisers, schedules and averages: data and pure functions of trees.
//!
//! An [`Optimiser`] is a chain of parts, each a map from updates to updates; the first gets the
//! gradients, what the last gives is added to the weights. Everything it remembers is an [`OptState`], a
//! tree whose counters and moments are tensors: a training step that is jitted carries them on the
//! device, a file saves them, and no count is ever a constant of the trace. Formulas and defaults are
//! those of Optax, and the tests hold its trajectories.
//!
//! Parts are a closed enum and not types, so that any chain has one type and one state. Nothing here
//! knows a loss, a layer, or how gradients are made; it asks `nn` only which leaves are fixed.

mod adam;
mod average;
mod optimiser;
mod part;
mod schedule;

pub use average::{Ema, ema};
pub use optimiser::{OptState, Optimiser, adam, adamw, chain, clip_global_norm, freeze, partition, sgd};
pub use schedule::{Schedule, constant, cosine};

#[cfg(test)]
mod tests;
#[cfg(test)]
mod trajectories;
