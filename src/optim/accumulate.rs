//! Gradient accumulation over several calls.

use super::Optimizer;
use super::hyper::{Hyper, MapNumber};
use super::moments::no_update;
use super::part::{Memory, Part, Slot, Transform};
use crate::array::DType;
use crate::tensor::Tensor;

/// Passes the mean of the gradients (and losses) to the inner optimizer at every `every`-th call. At the other
/// calls, the weights and the inner state keep their bits.
///
/// A `select` on a counter in the state makes the choice. The inner update is computed at every call and discarded
/// at the others. This takes a few passes over the weights, which is cheap compared with a gradient.
#[derive(Clone, Debug)]
pub(super) struct Accumulate {
    pub every: Hyper,
    pub inner: Optimizer,
}

impl Transform for Accumulate {
    fn init(&self, slots: &[Slot], memory: &mut Memory) {
        memory.put("calls", Tensor::from(0u32));
        memory.put_zeros("sum", slots);
        if self.needs_value() {
            memory.put("value", Tensor::from(0.0));
        }
        self.inner.init_slots(slots, &mut memory.within("inner"));
    }

    fn apply(&self, slots: &mut [Slot], memory: &mut Memory) {
        let calls = memory.take("calls") + 1;
        let full = calls.ge(self.every.cast(DType::U32));
        memory.put("calls", full.select(&Tensor::from(0u32), &calls));
        for slot in &mut *slots {
            let name = format!("sum.{}", slot.path);
            let sum = memory.take(&name) + &slot.update;
            slot.update = &sum / calls.cast(sum.dtype());
            memory.put(&name, full.select(&Tensor::scalar(sum.dtype(), 0.0), &sum));
        }
        let value = self.needs_value().then(|| {
            let sum = memory.take("value") + memory.loss().cast(DType::F64);
            memory.put("value", full.select(&Tensor::from(0.0), &sum));
            sum / calls.cast(DType::F64)
        });
        let mut memory = memory.within("inner");
        memory.value = value;
        let before = memory.snapshot();
        self.inner.apply_slots(slots, &mut memory);
        memory.keep_if(&full, before);
        for slot in slots {
            slot.update = full.select(&slot.update, &no_update(&slot.weight));
        }
    }

    fn map_numbers(&self, f: &mut MapNumber) -> Part {
        let every = self.every.map("every", f);
        Part::Accumulate(Accumulate { every, inner: self.inner.map_numbers("inner", f) })
    }

    fn needs_value(&self) -> bool {
        self.inner.needs_value()
    }
}
