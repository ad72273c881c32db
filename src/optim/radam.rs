//! RAdam: momentum while the second moment averages too few gradients, then Adam.

use super::hyper::{Hyper, MapNumber, setters};
use super::moments::{self, Moments, average, unbias};
use super::part::{Memory, Part, Slot, Transform};
use crate::array::DType;
use crate::tensor::Tensor;

/// The direction of RAdam; see [`scale_by_radam`].
///
/// With Adam's m and v, `R = 2 / (1 - b2) - 1` and `q = R - 2 n b2^n / (1 - b2^n)`:
/// `u = r (m / (1 - b1^n)) / (sqrt(v / (1 - b2^n)) + eps)` where q is at least the threshold, with
/// `r^2 = (q - 4) (q - 2) R / ((R - 4) (R - 2) q)`, else `u = m / (1 - b1^n)`.
///
/// The branch is a `select` on the counter in the state, so the program is the same at every update. The
/// scalars of both branches are selected once; an element costs one `select` more than in Adam.
///
/// # References
/// Liu et al. (2020), On the variance of the adaptive learning rate and beyond, algorithm 2. The paper's
/// condition is `q > 4`; the authors' program and Optax use the threshold 5.
#[derive(Clone, Debug)]
pub struct ScaleByRadam {
    pub(super) moments: Moments,
    pub(super) threshold: Hyper,
}

/// The direction of [`RAdam`](super::RAdam).
pub fn scale_by_radam() -> ScaleByRadam {
    ScaleByRadam { moments: Moments::new(0.9, 0.999, 1e-8), threshold: Hyper::new("threshold", 5.0) }
}

setters! {
    ScaleByRadam {
        beta1 => moments.beta1, beta2 => moments.beta2, eps => moments.eps, threshold => threshold,
    }
}

impl ScaleByRadam {
    /// Whether the second moment is used, and r if it is.
    fn rectification(&self, n: &Tensor, unbias2: &Tensor) -> (Tensor, Tensor) {
        let beta2 = &self.moments.beta2;
        let limit = 2.0 / beta2.complement().real() - 1.0;
        let n = n.cast(DType::F64);
        let rho = &limit - 2.0 * &n * (&n * beta2.ln()).exp() * unbias2;
        let rectified = rho.ge(self.threshold.real());
        // Clamped from below so that the square root in the unselected branch is not NaN, which `debug_nans`
        // would report.
        let rho = rho.maximum(&self.threshold.real());
        let square = (&rho - 4.0) * (&rho - 2.0) * &limit / ((&limit - 4.0) * (&limit - 2.0) * rho);
        (rectified, square.sqrt())
    }
}

impl Transform for ScaleByRadam {
    fn init(&self, slots: &[Slot], memory: &mut Memory) {
        moments::init(slots, memory);
    }

    fn apply(&self, slots: &mut [Slot], memory: &mut Memory) {
        let Moments { beta1, beta2, eps } = &self.moments;
        let n = memory.count("count") + 1;
        let (unbias1, unbias2) = (unbias(beta1, &n), unbias(beta2, &n));
        let (rectified, r) = self.rectification(&n, &unbias2);
        let of_m = rectified.select(&(r * &unbias1), &unbias1);
        for slot in slots {
            let g = &slot.update;
            let m = memory.change("mu", slot, |m| average(m, g, beta1));
            let v = memory.change("nu", slot, |v| average(v, &g.square(), beta2));
            let root = (v * unbias2.cast(g.dtype())).sqrt() + eps.like(g);
            slot.update = m * of_m.cast(g.dtype()) / rectified.select(&root, &Tensor::scalar(g.dtype(), 1.0));
        }
    }

    fn map_numbers(&self, f: &mut MapNumber) -> Part {
        let threshold = self.threshold.map("threshold", f);
        Part::ScaleByRadam(ScaleByRadam { moments: self.moments.map_numbers(f), threshold })
    }
}
