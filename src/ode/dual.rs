//! `Dual`: a number and its derivatives in P directions, carried through the same stepping code.
//!
//! `value + sum_p tangent_p e_p` with `e_p e_q = 0`. The clock is `f64`, and everything that controls a solve
//! (error ratio, finiteness, t and dt) reads the value only. So a solve of dual numbers takes the same steps as
//! a solve of their values, with the same bits in the values. Its tangents are the derivative of that discrete
//! solve with the step times fixed. Alternatives considered: tangents in the error norm (other step times, and
//! y1 then depends on which derivatives are computed), variational equations written by hand (a second vector
//! field).

use super::{FieldNumber, GenericField, Number, Real, Tolerance};
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

/// A value and its derivatives in P directions. For second derivatives, the value and the derivatives are
/// dual numbers themselves.
#[derive(Clone, Copy, Debug)]
pub struct Dual<T, const P: usize> {
    /// The value.
    pub value: T,
    /// Its derivative in each direction.
    pub tangent: [T; P],
}

/// The array of `$x`, in which `$p` is the index of a direction. `$start` is any array of this length. It is a loop:
/// the functions of an array that take a closure are not always inlined into code for the CPU's instruction set.
macro_rules! each {
    ($start:expr, $p:ident => $x:expr) => {{
        let mut tangent = $start;
        for $p in 0..P {
            tangent[$p] = $x;
        }
        tangent
    }};
}

/// A number type from which [`Dual`] is built: f64, or a [`Dual`] for second derivatives.
pub trait Part: Number<Clock = f64> {
    /// `derivative * tangent`, or 0 if the tangent is 0, even where `derivative` is not finite. So the
    /// derivative of x^2.0 at x = 0 is finite, although the derivative with respect to the exponent contains
    /// ln x. The square root of a constant 0 has the derivative 0.
    fn term(derivative: Self, tangent: Self) -> Self;
}

impl Part for f64 {
    #[inline(always)]
    fn term(derivative: f64, tangent: f64) -> f64 {
        if tangent == 0.0 { 0.0 } else { derivative * tangent }
    }
}

impl<T: Part, const P: usize> Part for Dual<T, P> {
    #[inline(always)]
    fn term(derivative: Self, tangent: Self) -> Self {
        let (f, x) = (derivative, tangent);
        let tangent = each!(x.tangent, p => T::term(f.value, x.tangent[p]) + T::term(f.tangent[p], x.value));
        Dual { value: T::term(f.value, x.value), tangent }
    }
}

impl<T: Part, const P: usize> Dual<T, P> {
    /// An independent variable: derivative 1 in `direction`, 0 in the others. If `direction` is P or more,
    /// all derivatives are 0.
    #[inline(always)]
    pub fn variable(value: T, direction: usize) -> Self {
        Dual { value, tangent: each!([value; P], p => T::from(f64::from(p == direction))) }
    }

    /// A constant: all derivatives are 0.
    #[inline(always)]
    pub fn fixed(value: T) -> Self {
        Dual { value, tangent: [T::from(0.0); P] }
    }

    /// `f(self)`, where `value` is f and `derivative` is df at this value.
    #[inline(always)]
    fn chain(self, value: T, derivative: T) -> Self {
        Dual { value, tangent: each!(self.tangent, p => T::term(derivative, self.tangent[p])) }
    }

    /// `f(self, other)` with both partial derivatives.
    #[inline(always)]
    fn chain2(self, other: Self, value: T, derivative: T, other_derivative: T) -> Self {
        let (x, y) = (self.tangent, other.tangent);
        let tangent = each!(x, p => T::term(derivative, x[p]) + T::term(other_derivative, y[p]));
        Dual { value, tangent }
    }
}

