//! The table of functions that are computed one number after another, by the standard library or by
//! [`special`](super::special).
//!
//! A row is a function's variant, its name in text and as a method of `Tensor`, the numbers for which tests evaluate it, and
//! the function in f64. An f32 result is the f64 result, rounded. The text form, inference, the interpreter, the kernel and
//! the batching rule come from the row; the derivative stands in [`partials`](crate::transform), the method in
//! `tensor/ops/scalar.rs`, and the function in NumPy in `tests/reference/check.py`. A function that takes most of the time
//! of a program belongs into [`functions`](super::functions), whose kernels use vectors.

use super::special;

/// The function of a row.
#[derive(Clone, Copy)]
pub(crate) enum Of {
    One(fn(f64) -> f64),
    Two(fn(f64, f64) -> f64),
}

macro_rules! scalar_functions {
    ($($(#[$doc:meta])* $op:ident $name:ident [$($domain:ident)+] $of:expr;)*) => {
        /// A function of one or two floats of equal type, computed one number after another.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ScalarFn {
            $($(#[$doc])* $op,)*
        }

        impl ScalarFn {
            /// All of them.
            pub const ALL: &[ScalarFn] = &[$(ScalarFn::$op),*];

            /// The name used in printed graphs.
            pub fn name(self) -> &'static str {
                match self { $(ScalarFn::$op => stringify!($name)),* }
            }

            pub(crate) fn of(self) -> Of {
                use Of::{One, Two};
                match self { $(ScalarFn::$op => $of),* }
            }

            /// The numbers for which it is tested, for each operand.
            #[cfg(any(test, fuzzing))]
            pub fn domains(self) -> &'static [super::functions::Domain] {
                match self { $(ScalarFn::$op => &[$(super::functions::Domain::$domain),+]),* }
            }
        }
    };
}
scalar_functions! {
    /// Tangent of x in radians.
    Tan tan [All] One(f64::tan);
    /// The angle in radians, from -pi/2 to pi/2, whose sine is x.
    Asin asin [Bounded] One(f64::asin);
    /// The angle in radians, from 0 to pi, whose cosine is x.
    Acos acos [Bounded] One(f64::acos);
    /// `(e^x - e^-x) / 2`
    Sinh sinh [Bounded] One(f64::sinh);
    /// `(e^x + e^-x) / 2`
    Cosh cosh [Bounded] One(f64::cosh);
    /// The x with `sinh x = y`.
    Asinh asinh [All] One(asinh);
    /// The x >= 0 with `cosh x = y`.
    Acosh acosh [AboveOne] One(acosh);
    /// The x with `tanh x = y`.
    Atanh atanh [Bounded] One(atanh);
    /// Logarithm in base 2.
    Log2 log2 [Positive] One(f64::log2);
    /// Logarithm in base 10.
    Log10 log10 [Positive] One(f64::log10);
    /// The nearest integer; halves to even.
    Round round [All] One(f64::round_ties_even);
    /// The y with `erf(y) = x`.
    ErfInv erf_inv [Bounded] One(special::erf_inv);
    /// `ln |Gamma(x)|`
    LnGamma ln_gamma [Positive] One(special::ln_gamma);
    /// `(n, x)`: the derivative of order n + 1 of `ln Gamma(x)`.
    Polygamma polygamma [Whole Positive] Two(special::polygamma);
    /// `(a, b)`: `a^b`
    Pow pow [Positive All] Two(f64::powf);
    /// `(a, b)`: `a - b floor(a / b)`, which has the sign of b.
    Rem rem [All Positive] Two(rem);
    /// `(y, x)`: the angle in radians, from -pi to pi, of the point (x, y).
    Atan2 atan2 [All All] Two(f64::atan2);
    /// `(a, b)`: `sqrt(a^2 + b^2)`
    Hypot hypot [All Positive] Two(f64::hypot);
}

impl ScalarFn {
    /// The number of operands.
    pub fn arity(self) -> usize {
        match self.of() {
            Of::One(_) => 1,
            Of::Two(_) => 2,
        }
    }

    /// The value for these operands.
    pub(crate) fn at(self, x: &[f64]) -> f64 {
        match self.of() {
            Of::One(f) => f(x[0]),
            Of::Two(f) => f(x[0], x[1]),
        }
    }

    pub(super) fn named(name: &str) -> Option<ScalarFn> {
        Self::ALL.iter().copied().find(|f| f.name() == name)
    }
}

/// Those of the standard library lose digits near 0 and beyond 1e154.
fn asinh(x: f64) -> f64 {
    let size = x.abs();
    let of = if size > 1e9 {
        size.ln() + std::f64::consts::LN_2
    } else {
        let square = size * size;
        (size + square / (1.0 + (1.0 + square).sqrt())).ln_1p()
    };
    of.copysign(x)
}

fn acosh(x: f64) -> f64 {
    let above = x - 1.0;
    if x > 1e9 { x.ln() + std::f64::consts::LN_2 } else { (above + (above * (above + 2.0)).sqrt()).ln_1p() }
}

fn atanh(x: f64) -> f64 {
    0.5 * (x.ln_1p() - (-x).ln_1p())
}

/// Exact before it is rounded, in contrast to the quotient.
fn rem(a: f64, b: f64) -> f64 {
    let r = a % b;
    if r != 0.0 && (r < 0.0) != (b < 0.0) {
        // The remainder by an infinite b of the other sign is b.
        return if b.is_infinite() { b } else { r + b };
    }
    if r == 0.0 { r.copysign(b) } else { r }
}
