//! Sums, maxima and minima of strips.
//!
//! The order of a sum depends only on the level and the lengths: the elements of a strip are added to four
//! vectors of at least 32 bytes in turn. The vectors are combined as `(v0 + v1) + (v2 + v3)`, and the lanes of
//! the result are folded in halves. Integers wrap.

use std::marker::PhantomData;

use super::Elem;
use crate::simd::Level;
use crate::simd::dispatch::entry_points;
use crate::simd::lanes::{Float, Lanes, Simd};
use crate::simd::math::Math;

/// Folds `n` elements at `a` into the one element at `acc`.
///
/// # Safety
/// `a` holds `n` readable elements, `acc` one that is writable and not among them; the level is available.
pub type ReduceFn = unsafe fn(acc: *mut u8, a: *const u8, n: usize);

trait Reduce {
    /// # Safety
    /// As for [`ReduceFn`].
    unsafe fn run<S: Simd>(acc: *mut u8, a: *const u8, n: usize);
}

entry_points!(reduce_entry, Reduce, ReduceFn, (acc: *mut u8, a: *const u8, n: usize));
/// `acc += sum(a[..n])`.
pub fn sum_strip(level: Level, elem: Elem) -> ReduceFn {
    match elem {
        Elem::F32 => reduce_entry::<Sum<f32>>(level),
        Elem::F64 => reduce_entry::<Sum<f64>>(level),
        Elem::I32 | Elem::U32 => reduce_entry::<FoldWords<Wrap>>(level),
    }
}

/// `acc = max(acc, a[..n])`; NaN if any of them is NaN.
pub fn max_strip(level: Level, elem: Elem) -> ReduceFn {
    match elem {
        Elem::F32 => reduce_entry::<Extreme<f32, true>>(level),
        Elem::F64 => reduce_entry::<Extreme<f64, true>>(level),
        Elem::I32 => reduce_entry::<FoldWords<Order<true, true>>>(level),
        Elem::U32 => reduce_entry::<FoldWords<Order<true, false>>>(level),
    }
}

/// `acc = min(acc, a[..n])`; NaN if any of them is NaN.
pub fn min_strip(level: Level, elem: Elem) -> ReduceFn {
    match elem {
        Elem::F32 => reduce_entry::<Extreme<f32, false>>(level),
        Elem::F64 => reduce_entry::<Extreme<f64, false>>(level),
        Elem::I32 => reduce_entry::<FoldWords<Order<false, true>>>(level),
        Elem::U32 => reduce_entry::<FoldWords<Order<false, false>>>(level),
    }
}

/// Registers per vector of a reduction: enough for 32 bytes, so that the portable level has the order of
/// AVX2.
const fn parts<V>() -> usize {
    if size_of::<V>() < 32 { 2 } else { 1 }
}

/// The sum of `n` elements, spread over lanes that are not yet folded.
///
/// # Safety
/// `n` elements are readable at `a`, and the level of `V` is available.
#[inline(always)]
pub(super) unsafe fn sum_lanes<V: Float>(a: *const V::Elem, n: usize) -> V {
    let parts = parts::<V>();
    // SAFETY: offsets stay below `n`.
    unsafe {
        let mut v = [V::splat(V::Elem::ZERO); 8];
        let mut i = 0;
        while i + 4 * parts * V::LEN <= n {
            for q in 0..4 * parts {
                v[q] = v[q].add(V::load(a.add(i + q * V::LEN)));
            }
            i += 4 * parts * V::LEN;
        }
        for x in &mut v[..4 * parts] {
            let rest = (n - i).min(V::LEN);
            if rest == V::LEN {
                *x = x.add(V::load(a.add(i)));
            } else if rest > 0 {
                *x = x.add(V::load_part(a.add(i), rest));
            }
            i += rest;
        }
        let sum = v[0].add(v[parts]).add(v[2 * parts].add(v[3 * parts]));
        if parts == 1 { sum } else { sum.add(v[1].add(v[3]).add(v[5].add(v[7]))) }
    }
}

