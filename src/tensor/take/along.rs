//! Elements and rows of any axis, by indices.

use super::wrapped;
use crate::array::{DType, Shape};
use crate::tensor::Tensor;

impl Tensor {
    /// One element of the axis for each index: with the axis last, `y[.., j] = x[.., index[.., j]]`. The other axes broadcast.
    ///
    /// Indices are interpreted as in [`Tensor::take`].
    ///
    /// # Shapes and units
    /// x and index have the same rank; the result has the length of the index along the axis.
    ///
    /// # Panics
    /// If a concrete index is out of range, the ranks differ, there is no such axis, or the other axes do not broadcast.
    ///
    /// # Examples
    /// ```
    /// use flowline::tensor::Tensor;
    /// let x = Tensor::from([[10.0, 20.0, 30.0], [40.0, 50.0, 60.0]]);
    /// let y = x.take_along(&Tensor::from([[-1], [0]]), 1);
    /// assert_eq!(y.to_vec(), [30.0, 40.0]);
    /// ```
    #[track_caller]
    #[doc(alias = "take_along_axis")]
    #[doc(alias = "gather")]
    pub fn take_along(&self, index: &Tensor, axis: usize) -> Tensor {
        assert!(axis < self.rank(), "take_along: {} has no axis {axis}", self.ty());
        assert!(
            index.rank() == self.rank(),
            "take_along: the index {} has {} axes, not the {} of {}",
            index.ty(),
            index.rank(),
            self.rank(),
            self.ty()
        );
        let places = self.places("take_along", index, axis);
        let (own, of_index) = (self.shape(), index.shape());
        let others = |shape: &Shape| shape.with_axis(axis, 1);
        let Some(batch) = others(own).broadcast(&others(of_index)) else {
            panic!("take_along: {} and the index {} do not broadcast", self.ty(), places.ty())
        };
        let shape = batch.with_axis(axis, of_index[axis]);
        if shape.size() == 0 {
            return Tensor::full(self.dtype(), shape, 0.0);
        }
        assert!(own[axis] > 0, "take_along: axis {axis} of {} is empty", self.ty());
        assert!(
            i32::try_from(self.size()).is_ok(),
            "take_along: the {} elements of {} are more than a 32-bit index reaches",
            self.size(),
            self.ty()
        );
        let place = self.place_among_all(&places, axis, &shape).reshape([shape.size()]);
        self.reshape([self.size()]).take_clamped(&place).reshape(shape)
    }

    /// The place among all elements of the one with the coordinate `places` along an axis, and the coordinates of the result,
    /// of the given shape, along the others.
    fn place_among_all(&self, places: &Tensor, axis: usize, shape: &Shape) -> Tensor {
        let (own, strides) = (self.shape(), self.shape().strides());
        // A traced index stays in its line. If there is one line, the gather sees to that.
        let is_alone = self.size() == own[axis];
        let along = if is_alone { places.clone() } else { places.clip(0, own[axis] as i32 - 1) };
        let all = along.broadcast_to(shape.clone()) * strides[axis] as i32;
        let others = (0..self.rank()).filter(|&a| a != axis && own[a] > 1);
        others.fold(all, |place, a| {
            let mut line = vec![1; self.rank()];
            line[a] = own[a];
            place + Tensor::iota(DType::I32, [own[a]], 0).reshape(line) * strides[a] as i32
        })
    }

    /// Rows of an axis: as [`Tensor::take`], with the axes of the index in place of the axis.
    ///
    /// # Shapes and units
    /// x `[a.., n, b..]`; index of any shape; y `[a.., index.., b..]`.
    ///
    /// # Panics
    /// If a concrete index is out of range, there is no such axis, or it is empty.
    ///
    /// # Examples
    /// ```
    /// use flowline::tensor::Tensor;
    /// let x = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    /// assert_eq!(x.take_axis(&Tensor::from([2, 0]), 1).to_vec(), [3.0, 1.0, 6.0, 4.0]);
    /// ```
    #[track_caller]
    pub fn take_axis(&self, index: &Tensor, axis: usize) -> Tensor {
        assert!(axis < self.rank(), "take_axis: {} has no axis {axis}", self.ty());
        let places = self.places("take_axis", index, axis);
        let first: Vec<usize> = [axis].into_iter().chain((0..self.rank()).filter(|&a| a != axis)).collect();
        let taken = self.permute(&first).take_clamped(&places);
        let r = index.rank();
        let order: Vec<usize> = (r..r + axis).chain(0..r).chain(r + axis..taken.rank()).collect();
        taken.permute(&order)
    }

