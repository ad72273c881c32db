//! Distributions of numbers.
//!
//! A draw in f32 is made of 32 random bits per number, a draw in f64 of two words, of which it uses 53 bits.

use super::Key;
use crate::array::{DType, Shape};
use crate::tensor::Tensor;

/// The smallest f32 spacing below 1.
const F32_STEP: f64 = 1.0 / 16_777_216.0;
/// 2^-32.
const WORD: f64 = 1.0 / 4_294_967_296.0;

impl Key {
    /// Uniform samples from [0, 1), f32: 32 random bits, rounded to the 24 significant bits of an f32.
    /// [`Key::uniform_of`] draws in f64, too.
    ///
    /// They are not independent of the [normal](Key::normal), [Rademacher](Key::rademacher) or other samples of the same
    /// key, which are functions of the same bits: [`Key::split`] the key.
    #[doc(alias = "rand")]
    pub fn uniform(&self, shape: impl Into<Shape>) -> Tensor {
        self.single(shape.into())
    }

    fn single(&self, shape: Shape) -> Tensor {
        let largest = 1.0 - F32_STEP;
        (self.bits(shape).cast(DType::F32) * WORD).minimum(&Tensor::scalar(DType::F32, largest))
    }

    /// Uniform samples from [0, 1) in f32 or f64. In f32 they are those of [`Key::uniform`]. In f64 they are multiples of
    /// 2^-53, all equally probable.
    ///
    /// # Panics
    /// If the type is not a float.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// let u = Key::new(0).uniform_of(DType::F64, [3]);
    /// assert!(u.dtype() == DType::F64 && u.to_vec().iter().all(|u| (0.0..1.0).contains(u)));
    /// ```
    #[track_caller]
    pub fn uniform_of(&self, dtype: DType, shape: impl Into<Shape>) -> Tensor {
        self.of_floats("uniform_of", dtype, shape.into())
    }

    #[track_caller]
    fn of_floats(&self, name: &str, dtype: DType, shape: Shape) -> Tensor {
        match dtype {
            DType::F32 => self.single(shape),
            DType::F64 => self.double(shape),
            other => panic!("{name}: {other} is not a float type"),
        }
    }

    /// Multiples of 2^-53 from 0 to 1 - 2^-53, f64: the upper 27 bits of one word and the upper 26 bits of another.
    pub(super) fn double(&self, shape: Shape) -> Tensor {
        let words = self.bits([2, shape.size()]).cast(DType::F64);
        let upper = |word: usize, bits: i32| (words.index(word) * 0.5_f64.powi(32 - bits)).floor();
        let whole = upper(0, 27) * 2.0_f64.powi(26) + upper(1, 26);
        (whole * 0.5_f64.powi(53)).reshape(shape)
    }

    /// Standard normal samples, f32, by Box and Muller (1958): `sqrt(-2 ln(1 - u)) (cos, sin)(2 pi v)`.
    /// [`Key::normal_of`] draws in f64, too.
    ///
    /// They are not independent of the [uniform](Key::uniform) samples of the same key, which are u and v: [`Key::split`]
    /// the key.
    #[doc(alias = "randn")]
    pub fn normal(&self, shape: impl Into<Shape>) -> Tensor {
        self.normal_of(DType::F32, shape)
    }

    /// Standard normal samples in f32 or f64, from uniform samples of this type. In f32 they are those of [`Key::normal`].
    /// The magnitude is at most 5.8 in f32 and 8.6 in f64; of standard normal numbers, 8 in 10^9 and 1 in 10^17 are larger.
    ///
    /// # Panics
    /// If the type is not a float.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// assert_eq!(Key::new(0).normal_of(DType::F64, [2, 3]).dtype(), DType::F64);
    /// ```
    #[track_caller]
    pub fn normal_of(&self, dtype: DType, shape: impl Into<Shape>) -> Tensor {
        self.box_muller(dtype, shape.into())
    }

