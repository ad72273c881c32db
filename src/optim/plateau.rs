//! A scale that falls where the loss does not.

use super::hyper::{Hyper, MapNumber};
use super::part::{Memory, Part, Slot, Transform};
use crate::array::DType;
use crate::tensor::Tensor;

/// Times a scale s, 1 at first. A loss below `(1 - rtol) best` is the new best; after `patience` losses in a
/// row that are not, `s = max(factor s, min_scale)`, and for `cooldown` losses none is counted. A NaN is no
/// new best.
///
/// The scale of an update knows its loss already.
#[derive(Clone, Debug)]
pub(super) struct Plateau {
    pub factor: Hyper,
    pub patience: Hyper,
    pub rtol: Hyper,
    pub cooldown: Hyper,
    pub min_scale: Hyper,
}

impl Transform for Plateau {
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

        let improved = loss.lt(self.rtol.complement().real() * &best);
        let is_cooling = cooling.gt(&zero);
        let waited = improved.or(&is_cooling).select(&zero, &(waited + 1));
        let tired = waited.ge(self.patience.cast(DType::U32)).and(&is_cooling.not()).and(&improved.not());
        let lower = (&scale * self.factor.real()).maximum(&self.min_scale.real());
        let scale = tired.select(&lower, &scale);
        // Counters are unsigned: what is not cooling stays at 0.
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
        Part::Plateau(Plateau {
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
