//! A single number as a state: `f64`, `f32`.
//!
//! Its clock is `f64` in both precisions.

use super::{lincomb, root_mean, weighted_sum};
use crate::ode::plain::plain_drive;
use crate::ode::{Real, Stages, State, Tolerance};

macro_rules! number_state {
    ($($t:ty)*) => { $(
        impl State for $t {
            type Clock = f64;

            #[inline(always)]
            fn lincomb<K: Stages<Self> + ?Sized>(&mut self, y: &Self, dt: &f64, a: &[f64], k: &K) {
                *self = lincomb(*y, dt, a, k, |k: &Self| *k);
            }
            #[inline(always)]
            fn error_ratio<K: Stages<Self> + ?Sized>(&mut self, dt: &f64, b: &[f64], k: &K, y0: &Self, y1: &Self, tol: &Tolerance) -> f64 {
                let e = weighted_sum(b, k, |k: &Self| *k).map_or(0.0, |sum| sum.scale_by(dt));
                let (rtol, atol) = tol.at(0);
                root_mean(&0.0, 1, |_| e.squared_ratio(*y0, *y1, rtol, atol))
            }
            #[inline(always)]
            fn scaled_error<K: Stages<Self> + ?Sized>(&mut self, dt: &f64, b: &[f64], k: &K, y0: &Self, y1: &Self, tol: &Tolerance) {
                let e = weighted_sum(b, k, |k: &Self| *k).map_or(0.0, |sum| sum.scale_by(dt));
                let (rtol, atol) = tol.at(0);
                *self = e.ratio(*y0, *y1, rtol, atol);
            }
            #[inline(always)]
            fn num_components(&self) -> usize {
                1
            }
            #[inline(always)]
            fn keep(&mut self, m: &bool, new: &mut Self) {
                if *m {
                    *self = *new;
                }
            }
            #[inline(always)]
            fn first_non_finite(&self, _like: &f64) -> f64 {
                if Real::is_finite(*self) { -1.0 } else { 0.0 }
            }
        }
    )* };
}
number_state!(f64 f32);

plain_drive!({} f64, |_y| <f64 as Real>::TOLERANCE, true, f64, |y| std::iter::once(y), |y| std::iter::once(y));
plain_drive!({} f32, |_y| <f32 as Real>::TOLERANCE, true, f32, |y| std::iter::once(y), |y| std::iter::once(y));
