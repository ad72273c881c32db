//! Optimizers, schedules and averages: data and pure functions of trees.
//!
//! An [`Optimizer`] is a chain of parts, each a map from updates to updates; the first gets the
//! gradients, what the last gives is added to the weights. A named optimizer is such a chain too: a rule for
//! the direction, a decay of weights, a rate. Everything it remembers is an [`OptState`], a
//! tree whose counters and moments are tensors: a training step that is jitted carries them on the
//! device, a file saves them, and no count is ever a constant of the trace. Formulas and defaults are
//! those of Optax, and the tests hold its trajectories.
//!
//! Parts are a closed enum and not types, so that any chain has one type and one state; each is a file, and
//! what there is to say of it is the trait in `part`. Nothing here
//! knows a loss, a layer, or how gradients are made; it asks `nn` only which leaves are fixed.

mod accumulate;
mod adam;
mod adjust;
mod average;
mod belief;
mod clip;
mod compose;
mod decay;
mod groups;
mod hyper;
mod inject;
mod lion;
mod moments;
mod momentum;
mod optimizer;
mod part;
mod plateau;
mod radam;
mod rate;
mod rms;
mod rules;
mod schedule;
mod skip;
mod trust;

pub use average::{Ema, ema};
pub use compose::{
    apply_if_finite, chain, clip, clip_by_global_norm, inject_hyperparams, masked, multi_steps, partition,
    reduce_on_plateau, set_to_zero,
};
pub use optimizer::{OptState, Optimizer};
pub use rules::{
    adabelief, adagrad, adam, adamw, add_decayed_weights, lamb, lion, nadam, radam, rmsprop, scale_by_adam,
    scale_by_belief, scale_by_learning_rate, scale_by_lion, scale_by_momentum, scale_by_radam, scale_by_rms,
    scale_by_rss, sgd,
};
pub use schedule::{Schedule, constant, cosine, exponential, join, linear, one_cycle, piecewise};

#[cfg(test)]
mod tests;
