//! Gradient clipping.

use super::hyper::{Hyper, MapNumber};
use super::part::{Memory, Part, Slot, Transform};
use crate::array::DType;
use crate::tensor::Tensor;

/// Clips every element to `[-max, max]`; NaN stays NaN.
#[derive(Clone, Debug)]
pub(super) struct ClipValue {
    pub max: Hyper,
}

impl Transform for ClipValue {
    fn apply(&self, slots: &mut [Slot], _: &mut Memory) {
        for slot in slots {
            let max = self.max.like(&slot.update);
            slot.update = slot.update.minimum(&max).maximum(&-max);
        }
    }

    fn map_numbers(&self, f: &mut MapNumber) -> Part {
        Part::ClipValue(ClipValue { max: self.max.map("max", f) })
    }
}

/// Scales all updates by one factor so that their joint 2-norm is at most `max`.
#[derive(Clone, Debug)]
pub(super) struct ClipGlobalNorm {
    pub max: Hyper,
}

impl Transform for ClipGlobalNorm {
    fn apply(&self, slots: &mut [Slot], _: &mut Memory) {
        let squares = slots.iter().map(|s| s.update.square().sum().cast(DType::F64));
        let Some(square) = squares.reduce(|a, b| a + b) else { return };
        let norm = square.sqrt();
        let (one, max) = (Tensor::scalar(DType::F64, 1.0), self.max.real());
        // `norm < max` is false for a NaN norm, so the NaN reaches every update and is noticed.
        let scale = norm.lt(&max).select(&one, &(max / &norm));
        for slot in slots {
            slot.update = &slot.update * scale.cast(slot.update.dtype());
        }
    }

    fn map_numbers(&self, f: &mut MapNumber) -> Part {
        Part::ClipGlobalNorm(ClipGlobalNorm { max: self.max.map("max", f) })
    }
}
