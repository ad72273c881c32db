//! Convolutions of images.

use super::Tensor;
use crate::graph::{Margins, Op};

impl Tensor {
    /// Cross-correlates images with a kernel, zero-padded by `lo` `[above, left]` and `hi` `[below, right]`:
    /// `y[n, p, q, o] = sum over i, j, c of x[n, p + i - lo_0, q + j - lo_1, c] w[i, j, c, o]`.
    ///
    /// This is a single operation, and its derivatives are also convolutions: no intermediate array is larger
    /// than the operands and the result. For a layer with stride, dilation and bias see
    /// [`nn::Conv2d`](crate::nn::Conv2d).
    ///
    /// # Shapes and units
    /// x `[n, height, width, c]`, w `[kernel height, kernel width, c, o]`; a side of length n becomes `n + lo +
    /// hi - k + 1`.
    ///
    /// # Panics
    /// If the shapes or element types do not fit, or a margin is not smaller than the kernel's length along
    /// its axis.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// let y = Tensor::ones([2, 5, 5, 1]).conv2d(&Tensor::ones([3, 3, 1, 4]), [1, 1], [1, 1]);
    /// assert_eq!((&y.shape()[..], y.max().item(), y.min().item()), (&[2, 5, 5, 4][..], 9.0, 4.0));
    /// ```
    #[track_caller]
    pub fn conv2d(&self, kernel: &Tensor, lo: [usize; 2], hi: [usize; 2]) -> Tensor {
        Tensor::op(Op::Conv { margins: Margins { lo, hi }, turned: false }, &[self, kernel], None)
    }
}
