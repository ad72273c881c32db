//! Float operations on lanes, and their loops over a strip.
//!
//! This file defines the meaning of each operation. The table in `strip` names the operations. Operations are
//! zero-sized types, not closures: a closure does not inherit the target features of its surrounding function.

use std::marker::PhantomData;

use super::strip::StripKernel;
use crate::graph::{Of, ScalarFn};
use crate::simd::lanes::{Float, Lanes, Mask, Simd};
use crate::simd::math::{self, Math};

/// An elementwise operation of up to three operands and two immediates.
pub(super) trait FloatOp {
    /// Number of operands.
    const ARITY: usize;
    fn apply<V: Float>(a: V, b: V, c: V, imm: [V; 2]) -> V;
}

macro_rules! float_op {
    ($($name:ident / $arity:literal: |$a:ident, $b:ident, $c:ident, $imm:ident| $body:expr;)*) => {$(
        pub(super) struct $name;
        impl FloatOp for $name {
            const ARITY: usize = $arity;
            #[inline(always)]
            fn apply<V: Float>($a: V, $b: V, $c: V, $imm: [V; 2]) -> V {
                $body
            }
        }
    )*};
}

float_op! {
    Copy / 1: |a, _b, _c, _imm| a;
    Neg / 1: |a, _b, _c, _imm| a.neg();
    Abs / 1: |a, _b, _c, _imm| a.abs();
    Sign / 1: |a, _b, _c, _imm| {
        let not_zero = a.of(V::Elem::ZERO).lt(a.abs());
        V::select(not_zero, a.of(V::Elem::ONE).with_sign_of(a), a)
    };
    Floor / 1: |a, _b, _c, _imm| a.floor();
    Sqrt / 1: |a, _b, _c, _imm| a.sqrt();
    Exp / 1: |a, _b, _c, _imm| math::exp(a);
    Ln / 1: |a, _b, _c, _imm| math::ln(a);
    Expm1 / 1: |a, _b, _c, _imm| math::expm1(a);
    Log1p / 1: |a, _b, _c, _imm| math::log1p(a);
    Tanh / 1: |a, _b, _c, _imm| math::tanh(a);
    Sigmoid / 1: |a, _b, _c, _imm| math::sigmoid(a);
    Softplus / 1: |a, _b, _c, _imm| math::softplus(a);
    Erf / 1: |a, _b, _c, _imm| math::erf(a);
    Sin / 1: |a, _b, _c, _imm| math::sin(a);
    Cos / 1: |a, _b, _c, _imm| math::cos(a);
    Atan / 1: |a, _b, _c, _imm| math::atan(a);
    Square / 1: |a, _b, _c, _imm| a.mul(a);
    Recip / 1: |a, _b, _c, _imm| a.of(V::Elem::ONE).div(a);
    Scale / 1: |a, _b, _c, imm| a.mul(imm[0]);
    AddImm / 1: |a, _b, _c, imm| a.add(imm[0]);
    Add / 2: |a, b, _c, _imm| a.add(b);
    Sub / 2: |a, b, _c, _imm| a.sub(b);
    Mul / 2: |a, b, _c, _imm| a.mul(b);
    Div / 2: |a, b, _c, _imm| a.div(b);
    Max / 2: |a, b, _c, _imm| a.max(b);
    Min / 2: |a, b, _c, _imm| a.min(b);
    Axpy / 2: |a, b, _c, imm| a.mul_add(imm[0], b);
    Axpy2 / 3: |a, b, c, imm| b.mul_add(imm[1], a.mul_add(imm[0], c));
    SubFrom / 2: |a, b, _c, _imm| b.sub(a);
    SubSquare / 1: |a, _b, _c, imm| imm[0].sub(a.mul(a));
    Gate / 2: |a, b, _c, imm| b.mul(imm[0].sub(a.mul(a)));
}

/// Applies `P` to the first two operands, then `Q` to the result and the third operand.
pub(super) struct Then<P, Q>(PhantomData<(P, Q)>);

