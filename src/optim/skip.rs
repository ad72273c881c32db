//! Skips and counts updates that are not finite.

use super::Optimizer;
use super::hyper::MapNumber;
use super::moments::no_update;
use super::part::{Memory, Part, Slot, Transform, all_finite};
use crate::array::DType;
use crate::tensor::Tensor;

/// If a gradient or an update of the inner optimizer is infinite or NaN, weights and inner state keep their
/// bits. `skipped` counts such calls, `skipped_in_a_row` those since the last finite update.
#[derive(Clone, Debug)]
pub(super) struct SkipNonFinite {
    pub inner: Optimizer,
}

impl Transform for SkipNonFinite {
    fn init(&self, slots: &[Slot], memory: &mut Memory) {
        memory.put("skipped", Tensor::from(0u32));
        memory.put("skipped_in_a_row", Tensor::from(0u32));
        self.inner.init_slots(slots, &mut memory.within("inner"));
    }

    fn apply(&self, slots: &mut [Slot], memory: &mut Memory) {
        // Gradients and updates are checked: clipping can hide an infinite gradient, and a rate can make an update
        // infinite.
        let gradients = all_finite(slots);
        let mut inner = memory.within("inner");
        let before = inner.snapshot();
        self.inner.apply_slots(slots, &mut inner);
        let finite = gradients.and(&all_finite(slots));
        inner.keep_if(&finite, before);
        for slot in slots {
            slot.update = finite.select(&slot.update, &no_update(&slot.weight));
        }
        let skipped = memory.take("skipped") + finite.not().cast(DType::U32);
        memory.put("skipped", skipped);
        let in_a_row = memory.take("skipped_in_a_row") + 1;
        memory.put("skipped_in_a_row", finite.select(&Tensor::from(0u32), &in_a_row));
    }

    fn map_numbers(&self, f: &mut MapNumber) -> Part {
        Part::SkipNonFinite(SkipNonFinite { inner: self.inner.map_numbers("inner", f) })
    }

    fn needs_value(&self) -> bool {
        self.inner.needs_value()
    }
}
