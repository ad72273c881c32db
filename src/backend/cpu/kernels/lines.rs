//! Operations along lines, one element after another: the same code and bits at all levels.

use crate::graph::LineOp;

/// An element of a line.
pub trait Element: Copy + PartialOrd {
    /// The sum; of integers, it wraps.
    fn plus(self, other: Self) -> Self;
    /// A number with the order of the elements, in which -0 equals 0 and NaNs are equal and last.
    fn key(self) -> u64;
}

macro_rules! elements {
    ($($t:ty: |$a:ident, $b:ident| $sum:expr, |$x:ident| $key:expr;)*) => { $(
        impl Element for $t {
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                let ($a, $b) = (self, other);
                $sum
            }
            #[inline(always)]
            fn key(self) -> u64 {
                let $x = self;
                $key
            }
        }
    )* };
}
// Of floats, -0 becomes 0, and the bits of negative numbers have the reverse order.
elements! {
    f32: |a, b| a + b, |x| f64::from(x).key();
    f64: |a, b| a + b, |x| match (x + 0.0).to_bits() {
        _ if x.is_nan() => u64::MAX,
        bits if bits >> 63 == 0 => bits | 1 << 63,
        bits => !bits,
    };
    i32: |a, b| a.wrapping_add(b), |x| u64::from(x as u32 ^ (1 << 31));
    u32: |a, b| a.wrapping_add(b), |x| x.into();
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
            // A NaN is in no order, not even with itself; the first one stays.
            let is_number = most.partial_cmp(&most).is_some();
            if x.partial_cmp(&most).map_or(is_number, std::cmp::Ordering::is_gt) {
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
