//! Shapes: broadcasting, reshaping, slicing, joining, rows by index.

use super::Tensor;
use crate::array::{DType, Shape};
use crate::graph::Op;
use std::ops::Range;

impl Tensor {
    /// Repeats to a larger shape, trailing axes aligned, length 1 stretching.
    ///
    /// # Panics
    /// When the shape does not broadcast to `shape`.
    #[track_caller]
    pub fn broadcast_to(&self, shape: impl Into<Shape>) -> Tensor {
        self.broadcast(shape.into())
    }

    #[track_caller]
    fn broadcast(&self, shape: Shape) -> Tensor {
        if *self.shape() == shape {
            return self.clone();
        }
        assert!(
            self.shape().broadcast(&shape).as_ref() == Some(&shape),
            "broadcast_to: {} does not broadcast to {shape}",
            self.shape()
        );
        // A number of the host beside a tensor: no plan for its repetition.
        if !self.is_traced() && self.size() == 1 {
            return Tensor::full(self.dtype(), shape, self.item());
        }
        let dims = (shape.rank() - self.rank()..shape.rank()).collect();
        Tensor::op(Op::Broadcast { dims }, &[self], Some(&self.ty().with_shape(shape)))
    }

    /// The same elements in row-major order under another shape.
    ///
    /// # Panics
    /// When the number of elements differs.
    #[track_caller]
    pub fn reshape(&self, shape: impl Into<Shape>) -> Tensor {
        self.reshaped(shape.into())
    }

    #[track_caller]
    fn reshaped(&self, shape: Shape) -> Tensor {
        if *self.shape() == shape {
            return self.clone();
        }
        assert!(shape.size() == self.size(), "reshape: {} has other elements than {shape}", self.shape());
        Tensor::op(Op::Reshape, &[self], Some(&self.ty().with_shape(shape)))
    }

    /// Axes in reverse order; of a matrix its transpose.
    pub fn transpose(&self) -> Tensor {
        self.permute(&(0..self.rank()).rev().collect::<Vec<_>>())
    }

    /// Axis i of the result is axis `perm[i]`.
    #[track_caller]
    pub fn permute(&self, perm: &[usize]) -> Tensor {
        if perm.iter().copied().eq(0..self.rank()) {
            return self.clone();
        }
        Tensor::op(Op::Transpose { perm: perm.to_vec() }, &[self], None)
    }

    /// Elements `range` of one axis.
    #[track_caller]
    pub fn slice(&self, axis: usize, range: Range<usize>) -> Tensor {
        assert!(
            axis < self.rank() && range.start <= range.end && range.end <= self.shape()[axis],
            "slice: {range:?} of axis {axis} lies outside {}",
            self.shape()
        );
        let (mut start, mut limit) = (vec![0; self.rank()], self.shape().to_vec());
        (start[axis], limit[axis]) = (range.start, range.end);
        Tensor::op(Op::Slice { start, limit }, &[self], None)
    }

    /// Row `i` of the first axis, which disappears.
    #[track_caller]
    pub fn at(&self, i: usize) -> Tensor {
        self.slice(0, i..i + 1).reshape(self.shape().without_axes(&[0]))
    }

    #[track_caller]
    pub(super) fn last_axis(&self, name: &str) -> usize {
        assert!(self.rank() > 0, "{name}: a tensor of rank 0 has no last axis");
        self.rank() - 1
    }

    /// Column `i` of the last axis, which disappears.
    ///
    /// # Panics
    /// When there is no such column.
    #[track_caller]
    pub fn column(&self, i: usize) -> Tensor {
        let last = self.last_axis("column");
        self.slice(last, i..i + 1).reshape(self.shape().without_axes(&[last]))
    }

    /// A further axis of length 1.
    #[track_caller]
    pub fn expand(&self, axis: usize) -> Tensor {
        let mut dims = self.shape().to_vec();
        dims.insert(axis, 1);
        self.reshape(dims)
    }

    /// Zeros around: `lo[i]` before and `hi[i]` behind on each axis.
    #[track_caller]
    pub fn pad(&self, lo: &[usize], hi: &[usize]) -> Tensor {
        Tensor::op(Op::Pad { lo: lo.to_vec(), hi: hi.to_vec() }, &[self], None)
    }

    /// Joins along an axis.
    #[track_caller]
    pub fn concat(parts: &[&Tensor], axis: usize) -> Tensor {
        match parts {
            [one] => (*one).clone(),
            _ => Tensor::op(Op::Concat { axis }, parts, None),
        }
    }

    /// Joins along a new first axis.
    #[track_caller]
    pub fn stack(parts: &[&Tensor]) -> Tensor {
        let rows: Vec<Tensor> = parts.iter().map(|x| x.expand(0)).collect();
        Tensor::concat(&rows.iter().collect::<Vec<_>>(), 0)
    }

    /// Rows `self[index[..]]` of the first axis; an index outside is clamped to the axis.
    #[track_caller]
    pub fn take(&self, index: &Tensor) -> Tensor {
        Tensor::op(Op::Gather, &[self, &index.cast(DType::I32)], None)
    }

    /// `self` with `updates` added at rows `index` of the first axis, in order.
    #[track_caller]
    pub fn scatter_add(&self, index: &Tensor, updates: &Tensor) -> Tensor {
        Tensor::op(Op::ScatterAdd, &[self, &index.cast(DType::I32), updates], None)
    }
}
