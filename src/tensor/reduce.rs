//! Reductions and products.

use super::Tensor;
use crate::array::DType;
use crate::graph::{Op, ReduceOp};

impl Tensor {
    #[track_caller]
    fn reduce(&self, op: ReduceOp, axes: &[usize]) -> Tensor {
        if op == ReduceOp::Sum && self.dtype() == DType::Bool {
            return self.cast(DType::I32).reduce(op, axes);
        }
        if axes.is_empty() {
            return self.clone();
        }
        let mut axes = axes.to_vec();
        axes.sort_unstable();
        Tensor::op(Op::Reduce { op, axes }, &[self], None)
    }

    fn all_axes(&self) -> Vec<usize> {
        (0..self.rank()).collect()
    }

    /// Sum of all elements, of rank 0. Bools are counted, in i32; integers wrap.
    pub fn sum(&self) -> Tensor {
        self.reduce(ReduceOp::Sum, &self.all_axes())
    }

    /// Sum over the given axes, which disappear; see [`Tensor::sum`].
    #[track_caller]
    pub fn sum_axes(&self, axes: &[usize]) -> Tensor {
        self.reduce(ReduceOp::Sum, axes)
    }

    /// Sum over the last axis.
    ///
    /// # Panics
    /// For a tensor of rank 0.
    #[track_caller]
    pub fn sum_last(&self) -> Tensor {
        self.reduce(ReduceOp::Sum, &[self.last_axis("sum_last")])
    }

    /// Mean of all elements, of rank 0; NaN where there is none. Of integers and bools it is f64.
    pub fn mean(&self) -> Tensor {
        self.mean_axes(&self.all_axes())
    }

    /// Mean over the given axes, which disappear; see [`Tensor::mean`].
    #[track_caller]
    pub fn mean_axes(&self, axes: &[usize]) -> Tensor {
        let x = if self.dtype().is_float() { self.clone() } else { self.cast(DType::F64) };
        let sum = x.sum_axes(axes);
        let n: usize = axes.iter().map(|&a| self.shape()[a]).product();
        sum * (1.0 / n as f64)
    }

    /// Largest element over the given axes, which disappear.
    #[track_caller]
    pub fn max_axes(&self, axes: &[usize]) -> Tensor {
        self.reduce(ReduceOp::Max, axes)
    }

    /// Smallest element over the given axes, which disappear.
    #[track_caller]
    pub fn min_axes(&self, axes: &[usize]) -> Tensor {
        self.reduce(ReduceOp::Min, axes)
    }

    /// Largest of all elements.
    pub fn max(&self) -> Tensor {
        self.reduce(ReduceOp::Max, &self.all_axes())
    }

    /// Smallest of all elements.
    pub fn min(&self) -> Tensor {
        self.reduce(ReduceOp::Min, &self.all_axes())
    }

    /// Matrix product: `[.., k] x [k, n]` gives `[.., n]`; a vector on the left is a row.
    ///
    /// # Panics
    /// When the inner lengths differ or the right operand is no matrix.
    #[track_caller]
    pub fn matmul(&self, other: &Tensor) -> Tensor {
        let rank = self.rank();
        assert!(
            other.rank() == 2 && rank >= 1 && self.shape()[rank - 1] == other.shape()[0],
            "matmul: shapes {} and {} do not fit ([.., k] x [k, n])",
            self.shape(),
            other.shape()
        );
        let (k, n) = (other.shape()[0], other.shape()[1]);
        let rows = self.shape()[..rank - 1].iter().product();
        let out = self.shape().with_axis(rank - 1, n);
        let product = Tensor::op(Op::Dot { ta: false, tb: false }, &[&self.reshape([rows, k]), other], None);
        product.reshape(out)
    }
}
