//! The numbers of factorizations: one float, or the floats of several small matrices side by side.
//!
//! A kernel is written once, for a [`Number`]. In a batch of small matrices, a number is an array with an entry of each of
//! [`LANES`] matrices. Each entry goes through the operations of a single float, so a matrix has the same bits alone and
//! in a batch.

use super::{Gemm, gemm_f32, gemm_f64, transpose_4, transpose_8};
use crate::simd::{Level, Work, each, is_fused, run_narrow};

/// The number of small matrices that are factored side by side.
const LANES: usize = 8;

/// The largest number of floats per matrix for which matrices are factored side by side: their work fits into L1.
const MAX_WORK: usize = 512;

/// One float, or one of each matrix of a group. Comparisons have one result per matrix.
pub trait Number: Copy {
    type Elem: Scalar;
    type Mask: Copy;
    /// The number of matrices in a group.
    const LEN: usize;

    fn of(x: Self::Elem) -> Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn div(self, other: Self) -> Self;
    fn neg(self) -> Self;
    /// |x|
    fn magnitude(self) -> Self;
    fn sqrt(self) -> Self;
    /// self + a b, rounded once
    fn fused(self, a: Self, b: Self) -> Self;
    /// A power of two near |x| whose inverse is a float too; 1 for 0 and for a number without one.
    fn scale(self) -> Self;
    fn less(self, other: Self) -> Self::Mask;
    fn both(a: Self::Mask, b: Self::Mask) -> Self::Mask;
    fn not(a: Self::Mask) -> Self::Mask;
    fn any(a: Self::Mask) -> bool;
    /// a where the mask holds, else b.
    fn choose(mask: Self::Mask, a: Self, b: Self) -> Self;
    /// The first floats of the first matrices of `x`, of `size` floats each, as numbers. The last matrix takes the place of those
    /// that are missing.
    fn load(level: Level, x: &[Self::Elem], size: usize, to: &mut [Self]);
    /// Writes numbers to as many matrices as there are.
    fn store(level: Level, x: &[Self], to: &mut [Self::Elem]);
    /// Floats as numbers.
    fn split(x: &mut [Self::Elem]) -> &mut [Self];

    #[inline(always)]
    fn zero() -> Self {
        Self::of(Self::Elem::default())
    }
    #[inline(always)]
    fn one() -> Self {
        Self::of(Self::Elem::ONE)
    }
    /// The larger one; `self` if the other is NaN.
    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        Self::choose(self.less(other), other, self)
    }
}

/// A float.
pub trait Scalar: Number<Elem = Self, Mask = bool> + PartialOrd + Default {
    /// 1
    const ONE: Self;
    /// Not a number.
    const NAN: Self;
    /// Larger than all numbers.
    const INFINITY: Self;
    /// The distance from 1 to the next float.
    const EPSILON: Self;
    /// The square of this number times the rounding unit is still normal, and the square of its inverse does not overflow.
    const SMALL: Self;
    /// The number of a group of matrices.
    type Lanes: Number<Elem = Self>;

    /// The nearest float.
    fn near(x: f64) -> Self;
    /// The row number that a float holds; 0 for NaN.
    fn row(self) -> usize;
    /// [`gemm_f32`] or [`gemm_f64`].
    ///
    /// # Safety
    /// As for [`gemm_f32`].
    unsafe fn gemm(level: Level, shape: &Gemm, a: *const Self, b: *const Self, c: *mut Self);
}

/// The value of an expression for each lane.
macro_rules! lanes {
    ($i:ident => $x:expr) => {{
        const W: usize = LANES;
        each!($i => $x)
    }};
}

