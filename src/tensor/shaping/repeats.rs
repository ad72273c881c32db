//! Elements of an axis in another order or more than once, and parts of an axis.

use crate::array::Shape;
use crate::tensor::Tensor;

impl Tensor {
    /// The elements of the axes in reverse order: along one axis of length n, `y[i] = x[n - 1 - i]`.
    ///
    /// # Panics
    /// If there is no such axis, or it is given twice.
    ///
    /// # Examples
    /// ```
    /// use flowline::tensor::Tensor;
    /// let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
    /// assert_eq!(x.flip(&[1]).to_vec(), [2.0, 1.0, 4.0, 3.0]);
    /// assert_eq!(x.flip(&[0, 1]).to_vec(), [4.0, 3.0, 2.0, 1.0]);
    /// ```
    #[track_caller]
    #[doc(alias = "reverse")]
    pub fn flip(&self, axes: &[usize]) -> Tensor {
        self.distinct("flip", axes).into_iter().fold(self.clone(), |x, axis| {
            let n = x.shape()[axis];
            if n < 2 { x } else { x.places_along(axis, (0..n).rev().collect()) }
        })
    }

    /// The elements of an axis moved by `shift` places; those beyond one end enter at the other: along an axis of length n,
    /// `y[(i + shift) mod n] = x[i]`.
    ///
    /// # Panics
    /// If there is no such axis.
    ///
    /// # Examples
    /// ```
    /// use flowline::tensor::Tensor;
    /// let x = Tensor::from([1.0, 2.0, 3.0]);
    /// assert_eq!((x.roll(1, 0).to_vec(), x.roll(-1, 0).to_vec()), (vec![3.0, 1.0, 2.0], vec![2.0, 3.0, 1.0]));
    /// ```
    #[track_caller]
    pub fn roll(&self, shift: i64, axis: usize) -> Tensor {
        let n = self.len_along("roll", axis);
        let from = match n {
            0 => 0,
            _ => (n as i128 - i128::from(shift).rem_euclid(n as i128)) as usize % n,
        };
        if from == 0 {
            return self.clone();
        }
        Tensor::concat(&[&self.slice(axis, from..n), &self.slice(axis, 0..from)], axis)
    }

    /// The whole tensor `counts[i]` times along each axis i. Fewer counts than axes are those of the last axes; more counts
    /// than axes add axes in front.
    ///
    /// # Shapes and units
    /// x `[n, ..]`; y `[counts n, ..]`.
    ///
    /// # Examples
    /// ```
    /// use flowline::tensor::Tensor;
    /// let x = Tensor::from([1.0, 2.0]);
    /// assert_eq!(x.tile(&[2]).to_vec(), [1.0, 2.0, 1.0, 2.0]);
    /// assert_eq!(x.tile(&[3, 1]).shape().to_vec(), [3, 2]);
    /// ```
    #[track_caller]
    pub fn tile(&self, counts: &[usize]) -> Tensor {
        let rank = self.rank().max(counts.len());
        let from_end = |of: &[usize], i: usize| (i + of.len()).checked_sub(rank).map_or(1, |i| of[i]);
        let (mut apart, mut wide, mut shape) = (vec![], vec![], vec![]);
        for i in 0..rank {
            let (len, count) = (from_end(self.shape(), i), from_end(counts, i));
            apart.extend([1, len]);
            wide.extend([count, len]);
            shape.push(count.saturating_mul(len));
        }
        let shape =
            Shape::try_new(shape).unwrap_or_else(|e| panic!("tile: {} {counts:?} times: {e}", self.ty()));
        self.reshape(apart).broadcast_to(wide).reshape(shape)
    }

    /// Each element of an axis n times, one after another.
    ///
    /// # Shapes and units
    /// x `[.., m, ..]`; y `[.., m n, ..]`.
    ///
    /// # Panics
    /// If there is no such axis.
    ///
    /// # Examples
    /// ```
    /// use flowline::tensor::Tensor;
    /// assert_eq!(Tensor::from([1.0, 2.0]).repeat(3, 0).to_vec(), [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]);
    /// ```
    #[track_caller]
    #[doc(alias = "repeat_interleave")]
    pub fn repeat(&self, n: usize, axis: usize) -> Tensor {
        let len = self.len_along("repeat", axis).saturating_mul(n);
        let mut shape = self.shape().to_vec();
        shape[axis] = len;
        let shape = Shape::try_new(shape).unwrap_or_else(|e| panic!("repeat: {} {n} times: {e}", self.ty()));
        let apart = self.expand_dims(axis + 1);
        let wide = apart.shape().with_axis(axis + 1, n);
        apart.broadcast_to(wide).reshape(shape)
    }

