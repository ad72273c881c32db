//! Learning rate reduction when the loss stops falling.

use super::hyper::{Hyper, MapNumber, setters};
use super::part::{Memory, Part, Slot, Transform};
use crate::array::DType;
use crate::tensor::Tensor;

/// Multiplies updates by a scale that decreases when the loss stops falling; see [`reduce_on_plateau`].
///
/// The scale s is 1 at first. A loss below `best - rtol |best|` is the new best. After `patience` losses in a
/// row without a new best, `s = max(factor s, min_scale)`, and the next `cooldown` losses are not counted. A
/// NaN is never a new best.
///
/// The scale of an update already takes that update's loss into account.
#[derive(Clone, Debug)]
pub struct ReduceOnPlateau {
    pub(super) factor: Hyper,
    pub(super) patience: Hyper,
    pub(super) rtol: Hyper,
    pub(super) cooldown: Hyper,
    pub(super) min_scale: Hyper,
}

/// Multiplies updates by s, which is 1 at first and is multiplied by `factor` after `patience` updates in a
/// row whose loss is not below `best - rtol |best|`. Setters: [`ReduceOnPlateau::rtol`],
/// [`ReduceOnPlateau::cooldown`], [`ReduceOnPlateau::min_scale`].
///
/// Place it after a rule, `chain((Adam::new(1e-3), reduce_on_plateau(0.1, 10)))`: most rules undo a scaling
/// of the gradients. Pass the loss to [`Optimizer::update_with_value`](super::Optimizer::update_with_value):
/// the batch loss, a smoothed loss or the last validation loss. `state.get("scale")` is s.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// use flowline::optim::*;
/// use flowline::optim::extra::reduce_on_plateau;
/// let optimizer = chain((Sgd::new(1.0), reduce_on_plateau(0.5, 1)));
/// let (mut x, mut state) = (Tensor::from(0.0), optimizer.init(&Tensor::from(0.0)));
/// for loss in [3.0, 3.0] {
///     (x, state) = optimizer.update_with_value(&x, Tensor::from(-1.0), state, &Tensor::from(loss));
/// }
/// assert_eq!((x.item(), state.get("scale").unwrap().item()), (1.5, 0.5));
/// ```
#[track_caller]
pub fn reduce_on_plateau(factor: impl Into<Tensor>, patience: impl Into<Tensor>) -> ReduceOnPlateau {
    ReduceOnPlateau {
        factor: Hyper::new("factor", factor),
        patience: Hyper::new("patience", patience),
        rtol: Hyper::new("rtol", 1e-4),
        cooldown: Hyper::new("cooldown", 0.0),
        min_scale: Hyper::new("min_scale", 0.0),
    }
}

setters! { ReduceOnPlateau { rtol => rtol, cooldown => cooldown, min_scale => min_scale } }

impl Transform for ReduceOnPlateau {
    fn init(&self, _: &[Slot], memory: &mut Memory) {
        memory.put("scale", Tensor::from(1.0));
        memory.put("best", Tensor::from(f64::INFINITY));
        memory.put("waited", Tensor::from(0u32));
        memory.put("cooling", Tensor::from(0u32));
    }

    fn apply(&self, slots: &mut [Slot], memory: &mut Memory) {
        let loss = memory.loss().cast(DType::F64);
        let (scale, best) = (memory.take("scale"), memory.take("best"));
        let (waited, cooling) = (memory.take("waited"), memory.take("cooling"));
        let zero = Tensor::from(0u32);

        // This product is infinite before the first loss; `best - rtol |best|` would be NaN.
        let share =
            best.lt(Tensor::from(0.0)).select(&(self.rtol.real() + 1.0), &self.rtol.complement().real());
        let improved = loss.lt(share * &best);
        let is_cooling = cooling.gt(&zero);
        let waited = improved.or(&is_cooling).select(&zero, &(waited + 1));
        let tired = waited.ge(self.patience.cast(DType::U32)).and(&is_cooling.not()).and(&improved.not());
        let lower = (&scale * self.factor.real()).maximum(&self.min_scale.real());
        let scale = tired.select(&lower, &scale);
        // `cooling` is unsigned, so it is not decremented at 0.
        let cooled = is_cooling.select(&(cooling.maximum(&Tensor::from(1u32)) - 1), &zero);

        memory.put("best", improved.select(&loss, &best));
        memory.put("waited", tired.select(&zero, &waited));
        memory.put("cooling", tired.select(&self.cooldown.cast(DType::U32), &cooled));
        for slot in slots {
            slot.update = &slot.update * scale.cast(slot.update.dtype());
        }
        memory.put("scale", scale);
    }

    fn map_numbers(&self, f: &mut MapNumber) -> Part {
        Part::ReduceOnPlateau(ReduceOnPlateau {
            factor: self.factor.map("factor", f),
            patience: self.patience.map("patience", f),
            rtol: self.rtol.map("rtol", f),
            cooldown: self.cooldown.map("cooldown", f),
            min_scale: self.min_scale.map("min_scale", f),
        })
    }

    fn needs_value(&self) -> bool {
        true
    }
}
