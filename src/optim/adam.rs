//! Adam with decoupled weight decay, as one elementwise formula a leaf.

use super::Schedule;
use super::part::{Memory, Slot};
use crate::array::DType;
use crate::tensor::Tensor;

/// Adam, and AdamW where `weight_decay` is not 0.
///
/// With g the gradient, p the weight, r the rate and n = 1, 2, ... the update,
/// `m = b1 m + (1 - b1) g`, `v = b2 v + (1 - b2) g^2`,
/// `p += -r ((m / (1 - b1^n)) / (sqrt(v / (1 - b2^n)) + eps) + weight_decay p)`.
///
/// The decay acts on every trained leaf, biases too, and scales with the rate.
///
/// # References
/// Kingma and Ba (2015), Adam, algorithm 1; Loshchilov and Hutter (2019), Decoupled weight decay
/// regularization, algorithm 2 with the schedule's multiplier taken as the rate.
#[derive(Clone, Debug)]
pub(super) struct Adam {
    pub rate: Schedule,
    pub beta1: f64,
    pub beta2: f64,
    pub eps: f64,
    pub weight_decay: f64,
}

impl Adam {
    pub fn new(rate: Schedule, weight_decay: f64) -> Adam {
        Adam { rate, beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay }
    }

    pub fn init(slots: &[Slot], memory: &mut Memory) {
        memory.put("count", Tensor::from(0u32));
        for slot in slots {
            memory.put(&format!("mu.{}", slot.path), zeros_like(&slot.weight));
            memory.put(&format!("nu.{}", slot.path), zeros_like(&slot.weight));
        }
    }

    pub fn apply(&self, slots: &mut [Slot], memory: &mut Memory) {
        let before = memory.take("count");
        let count = &before + 1;
        let rate = self.rate.at(&before);
        let n = count.cast(DType::F64);
        // 1 / (1 - b^n) = -1 / expm1(n ln b), exact where b^n is near 1 too.
        let unbias = |beta: f64| -1.0 / (&n * beta.ln()).expm1();
        let (unbias1, unbias2) = (unbias(self.beta1), unbias(self.beta2));
        memory.put("count", count);
        for slot in slots {
            let like = |x: &Tensor| x.cast(slot.weight.dtype());
            let (mu, nu) = (format!("mu.{}", slot.path), format!("nu.{}", slot.path));
            let g = &slot.update;
            let m = memory.take(&mu) * self.beta1 + g * (1.0 - self.beta1);
            let v = memory.take(&nu) * self.beta2 + g.square() * (1.0 - self.beta2);
            let mut direction = &m * like(&unbias1) / ((&v * like(&unbias2)).sqrt() + self.eps);
            if self.weight_decay != 0.0 {
                direction = direction + &slot.weight * self.weight_decay;
            }
            slot.update = -(direction * like(&rate));
            memory.put(&mu, m);
            memory.put(&nu, v);
        }
    }
}

/// Zeros of the type of x.
pub(super) fn zeros_like(x: &Tensor) -> Tensor {
    Tensor::full(x.dtype(), x.shape().clone(), 0.0)
}