    /// Elements of an axis at known places.
    pub(in crate::tensor) fn places_along(&self, axis: usize, places: Vec<usize>) -> Tensor {
        let (n, shape) = (self.shape()[axis], self.shape().with_axis(axis, places.len()));
        if shape.size() == 0 {
            return Tensor::full(self.dtype(), shape, 0.0);
        }
        let outer: usize = self.shape()[..axis].iter().product();
        let inner: usize = self.shape()[axis + 1..].iter().product();
        let is_reached = i32::try_from(outer.saturating_mul(n)).is_ok();
        // Without axes behind it, an index of all elements would be as large as the result.
        if !is_reached || (inner == 1 && outer > 1) {
            let index: Vec<i32> = places.into_iter().map(|i| i as i32).collect();
            return self.take_axis(&Tensor::from(index), axis);
        }
        let of_line = |o: usize| places.iter().map(move |i| (o * n + i) as i32);
        let index: Vec<i32> = (0..outer).flat_map(of_line).collect();
        self.reshape([outer * n, inner]).take_clamped(&Tensor::from(index)).reshape(shape)
    }

    /// `len` elements of an axis from a place on that is known when the program runs. A negative place counts from the end. The
    /// place is then clamped, so that all elements are there.
    ///
    /// # Shapes and units
    /// x `[.., n, ..]`; start: one number; y `[.., len, ..]`.
    ///
    /// # Panics
    /// If there is no such axis, it has fewer elements, or the start is not one number.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// let window = jit(|x: Tensor, start: Tensor| x.dynamic_slice(0, &start, 2));
    /// let x = Tensor::from([1.0, 2.0, 3.0, 4.0]);
    /// assert_eq!(window.call(&x, &Tensor::from(1))?.to_vec(), [2.0, 3.0]);
    /// assert_eq!(window.call(&x, &Tensor::from(9))?.to_vec(), [3.0, 4.0]);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    #[track_caller]
    pub fn dynamic_slice(&self, axis: usize, start: &Tensor, len: usize) -> Tensor {
        let start = self.window("dynamic_slice", axis, start, len);
        self.take_axis(&(Tensor::iota(DType::I32, [len], 0) + start), axis)
    }

    /// This tensor with `updates` in place of the elements of an axis from a place on, which is clamped as in
    /// [`dynamic_slice`](Tensor::dynamic_slice).
    ///
    /// # Panics
    /// As for [`dynamic_slice`](Tensor::dynamic_slice); also if the updates differ in type, or in the length of another axis.
    ///
    /// # Examples
    /// ```
    /// use flowline::tensor::Tensor;
    /// let x = Tensor::from([1.0, 2.0, 3.0, 4.0]);
    /// let y = x.dynamic_update(0, &Tensor::from(1), &Tensor::from([9.0, 8.0]));
    /// assert_eq!(y.to_vec(), [1.0, 9.0, 8.0, 4.0]);
    /// ```
    #[track_caller]
    #[doc(alias = "dynamic_update_slice")]
    pub fn dynamic_update(&self, axis: usize, start: &Tensor, updates: &Tensor) -> Tensor {
        let len = updates.shape().get(axis).copied().unwrap_or(0);
        let start = self.window("dynamic_update", axis, start, len);
        assert!(
            updates.ty() == self.ty().with_shape(self.shape().with_axis(axis, len)),
            "dynamic_update: the updates {} do not fit into {}",
            updates.ty(),
            self.ty()
        );
        if len == 0 {
            return self.clone();
        }
        let place = Tensor::iota(DType::I32, [self.shape()[axis]], 0) - start;
        let spread = updates.take_axis(&place.clip(0, len as i32 - 1), axis);
        let mut along = vec![1; self.rank()];
        along[axis] = self.shape()[axis];
        let is_new = place.ge(0).and(&place.lt(len as i32)).reshape(along);
        is_new.select(&spread, self)
    }

    /// The start of a window of `len` elements, within the axis.
    #[track_caller]
    fn window(&self, name: &str, axis: usize, start: &Tensor, len: usize) -> Tensor {
        assert!(axis < self.rank(), "{name}: {} has no axis {axis}", self.ty());
        let n = self.shape()[axis];
        assert!(len <= n, "{name}: axis {axis} of {} has {n} elements, not {len}", self.ty());
        assert!(start.size() == 1, "{name}: the start {} is not one number", start.ty());
        let start = start.reshape(Shape::scalar());
        if n == 0 { Tensor::scalar(DType::I32, 0.0) } else { wrapped(&start, n).clip(0, (n - len) as i32) }
    }
}

#[cfg(test)]
mod tests {
    use crate::array::{DType, refusal};
    use crate::ode::tests::draw::{Draw, num_cases};
    use crate::tensor::{Tensor, grad, jit};

