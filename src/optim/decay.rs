//! Decoupled weight decay.

use super::Optimizer;
use super::groups::Include;
use super::hyper::{Hyper, MapNumber};
use super::part::{Memory, Part, Slot, Transform};
use crate::tensor::Tensor;

/// `u + d p` for the included leaves.
///
/// # References
/// Loshchilov and Hutter (2019), Decoupled weight decay regularization, algorithm 2; here the learning rate
/// scales the decay, where the paper has the schedule's multiplier.
#[derive(Clone, Debug)]
pub(super) struct DecayWeights {
    pub decay: Hyper,
    pub include: Include,
}

/// Adds `weight_decay p` to the update of each leaf, where p is its weight. The decay is decoupled if this
/// part is placed after a rule's direction and before the learning rate. [`masked`](super::masked) restricts
/// it to some leaves.
#[track_caller]
pub fn add_decayed_weights(weight_decay: impl Into<Tensor>) -> Optimizer {
    DecayWeights::new(weight_decay).into()
}

impl DecayWeights {
    /// Decays every leaf.
    #[track_caller]
    pub fn new(weight_decay: impl Into<Tensor>) -> DecayWeights {
        DecayWeights { decay: Hyper::new("weight_decay", weight_decay), include: Include::default() }
    }
}

impl Transform for DecayWeights {
    fn apply(&self, slots: &mut [Slot], _: &mut Memory) {
        if self.decay.is_zero() {
            return;
        }
        for slot in slots.iter_mut().filter(|slot| self.include.holds(&slot.path)) {
            slot.update = &slot.update + &slot.weight * self.decay.like(&slot.weight);
        }
    }

    fn map_numbers(&self, f: &mut MapNumber) -> Part {
        let decay = self.decay.map("weight_decay", f);
        Part::DecayWeights(DecayWeights { decay, include: self.include.clone() })
    }
}
