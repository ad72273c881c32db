//! States of any number of components on the heap: `Vec`, and types with all components in one slice.
//!
//! Each number of terms up to seven has its own loop over components, so that each stage is read once; dual
//! numbers have one loop. The macro [`heap_state`] takes two functions that view the components as a slice, one that returns the shape,
//! and one that prints it. No step allocates.

use super::{PARTIAL_SUMS, add_up, partial_sums};
use crate::ode::plain::plain_drive;
use crate::ode::{Clock, Real, ShapeMismatch, Tolerance};

/// Writes `finish(j, sum_i a_i k_i[j])` into each component j of `out`. With `FURTHER`, each sum starts from
/// the value in `out`.
#[inline(always)]
fn each_sum<R: Real, const K: usize, const FURTHER: bool>(
    fused: bool,
    out: &mut [R],
    a: &[f64; K],
    k: &[&[R]; K],
    finish: impl Fn(usize, R) -> R,
) {
    let n = out.len();
    // One bounds check per term, not per component. It is a loop, because `map` would compile six functions
    // more per instance of this function.
    let mut k = *k;
    for k in &mut k {
        *k = &k[..n];
    }
    for j in 0..n {
        let first = k[0][j];
        let mut sum = if FURTHER { first.scale_add(fused, a[0], out[j]) } else { first.scale(a[0]) };
        for i in 1..K {
            sum = k[i][j].scale_add(fused, a[i], sum);
        }
        out[j] = finish(j, sum);
    }
}

/// [`each_weighted_sum`] for dual numbers. Each of them fills vector registers by itself, so one loop for any
/// number of terms suffices; it has a tenth of the code. Terms are added in memory: if a loop carried the sum, the
/// optimizer would keep it in scalar registers.
#[inline(always)]
fn each_wide_sum<'k, R: Real>(
    fused: bool,
    out: &mut [R],
    a: &[f64],
    k: impl Fn(usize) -> &'k [R],
    finish: impl Fn(usize, R) -> R,
) -> bool {
    let mut is_first = true;
    for (i, &a) in a.iter().enumerate() {
        if a == 0.0 {
            continue;
        }
        let k = &k(i)[..out.len()];
        for j in 0..out.len() {
            out[j] = if is_first { k[j].scale(a) } else { k[j].scale_add(fused, a, out[j]) };
        }
        is_first = false;
    }
    if is_first {
        return false;
    }
    for j in 0..out.len() {
        out[j] = finish(j, out[j]);
    }
    true
}

/// [`each_sum`] over the non-zero `a_i`, in a loop compiled for their number; false if there are none.
///
/// If there are more terms than one loop takes, the next loop continues the sums in `out`. The terms are
/// added in the same order, and no loop reads more memory streams than a core can prefetch.
#[inline(always)]
fn each_weighted_sum<'k, R: Real>(
    fused: bool,
    out: &mut [R],
    a: &[f64],
    k: impl Fn(usize) -> &'k [R],
    finish: impl Fn(usize, R) -> R,
) -> bool {
    if const { !R::UNROLLED } {
        return each_wide_sum(fused, out, a, k, finish);
    }
    /// The maximum number of terms in a loop.
    const MOST: usize = 7;
    let (mut weights, mut terms, mut count, mut further) = ([0.0; MOST], [&[] as &[R]; MOST], 0, false);
    // Not `filter`: its closure might not be inlined.
    for (i, &a) in a.iter().enumerate() {
        if a == 0.0 {
            continue;
        }
        if count == MOST {
            if further {
                each_sum::<R, MOST, true>(fused, out, &weights, &terms, |_, sum| sum);
            } else {
                each_sum::<R, MOST, false>(fused, out, &weights, &terms, |_, sum| sum);
            }
            (count, further) = (0, true);
        }
        (weights[count], terms[count]) = (a, k(i));
        count += 1;
    }
    macro_rules! with_terms {
        ($($n:literal)*) => {
            match count {
                $($n => {
                    let (weights, terms) = (weights.first_chunk::<$n>(), terms.first_chunk::<$n>());
                    if let (Some(weights), Some(terms)) = (weights, terms) {
                        if further {
                            each_sum::<R, $n, true>(fused, out, weights, terms, finish);
                        } else {
                            each_sum::<R, $n, false>(fused, out, weights, terms, finish);
                        }
                    }
                })*
                _ => return false,
            }
        };
    }
    with_terms!(1 2 3 4 5 6 7);
    true
}

