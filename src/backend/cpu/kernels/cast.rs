//! Conversions between element types, as Rust's `as`: to an integer they truncate and saturate, NaN becomes
//! 0.
//!
//! The code uses plain arrays of 8 elements instead of lane intrinsics: casts are rare in comparison with
//! arithmetic, and each pair of types would need its own instructions. A block is read before it is written,
//! so the loop is correct in place and can be vectorized. One compiled copy serves all levels, except for u32
//! to f32, because SSE2 has no instruction for it. Compiled for AVX-512, such loops are vectorized again
//! across blocks, which made f32 to f64 four times slower.

use super::Elem;
use super::strip::{StripFn, StripKernel, StripOp, entry, strip};
use crate::simd::Level;
use crate::simd::lanes::Simd;

const BLOCK: usize = 8;

/// A conversion from `A` to `B`.
trait Convert<B>: Copy {
    fn convert(self) -> B;
}

macro_rules! convert {
    ($($a:ident => $($b:ident)*;)*) => {$($(
        impl Convert<$b> for $a {
            #[inline(always)]
            fn convert(self) -> $b {
                self as $b
            }
        }
    )*)*};
}

convert! {
    f32 => f64 i32 u32;
    f64 => f32 i32 u32;
    i32 => f32 f64;
    u32 => f32 f64;
}

/// Converts `n` elements.
///
/// # Safety
/// As for [`StripFn`].
#[inline(always)]
unsafe fn convert<A: Convert<B>, B: Copy + Default>(
    dst: *mut u8,
    a: *const u8,
    _b: *const u8,
    _c: *const u8,
    _imm: [f64; 2],
    n: usize,
) {
    let (dst, a) = (dst.cast::<B>(), a.cast::<A>());
    let mut i = 0;
    // SAFETY: offsets stay below `n`; a block is read whole before any of it is written.
    unsafe {
        while i + BLOCK <= n {
            let block = a.add(i).cast::<[A; BLOCK]>().read_unaligned();
            let mut converted = [B::default(); BLOCK];
            for (to, from) in converted.iter_mut().zip(block) {
                *to = from.convert();
            }
            dst.add(i).cast::<[B; BLOCK]>().write_unaligned(converted);
            i += BLOCK;
        }
        while i < n {
            dst.add(i).write_unaligned(a.add(i).read_unaligned().convert());
            i += 1;
        }
    }
}

/// u32 to f32.
struct Unsigned;

impl StripKernel for Unsigned {
    #[inline(always)]
    unsafe fn run<S: Simd>(dst: *mut u8, a: *const u8, b: *const u8, c: *const u8, imm: [f64; 2], n: usize) {
        // SAFETY: as for each kernel in the table of `cast`, the strip has `n` elements.
        unsafe { convert::<u32, f32>(dst, a, b, c, imm, n) }
    }
}

/// The kernel that converts `n` elements at `a` from type `from` to type `to`. `dst` may equal `a` if `to` is
/// not wider than `from`.
///
/// # Numerics
/// Float to integer truncates towards zero and saturates, and NaN becomes 0. Integer to float and f64 to f32
/// round to nearest even. Between the integer types the bits are unchanged.
pub fn cast(level: Level, from: Elem, to: Elem) -> StripFn {
    match (from, to) {
        (Elem::F32, Elem::F64) => convert::<f32, f64>,
        (Elem::F32, Elem::I32) => convert::<f32, i32>,
        (Elem::F32, Elem::U32) => convert::<f32, u32>,
        (Elem::F64, Elem::F32) => convert::<f64, f32>,
        (Elem::F64, Elem::I32) => convert::<f64, i32>,
        (Elem::F64, Elem::U32) => convert::<f64, u32>,
        (Elem::I32, Elem::F32) => convert::<i32, f32>,
        (Elem::I32, Elem::F64) => convert::<i32, f64>,
        (Elem::U32, Elem::F32) => entry::<Unsigned>(level),
        (Elem::U32, Elem::F64) => convert::<u32, f64>,
        (Elem::F64, Elem::F64) => strip(level, StripOp::Copy, Elem::F64),
        _ => strip(level, StripOp::Copy, Elem::U32),
    }
}
