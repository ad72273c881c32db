//! Complex numbers, as far as tests of derivatives need them.
//!
//! The derivative of an analytic function f is `im f(x + i s) / s`. No two numbers are subtracted, so a tiny s gives every
//! digit.
//!
//! # References
//! Squire, Trapp (1998), Using Complex Variables to Estimate Derivatives of Real Functions, SIAM Rev. 40, 110-112.

use std::ops::{Add, Div, Mul, Sub};

/// A complex number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Complex {
    pub(crate) re: f64,
    pub(crate) im: f64,
}

impl From<f64> for Complex {
    fn from(re: f64) -> Complex {
        Complex { re, im: 0.0 }
    }
}
impl Add for Complex {
    type Output = Complex;
    fn add(self, other: Complex) -> Complex {
        Complex { re: self.re + other.re, im: self.im + other.im }
    }
}
impl Sub for Complex {
    type Output = Complex;
    fn sub(self, other: Complex) -> Complex {
        Complex { re: self.re - other.re, im: self.im - other.im }
    }
}
impl Mul for Complex {
    type Output = Complex;
    fn mul(self, other: Complex) -> Complex {
        let (a, b) = (self, other);
        Complex { re: a.re * b.re - a.im * b.im, im: a.re * b.im + a.im * b.re }
    }
}
impl Mul<f64> for Complex {
    type Output = Complex;
    fn mul(self, x: f64) -> Complex {
        Complex { re: self.re * x, im: self.im * x }
    }
}
impl Div for Complex {
    type Output = Complex;
    fn div(self, other: Complex) -> Complex {
        let size = other.re * other.re + other.im * other.im;
        self * Complex { re: other.re / size, im: -other.im / size }
    }
}

/// The imaginary part of a variable. Its square is below the rounding error of every number here.
pub(crate) const STEP: f64 = 1e-30;

impl Complex {
    /// A variable of the derivative.
    pub(crate) fn variable(re: f64) -> Self {
        Complex { re, im: STEP }
    }

    pub(crate) fn sin(self) -> Complex {
        Complex { re: self.re.sin() * self.im.cosh(), im: self.re.cos() * self.im.sinh() }
    }
    pub(crate) fn cos(self) -> Complex {
        Complex { re: self.re.cos() * self.im.cosh(), im: -self.re.sin() * self.im.sinh() }
    }
}
