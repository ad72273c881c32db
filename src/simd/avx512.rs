//! Lanes on AVX-512: 16 of f32 and u32, 8 of f64; masks are the k registers, tails use masked loads and stores.

use std::arch::x86_64::*;

use super::lanes::{Float, Int, Lanes, Mask, Simd};

/// The token of AVX-512 F, DQ, BW, VL (and AVX2, FMA).
#[derive(Clone, Copy)]
pub(crate) struct Avx512;

/// 16 lanes of f32.
#[derive(Clone, Copy)]
pub(crate) struct F32x16(__m512);
/// 8 lanes of f64.
#[derive(Clone, Copy)]
pub(crate) struct F64x8(__m512d);
/// 16 lanes of u32.
#[derive(Clone, Copy)]
pub(crate) struct U32x16(__m512i);

impl Simd for Avx512 {
    type F32 = F32x16;
    type F64 = F64x8;
    type U32 = U32x16;
    #[inline(always)]
    unsafe fn transpose_8x8(src: *const u32, lds: usize, dst: *mut u32, ldd: usize) {
        // SAFETY: as the caller promises; this level includes AVX2.
        unsafe { super::transpose::transpose_8x8(src, lds, dst, ldd) }
    }
    #[inline(always)]
    unsafe fn transpose_4x4(src: *const u64, lds: usize, dst: *mut u64, ldd: usize) {
        // SAFETY: as above.
        unsafe { super::transpose::transpose_4x4(src, lds, dst, ldd) }
    }
}

macro_rules! op {
    ($e:expr) => {
        // SAFETY: a lane value exists, or the caller of an unsafe constructor promised that the level is
        // available; memory is touched only where the caller of a load or store promised that it is valid.
        unsafe { $e }
    };
}

impl Mask for u16 {
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        self & other
    }
    #[inline(always)]
    fn not(self) -> Self {
        !self
    }
    #[inline(always)]
    fn any(self) -> bool {
        self != 0
    }
}

impl Mask for u8 {
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        self & other
    }
    #[inline(always)]
    fn not(self) -> Self {
        !self
    }
    #[inline(always)]
    fn any(self) -> bool {
        self != 0
    }
}

/// The mask of the first `n <= 16` lanes.
#[inline(always)]
fn first(n: usize) -> u16 {
    ((1u32 << n) - 1) as u16
}

macro_rules! lanes {
    ($t:ident, $elem:ty, $mask:ty, $len:expr, $set1:ident, $loadu:ident, $maskz_loadu:ident, $storeu:ident,
     $mask_storeu:ident, $blend:ident, |$x:ident, $y:ident| $eq:expr) => {
        impl Lanes for $t {
            type Elem = $elem;
            type Mask = $mask;
            const LEN: usize = $len;

            #[inline(always)]
            unsafe fn splat(x: $elem) -> Self {
                op!(Self($set1(x as _)))
            }
            #[inline(always)]
            unsafe fn load(p: *const $elem) -> Self {
                op!(Self($loadu(p.cast())))
            }
            #[inline(always)]
            unsafe fn load_part(p: *const $elem, n: usize) -> Self {
                op!(Self($maskz_loadu(first(n) as _, p.cast())))
            }
            #[inline(always)]
            unsafe fn store(self, p: *mut $elem) {
                op!($storeu(p.cast(), self.0))
            }
            #[inline(always)]
            unsafe fn store_part(self, p: *mut $elem, n: usize) {
                op!($mask_storeu(p.cast(), first(n) as _, self.0))
            }
            #[inline(always)]
            unsafe fn load_mask(p: *const u32, n: usize) -> $mask {
                op!({
                    let words = _mm512_maskz_loadu_epi32(first(n), p.cast());
                    _mm512_test_epi32_mask(words, words) as $mask
                })
            }
            #[inline(always)]
            unsafe fn store_mask(mask: $mask, p: *mut u32, n: usize) {
                op!(_mm512_mask_storeu_epi32(p.cast(), first(n), _mm512_maskz_set1_epi32(u16::from(mask), 1)))
            }
            #[inline(always)]
            fn select(mask: $mask, a: Self, b: Self) -> Self {
                op!(Self($blend(mask, b.0, a.0)))
            }
            #[inline(always)]
            fn eq(self, other: Self) -> $mask {
                let ($x, $y) = (self.0, other.0);
                op!($eq)
            }
        }
    };
}

