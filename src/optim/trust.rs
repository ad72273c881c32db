//! The trust ratio of LAMB.

use super::hyper::MapNumber;
use super::part::{Memory, Part, Slot, Transform};
use crate::array::DType;
use crate::tensor::Tensor;

/// `u |p| / |u|` per leaf with 2-norms; u where one of the norms is 0.
///
/// # References
/// You et al. (2020), Large batch optimization for deep learning, algorithm 2, with the identity for phi.
#[derive(Clone, Debug)]
pub(super) struct TrustRatio;

impl Transform for TrustRatio {
    fn apply(&self, slots: &mut [Slot], _: &mut Memory) {
        for slot in slots {
            let (weight, update) = (norm(&slot.weight), norm(&slot.update));
            let zero = weight.eq(0.0).or(&update.eq(0.0));
            let ratio = zero.select(&Tensor::scalar(DType::F64, 1.0), &(weight / update));
            slot.update = &slot.update * ratio.cast(slot.update.dtype());
        }
    }

    fn map_numbers(&self, _: &mut MapNumber) -> Part {
        Part::TrustRatio(TrustRatio)
    }
}

fn norm(x: &Tensor) -> Tensor {
    x.square().sum().cast(DType::F64).sqrt()
}
