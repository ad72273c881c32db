//! exp, ln, tanh and similar functions on lanes of f32 and f64, each written once over the constants of
//! [`Math`].
//!
//! These functions depend only on polynomials and floating-point formats. Each function except `power` is
//! within 4 ulp of the true value over the whole range, including subnormal and overflowing results. NaN,
//! infinities and signed zeros are treated as in C99 Annex F. The tests measure the error at each level.
//!
//! Alternatives considered: no crate for stable Rust offers these functions (with ln, and for f64) at widths
//! chosen at run time. A single exp2 without division, from which all other functions are derived, would lose
//! the accuracy of expm1, log1p and tanh near zero.

mod atan;
mod constants;
mod erf;
mod exp;
mod ln;
mod power;
#[cfg(all(test, feature = "autodiff"))]
mod tests;
mod trig;

use super::lanes::{Float, Simd};

#[cfg_attr(
    not(feature = "autodiff"),
    allow(unused_imports, reason = "only kernels of the backend use it")
)]
pub(crate) use atan::atan;
#[cfg_attr(
    not(feature = "autodiff"),
    allow(unused_imports, reason = "only kernels of the backend use it")
)]
pub(crate) use erf::erf;
#[cfg_attr(
    not(feature = "autodiff"),
    allow(unused_imports, reason = "kernels of the backend use the rest")
)]
pub(crate) use exp::{exp, expm1, sigmoid, tanh};
#[cfg_attr(
    not(feature = "autodiff"),
    allow(unused_imports, reason = "kernels of the backend use the rest")
)]
pub(crate) use ln::{ln, log1p, softplus};
pub(crate) use power::power;
pub(crate) use trig::{cos, sin};

/// A floating-point format and the constants of the functions on it.
pub(crate) trait Math: Copy + Default + PartialEq + PartialOrd + std::fmt::Debug + 'static {
    /// The lanes of this element at a level.
    type Of<S: Simd>: Float<Elem = Self>;
    /// The unsigned integer type of the same size.
    type Word: Copy;

    /// The number of stored bits of the significand.
    const MANTISSA: u32;
    const BITS: u32;
    const SIGN_BIT: u64;
    const ONE_BITS: u64;
    /// The bits of `sqrt(1/2)`.
    const SQRT_HALF_BITS: u64;
    const ZERO: Self;
    const HALF: Self;
    const ONE: Self;
    const TWO: Self;
    const INFINITY: Self;
    const NAN: Self;
    const MIN_POSITIVE: Self;
    /// `1.5 * 2^MANTISSA`: adding and subtracting it rounds to an integer.
    const ROUND: Self;
    /// `2^MANTISSA`, and `2^MANTISSA + bias`.
    const TWO_MANTISSA: Self;
    const TWO_MANTISSA_BIAS: Self;
    /// `2^(MANTISSA + 2)` and its exponent, which lift a subnormal into the normal range.
    const LIFT: Self;
    const LIFT_EXPONENT: Self;

    const LOG2_E: Self;
    const LN_2: Self;
    /// `2 / ln 2`, and `ln 2 / 2`.
    const TWO_LOG2_E: Self;
    const HALF_LN_2: Self;
    /// ln 2 in two parts, the first short enough that its product with an exponent is exact.
    const LN2: [Self; 2];
    /// 2/pi, and pi/2 in three parts.
    const TWO_OVER_PI: Self;
    const HALF_PI: [Self; 3];
    /// Below the first argument exp is rounded to 0; above the second argument it is infinite.
    const EXP_RANGE: [Self; 2];
    /// The ranges to which `power` clamps its argument and the binary logarithm of its result. They are
    /// slightly smaller than the range of normal numbers.
    const POWER_RANGE: [[Self; 2]; 2];
    /// Below `EXPM1_MIN`, expm1 is -1. Above `2^EXPM1_BIG`, the -1 is smaller than the rounding error.
    const EXPM1_MIN: Self;
    const EXPM1_BIG: Self;
    /// Above this argument, tanh is 1.
    const TANH_MAX: Self;
    /// The largest argument reduced with three parts of pi/2.
    const TRIG_MAX: Self;
    /// Three arguments of erf: the start of the range of the second polynomial, the center of the
    /// polynomial's argument, and the end of the range, from which erf is 1.
    const ERF_RANGE: [Self; 3];
    /// The center of the first polynomial's argument.
    const ERF_CENTER: Self;
    /// The ends of the first and of the second range of atan.
    const ATAN_RANGE: [Self; 2];

    /// `Q` in `expm1(r) = r + r^2 Q(r)` for `|r| <= ln 2 / 2`.
    const EXPM1_POLY: &'static [Self];
    /// `P` in `expm1(2 r) / 2 = r + r^2 P(r)` for `|r| <= ln 2 / 4`.
    const TANH_POLY: &'static [Self];
    /// `P` in `ln(1 + f) = 2s + s z P(z)`, `s = f / (2 + f)`, `z = s^2`.
    const LN_POLY: &'static [Self];
    /// `P` in `2 atanh(w / 2) = w + w z P(z)`, `z = w^2`, for w up to 2/3.
    const SOFTPLUS_POLY: &'static [Self];
    /// `S` in `sin(r) = r + r z S(z)` and `C` in `cos(r) = 1 - z/2 + z^2 C(z)`, `z = r^2`, `|r| <= pi/4`.
    const SIN_POLY: &'static [Self];
    const COS_POLY: &'static [Self];
    /// `Q` in `erf x = x + x Q(x^2 - ERF_CENTER)` up to `ERF_RANGE[0]`.
    const ERF_POLY: &'static [Self];
    /// `E` in `erf x = 1 - E(x - ERF_RANGE[1])` for x from `ERF_RANGE[0]` to `ERF_RANGE[2]`. The fit
    /// minimizes the absolute error, which is a quarter as large at the end of the range.
    const ERFC_POLY: &'static [Self];
    /// `Q` in `atan t = t + t z Q(z)`, `z = t^2`, for `|t| <= ATAN_RANGE[0]`.
    const ATAN_POLY: &'static [Self];

    fn from_f64(x: f64) -> Self;
    fn to_f64(self) -> f64;
    /// `self + other` on scalars.
    fn plus(self, other: Self) -> Self;
    fn scalar_sin(self) -> Self;
    fn scalar_cos(self) -> Self;
    fn scalar_powf(self, exponent: Self) -> Self;
}

