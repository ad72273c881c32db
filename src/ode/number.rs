//! `Number`: the operations on numbers in the body of a [`vector_field!`](crate::vector_field).
//!
//! A vector field compiled for `f64`, `f32`, lanes and dual numbers needs one set of operations that all of
//! them have. Inside a `vector_field!` the number is a concrete type, so constants may stand on either side;
//! a helper function generic over [`Number`] needs them on the right (`y * 2.0`), because with the bound
//! `f64: Mul<R>` the compiler could not infer the type of a product of two constants. No comparison returns a
//! `bool`, because lanes differ; [`Number::select_positive`] selects per lane.

use super::{FieldParam, GenericField, Real};
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Sub, SubAssign};

/// A number of a `vector_field!`: `f64`, [`Single`](super::Single), [`Lanes`](super::Lanes), [`Dual`](super::Dual).
///
/// # Examples
/// A helper function of a vector field is generic over `Number`:
/// ```
/// use flowline::ode::extra::Number;
/// fn logistic<R: Number>(x: R) -> R {
///     ((-x).exp() + 1.0).recip()
/// }
/// assert_eq!(logistic(0.0), 0.5);
/// ```
pub trait Number:
    Real
    + From<f64>
    + Sum
    + Add<f64, Output = Self>
    + Sub<f64, Output = Self>
    + Mul<f64, Output = Self>
    + Div<f64, Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
{
    /// The sine; `self` is in radians.
    fn sin(self) -> Self;
    /// The cosine; `self` is in radians.
    fn cos(self) -> Self;
    /// `e^self`.
    fn exp(self) -> Self;
    /// The natural logarithm.
    fn ln(self) -> Self;
    /// The square root.
    fn sqrt(self) -> Self;
    /// The hyperbolic tangent.
    fn tanh(self) -> Self;
    /// `|self|`.
    fn abs(self) -> Self;
    /// `self^n`.
    fn powi(self, n: i32) -> Self;
    /// `self^exponent`.
    fn powf(self, exponent: impl Into<Self>) -> Self;
    /// The larger of `self` and `other`.
    fn max(self, other: impl Into<Self>) -> Self;
    /// The smaller of `self` and `other`.
    fn min(self, other: impl Into<Self>) -> Self;
    /// `sqrt(self^2 + other^2)`.
    fn hypot(self, other: impl Into<Self>) -> Self;
    /// `a` where `self > 0`, else `b` (also where `self` is NaN): the branch for lanes. Both `a` and `b` are
    /// evaluated; the unselected one has no effect.
    fn select_positive(self, a: impl Into<Self>, b: impl Into<Self>) -> Self;
    /// Calls `f` with the number of each lane and its value, without tangents.
    #[doc(hidden)]
    fn values(self, f: impl FnMut(usize, f64));
    /// Sets the value of a lane to a constant.
    #[doc(hidden)]
    fn set_value(&mut self, lane: usize, x: f64);
    /// `1 / self`.
    #[inline(always)]
    fn recip(self) -> Self {
        Self::from(1.0) / self
    }
    /// `self * self`.
    #[inline(always)]
    fn square(self) -> Self {
        self * self
    }
}

/// A [`Number`] that every `vector_field!` is compiled for.
pub trait FieldNumber: Number + FieldParam {
    /// The time as a number of this kind.
    fn time(t: &Self::Clock) -> Self;
    /// The vector field at (t, y).
    fn eval<G: GenericField<N>, const N: usize>(field: &G::Of<Self>, t: Self, y: &[Self; N]) -> [Self; N];
}

macro_rules! std_functions {
    ($($f:ident)*) => { $(
        #[inline(always)]
        fn $f(self) -> f64 {
            f64::$f(self)
        }
    )* };
}

impl Number for f64 {
    std_functions!(sin cos exp ln sqrt tanh abs recip);
    #[inline(always)]
    fn powi(self, n: i32) -> f64 {
        f64::powi(self, n)
    }
    #[inline(always)]
    fn powf(self, exponent: impl Into<f64>) -> f64 {
        f64::powf(self, exponent.into())
    }
    #[inline(always)]
    fn max(self, other: impl Into<f64>) -> f64 {
        f64::max(self, other.into())
    }
    #[inline(always)]
    fn min(self, other: impl Into<f64>) -> f64 {
        f64::min(self, other.into())
    }
    #[inline(always)]
    fn hypot(self, other: impl Into<f64>) -> f64 {
        f64::hypot(self, other.into())
    }
    #[inline(always)]
    fn select_positive(self, a: impl Into<f64>, b: impl Into<f64>) -> f64 {
        if self > 0.0 { a.into() } else { b.into() }
    }
    #[inline(always)]
    fn values(self, mut f: impl FnMut(usize, f64)) {
        f(0, self);
    }
    #[inline(always)]
    fn set_value(&mut self, _lane: usize, x: f64) {
        *self = x;
    }
}

impl FieldNumber for f64 {
    #[inline(always)]
    fn time(t: &f64) -> f64 {
        *t
    }
    #[inline(always)]
    fn eval<G: GenericField<N>, const N: usize>(field: &G::Of<f64>, t: f64, y: &[f64; N]) -> [f64; N] {
        G::eval_f64(field, t, y)
    }
}