struct Sum<T>(PhantomData<T>);

impl<T: Math> Reduce for Sum<T> {
    #[inline(always)]
    unsafe fn run<S: Simd>(acc: *mut u8, a: *const u8, n: usize) {
        let acc = acc.cast::<T>();
        // SAFETY: the strip has `n` elements, and `acc` is one element.
        unsafe {
            let total = sum_lanes::<T::Of<S>>(a.cast(), n).reduce_add();
            acc.write_unaligned(acc.read_unaligned().plus(total));
        }
    }
}

/// The largest (`MAX`) or smallest element of a strip.
struct Extreme<T, const MAX: bool>(PhantomData<T>);

impl<T: Math, const MAX: bool> Extreme<T, MAX> {
    #[inline(always)]
    fn pick<V: Float>(x: V, y: V) -> V {
        if MAX { x.max(y) } else { x.min(y) }
    }
}

impl<T: Math, const MAX: bool> Reduce for Extreme<T, MAX> {
    #[inline(always)]
    unsafe fn run<S: Simd>(acc: *mut u8, a: *const u8, n: usize) {
        let (acc, a) = (acc.cast::<T>(), a.cast::<T>());
        let (len, parts) = (T::Of::<S>::LEN, parts::<T::Of<S>>());
        let vector = parts * len;
        // SAFETY: offsets stay below `n`. The last full vector may read elements again, which changes no
        // maximum or minimum.
        unsafe {
            let mut chains = [T::Of::<S>::splat(acc.read_unaligned()); 8];
            let mut i = 0;
            while i + 4 * vector <= n {
                for q in 0..4 * parts {
                    chains[q] = Self::pick(chains[q], T::Of::<S>::load(a.add(i + q * len)));
                }
                i += 4 * vector;
            }
            let mut best = [chains[0]; 2];
            for p in 0..parts {
                let low = Self::pick(chains[p], chains[parts + p]);
                best[p] = Self::pick(low, Self::pick(chains[2 * parts + p], chains[3 * parts + p]));
            }
            while i < n && n >= vector {
                // If a whole vector no longer fits, use the last one of the strip.
                let at = i.min(n - vector);
                for p in 0..parts {
                    best[p] = Self::pick(best[p], T::Of::<S>::load(a.add(at + p * len)));
                }
                i += vector;
            }
            while i < n {
                for p in 0..parts {
                    best[p] = Self::pick(best[p], T::Of::<S>::splat(a.add(i).read_unaligned()));
                }
                i += 1;
            }
            let mut one = best[0];
            for lanes in &best[..parts] {
                for x in &lanes.to_array()[..len] {
                    one = Self::pick(one, one.of(*x));
                }
            }
            acc.write_unaligned(one.to_array()[0]);
        }
    }
}

/// A fold of words.
trait Fold {
    fn fold(x: u32, y: u32) -> u32;
}
struct Wrap;
struct Order<const MAX: bool, const SIGNED: bool>;

impl Fold for Wrap {
    #[inline(always)]
    fn fold(x: u32, y: u32) -> u32 {
        x.wrapping_add(y)
    }
}

impl<const MAX: bool, const SIGNED: bool> Fold for Order<MAX, SIGNED> {
    #[inline(always)]
    fn fold(x: u32, y: u32) -> u32 {
        let less = if SIGNED { (x as i32) < (y as i32) } else { x < y };
        if less == MAX { y } else { x }
    }
}

struct FoldWords<F>(PhantomData<F>);

impl<F: Fold> Reduce for FoldWords<F> {
    #[inline(always)]
    unsafe fn run<S: Simd>(acc: *mut u8, a: *const u8, n: usize) {
        let (acc, a) = (acc.cast::<u32>(), a.cast::<u32>());
        // SAFETY: `i` stays below `n`, and `acc` is one word.
        unsafe {
            let mut out = acc.read_unaligned();
            for i in 0..n {
                out = F::fold(out, a.add(i).read_unaligned());
            }
            acc.write_unaligned(out);
        }
    }
}
