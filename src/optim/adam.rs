//! Adam and NAdam, its form with Nesterov momentum.

use super::hyper::{Hyper, MapNumber, setters};
use super::moments::{self, Moments, average, unbias};
use super::part::{Memory, Part, Slot, Transform};
use crate::tensor::Tensor;

/// The direction of Adam; see [`scale_by_adam`].
///
/// With g the gradient and n = 1, 2, ... the update, `m = b1 m + (1 - b1) g`, `v = b2 v + (1 - b2) g^2`,
/// `u = m' / (sqrt(v / (1 - b2^n)) + eps)`, where m' is `m / (1 - b1^n)`, or with Nesterov momentum
/// `b1 m / (1 - b1^(n + 1)) + (1 - b1) g / (1 - b1^n)`.
///
/// # References
/// Kingma and Ba (2015), Adam, algorithm 1. Dozat (2016), Incorporating Nesterov momentum into Adam,
/// algorithm 2, with one beta1 for all updates.
#[derive(Clone, Debug)]
pub struct ScaleByAdam {
    pub(super) moments: Moments,
    pub(super) nesterov: bool,
}

/// The direction of [`Adam`](super::Adam): `chain((scale_by_adam(), scale_by_learning_rate(r)))` makes the
/// same updates as `Adam::new(r)`.
pub fn scale_by_adam() -> ScaleByAdam {
    ScaleByAdam { moments: Moments::new(0.9, 0.999, 1e-8), nesterov: false }
}

impl ScaleByAdam {
    /// Uses Nesterov momentum: the direction of [`NAdam`](super::NAdam).
    pub fn nesterov(mut self) -> ScaleByAdam {
        self.nesterov = true;
        self
    }
}

setters! { ScaleByAdam { beta1 => moments.beta1, beta2 => moments.beta2, eps => moments.eps } }

impl Transform for ScaleByAdam {
    fn init(&self, slots: &[Slot], memory: &mut Memory) {
        moments::init(slots, memory);
    }

    fn apply(&self, slots: &mut [Slot], memory: &mut Memory) {
        let Moments { beta1, beta2, eps } = &self.moments;
        let n = memory.count("count") + 1;
        let (unbias1, unbias2) = (unbias(beta1, &n), unbias(beta2, &n));
        // f64 scalars: the factors of m and g in Nesterov momentum.
        let ahead = self
            .nesterov
            .then(|| (unbias(beta1, &(&n + 1)) * beta1.real(), &unbias1 * beta1.complement().real()));
        for slot in slots {
            let g = &slot.update;
            let m = memory.change("mu", slot, |m| average(m, g, beta1));
            let v = memory.change("nu", slot, |v| average(v, &g.square(), beta2));
            let m = match &ahead {
                None => m * unbias1.cast(g.dtype()),
                Some((of_m, of_g)) => m * of_m.cast(g.dtype()) + g * of_g.cast(g.dtype()),
            };
            slot.update = m / ((v * unbias2.cast(g.dtype())).sqrt() + eps.like(g));
        }
    }

    fn map_numbers(&self, f: &mut MapNumber) -> Part {
        Part::ScaleByAdam(ScaleByAdam { moments: self.moments.map_numbers(f), nesterov: self.nesterov })
    }
}
