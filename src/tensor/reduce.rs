//! Reductions and products.

use super::Tensor;
use crate::array::{DType, Shape};
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

    pub(super) fn every_axis(&self) -> Vec<usize> {
        (0..self.rank()).collect()
    }

    /// Sum of all elements, of rank 0. The sum of bools is their count, in i32. Sums of integers wrap.
    pub fn sum(&self) -> Tensor {
        self.reduce(ReduceOp::Sum, &self.every_axis())
    }

    /// Sum over the given axes, which are removed; see [`Tensor::sum`].
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

    /// Mean of all elements, of rank 0; NaN if the tensor is empty. The mean of integers or bools is f64.
    pub fn mean(&self) -> Tensor {
        self.mean_axes(&self.every_axis())
    }

    /// Mean over the given axes, which are removed; see [`Tensor::mean`].
    #[track_caller]
    pub fn mean_axes(&self, axes: &[usize]) -> Tensor {
        let x = if self.dtype().is_float() { self.clone() } else { self.cast(DType::F64) };
        let sum = x.sum_axes(axes);
        let n: usize = axes.iter().map(|&a| self.shape()[a]).product();
        sum * (1.0 / n as f64)
    }

    /// Maximum over the given axes, which are removed; NaN if any element is NaN.
    ///
    /// # Panics
    /// If a reduced axis is empty and the result is not.
    #[track_caller]
    pub fn max_axes(&self, axes: &[usize]) -> Tensor {
        self.extremum("max", ReduceOp::Max, axes)
    }

    /// Minimum over the given axes, which are removed; NaN if any element is NaN.
    ///
    /// # Panics
    /// If a reduced axis is empty and the result is not.
    #[track_caller]
    pub fn min_axes(&self, axes: &[usize]) -> Tensor {
        self.extremum("min", ReduceOp::Min, axes)
    }

    /// Maximum of all elements, of rank 0; NaN if any element is NaN.
    ///
    /// # Panics
    /// If there are no elements.
    #[track_caller]
    pub fn max(&self) -> Tensor {
        self.extremum("max", ReduceOp::Max, &self.every_axis())
    }

    /// Minimum of all elements, of rank 0; NaN if any element is NaN.
    ///
    /// # Panics
    /// If there are no elements.
    #[track_caller]
    pub fn min(&self) -> Tensor {
        self.extremum("min", ReduceOp::Min, &self.every_axis())
    }

    #[track_caller]
    fn extremum(&self, name: &str, op: ReduceOp, axes: &[usize]) -> Tensor {
        let empty = axes.iter().find(|&&axis| self.shape().get(axis) == Some(&0));
        if let Some(axis) = empty.filter(|_| self.shape().without_axes(axes).size() > 0) {
            panic!("{name}: axis {axis} of {} is empty", self.ty());
        }
        self.reduce(op, axes)
    }

    /// Matrix product: `[.., m, k] x [.., k, n] -> [.., m, n]`.
    ///
    /// Leading axes broadcast as in NumPy. A vector is treated as a row on the left and as a column on the
    /// right, and the additional axis is removed from the result. The product of one matrix and a batch is a
    /// single product over all rows of the batch: neither the matrix nor its cotangent is repeated. For other
    /// index patterns see [`einsum`](super::einsum()).
    ///
    /// # Panics
    /// If the inner lengths differ, the leading axes do not broadcast, or an operand has rank 0.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// let (a, b) = (Tensor::ones([5, 2, 3]), Tensor::ones([5, 3, 4]));
    /// let c = a.matmul(&b);
    /// assert_eq!((&c.shape()[..], c.max().item()), (&[5, 2, 4][..], 3.0));
    /// ```
    #[track_caller]
    pub fn matmul(&self, other: &Tensor) -> Tensor {
        let Some(batch) = batch_axes(self.shape(), other.shape()) else {
            panic!(
                "matmul: shapes {} and {} do not fit ([.., m, k] x [.., k, n])",
                self.shape(),
                other.shape()
            );
        };
        match (self.rank(), other.rank()) {
            (_, 1) => {
                let column = self.matmul(&other.expand_dims(1));
                column.reshape(column.shape().without_axes(&[column.rank() - 1]))
            }
            (1, _) => {
                let row = self.expand_dims(0).matmul(other);
                row.reshape(row.shape().without_axes(&[row.rank() - 2]))
            }
            _ => self.products(other, &batch),
        }
    }

    /// The product of batches of matrices whose leading axes broadcast to `batch`.
    #[track_caller]
    fn products(&self, other: &Tensor, batch: &[usize]) -> Tensor {
        let dot = |a: &Tensor, b: &Tensor| Tensor::op(Op::Dot { ta: false, tb: false }, &[a, b], None);
        let (rank, r) = (self.rank(), other.rank());
        let (m, k, n) = (self.shape()[rank - 2], self.shape()[rank - 1], other.shape()[r - 1]);
        let is_one = |x: &Tensor| x.shape()[..x.rank() - 2].iter().all(|&len| len == 1);
        let count: usize = batch.iter().product();
        if is_one(other) {
            let rows = dot(&self.reshape([count * m, k]), &other.reshape([k, n]));
            return rows.reshape([batch, &[m, n]].concat());
        }
        if is_one(self) {
            // The inner index becomes the first axis, so that the columns of all matrices are the columns of
            // one matrix.
            let last = batch.len();
            let wide = other.reshape([batch, &[k, n]].concat());
            let to: Vec<usize> = [last].into_iter().chain(0..last).chain([last + 1]).collect();
            let columns = dot(&self.reshape([m, k]), &wide.permute(&to).reshape([k, count * n]));
            let back: Vec<usize> = (1..=last).chain([0, last + 1]).collect();
            return columns.reshape([&[m], batch, &[n]].concat()).permute(&back);
        }
        dot(&self.broadcast_to([batch, &[m, k]].concat()), &other.broadcast_to([batch, &[k, n]].concat()))
    }
}

/// The batch axes of a matrix product, if the operands fit; vectors have none.
fn batch_axes(a: &Shape, b: &Shape) -> Option<Vec<usize>> {
    let lead = |s: &Shape| Shape::from(s[..s.rank().saturating_sub(2)].to_vec());
    let inner = b.get(b.rank().saturating_sub(2))?;
    if a.last()? != inner {
        return None;
    }
    lead(a).broadcast(&lead(b)).map(|batch| batch.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::refusal;

    #[test]
    fn nothing_has_no_largest_and_no_smallest_element() {
        let (none, rows) = (|| Tensor::zeros([0]), || Tensor::zeros([2, 0]));
        for f in [|x: Tensor| x.max(), |x: Tensor| x.min()] {
            let said = refusal(|| f(none()));
            assert!(said.ends_with(": axis 0 of f32[0] is empty"), "{said}");
        }
        assert!(refusal(|| rows().max_axes(&[1])).contains("axis 1 of f32[2,0] is empty"));
        assert_eq!(rows().max_axes(&[0]).size(), 0, "a maximum over rows without columns");
    }
}
