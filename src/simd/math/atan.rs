//! The arc tangent, by one reduction and one polynomial.
//!
//! For x >= 0, `atan x = c + atan t` (Abramowitz and Stegun, 4.4.34) with `c = 0, t = x` up to
//! `ATAN_RANGE[0]`, then `c = pi/4, t = (x - 1) / (x + 1)` up to `ATAN_RANGE[1]`, then `c = pi/2, t = -1 / x`.
//! One division serves all three. With the reduction `-1 / x` alone, the polynomial would need 21 terms
//! instead of 13 (f64). The difference `x - 1` is exact. The first range ends above tan(1/2): below 1/2, an
//! ulp of the result is half as large, and the rounding of `x + 1` would be an error of 1.4 ulp instead of
//! 0.9 ulp.
//!
//! Products and sums are rounded separately, so the result has the same bits at all levels. A fused
//! multiply-add would save instructions, but a level without it cannot round in the same way.

use super::super::lanes::Float;
use super::Math;

/// The angle in `[-pi/2, pi/2]` whose tangent is x.
#[inline(always)]
pub(crate) fn atan<V: Float>(x: V) -> V {
    let [zero, one, half] = [V::Elem::ZERO, V::Elem::ONE, V::Elem::HALF].map(|c| x.of(c));
    let a = x.abs();
    let (in_last, in_middle) = (x.of(V::Elem::ATAN_RANGE[1]).lt(a), x.of(V::Elem::ATAN_RANGE[0]).lt(a));
    // NaN is in the first range.
    let by_range = |first, middle, last| V::select(in_last, last, V::select(in_middle, middle, first));
    let t = by_range(a, a.sub(one), one.neg()).div(by_range(one, a.add(one), a));
    let half_pi = V::Elem::HALF_PI.map(|part| x.of(part));
    let c = |part: usize| by_range(zero, half_pi[part].mul(half), half_pi[part]);

    let z = t.mul(t);
    let curve = t.mul(z.mul(separate_poly(z, V::Elem::ATAN_POLY)));
    // `sum + rest = c + t` exactly (Dekker, 1971), because c is 0 or larger than |t|.
    let sum = c(0).add(t);
    let rest = t.sub(sum.sub(c(0)));
    sum.add(curve.add(rest.add(c(1)))).with_sign_of(x)
}

/// [`poly`](super::poly) with products that are rounded before they are added.
#[inline(always)]
fn separate_poly<V: Float>(x: V, c: &[V::Elem]) -> V {
    let last = x.of(c[c.len() - 1]);
    c[..c.len() - 1].iter().rev().fold(last, |sum, &ci| sum.mul(x).add(x.of(ci)))
}
