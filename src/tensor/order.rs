//! Sorting, and what is computed from sorted elements.

use super::Tensor;
use crate::array::DType;
use crate::graph::LineOp;

impl Tensor {
    /// The order of the elements of an axis from the smallest to the largest, i32: the sorted elements are
    /// `x.take_along(&order, axis)`. Equal elements keep their order, and NaNs come last.
    ///
    /// # Panics
    /// If there is no such axis, or for bools.
    ///
    /// # Examples
    /// ```
    /// use flowline::tensor::Tensor;
    /// let x = Tensor::from([3.0, f64::NAN, 1.0, 3.0]);
    /// assert_eq!(x.argsort(0).to_vec(), [2.0, 0.0, 3.0, 1.0]);
    /// ```
    #[track_caller]
    pub fn argsort(&self, axis: usize) -> Tensor {
        self.order("argsort", axis)
    }

    #[track_caller]
    fn order(&self, name: &str, axis: usize) -> Tensor {
        assert!(self.dtype() != DType::Bool, "{name}: {} has no order; cast it to i32", self.ty());
        self.stop_gradient().with_last_axis(name, axis, |x| x.line(LineOp::Argsort))
    }

    /// The elements of an axis from the smallest to the largest; NaNs come last. The derivative follows each element to its
    /// place.
    ///
    /// # Panics
    /// As for [`argsort`](Tensor::argsort).
    #[track_caller]
    pub fn sort(&self, axis: usize) -> Tensor {
        self.take_along(&self.order("sort", axis), axis)
    }

    /// The k largest elements of the last axis, from the largest on, and their places, i32. Of equal elements the first comes
    /// first; NaNs come last.
    ///
    /// # Shapes and units
    /// x `[.., n]`; both results `[.., k]`.
    ///
    /// # Panics
    /// If k is more than n, or for a tensor of rank 0.
    ///
    /// # Examples
    /// ```
    /// use flowline::tensor::Tensor;
    /// let (values, places) = Tensor::from([1.0, 4.0, 2.0, 4.0]).top_k(3);
    /// assert_eq!((values.to_vec(), places.to_vec()), (vec![4.0, 4.0, 2.0], vec![1.0, 3.0, 2.0]));
    /// ```
    #[track_caller]
    pub fn top_k(&self, k: usize) -> (Tensor, Tensor) {
        let axis = self.last_axis("top_k");
        let n = self.shape()[axis];
        assert!(k <= n, "top_k: the last axis of {} has {n} elements, not {k}", self.ty());
        let places = self.reversed().argsort(axis).slice(axis, 0..k);
        (self.take_along(&places, axis), places)
    }

    /// The number of elements of this sorted vector that are less than each of the values (`right`: at most equal to it): the
    /// place at which the value can be inserted. NaN is larger than all numbers.
    ///
    /// # Shapes and units
    /// self `[n]`, ascending; values of any shape; the result, i32, has their shape.
    ///
    /// # Panics
    /// If this is not a vector.
    ///
    /// # Examples
    /// ```
    /// use flowline::tensor::Tensor;
    /// let edges = Tensor::from([0.0, 1.0, 1.0, 2.0]);
    /// let values = Tensor::from([-1.0, 1.0, 5.0]);
    /// assert_eq!(edges.search_sorted(&values, false).to_vec(), [0.0, 1.0, 4.0]);
    /// assert_eq!(edges.search_sorted(&values, true).to_vec(), [0.0, 3.0, 4.0]);
    /// ```
    #[track_caller]
    #[doc(alias = "searchsorted")]
    #[doc(alias = "digitize")]
    pub fn search_sorted(&self, values: &Tensor, right: bool) -> Tensor {
        assert!(self.rank() == 1, "search_sorted: {} is not a vector", self.ty());
        let n = self.size();
        let (sorted, values) = (self.stop_gradient(), values.stop_gradient());
        let mut place = Tensor::full(DType::I32, values.shape().clone(), 0.0);
        if n == 0 {
            return place;
        }
        // The place grows by powers of 2, as long as the element before the new place is less than the value.
        for bit in (0..=n.ilog2()).rev() {
            let next = &place + f64::from(1 << bit);
            let before = sorted.take_clamped(&(&next - 1.0));
            let is_less = match right {
                true => before.le(&values).or(&values.is_nan()),
                false => before.lt(&values).or(&values.is_nan().and(&before.is_nan().not())),
            };
            place = is_less.and(&next.le(n as f64)).select(&next, &place);
        }
        place
    }

