//! Up to 32 lanes as plain arrays, for trajectories in lockstep.
//!
//! A [`Lanes`] holds W numbers and does not depend on a level. Its functions are all inlined, so they become
//! instructions of the level for which the surrounding function is compiled ([`Entry`](super::Entry)). Two
//! registers of numbers (16 f64 or 32 f32 with AVX-512) hide the latency of operations on one register. With
//! the intrinsic types of the levels, all code over lanes would be compiled once per level. The result of a
//! lane depends only on this lane, bit for bit.
//!
//! There is no `PartialOrd` and no `PartialEq`: lanes differ, so code cannot branch on a comparison.

use super::lanes::{Float, Lanes as LaneOps, Mask};
use std::hint::select_unpredictable;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

/// An array of W entries: the expression is evaluated for each lane index, without a loop.
///
/// A loop, even if it is unrolled later, takes the optimizer far longer: after inlining, one function
/// contains thousands of operations, and the time of loop passes is quadratic in the number of loops.
/// `array::from_fn` is not always inlined, and code that is not inlined is compiled for the simplest level.
/// `[x; W]` is a loop, too, unless x is a constant: [`Lanes::splat`] replaces it. With one such loop per
/// operation, the loops over attempts took three times as long to compile.
///
/// `each!(out[i] = x)` stores into the first W entries of an array.
macro_rules! each {
    ($i:ident => $x:expr) => {{
        let mut out = const { [$crate::simd::Lane::ZERO; W] };
        $crate::simd::each!(out[$i] = $x);
        out
    }};
    ($out:ident[$i:ident] = $x:expr) => {
        const { assert!(W <= 32, "invariant: at most 32 lanes") };
        $crate::simd::each!(@lanes $out $i $x;
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
    };
    (@lanes $out:ident $i:ident $x:expr; $($lane:literal)*) => { $(
        // The compiler omits this block where the condition is false.
        if const { $lane < W } {
            let $i: usize = const { if $lane < W { $lane } else { 0 } };
            $out[$i] = $x;
        }
    )* };
}
pub(crate) use each;

/// A number or truth value of one lane.
pub trait Lane: Copy {
    /// The value of a lane that has not been computed.
    const ZERO: Self;
}
impl Lane for f64 {
    const ZERO: f64 = 0.0;
}
impl Lane for f32 {
    const ZERO: f32 = 0.0;
}
impl Lane for u32 {
    const ZERO: u32 = 0;
}
impl Lane for u64 {
    const ZERO: u64 = 0;
}
impl Lane for bool {
    const ZERO: bool = false;
}

/// W numbers, one per lane.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Lanes<T, const W: usize>(pub(crate) [T; W]);

/// One truth value per lane.
#[derive(Clone, Copy, Debug)]
pub struct LaneMask<const W: usize>(pub(crate) [bool; W]);

/// The lowest bit of each byte: bit i is from byte i.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn bits_of(bytes: [u8; 16]) -> u32 {
    use std::arch::x86_64::{_mm_loadu_si128, _mm_movemask_epi8, _mm_slli_epi16};
    // SAFETY: 16 bytes are read from an array of 16; SSE2 is part of x86-64.
    unsafe { _mm_movemask_epi8(_mm_slli_epi16::<7>(_mm_loadu_si128(bytes.as_ptr().cast()))) as u32 }
}

/// The lowest bit of each byte: bit i is from byte i.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn bits_of(bytes: [u8; 16]) -> u32 {
    bytes.iter().rev().fold(0, |bits, byte| bits << 1 | u32::from(byte & 1))
}

impl<T: Lane, const W: usize> Lanes<T, W> {
    /// Creates lanes from one number per lane.
    #[inline(always)]
    pub fn new(lanes: [T; W]) -> Self {
        Lanes(lanes)
    }
    /// `x` in all lanes.
    #[inline(always)]
    pub(crate) fn splat(x: T) -> Self {
        Lanes(each!(_i => x))
    }
    /// The numbers of all lanes.
    #[inline(always)]
    pub fn to_lanes(self) -> [T; W] {
        self.0
    }
    /// The number in one lane.
    #[inline(always)]
    pub fn lane(&self, lane: usize) -> T {
        self.0[lane]
    }
    /// Replaces the number in one lane.
    #[inline(always)]
    pub fn set_lane(&mut self, lane: usize, x: T) {
        self.0[lane] = x;
    }
    #[inline(always)]
    pub(crate) fn zip<U: Lane, V: Lane>(self, other: Lanes<U, W>, f: impl Fn(T, U) -> V) -> Lanes<V, W> {
        Lanes(each!(i => f(self.0[i], other.0[i])))
    }
    #[inline(always)]
    pub(crate) fn map<V: Lane>(self, f: impl Fn(T) -> V) -> Lanes<V, W> {
        Lanes(each!(i => f(self.0[i])))
    }
    #[inline(always)]
    pub(crate) fn test(self, other: Self, f: impl Fn(T, T) -> bool) -> LaneMask<W> {
        LaneMask(each!(i => f(self.0[i], other.0[i])))
    }
    /// `a` where the mask holds, else `b`.
    ///
    /// Both operands are read. From an `if`, the optimizer would make a choice between two addresses for each
    /// lane, with a read and a write per lane. The next vector read would then wait for all writes.
    #[inline(always)]
    pub(crate) fn choose(mask: &LaneMask<W>, a: &Self, b: &Self) -> Self {
        Lanes(each!(i => select_unpredictable(mask.0[i], a.0[i], b.0[i])))
    }
}