impl<T: Part, const P: usize> From<f64> for Dual<T, P> {
    #[inline(always)]
    fn from(value: f64) -> Self {
        Dual::fixed(T::from(value))
    }
}
impl<T: Part, const P: usize> Neg for Dual<T, P> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Dual { value: -self.value, tangent: each!(self.tangent, p => -self.tangent[p]) }
    }
}
impl<T: Part, const P: usize> Sum for Dual<T, P> {
    #[inline(always)]
    fn sum<I: Iterator<Item = Self>>(terms: I) -> Self {
        terms.fold(Self::from(0.0), |sum, term| sum + term)
    }
}
impl<T: Part, const P: usize> Add for Dual<T, P> {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        let tangent = each!(self.tangent, p => self.tangent[p] + other.tangent[p]);
        Dual { value: self.value + other.value, tangent }
    }
}
impl<T: Part, const P: usize> Sub for Dual<T, P> {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        let tangent = each!(self.tangent, p => self.tangent[p] - other.tangent[p]);
        Dual { value: self.value - other.value, tangent }
    }
}
impl<T: Part, const P: usize> Mul for Dual<T, P> {
    type Output = Self;
    #[inline(always)]
    #[allow(clippy::suspicious_arithmetic_impl, reason = "the product rule is a sum")]
    fn mul(self, other: Self) -> Self {
        let (x, y) = (self.tangent, other.tangent);
        let tangent = each!(x, p => x[p] * other.value + self.value * y[p]);
        Dual { value: self.value * other.value, tangent }
    }
}
impl<T: Part, const P: usize> Div for Dual<T, P> {
    type Output = Self;
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        let (value, inverse) = (self.value / other.value, T::from(1.0) / other.value);
        let (x, y) = (self.tangent, other.tangent);
        Dual { value, tangent: each!(x, p => (x[p] - value * y[p]) * inverse) }
    }
}

macro_rules! with_constants {
    ($($op:ident $f:ident $assign:ident $g:ident),*) => { $(
        impl<T: Part, const P: usize> $op<f64> for Dual<T, P> {
            type Output = Self;
            #[inline(always)]
            fn $f(self, other: f64) -> Self {
                self.$f(Self::from(other))
            }
        }
        impl<T: Part, const P: usize> $op<Dual<T, P>> for f64 {
            type Output = Dual<T, P>;
            #[inline(always)]
            fn $f(self, other: Dual<T, P>) -> Dual<T, P> {
                Dual::from(self).$f(other)
            }
        }
        impl<T: Part, const P: usize> $assign for Dual<T, P> {
            #[inline(always)]
            fn $g(&mut self, other: Self) {
                *self = (*self).$f(other);
            }
        }
        impl<T: Part, const P: usize> $assign<f64> for Dual<T, P> {
            #[inline(always)]
            fn $g(&mut self, other: f64) {
                *self = (*self).$f(other);
            }
        }
    )* };
}
with_constants!(Add add AddAssign add_assign, Sub sub SubAssign sub_assign, Mul mul MulAssign mul_assign,
    Div div DivAssign div_assign);

impl<T: Part, const P: usize> Real for Dual<T, P> {
    type Clock = f64;
    type Wide = Self;
    const UNROLLED: bool = false;
    const TOLERANCE: Tolerance<'static> = <f64 as Real>::TOLERANCE;
    const EPSILON: f64 = f64::EPSILON;

    #[inline(always)]
    fn widen(self) -> Self {
        self
    }
    #[inline(always)]
    fn narrow(wide: Self) -> Self {
        wide
    }
    #[inline(always)]
    fn constant(x: f64) -> Self {
        Self::from(x)
    }
    #[inline(always)]
    fn exceeds(self, other: Self) -> bool {
        self.value.exceeds(other.value)
    }
    #[inline(always)]
    fn is_same(self, other: Self) -> bool {
        let mut is_same = self.value.is_same(other.value);
        for p in 0..P {
            is_same &= self.tangent[p].is_same(other.tangent[p]);
        }
        is_same
    }

    #[inline(always)]
    fn scale(self, x: f64) -> Self {
        Dual { value: self.value.scale(x), tangent: each!(self.tangent, p => self.tangent[p].scale(x)) }
    }
    #[inline(always)]
    fn scale_by(self, dt: &f64) -> Self {
        self.scale(*dt)
    }
    #[inline(always)]
    fn scale_add(self, fused: bool, x: f64, sum: Self) -> Self {
        let tangent = each!(sum.tangent, p => self.tangent[p].scale_add(fused, x, sum.tangent[p]));
        Dual { value: self.value.scale_add(fused, x, sum.value), tangent }
    }
    #[inline(always)]
    fn scale_by_add(self, fused: bool, dt: &f64, sum: Self) -> Self {
        self.scale_add(fused, *dt, sum)
    }
    #[inline(always)]
    fn squared_ratio(self, y0: Self, y1: Self, rtol: f64, atol: f64) -> f64 {
        self.value.squared_ratio(y0.value, y1.value, rtol, atol)
    }
    /// The ratio of the value, with tangents 0: a custom norm reads values only.
    #[inline(always)]
    fn ratio(self, y0: Self, y1: Self, rtol: f64, atol: f64) -> Self {
        Dual::fixed(self.value.ratio(y0.value, y1.value, rtol, atol))
    }
    #[inline(always)]
    fn value(self) -> f64 {
        self.value.value()
    }
    #[inline(always)]
    fn is_finite(self) -> bool {
        self.value.is_finite()
    }
    #[inline(always)]
    fn select(m: &bool, a: Self, b: Self) -> Self {
        if *m { a } else { b }
    }
}

