//! Conversions between element types. It knows Rust's `as`: to an integer truncates and saturates, NaN to 0.
//!
//! Plain arrays of 8 and not lane intrinsics: casts are rare beside arithmetic, each pair would need its own
//! instructions, and reading a block before writing it keeps in-place use right and vectorised.

use std::marker::PhantomData;

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

struct Cast<A, B>(PhantomData<(A, B)>);

impl<A: Convert<B>, B: Copy + Default> StripKernel for Cast<A, B> {
    #[inline(always)]
    unsafe fn run<S: Simd>(
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
}

/// The kernel that converts `n` elements at `a` of type `from` to `to`, in place if `to` is no wider.
///
/// # Numerics
/// Float to integer truncates towards zero and saturates, NaN gives 0; integer to float and f64 to f32 round to
/// nearest even; between the integers the bits stay.
pub fn cast(level: Level, from: Elem, to: Elem) -> StripFn {
    match (from, to) {
        (Elem::F32, Elem::F64) => entry::<Cast<f32, f64>>(level),
        (Elem::F32, Elem::I32) => entry::<Cast<f32, i32>>(level),
        (Elem::F32, Elem::U32) => entry::<Cast<f32, u32>>(level),
        (Elem::F64, Elem::F32) => entry::<Cast<f64, f32>>(level),
        (Elem::F64, Elem::I32) => entry::<Cast<f64, i32>>(level),
        (Elem::F64, Elem::U32) => entry::<Cast<f64, u32>>(level),
        (Elem::I32, Elem::F32) => entry::<Cast<i32, f32>>(level),
        (Elem::I32, Elem::F64) => entry::<Cast<i32, f64>>(level),
        (Elem::U32, Elem::F32) => entry::<Cast<u32, f32>>(level),
        (Elem::U32, Elem::F64) => entry::<Cast<u32, f64>>(level),
        (Elem::F64, Elem::F64) => strip(level, StripOp::Copy, Elem::F64),
        _ => strip(level, StripOp::Copy, Elem::U32),
    }
}
