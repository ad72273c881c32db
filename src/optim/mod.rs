//! Optimizers, schedules and averages: plain data and pure functions of trees.
//!
//! An [`Optimizer`] is a chain of parts, as in Optax. Each part maps updates to updates: the first receives
//! the gradients, and the output of the last is added to the weights. A named optimizer such as [`Adam`] is a
//! builder with typed setters for such a chain: a rule for the direction, weight decay, a learning rate.
//! Functions that take an optimizer accept anything that converts into one.
//!
//! All state is in an [`OptState`], a tree of tensors that includes the counters. A jitted function can carry this
//! state, files can store it, and no count is a constant of the trace. Formulas and defaults are Optax's; tests
//! compare the trajectories.
//!
//! Parts are variants of a closed enum, not types, so every chain has the same type and one kind of state. Each
//! part, or pair of related parts, has a file; the trait in `part` is their interface. A part does not depend
//! on the loss, the layers or the computation of gradients. From `nn` this module uses only which leaves are
//! frozen. Only the training loop of [`Fit`] and [`minimize`] combines a loss, its gradient and an optimizer;
//! [`covariance`] says how well data determine what they found.

mod accumulate;
mod adam;
mod average;
mod belief;
mod clip;
mod compose;
mod covariance;
mod decay;
mod fit;
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
pub use covariance::covariance;
pub use fit::{Fit, FitState};
pub use minimize::minimize;
pub use optimizer::{OptState, Optimizer};
pub use rules::{Adam, AdamW, Sgd};
pub use schedule::Schedule;

pub mod extra {
    //! The other optimizers, and the parts from which all optimizers are built.
    pub use super::adam::scale_by_adam;
    pub use super::belief::scale_by_belief;
    pub use super::compose::{
        accumulate_gradients, apply_if_finite, clip, inject_hyperparams, masked, partition, set_to_zero,
    };
    pub use super::covariance::Covariance;
    pub use super::decay::add_decayed_weights;
    pub use super::fit::{FitProgress, FitResult, Update};
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

// Types of builders and lists of optimizers; users do not need to name them.
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
