//! AdaBelief: Adam whose second moment is the mean squared distance of the gradient from its mean.

use super::hyper::{Hyper, MapNumber, setters};
use super::moments::{self, Moments, average, unbias};
use super::part::{Memory, Part, Slot, Transform};
use crate::tensor::Tensor;

/// The direction of AdaBelief; see [`scale_by_belief`].
///
/// `m = b1 m + (1 - b1) g`, `s = b2 s + (1 - b2) (g - m)^2 + eps_root`,
/// `u = (m / (1 - b1^n)) / (sqrt(s / (1 - b2^n)) + eps)`.
///
/// The paper's eps is eps_root. It is added to s itself at every update, as in Optax 0.2.8, so after n
/// updates s contains `eps_root (1 - b2^n) / (1 - b2)`. The eps outside the square root is Optax's.
///
/// # References
/// Zhuang et al. (2020), AdaBelief optimizer, algorithm 2.
#[derive(Clone, Debug)]
pub struct ScaleByBelief {
    pub(super) moments: Moments,
    pub(super) eps_root: Hyper,
}

/// The direction of [`AdaBelief`](super::AdaBelief).
pub fn scale_by_belief() -> ScaleByBelief {
    ScaleByBelief { moments: Moments::new(0.9, 0.999, 1e-16), eps_root: Hyper::new("eps_root", 1e-16) }
}

setters! { ScaleByBelief { beta1 => moments.beta1, beta2 => moments.beta2, eps => moments.eps, eps_root => eps_root } }

impl Transform for ScaleByBelief {
    fn init(&self, slots: &[Slot], memory: &mut Memory) {
        moments::init(slots, memory);
    }

    fn apply(&self, slots: &mut [Slot], memory: &mut Memory) {
        let Moments { beta1, beta2, eps } = &self.moments;
        let n = memory.count("count") + 1;
        let (unbias1, unbias2) = (unbias(beta1, &n), unbias(beta2, &n));
        for slot in slots {
            let g = &slot.update;
            let m = memory.change("mu", slot, |m| average(m, g, beta1));
            let eps_root = self.eps_root.like(g);
            let s = memory.change("nu", slot, |s| average(s, &(g - &m).square(), beta2) + eps_root);
            let root = (s * unbias2.cast(g.dtype())).sqrt();
            slot.update = m * unbias1.cast(g.dtype()) / (root + eps.like(g));
        }
    }

    fn map_numbers(&self, f: &mut MapNumber) -> Part {
        let eps_root = self.eps_root.map("eps_root", f);
        Part::ScaleByBelief(ScaleByBelief { moments: self.moments.map_numbers(f), eps_root })
    }
}
