//! Softmax.

use crate::array::DType;
use crate::tensor::Tensor;

/// `e^x_i / sum of e^x_j` over the last axis, computed as `e^(x_i - max)` so that nothing overflows. An empty
/// axis gives an empty result.
///
/// # Panics
/// For a tensor of rank 0.
///
/// # Examples
/// ```
/// use flowline::nn::*;
/// use flowline::nn::extra::softmax;
/// use flowline::nn::prelude::*;
/// let p = softmax(&Tensor::from([1000.0, 1000.0 + 3.0f64.ln()])).to_vec();
/// assert!((p[0] - 0.25).abs() < 1e-12 && (p[1] - 0.75).abs() < 1e-12);
/// ```
#[track_caller]
pub fn softmax(x: &Tensor) -> Tensor {
    let e = shifted(x).exp();
    let sum = sum_kept(&e);
    e / sum
}

/// The logarithm of [`softmax`], accurate where softmax underflows: `x_i - max - ln sum of e^(x_j - max)`.
///
/// # Panics
/// For a tensor of rank 0.
#[track_caller]
pub fn log_softmax(x: &Tensor) -> Tensor {
    let x = shifted(x);
    let sum = sum_kept(&x.exp()).ln();
    x - sum
}

/// [`softmax`] over the scores where `mask` is true, 0 elsewhere; a row without any such score is 0.
#[track_caller]
pub(super) fn masked_softmax(x: &Tensor, mask: &Tensor) -> Tensor {
    let zero = Tensor::scalar(x.dtype(), 0.0);
    // Masked scores become the least finite number, not minus infinity, so that differences are not NaN.
    let least =
        Tensor::scalar(x.dtype(), if x.dtype() == DType::F64 { f64::MIN } else { f64::from(f32::MIN) });
    let e = mask.select(&shifted(&mask.select(x, &least)).exp(), &zero);
    let sum = sum_kept(&e);
    // A row with an unmasked score has a sum of at least 1, from its largest score.
    let sum = sum.gt(&zero).select(&sum, &Tensor::scalar(x.dtype(), 1.0));
    e / sum
}

/// x minus the maximum of its row. The maximum gets no derivative: results do not depend on it.
#[track_caller]
fn shifted(x: &Tensor) -> Tensor {
    assert!(x.rank() > 0, "softmax needs a last axis, got a tensor of rank 0");
    let last = x.rank() - 1;
    if x.shape()[last] == 0 {
        return x.clone();
    }
    x - x.stop_gradient().max_axes(&[last]).expand_dims(last)
}

/// The sum over the last axis, which is kept with length 1.
fn sum_kept(x: &Tensor) -> Tensor {
    x.sum_last().expand_dims(x.rank() - 1)
}
