//! The parts of a chain, and the state they read and write.

use super::Optimizer;
use super::accumulate::Accumulate;
use super::adam::ScaleByAdam;
use super::belief::ScaleByBelief;
use super::clip::{ClipGlobalNorm, ClipValue};
use super::decay::DecayWeights;
use super::groups::{Freeze, Partition};
use super::hyper::MapNumber;
use super::inject::Inject;
use super::lion::ScaleByLion;
use super::moments::zeros_like;
use super::momentum::ScaleByMomentum;
use super::plateau::ReduceOnPlateau;
use super::radam::ScaleByRadam;
use super::rate::ScaleByRate;
use super::rms::{ScaleByRms, ScaleByRss};
use super::skip::SkipNonFinite;
use super::trust::TrustRatio;
use crate::array::DType;
use crate::tensor::Tensor;
use std::collections::BTreeMap;

/// A trained leaf on its way through a chain.
#[derive(Clone)]
pub(super) struct Slot {
    pub path: String,
    pub weight: Tensor,
    /// The gradient at first; at the end, the change to add to the weight.
    pub update: Tensor,
}

/// The state tensors of one part, stored in a map under a prefix; and the loss, if the caller passed it.
pub(super) struct Memory<'a> {
    pub leaves: &'a mut BTreeMap<String, Tensor>,
    pub prefix: String,
    pub value: Option<Tensor>,
}

impl Memory<'_> {
    pub fn within(&mut self, name: &str) -> Memory<'_> {
        let (prefix, value) = (format!("{}{name}.", self.prefix), self.value.clone());
        Memory { prefix, leaves: self.leaves, value }
    }

    pub fn put(&mut self, name: &str, x: Tensor) {
        self.leaves.insert(format!("{}{name}", self.prefix), x);
    }

    /// Zeros for each leaf, under `name.path`.
    pub fn put_zeros(&mut self, name: &str, slots: &[Slot]) {
        for slot in slots {
            self.put(&format!("{name}.{}", slot.path), zeros_like(&slot.weight));
        }
    }

    #[track_caller]
    pub fn take(&mut self, name: &str) -> Tensor {
        let name = format!("{}{name}", self.prefix);
        let found = self.leaves.remove(&name);
        found.unwrap_or_else(|| {
            panic!(
                "the optimizer state has no `{name}`: it belongs to another optimizer or model; call `init`"
            )
        })
    }

    /// Replaces the tensor `name.path` and returns its new value.
    #[track_caller]
    pub fn change(&mut self, name: &str, slot: &Slot, f: impl FnOnce(Tensor) -> Tensor) -> Tensor {
        let name = format!("{name}.{}", slot.path);
        let new = f(self.take(&name));
        self.put(&name, new.clone());
        new
    }

    /// Adds 1 to a counter and returns the previous count.
    #[track_caller]
    pub fn count(&mut self, name: &str) -> Tensor {
        let before = self.take(name);
        self.put(name, &before + 1);
        before
    }

    /// The loss at this update.
    #[track_caller]
    pub fn loss(&self) -> &Tensor {
        self.value.as_ref().expect("this optimizer reads the loss: call `update_with_value`")
    }

    /// All tensors under the prefix.
    pub fn snapshot(&self) -> Vec<(String, Tensor)> {
        let mine = self.leaves.iter().filter(|(name, _)| name.starts_with(&self.prefix));
        mine.map(|(name, x)| (name.clone(), x.clone())).collect()
    }

    /// Restores the snapshot if `moved`, a bool of rank 0, is false.
    pub fn keep_if(&mut self, moved: &Tensor, before: Vec<(String, Tensor)>) {
        for (name, old) in before {
            let new = self.leaves.get_mut(&name).expect("invariant: a part puts back what it takes");
            *new = moved.select(new, &old);
        }
    }
}

/// A map from updates to updates. Stateless parts implement only `apply` and `map_numbers`.
pub(super) trait Transform {
    /// Adds the state before the first update.
    fn init(&self, _slots: &[Slot], _memory: &mut Memory) {}
    /// Transforms the updates and updates the state.
    fn apply(&self, slots: &mut [Slot], memory: &mut Memory);
    /// The same part with other hyper-parameters.
    fn map_numbers(&self, f: &mut MapNumber) -> Part;
    /// Whether the part reads the loss.
    fn needs_value(&self) -> bool {
        false
    }
}

macro_rules! parts {
    ($($(#[$doc:meta])* $part:ident),* $(,)?) => {
        /// The closed set of transforms.
        #[derive(Clone, Debug)]
        pub(super) enum Part { $($(#[$doc])* $part($part)),* }
        impl Part {
            pub fn transform(&self) -> &dyn Transform {
                match self { $(Part::$part(x) => x),* }
            }
        }
        $(impl From<$part> for Optimizer {
            fn from(part: $part) -> Optimizer {
                Optimizer { parts: vec![Part::$part(part)] }
            }
        })*
    };
}
parts! {
    /// Clips each element.
    ClipValue,
    /// Clips the joint 2-norm.
    ClipGlobalNorm,
    ScaleByMomentum, ScaleByAdam, ScaleByBelief, ScaleByRadam, ScaleByRms, ScaleByRss, ScaleByLion,
    /// Scales the update of each leaf to the norm of its weights.
    TrustRatio,
    DecayWeights,
    /// Multiplies by minus the learning rate.
    ScaleByRate,
    /// Multiplies by a scale that decreases when the loss stops falling.
    ReduceOnPlateau,
    /// Sets updates to zero.
    Freeze,
    Partition, Accumulate, SkipNonFinite, Inject,
}

/// Whether every element of every update is finite: a bool of rank 0.
pub(super) fn all_finite(slots: &[Slot]) -> Tensor {
    let bad = slots.iter().map(|slot| slot.update.is_finite().not().sum());
    let bad = bad.reduce(|a, b| a + b).unwrap_or_else(|| Tensor::scalar(DType::I32, 0.0));
    bad.eq(Tensor::scalar(DType::I32, 0.0))
}
