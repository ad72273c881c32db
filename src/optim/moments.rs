//! Shared by rules with moments: exponential averages of gradients and their bias correction.

use super::hyper::{Hyper, MapNumber};
use super::part::{Memory, Slot};
use crate::array::DType;
use crate::tensor::Tensor;

/// Sets `count`, `mu` and `nu` to zero.
pub(super) fn init(slots: &[Slot], memory: &mut Memory) {
    memory.put("count", Tensor::from(0u32));
    memory.put_zeros("mu", slots);
    memory.put_zeros("nu", slots);
}

/// The decay rates of two moments, and the eps added to the square root of the second.
#[derive(Clone, Debug)]
pub(super) struct Moments {
    pub beta1: Hyper,
    pub beta2: Hyper,
    pub eps: Hyper,
}

impl Moments {
    pub fn new(beta1: f64, beta2: f64, eps: f64) -> Moments {
        Moments {
            beta1: Hyper::new("beta1", beta1),
            beta2: Hyper::new("beta2", beta2),
            eps: Hyper::new("eps", eps),
        }
    }

    pub fn map_numbers(&self, f: &mut MapNumber) -> Moments {
        Moments {
            beta1: self.beta1.map("beta1", f),
            beta2: self.beta2.map("beta2", f),
            eps: self.eps.map("eps", f),
        }
    }
}

/// `b old + (1 - b) new`
pub(super) fn average(old: Tensor, new: &Tensor, beta: &Hyper) -> Tensor {
    old * beta.like(new) + new * beta.complement().like(new)
}

/// `1 / (1 - b^n)` in f64: the bias correction of an average of n numbers that started at zero. Computed as
/// `-1 / expm1(n ln b)`, which is accurate also where `b^n` is near 1.
pub(super) fn unbias(beta: &Hyper, n: &Tensor) -> Tensor {
    -1.0 / (n.cast(DType::F64) * beta.ln()).expm1()
}

/// Zeros with the type and shape of x.
pub(super) fn zeros_like(x: &Tensor) -> Tensor {
    Tensor::full(x.dtype(), x.shape().clone(), 0.0)
}

/// The update that keeps every bit of a weight, of rank 0: -0, because `x + 0` turns -0 into 0.
pub(super) fn no_update(weight: &Tensor) -> Tensor {
    Tensor::scalar(weight.dtype(), -0.0)
}
