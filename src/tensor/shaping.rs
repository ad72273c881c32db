//! Shapes: broadcasting, reshaping, slicing, concatenation; in other files axes of length 1 ([`axes`]), repeated and
//! reordered elements ([`repeats`]), diagonals and triangles ([`matrices`]).

mod axes;
mod matrices;
mod repeats;

use super::Tensor;
use crate::array::Shape;
use crate::graph::{Op, Type};
use std::borrow::Borrow;
use std::ops::Range;

impl Tensor {
    /// Broadcasts to a larger shape: trailing axes are aligned, axes of length 1 are stretched.
    ///
    /// # Panics
    /// If the shape does not broadcast to `shape`.
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
        // Fast path for plain numbers in operations with tensors: the broadcast needs no plan.
        if !self.is_traced() && self.size() == 1 {
            return Tensor::full(self.dtype(), shape, self.item());
        }
        let dims = (shape.rank() - self.rank()..shape.rank()).collect();
        Tensor::op(Op::Broadcast { dims }, &[self], Some(&self.ty().with_shape(shape)))
    }

    /// The same elements in row-major order with another shape.
    ///
    /// # Panics
    /// If the number of elements differs.
    #[track_caller]
    pub fn reshape(&self, shape: impl Into<Shape>) -> Tensor {
        self.reshaped(shape.into())
    }

    #[track_caller]
    fn reshaped(&self, shape: Shape) -> Tensor {
        if *self.shape() == shape {
            return self.clone();
        }
        assert!(
            shape.size() == self.size(),
            "reshape: {} has a different number of elements than {shape}",
            self.shape()
        );
        Tensor::op(Op::Reshape, &[self], Some(&self.ty().with_shape(shape)))
    }

    /// Reverses the order of the axes; transposes a matrix.
    pub fn transpose(&self) -> Tensor {
        self.permute(&(0..self.rank()).rev().collect::<Vec<_>>())
    }

    /// Axis i of the result is axis `perm[i]` of this tensor.
    #[track_caller]
    pub fn permute(&self, perm: &[usize]) -> Tensor {
        if perm.iter().copied().eq(0..self.rank()) {
            return self.clone();
        }
        Tensor::op(Op::Transpose { perm: perm.to_vec() }, &[self], None)
    }

    /// Elements `range` of axis `axis`; the other axes are whole.
    #[track_caller]
    pub fn slice(&self, axis: usize, range: Range<usize>) -> Tensor {
        assert!(
            axis < self.rank() && range.start <= range.end && range.end <= self.shape()[axis],
            "slice: {range:?} of axis {axis} is out of range for {}",
            self.shape()
        );
        let (mut start, mut limit) = (vec![0; self.rank()], self.shape().to_vec());
        (start[axis], limit[axis]) = (range.start, range.end);
        Tensor::op(Op::Slice { start, limit }, &[self], None)
    }

    /// Row `i` of the first axis, which is removed: `y[..] = x[i, ..]`. [`Tensor::take`] also accepts indices
    /// from the end.
    ///
    /// # Panics
    /// If `i` is out of range.
    #[track_caller]
    pub fn index(&self, i: usize) -> Tensor {
        assert!(self.rank() > 0, "index: a tensor of rank 0 has no first axis");
        self.entry("index", 0, i)
    }

    /// The first entry of the first axis, which is removed: the first row of a series.
    ///
    /// # Panics
    /// If the first axis is empty.
    #[track_caller]
    pub fn first(&self) -> Tensor {
        self.index(0)
    }

    /// The last entry of the first axis, which is removed: the last row of a series.
    ///
    /// # Panics
    /// If the first axis is empty.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// let rows = Tensor::from([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]);
    /// assert_eq!((rows.first().to_vec(), rows.last().to_vec()), (vec![1.0, 2.0], vec![5.0, 6.0]));
    /// ```
    #[track_caller]
    pub fn last(&self) -> Tensor {
        assert!(
            self.rank() > 0 && self.shape()[0] > 0,
            "last: {} has no entry along a first axis",
            self.ty()
        );
        self.index(self.shape()[0] - 1)
    }

    /// Entry `i` of an axis, which is removed.
    #[track_caller]
    fn entry(&self, name: &str, axis: usize, i: usize) -> Tensor {
        let len = self.shape()[axis];
        assert!(
            i < len,
            "{name}: index {i} is out of range for axis {axis} of {}, of length {len}",
            self.ty()
        );
        self.slice(axis, i..i + 1).reshape(self.shape().without_axes(&[axis]))
    }

    #[track_caller]
    pub(super) fn last_axis(&self, name: &str) -> usize {
        assert!(self.rank() > 0, "{name}: a tensor of rank 0 has no last axis");
        self.rank() - 1
    }

    /// Column `i` of the last axis, which is removed: `y[..] = x[.., i]`.
    ///
    /// # Panics
    /// If `i` is out of range.
    #[track_caller]
    pub fn column(&self, i: usize) -> Tensor {
        self.entry("column", self.last_axis("column"), i)
    }

    /// Pads with zeros: `lo[i]` before and `hi[i]` after on each axis. [`Tensor::pad_with`] pads with another number.
    #[track_caller]
    pub fn pad(&self, lo: &[usize], hi: &[usize]) -> Tensor {
        Tensor::op(Op::Pad { lo: lo.to_vec(), hi: hi.to_vec() }, &[self], None)
    }

    /// Concatenates tensors, or references to tensors, along an axis.
    #[track_caller]
    #[doc(alias = "concatenate")]
    pub fn concat<T: Borrow<Tensor>>(parts: &[T], axis: usize) -> Tensor {
        let parts: Vec<&Tensor> = parts.iter().map(Borrow::borrow).collect();
        match parts[..] {
            [one] => one.clone(),
            _ => Tensor::op(Op::Concat { axis }, &parts, None),
        }
    }

    /// Concatenates tensors, or references to tensors, along a new first axis.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// let rows: Vec<Tensor> = (0..3).map(|i| Tensor::from([f64::from(i), 1.0])).collect();
    /// assert_eq!(Tensor::stack(&rows).to_vec(), [0.0, 1.0, 1.0, 1.0, 2.0, 1.0]);
    /// ```
    ///
    /// # Panics
    /// If there are no parts, or a part differs from the first part in shape or element type.
    #[track_caller]
    pub fn stack<T: Borrow<Tensor>>(parts: &[T]) -> Tensor {
        let types: Vec<Type> = parts.iter().map(|x| x.borrow().ty()).collect();
        if let Some(other) = types.iter().find(|ty| **ty != types[0]) {
            panic!("stack: the parts must have equal types, not {} and {other}", types[0]);
        }
        let rows: Vec<Tensor> = parts.iter().map(|x| x.borrow().expand_dims(0)).collect();
        Tensor::concat(&rows, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::refusal;
    use crate::tensor::jit;

    #[test]
    fn an_index_out_of_range_is_refused_with_call_index_and_length() {
        let x = || Tensor::from([1.0, 2.0]);
        let take = refusal(move || x().take(&Tensor::from([0, 2])));
        assert_eq!(
            take,
            "take: index 2 is out of range for axis 0 of f64[2], of length 2: it must be from -2 to 1"
        );
        assert!(refusal(move || x().take(&Tensor::from(-3))).starts_with("take: index -3 is out of range"));
        assert!(
            refusal(move || x().take(&Tensor::from(f64::NAN))).starts_with("take: index NaN is out of range")
        );
        assert!(
            refusal(move || x().take(&Tensor::from(u32::MAX)))
                .starts_with("take: index 4294967295 is out of range")
        );
        let inside = refusal(move || jit(|x: Tensor| x.take(&Tensor::from(2))).call(x()).unwrap());
        assert!(inside.starts_with("take: index 2 is out of range"), "{inside}");
        let add = refusal(move || x().scatter_add(&Tensor::from([5]), &Tensor::from([1.0])));
        assert!(add.starts_with("scatter_add: index 5 is out of range for axis 0 of f64[2]"), "{add}");
        assert_eq!(
            refusal(move || x().index(2)),
            "index: index 2 is out of range for axis 0 of f64[2], of length 2"
        );
        let column = refusal(|| Tensor::from([[1.0, 2.0]]).column(3));
        assert_eq!(column, "column: index 3 is out of range for axis 1 of f64[1,2], of length 2");
        assert_eq!(refusal(move || x().expand_dims(2)), "expand_dims: f64[2] cannot have a new axis 2");
        let stack = refusal(move || Tensor::stack(&[&x(), &Tensor::from([1.0f32, 2.0])]));
        assert_eq!(stack, "stack: the parts must have equal types, not f64[2] and f32[2]");
        let concat = refusal(move || Tensor::concat(&[&x(), &Tensor::from([1.0f32])], 0));
        assert!(concat.ends_with("the operands differ in element type"), "{concat}");
    }
}
