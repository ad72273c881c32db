//! Powers of positive numbers, for step size control. They know the split of ln and the reduction of exp.

use super::super::lanes::Float;
use super::exp::reduce;
use super::ln::ln_normal;
use super::Math;

/// `x^exponent` for `x >= 0`; NaN stays.
///
/// x and the result are taken at the ends of [`Math::POWER_RANGE`] beyond them, so nothing is left to be told
/// apart: comparisons that are joined (`0 < x && x < inf`) are turned into work on single lanes by the optimiser, and
/// cost as much as the power. The relative error is a few ulp of `exponent ln x`.
#[inline(always)]
pub(crate) fn power<V: Float>(x: V, exponent: V::Elem) -> V {
    let zero = x.of(V::Elem::ZERO);
    let [[x_min, x_max], [y_min, y_max]] = V::Elem::POWER_RANGE;
    let x = x.at_least(x.of(x_min)).at_most(x.of(x_max));
    let y = ln_normal(x, zero, zero).mul(x.of(exponent));
    let (n, p) = reduce(y.at_least(x.of(y_min)).at_most(x.of(y_max)));
    p.add(x.of(V::Elem::ONE)).mul(n.exp2_integral())
}