lanes!(
    F32x16,
    f32,
    u16,
    16,
    _mm512_set1_ps,
    _mm512_loadu_ps,
    _mm512_maskz_loadu_ps,
    _mm512_storeu_ps,
    _mm512_mask_storeu_ps,
    _mm512_mask_blend_ps,
    |x, y| _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(x, y)
);
lanes!(
    F64x8,
    f64,
    u8,
    8,
    _mm512_set1_pd,
    _mm512_loadu_pd,
    _mm512_maskz_loadu_pd,
    _mm512_storeu_pd,
    _mm512_mask_storeu_pd,
    _mm512_mask_blend_pd,
    |x, y| _mm512_cmp_pd_mask::<_CMP_EQ_OQ>(x, y)
);
lanes!(
    U32x16,
    u32,
    u16,
    16,
    _mm512_set1_epi32,
    _mm512_loadu_epi32,
    _mm512_maskz_loadu_epi32,
    _mm512_storeu_epi32,
    _mm512_mask_storeu_epi32,
    _mm512_mask_blend_epi32,
    |x, y| _mm512_cmpeq_epi32_mask(x, y)
);

macro_rules! float {
    ($t:ident, $elem:ty, $int_set1:ident, $int:ty, add $add:ident, sub $sub:ident, mul $mul:ident, div $div:ident,
     fma $fma:ident, fnma $fnma:ident, sqrt $sqrt:ident, floor $floor:ident, min $min:ident, max $max:ident,
     cmp $cmp:ident, cast $to_int:ident $from_int:ident, shl $shl:ident, shr $shr:ident, iadd $iadd:ident,
     and $and:ident, or $or:ident, xor $xor:ident, scalef $scalef:ident) => {
        impl Float for $t {
            const FUSED: bool = true;

            #[inline(always)]
            fn add(self, other: Self) -> Self {
                op!(Self($add(self.0, other.0)))
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                op!(Self($sub(self.0, other.0)))
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                op!(Self($mul(self.0, other.0)))
            }
            #[inline(always)]
            fn div(self, other: Self) -> Self {
                op!(Self($div(self.0, other.0)))
            }
            #[inline(always)]
            fn mul_add(self, b: Self, c: Self) -> Self {
                op!(Self($fma(self.0, b.0, c.0)))
            }
            #[inline(always)]
            fn neg_mul_add(self, b: Self, c: Self) -> Self {
                op!(Self($fnma(self.0, b.0, c.0)))
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                op!(Self($sqrt(self.0)))
            }
            #[inline(always)]
            fn floor(self) -> Self {
                op!(Self($floor::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(self.0)))
            }
            #[inline(always)]
            fn at_most(self, bound: Self) -> Self {
                // The instruction returns its second operand if either is NaN.
                op!(Self($min(bound.0, self.0)))
            }
            #[inline(always)]
            fn at_least(self, bound: Self) -> Self {
                op!(Self($max(bound.0, self.0)))
            }
            #[inline(always)]
            fn lt(self, other: Self) -> Self::Mask {
                op!($cmp::<_CMP_LT_OQ>(self.0, other.0))
            }
            #[inline(always)]
            fn le(self, other: Self) -> Self::Mask {
                op!($cmp::<_CMP_LE_OQ>(self.0, other.0))
            }
            #[inline(always)]
            fn of_bits(self, bits: u64) -> Self {
                op!(Self($from_int($int_set1(bits as $int))))
            }
            #[inline(always)]
            fn bit_and(self, other: Self) -> Self {
                op!(Self($and(self.0, other.0)))
            }
            #[inline(always)]
            fn bit_or(self, other: Self) -> Self {
                op!(Self($or(self.0, other.0)))
            }
            #[inline(always)]
            fn bit_xor(self, other: Self) -> Self {
                op!(Self($xor(self.0, other.0)))
            }
            #[inline(always)]
            fn bits_shl(self, n: u32) -> Self {
                op!(Self($from_int($shl($to_int(self.0), _mm_cvtsi32_si128(n as i32)))))
            }
            #[inline(always)]
            fn bits_shr(self, n: u32) -> Self {
                op!(Self($from_int($shr($to_int(self.0), _mm_cvtsi32_si128(n as i32)))))
            }
            #[inline(always)]
            fn bits_add(self, other: Self) -> Self {
                op!(Self($from_int($iadd($to_int(self.0), $to_int(other.0)))))
            }
            #[inline(always)]
            fn scale(self, n: Self) -> Self {
                op!(Self($scalef(self.0, n.0)))
            }
        }
    };
}