/// `c[0] + c[1] x + ...` by Horner's rule.
#[inline(always)]
fn poly<V: Float>(x: V, c: &[V::Elem]) -> V {
    let mut acc = x.of(c[c.len() - 1]);
    for &ci in c[..c.len() - 1].iter().rev() {
        acc = acc.mul_add(x, x.of(ci));
    }
    acc
}

/// `c[0] + c[1] x + ...` by halves (Estrin, 1960), with a third of the latency of Horner's rule. At most 16
/// terms. There is one function per depth of the tree, because a loop would not be unrolled and would store
/// its values in memory.
#[inline(always)]
fn poly_tree<V: Float>(x: V, c: &[V::Elem]) -> V {
    let x2 = x.mul(x);
    let x4 = x2.mul(x2);
    if c.len() <= 8 {
        return eight(c, x, x2, x4);
    }
    let (low, high) = c.split_at(8);
    eight(high, x, x2, x4).mul_add(x4.mul(x4), eight(low, x, x2, x4))
}

#[inline(always)]
fn eight<V: Float>(c: &[V::Elem], x: V, x2: V, x4: V) -> V {
    if c.len() <= 4 {
        return four(c, x, x2);
    }
    let (low, high) = c.split_at(4);
    four(high, x, x2).mul_add(x4, four(low, x, x2))
}

#[inline(always)]
fn four<V: Float>(c: &[V::Elem], x: V, x2: V) -> V {
    if c.len() <= 2 {
        return two(c, x);
    }
    let (low, high) = c.split_at(2);
    two(high, x).mul_add(x2, two(low, x))
}

#[inline(always)]
fn two<V: Float>(c: &[V::Elem], x: V) -> V {
    match *c {
        [c0] => x.of(c0),
        [c0, c1] => x.of(c1).mul_add(x, x.of(c0)),
        _ => unreachable!("invariant: halves of 1 or 2 terms"),
    }
}
