//! Optimizers, schedules and averages: data and pure functions of trees.
//!
//! An [`Optimizer`] is a chain of parts, each a map from updates to updates; the first gets the
//! gradients, what the last gives is added to the weights. A named optimizer, [`Adam`], is a builder with typed setters of
//! such a chain: a rule for the direction, a decay of weights, a rate. Where an optimizer is taken, whatever becomes one is
//! taken. Everything it remembers is an [`OptState`], a
//! tree whose counters and moments are tensors: a training step that is jitted carries them on the
//! device, a file saves them, and no count is ever a constant of the trace. Formulas and defaults are
//! those of Optax, and the tests hold its trajectories.
//!
//! Parts are a closed enum and not types, so that any chain has one type and one state; each is a file, and
//! what there is to say of it is the trait in `part`. No part
//! knows a loss, a layer, or how gradients are made; it asks `nn` only which leaves are fixed. [`minimize`], the loop of who
//! needs no loop of their own, is the one function that does.

mod accumulate;
mod adam;
mod average;
mod belief;
mod clip;
mod compose;
mod decay;
mod groups;
mod hyper;
mod inject;
mod lion;
mod minimize;
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

pub use average::Ema;
pub use compose::{chain, clip_by_global_norm};
pub use minimize::minimize;
pub use optimizer::{OptState, Optimizer};
pub use rules::{Adam, AdamW, Sgd};
pub use schedule::Schedule;

pub mod extra {
    //! The other optimizers, and the parts that all are chains of.
    pub use super::adam::scale_by_adam;
    pub use super::belief::scale_by_belief;
    pub use super::compose::{
        apply_if_finite, clip, inject_hyperparams, masked, multi_steps, partition, set_to_zero,
    };
    pub use super::decay::add_decayed_weights;
    pub use super::lion::scale_by_lion;
    pub use super::momentum::scale_by_momentum;
    pub use super::plateau::{ReduceOnPlateau, reduce_on_plateau};
    pub use super::radam::scale_by_radam;
    pub use super::rate::scale_by_learning_rate;
    pub use super::rms::{scale_by_rms, scale_by_rss};
    pub use super::rules::{AdaBelief, AdaGrad, Lamb, Lion, NAdam, RAdam, RmsProp};
}
#[cfg(any(test, feature = "train"))]
pub(crate) use extra::*;

// What builders and lists of optimizers are: nobody has to name them.
#[doc(hidden)]
pub use self::{
    adam::ScaleByAdam,
    belief::ScaleByBelief,
    compose::OptimizerList,
    lion::ScaleByLion,
    momentum::ScaleByMomentum,
    radam::ScaleByRadam,
    rms::{ScaleByRms, ScaleByRss},
};

#[cfg(test)]
mod tests;
