//! Methods for the [table](crate::graph) of functions that are computed one number after another, and functions made of them.

use super::super::Tensor;
use crate::array::DType;
use crate::graph::{Op, ScalarFn};

macro_rules! methods {
    ($($(#[$doc:meta])* $f:ident $op:ident;)*) => { impl Tensor { $(
        $(#[$doc])*
        #[track_caller]
        pub fn $f(&self) -> Tensor { Tensor::op(Op::Scalar(ScalarFn::$op), &[self], None) }
    )* } };
}
methods! {
    /// Tangent of x in radians.
    tan Tan;
    /// Arc sine: the angle in radians, from -pi/2 to pi/2, whose sine is x; NaN outside of [-1, 1].
    #[doc(alias = "arcsin")]
    asin Asin;
    /// Arc cosine: the angle in radians, from 0 to pi, whose cosine is x; NaN outside of [-1, 1].
    #[doc(alias = "arccos")]
    acos Acos;
    /// Hyperbolic sine, `(e^x - e^-x) / 2`.
    sinh Sinh;
    /// Hyperbolic cosine, `(e^x + e^-x) / 2`.
    cosh Cosh;
    /// The inverse of [`sinh`](Tensor::sinh).
    #[doc(alias = "arcsinh")]
    asinh Asinh;
    /// The inverse of [`cosh`](Tensor::cosh), at least 0; NaN below 1.
    #[doc(alias = "arccosh")]
    acosh Acosh;
    /// The inverse of [`tanh`](Tensor::tanh); NaN outside of [-1, 1].
    #[doc(alias = "arctanh")]
    atanh Atanh;
    /// Logarithm in base 2.
    log2 Log2;
    /// Logarithm in base 10.
    log10 Log10;
    /// The nearest integer, with halves to even as in NumPy. The derivative is 0.
    round Round;
    /// The inverse of [`erf`](Tensor::erf): infinite at 1 and -1, NaN beyond.
    #[doc(alias = "erfinv")]
    erf_inv ErfInv;
    /// `ln |Gamma(x)|`, infinite at 0, -1, -2, ... Near its zeros 1 and 2 the error is of the order of 1e-15, not relative.
    #[doc(alias = "lgamma")]
    #[doc(alias = "gammaln")]
    ln_gamma LnGamma;
}

impl Tensor {
    /// In f64, which holds every 32-bit integer, unless the elements are floats.
    fn cast_to_float(&self) -> Tensor {
        if self.dtype().is_float() { self.clone() } else { self.cast(DType::F64) }
    }

    #[track_caller]
    fn of_two(f: ScalarFn, a: &Tensor, b: &Tensor) -> Tensor {
        let (a, b) = Tensor::matched(f.name(), a, b);
        Tensor::op(Op::Scalar(f), &[&a, &b], None)
    }

    /// `x^p` for a tensor of exponents, as `f64::powf`: for negative x it is NaN unless p is an integer, and `x^0` is 1. For
    /// an exponent that is known, [`powi`](Tensor::powi) and [`powf`](Tensor::powf) are faster.
    ///
    /// The derivatives are `p x^(p - 1)` and `x^p ln x`; at x = 0 the latter is 0.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// let (x, p) = (Tensor::from([2.0, 0.0, -2.0]), Tensor::from([0.5, 2.0, 3.0]));
    /// assert_eq!(x.pow(&p).to_vec(), [2.0_f64.sqrt(), 0.0, -8.0]);
    /// ```
    #[track_caller]
    #[doc(alias = "power")]
    pub fn pow(&self, p: impl Into<Tensor>) -> Tensor {
        Tensor::of_two(ScalarFn::Pow, self, &p.into())
    }

    /// The remainder `x - b floor(x / b)`, with the sign of b, as `%` in Python. It is exact. For b = 0 it is x for integers
    /// and NaN for floats. The derivatives are 1 and `-floor(x / b)`.
    ///
    /// # Examples
    /// ```
    /// use flowline::tensor::Tensor;
    /// let angle = Tensor::from([-0.5, 7.0]);
    /// assert_eq!(angle.rem(2.0).to_vec(), [1.5, 1.0]);
    /// assert_eq!(Tensor::from([-7, 7]).rem(3).to_vec(), [2.0, 1.0]);
    /// ```
    #[track_caller]
    #[doc(alias = "mod")]
    #[doc(alias = "remainder")]
    pub fn rem(&self, b: impl Into<Tensor>) -> Tensor {
        let (a, b) = Tensor::matched("rem", self, &b.into());
        if a.dtype().is_float() {
            return Tensor::op(Op::Scalar(ScalarFn::Rem), &[&a, &b], None);
        }
        let rest = a.cast_to_float().rem(b.cast_to_float()).cast(a.dtype());
        b.eq(b.number(0.0)).select(&a, &rest)
    }

    /// The quotient `floor(x / b)`, as `//` in Python: `x = b div_floor(x, b) + rem(x, b)`. For b = 0 it is 0 for integers. The
    /// derivatives are 0.
    ///
    /// # Examples
    /// ```
    /// use flowline::tensor::Tensor;
    /// assert_eq!(Tensor::from([-7, 7, 1]).div_floor(Tensor::from([2, 2, 0])).to_vec(), [-4.0, 3.0, 0.0]);
    /// // 0.1 is a little more than a tenth.
    /// assert_eq!(Tensor::from(1.0).div_floor(0.1).item(), 9.0);
    /// ```
    #[track_caller]
    #[doc(alias = "floor_divide")]
    pub fn div_floor(&self, b: impl Into<Tensor>) -> Tensor {
        let (a, b) = Tensor::matched("div_floor", self, &b.into());
        let (x, y) = (a.cast_to_float(), b.cast_to_float());
        // Without the remainder the quotient is whole, and rounding removes its error.
        let whole = ((&x - x.rem(&y)) / &y).round();
        let is_zero = y.eq(y.number(0.0));
        if a.dtype().is_float() {
            return is_zero.select(&(x / y).stop_gradient(), &whole);
        }
        is_zero.select(&a.number(0.0), &whole.cast(a.dtype()))
    }

    /// The angle of the point (x, y) = (`x`, self) in radians, from -pi to pi.
    #[track_caller]
    #[doc(alias = "arctan2")]
    pub fn atan2(&self, x: impl Into<Tensor>) -> Tensor {
        Tensor::of_two(ScalarFn::Atan2, self, &x.into())
    }

    /// `sqrt(x^2 + y^2)` without overflow. The derivative at the origin is 0.
    #[track_caller]
    pub fn hypot(&self, y: impl Into<Tensor>) -> Tensor {
        Tensor::of_two(ScalarFn::Hypot, self, &y.into())
    }

    /// The derivative of order n + 1 of [`ln_gamma`](Tensor::ln_gamma): [`digamma`](Tensor::digamma) for n = 0, trigamma for
    /// n = 1. For n of 2 and more it is NaN at x <= 0, and for n above 170, whose factorial is infinite, it is NaN.
    #[track_caller]
    pub fn polygamma(&self, n: u32) -> Tensor {
        Tensor::of_two(ScalarFn::Polygamma, &self.number(f64::from(n)), self)
    }

    /// The derivative of [`ln_gamma`](Tensor::ln_gamma).
    #[track_caller]
    #[doc(alias = "psi")]
    pub fn digamma(&self) -> Tensor {
        self.polygamma(0)
    }

    /// The smallest integer not below x. The derivative is 0.
    #[track_caller]
    pub fn ceil(&self) -> Tensor {
        -(-self).floor()
    }

    /// x between `low` and `high`: `low` where x is less, `high` where it is more. The derivative is 1 between them and at
    /// both, else 0. NaN stays NaN, and a bound that is NaN gives NaN.
    ///
    /// # Examples
    /// ```
    /// use flowline::tensor::Tensor;
    /// assert_eq!(Tensor::from([-3.0, 0.5, 9.0]).clip(0.0, 1.0).to_vec(), [0.0, 0.5, 1.0]);
    /// ```
    #[track_caller]
    #[doc(alias = "clamp")]
    pub fn clip(&self, low: impl Into<Tensor>, high: impl Into<Tensor>) -> Tensor {
        let (low, high) = (low.into(), high.into());
        let x = self.ge(&low).or(&self.is_nan()).select(self, &low);
        x.le(&high).or(&x.is_nan()).select(&x, &high)
    }

    /// Whether x is NaN; a bool tensor.
    #[track_caller]
    #[doc(alias = "isnan")]
    pub fn is_nan(&self) -> Tensor {
        self.ne(self)
    }

    /// `x / 2 (1 + erf(x / sqrt 2))`
    ///
    /// # References
    /// Hendrycks, Gimpel (2016), Gaussian Error Linear Units.
    #[track_caller]
    pub fn gelu(&self) -> Tensor {
        let half = std::f64::consts::FRAC_1_SQRT_2;
        self * 0.5 * ((self * half).erf() + 1.0)
    }

    /// x where it is positive, else `a (e^x - 1)`.
    ///
    /// # References
    /// Clevert, Unterthiner, Hochreiter (2015), Exponential Linear Units.
    #[track_caller]
    pub fn elu(&self, a: f64) -> Tensor {
        let zero = self.number(0.0);
        let is_positive = self.gt(&zero);
        // Bounded, so that an exponential that is not selected does not overflow.
        is_positive.select(self, &(is_positive.select(&zero, self).expm1() * a))
    }

    /// x where it is at least 0, else `a x`.
    #[track_caller]
    pub fn leaky_relu(&self, a: f64) -> Tensor {
        self.ge(self.number(0.0)).select(self, &(self * a))
    }
}

#[cfg(test)]
mod tests {
    use crate::array::DType;
    use crate::ode::tests::draw::{Draw, num_cases};
    use crate::tensor::{Tensor, grad, jit, jvp, vmap};

    type Function = fn(&Tensor) -> Tensor;

    /// Each function with an interval inside of which it is smooth.
    const FUNCTIONS: [(&str, [f64; 2], Function); 21] = [
        ("tan", [-1.3, 1.3], |x| x.tan()),
        ("asin", [-0.95, 0.95], |x| x.asin()),
        ("acos", [-0.95, 0.95], |x| x.acos()),
        ("sinh", [-3.0, 3.0], |x| x.sinh()),
        ("cosh", [-3.0, 3.0], |x| x.cosh()),
        ("asinh", [-30.0, 30.0], |x| x.asinh()),
        ("acosh", [1.1, 30.0], |x| x.acosh()),
        ("atanh", [-0.95, 0.95], |x| x.atanh()),
        ("log2", [0.1, 30.0], |x| x.log2()),
        ("log10", [0.1, 30.0], |x| x.log10()),
        ("erf_inv", [-0.95, 0.95], |x| x.erf_inv()),
        ("ln_gamma", [0.2, 30.0], |x| x.ln_gamma()),
        ("digamma", [0.2, 30.0], |x| x.digamma()),
        ("polygamma 2", [0.3, 30.0], |x| x.polygamma(2)),
        ("pow", [0.2, 3.0], |x| x.pow(x * 0.7 - 1.0)),
        ("rem", [3.1, 3.9], |x| (x * 1.7).rem(x * x)),
        ("atan2", [-3.0, -0.1], |x| x.atan2(x.cos())),
        ("hypot", [-3.0, 3.0], |x| x.hypot(x.cos())),
        ("gelu", [-3.0, 3.0], |x| x.gelu()),
        ("elu", [-3.0, -0.1], |x| x.elu(0.7)),
        ("leaky_relu", [-3.0, -0.1], |x| x.leaky_relu(0.2).square()),
    ];

    /// Ranges: 12 points in the interval of each function.
    #[test]
    fn derivatives_are_those_of_differences_and_do_not_depend_on_the_transform() {
        let mut draw = Draw(391);
        for (name, [low, high], f) in FUNCTIONS {
            let x = Tensor::from((0..num_cases(12)).map(|_| draw.uniform(low, high)).collect::<Vec<_>>());
            let ones = Tensor::full(DType::F64, x.shape().clone(), 1.0);
            let first = move |x: &Tensor| grad(move |x: &Tensor| f(x).sum(), x);
            let second = move |x: &Tensor| grad(move |x: &Tensor| first(x).sum(), x);
            let check = |f: &dyn Fn(&Tensor) -> Tensor, got: &Tensor| {
                let h = 1e-5;
                let want = (f(&(&x + h)) - f(&(&x - h))) / (2.0 * h);
                let off = ((got - &want).abs() / (want.abs() + 1.0)).max().item();
                assert!(off < 1e-7, "{name}: {off:e}");
            };
            check(&|x| f(x), &first(&x));
            check(&|x| first(x), &second(&x));
            let same = |a: &Tensor, b: &Tensor| {
                let off = ((a - b).abs() / (b.abs() + 1.0)).max().item();
                assert!(off < 1e-14, "{name}: {off:e}");
            };
            same(&jvp(f, &x, &ones).1, &first(&x));
            same(&jit(move |x: Tensor| first(&x)).call(&x).unwrap(), &first(&x));
            same(&vmap(first, &x), &first(&x));
            let single = f(&x.cast(DType::F32)).cast(DType::F64);
            let off = ((&single - f(&x)).abs() / (f(&x).abs() + 1.0)).max().item();
            assert!(off < 1e-4, "{name} in f32: {off:e}");
        }
    }

    #[test]
    fn powers_have_the_values_of_the_standard_library_and_finite_derivatives_at_0() {
        let x = Tensor::from([-2.0, -2.0, 0.0, 0.0, 0.0, f64::NAN, 1.0]);
        let p = Tensor::from([3.0, 0.5, 2.0, 0.0, -1.0, 0.0, f64::INFINITY]);
        let want: Vec<f64> = x.to_vec().iter().zip(p.to_vec()).map(|(x, p)| x.powf(p)).collect();
        assert_eq!(format!("{:?}", x.pow(&p).to_vec()), format!("{want:?}"));
        let at = (Tensor::from([0.0, 0.0, 3.0]), Tensor::from([2.0, 0.0, 2.0]));
        let by = grad(|x: &(Tensor, Tensor)| x.0.pow(&x.1).sum(), &at);
        assert_eq!(by.0.to_vec(), [0.0, 0.0, 6.0]);
        let by_p = by.1.to_vec();
        assert!(by_p[..2] == [0.0, 0.0] && (by_p[2] - 9.0 * 3.0_f64.ln()).abs() < 1e-14);
    }

    /// Ranges: quotients of integers of both signs up to the largest and the smallest, with divisors 0, 1 and -1; of floats
    /// with quotients up to 1e15, and of quarters, which are whole often.
    #[test]
    fn quotients_and_remainders_are_exact() {
        let (mut draw, mut seen) = (Draw(392), [0; 2]);
        let floor = |a: i64, b: i64| {
            if b == 0 { 0 } else { a.div_euclid(b) - i64::from(b < 0 && a.rem_euclid(b) != 0) }
        };
        for _ in 0..num_cases(300) {
            let mut whole = || match draw.below(4) {
                0 => draw.below(4) as i32 - 2,
                1 => draw.below(2000) as i32 - 1000,
                2 => i32::MAX - draw.below(3) as i32,
                _ => i32::MIN + draw.below(3) as i32,
            };
            let (a, b) = (whole(), whole());
            let (x, y, want) = (Tensor::from([a]), Tensor::from([b]), floor(a.into(), b.into()));
            // The quotient of the smallest number by -1 is the largest one, because none is as large.
            assert_eq!(x.div_floor(&y).to_vec(), [want.min(i32::MAX.into()) as f64], "{a} / {b}");
            let rest = i64::from(a) - want * i64::from(b);
            assert_eq!(x.rem(&y).to_vec(), [rest as f64], "{a} mod {b}");
            seen[0] += usize::from(b == 0);

            let quarters = draw.coin();
            let mut number = |most: f64| match quarters {
                true => (draw.below(41) as f64 - 20.0) / 4.0,
                false => draw.uniform(-1.0, 1.0) * draw.decade(-2.0, most),
            };
            let (c, d) = (number(10.0), number(0.5));
            let (c, d) = (c, if d == 0.0 { 0.1 } else { d });
            let rest = c % d + if c % d != 0.0 && (c < 0.0) != (d < 0.0) { d } else { 0.0 };
            let (x, y) = (Tensor::from([c]), Tensor::from([d]));
            assert_eq!(x.rem(&y).item(), rest, "{c} mod {d}");
            let quotient = x.div_floor(&y).item();
            assert_eq!((quotient, quotient), (quotient.floor(), ((c - rest) / d).round()), "{c} / {d}");
            seen[1] += usize::from(quarters && rest == 0.0);
        }
        assert!(seen.iter().all(|&n| n > 0), "{seen:?}");
        let extreme = Tensor::from([i32::MIN]).rem(-1);
        assert_eq!(
            (extreme.item(), Tensor::from([5.0, -5.0]).rem(f64::INFINITY).to_vec()),
            (0.0, vec![5.0, f64::INFINITY])
        );
        assert_eq!(Tensor::from([1.0, -1.0]).div_floor(0.0).to_vec(), [f64::INFINITY, f64::NEG_INFINITY]);
    }

    #[test]
    fn clipping_keeps_nan_and_has_the_derivative_1_at_its_ends() {
        let x = Tensor::from([-1.0, 0.0, 0.5, 1.0, 2.0, f64::NAN]);
        assert_eq!(format!("{:?}", x.clip(0.0, 1.0).to_vec()), "[0.0, 0.0, 0.5, 1.0, 1.0, NaN]");
        let bounds = [(f64::NAN, 1.0), (0.0, f64::NAN)];
        assert!(bounds.iter().all(|&(low, high)| Tensor::from([0.5]).clip(low, high).item().is_nan()));
        let by = grad(|x: &Tensor| x.clip(0.0, 1.0).sum(), &x.slice(0, 0..5)).to_vec();
        assert_eq!(by, [0.0, 1.0, 1.0, 1.0, 0.0]);
        assert_eq!(x.is_nan().to_vec(), [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
        assert_eq!(Tensor::from([-1.5, 1.5, 2.5]).round().to_vec(), [-2.0, 2.0, 2.0]);
        assert_eq!(Tensor::from([-1.5, 1.5]).ceil().to_vec(), [-1.0, 2.0]);
    }
}
