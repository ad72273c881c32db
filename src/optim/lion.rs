//! Lion: the sign of a momentum.

use super::hyper::{Hyper, MapNumber, setters};
use super::moments::average;
use super::part::{Memory, Part, Slot, Transform};
use crate::tensor::Tensor;

/// The direction of Lion; see [`scale_by_lion`].
///
/// `u = sign(b1 m + (1 - b1) g)`, then `m = b2 m + (1 - b2) g`
///
/// # References
/// Chen et al. (2023), Symbolic discovery of optimization algorithms, algorithm 2.
#[derive(Clone, Debug)]
pub struct ScaleByLion {
    pub(super) beta1: Hyper,
    pub(super) beta2: Hyper,
}

/// The direction of [`Lion`](super::Lion).
pub fn scale_by_lion() -> ScaleByLion {
    ScaleByLion { beta1: Hyper::new("beta1", 0.9), beta2: Hyper::new("beta2", 0.99) }
}

setters! { ScaleByLion { beta1 => beta1, beta2 => beta2 } }

impl Transform for ScaleByLion {
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
            slot.update = direction.expect("invariant: the momentum was updated");
        }
    }

    fn map_numbers(&self, f: &mut MapNumber) -> Part {
        Part::ScaleByLion(ScaleByLion {
            beta1: self.beta1.map("beta1", f),
            beta2: self.beta2.map("beta2", f),
        })
    }
}
