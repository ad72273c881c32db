//! Operations along lines, one element after another: the same code and bits at all levels.

use crate::graph::LineOp;

/// An element of a line.
pub trait Element: Copy + PartialOrd {
    /// The sum; of integers, it wraps.
    fn plus(self, other: Self) -> Self;
    /// Whether it is not NaN.
    fn is_number(self) -> bool;
    /// A number with the order of the elements, in which -0 equals 0 and NaNs are equal and last.
    fn key(self) -> u64;
}

macro_rules! floats {
    ($($t:ty, $bits:ty, $sign:expr;)*) => { $(
        impl Element for $t {
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn is_number(self) -> bool {
                !self.is_nan()
            }
            #[inline(always)]
            fn key(self) -> u64 {
                if self.is_nan() {
                    return u64::MAX;
                }
                // -0 becomes 0. The bits of negative numbers have the reverse order.
                let bits = (self + 0.0).to_bits();
                u64::from(if bits & $sign == 0 { bits | $sign } else { !bits })
            }
        }
    )* };
}
floats! {
    f32, u32, 1u32 << 31;
    f64, u64, 1u64 << 63;
}

impl Element for i32 {
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
    #[inline(always)]
    fn is_number(self) -> bool {
        true
    }
    #[inline(always)]
    fn key(self) -> u64 {
        u64::from(self as u32 ^ (1 << 31))
    }
}

impl Element for u32 {
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
    #[inline(always)]
    fn is_number(self) -> bool {
        true
    }
    #[inline(always)]
    fn key(self) -> u64 {
        self.into()
    }
}

/// Writes the sums of the lines of length n of x, up to each element or from it on.
pub fn cumulative_sums<T: Element>(n: usize, reverse: bool, x: &[T], out: &mut [T]) {
    for (x, out) in x.chunks_exact(n).zip(out.chunks_exact_mut(n)) {
        let mut sum = None::<T>;
        let mut next = |x: T| *sum.insert(sum.map_or(x, |sum| sum.plus(x)));
        if reverse {
            x.iter().zip(out).rev().for_each(|(&x, out)| *out = next(x));
        } else {
            x.iter().zip(out).for_each(|(&x, out)| *out = next(x));
        }
    }
}

/// Writes the largest element up to each element; NaN from the first NaN on.
pub fn cumulative_maxima<T: Element>(n: usize, x: &[T], out: &mut [T]) {
    for (x, out) in x.chunks_exact(n).zip(out.chunks_exact_mut(n)) {
        let mut most = x[0];
        for (&x, out) in x.iter().zip(out) {
            // A NaN has no order; the first one stays.
            let is_more = x.partial_cmp(&most).map_or(most.is_number(), std::cmp::Ordering::is_gt);
            if is_more {
                most = x;
            }
            *out = most;
        }
    }
}

/// Writes the order of the elements of each line: see [`LineOp::Argsort`].
pub fn orders<T: Element>(n: usize, x: &[T], out: &mut [i32]) {
    let mut keys: Vec<(u64, i32)> = Vec::with_capacity(n);
    for (x, out) in x.chunks_exact(n).zip(out.chunks_exact_mut(n)) {
        keys.clear();
        keys.extend(x.iter().map(|x| x.key()).zip(0..));
        keys.sort_unstable();
        out.iter_mut().zip(&keys).for_each(|(out, &(_, i))| *out = i);
    }
}

/// Runs an operation whose results have the type of the elements.
pub fn line<T: Element>(op: LineOp, n: usize, x: &[T], out: &mut [T]) {
    match op {
        LineOp::CumSum { reverse } => cumulative_sums(n, reverse, x, out),
        LineOp::CumMax => cumulative_maxima(n, x, out),
        LineOp::Argsort => unreachable!("invariant: an order is of integers"),
    }
}