/// As [`State::lincomb`](crate::ode::State::lincomb).
#[inline(always)]
pub(super) fn lincomb<'k, R: Real>(
    fused: bool,
    out: &mut [R],
    y: &[R],
    dt: &R::Clock,
    a: &[f64],
    k: impl Fn(usize) -> &'k [R],
) {
    let y = &y[..out.len()];
    if !each_weighted_sum(fused, out, a, k, |j, sum| sum.scale_by_add(fused, dt, y[j])) {
        out.copy_from_slice(y);
    }
}

/// As [`State::error_ratio`](crate::ode::State::error_ratio).
#[inline(always)]
pub(super) fn error_ratio<'k, R: Real>(
    fused: bool,
    out: &mut [R],
    dt: &R::Clock,
    b: &[f64],
    k: impl Fn(usize) -> &'k [R],
    y0: &[R],
    y1: &[R],
    tol: &Tolerance,
) -> R::Clock {
    let zero = dt.like(0.0);
    if !each_weighted_sum(fused, out, b, k, |_, sum| sum.scale_by(dt)) {
        return zero;
    }
    mean_ratio(&zero, out, y0, y1, tol)
}

/// The RMS of `e / (atol + rtol max(|y0|, |y1|))`.
#[inline(always)]
fn mean_ratio<R: Real>(zero: &R::Clock, e: &[R], y0: &[R], y1: &[R], tol: &Tolerance) -> R::Clock {
    let n = e.len();
    let (e, y0, y1) = (&e[..n], &y0[..n], &y1[..n]);
    let mut sums = partial_sums(zero);
    let Some((rtol, atol)) = tol.uniform() else {
        for j in 0..n {
            let (rtol, atol) = tol.at(j);
            let sum = &mut sums[j % PARTIAL_SUMS];
            *sum = sum.add(&e[j].squared_ratio(y0[j], y1[j], rtol, atol));
        }
        return add_up(&sums, n);
    };
    let whole = n - n % PARTIAL_SUMS;
    for j in (0..whole).step_by(PARTIAL_SUMS) {
        let (e, y0, y1) = (&e[j..][..PARTIAL_SUMS], &y0[j..][..PARTIAL_SUMS], &y1[j..][..PARTIAL_SUMS]);
        for i in 0..PARTIAL_SUMS {
            sums[i] = sums[i].add(&e[i].squared_ratio(y0[i], y1[i], rtol, atol));
        }
    }
    for j in whole..n {
        let sum = &mut sums[j - whole];
        *sum = sum.add(&e[j].squared_ratio(y0[j], y1[j], rtol, atol));
    }
    add_up(&sums, n)
}

/// As [`State::scaled_error`](crate::ode::State::scaled_error).
pub(super) fn scaled_error<'k, R: Real<Clock = f64>>(
    fused: bool,
    out: &mut [R],
    dt: f64,
    b: &[f64],
    k: impl Fn(usize) -> &'k [R],
    y0: &[R],
    y1: &[R],
    tol: &Tolerance,
) {
    if !each_weighted_sum(fused, out, b, k, |_, sum| sum.scale_by(&dt)) {
        // No terms: the error is 0. y0 is finite, so `y0 * 0` is the zero of its number type.
        out.iter_mut().zip(y0).for_each(|(e, &y)| *e = y.scale(0.0));
    }
    for j in 0..out.len() {
        let (rtol, atol) = tol.at(j);
        out[j] = out[j].ratio(y0[j], y1[j], rtol, atol);
    }
}