    /// n equally long parts of an axis, in order; [`Tensor::split_sizes`] makes parts of given lengths, and
    /// [`Tensor::concat`] joins parts.
    ///
    /// # Panics
    /// If there is no such axis, or its length is not a multiple of n.
    ///
    /// # Examples
    /// ```
    /// use flowline::tensor::Tensor;
    /// let parts = Tensor::from([1.0, 2.0, 3.0, 4.0]).split(2, 0);
    /// assert_eq!((parts[0].to_vec(), parts[1].to_vec()), (vec![1.0, 2.0], vec![3.0, 4.0]));
    /// ```
    #[track_caller]
    #[doc(alias = "chunk")]
    pub fn split(&self, n: usize, axis: usize) -> Vec<Tensor> {
        let len = self.len_along("split", axis);
        assert!(
            n > 0 && len.is_multiple_of(n),
            "split: axis {axis} of {} has {len} elements, which are not {n} equal parts",
            self.ty()
        );
        self.split_sizes(&vec![len / n; n], axis)
    }

    /// Parts of an axis of the given lengths, in order.
    ///
    /// # Panics
    /// If there is no such axis, or its length is not the sum of the lengths.
    ///
    /// # Examples
    /// ```
    /// use flowline::tensor::Tensor;
    /// let parts = Tensor::from([1.0, 2.0, 3.0]).split_sizes(&[1, 2], 0);
    /// assert_eq!((parts[0].to_vec(), parts[1].to_vec()), (vec![1.0], vec![2.0, 3.0]));
    /// ```
    #[track_caller]
    pub fn split_sizes(&self, sizes: &[usize], axis: usize) -> Vec<Tensor> {
        let (len, sum) =
            (self.len_along("split_sizes", axis), sizes.iter().fold(0, |s: usize, n| s.saturating_add(*n)));
        assert!(
            len == sum,
            "split_sizes: axis {axis} of {} has {len} elements, not the {sum} of the parts {sizes:?}",
            self.ty()
        );
        let mut end = 0;
        let part = |size: &usize| {
            end += size;
            self.slice(axis, end - size..end)
        };
        sizes.iter().map(part).collect()
    }

    /// Pads with a number: `lo[i]` elements before and `hi[i]` after on each axis. [`Tensor::pad`] pads with zeros.
    ///
    /// # Panics
    /// If there is not one number in `lo` and in `hi` for each axis.
    ///
    /// # Examples
    /// ```
    /// use flowline::tensor::Tensor;
    /// assert_eq!(Tensor::from([1.0, 2.0]).pad_with(&[1], &[2], 9.0).to_vec(), [9.0, 1.0, 2.0, 9.0, 9.0]);
    /// ```
    #[track_caller]
    pub fn pad_with(&self, lo: &[usize], hi: &[usize], value: f64) -> Tensor {
        let rank = self.rank();
        assert!(
            lo.len() == rank && hi.len() == rank,
            "pad_with: {} has {rank} axes, not {} and {}",
            self.ty(),
            lo.len(),
            hi.len()
        );
        (0..rank).fold(self.clone(), |x, axis| {
            let margin = |n| (n > 0).then(|| Tensor::full(x.dtype(), x.shape().with_axis(axis, n), value));
            let (before, after) = (margin(lo[axis]), margin(hi[axis]));
            let parts: Vec<&Tensor> = before.iter().chain([&x]).chain(&after).collect();
            Tensor::concat(&parts, axis)
        })
    }

    #[track_caller]
    pub(in crate::tensor) fn len_along(&self, name: &str, axis: usize) -> usize {
        assert!(axis < self.rank(), "{name}: {} has no axis {axis}", self.ty());
        self.shape()[axis]
    }
}

#[cfg(test)]
mod tests {
    use crate::array::{DType, refusal};
    use crate::ode::tests::draw::{Draw, num_cases};
    use crate::tensor::{Tensor, grad, jit, jvp, vmap};

    /// The element of x that each element of the result copies, by a function from places to places; `None` for a pad.
    fn by_loops(
        x: &Tensor,
        to: &[usize],
        from: impl Fn(&[usize]) -> Option<Vec<usize>>,
    ) -> Vec<Option<usize>> {
        let each = |k: usize| {
            let (mut rest, mut at) = (k, vec![0; to.len()]);
            for a in (0..to.len()).rev() {
                (at[a], rest) = (rest % to[a], rest / to[a]);
            }
            from(&at).map(|of| of.iter().zip(&**x.shape()).fold(0, |sum, (i, n)| sum * n + i))
        };
        (0..to.iter().product()).map(each).collect()
    }

