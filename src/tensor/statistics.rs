//! Reductions that are made of sums and extrema.

use super::Tensor;
use crate::array::DType;

impl Tensor {
    /// The number of elements that a reduction over these axes takes together.
    #[track_caller]
    fn len_of(&self, name: &str, axes: &[usize]) -> usize {
        self.distinct(name, axes).into_iter().map(|axis| self.shape()[axis]).product()
    }

    /// The product of all elements, in pairs; 1 if there are none. The derivative is exact also where elements are 0.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// let gradient = grad(|x: &Tensor| x.prod(), &Tensor::from([2.0, 0.0, 3.0]));
    /// assert_eq!(gradient.to_vec(), [0.0, 6.0, 0.0]);
    /// ```
    pub fn prod(&self) -> Tensor {
        self.prod_axes(&self.every_axis())
    }

    /// The product over the given axes, which are removed; see [`Tensor::prod`].
    #[track_caller]
    pub fn prod_axes(&self, axes: &[usize]) -> Tensor {
        let len = self.len_of("prod", axes);
        let mut x = if self.dtype() == DType::Bool { self.cast(DType::I32) } else { self.clone() };
        for axis in axes {
            while x.shape()[*axis] > 1 {
                let n = x.shape()[*axis];
                let half = n / 2;
                let pairs = x.slice(*axis, 0..half) * x.slice(*axis, half..2 * half);
                x = Tensor::concat(&[&pairs, &x.slice(*axis, 2 * half..n)], *axis);
            }
        }
        let shape = self.shape().without_axes(axes);
        // An empty axis of the result leaves nothing to fill.
        if len == 0 { Tensor::full(x.dtype(), shape, 1.0) } else { x.reshape(shape) }
    }

    /// Whether an element of a bool tensor is true; false if there are none.
    pub fn any(&self) -> Tensor {
        self.any_axes(&self.every_axis())
    }

    /// Whether an element along the given axes, which are removed, is true.
    #[track_caller]
    pub fn any_axes(&self, axes: &[usize]) -> Tensor {
        self.truth("any").sum_axes(axes).gt(0)
    }

    /// Whether all elements of a bool tensor are true; true if there are none.
    pub fn all(&self) -> Tensor {
        self.all_axes(&self.every_axis())
    }

    /// Whether all elements along the given axes, which are removed, are true.
    #[track_caller]
    pub fn all_axes(&self, axes: &[usize]) -> Tensor {
        self.truth("all").sum_axes(axes).eq(self.len_of("all", axes) as i32)
    }

    #[track_caller]
    fn truth(&self, name: &str) -> Tensor {
        assert!(self.dtype() == DType::Bool, "{name}: {} is not of bools; compare it", self.ty());
        self.cast(DType::I32)
    }

    /// The variance of all elements: the mean of the squares of the differences from the mean. (For the variance of a
    /// population from which n elements were drawn, multiply by `n / (n - 1)`.)
    pub fn var(&self) -> Tensor {
        self.var_axes(&self.every_axis())
    }

    /// The variance over the given axes, which are removed; see [`Tensor::var`].
    #[track_caller]
    pub fn var_axes(&self, axes: &[usize]) -> Tensor {
        let x = if self.dtype().is_float() { self.clone() } else { self.cast(DType::F64) };
        let mean = x.mean_axes(axes).expand_axes(axes);
        (x - mean).square().mean_axes(axes)
    }

    /// The standard deviation of all elements: the square root of [`var`](Tensor::var). Its derivative is 0 if it is 0.
    pub fn std(&self) -> Tensor {
        self.std_axes(&self.every_axis())
    }

    /// The standard deviation over the given axes, which are removed; see [`Tensor::std`].
    #[track_caller]
    pub fn std_axes(&self, axes: &[usize]) -> Tensor {
        self.var_axes(axes).root()
    }

    /// The square root, with the derivative 0 at 0.
    fn root(&self) -> Tensor {
        let zero = self.eq(0.0);
        zero.select(&self.number(0.0), &zero.select(&self.number(1.0), self).sqrt())
    }

    /// The Euclidean norm of all elements, without overflow. Its derivative at 0 is 0.
    ///
    /// # Examples
    /// ```
    /// use flowline::tensor::Tensor;
    /// assert_eq!(Tensor::from([3.0, 4.0]).norm().item(), 5.0);
    /// ```
    pub fn norm(&self) -> Tensor {
        self.norm_axes(&self.every_axis())
    }