/// As [`State::first_non_finite`](crate::ode::State::first_non_finite).
pub(super) fn first_non_finite<R: Real<Clock = f64>>(mut ys: impl Iterator<Item = R>) -> f64 {
    ys.position(|x| !x.is_finite()).map_or(-1.0, |j| j as f64)
}

/// Compares the shapes of two states.
#[inline(always)]
pub(super) fn same_shape<S: PartialEq>(
    found: &S,
    expected: &S,
    describe: impl Fn(&S) -> String,
) -> Result<(), ShapeMismatch> {
    if found == expected {
        return Ok(());
    }
    let size = |shape| format!("size {}", describe(shape));
    Err(ShapeMismatch::new(size(found), size(expected)))
}

/// Makes a type with components of type `R` in one slice a state. `$read` and `$write` view the slice.
/// `$shape` returns the shape, which must be the same for all states of a solve, and `$describe` prints it.
macro_rules! heap_state {
    ({$($generics:tt)*} $t:ty, $read:expr, $write:expr, $shape:expr, $describe:expr) => {
        impl<$($generics)*> $crate::ode::State for $t {
            type Clock = f64;

            #[inline(always)]
            fn lincomb<K: $crate::ode::Stages<Self> + ?Sized>(&mut self, y: &Self, dt: &f64, a: &[f64], k: &K) {
                let read: fn(&Self) -> &[R] = $read;
                let write: fn(&mut Self) -> &mut [R] = $write;
                $crate::ode::states::heap::lincomb(K::FUSED, write(self), read(y), dt, a, |i| read(k.stage(i)));
            }
            #[inline(always)]
            fn error_ratio<K: $crate::ode::Stages<Self> + ?Sized>(
                &mut self,
                dt: &f64,
                b: &[f64],
                k: &K,
                y0: &Self,
                y1: &Self,
                tol: &$crate::ode::Tolerance,
            ) -> f64 {
                let read: fn(&Self) -> &[R] = $read;
                let write: fn(&mut Self) -> &mut [R] = $write;
                let (y0, y1) = (read(y0), read(y1));
                $crate::ode::states::heap::error_ratio(K::FUSED, write(self), dt, b, |i| read(k.stage(i)), y0, y1, tol)
            }
            fn scaled_error<K: $crate::ode::Stages<Self> + ?Sized>(
                &mut self,
                dt: &f64,
                b: &[f64],
                k: &K,
                y0: &Self,
                y1: &Self,
                tol: &$crate::ode::Tolerance,
            ) {
                let read: fn(&Self) -> &[R] = $read;
                let write: fn(&mut Self) -> &mut [R] = $write;
                let (y0, y1) = (read(y0), read(y1));
                $crate::ode::states::heap::scaled_error(K::FUSED, write(self), *dt, b, |i| read(k.stage(i)), y0, y1, tol);
            }
            fn copy_of(&mut self, other: &Self) {
                let read: fn(&Self) -> &[R] = $read;
                let write: fn(&mut Self) -> &mut [R] = $write;
                // A derived `clone_from` would allocate.
                if $shape(self) == $shape(other) {
                    write(self).copy_from_slice(read(other));
                } else {
                    self.clone_from(other);
                }
            }
            fn num_components(&self) -> usize {
                self.len()
            }
            fn keep(&mut self, m: &bool, new: &mut Self) {
                if *m {
                    std::mem::swap(self, new);
                }
            }
            fn first_non_finite(&self, _like: &f64) -> f64 {
                $crate::ode::states::heap::first_non_finite(self.iter().copied())
            }
            #[inline(always)]
            fn conforms(&self, y: &Self) -> Result<(), $crate::ode::ShapeMismatch> {
                $crate::ode::states::heap::same_shape(&$shape(self), &$shape(y), $describe)
            }
        }
    };
}
#[cfg(feature = "nalgebra")]
pub(super) use heap_state;

heap_state!({R: Real<Clock = f64>} Vec<R>, |y| y, |y| y, Vec::len, usize::to_string);
plain_drive!({R: Real<Clock = f64>} Vec<R>, |_y| R::TOLERANCE, false, R, |y| y.iter(), |y| y.iter_mut());