float!(F32x16, f32, _mm512_set1_epi32, i32, add _mm512_add_ps, sub _mm512_sub_ps, mul _mm512_mul_ps,
    div _mm512_div_ps, fma _mm512_fmadd_ps, fnma _mm512_fnmadd_ps, sqrt _mm512_sqrt_ps,
    floor _mm512_roundscale_ps, min _mm512_min_ps, max _mm512_max_ps, cmp _mm512_cmp_ps_mask,
    cast _mm512_castps_si512 _mm512_castsi512_ps, shl _mm512_sll_epi32, shr _mm512_srl_epi32,
    iadd _mm512_add_epi32, and _mm512_and_ps, or _mm512_or_ps, xor _mm512_xor_ps, scalef _mm512_scalef_ps);
float!(F64x8, f64, _mm512_set1_epi64, i64, add _mm512_add_pd, sub _mm512_sub_pd, mul _mm512_mul_pd,
    div _mm512_div_pd, fma _mm512_fmadd_pd, fnma _mm512_fnmadd_pd, sqrt _mm512_sqrt_pd,
    floor _mm512_roundscale_pd, min _mm512_min_pd, max _mm512_max_pd, cmp _mm512_cmp_pd_mask,
    cast _mm512_castpd_si512 _mm512_castsi512_pd, shl _mm512_sll_epi64, shr _mm512_srl_epi64,
    iadd _mm512_add_epi64, and _mm512_and_pd, or _mm512_or_pd, xor _mm512_xor_pd, scalef _mm512_scalef_pd);

impl Int for U32x16 {
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        op!(Self(_mm512_add_epi32(self.0, other.0)))
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        op!(Self(_mm512_sub_epi32(self.0, other.0)))
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        op!(Self(_mm512_mullo_epi32(self.0, other.0)))
    }
    #[inline(always)]
    fn max(self, other: Self, signed: bool) -> Self {
        op!(Self(if signed { _mm512_max_epi32(self.0, other.0) } else { _mm512_max_epu32(self.0, other.0) }))
    }
    #[inline(always)]
    fn min(self, other: Self, signed: bool) -> Self {
        op!(Self(if signed { _mm512_min_epi32(self.0, other.0) } else { _mm512_min_epu32(self.0, other.0) }))
    }
    #[inline(always)]
    fn lt(self, other: Self, signed: bool) -> u16 {
        op!(if signed {
            _mm512_cmplt_epi32_mask(self.0, other.0)
        } else {
            _mm512_cmplt_epu32_mask(self.0, other.0)
        })
    }
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        op!(Self(_mm512_and_si512(self.0, other.0)))
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        op!(Self(_mm512_or_si512(self.0, other.0)))
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        op!(Self(_mm512_xor_si512(self.0, other.0)))
    }
    #[inline(always)]
    fn mul_wide(self, by: u32) -> (Self, Self) {
        op!({
            let by = _mm512_set1_epi64(i64::from(by));
            let even = _mm512_mul_epu32(self.0, by);
            let odd = _mm512_mul_epu32(_mm512_srli_epi64::<32>(self.0), by);
            let high = _mm512_mask_blend_epi32(0xAAAA, _mm512_srli_epi64::<32>(even), odd);
            let low = _mm512_mask_blend_epi32(0xAAAA, even, _mm512_slli_epi64::<32>(odd));
            (Self(high), Self(low))
        })
    }
    #[inline(always)]
    fn block_numbers(self, first: u32) -> Self {
        op!({
            let steps = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
            Self(_mm512_add_epi32(steps, _mm512_set1_epi32(first as i32)))
        })
    }
    #[inline(always)]
    unsafe fn store_blocks([a, b, c, d]: [Self; 4], p: *mut u32) {
        op!({
            let (ab, ab_high) = (_mm512_unpacklo_epi32(a.0, b.0), _mm512_unpackhi_epi32(a.0, b.0));
            let (cd, cd_high) = (_mm512_unpacklo_epi32(c.0, d.0), _mm512_unpackhi_epi32(c.0, d.0));
            Self(_mm512_unpacklo_epi64(ab, cd)).store(p);
            Self(_mm512_unpackhi_epi64(ab, cd)).store(p.add(16));
            Self(_mm512_unpacklo_epi64(ab_high, cd_high)).store(p.add(32));
            Self(_mm512_unpackhi_epi64(ab_high, cd_high)).store(p.add(48));
        });
    }
}
