//! sin and cos, by reduction modulo pi/2 with three parts of pi/2 (Cody and Waite, 1980), which is accurate
//! enough up to 1e5 with fused multiply-add. Larger arguments, and levels without fused multiply-add, use the
//! standard library lane by lane. Both are rare, and a Payne-Hanek reduction on lanes would be long code.

use super::super::lanes::{Float, Mask};
use super::{Math, poly};

/// `(n, r)` with `x = n pi/2 + r`, `|r| <= pi/4` up to rounding.
#[inline(always)]
fn reduce<V: Float>(x: V) -> (V, V) {
    let n = x.mul(x.of(V::Elem::TWO_OVER_PI)).round_small();
    let [hi, mid, lo] = V::Elem::HALF_PI;
    let r = n.neg_mul_add(x.of(mid), n.neg_mul_add(x.of(hi), x));
    (n, n.neg_mul_add(x.of(lo), r))
}

/// `sin(n pi/2 + r)`: `sin(r)` if `n` is even, `cos(r)` if it is odd, negated if bit 1 of `n` is set.
#[inline(always)]
fn sin_quadrant<V: Float>(n: V, r: V) -> V {
    let one = r.of(V::Elem::ONE);
    let z = r.mul(r);
    let sin = r.mul(z).mul_add(poly(z, V::Elem::SIN_POLY), r);
    let half = z.mul(r.of(V::Elem::HALF));
    let top = one.sub(half);
    let cos = top.add(z.mul(z).mul_add(poly(z, V::Elem::COS_POLY), one.sub(top).sub(half)));
    let n_half = n.mul(r.of(V::Elem::HALF));
    let even = n_half.eq(n_half.round_small());
    let sign = n.add(r.of(V::Elem::ROUND)).bits_shl(V::Elem::BITS - 2).bit_and(r.of_bits(V::Elem::SIGN_BIT));
    V::select(even, sin, cos).bit_xor(sign)
}

/// `value`, or the standard library's `f` in lanes where the reduction is not accurate enough.
#[inline(always)]
fn with_rest<V: Float>(x: V, value: V, f: fn(V::Elem) -> V::Elem) -> V {
    let limit = x.of(if V::FUSED { V::Elem::TRIG_MAX } else { V::Elem::ZERO });
    value.patch(x.abs().le(limit).not(), x, f)
}

/// The sine of radians.
#[inline(always)]
pub(crate) fn sin<V: Float>(x: V) -> V {
    let (n, r) = reduce(x);
    let value = V::select(x.eq(x.of(V::Elem::ZERO)), x, sin_quadrant(n, r));
    with_rest(x, value, V::Elem::scalar_sin)
}

/// The cosine of radians.
#[inline(always)]
pub(crate) fn cos<V: Float>(x: V) -> V {
    let (n, r) = reduce(x);
    with_rest(x, sin_quadrant(n.add(x.of(V::Elem::ONE)), r), V::Elem::scalar_cos)
}
