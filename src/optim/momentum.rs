//! Momentum, heavy ball or Nesterov's.

use super::hyper::{Hyper, MapNumber};
use super::part::{Memory, Part, Slot, Transform};

/// `m = b m + g`; `u = m`, or with Nesterov's `u = g + b m`. Without a b it is no part at all.
///
/// # References
/// Polyak (1964). Sutskever et al. (2013), On the importance of initialization and momentum in deep
/// learning, eq. 1 to 4, in the form that evaluates the gradient at the weights themselves.
#[derive(Clone, Debug)]
pub(super) struct Momentum {
    pub decay: Option<Hyper>,
    pub nesterov: bool,
}

impl Transform for Momentum {
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
        Part::Momentum(Momentum { decay, nesterov: self.nesterov })
    }
}
