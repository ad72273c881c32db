//! The arc tangent, by one reduction and one polynomial.
//!
//! For x >= 0, `atan x = c + atan t` (Abramowitz and Stegun, 4.4.34) with `c = 0, t = x` up to
//! `ATAN_RANGE[0]`, then `c = pi/4, t = (x - 1) / (x + 1)` up to `ATAN_RANGE[1]`, then `c = pi/2, t = -1 / x`.
//! One division serves all three. With the reduction `-1 / x` alone, the polynomial would need 21 terms
//! instead of 13 (f64). The difference `x - 1` is exact. The first range ends above tan(1/2): below 1/2, an
//! ulp of the result is half as large, and the rounding of `x + 1` would raise the largest error from 0.9 ulp
//! to 1.4 ulp.
//!
//! Products and sums are rounded separately, so the result has the same bits at all levels. A fused
//! multiply-add would save instructions, but a level without it cannot round in the same way.

use super::super::lanes::Float;
use super::Math;

/// The angle in `[-pi/2, pi/2]` whose tangent is x.
#[inline(always)]
pub(crate) fn atan<V: Float>(x: V) -> V {
    let [zero, one, half] = [x.of(V::Elem::ZERO), x.of(V::Elem::ONE), x.of(V::Elem::HALF)];
    let [half_pi, half_pi_low, _] = V::Elem::HALF_PI;
    let (half_pi, half_pi_low) = (x.of(half_pi), x.of(half_pi_low));
    let a = x.abs();
    let t = by_range(a, a, a.sub(one), one.neg()).div(by_range(a, one, a.add(one), a));
    let c = by_range(a, zero, half_pi.mul(half), half_pi);
    let c_low = by_range(a, zero, half_pi_low.mul(half), half_pi_low);

    let z = t.mul(t);
    let curve = t.mul(z.mul(separate_poly(z, V::Elem::ATAN_POLY)));
    // `sum + rest = c + t` exactly (Dekker, 1971), because c is 0 or larger than |t|.
    let sum = c.add(t);
    let rest = t.sub(sum.sub(c));
    sum.add(curve.add(rest.add(c_low))).with_sign_of(x)
}

/// The value for the range that contains `a`; for NaN `first`.
#[inline(always)]
fn by_range<V: Float>(a: V, first: V, middle: V, last: V) -> V {
    let [near, far] = V::Elem::ATAN_RANGE;
    V::select(a.of(far).lt(a), last, V::select(a.of(near).lt(a), middle, first))
}

/// [`poly`](super::poly) with products that are rounded before they are added.
#[inline(always)]
fn separate_poly<V: Float>(x: V, c: &[V::Elem]) -> V {
    let mut acc = x.of(c[c.len() - 1]);
    for &ci in c[..c.len() - 1].iter().rev() {
        acc = acc.mul(x).add(x.of(ci));
    }
    acc
}
