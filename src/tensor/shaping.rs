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

    /// Row `i` of the first axis, which disappears: `y[..] = x[i, ..]`. [`Tensor::take`] counts from the end too.
    ///
    /// # Panics
    /// When there is no such row.
    #[track_caller]
    pub fn index(&self, i: usize) -> Tensor {
        assert!(self.rank() > 0, "at: a tensor of rank 0 has no first axis");
        self.entry("at", 0, i)
    }

    /// The first entry of the first axis, which disappears: of a series its first row.
    ///
    /// # Panics
    /// When there is no entry.
    #[track_caller]
    pub fn first(&self) -> Tensor {
        self.index(0)
    }

    /// The last entry of the first axis, which disappears: of a series its last row.
    ///
    /// # Panics
    /// When there is no entry.
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

    /// Entry `i` of an axis, which disappears.
    #[track_caller]
    fn entry(&self, name: &str, axis: usize, i: usize) -> Tensor {
        let len = self.shape()[axis];
        assert!(i < len, "{name}: index {i} lies outside of axis {axis} of {}, of length {len}", self.ty());
        self.slice(axis, i..i + 1).reshape(self.shape().without_axes(&[axis]))
    }

    #[track_caller]
    pub(super) fn last_axis(&self, name: &str) -> usize {
        assert!(self.rank() > 0, "{name}: a tensor of rank 0 has no last axis");
        self.rank() - 1
    }

    /// Column `i` of the last axis, which disappears: `y[..] = x[.., i]`.
    ///
    /// # Panics
    /// When there is no such column.
    #[track_caller]
    pub fn column(&self, i: usize) -> Tensor {
        self.entry("column", self.last_axis("column"), i)
    }

    /// A further axis of length 1, which becomes axis `axis`.
    ///
    /// # Panics
    /// When `axis` is larger than the rank.
    #[track_caller]
    pub fn expand_dims(&self, axis: usize) -> Tensor {
        assert!(axis <= self.rank(), "expand: {} cannot have a new axis {axis}", self.ty());
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
    ///
    /// # Panics
    /// When there is no part, or one has another shape or element type than the first.
    #[track_caller]
    pub fn stack(parts: &[&Tensor]) -> Tensor {
        if let Some(other) = parts.iter().find(|x| x.ty() != parts[0].ty()) {
            panic!("stack: the parts must be of one type, not {} and {}", parts[0].ty(), other.ty());
        }
        let rows: Vec<Tensor> = parts.iter().map(|x| x.expand_dims(0)).collect();
        Tensor::concat(&rows.iter().collect::<Vec<_>>(), 0)
    }

    /// Rows of the first axis: `y[i.., ..] = x[index[i..], ..]`.
    ///
    /// A negative index counts from the end, -1 is the last row. That is so where the index is known when the operation is
    /// recorded: it is a concrete tensor, which stays one where a function under [`jit`](super::jit()),
    /// [`vmap`](super::vmap()) or a derivative captures it. An index that is an argument of such a function, or follows
    /// from one, is not known: it is clamped to the axis, so a negative one takes row 0.
    ///
    /// # Shapes and units
    /// x `[n, ..]`, index of any shape and of numbers from -n to n - 1, cast to i32; y is index's shape, then `[..]`.
    ///
    /// # Panics
    /// When a known index lies outside, or there is no row.
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

    /// [`Tensor::take`] by an index of which everything outside is clamped, known or not.
    #[track_caller]
    pub(crate) fn take_clamped(&self, index: &Tensor) -> Tensor {
        Tensor::op(Op::Gather, &[self, &index.cast(DType::I32)], None)
    }

    /// `self` with updates added at rows of the first axis, in order: `y = x`, then `y[index[i..], ..] += updates[i.., ..]`.
    ///
    /// Which index counts from the end, is refused or is clamped is as for [`Tensor::take`].
    ///
    /// # Shapes and units
    /// x and y `[n, ..]`, index of any shape, updates index's shape, then `[..]`.
    ///
    /// # Panics
    /// When a known index lies outside, or the updates have another shape or element type.
    #[track_caller]
    pub fn scatter_add(&self, index: &Tensor, updates: &Tensor) -> Tensor {
        let index = self.known_rows("scatter_add", index);
        Tensor::op(Op::ScatterAdd, &[self, &index.cast(DType::I32), updates], None)
    }

    /// An index into the first axis, counted from its start where its numbers are known.
    #[track_caller]
    fn known_rows(&self, name: &str, index: &Tensor) -> Tensor {
        let Some(&n) = self.shape().first().filter(|&&n| n > 0 && !index.is_traced()) else {
            return index.clone();
        };
        let (rows, wanted) = (n as f64, index.to_vec());
        if let Some(i) = wanted.iter().find(|&&i| !(-rows..rows).contains(&i)) {
            panic!(
                "{name}: index {i} lies outside of axis 0 of {}, of length {n}: it must be from -{n} to {}",
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
        let slope = grad(|x: &Tensor| x.take(&last).square().index(0).sum(), &x);
        assert_eq!(slope.to_vec(), [0.0, 0.0, 0.0, 0.0, 10.0, 12.0]);
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
    fn what_lies_outside_is_refused_by_the_name_of_the_call_with_index_and_length() {
        let x = || Tensor::from([1.0, 2.0]);
        let take = refusal(move || x().take(&Tensor::from([0, 2])));
        assert_eq!(
            take,
            "take: index 2 lies outside of axis 0 of f64[2], of length 2: it must be from -2 to 1"
        );
        assert!(refusal(move || x().take(&Tensor::from(-3))).starts_with("take: index -3 lies outside"));
        assert!(refusal(move || x().take(&Tensor::from(f64::NAN))).starts_with("take: index NaN lies"));
        assert!(
            refusal(move || x().take(&Tensor::from(u32::MAX))).starts_with("take: index 4294967295 lies")
        );
        let inside = refusal(move || jit(|x: Tensor| x.take(&Tensor::from(2))).call(x()).unwrap());
        assert!(inside.starts_with("take: index 2 lies"), "{inside}");
        let add = refusal(move || x().scatter_add(&Tensor::from([5]), &Tensor::from([1.0])));
        assert!(add.starts_with("scatter_add: index 5 lies outside of axis 0 of f64[2]"), "{add}");
        assert_eq!(
            refusal(move || x().index(2)),
            "at: index 2 lies outside of axis 0 of f64[2], of length 2"
        );
        let column = refusal(|| Tensor::from([[1.0, 2.0]]).column(3));
        assert_eq!(column, "column: index 3 lies outside of axis 1 of f64[1,2], of length 2");
        assert_eq!(refusal(move || x().expand_dims(2)), "expand: f64[2] cannot have a new axis 2");
        let stack = refusal(move || Tensor::stack(&[&x(), &Tensor::from([1.0f32, 2.0])]));
        assert_eq!(stack, "stack: the parts must be of one type, not f64[2] and f32[2]");
        let concat = refusal(move || Tensor::concat(&[&x(), &Tensor::from([1.0f32])], 0));
        assert!(concat.ends_with("the operands differ in element type"), "{concat}");
    }
}
