//! Complex numbers, as far as the test needs them.

use std::ops::{Add, Div, Mul, Sub};

/// A complex number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct C {
    pub re: f64,
    pub im: f64,
}

impl From<f64> for C {
    fn from(re: f64) -> C {
        C { re, im: 0.0 }
    }
}
impl Add for C {
    type Output = C;
    fn add(self, other: C) -> C {
        C { re: self.re + other.re, im: self.im + other.im }
    }
}
impl Sub for C {
    type Output = C;
    fn sub(self, other: C) -> C {
        C { re: self.re - other.re, im: self.im - other.im }
    }
}
impl Mul for C {
    type Output = C;
    fn mul(self, other: C) -> C {
        let (a, b) = (self, other);
        C { re: a.re * b.re - a.im * b.im, im: a.re * b.im + a.im * b.re }
    }
}
impl Mul<f64> for C {
    type Output = C;
    fn mul(self, x: f64) -> C {
        C { re: self.re * x, im: self.im * x }
    }
}
impl Div for C {
    type Output = C;
    fn div(self, other: C) -> C {
        let size = other.re * other.re + other.im * other.im;
        self * C { re: other.re / size, im: -other.im / size }
    }
}

impl C {
    pub fn sin(self) -> C {
        C { re: self.re.sin() * self.im.cosh(), im: self.re.cos() * self.im.sinh() }
    }
    pub fn cos(self) -> C {
        C { re: self.re.cos() * self.im.cosh(), im: -self.re.sin() * self.im.sinh() }
    }
}