    #[track_caller]
    fn box_muller(&self, dtype: DType, shape: Shape) -> Tensor {
        let half = shape.size().div_ceil(2);
        let u = self.of_floats("normal_of", dtype, Shape::from([2, half]));
        let radius = ((1.0 - u.index(0)).ln() * -2).sqrt();
        let angle = u.index(1) * std::f64::consts::TAU;
        let (a, b) = (&radius * angle.cos(), &radius * angle.sin());
        Tensor::concat(&[&a, &b], 0).slice(0, 0..shape.size()).reshape(shape)
    }

    /// Samples of -1 or 1 with equal probability, f32. They depend on other samples of the same key; see
    /// [`Key::uniform`].
    pub fn rademacher(&self, shape: impl Into<Shape>) -> Tensor {
        let low = self.bits(shape).lt(Tensor::from(1u32 << 31));
        low.select(&Tensor::from(-1.0f32), &Tensor::from(1.0f32))
    }

    /// Samples of the exponential distribution with mean 1, f32: `-ln(1 - u)`. They are at most 16.7, which a fraction of
    /// 6 10^-8 of the distribution exceeds.
    pub fn exponential(&self, shape: impl Into<Shape>) -> Tensor {
        -(-self.uniform(shape)).log1p()
    }

    /// Samples of the standard Gumbel distribution, f32: `-ln e` for exponential numbers e, which are never 0. They are from
    /// -2.9 to 22.9. The largest of `ln p_i + g_i` has place i with probability `p_i`; see [`Key::categorical`].
    pub fn gumbel(&self, shape: impl Into<Shape>) -> Tensor {
        let words = self.bits(shape).cast(DType::F32);
        let largest = Tensor::scalar(DType::F32, 1.0 - F32_STEP);
        let u = ((words + 0.5) * WORD).minimum(&largest);
        -(-(-u).log1p()).ln()
    }

    /// Bools that are true with probability p: whether a [uniform](Key::uniform) number is less than p. The probability is
    /// exact to 2^-24.
    ///
    /// # Shapes and units
    /// p: a number, or a tensor that broadcasts to the shape.
    ///
    /// # Panics
    /// If a concrete p is not from 0 to 1, or does not broadcast to the shape.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// let heads = Key::new(0).bernoulli(0.25, [1000]);
    /// assert!((heads.sum().item() - 250.0).abs() < 50.0);
    /// ```
    #[track_caller]
    pub fn bernoulli(&self, p: impl Into<Tensor>, shape: impl Into<Shape>) -> Tensor {
        self.is_below(&p.into(), shape.into())
    }

    #[track_caller]
    fn is_below(&self, p: &Tensor, shape: Shape) -> Tensor {
        if !p.is_traced()
            && let Some(p) = p.to_vec().into_iter().find(|p| !(0.0..=1.0).contains(p))
        {
            panic!("bernoulli: the probability {p} is not from 0 to 1");
        }
        assert!(
            p.shape().broadcast(&shape).as_ref() == Some(&shape),
            "bernoulli: the probabilities {} do not broadcast to {shape}",
            p.ty()
        );
        let p = p.broadcast_to(shape.clone());
        self.single(shape).lt(&p)
    }

    /// Integers from `low` to `high - 1` with equal probability, i32: `low + floor(u (high - low))` for u of 53 random bits.
    /// The probability of each integer is exact to 2^-53, and the bits are the same at every CPU level.
    ///
    /// # Panics
    /// If `low` is not less than `high`.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// let dice = Key::new(0).randint([100], 1, 7).to_vec();
    /// assert!((1..7).all(|i| dice.contains(&f64::from(i))) && dice.iter().all(|i| (1.0..7.0).contains(i)));
    /// ```
    #[track_caller]
    #[doc(alias = "integers")]
    pub fn randint(&self, shape: impl Into<Shape>, low: i32, high: i32) -> Tensor {
        assert!(low < high, "randint: there is no integer from {low} to below {high}");
        let (low, high) = (f64::from(low), f64::from(high));
        // u is at most 1 - 2^-53, so the product is below the width also after rounding.
        ((self.double(shape.into()) * (high - low)).floor() + low).cast(DType::I32)
    }
}