    /// The q-quantile of an axis, which is removed: the sorted elements, interpolated linearly at `q (n - 1)`. NaN if an
    /// element is NaN.
    ///
    /// # Panics
    /// If q is not from 0 to 1, there is no such axis, it is empty, or the elements are not floats.
    ///
    /// # Examples
    /// ```
    /// use flowline::tensor::Tensor;
    /// assert_eq!(Tensor::from([3.0, 1.0, 2.0, 10.0]).quantile(0.5, 0).item(), 2.5);
    /// ```
    #[track_caller]
    pub fn quantile(&self, q: f64, axis: usize) -> Tensor {
        assert!((0.0..=1.0).contains(&q), "quantile: {q} is not from 0 to 1");
        assert!(self.dtype().is_float(), "quantile: {} is not of floats; cast it", self.ty());
        self.with_last_axis("quantile", axis, |x| {
            let last = x.rank() - 1;
            let n = x.shape()[last];
            assert!(n > 0, "quantile: axis {axis} of {} is empty", self.ty());
            let sorted = x.sort(last);
            let at = q * (n - 1) as f64;
            let (low, part) = (at.floor() as usize, at.fract());
            let (below, largest) = (sorted.column(low), sorted.column(n - 1));
            let value = match part {
                0.0 => below,
                part => &below + (sorted.column(low + 1) - &below) * part,
            };
            largest.is_nan().select(&largest, &value)
        })
    }

    /// The median of an axis, which is removed: the [`quantile`](Tensor::quantile) 1/2.
    #[track_caller]
    pub fn median(&self, axis: usize) -> Tensor {
        self.quantile(0.5, axis)
    }
}

#[cfg(test)]
mod tests {
    use crate::array::DType;
    use crate::ode::tests::draw::{Draw, num_cases};
    use crate::tensor::{Tensor, grad, jit, jvp, vmap};

    /// Small numbers with repeats, and now and then a NaN or a zero of either sign.
    fn drawn(draw: &mut Draw, shape: &[usize], nan: bool) -> Tensor {
        let mut one = || match draw.below(12) {
            0 if nan => f64::NAN,
            1 => -0.0,
            2 => 0.0,
            _ => draw.below(9) as f64 - 4.0,
        };
        let numbers: Vec<f64> = (0..shape.iter().product()).map(|_| one()).collect();
        Tensor::from_vec(shape.to_vec(), numbers)
    }

    fn lines(x: &Tensor, axis: usize) -> Vec<Vec<f64>> {
        let n = x.shape()[axis];
        let inner: usize = x.shape()[axis + 1..].iter().product();
        let all = x.to_vec();
        let outer = all.len().checked_div(n * inner).unwrap_or(0);
        let place = |o: usize, i: usize| move |k: usize| (o * n + k) * inner + i;
        (0..outer)
            .flat_map(|o| (0..inner).map(move |i| (o, i)))
            .map(|(o, i)| (0..n).map(place(o, i)).map(|at| all[at]).collect())
            .collect()
    }

    fn text(lines: &[Vec<f64>]) -> String {
        format!("{lines:?}")
    }

    /// Ranges: ranks 1 to 3, lengths 0, 1, 2, 3, 7 and 17, each axis, all number types, with and without NaN.
    #[test]
    fn drawn_lines_are_sorted_summed_and_bounded_as_one_by_one() {
        let (mut draw, mut seen) = (Draw(393), [0; 3]);
        for case in 0..num_cases(60) {
            let shape: Vec<usize> = (0..=draw.below(3)).map(|_| draw.one(&[0, 1, 2, 3, 7, 17])).collect();
            let axis = draw.below(shape.len());
            let dtype = draw.one(&[DType::F64, DType::F64, DType::F32, DType::I32, DType::U32]);
            let x = drawn(&mut draw, &shape, dtype.is_float());
            let x = if dtype == DType::U32 { x.abs().cast(dtype) } else { x.cast(dtype) };
            seen[0] += usize::from(x.size() == 0);
            seen[1] += usize::from(shape[axis] == 1);
            seen[2] += usize::from(x.to_vec().iter().any(|x| x.is_nan()));
            let each = |f: &dyn Fn(&[f64]) -> Vec<f64>| -> Vec<Vec<f64>> {
                lines(&x, axis).iter().map(|l| f(l)).collect()
            };
            let order = |line: &[f64]| {
                let mut order: Vec<usize> = (0..line.len()).collect();
                order.sort_by(|&i, &j| {
                    let (a, b) = (line[i], line[j]);
                    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
                });
                order
            };
            let same = |got: Tensor, want: Vec<Vec<f64>>, what: &str| {
                assert_eq!(
                    text(&lines(&got, axis)),
                    text(&want),
                    "case {case}: {what} of {shape:?} {dtype} along {axis}"
                );
            };
            same(
                x.argsort(axis),
                each(&|line| order(line).into_iter().map(|i| i as f64).collect()),
                "argsort",
            );
            same(x.sort(axis), each(&|line| order(line).into_iter().map(|i| line[i]).collect()), "sort");
            let scan = |f: fn(f64, f64) -> f64| {
                move |line: &[f64]| {
                    let mut last = None;
                    line.iter().map(|&x| *last.insert(last.map_or(x, |l| f(l, x)))).collect::<Vec<f64>>()
                }
            };
            same(x.cumsum(axis), each(&scan(|a, b| a + b)), "cumsum");
            same(x.cummax(axis), each(&scan(|a, b| if b >= a || b.is_nan() { b } else { a })), "cummax");
            same(x.cummin(axis), each(&scan(|a, b| if b <= a || b.is_nan() { b } else { a })), "cummin");
            if dtype == DType::F64 && x.to_vec().iter().all(|x| !x.is_nan()) {
                let off = |a: &[Vec<f64>], b: &[Vec<f64>]| {
                    a.iter().flatten().zip(b.iter().flatten()).all(|(a, b)| (a - b).abs() <= 1e-12 * b.abs())
                };
                assert!(
                    off(&lines(&x.cumprod(axis), axis), &each(&scan(|a, b| a * b))),
                    "case {case}: cumprod"
                );
            }
            let compiled = jit(move |x: Tensor| x.sort(axis)).call(&x).unwrap();
            assert_eq!(format!("{:?}", compiled.to_vec()), format!("{:?}", x.sort(axis).to_vec()));
        }
        assert!(seen.iter().all(|&n| n > 0), "{seen:?}");
    }