    /// The Euclidean norm over the given axes, which are removed; see [`Tensor::norm`].
    #[track_caller]
    pub fn norm_axes(&self, axes: &[usize]) -> Tensor {
        if self.len_of("norm", axes) == 0 {
            return self.square().sum_axes(axes);
        }
        let most = self.abs().max_axes(axes).stop_gradient();
        let usable = most.gt(0.0).and(&most.is_finite());
        let scale = usable.select(&most, &most.number(1.0));
        let scaled = self / scale.expand_axes(axes);
        scaled.square().sum_axes(axes).root() * scale
    }

    /// `ln(e^x_1 + .. + e^x_n)` of all elements, without overflow; -infinity if there are none.
    pub fn logsumexp(&self) -> Tensor {
        self.logsumexp_axes(&self.every_axis())
    }

    /// The logarithm of the sum of exponentials over the given axes, which are removed; see [`Tensor::logsumexp`].
    #[track_caller]
    pub fn logsumexp_axes(&self, axes: &[usize]) -> Tensor {
        if self.len_of("logsumexp", axes) == 0 {
            return self.sum_axes(axes) + self.number(f64::NEG_INFINITY);
        }
        let most = self.max_axes(axes).stop_gradient();
        // Infinite elements have no difference.
        let most = most.is_finite().select(&most, &most.number(0.0));
        (self - most.expand_axes(axes)).exp().sum_axes(axes).ln() + most
    }

    /// The place of the largest element of an axis, which is removed; i32. Of equal elements the first, or the first NaN.
    ///
    /// # Panics
    /// If there is no such axis, or it is empty.
    ///
    /// # Examples
    /// ```
    /// use flowline::tensor::Tensor;
    /// assert_eq!(Tensor::from([[1.0, 3.0, 3.0], [5.0, 4.0, 2.0]]).argmax(1).to_vec(), [1.0, 0.0]);
    /// ```
    #[track_caller]
    pub fn argmax(&self, axis: usize) -> Tensor {
        self.place_of("argmax", axis, |x, axes| x.max_axes(axes))
    }

    /// The place of the smallest element of an axis, as [`argmax`](Tensor::argmax).
    #[track_caller]
    pub fn argmin(&self, axis: usize) -> Tensor {
        self.place_of("argmin", axis, |x, axes| x.min_axes(axes))
    }

    #[track_caller]
    fn place_of(&self, name: &str, axis: usize, extremum: impl Fn(&Tensor, &[usize]) -> Tensor) -> Tensor {
        assert!(axis < self.rank(), "{name}: {} has no axis {axis}", self.ty());
        let n = self.shape()[axis];
        assert!(n > 0, "{name}: axis {axis} of {} is empty", self.ty());
        let x = if self.dtype() == DType::Bool { self.cast(DType::I32) } else { self.stop_gradient() };
        let found = extremum(&x, &[axis]).expand_axes(&[axis]);
        let is_it = x.eq(&found).or(&x.is_nan());
        let place = Tensor::iota(DType::I32, x.shape().clone(), axis);
        is_it.select(&place, &Tensor::scalar(DType::I32, n as f64)).min_axes(&[axis])
    }
}

#[cfg(test)]
mod tests {
    use crate::array::{DType, refusal};
    use crate::ode::tests::draw::{Draw, num_cases};
    use crate::tensor::{Tensor, grad, jvp};

