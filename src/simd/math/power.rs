//! Powers of positive numbers for step size control: faster than the other functions, but less accurate.
//!
//! The next step size depends on the power of the error, so no other work can hide the latency of this power.
//! Its polynomials are therefore evaluated as trees, and logarithm and exponential are in base 2, without the
//! two-part constants that keep the other functions within 4 ulp.

use super::super::lanes::Float;
use super::{Math, poly_tree};

/// `x^exponent` for `x >= 0`; NaN if x is NaN.
///
/// The relative error is about `|log2 of the result|` ulp. x and the logarithm of the result are clamped to
/// [`Math::POWER_RANGE`]; step size control needs no more. (From combined comparisons such as `0 < x && x <
/// inf`, the optimizer makes code for single lanes, which takes as long as the power itself.)
#[inline(always)]
pub(crate) fn power<V: Float>(x: V, exponent: V::Elem) -> V {
    let number = |c: V::Elem| x.of(c);
    let [[x_min, x_max], [y_min, y_max]] = V::Elem::POWER_RANGE;
    let x = x.at_least(number(x_min)).at_most(number(x_max));

    // x = 2^e m, m in [sqrt(1/2), sqrt 2): shifted so that the exponent field changes at sqrt(1/2) instead of
    // at 1.
    let shifted = x.bits_add(x.of_bits(V::Elem::ONE_BITS - V::Elem::SQRT_HALF_BITS));
    let biased = shifted.bits_shr(V::Elem::MANTISSA).bit_or(number(V::Elem::TWO_MANTISSA));
    let e = biased.sub(number(V::Elem::TWO_MANTISSA_BIAS));
    let fraction = x.of_bits((1 << V::Elem::MANTISSA) - 1);
    let m = shifted.bit_and(fraction).bits_add(x.of_bits(V::Elem::SQRT_HALF_BITS));

    // ln m = s (2 + z P(z)), s = f / (2 + f), z = s^2.
    let f = m.sub(number(V::Elem::ONE));
    let s = f.div(f.add(number(V::Elem::TWO)));
    let z = s.mul(s);
    let ln_m = s.mul(z.mul_add(poly_tree(z, V::Elem::LN_POLY), number(V::Elem::TWO)));
    let y = ln_m.mul_add(number(V::Elem::LOG2_E), e).mul(number(exponent));

    // 2^y = 2^n e^r, e^r = 1 + r + r^2 Q(r).
    let y = y.at_least(number(y_min)).at_most(number(y_max));
    let n = y.round_small();
    let r = y.sub(n).mul(number(V::Elem::LN_2));
    let p = r.mul(r).mul_add(poly_tree(r, V::Elem::EXPM1_POLY), r);
    // Clamping has turned a NaN into a number: x * 0 restores it.
    let nan = x.mul(number(V::Elem::ZERO));
    p.add(number(V::Elem::ONE)).mul(n.exp2_integral()).add(nan)
}
