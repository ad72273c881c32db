//! Gradients divided by a square root: that of the average of their squares in RMSProp, that of the sum of their
//! squares in AdaGrad.

use super::hyper::{Hyper, MapNumber, setters};
use super::moments::average;
use super::part::{Memory, Part, Slot, Transform};
use crate::tensor::Tensor;

/// The direction of RMSProp; see [`scale_by_rms`].
///
/// `v = b v + (1 - b) g^2`, `u = g / sqrt(v + eps)`
///
/// # References
/// Tieleman and Hinton (2012), lecture 6.5 of Neural networks for machine learning.
#[derive(Clone, Debug)]
pub struct ScaleByRms {
    pub(super) decay: Hyper,
    pub(super) eps: Hyper,
}

/// The direction of [`RmsProp`](super::RmsProp).
pub fn scale_by_rms() -> ScaleByRms {
    ScaleByRms { decay: Hyper::new("decay", 0.9), eps: Hyper::new("eps", 1e-8) }
}

setters! { ScaleByRms { decay => decay, eps => eps } }

impl Transform for ScaleByRms {
    fn init(&self, slots: &[Slot], memory: &mut Memory) {
        memory.put_zeros("nu", slots);
    }

    fn apply(&self, slots: &mut [Slot], memory: &mut Memory) {
        for slot in slots {
            let g = &slot.update;
            let v = memory.change("nu", slot, |v| average(v, &g.square(), &self.decay));
            slot.update = g / (v + self.eps.like(g)).sqrt();
        }
    }

    fn map_numbers(&self, f: &mut MapNumber) -> Part {
        Part::ScaleByRms(ScaleByRms { decay: self.decay.map("decay", f), eps: self.eps.map("eps", f) })
    }
}

/// The direction of AdaGrad; see [`scale_by_rss`].
///
/// `s = s + g^2`, `u = g / sqrt(s + eps)`, and 0 where s is 0.
///
/// # References
/// Duchi, Hazan and Singer (2011), Adaptive subgradient methods, figure 1, diagonal form.
#[derive(Clone, Debug)]
pub struct ScaleByRss {
    /// The value of s before the first update.
    pub(super) initial: Hyper,
    pub(super) eps: Hyper,
}

/// The direction of [`AdaGrad`](super::AdaGrad).
pub fn scale_by_rss() -> ScaleByRss {
    ScaleByRss { initial: Hyper::new("initial_accumulator", 0.1), eps: Hyper::new("eps", 1e-7) }
}

setters! { ScaleByRss { initial_accumulator => initial, eps => eps } }

impl Transform for ScaleByRss {
    fn init(&self, slots: &[Slot], memory: &mut Memory) {
        for slot in slots {
            let initial = self.initial.like(&slot.weight).broadcast_to(slot.weight.shape().clone());
            memory.put(&format!("sum.{}", slot.path), initial);
        }
    }

    fn apply(&self, slots: &mut [Slot], memory: &mut Memory) {
        for slot in slots {
            let g = &slot.update;
            let s = memory.change("sum", slot, |s| s + g.square());
            let zero = Tensor::scalar(g.dtype(), 0.0);
            let root = (&s + self.eps.like(g)).sqrt();
            // Not `s > 0`: a NaN must stay visible.
            slot.update = s.eq(&zero).select(&zero, &(g / root));
        }
    }

    fn map_numbers(&self, f: &mut MapNumber) -> Part {
        // The initial sum is read only by `init`, so it is not an adjustable hyper-parameter.
        Part::ScaleByRss(ScaleByRss { initial: self.initial.clone(), eps: self.eps.map("eps", f) })
    }
}

#[cfg(test)]
mod tests {
    use crate::optim::{AdaGrad, RmsProp};
    use crate::tensor::Tensor;

    #[test]
    fn a_gradient_that_was_always_zero_moves_nothing() {
        for optimizer in
            [AdaGrad::new(0.1).initial_accumulator(0.0).eps(0.0).build(), RmsProp::new(0.1).build()]
        {
            let x = Tensor::from([1.0, 2.0]);
            let (after, _) = optimizer.update(&x, Tensor::from([0.0, 1.0]), optimizer.init(&x));
            assert_eq!(after.to_vec()[0], 1.0);
            assert!(after.to_vec()[1] < 2.0);
        }
    }
}
