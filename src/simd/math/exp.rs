//! exp, expm1, tanh and the logistic function, all from one reduction `x = n ln 2 + r` and one polynomial for
//! `expm1(r)`.

use super::super::lanes::Float;
use super::{Math, poly};

/// `(n, expm1(r))` with `x = n ln 2 + r`, `|r| <= ln 2 / 2`, for `x` within the range of exp.
#[inline(always)]
fn reduce<V: Float>(x: V) -> (V, V) {
    let n = x.mul(x.of(V::Elem::LOG2_E)).round_small();
    let [hi, lo] = V::Elem::LN2;
    let r = n.neg_mul_add(x.of(lo), n.neg_mul_add(x.of(hi), x));
    (n, r.mul(r).mul_add(poly(r, V::Elem::EXPM1_POLY), r))
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

/// `tanh x = e / (e + 2)` with `e = expm1(2 |x|)`, then the sign: one division, exact near zero.
#[inline(always)]
pub(crate) fn tanh<V: Float>(x: V) -> V {
    let z = x.abs().at_most(x.of(V::Elem::TANH_MAX));
    let (n, p) = reduce(z.add(z));
    let e = expm1_moderate(n, p);
    e.div(e.add(x.of(V::Elem::TWO))).with_sign_of(x)
}

/// `1 / (1 + e^-x)`, as `z / (1 + z)` with `z = e^x` for negative `x`, so that small results are accurate.
#[inline(always)]
pub(crate) fn sigmoid<V: Float>(x: V) -> V {
    let one = x.of(V::Elem::ONE);
    let z = exp(x.abs().neg());
    V::select(x.lt(x.of(V::Elem::ZERO)), z, one).div(one.add(z))
}