impl<const W: usize> LaneMask<W> {
    /// The number of lanes in which the mask holds.
    #[inline(always)]
    pub(crate) fn count(self) -> u32 {
        self.bits().count_ones()
    }
    /// The mask as bits: bit i is lane i.
    ///
    /// Uses a dedicated instruction on x86-64. From a sum or a chain of shifts over lanes, the optimizer
    /// would derive the layout of all values before it, and permutations would take a third of the time of a
    /// step.
    #[inline(always)]
    pub(crate) fn bits(self) -> u32 {
        let mut bytes = [0_u8; 32];
        each!(bytes[i] = u8::from(self.0[i]));
        let [low, high]: [[u8; 16]; 2] =
            [*bytes.first_chunk().unwrap_or(&[0; 16]), *bytes.last_chunk().unwrap_or(&[0; 16])];
        if W <= 16 { bits_of(low) } else { bits_of(low) | bits_of(high) << 16 }
    }
}

impl<const W: usize> Mask for LaneMask<W> {
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        LaneMask(each!(i => self.0[i] & other.0[i]))
    }
    #[inline(always)]
    fn not(self) -> Self {
        LaneMask(each!(i => !self.0[i]))
    }
    #[inline(always)]
    fn any(self) -> bool {
        self.bits() != 0
    }
}

macro_rules! operators {
    ($t:ident: $($op:ident $f:ident $assign:ident $g:ident),*) => { $(
        impl<const W: usize> $op for Lanes<$t, W> {
            type Output = Self;
            #[inline(always)]
            fn $f(self, other: Self) -> Self {
                Lanes(each!(i => $op::$f(self.0[i], other.0[i])))
            }
        }
        impl<const W: usize> $op<f64> for Lanes<$t, W> {
            type Output = Self;
            #[inline(always)]
            fn $f(self, other: f64) -> Self {
                let other = other as $t;
Lanes(each!(i => $op::$f(self.0[i], other)))
            }
        }
        impl<const W: usize> $op<Lanes<$t, W>> for f64 {
            type Output = Lanes<$t, W>;
            #[inline(always)]
            fn $f(self, other: Lanes<$t, W>) -> Lanes<$t, W> {
                let this = self as $t;
Lanes(each!(i => $op::$f(this, other.0[i])))
            }
        }
        impl<const W: usize> $assign for Lanes<$t, W> {
            #[inline(always)]
            fn $g(&mut self, other: Self) {
                *self = $op::$f(*self, other);
            }
        }
        impl<const W: usize> $assign<f64> for Lanes<$t, W> {
            #[inline(always)]
            fn $g(&mut self, other: f64) {
                *self = $op::$f(*self, other);
            }
        }
    )* };
}