macro_rules! numbers {
    ($($t:ident, $bits:ident, $gemm:ident, $transpose:ident, $small:literal;)*) => { $(
        impl Number for $t {
            type Elem = $t;
            type Mask = bool;
            const LEN: usize = 1;

            #[inline(always)]
            fn of(x: $t) -> Self {
                x
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                self - other
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self * other
            }
            #[inline(always)]
            fn div(self, other: Self) -> Self {
                self / other
            }
            #[inline(always)]
            fn neg(self) -> Self {
                -self
            }
            #[inline(always)]
            fn magnitude(self) -> Self {
                self.abs()
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $t::sqrt(self)
            }
            #[inline(always)]
            fn fused(self, a: Self, b: Self) -> Self {
                a.mul_add(b, self)
            }
            #[inline(always)]
            fn scale(self) -> Self {
                // The number without its sign and its digits.
                let power = $t::from_bits(self.to_bits() & $t::INFINITY.to_bits());
                if power > 0.0 && power < $t::INFINITY { power.min(1.0 / $t::MIN_POSITIVE) } else { 1.0 }
            }
            #[inline(always)]
            fn less(self, other: Self) -> bool {
                self < other
            }
            #[inline(always)]
            fn both(a: bool, b: bool) -> bool {
                a & b
            }
            #[inline(always)]
            fn not(a: bool) -> bool {
                !a
            }
            #[inline(always)]
            fn any(a: bool) -> bool {
                a
            }
            #[inline(always)]
            fn choose(mask: bool, a: Self, b: Self) -> Self {
                if mask { a } else { b }
            }
            #[inline(always)]
            fn load(_level: Level, x: &[$t], _size: usize, to: &mut [Self]) {
                to.copy_from_slice(&x[..to.len()]);
            }
            #[inline(always)]
            fn store(_level: Level, x: &[Self], to: &mut [$t]) {
                to[..x.len()].copy_from_slice(x);
            }
            #[inline(always)]
            fn split(x: &mut [$t]) -> &mut [Self] {
                x
            }
        }

        impl Number for [$t; LANES] {
            type Elem = $t;
            /// All bits of a lane, or none.
            type Mask = [$bits; LANES];
            const LEN: usize = LANES;

            #[inline(always)]
            fn of(x: $t) -> Self {
                lanes!(_i => x)
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                lanes!(i => self[i] + other[i])
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                lanes!(i => self[i] - other[i])
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                lanes!(i => self[i] * other[i])
            }
            #[inline(always)]
            fn div(self, other: Self) -> Self {
                lanes!(i => self[i] / other[i])
            }
            #[inline(always)]
            fn neg(self) -> Self {
                lanes!(i => -self[i])
            }
            #[inline(always)]
            fn magnitude(self) -> Self {
                lanes!(i => self[i].abs())
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                lanes!(i => $t::sqrt(self[i]))
            }
            #[inline(always)]
            fn fused(self, a: Self, b: Self) -> Self {
                lanes!(i => a[i].mul_add(b[i], self[i]))
            }
            #[inline(always)]
            fn scale(self) -> Self {
                lanes!(i => self[i].scale())
            }
            #[inline(always)]
            fn less(self, other: Self) -> [$bits; LANES] {
                lanes!(i => if self[i] < other[i] { $bits::MAX } else { 0 })
            }
            #[inline(always)]
            fn both(a: [$bits; LANES], b: [$bits; LANES]) -> [$bits; LANES] {
                lanes!(i => a[i] & b[i])
            }
            #[inline(always)]
            fn not(a: [$bits; LANES]) -> [$bits; LANES] {
                lanes!(i => !a[i])
            }
            #[inline(always)]
            fn any(a: [$bits; LANES]) -> bool {
                a.into_iter().fold(0, |any, a| any | a) != 0
            }
            #[inline(always)]
            fn choose(mask: [$bits; LANES], a: Self, b: Self) -> Self {
                lanes!(i => $t::from_bits(a[i].to_bits() & mask[i] | b[i].to_bits() & !mask[i]))
            }
            fn load(level: Level, x: &[$t], size: usize, to: &mut [Self]) {
                let (count, len) = ((x.len() / size).min(LANES), to.len());
                assert!(count > 0 && len <= size, "invariant: {count} matrices of {size} floats");
                let (src, dst) = (x.as_ptr().cast(), to.as_flattened_mut().as_mut_ptr().cast());
                // SAFETY: `count` rows of `len` floats are `size` apart in `x`, and as many columns are LANES apart in `to`.
                unsafe { $transpose(level, count, len, src, size, dst, LANES) }
                for lanes in to {
                    let last = lanes[count - 1];
                    lanes[count..].fill(last);
                }
            }
            fn store(level: Level, x: &[Self], to: &mut [$t]) {
                let len = x.len();
                let count = (to.len() / len).min(LANES);
                let (src, dst) = (x.as_flattened().as_ptr().cast(), to.as_mut_ptr().cast());
                // SAFETY: `len` rows of `count` floats are LANES apart in `x`, and as many columns are `len` apart in `to`.
                unsafe { $transpose(level, len, count, src, LANES, dst, len) }
            }
            #[inline(always)]
            fn split(x: &mut [$t]) -> &mut [Self] {
                x.as_chunks_mut().0
            }
        }

        impl Scalar for $t {
            const ONE: Self = 1.0;
            const NAN: Self = $t::NAN;
            const INFINITY: Self = $t::INFINITY;
            const EPSILON: Self = $t::EPSILON;
            const SMALL: Self = $small;
            type Lanes = [$t; LANES];

            #[inline(always)]
            fn near(x: f64) -> Self {
                x as $t
            }
            #[inline(always)]
            fn row(self) -> usize {
                self as usize
            }
            unsafe fn gemm(level: Level, shape: &Gemm, a: *const Self, b: *const Self, c: *mut Self) {
                // SAFETY: by the caller.
                unsafe { $gemm(level, shape, a, b, c) }
            }
        }
    )* };
}

numbers! {
    f32, u32, gemm_f32, transpose_4, 1e-12;
    f64, u64, gemm_f64, transpose_8, 1e-137;
}

