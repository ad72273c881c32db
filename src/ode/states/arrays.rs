//! States of a fixed number of components on the stack: `[R; N]`, and types with the same memory layout.
//!
//! The number of components is a compile-time constant, so a step of a small state is straight-line code in
//! registers. Large states are summed like heap states. The choice is made in `const` blocks, so that the
//! unused loops are not compiled for each small array. The macro [`fixed_state`] takes a type, its number of
//! components and two functions that view the components as a slice.

use super::in_registers;
use crate::ode::Real;
use crate::ode::plain::plain_drive;

/// Makes a type of `$n` components of type `R` a state; `$read` and `$write` view them as a slice.
macro_rules! fixed_state {
    ({$($generics:tt)*} $t:ty, $n:expr, $read:path, $write:path) => {
        impl<$($generics)*> $crate::ode::State for $t {
            type Clock = R::Clock;

            #[inline(always)]
            fn lincomb<K: $crate::ode::Stages<Self> + ?Sized>(&mut self, y: &Self, dt: &R::Clock, a: &[f64], k: &K) {
                let (out, y) = ($write(self), $read(y));
                if const { !$crate::ode::states::in_registers::<R>($n) } {
                    return $crate::ode::states::heap::lincomb(K::FUSED, out, y, dt, a, |i| $read(k.stage(i)));
                }
                if const { !K::KNOWN && !R::LOCKSTEP && $n > 0 } {
                    let sums = $crate::ode::states::sums_of_few($n, a, k, |k: &Self, j| $read(k)[j]);
                    for j in 0..$n {
                        out[j] = sums.map_or(y[j], |sums| sums[j].scale_by_add(K::FUSED, dt, y[j]));
                    }
                    return;
                }
                for j in 0..$n {
                    out[j] = $crate::ode::states::lincomb(y[j], dt, a, k, |k: &Self| $read(k)[j]);
                }
            }
            #[inline(always)]
            fn error_ratio<K: $crate::ode::Stages<Self> + ?Sized>(
                &mut self,
                dt: &R::Clock,
                b: &[f64],
                k: &K,
                y0: &Self,
                y1: &Self,
                tol: &$crate::ode::Tolerance,
            ) -> R::Clock {
                use $crate::ode::Clock;
                use $crate::ode::states::{PARTIAL_SUMS, add_up, partial_sums, weighted_sum};
                let (y0, y1) = ($read(y0), $read(y1));
                if const { !$crate::ode::states::in_registers::<R>($n) } {
                    let stage = |i| &$read(k.stage(i))[..];
                    return $crate::ode::states::heap::error_ratio(K::FUSED, $write(self), dt, b, stage, y0, y1, tol);
                }
                let mut sums = partial_sums(&dt.like(0.0));
                for j in 0..$n {
                    let (rtol, atol) = tol.uniform().unwrap_or_else(|| tol.at(j));
                    // Not a closure: it might not be inlined, and would then be compiled for the baseline
                    // instructions, unlike the loop around it.
                    if let Some(sum) = weighted_sum(b, k, |k: &Self| $read(k)[j]) {
                        let square = sum.scale_by(dt).squared_ratio(y0[j], y1[j], rtol, atol);
                        sums[j % PARTIAL_SUMS] = sums[j % PARTIAL_SUMS].add(&square);
                    }
                }
                add_up(&sums, $n)
            }
            fn scaled_error<K: $crate::ode::Stages<Self> + ?Sized>(
                &mut self,
                dt: &R::Clock,
                b: &[f64],
                k: &K,
                y0: &Self,
                y1: &Self,
                tol: &$crate::ode::Tolerance,
            ) {
                let (out, y0, y1) = ($write(self), $read(y0), $read(y1));
                for j in 0..$n {
                    let (rtol, atol) = tol.at(j);
                    let sum = $crate::ode::states::weighted_sum(b, k, |k: &Self| $read(k)[j]);
                    let e = sum.map_or(y0[j].scale(0.0), |sum| sum.scale_by(dt));
                    out[j] = e.ratio(y0[j], y1[j], rtol, atol);
                }
            }
            #[inline(always)]
            fn num_components(&self) -> usize {
                $n
            }
            #[inline(always)]
            fn keep(&mut self, m: &<R::Clock as $crate::ode::Clock>::Mask, new: &mut Self) {
                match if R::LOCKSTEP { None } else { <R::Clock as $crate::ode::Clock>::known(m) } {
                    Some(true) => *self = *new,
                    Some(false) => {}
                    None => {
                        let (out, new) = ($write(self), $read(new));
                        for j in 0..$n {
                            out[j] = R::select(m, new[j], out[j]);
                        }
                    }
                }
            }
            #[inline(always)]
            fn first_non_finite(&self, like: &R::Clock) -> R::Clock {
                use $crate::ode::Clock;
                let mut first = like.like(-1.0);
                for j in (0..$n).rev() {
                    first = R::Clock::select(&$read(self)[j].is_finite(), &first, &like.like(j as f64));
                }
                first
            }
        }
    };
}
#[cfg(feature = "nalgebra")]
pub(super) use fixed_state;

#[inline(always)]
fn read<R, const N: usize>(y: &[R; N]) -> &[R; N] {
    y
}
#[inline(always)]
fn write<R, const N: usize>(y: &mut [R; N]) -> &mut [R; N] {
    y
}

fixed_state!({R: Real, const N: usize} [R; N], N, read, write);
plain_drive!({R: Real<Clock = f64>, const N: usize} [R; N], |_y| R::TOLERANCE, R::UNROLLED && in_registers::<R>(N), R, |y| y.iter(), |y| y.iter_mut());
