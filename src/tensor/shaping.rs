//! Shapes: broadcasting, reshaping, slicing, concatenation, indexing of rows.

use super::Tensor;
use crate::array::{DType, Shape};
use crate::graph::Op;
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

    /// Adds an axis of length 1, which becomes axis `axis`.
    ///
    /// # Panics
    /// If `axis` is larger than the rank.
    #[track_caller]
    pub fn expand_dims(&self, axis: usize) -> Tensor {
        assert!(axis <= self.rank(), "expand_dims: {} cannot have a new axis {axis}", self.ty());
        let mut dims = self.shape().to_vec();
        dims.insert(axis, 1);
        self.reshape(dims)
    }

    /// Pads with zeros: `lo[i]` before and `hi[i]` after on each axis.
    #[track_caller]
    pub fn pad(&self, lo: &[usize], hi: &[usize]) -> Tensor {
        Tensor::op(Op::Pad { lo: lo.to_vec(), hi: hi.to_vec() }, &[self], None)
    }

    /// Concatenates along an axis.
    #[track_caller]
    pub fn concat(parts: &[&Tensor], axis: usize) -> Tensor {
        match parts {
            [one] => (*one).clone(),
            _ => Tensor::op(Op::Concat { axis }, parts, None),
        }
    }

    /// Concatenates along a new first axis.
    ///
    /// # Panics
    /// If there are no parts, or a part differs from the first part in shape or element type.
    #[track_caller]
    pub fn stack(parts: &[&Tensor]) -> Tensor {
        if let Some(other) = parts.iter().find(|x| x.ty() != parts[0].ty()) {
            panic!("stack: the parts must have equal types, not {} and {}", parts[0].ty(), other.ty());
        }
        let rows: Vec<Tensor> = parts.iter().map(|x| x.expand_dims(0)).collect();
        Tensor::concat(&rows.iter().collect::<Vec<_>>(), 0)
    }

    /// Rows of the first axis: `y[i.., ..] = x[index[i..], ..]`.
    ///
    /// A negative index counts from the end: -1 is the last row. This requires a concrete index. A tensor
    /// captured by a function under [`jit`](super::jit()), [`vmap`](super::vmap()) or a derivative stays
    /// concrete. An index that is an argument of such a function, or is computed from an argument, is traced.
    /// A traced index is clamped to the axis, so a negative index selects row 0.
    ///
    /// # Shapes and units
    /// x `[n, ..]`; index of any shape with values from -n to n - 1, cast to i32; y has the index's shape,
    /// followed by `[..]`.
    ///
    /// # Panics
    /// If a concrete index is out of range, or there are no rows.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// let x = Tensor::from([10.0, 20.0, 30.0]);
    /// assert_eq!(x.take(&Tensor::from([-1, 0])).to_vec(), [30.0, 10.0]);
    /// let traced = jit(|x: Tensor, index: Tensor| x.take(&index));
    /// assert_eq!(traced.call(&x, &Tensor::from([-1, 7]))?.to_vec(), [10.0, 30.0]);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    #[track_caller]
    pub fn take(&self, index: &Tensor) -> Tensor {
        self.take_clamped(&self.known_rows("take", index))
    }

    /// [`Tensor::take`] with an index that is clamped to the axis, whether it is concrete or traced.
    #[track_caller]
    pub(crate) fn take_clamped(&self, index: &Tensor) -> Tensor {
        Tensor::op(Op::Gather, &[self, &index.cast(DType::I32)], None)
    }

    /// `self` with updates added to rows of the first axis, in order: `y = x`, then `y[index[i..], ..] +=
    /// updates[i.., ..]`.
    ///
    /// Indices are interpreted as in [`Tensor::take`].
    ///
    /// # Shapes and units
    /// x and y `[n, ..]`; index of any shape; updates have the index's shape, followed by `[..]`.
    ///
    /// # Panics
    /// If a concrete index is out of range, or the updates have another shape or element type.
    #[track_caller]
    pub fn scatter_add(&self, index: &Tensor, updates: &Tensor) -> Tensor {
        let index = self.known_rows("scatter_add", index);
        Tensor::op(Op::ScatterAdd, &[self, &index.cast(DType::I32), updates], None)
    }

    /// An index into the first axis. If the index is concrete, negative numbers are converted.
    #[track_caller]
    fn known_rows(&self, name: &str, index: &Tensor) -> Tensor {
        let Some(&n) = self.shape().first().filter(|&&n| n > 0 && !index.is_traced()) else {
            return index.clone();
        };
        let (rows, wanted) = (n as f64, index.to_vec());
        if let Some(i) = wanted.iter().find(|&&i| !(-rows..rows).contains(&i)) {
            panic!(
                "{name}: index {i} is out of range for axis 0 of {}, of length {n}: it must be from -{n} to {}",
                self.ty(),
                n - 1
            );
        }
        if wanted.iter().all(|&i| i >= 0.0) {
            return index.clone();
        }
        let from_start = |i: f64| if i <= -1.0 { i.trunc() + rows } else { i };
        let rows: Vec<i32> = wanted.into_iter().map(|i| from_start(i) as i32).collect();
        Tensor::from_vec(index.shape().clone(), rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::refusal;
    use crate::tensor::{grad, jit, jvp, vmap};

    #[test]
    fn a_known_index_counts_from_the_end_in_every_transform() {
        let (x, last) = (Tensor::from([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), Tensor::from([-1, 1, -3]));
        let want = [5.0, 6.0, 3.0, 4.0, 1.0, 2.0];
        assert_eq!(x.take(&last).to_vec(), want);
        assert_eq!(x.take(&last.cast(DType::F64)).to_vec(), want);
        let index = last.clone();
        assert_eq!(jit(move |x: Tensor| x.take(&index)).call(&x).unwrap().to_vec(), want);
        let columns = vmap(|x: &Tensor| x.take(&Tensor::from([-1, -1])), &x);
        assert_eq!(columns.to_vec(), [2.0, 2.0, 4.0, 4.0, 6.0, 6.0]);
        let gradient = grad(|x: &Tensor| x.take(&last).square().index(0).sum(), &x);
        assert_eq!(gradient.to_vec(), [0.0, 0.0, 0.0, 0.0, 10.0, 12.0]);
        assert_eq!(jvp(|x: &Tensor| x.take(&last), &x, &x).1.to_vec(), want);
        let sum =
            Tensor::from([0.5, 0.5]).scatter_add(&Tensor::from([-1, 1, -2]), &Tensor::from([1.0, 2.0, 4.0]));
        assert_eq!(sum.to_vec(), [4.5, 3.5]);
    }

    #[test]
    fn an_index_that_is_traced_is_clamped() {
        let x = Tensor::from([1.0, 2.0, 3.0]);
        let f = jit(|x: Tensor, index: Tensor| {
            (x.take(&index), x.scatter_add(&index, &Tensor::from([10.0, 20.0])))
        });
        let (taken, sum) = f.call(&x, Tensor::from([-1, 9])).unwrap();
        assert_eq!((taken.to_vec(), sum.to_vec()), (vec![1.0, 3.0], vec![11.0, 2.0, 23.0]));
        let mapped = vmap(|index: &Tensor| x.take(index), &Tensor::from([-1, 9]));
        assert_eq!(mapped.to_vec(), [1.0, 3.0]);
    }

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