    /// The result, compiled, mapped and differentiated, against the places from which it is copied.
    fn check(
        f: impl Fn(&Tensor) -> Tensor + Clone + Send + Sync + 'static,
        x: &Tensor,
        from: &[Option<usize>],
        pad: f64,
        what: &str,
    ) {
        let of =
            |numbers: &[f64]| -> Vec<f64> { from.iter().map(|i| i.map_or(pad, |i| numbers[i])).collect() };
        let want = of(&x.to_vec());
        assert_eq!(f(x).to_vec(), want, "{what}");
        for dtype in [DType::F32, DType::I32, DType::U32] {
            let y = f(&x.cast(dtype));
            assert_eq!((y.dtype(), y.to_vec()), (dtype, want.clone()), "{what}");
        }
        let g = f.clone();
        assert_eq!(jit(move |x: Tensor| g(&x)).call(x).unwrap().to_vec(), want, "{what}");
        let mapped = vmap(&f, &Tensor::stack(&[x, x]));
        assert_eq!(mapped.index(1).to_vec(), want, "{what}");
        let along: Vec<f64> = from.iter().map(|i| i.map_or(0.0, |i| i as f64)).collect();
        assert_eq!(jvp(&f, x, x).1.to_vec(), along, "{what}");
        let mut counts = vec![0.0; x.size()];
        from.iter().flatten().for_each(|&i| counts[i] += 2.0 * i as f64);
        let loss = |x: &Tensor| f(x).square().sum();
        assert_eq!(grad(loss, x).to_vec(), counts, "{what}");
        let second = grad(|x: &Tensor| (grad(loss, x) * x).sum(), x);
        assert_eq!(second.to_vec(), counts.iter().map(|c| 2.0 * c).collect::<Vec<_>>(), "{what}");
    }

    /// A drawn shape with elements that are their own places.
    fn drawn(draw: &mut Draw) -> Tensor {
        let shape: Vec<usize> = (0..=draw.below(3)).map(|_| draw.below(5)).collect();
        Tensor::iota(DType::F64, [shape.iter().product()], 0).reshape(shape)
    }

    /// Ranges: ranks 1 to 3, lengths 0 to 4, any set of axes, each axis; shifts up to 9 and the largest ones.
    #[test]
    fn drawn_elements_are_moved_as_by_loops() {
        let (mut draw, mut seen) = (Draw(412), [0; 3]);
        for case in 0..num_cases(50) {
            let x = drawn(&mut draw);
            let (shape, axis) = (x.shape().to_vec(), draw.below(x.rank()));
            let axes: Vec<usize> = (0..x.rank()).rev().filter(|_| draw.coin()).collect();
            let shift = draw.one(&[0, 1, -1, 2, -9, 9, i64::MAX, i64::MIN]);
            let flipped = |at: &[usize]| {
                let each = |(a, &i): (usize, &usize)| if axes.contains(&a) { shape[a] - 1 - i } else { i };
                Some(at.iter().enumerate().map(each).collect())
            };
            let (from, of) = (by_loops(&x, &shape, flipped), axes.clone());
            check(
                move |x: &Tensor| x.flip(&of),
                &x,
                &from,
                0.0,
                &format!("case {case}: flip {axes:?} of {shape:?}"),
            );
            let rolled = |at: &[usize]| {
                let mut of = at.to_vec();
                of[axis] = (at[axis] as i128 - i128::from(shift)).rem_euclid(shape[axis] as i128) as usize;
                Some(of)
            };
            let (from, what) =
                (by_loops(&x, &shape, rolled), format!("case {case}: roll {shift} of {shape:?}"));
            check(move |x: &Tensor| x.roll(shift, axis), &x, &from, 0.0, &what);
            let is = [x.size() == 0, axes.len() > 1, axes.is_empty()];
            seen.iter_mut().zip(is).for_each(|(seen, is)| *seen += usize::from(is));
        }
        assert!(seen.iter().all(|&n| n > 0), "empty, several axes, none: {seen:?}");
    }

