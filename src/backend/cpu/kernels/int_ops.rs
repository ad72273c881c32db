//! Integer and logic operations on lanes of 32-bit words, and their loops over a strip.
//!
//! Signed and unsigned words share their arithmetic and differ only in order.

use std::marker::PhantomData;

use super::ops::{each_part, load_up_to, store_up_to};
use super::strip::StripKernel;
use crate::simd::lanes::{Int, Lanes, Mask, Simd};

/// An elementwise operation on words.
pub(super) trait IntOp {
    /// Number of operands.
    const ARITY: usize;
    fn apply<V: Int>(a: V, b: V) -> V;
}

/// A comparison of words.
pub(super) trait IntCompareOp {
    fn apply<V: Int>(a: V, b: V) -> V::Mask;
}

macro_rules! int_op {
    ($($name:ident $(<$signed:ident>)? / $arity:literal: |$a:ident, $b:ident| $body:expr;)*) => {$(
        pub(super) struct $name $(<const $signed: bool>)?;
        impl $(<const $signed: bool>)? IntOp for $name $(<$signed>)? {
            const ARITY: usize = $arity;
            #[inline(always)]
            fn apply<V: Int>($a: V, $b: V) -> V {
                $body
            }
        }
    )*};
}

macro_rules! int_compare_op {
    ($($name:ident $(<$signed:ident>)?: |$a:ident, $b:ident| $body:expr;)*) => {$(
        pub(super) struct $name $(<const $signed: bool>)?;
        impl $(<const $signed: bool>)? IntCompareOp for $name $(<$signed>)? {
            #[inline(always)]
            fn apply<V: Int>($a: V, $b: V) -> V::Mask {
                $body
            }
        }
    )*};
}

int_op! {
    Copy / 1: |a, _b| a;
    Neg / 1: |a, _b| a.of(0).sub(a);
    Abs / 1: |a, _b| a.max(a.of(0).sub(a), true);
    Sign / 1: |a, _b| a.max(a.of(u32::MAX), true).min(a.of(1), true);
    Add / 2: |a, b| a.add(b);
    Sub / 2: |a, b| a.sub(b);
    Mul / 2: |a, b| a.mul(b);
    Max<SIGNED> / 2: |a, b| a.max(b, SIGNED);
    Min<SIGNED> / 2: |a, b| a.min(b, SIGNED);
    And / 2: |a, b| a.and(b);
    Or / 2: |a, b| a.or(b);
}

int_compare_op! {
    Eq: |a, b| a.eq(b);
    Ne: |a, b| a.eq(b).not();
    Lt<SIGNED>: |a, b| a.lt(b, SIGNED);
    Le<SIGNED>: |a, b| b.lt(a, SIGNED).not();
}

/// An [`IntOp`] over a strip.
pub(super) struct IntMap<O>(PhantomData<O>);

impl<O: IntOp> StripKernel for IntMap<O> {
    #[inline(always)]
    unsafe fn run<S: Simd>(dst: *mut u8, a: *const u8, b: *const u8, _: *const u8, _: [f64; 2], n: usize) {
        let (dst, a, b) = (dst.cast::<u32>(), a.cast::<u32>(), b.cast::<u32>());
        each_part!(n, S::U32::LEN, |i, count| {
            // SAFETY: `i + count <= n`; `b` is read only if the operation has two operands.
            unsafe {
                let x: S::U32 = load_up_to(a.add(i), count);
                let y = if O::ARITY > 1 { load_up_to(b.add(i), count) } else { x };
                store_up_to(O::apply(x, y), dst.add(i), count);
            }
        });
    }
}

/// An [`IntCompareOp`] over a strip, to words of 0 or 1.
pub(super) struct IntCompare<O>(PhantomData<O>);

impl<O: IntCompareOp> StripKernel for IntCompare<O> {
    #[inline(always)]
    unsafe fn run<S: Simd>(dst: *mut u8, a: *const u8, b: *const u8, _: *const u8, _: [f64; 2], n: usize) {
        let (dst, a, b) = (dst.cast::<u32>(), a.cast::<u32>(), b.cast::<u32>());
        each_part!(n, S::U32::LEN, |i, count| {
            // SAFETY: `i + count <= n`.
            unsafe {
                let (x, y): (S::U32, S::U32) = (load_up_to(a.add(i), count), load_up_to(b.add(i), count));
                S::U32::store_mask(O::apply(x, y), dst.add(i), count);
            }
        });
    }
}

/// 1 where the word is 0, else 0.
pub(super) struct Not;

impl StripKernel for Not {
    #[inline(always)]
    unsafe fn run<S: Simd>(dst: *mut u8, a: *const u8, _: *const u8, _: *const u8, _: [f64; 2], n: usize) {
        let (dst, a) = (dst.cast::<u32>(), a.cast::<u32>());
        each_part!(n, S::U32::LEN, |i, count| {
            // SAFETY: `i + count <= n`.
            unsafe { S::U32::store_mask(S::U32::load_mask(a.add(i), count).not(), dst.add(i), count) };
        });
    }
}

/// `b` where the word `a` is not 0, else `c`, all 32-bit.
pub(super) struct Select;

impl StripKernel for Select {
    #[inline(always)]
    unsafe fn run<S: Simd>(dst: *mut u8, a: *const u8, b: *const u8, c: *const u8, _: [f64; 2], n: usize) {
        let (dst, a, b, c) = (dst.cast::<u32>(), a.cast::<u32>(), b.cast::<u32>(), c.cast::<u32>());
        each_part!(n, S::U32::LEN, |i, count| {
            // SAFETY: `i + count <= n`.
            unsafe {
                let mask = S::U32::load_mask(a.add(i), count);
                let (x, y) = (load_up_to(b.add(i), count), load_up_to(c.add(i), count));
                store_up_to(S::U32::select(mask, x, y), dst.add(i), count);
            }
        });
    }
}
