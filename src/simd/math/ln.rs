//! ln, log1p and softplus. ln and log1p use the split `x = 2^e m`, `m` in `[sqrt(1/2), sqrt 2)`, and the series of atanh.
//!
//! The evaluation `e ln2_hi - ((f^2/2 - (s (f^2/2 + R) + e ln2_lo)) - f)` is from fdlibm (Sun Microsystems,
//! 1993, `e_log.c`) and computes the large terms exactly. A plain polynomial in `f` would need twice the
//! degree for f64.

use super::super::lanes::{Float, Mask};
use super::{Math, exp, poly};

/// `ln(x) + correction` plus `exponent * ln 2`, for positive normal `x`.
#[inline(always)]
fn ln_normal<V: Float>(x: V, exponent: V, correction: V) -> V {
    let one = x.of(V::Elem::ONE);
    let sqrt_half = x.of_bits(V::Elem::SQRT_HALF_BITS);
    // Shifted so that the exponent field changes at sqrt(1/2) instead of 1.
    let shifted = x.bits_add(x.of_bits(V::Elem::ONE_BITS - V::Elem::SQRT_HALF_BITS));
    let biased = shifted.bits_shr(V::Elem::MANTISSA).bit_or(x.of(V::Elem::TWO_MANTISSA));
    let e = biased.sub(x.of(V::Elem::TWO_MANTISSA_BIAS)).add(exponent);
    let fraction = x.of_bits((1 << V::Elem::MANTISSA) - 1);
    let m = shifted.bit_and(fraction).bits_add(sqrt_half);

    let f = m.sub(one);
    let s = f.div(f.add(x.of(V::Elem::TWO)));
    let z = s.mul(s);
    let r = z.mul(poly(z, V::Elem::LN_POLY));
    let half_square = f.mul(f).mul(x.of(V::Elem::HALF));
    let [hi, lo] = V::Elem::LN2;
    let low = s.mul_add(half_square.add(r), e.mul_add(x.of(lo), correction));
    e.mul_add(x.of(hi), f.sub(half_square.sub(low)))
}

/// Returns -inf where `x == pole`, NaN below it, `x` itself where it is +inf or NaN, and `value` elsewhere.
#[inline(always)]
fn with_edges<V: Float>(x: V, pole: V, value: V) -> V {
    let infinity = x.of(V::Elem::INFINITY);
    let inside = pole.lt(x).and(x.lt(infinity));
    let outside = V::select(x.lt(pole), x.of(V::Elem::NAN), V::select(x.eq(pole), infinity.neg(), x));
    V::select(inside, value, outside)
}

/// The natural logarithm.
#[inline(always)]
pub(crate) fn ln<V: Float>(x: V) -> V {
    let zero = x.of(V::Elem::ZERO);
    let subnormal = x.lt(x.of(V::Elem::MIN_POSITIVE));
    let lifted = V::select(subnormal, x.mul(x.of(V::Elem::LIFT)), x);
    let exponent = V::select(subnormal, x.of(V::Elem::LIFT_EXPONENT).neg(), zero);
    with_edges(x, zero, ln_normal(lifted, exponent, zero))
}

/// `ln(1 + x)`: the logarithm of the rounded sum `u`, and the rounding error of `u` over `u`.
#[inline(always)]
pub(crate) fn log1p<V: Float>(x: V) -> V {
    let one = x.of(V::Elem::ONE);
    let zero = x.of(V::Elem::ZERO);
    let u = one.add(x);
    let x_part = u.sub(one);
    let error = x.sub(x_part).add(one.sub(u.sub(x_part)));
    let value = ln_normal(u, zero, error.div(u));
    V::select(x.eq(zero), x, with_edges(x, one.neg(), value))
}

/// `ln(1 + e^x)`, as `max(x, 0) + ln(1 + u)` with `u = e^-|x|`. u is in [0, 1], so the series of atanh needs no split:
/// `ln(1 + u) = 2 atanh(w / 2)`, `w = u / (1 + u / 2)`. w is normal where u is; half of it may be a number that a program
/// rounds to 0.
#[inline(always)]
pub(crate) fn softplus<V: Float>(x: V) -> V {
    let u = exp(x.abs().neg());
    let w = u.div(u.mul_add(x.of(V::Elem::HALF), x.of(V::Elem::ONE)));
    let z = w.mul(w);
    let r = z.mul(poly(z, V::Elem::SOFTPLUS_POLY));
    x.at_least(x.of(V::Elem::ZERO)).add(w.mul_add(r, w))
}