impl<P: FloatOp, Q: FloatOp> FloatOp for Then<P, Q> {
    const ARITY: usize = 3;
    #[inline(always)]
    fn apply<V: Float>(a: V, b: V, c: V, imm: [V; 2]) -> V {
        Q::apply(P::apply(a, b, c, imm), c, c, imm)
    }
}

/// A [`FloatOp`] over a strip.
pub(super) struct Map<T, O>(PhantomData<(T, O)>);

impl<T: Math, O: FloatOp> StripKernel for Map<T, O> {
    #[inline(always)]
    unsafe fn run<S: Simd>(dst: *mut u8, a: *const u8, b: *const u8, c: *const u8, imm: [f64; 2], n: usize) {
        let (dst, a, b, c) = (dst.cast::<T>(), a.cast::<T>(), b.cast::<T>(), c.cast::<T>());
        let len = T::Of::<S>::LEN;
        // SAFETY: offsets stay below `n`, the length of the strip, and only the first `ARITY` operands are read.
        unsafe {
            let imm = [T::Of::<S>::splat(T::from_f64(imm[0])), T::Of::<S>::splat(T::from_f64(imm[1]))];
            let mut i = 0;
            while i + len <= S::end(&n) {
                let x = T::Of::<S>::load(a.add(i));
                let y = if O::ARITY > 1 { T::Of::<S>::load(b.add(i)) } else { x };
                let z = if O::ARITY > 2 { T::Of::<S>::load(c.add(i)) } else { x };
                O::apply(x, y, z, imm).store(dst.add(i));
                i += len;
            }
            let rest = n - i;
            if rest > 0 {
                let x = T::Of::<S>::load_part(a.add(i), rest);
                let y = if O::ARITY > 1 { T::Of::<S>::load_part(b.add(i), rest) } else { x };
                let z = if O::ARITY > 2 { T::Of::<S>::load_part(c.add(i), rest) } else { x };
                O::apply(x, y, z, imm).store_part(dst.add(i), rest);
            }
        }
    }
}

/// A comparison of two operands.
pub(super) trait CompareOp {
    fn apply<V: Float>(a: V, b: V) -> V::Mask;
}

macro_rules! compare_op {
    ($($name:ident: |$a:ident, $b:ident| $body:expr;)*) => {$(
        pub(super) struct $name;
        impl CompareOp for $name {
            #[inline(always)]
            fn apply<V: Float>($a: V, $b: V) -> V::Mask {
                $body
            }
        }
    )*};
}

compare_op! {
    Eq: |a, b| a.eq(b);
    Ne: |a, b| a.eq(b).not();
    Lt: |a, b| a.lt(b);
    Le: |a, b| a.le(b);
}

/// Runs a block for each part of `n` elements: for parts of `len`, then for the rest. The two are compiled apart, so that
/// whole parts wait for no count and use no masks.
macro_rules! each_part {
    ($n:expr, $len:expr, |$i:ident, $count:ident| $block:block) => {{
        let (n, len) = ($n, $len);
        let mut $i = 0;
        while $i + len <= n {
            let $count = len;
            $block
            $i += len;
        }
        if $i < n {
            let $count = n - $i;
            $block
        }
    }};
}
pub(super) use each_part;

/// Reads `n <= LEN` lanes.
#[inline(always)]
pub(super) unsafe fn load_up_to<V: Lanes>(p: *const V::Elem, n: usize) -> V {
    // SAFETY: kernels pass the number of elements that remain in the strip.
    unsafe { if n == V::LEN { V::load(p) } else { V::load_part(p, n) } }
}

/// Writes `n <= LEN` lanes.
#[inline(always)]
pub(super) unsafe fn store_up_to<V: Lanes>(x: V, p: *mut V::Elem, n: usize) {
    // SAFETY: as for `load_up_to`.
    unsafe { if n == V::LEN { x.store(p) } else { x.store_part(p, n) } }
}

/// A [`CompareOp`] over a strip, to words of 0 or 1.
pub(super) struct Compare<T, O>(PhantomData<(T, O)>);