impl<T: Part, const P: usize> Number for Dual<T, P> {
    #[inline(always)]
    fn values(self, f: impl FnMut(usize, f64)) {
        self.value.values(f);
    }
    #[inline(always)]
    fn set_value(&mut self, lane: usize, x: f64) {
        self.value.set_value(lane, x);
    }
    #[inline(always)]
    fn sin(self) -> Self {
        self.chain(self.value.sin(), self.value.cos())
    }
    #[inline(always)]
    fn cos(self) -> Self {
        self.chain(self.value.cos(), -self.value.sin())
    }
    #[inline(always)]
    fn exp(self) -> Self {
        let value = self.value.exp();
        self.chain(value, value)
    }
    #[inline(always)]
    fn ln(self) -> Self {
        self.chain(self.value.ln(), T::from(1.0) / self.value)
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        let value = self.value.sqrt();
        self.chain(value, T::from(0.5) / value)
    }
    #[inline(always)]
    fn tanh(self) -> Self {
        let value = self.value.tanh();
        self.chain(value, T::from(1.0) - value * value)
    }
    /// The derivative at 0 is 0.
    #[inline(always)]
    fn abs(self) -> Self {
        let x = self.value.value();
        let derivative = if x == 0.0 { 0.0 } else { x.signum() };
        self.chain(self.value.abs(), T::from(derivative))
    }
    #[inline(always)]
    fn powi(self, n: i32) -> Self {
        let derivative = if n == 0 { T::from(0.0) } else { self.value.powi(n - 1) * f64::from(n) };
        self.chain(self.value.powi(n), derivative)
    }
    #[inline(always)]
    fn powf(self, exponent: impl Into<Self>) -> Self {
        let exponent = exponent.into();
        let (x, n) = (self.value, exponent.value);
        let value = x.powf(n);
        let derivative = if n.value() == 0.0 { T::from(0.0) } else { n * x.powf(n - 1.0) };
        self.chain2(exponent, value, derivative, value * x.ln())
    }
    #[inline(always)]
    fn max(self, other: impl Into<Self>) -> Self {
        let other = other.into();
        let (a, b) = (self.value(), other.value());
        let chosen = if a < b || a.is_nan() { other } else { self };
        Dual { value: self.value.max(other.value), ..chosen }
    }
    #[inline(always)]
    fn min(self, other: impl Into<Self>) -> Self {
        let other = other.into();
        let (a, b) = (self.value(), other.value());
        let chosen = if b < a || a.is_nan() { other } else { self };
        Dual { value: self.value.min(other.value), ..chosen }
    }
    /// The derivative at (0, 0) is 0.
    #[inline(always)]
    fn hypot(self, other: impl Into<Self>) -> Self {
        let other = other.into();
        let value = self.value.hypot(other.value);
        let scale = if value.value() == 0.0 { T::from(0.0) } else { T::from(1.0) / value };
        self.chain2(other, value, self.value * scale, other.value * scale)
    }
    #[inline(always)]
    fn select_positive(self, a: impl Into<Self>, b: impl Into<Self>) -> Self {
        if self.value() > 0.0 { a.into() } else { b.into() }
    }
    #[inline(always)]
    fn recip(self) -> Self {
        let value = self.value.recip();
        self.chain(value, -value * value)
    }
}

/// The number of directions for which a `vector_field!` is compiled: one pass of a sensitivity solve computes
/// derivatives in this many directions. Eight f64 fill one AVX-512 register and cover the parameters and
/// states of a small problem in one pass.
pub const DIRECTIONS: usize = 8;

/// Directions per evaluation for the Jacobian in a sensitivity solve: enough for three components and t.
pub const JACOBIAN_DIRECTIONS: usize = 4;

impl FieldNumber for Dual<f64, DIRECTIONS> {
    #[inline(always)]
    fn time(t: &f64) -> Self {
        Self::from(*t)
    }
    #[inline(always)]
    fn eval<G: GenericField<N>, const N: usize>(field: &G::Of<Self>, t: Self, y: &[Self; N]) -> [Self; N] {
        G::eval_dual(field, t, y)
    }
}

impl FieldNumber for Dual<Dual<f64, DIRECTIONS>, JACOBIAN_DIRECTIONS> {
    #[inline(always)]
    fn time(t: &f64) -> Self {
        Self::from(*t)
    }
    #[inline(always)]
    fn eval<G: GenericField<N>, const N: usize>(field: &G::Of<Self>, t: Self, y: &[Self; N]) -> [Self; N] {
        G::eval_nested_dual(field, t, y)
    }
}