    /// Ranges: vectors of 1 to 9 different numbers; each function's vjp, jvp, second derivative, and under `vmap`.
    #[test]
    fn derivatives_follow_the_elements() {
        type Function = fn(&Tensor) -> Tensor;
        let functions: [(&str, Function); 7] = [
            ("sort", |x| x.sort(0)),
            ("top_k", |x| x.top_k(x.size().div_ceil(2)).0),
            ("cumsum", |x| x.cumsum(0)),
            ("cumprod", |x| x.cumprod(0)),
            ("cummax", |x| x.cummax(0)),
            ("cummin", |x| x.cummin(0)),
            ("quantile", |x| x.quantile(0.3, 0).reshape([1])),
        ];
        let mut draw = Draw(394);
        for (name, f) in functions {
            for _ in 0..num_cases(4) {
                let n = 1 + draw.below(9);
                let x = Tensor::from(
                    (0..n).map(|i| (i as f64 * 2.4).sin() + draw.uniform(0.0, 0.1)).collect::<Vec<_>>(),
                );
                let v = Tensor::from((0..n).map(|_| draw.uniform(-1.0, 1.0)).collect::<Vec<_>>());
                let loss = move |x: &Tensor| {
                    let y = f(x);
                    (y.square() * (Tensor::iota(DType::F64, y.shape().clone(), 0) + 1.0)).sum()
                };
                let gradient = move |x: &Tensor| grad(loss, x);
                let h = 1e-6;
                let by_difference =
                    |g: &dyn Fn(&Tensor) -> Tensor| (g(&(&x + &v * h)) - g(&(&x - &v * h))) / (2.0 * h);
                let off = |a: &Tensor, b: &Tensor| ((a - b).abs() / (b.abs() + 1.0)).max().item();
                let first = (gradient(&x) * &v).sum();
                assert!(off(&first, &by_difference(&|x| loss(x))) < 1e-8, "{name}");
                assert!(off(&first, &jvp(loss, &x, &v).1) < 1e-13, "{name}");
                let second = jvp(gradient, &x, &v).1;
                assert!(off(&second, &by_difference(&|x| gradient(x))) < 1e-7, "{name}");
                let pair = Tensor::stack(&[&x, &v]);
                let mapped = vmap(gradient, &pair);
                assert!(
                    off(&mapped.index(0), &gradient(&x)) < 1e-13
                        && off(&mapped.index(1), &gradient(&v)) < 1e-13
                );
            }
        }
    }

    /// Ranges: sorted vectors of 0 to 20 small integers with repeats, and a NaN at the end; values among and beyond them.
    #[test]
    fn places_in_sorted_vectors_are_those_of_counting() {
        let mut draw = Draw(395);
        for _ in 0..num_cases(60) {
            let n = draw.below(21);
            let sorted = drawn(&mut draw, &[n], true).sort(0);
            let values = drawn(&mut draw, &[4, 3], true);
            let less = |a: f64, v: f64| a < v || (v.is_nan() && !a.is_nan());
            let count = |v: f64, right: bool| {
                sorted.to_vec().iter().filter(|&&a| less(a, v) || (right && !less(v, a))).count() as f64
            };
            for right in [false, true] {
                let want: Vec<f64> = values.to_vec().iter().map(|&v| count(v, right)).collect();
                assert_eq!(sorted.search_sorted(&values, right).to_vec(), want, "{:?}", sorted.to_vec());
            }
        }
    }
}