macro_rules! float {
    ($t:ident, $bits:ident) => {
        operators!($t: Add add AddAssign add_assign, Sub sub SubAssign sub_assign,
            Mul mul MulAssign mul_assign, Div div DivAssign div_assign);

        impl<const W: usize> Neg for Lanes<$t, W> {
            type Output = Self;
            #[inline(always)]
            fn neg(self) -> Self {
                Lanes(each!(i => -self.0[i]))
            }
        }

        impl<const W: usize> Sum for Lanes<$t, W> {
            #[inline(always)]
            fn sum<I: Iterator<Item = Self>>(terms: I) -> Self {
                terms.fold(Lanes([0.0; W]), |sum, term| sum + term)
            }
        }

        impl<const W: usize> From<f64> for Lanes<$t, W> {
            #[inline(always)]
            fn from(x: f64) -> Self {
                Lanes::splat(x as $t)
            }
        }

        impl<const W: usize> LaneOps for Lanes<$t, W> {
            type Elem = $t;
            type Mask = LaneMask<W>;
            const LEN: usize = W;

            #[inline(always)]
            unsafe fn splat(x: $t) -> Self {
                Lanes::splat(x)
            }
            #[inline(always)]
            unsafe fn load(p: *const $t) -> Self {
                // SAFETY: the caller promises `W` readable elements.
                Lanes(unsafe { p.cast::<[$t; W]>().read_unaligned() })
            }
            #[inline(always)]
            unsafe fn load_part(p: *const $t, n: usize) -> Self {
                // SAFETY: the caller promises `n` readable elements.
                Lanes(each!(i => if i < n { unsafe { p.add(i).read_unaligned() } } else { 0.0 }))
            }
            #[inline(always)]
            unsafe fn store(self, p: *mut $t) {
                // SAFETY: the caller promises `W` writable elements.
                unsafe { p.cast::<[$t; W]>().write_unaligned(self.0) };
            }
            #[inline(always)]
            unsafe fn store_part(self, p: *mut $t, n: usize) {
                for (i, x) in self.0.into_iter().enumerate().take(n) {
                    // SAFETY: the caller promises `n` writable elements.
                    unsafe { p.add(i).write_unaligned(x) };
                }
            }
            #[inline(always)]
            unsafe fn load_mask(p: *const u32, n: usize) -> LaneMask<W> {
                // SAFETY: the caller promises `n` readable words.
                LaneMask(each!(i => i < n && unsafe { p.add(i).read_unaligned() } != 0))
            }
            #[inline(always)]
            unsafe fn store_mask(mask: LaneMask<W>, p: *mut u32, n: usize) {
                for (i, x) in mask.0.into_iter().enumerate().take(n) {
                    // SAFETY: the caller promises `n` writable words.
                    unsafe { p.add(i).write_unaligned(u32::from(x)) };
                }
            }
            #[inline(always)]
            fn of(self, x: $t) -> Self {
                Lanes::splat(x)
            }
            #[inline(always)]
            fn select(mask: LaneMask<W>, a: Self, b: Self) -> Self {
                Self::choose(&mask, &a, &b)
            }
            #[inline(always)]
            fn eq(self, other: Self) -> LaneMask<W> {
                LaneMask(each!(i => self.0[i] == other.0[i]))
            }
        }

        impl<const W: usize> Float for Lanes<$t, W> {
            const FUSED: bool = true;

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
            fn mul_add(self, b: Self, c: Self) -> Self {
                Lanes(each!(i => self.0[i].mul_add(b.0[i], c.0[i])))
            }
            #[inline(always)]
            fn neg_mul_add(self, b: Self, c: Self) -> Self {
                Lanes(each!(i => (-self.0[i]).mul_add(b.0[i], c.0[i])))
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                Lanes(each!(i => self.0[i].sqrt()))
            }
            #[inline(always)]
            fn floor(self) -> Self {
                Lanes(each!(i => self.0[i].floor()))
            }
            #[inline(always)]
            fn at_most(self, bound: Self) -> Self {
                Lanes(each!(i => if bound.0[i] < self.0[i] { bound.0[i] } else { self.0[i] }))
            }
            #[inline(always)]
            fn at_least(self, bound: Self) -> Self {
                Lanes(each!(i => if bound.0[i] > self.0[i] { bound.0[i] } else { self.0[i] }))
            }
            #[inline(always)]
            fn lt(self, other: Self) -> LaneMask<W> {
                LaneMask(each!(i => self.0[i] < other.0[i]))
            }
            #[inline(always)]
            fn le(self, other: Self) -> LaneMask<W> {
                LaneMask(each!(i => self.0[i] <= other.0[i]))
            }
            #[inline(always)]
            fn of_bits(self, bits: u64) -> Self {
                Lanes::splat($t::from_bits(bits as $bits))
            }
            #[inline(always)]
            fn bit_and(self, other: Self) -> Self {
                Lanes(each!(i => $t::from_bits(self.0[i].to_bits() & other.0[i].to_bits())))
            }
            #[inline(always)]
            fn bit_or(self, other: Self) -> Self {
                Lanes(each!(i => $t::from_bits(self.0[i].to_bits() | other.0[i].to_bits())))
            }
            #[inline(always)]
            fn bit_xor(self, other: Self) -> Self {
                Lanes(each!(i => $t::from_bits(self.0[i].to_bits() ^ other.0[i].to_bits())))
            }
            #[inline(always)]
            fn bits_shl(self, n: u32) -> Self {
                Lanes(each!(i => $t::from_bits(self.0[i].to_bits() << n)))
            }
            #[inline(always)]
            fn bits_shr(self, n: u32) -> Self {
                Lanes(each!(i => $t::from_bits(self.0[i].to_bits() >> n)))
            }
            #[inline(always)]
            fn bits_add(self, other: Self) -> Self {
                Lanes(each!(i => $t::from_bits(self.0[i].to_bits().wrapping_add(other.0[i].to_bits()))))
            }
            #[inline(always)]
            fn patch(self, mask: LaneMask<W>, input: Self, f: fn($t) -> $t) -> Self {
                if !mask.any() {
                    return self;
                }
                Lanes(each!(i => if mask.0[i] { f(input.0[i]) } else { self.0[i] }))
            }
        }
    };
}
float!(f32, u32);
float!(f64, u64);