/// The number of floats that the work on `count` matrices side by side needs, with `work` per matrix; 0 if they are factored
/// one after another.
pub fn room_beside(work: usize, count: usize) -> usize {
    if count > 1 && work <= MAX_WORK { LANES * work } else { 0 }
}

/// The number of floats that the work on `count` matrices needs, with `work` per matrix.
pub fn room(work: usize, count: usize) -> usize {
    room_beside(work, count).max(work)
}

/// A factorization of matrices of one shape.
pub(super) trait Factorization<T: Scalar> {
    /// The floats of a matrix and of its factors, and the numbers of work.
    fn sizes(&self) -> [usize; 3];
    /// Factors the first matrices of `a` to the first ones of `out`: one, or several side by side.
    fn group<E: Number<Elem = T>, const FUSED: bool>(
        &self,
        level: Level,
        a: &[T],
        out: &mut [T],
        work: &mut [E],
    );
    /// Factors one matrix.
    #[inline(always)]
    fn alone<const FUSED: bool>(&self, level: Level, a: &[T], out: &mut [T], work: &mut [T]) {
        self.group::<T, FUSED>(level, a, out, work);
    }
}

/// Factors the matrices of `a` to `out`. The code is compiled for the portable level and for AVX2 with fused multiply-add;
/// AVX-512 uses the latter, since most matrices are small. `work` has the [`room`] for the work.
pub(super) fn factor_each<T: Scalar>(
    level: Level,
    f: &impl Factorization<T>,
    a: &[T],
    out: &mut [T],
    work: &mut [T],
) {
    if f.sizes()[1] == 0 {
        return;
    }
    match is_fused(level) {
        true => run_narrow(level, Each::<T, _, true> { level, f, a, out, work }),
        false => Each::<T, _, false> { level, f, a, out, work }.run(),
    }
}

struct Each<'a, T, F, const FUSED: bool> {
    level: Level,
    f: &'a F,
    a: &'a [T],
    out: &'a mut [T],
    work: &'a mut [T],
}

impl<T: Scalar, F: Factorization<T>, const FUSED: bool> Work for Each<'_, T, F, FUSED> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Each { level, f, a, out, work: room } = self;
        let [from, to, work] = f.sizes();
        // Lanes without fused multiply-add are not compiled: they would take 0.15 MB of code for processors older than AVX2, where
        // batches of small matrices take 1.5 to 2.7 times as long without them (benches/record/2026-11-29-linalg.md).
        if FUSED && room.len() > work {
            for (a, out) in a.chunks(LANES * from).zip(out.chunks_mut(LANES * to)) {
                f.group::<T::Lanes, FUSED>(level, a, out, T::Lanes::split(room));
            }
        } else {
            for (a, out) in a.chunks_exact(from).zip(out.chunks_exact_mut(to)) {
                f.alone::<FUSED>(level, a, out, room);
            }
        }
    }
}

/// x + a b, fused at levels that have it.
#[inline(always)]
pub(super) fn plus<E: Number, const FUSED: bool>(x: E, a: E, b: E) -> E {
    if FUSED { x.fused(a, b) } else { x.add(a.mul(b)) }
}

/// x - a b, fused at levels that have it.
#[inline(always)]
pub(super) fn minus<E: Number, const FUSED: bool>(x: E, a: E, b: E) -> E {
    plus::<E, FUSED>(x, a.neg(), b)
}

/// The number of sums of [`dot`] that are computed side by side.
const SUMS: usize = 8;

/// The sum of the products of two lines of equal lengths. Its order depends only on the length.
#[inline(always)]
pub(super) fn dot<E: Number, const FUSED: bool>(x: &[E], y: &[E]) -> E {
    let ((x, rest_x), (y, rest_y)) = (x.as_chunks::<SUMS>(), y.as_chunks::<SUMS>());
    let mut sums = [E::zero(); SUMS];
    for (x, y) in x.iter().zip(y) {
        for l in 0..SUMS {
            sums[l] = plus::<E, FUSED>(sums[l], x[l], y[l]);
        }
    }
    for (sum, (&x, &y)) in sums.iter_mut().zip(rest_x.iter().zip(rest_y)) {
        *sum = plus::<E, FUSED>(*sum, x, y);
    }
    let [a, b, c, d, e, f, g, h] = sums;
    a.add(e).add(c.add(g)).add(b.add(f).add(d.add(h)))
}

/// y + a x for each element.
#[inline(always)]
pub(super) fn add_multiple<E: Number, const FUSED: bool>(y: &mut [E], a: E, x: &[E]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = plus::<E, FUSED>(*y, a, x);
    }
}

/// x times a factor for each element.
#[inline(always)]
pub(super) fn multiply<E: Number>(x: &mut [E], factor: E) {
    x.iter_mut().for_each(|x| *x = x.mul(factor));
}
