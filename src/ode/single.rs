//! `Single`: an `f32` that takes `f64` constants on either side of an operator, unlike the standard library's.
//!
//! It exists so that one body of a [`vector_field!`](crate::vector_field) can use `2.0 * y[0]` in both
//! precisions. Like f32, it has an f64 clock. Its error ratio is divided in f32, and converted to f64 before
//! it is squared. The ratio has 7 digits in either precision, and f32 lanes perform four times as many
//! divisions per cycle.

use super::{FieldNumber, GenericField, Number, Real, Tolerance};
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

/// A number in single precision.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(transparent)]
pub struct Single(pub f32);

impl From<f64> for Single {
    #[inline(always)]
    fn from(x: f64) -> Self {
        Single(x as f32)
    }
}
impl Neg for Single {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Single(-self.0)
    }
}
impl Sum for Single {
    #[inline(always)]
    fn sum<I: Iterator<Item = Self>>(terms: I) -> Self {
        terms.fold(Single(0.0), |sum, term| sum + term)
    }
}

macro_rules! operators {
    ($($op:ident $f:ident $assign:ident $g:ident),*) => { $(
        impl $op for Single {
            type Output = Self;
            #[inline(always)]
            fn $f(self, other: Self) -> Self {
                Single(self.0.$f(other.0))
            }
        }
        impl $op<f64> for Single {
            type Output = Self;
            #[inline(always)]
            fn $f(self, other: f64) -> Self {
                Single(self.0.$f(other as f32))
            }
        }
        impl $op<Single> for f64 {
            type Output = Single;
            #[inline(always)]
            fn $f(self, other: Single) -> Single {
                Single((self as f32).$f(other.0))
            }
        }
        impl $assign for Single {
            #[inline(always)]
            fn $g(&mut self, other: Self) {
                *self = (*self).$f(other);
            }
        }
        impl $assign<f64> for Single {
            #[inline(always)]
            fn $g(&mut self, other: f64) {
                *self = (*self).$f(other);
            }
        }
    )* };
}
operators!(Add add AddAssign add_assign, Sub sub SubAssign sub_assign, Mul mul MulAssign mul_assign,
    Div div DivAssign div_assign);

impl Real for Single {
    type Clock = f64;
    type Wide = f64;
    const TOLERANCE: Tolerance<'static> = <f32 as Real>::TOLERANCE;
    const EPSILON: f64 = f32::EPSILON as f64;

    #[inline(always)]
    fn widen(self) -> f64 {
        f64::from(self.0)
    }
    #[inline(always)]
    fn narrow(wide: f64) -> Self {
        Single(wide as f32)
    }
    #[inline(always)]
    fn constant(x: f64) -> Self {
        Single(x as f32)
    }
    #[inline(always)]
    fn exceeds(self, other: Self) -> bool {
        self.0.exceeds(other.0)
    }
    #[inline(always)]
    fn is_same(self, other: Self) -> bool {
        self.0.is_same(other.0)
    }

    #[inline(always)]
    fn scale(self, x: f64) -> Self {
        self * x
    }
    #[inline(always)]
    fn scale_by(self, dt: &f64) -> Self {
        self * *dt
    }
    #[inline(always)]
    fn scale_add(self, fused: bool, x: f64, sum: Self) -> Self {
        Single(self.0.scale_add(fused, x, sum.0))
    }
    #[inline(always)]
    fn scale_by_add(self, fused: bool, dt: &f64, sum: Self) -> Self {
        Single(self.0.scale_by_add(fused, dt, sum.0))
    }
    #[inline(always)]
    fn squared_ratio(self, y0: Self, y1: Self, rtol: f64, atol: f64) -> f64 {
        let size = y0.0.abs().max(y1.0.abs());
        let ratio = f64::from(self.0 / ((atol as f32).max(f32::MIN_POSITIVE) + rtol as f32 * size));
        ratio * ratio + f64::from(y1.0) * 0.0
    }
    #[inline(always)]
    fn ratio(self, y0: Self, y1: Self, rtol: f64, atol: f64) -> Self {
        let size = y0.0.abs().max(y1.0.abs());
        Single(self.0 / ((atol as f32).max(f32::MIN_POSITIVE) + rtol as f32 * size) + y1.0 * 0.0)
    }
    #[inline(always)]
    fn value(self) -> f64 {
        f64::from(self.0)
    }
    #[inline(always)]
    fn is_finite(self) -> bool {
        self.0.is_finite()
    }
    #[inline(always)]
    fn select(m: &bool, a: Self, b: Self) -> Self {
        if *m { a } else { b }
    }
}

macro_rules! std_functions {
    ($($f:ident)*) => { $(
        #[inline(always)]
        fn $f(self) -> Self {
            Single(self.0.$f())
        }
    )* };
}
macro_rules! std_functions_of_two {
    ($($f:ident)*) => { $(
        #[inline(always)]
        fn $f(self, other: impl Into<Self>) -> Self {
            Single(self.0.$f(other.into().0))
        }
    )* };
}

impl Number for Single {
    std_functions!(sin cos exp ln sqrt tanh abs recip);
    std_functions_of_two!(powf max min hypot);
    #[inline(always)]
    fn powi(self, n: i32) -> Self {
        Single(self.0.powi(n))
    }
    #[inline(always)]
    fn select_positive(self, a: impl Into<Self>, b: impl Into<Self>) -> Self {
        if self.0 > 0.0 { a.into() } else { b.into() }
    }
    #[inline(always)]
    fn values(self, mut f: impl FnMut(usize, f64)) {
        f(0, f64::from(self.0));
    }
    #[inline(always)]
    fn set_value(&mut self, _lane: usize, x: f64) {
        self.0 = x as f32;
    }
}

impl FieldNumber for Single {
    #[inline(always)]
    fn time(t: &f64) -> Self {
        Single(*t as f32)
    }
    #[inline(always)]
    fn eval<G: GenericField<N>, const N: usize>(field: &G::Of<Self>, t: Self, y: &[Self; N]) -> [Self; N] {
        G::eval_single(field, t, y)
    }
}