    /// Ranges: shapes `[a, b]` with lengths 1 to 9, reduced over either axis or both; infinite elements and NaN for extrema.
    #[test]
    fn drawn_reductions_are_those_of_loops() {
        let mut draw = Draw(396);
        for _ in 0..num_cases(30) {
            let (a, b) = (1 + draw.below(9), 1 + draw.below(9));
            let x: Vec<f64> = (0..a * b).map(|_| draw.below(13) as f64 / 2.0 - 3.0).collect();
            let t = Tensor::from_vec([a, b], x.clone());
            let columns: Vec<Vec<f64>> = (0..b).map(|j| (0..a).map(|i| x[i * b + j]).collect()).collect();
            let each = |f: &dyn Fn(&[f64]) -> f64| -> Vec<f64> { columns.iter().map(|c| f(c)).collect() };
            let near = |got: Tensor, want: Vec<f64>, what: &str| {
                let off = got
                    .to_vec()
                    .iter()
                    .zip(&want)
                    .map(|(a, b)| (a - b).abs() / (1.0 + b.abs()))
                    .fold(0.0, f64::max);
                assert!(off < 1e-13 && got.size() == want.len(), "{what}: {off:e}");
            };
            let mean = |c: &[f64]| c.iter().sum::<f64>() / c.len() as f64;
            let var = |c: &[f64]| c.iter().map(|x| (x - mean(c)).powi(2)).sum::<f64>() / c.len() as f64;
            near(t.prod_axes(&[0]), each(&|c| c.iter().product()), "prod");
            near(t.var_axes(&[0]), each(&var), "var");
            near(t.std_axes(&[0]), each(&|c| var(c).sqrt()), "std");
            near(t.norm_axes(&[0]), each(&|c| c.iter().map(|x| x * x).sum::<f64>().sqrt()), "norm");
            near(t.logsumexp_axes(&[0]), each(&|c| c.iter().map(|x| x.exp()).sum::<f64>().ln()), "logsumexp");
            near(t.prod(), vec![x.iter().product()], "prod of all");
            let first = |c: &[f64], f: fn(f64, f64) -> f64| {
                let most = c.iter().copied().reduce(f).unwrap();
                c.iter().position(|&x| x == most).unwrap() as f64
            };
            near(t.argmax(0), each(&|c| first(c, f64::max)), "argmax");
            near(t.argmin(0), each(&|c| first(c, f64::min)), "argmin");
            let (up, columns) = (t.gt(0.0), &columns);
            let whether = |f: &dyn Fn(&[f64]) -> bool| {
                columns.iter().map(|c| f64::from(u8::from(f(c)))).collect::<Vec<_>>()
            };
            near(up.any_axes(&[0]), whether(&|c| c.iter().any(|&x| x > 0.0)), "any");
            near(up.all_axes(&[0]), whether(&|c| c.iter().all(|&x| x > 0.0)), "all");
        }
    }

    #[test]
    fn special_elements_have_the_results_of_numpy() {
        let inf = f64::INFINITY;
        let x = Tensor::from([1.0, f64::NAN, 3.0, f64::NAN]);
        assert_eq!((x.argmax(0).item(), x.argmin(0).item()), (1.0, 1.0));
        assert_eq!(Tensor::from([-inf, -inf]).logsumexp().item(), -inf);
        assert_eq!(Tensor::from([inf, 1.0]).logsumexp().item(), inf);
        assert_eq!(Tensor::from([1000.0, 1000.0]).logsumexp().item(), 1000.0 + 2.0_f64.ln());
        assert_eq!(Tensor::from([inf, 1.0]).norm().item(), inf);
        assert!(x.norm().item().is_nan() && x.logsumexp().item().is_nan());
        assert_eq!(
            grad(|x: &Tensor| x.norm() + x.std(), &Tensor::zeros([3]).cast(DType::F64)).to_vec(),
            [0.0; 3]
        );
        let none = || Tensor::zeros([0]);
        assert_eq!((none().prod().item(), none().norm().item(), none().logsumexp().item()), (1.0, 0.0, -inf));
        assert!(none().gt(0.0).all().item() == 1.0 && none().gt(0.0).any().item() == 0.0);
        assert_eq!(refusal(move || none().argmax(0)), "argmax: axis 0 of f32[0] is empty");
    }

    /// Ranges: 1 to 9 numbers, one of which is 0 in half of the cases.
    #[test]
    fn derivatives_are_those_of_differences() {
        type Function = fn(&Tensor) -> Tensor;
        let functions: [(&str, Function); 5] = [
            ("prod", |x| x.prod()),
            ("var", |x| x.var()),
            ("std", |x| (x + Tensor::iota(DType::F64, x.shape().clone(), 0)).std()),
            ("norm", |x| x.norm()),
            ("logsumexp", |x| x.logsumexp()),
        ];
        let mut draw = Draw(397);
        for (name, f) in functions {
            for case in 0..num_cases(6) {
                let n = 2 + draw.below(8);
                let zero = draw.below(n);
                let x = |i: usize| if case % 2 == 0 && i == zero { 0.0 } else { draw.uniform(0.5, 2.0) };
                let x = Tensor::from((0..n).map(x).collect::<Vec<_>>());
                let v = Tensor::from((0..n).map(|_| draw.uniform(-1.0, 1.0)).collect::<Vec<_>>());
                let gradient = move |x: &Tensor| grad(f, x);
                let h = 1e-5;
                let moved = |s: f64| &x + &v * (s * h);
                let off = |a: Tensor, b: Tensor| ((&a - &b).abs() / (b.abs() + 1.0)).max().item();
                assert!(
                    off((gradient(&x) * &v).sum(), (f(&moved(1.0)) - f(&moved(-1.0))) / (2.0 * h)) < 1e-8,
                    "{name}"
                );
                let second = jvp(gradient, &x, &v).1;
                assert!(
                    off(second, (gradient(&moved(1.0)) - gradient(&moved(-1.0))) / (2.0 * h)) < 1e-7,
                    "{name}"
                );
            }
        }
    }
}
