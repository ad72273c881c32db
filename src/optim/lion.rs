//! Lion: the sign of a momentum.

use super::hyper::{Hyper, MapNumber};
use super::moments::average;
use super::part::{Memory, Part, Slot, Transform};

/// `u = sign(b1 m + (1 - b1) g)`, then `m = b2 m + (1 - b2) g`
///
/// # References
/// Chen et al. (2023), Symbolic discovery of optimization algorithms, algorithm 2.
#[derive(Clone, Debug)]
pub(super) struct Lion {
    pub beta1: Hyper,
    pub beta2: Hyper,
}

impl Transform for Lion {
    fn init(&self, slots: &[Slot], memory: &mut Memory) {
        memory.put_zeros("mu", slots);
    }

    fn apply(&self, slots: &mut [Slot], memory: &mut Memory) {
        for slot in slots {
            let g = slot.update.clone();
            let mut direction = None;
            memory.change("mu", slot, |m| {
                direction = Some(average(m.clone(), &g, &self.beta1).sign());
                average(m, &g, &self.beta2)
            });
            slot.update = direction.expect("invariant: the memory was changed");
        }
    }

    fn map_numbers(&self, f: &mut MapNumber) -> Part {
        Part::Lion(Lion { beta1: self.beta1.map("beta1", f), beta2: self.beta2.map("beta2", f) })
    }
}