impl<T: Math, O: CompareOp> StripKernel for Compare<T, O> {
    #[inline(always)]
    unsafe fn run<S: Simd>(dst: *mut u8, a: *const u8, b: *const u8, _: *const u8, _: [f64; 2], n: usize) {
        let (dst, a, b) = (dst.cast::<u32>(), a.cast::<T>(), b.cast::<T>());
        each_part!(n, T::Of::<S>::LEN, |i, count| {
            // SAFETY: `i + count <= n`.
            unsafe {
                let (x, y) = (load_up_to(a.add(i), count), load_up_to(b.add(i), count));
                T::Of::<S>::store_mask(O::apply::<T::Of<S>>(x, y), dst.add(i), count);
            }
        });
    }
}

/// 1 where the element is finite, 0 where it is infinite or NaN, as words.
pub(super) struct IsFinite<T>(PhantomData<T>);

impl<T: Math> StripKernel for IsFinite<T> {
    #[inline(always)]
    unsafe fn run<S: Simd>(dst: *mut u8, a: *const u8, _: *const u8, _: *const u8, _: [f64; 2], n: usize) {
        let (dst, a) = (dst.cast::<u32>(), a.cast::<T>());
        each_part!(n, T::Of::<S>::LEN, |i, count| {
            // SAFETY: `i + count <= n`.
            unsafe {
                let x: T::Of<S> = load_up_to(a.add(i), count);
                T::Of::<S>::store_mask(x.abs().lt(x.of(T::INFINITY)), dst.add(i), count);
            }
        });
    }
}

/// `b` where the word `a` is not 0, else `c`, both 64-bit.
pub(super) struct Select;

impl StripKernel for Select {
    #[inline(always)]
    unsafe fn run<S: Simd>(dst: *mut u8, a: *const u8, b: *const u8, c: *const u8, _: [f64; 2], n: usize) {
        let (dst, a, b, c) = (dst.cast::<f64>(), a.cast::<u32>(), b.cast::<f64>(), c.cast::<f64>());
        each_part!(n, S::F64::LEN, |i, count| {
            // SAFETY: `i + count <= n`.
            unsafe {
                let mask = S::F64::load_mask(a.add(i), count);
                let (x, y): (S::F64, S::F64) = (load_up_to(b.add(i), count), load_up_to(c.add(i), count));
                store_up_to(S::F64::select(mask, x, y), dst.add(i), count);
            }
        });
    }
}

/// `a^imm[0]` by the standard library, element by element.
pub(super) struct Powf<T>(PhantomData<T>);

impl<T: Math> StripKernel for Powf<T> {
    #[inline(always)]
    unsafe fn run<S: Simd>(dst: *mut u8, a: *const u8, _: *const u8, _: *const u8, imm: [f64; 2], n: usize) {
        let (dst, a, exponent) = (dst.cast::<T>(), a.cast::<T>(), T::from_f64(imm[0]));
        for i in 0..n {
            // SAFETY: `i < n`.
            unsafe { dst.add(i).write_unaligned(a.add(i).read_unaligned().scalar_powf(exponent)) };
        }
    }
}

/// The function `ScalarFn::ALL[imm[0]]`, in f64, one element after another: the same code at all levels.
///
/// # Safety
/// As for `StripFn`; `b` is read only if the function has two operands.
pub(super) unsafe fn scalar<T: Math>(
    dst: *mut u8,
    a: *const u8,
    b: *const u8,
    _: *const u8,
    imm: [f64; 2],
    n: usize,
) {
    let (dst, a, b) = (dst.cast::<T>(), a.cast::<T>(), b.cast::<T>());
    // SAFETY: `i < n` below.
    let read = |x: *const T, i: usize| unsafe { x.add(i).read_unaligned() }.to_f64();
    // SAFETY: as for `read`.
    let write = |i: usize, y: f64| unsafe { dst.add(i).write_unaligned(T::from_f64(y)) };
    match ScalarFn::ALL[imm[0] as usize].of() {
        Of::One(f) => (0..n).for_each(|i| write(i, f(read(a, i)))),
        Of::Two(f) => (0..n).for_each(|i| write(i, f(read(a, i), read(b, i)))),
    }
}