    /// Ranges: ranks 1 to 3, lengths 0 to 4, each axis; indices of every sign, traced ones also out of range; axes of the index
    /// of length 1, which broadcast.
    #[test]
    fn drawn_elements_are_those_of_loops_and_their_cotangents_are_counts() {
        let (mut draw, mut seen) = (Draw(398), [0; 3]);
        for case in 0..num_cases(60) {
            let shape: Vec<usize> = (0..=draw.below(3)).map(|_| draw.below(5)).collect();
            let axis = draw.below(shape.len());
            let n = shape[axis];
            let mut of_index: Vec<usize> =
                shape.iter().map(|&len| if draw.below(3) == 0 { 1 } else { len }).collect();
            of_index[axis] = if n == 0 { 0 } else { draw.below(4) };
            let is_traced = draw.coin();
            let reach = if is_traced { n as i64 + 2 } else { n as i64 };
            let mut index =
                || if n == 0 { 0 } else { (draw.below(2 * reach as usize) as i64 - reach) as i32 };
            let index: Vec<i32> = (0..of_index.iter().product()).map(|_| index()).collect();
            let numbers: Vec<f64> = (0..shape.iter().product()).map(|i| f64::from(i as u32)).collect();
            let x = Tensor::from_vec(shape.clone(), numbers);
            let index = Tensor::from_vec(of_index.clone(), index);
            let y = match is_traced {
                true => jit(move |x: Tensor, i: Tensor| x.take_along(&i, axis)).call(&x, &index).unwrap(),
                false => x.take_along(&index, axis),
            };
            let mut out: Vec<usize> =
                shape.iter().zip(&of_index).map(|(&a, &b)| if a == 1 { b } else { a }).collect();
            out[axis] = of_index[axis];
            assert_eq!(y.shape().to_vec(), out, "case {case}");
            let place = |at: &[usize], shape: &[usize]| {
                at.iter().zip(shape).fold(0, |sum, (&i, &len)| sum * len + if len == 1 { 0 } else { i })
            };
            let (indices, numbers, mut counts) = (index.to_vec(), x.to_vec(), vec![0.0; x.size()]);
            for (k, got) in y.to_vec().into_iter().enumerate() {
                let mut rest = k;
                let mut at = vec![0; out.len()];
                for a in (0..out.len()).rev() {
                    (at[a], rest) = (rest % out[a], rest / out[a]);
                }
                let i = indices[place(&at, &of_index)];
                let i = if i < 0.0 { i + n as f64 } else { i }.clamp(0.0, n as f64 - 1.0);
                at[axis] = i as usize;
                let from = at.iter().zip(&shape).fold(0, |sum, (&i, &len)| sum * len + i.min(len - 1));
                assert_eq!(got, numbers[from], "case {case}");
                counts[from] += 1.0;
            }
            assert_eq!(
                grad(|x: &Tensor| x.take_along(&index.clip(0, n as i32 - 1), axis).sum(), &x).size(),
                x.size()
            );
            if !is_traced {
                assert_eq!(
                    grad(|x: &Tensor| x.take_along(&index, axis).sum(), &x).to_vec(),
                    counts,
                    "case {case}"
                );
            }
            let found = [x.size() == 0, is_traced, out != of_index];
            seen.iter_mut().zip(found).for_each(|(seen, found)| *seen += usize::from(found));
        }
        assert!(seen.iter().all(|&n| n > 0), "{seen:?}");
    }

    /// Ranges: shapes `[2, 5, 3]`, each axis; starts from before the axis to beyond it; every length.
    #[test]
    fn windows_are_read_and_written_where_they_fit() {
        let x = Tensor::iota(DType::F64, [30], 0).reshape([2, 5, 3]);
        for axis in 0..3 {
            let n = x.shape()[axis];
            for len in 0..=n {
                for start in -2..=n as i32 + 1 {
                    let from = if start < 0 { start + n as i32 } else { start };
                    let from = from.clamp(0, (n - len) as i32) as usize;
                    let read = jit(move |x: Tensor, s: Tensor| x.dynamic_slice(axis, &s, len));
                    let got = read.call(&x, Tensor::from(start)).unwrap();
                    assert_eq!(got.to_vec(), x.slice(axis, from..from + len).to_vec());
                    let written = x.dynamic_update(axis, &Tensor::from(start), &(got * 0.0 - 1.0));
                    let parts = [
                        x.slice(axis, 0..from),
                        x.slice(axis, from..from + len) * 0.0 - 1.0,
                        x.slice(axis, from + len..n),
                    ];
                    assert_eq!(written.to_vec(), Tensor::concat(&parts, axis).to_vec());
                }
            }
            let rows = Tensor::from([[1, -1], [0, 0]]);
            let taken = x.take_axis(&rows, axis);
            for (k, i) in [1, n - 1, 0, 0].into_iter().enumerate() {
                let one = x.slice(axis, i..i + 1);
                let flat: Vec<usize> = [&x.shape()[..axis], &[4], &x.shape()[axis + 1..]].concat();
                assert_eq!(taken.reshape(flat).slice(axis, k..k + 1).to_vec(), one.to_vec());
            }
        }
        let said = refusal(|| Tensor::zeros([2, 3]).take_along(&Tensor::from([[3]]), 1));
        assert!(
            said.starts_with("take_along: index 3 is out of range for axis 1 of f32[2,3], of length 3"),
            "{said}"
        );
    }
}
