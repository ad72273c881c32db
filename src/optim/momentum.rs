//! Momentum: heavy ball or Nesterov.

use super::hyper::{Hyper, MapNumber};
use super::part::{Memory, Part, Slot, Transform};
use crate::tensor::Tensor;

/// Momentum; see [`scale_by_momentum`].
///
/// `m = b m + g`; `u = m`, or with Nesterov momentum `u = g + b m`. Without b, the part returns its input.
///
/// # References
/// Polyak (1964). Sutskever et al. (2013), On the importance of initialization and momentum in deep learning,
/// eq. 1 to 4, in the form that evaluates the gradient at the weights themselves.
#[derive(Clone, Debug)]
pub struct ScaleByMomentum {
    pub(super) decay: Option<Hyper>,
    pub(super) nesterov: bool,
}

/// `m = decay m + u`, passed to the next part; see [`Sgd`](super::Sgd). Optax calls it `trace`.
#[track_caller]
pub fn scale_by_momentum(decay: impl Into<Tensor>) -> ScaleByMomentum {
    ScaleByMomentum { decay: Some(Hyper::new("momentum", decay)), nesterov: false }
}

impl ScaleByMomentum {
    /// Nesterov momentum: the next part receives `u + decay m`.
    pub fn nesterov(mut self) -> ScaleByMomentum {
        self.nesterov = true;
        self
    }

    /// No momentum: plain [`Sgd`](super::Sgd).
    pub(super) fn none() -> ScaleByMomentum {
        ScaleByMomentum { decay: None, nesterov: false }
    }
}

impl Transform for ScaleByMomentum {
    fn init(&self, slots: &[Slot], memory: &mut Memory) {
        if self.decay.is_some() {
            memory.put_zeros("trace", slots);
        }
    }

    fn apply(&self, slots: &mut [Slot], memory: &mut Memory) {
        let Some(decay) = &self.decay else { return };
        for slot in slots {
            let g = slot.update.clone();
            let m = memory.change("trace", slot, |m| &g + m * decay.like(&g));
            slot.update = if self.nesterov { &g + m * decay.like(&g) } else { m };
        }
    }

    fn map_numbers(&self, f: &mut MapNumber) -> Part {
        let decay = self.decay.as_ref().map(|x| x.map("momentum", f));
        Part::ScaleByMomentum(ScaleByMomentum { decay, nesterov: self.nesterov })
    }
}
