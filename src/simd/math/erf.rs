//! The error function, as two polynomials.
//!
//! The domain is split as in fdlibm (Sun Microsystems, 1993, `s_erf.c`): `x + x Q(x^2)` near zero, so that
//! the result is accurate for tiny x; 1 minus a small term for larger x; then 1. For the small term fdlibm
//! and W. J. Cody (Rational Chebyshev approximations for the error function, Mathematics of Computation 23,
//! 1969) use `e^(-x^2)` times a rational function, so that erfc is accurate where it is tiny. Only erf is
//! needed here, and the error of erf depends on the absolute error of erfc. One polynomial of 12 terms (f64:
//! 32 terms) is therefore enough, without a division or an exp. At AVX2
//! it takes 1.5 (f64: 2.8) times as long as tanh.
//!
//! Q is a polynomial in `x^2 - ERF_CENTER`: in powers of `x^2`, its terms would alternate, the sum of their
//! magnitudes would be up to seven times the result, and the error would be 5 ulp instead of 2 ulp.

use super::super::lanes::Float;
use super::{Math, poly};

/// `2 / sqrt(pi)` times the integral of `e^(-t^2)` from 0 to x.
#[inline(always)]
pub(crate) fn erf<V: Float>(x: V) -> V {
    let [join, center, end] = V::Elem::ERF_RANGE;
    let t = x.abs().at_most(x.of(end));
    let square = t.mul_add(t, x.of(V::Elem::ERF_CENTER).neg());
    let near = t.mul_add(poly(square, V::Elem::ERF_POLY), t);
    // The difference is exact: from `join` on, it has no more digits than t.
    let far = x.of(V::Elem::ONE).sub(by_parity(t.sub(x.of(center)), V::Elem::ERFC_POLY));
    V::select(t.lt(x.of(join)), near, far).with_sign_of(x)
}

/// `c[0] + c[1] x + ...` for an even number of terms. Even and odd powers are summed separately, in two
/// dependency chains of half the length: a single chain of 32 terms is bound by latency (f64 with AVX2: 3.5
/// ns per element instead of 2.4).
#[inline(always)]
fn by_parity<V: Float>(x: V, c: &[V::Elem]) -> V {
    let (pairs, rest) = c.as_chunks::<2>();
    assert!(rest.is_empty(), "invariant: the terms are pairs");
    let square = x.mul(x);
    let [c0, c1] = pairs[pairs.len() - 1];
    let (mut even, mut odd) = (x.of(c0), x.of(c1));
    for &[c0, c1] in pairs[..pairs.len() - 1].iter().rev() {
        even = even.mul_add(square, x.of(c0));
        odd = odd.mul_add(square, x.of(c1));
    }
    odd.mul_add(x, even)
}
