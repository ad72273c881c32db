//! Sums, products and extrema up to each element of an axis.

use super::Tensor;
use crate::array::DType;
use crate::graph::{LineOp, Op};

impl Tensor {
    /// `f` of this tensor with `axis` as its last axis. If the result has the same rank, the axis returns to its place.
    #[track_caller]
    pub(super) fn with_last_axis(
        &self,
        name: &str,
        axis: usize,
        f: impl FnOnce(&Tensor) -> Tensor,
    ) -> Tensor {
        assert!(axis < self.rank(), "{name}: {} has no axis {axis}", self.ty());
        let y = f(&self.with_axis_last(axis));
        if y.rank() != self.rank() {
            return y;
        }
        let back: Vec<usize> = (0..axis).chain([self.rank() - 1]).chain(axis..self.rank() - 1).collect();
        y.permute(&back)
    }

    /// The same elements with `axis` as the last axis.
    pub(super) fn with_axis_last(&self, axis: usize) -> Tensor {
        let order: Vec<usize> = (0..self.rank()).filter(|&a| a != axis).chain([axis]).collect();
        self.permute(&order)
    }

    #[track_caller]
    pub(super) fn line(&self, op: LineOp) -> Tensor {
        Tensor::op(Op::Lines(op), &[self], None)
    }

    /// The sums of the elements of an axis up to each element: `y[i] = x[0] + .. + x[i]`, added in this order. Bools are
    /// counted, in i32.
    ///
    /// # Panics
    /// If there is no such axis.
    ///
    /// # Examples
    /// ```
    /// use flowline::tensor::Tensor;
    /// let x = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    /// assert_eq!(x.cumsum(1).to_vec(), [1.0, 3.0, 6.0, 4.0, 9.0, 15.0]);
    /// assert_eq!(x.cumsum(0).to_vec(), [1.0, 2.0, 3.0, 5.0, 7.0, 9.0]);
    /// ```
    #[track_caller]
    pub fn cumsum(&self, axis: usize) -> Tensor {
        let x = if self.dtype() == DType::Bool { self.cast(DType::I32) } else { self.clone() };
        x.with_last_axis("cumsum", axis, |x| x.line(LineOp::CumSum { reverse: false }))
    }

    /// The products of the elements of an axis up to each element, in pairs: the element `i` is a product of about
    /// `log2 i` factors, each of which is a product of its parts. The derivative is exact also where elements are 0.
    ///
    /// # Panics
    /// If there is no such axis.
    #[track_caller]
    pub fn cumprod(&self, axis: usize) -> Tensor {
        let products = |x: &Tensor| {
            let (last, n) = (x.rank() - 1, x.shape()[x.rank() - 1]);
            let (mut y, mut shift) = (x.clone(), 1);
            while shift < n {
                let ones = Tensor::full(x.dtype(), x.shape().with_axis(last, shift), 1.0);
                y = &y * Tensor::concat(&[&ones, &y.slice(last, 0..n - shift)], last);
                shift *= 2;
            }
            y
        };
        self.with_last_axis("cumprod", axis, products)
    }

    /// The largest of the elements of an axis up to each element; NaN from the first NaN on. The derivative belongs to the
    /// last of equal elements.
    ///
    /// # Panics
    /// If there is no such axis.
    #[track_caller]
    pub fn cummax(&self, axis: usize) -> Tensor {
        self.with_last_axis("cummax", axis, |x| {
            if !x.dtype().is_float() {
                return x.line(LineOp::CumMax);
            }
            let fixed = x.stop_gradient();
            let most = fixed.line(LineOp::CumMax);
            let place = Tensor::iota(DType::I32, x.shape().clone(), x.rank() - 1);
            let is_most = fixed.eq(&most).or(&fixed.is_nan());
            let last = is_most.select(&place, &Tensor::scalar(DType::I32, 0.0)).line(LineOp::CumMax);
            x.take_along(&last, x.rank() - 1)
        })
    }

    /// The smallest of the elements of an axis up to each element, as [`cummax`](Tensor::cummax).
    #[track_caller]
    pub fn cummin(&self, axis: usize) -> Tensor {
        self.reversed().cummax(axis).reversed()
    }

    /// Numbers of the same type in the reverse order: -x, or -1 - x for integers, which cannot overflow.
    #[track_caller]
    pub(super) fn reversed(&self) -> Tensor {
        if self.dtype().is_float() { -self } else { &(self * self.number(0.0)) - self - self.number(1.0) }
    }
}