    /// Ranges: shapes as above; 0 to 3 copies, counts for fewer and more axes, margins of 0 to 2.
    #[test]
    fn drawn_elements_are_repeated_as_by_loops() {
        let (mut draw, mut seen) = (Draw(416), [0; 4]);
        for case in 0..num_cases(50) {
            let x = drawn(&mut draw);
            let (shape, rank, axis) = (x.shape().to_vec(), x.rank(), draw.below(x.rank()));
            let n = draw.below(4);
            let counts: Vec<usize> = (0..draw.below(rank + 2)).map(|_| draw.below(4)).collect();
            let mut margins = || (0..rank).map(|_| draw.below(3)).collect::<Vec<_>>();
            let (lo, hi) = (margins(), margins());

            let repeated = |at: &[usize]| {
                let mut of = at.to_vec();
                of[axis] /= n;
                Some(of)
            };
            let from = by_loops(&x, &x.shape().with_axis(axis, shape[axis] * n), repeated);
            let what = format!("case {case}: repeat {n} of {shape:?}");
            check(move |x: &Tensor| x.repeat(n, axis), &x, &from, 0.0, &what);

            let wide = rank.max(counts.len());
            let padded = |of: &[usize]| [&vec![1; wide - of.len()], of].concat();
            let tiled: Vec<usize> = padded(&shape).iter().zip(padded(&counts)).map(|(n, c)| n * c).collect();
            let from = by_loops(&x, &tiled, |at| {
                Some(at[wide - rank..].iter().zip(&shape).map(|(i, n)| i % n).collect())
            });
            assert_eq!(x.tile(&counts).shape().to_vec(), tiled);
            let (what, of) = (format!("case {case}: tile {counts:?} of {shape:?}"), counts.clone());
            check(move |x: &Tensor| x.tile(&of), &x, &from, 0.0, &what);

            let outer: Vec<usize> = (0..rank).map(|a| lo[a] + shape[a] + hi[a]).collect();
            let inside = |at: &[usize]| {
                (0..rank).map(|a| at[a].checked_sub(lo[a]).filter(|i| *i < shape[a])).collect()
            };
            let from = by_loops(&x, &outer, inside);
            let is = [x.size() == 0, n == 0, counts.len() > rank, from.contains(&None)];
            let what = format!("case {case}: pad {lo:?} {hi:?} of {shape:?}");
            check(move |x: &Tensor| x.pad_with(&lo, &hi, 7.0), &x, &from, 7.0, &what);
            seen.iter_mut().zip(is).for_each(|(seen, is)| *seen += usize::from(is));
        }
        assert!(seen.iter().all(|&n| n > 0), "empty, no copies, more counts, margins: {seen:?}");
    }

    /// Ranges: shapes `[2, n, 3]` with n from 0 to 6, each axis, all numbers of parts that divide it, drawn lengths.
    #[test]
    fn joined_parts_are_the_whole() {
        let mut draw = Draw(413);
        for n in 0..7 {
            let x = Tensor::iota(DType::F64, [6 * n], 0).reshape([2, n, 3]);
            for axis in 0..3 {
                let len = x.shape()[axis];
                for parts in (1..8).filter(|parts| len.is_multiple_of(*parts)) {
                    let split = x.split(parts, axis);
                    assert_eq!(split.len(), parts);
                    assert_eq!(Tensor::concat(&split, axis).to_vec(), x.to_vec());
                }
                let mut sizes = vec![];
                while sizes.iter().sum::<usize>() < len {
                    sizes.push(draw.below(len - sizes.iter().sum::<usize>() + 1));
                }
                let split = x.split_sizes(&sizes, axis);
                let lengths: Vec<usize> = split.iter().map(|part| part.shape()[axis]).collect();
                assert_eq!(lengths, sizes);
                assert!(sizes.is_empty() || Tensor::concat(&split, axis).to_vec() == x.to_vec());
            }
        }
        let x = || Tensor::zeros([2, 3]);
        assert_eq!(
            refusal(move || x().split(2, 1)),
            "split: axis 1 of f32[2,3] has 3 elements, which are not 2 equal parts"
        );
        assert_eq!(
            refusal(move || x().split(0, 1)),
            "split: axis 1 of f32[2,3] has 3 elements, which are not 0 equal parts"
        );
        assert_eq!(
            refusal(move || x().split_sizes(&[1, 1], 1)),
            "split_sizes: axis 1 of f32[2,3] has 3 elements, not the 2 of the parts [1, 1]"
        );
        assert_eq!(refusal(move || x().roll(1, 2)), "roll: f32[2,3] has no axis 2");
        assert_eq!(refusal(move || x().flip(&[1, 1])), "flip: axis 1 is given twice");
        assert_eq!(
            refusal(move || x().pad_with(&[1], &[1], 2.0)),
            "pad_with: f32[2,3] has 2 axes, not 1 and 1"
        );
        assert!(refusal(move || x().tile(&[usize::MAX])).starts_with("tile: f32[2,3] ["));
        assert!(
            refusal(move || x().repeat(usize::MAX, 0))
                .starts_with("repeat: f32[2,3] 18446744073709551615 times")
        );
    }
}
