//! The last part of a descent: multiplication by minus the learning rate.

use super::hyper::MapNumber;
use super::part::{Memory, Part, Slot, Transform};
use super::{Optimizer, Schedule};
use crate::tensor::Tensor;

/// `-r(n) u`, where n is the number of updates made before.
#[derive(Clone, Debug)]
pub(super) struct ScaleByRate {
    pub rate: Schedule,
}

/// Multiplies the updates by `-r(n)`, where n is the number of updates made before: the last part of a
/// descent.
pub fn scale_by_learning_rate(rate: impl Into<Schedule>) -> Optimizer {
    ScaleByRate { rate: rate.into() }.into()
}

impl Transform for ScaleByRate {
    fn init(&self, _: &[Slot], memory: &mut Memory) {
        memory.put("count", Tensor::from(0u32));
    }

    fn apply(&self, slots: &mut [Slot], memory: &mut Memory) {
        let rate = self.rate.at(&memory.count("count"));
        for slot in slots {
            slot.update = -(&slot.update * rate.cast(slot.weight.dtype()));
        }
    }

    fn map_numbers(&self, f: &mut MapNumber) -> Part {
        Part::ScaleByRate(ScaleByRate { rate: self.rate.map_numbers("rate", f) })
    }
}
