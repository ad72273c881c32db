//! exp, expm1, tanh and the logistic function, all from the reduction `x = n ln 2 + r` and one polynomial for
//! `expm1(r)`.

use super::super::lanes::Float;
use super::{Math, poly, poly_tree};

/// `(n, expm1(r))` with `x = n ln 2 + r`, `|r| <= ln 2 / 2`, for `x` within the range of exp.
#[inline(always)]
fn reduce<V: Float>(x: V) -> (V, V) {
    let (_, n) = nearest(x, V::Elem::LOG2_E);
    let [hi, lo] = V::Elem::LN2;
    let r = n.neg_mul_add(x.of(lo), n.neg_mul_add(x.of(hi), x));
    (n, r.mul(r).mul_add(poly(r, V::Elem::EXPM1_POLY), r))
}

/// `n + ROUND`, whose lowest bits are `n`, and `n`, the integer nearest to `x factor`.
#[inline(always)]
fn nearest<V: Float>(x: V, factor: V::Elem) -> (V, V) {
    let magic = x.of(V::Elem::ROUND);
    let shifted = x.mul_add(x.of(factor), magic);
    (shifted, shifted.sub(magic))
}

/// `e^x`.
#[inline(always)]
pub(crate) fn exp<V: Float>(x: V) -> V {
    let [lo, hi] = V::Elem::EXP_RANGE;
    let (n, p) = reduce(x.at_least(x.of(lo)).at_most(x.of(hi)));
    p.add(x.of(V::Elem::ONE)).scale(n)
}

/// `e^x - 1` from `(n, p) = reduce(x)`, for `x` in `[EXPM1_MIN, (EXPM1_BIG + 2) ln 2]`; +0 for `x = -0`.
#[inline(always)]
fn expm1_moderate<V: Float>(n: V, p: V) -> V {
    let s = n.exp2_integral();
    s.mul_add(p, s.sub(n.of(V::Elem::ONE)))
}

/// `e^x - 1`.
#[inline(always)]
pub(crate) fn expm1<V: Float>(x: V) -> V {
    let (n, p) = reduce(x.at_least(x.of(V::Elem::EXPM1_MIN)).at_most(x.of(V::Elem::EXP_RANGE[1])));
    let large = p.add(x.of(V::Elem::ONE)).scale(n);
    let is_large = x.of(V::Elem::EXPM1_BIG).lt(n);
    V::select(is_large, large, expm1_moderate(n, p)).with_sign_of(x)
}

/// `tanh x = h / (h + 1)` with `h = expm1(2 |x|) / 2`, then the sign: one division, exact near zero.
///
/// With `|x| = n ln 2 / 2 + r`, `h = 2^n p + (2^(n-1) - 1/2)`, `p = expm1(2 r) / 2`. ln 2 has one part: n is large only
/// where tanh is nearly constant. There are few instructions on the way from x to the division, because the
/// registers of a processor limit how many vectors are computed at once.
#[inline(always)]
pub(crate) fn tanh<V: Float>(x: V) -> V {
    let magnitude = x.abs();
    let sign = x.bit_xor(magnitude);
    let z = magnitude.at_most(x.of(V::Elem::TANH_MAX));
    let (shifted, n) = nearest(z, V::Elem::TWO_LOG2_E);
    let r = n.neg_mul_add(x.of(V::Elem::HALF_LN_2), z);
    let p = r.mul(r).mul_add(poly_tree(r, V::Elem::TANH_POLY), r);
    let exponent = shifted.bits_shl(V::Elem::MANTISSA);
    let power = exponent.bits_add(x.of_bits(V::Elem::ONE_BITS));
    let half_power = exponent.bits_add(x.of_bits(V::Elem::ONE_BITS - (1 << V::Elem::MANTISSA)));
    let h = power.mul_add(p, half_power.sub(x.of(V::Elem::HALF)));
    h.div(h.add(x.of(V::Elem::ONE))).bit_or(sign)
}

/// `1 / (1 + e^-x)`, as `z / (1 + z)` with `z = e^x` for negative `x`, so that small results are accurate.
#[inline(always)]
pub(crate) fn sigmoid<V: Float>(x: V) -> V {
    let one = x.of(V::Elem::ONE);
    let z = exp(x.abs().neg());
    V::select(x.lt(x.of(V::Elem::ZERO)), z, one).div(one.add(z))
}
