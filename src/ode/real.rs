//! `Real`: the components of an array state.
//!
//! This file implements [`Real`] for `f64` and `f32`; lanes and dual numbers implement it, too. A component
//! is not itself a [`Clock`], because the clock of `f32` is `f64`, so that a solve in single precision does
//! not stall where t + dt rounds to t. Decisions about steps are made on clocks only.

use super::{Clock, Solvable, Tolerance};
use std::ops::{Add, Div, Mul, Neg, Sub};

/// A component of an array state.
pub trait Real:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + Send
    + Sync
    + 'static
{
    /// The number type of t and dt.
    type Clock: Clock;
    /// Whether this type is a vector of lanes, in which masks are rarely all equal.
    const LOCKSTEP: bool = false;
    /// Whether loops over arrays of this type are compiled for single methods, and loops over sums for each number of
    /// terms. They are faster if a few numbers fit into registers.
    const UNROLLED: bool = true;
    /// The default tolerance.
    const TOLERANCE: Tolerance<'static>;
    /// The number type in which linear systems are solved. It is f64 for f32, because the matrices are too
    /// badly scaled for f32.
    type Wide: Solvable + Real<Clock = Self::Clock>;
    /// The distance from 1 to the next larger number.
    const EPSILON: f64;

    /// Converts to the number type in which linear systems are solved.
    fn widen(self) -> Self::Wide;
    /// Converts from that number type, with rounding.
    fn narrow(wide: Self::Wide) -> Self;
    /// `x`, in every lane.
    fn constant(x: f64) -> Self;
    /// `|self| > |other|`.
    fn exceeds(self, other: Self) -> <Self::Clock as Clock>::Mask;
    /// Whether it equals `other` bit for bit, including tangents. Not called on lanes.
    fn is_same(self, other: Self) -> bool;

    /// `self * x`.
    fn scale(self, x: f64) -> Self;
    /// `self * dt`.
    fn scale_by(self, dt: &Self::Clock) -> Self;
    /// `self * x + sum`, with fused multiply-add if `fused` is true. Lanes always use it.
    #[inline(always)]
    fn scale_add(self, _fused: bool, x: f64, sum: Self) -> Self {
        sum + self.scale(x)
    }
    /// `self * dt + sum`, fused as in [`scale_add`](Real::scale_add).
    #[inline(always)]
    fn scale_by_add(self, _fused: bool, dt: &Self::Clock, sum: Self) -> Self {
        sum + self.scale_by(dt)
    }
    /// `(self / (atol + rtol max(|y0|, |y1|)))^2`; NaN where `y1` is not finite.
    fn squared_ratio(self, y0: Self, y1: Self, rtol: f64, atol: f64) -> Self::Clock;
    /// `self / (atol + rtol max(|y0|, |y1|))`; NaN where `y1` is not finite.
    fn ratio(self, y0: Self, y1: Self, rtol: f64, atol: f64) -> Self;
    /// The number without tangents; for lanes, the number in the first lane.
    fn value(self) -> f64;
    /// Whether the value is neither NaN nor infinite.
    fn is_finite(self) -> <Self::Clock as Clock>::Mask;
    /// `a` where `m` holds, else `b`.
    fn select(m: &<Self::Clock as Clock>::Mask, a: Self, b: Self) -> Self;
}

macro_rules! float {
    ($t:ty, $tolerance:expr) => {
        impl Real for $t {
            type Clock = f64;
            type Wide = f64;
            const TOLERANCE: Tolerance<'static> = $tolerance;
            const EPSILON: f64 = <$t>::EPSILON as f64;

            #[inline(always)]
            fn widen(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn narrow(wide: f64) -> $t {
                wide as $t
            }
            #[inline(always)]
            fn constant(x: f64) -> $t {
                x as $t
            }
            #[inline(always)]
            fn exceeds(self, other: $t) -> bool {
                self.abs() > other.abs()
            }
            #[inline(always)]
            fn is_same(self, other: $t) -> bool {
                self.to_bits() == other.to_bits()
            }

            #[inline(always)]
            fn scale(self, x: f64) -> $t {
                self * x as $t
            }
            #[inline(always)]
            fn scale_by(self, dt: &f64) -> $t {
                self * *dt as $t
            }
            #[inline(always)]
            fn scale_add(self, fused: bool, x: f64, sum: $t) -> $t {
                if fused { self.mul_add(x as $t, sum) } else { sum + self.scale(x) }
            }
            #[inline(always)]
            fn scale_by_add(self, fused: bool, dt: &f64, sum: $t) -> $t {
                if fused { self.mul_add(*dt as $t, sum) } else { sum + self.scale_by(dt) }
            }
            #[inline(always)]
            fn squared_ratio(self, y0: $t, y1: $t, rtol: f64, atol: f64) -> f64 {
                let size = f64::from(y0).abs().max(f64::from(y1).abs());
                let ratio = f64::from(self) / (atol + rtol * size);
                // y1 * 0 is NaN if y1 overflowed. Without it, e / inf would be 0, and the step would be
                // accepted.
                ratio * ratio + f64::from(y1) * 0.0
            }
            #[inline(always)]
            fn ratio(self, y0: $t, y1: $t, rtol: f64, atol: f64) -> $t {
                let size = f64::from(y0).abs().max(f64::from(y1).abs());
                (f64::from(self) / (atol + rtol * size)) as $t + y1 * 0.0
            }
            #[inline(always)]
            fn value(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                <$t>::is_finite(self)
            }
            #[inline(always)]
            fn select(m: &bool, a: $t, b: $t) -> $t {
                if *m { a } else { b }
            }
        }
    };
}
float!(f64, Tolerance::new(1e-6, 1e-9));
float!(f32, Tolerance::new(1e-4, 1e-6));
