//! Lanes on AVX2 with FMA: 8 of f32 and u32, 4 of f64; masks are full registers, tails use masked loads and
//! stores.

use std::arch::x86_64::*;

use super::lanes::{Float, Int, Lanes, Mask, Simd};
use super::transpose;

macro_rules! op {
    ($e:expr) => {
        // SAFETY: a lane value exists, or the caller of an unsafe constructor promised that the level is
        // available; memory is touched only where the caller of a load or store promised that it is valid.
        unsafe { $e }
    };
}

/// The token of AVX2 and FMA.
#[derive(Clone, Copy)]
pub(crate) struct Avx2;

/// 8 lanes of f32.
#[derive(Clone, Copy)]
pub(crate) struct F32x8(__m256);
/// 4 lanes of f64.
#[derive(Clone, Copy)]
pub(crate) struct F64x4(__m256d);
/// 8 lanes of u32.
#[derive(Clone, Copy)]
pub(crate) struct U32x8(__m256i);
/// All ones or all zeros in each 32-bit lane.
#[derive(Clone, Copy)]
pub(crate) struct Mask32x8(__m256);
/// All ones or all zeros in each 64-bit lane.
#[derive(Clone, Copy)]
pub(crate) struct Mask64x4(__m256d);

impl Simd for Avx2 {
    type F32 = F32x8;
    type F64 = F64x4;
    type U32 = U32x8;
    #[inline(always)]
    unsafe fn transpose_8x8(src: *const u32, lds: usize, dst: *mut u32, ldd: usize) {
        // SAFETY: as the caller promises.
        unsafe { transpose::transpose_8x8(src, lds, dst, ldd) }
    }
    #[inline(always)]
    unsafe fn transpose_4x4(src: *const u64, lds: usize, dst: *mut u64, ldd: usize) {
        // SAFETY: as the caller promises.
        unsafe { transpose::transpose_4x4(src, lds, dst, ldd) }
    }
}

macro_rules! mask {
    ($t:ident, $and:ident, $xor:ident, $cast:ident, $movemask:ident) => {
        impl Mask for $t {
            #[inline(always)]
            fn and(self, other: Self) -> Self {
                op!(Self($and(self.0, other.0)))
            }
            #[inline(always)]
            fn not(self) -> Self {
                op!(Self($xor(self.0, $cast(_mm256_set1_epi32(-1)))))
            }
            #[inline(always)]
            fn any(self) -> bool {
                op!($movemask(self.0) != 0)
            }
        }
    };
}

mask!(Mask32x8, _mm256_and_ps, _mm256_xor_ps, _mm256_castsi256_ps, _mm256_movemask_ps);
mask!(Mask64x4, _mm256_and_pd, _mm256_xor_pd, _mm256_castsi256_pd, _mm256_movemask_pd);

/// All ones in the first `n <= 8` 32-bit lanes.
#[inline(always)]
unsafe fn first32(n: usize) -> __m256i {
    op!(_mm256_cmpgt_epi32(_mm256_set1_epi32(n as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)))
}

/// All ones in the first `n <= 4` 64-bit lanes.
#[inline(always)]
unsafe fn first64(n: usize) -> __m256i {
    op!(_mm256_cmpgt_epi64(_mm256_set1_epi64x(n as i64), _mm256_setr_epi64x(0, 1, 2, 3)))
}

/// All ones in the first `n <= 4` 32-bit lanes.
#[inline(always)]
unsafe fn first32_half(n: usize) -> __m128i {
    op!(_mm_cmpgt_epi32(_mm_set1_epi32(n as i32), _mm_setr_epi32(0, 1, 2, 3)))
}

macro_rules! mask32 {
    () => {
        #[inline(always)]
        unsafe fn load_mask(p: *const u32, n: usize) -> Mask32x8 {
            op!({
                let words = if n == 8 {
                    _mm256_loadu_si256(p.cast())
                } else {
                    _mm256_maskload_epi32(p.cast(), first32(n))
                };
                Mask32x8(_mm256_castsi256_ps(_mm256_cmpeq_epi32(words, _mm256_setzero_si256()))).not()
            })
        }
        #[inline(always)]
        unsafe fn store_mask(mask: Mask32x8, p: *mut u32, n: usize) {
            op!({
                let words = _mm256_srli_epi32::<31>(_mm256_castps_si256(mask.0));
                if n == 8 {
                    _mm256_storeu_si256(p.cast(), words);
                } else {
                    _mm256_maskstore_epi32(p.cast(), first32(n), words);
                }
            });
        }
    };
}

macro_rules! moves {
    ($elem:ty, $set1:ident, $load:ident, $maskload:ident, $store:ident, $maskstore:ident, $first:ident) => {
        #[inline(always)]
        unsafe fn splat(x: $elem) -> Self {
            op!(Self($set1(x as _)))
        }
        #[inline(always)]
        unsafe fn load(p: *const $elem) -> Self {
            op!(Self($load(p.cast())))
        }
        #[inline(always)]
        unsafe fn load_part(p: *const $elem, n: usize) -> Self {
            op!(Self($maskload(p.cast(), $first(n))))
        }
        #[inline(always)]
        unsafe fn store(self, p: *mut $elem) {
            op!($store(p.cast(), self.0));
        }
        #[inline(always)]
        unsafe fn store_part(self, p: *mut $elem, n: usize) {
            op!($maskstore(p.cast(), $first(n), self.0));
        }
    };
}

impl Lanes for F32x8 {
    type Elem = f32;
    type Mask = Mask32x8;
    const LEN: usize = 8;

    moves!(
        f32,
        _mm256_set1_ps,
        _mm256_loadu_ps,
        _mm256_maskload_ps,
        _mm256_storeu_ps,
        _mm256_maskstore_ps,
        first32
    );
    mask32!();
    #[inline(always)]
    fn select(mask: Mask32x8, a: Self, b: Self) -> Self {
        op!(Self(_mm256_blendv_ps(b.0, a.0, mask.0)))
    }
    #[inline(always)]
    fn eq(self, other: Self) -> Mask32x8 {
        op!(Mask32x8(_mm256_cmp_ps::<_CMP_EQ_OQ>(self.0, other.0)))
    }
}

impl Lanes for F64x4 {
    type Elem = f64;
    type Mask = Mask64x4;
    const LEN: usize = 4;

    moves!(
        f64,
        _mm256_set1_pd,
        _mm256_loadu_pd,
        _mm256_maskload_pd,
        _mm256_storeu_pd,
        _mm256_maskstore_pd,
        first64
    );
    #[inline(always)]
    unsafe fn load_mask(p: *const u32, n: usize) -> Mask64x4 {
        op!({
            let words = if n == 4 {
                _mm_loadu_si128(p.cast())
            } else {
                _mm_maskload_epi32(p.cast(), first32_half(n))
            };
            let words = _mm256_cvtepu32_epi64(words);
            Mask64x4(_mm256_castsi256_pd(_mm256_cmpeq_epi64(words, _mm256_setzero_si256()))).not()
        })
    }
    #[inline(always)]
    unsafe fn store_mask(mask: Mask64x4, p: *mut u32, n: usize) {
        op!({
            let even = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
            let words = _mm256_permutevar8x32_epi32(_mm256_castpd_si256(mask.0), even);
            let ones = _mm_srli_epi32::<31>(_mm256_castsi256_si128(words));
            if n == 4 {
                _mm_storeu_si128(p.cast(), ones);
            } else {
                _mm_maskstore_epi32(p.cast(), first32_half(n), ones);
            }
        });
    }
    #[inline(always)]
    fn select(mask: Mask64x4, a: Self, b: Self) -> Self {
        op!(Self(_mm256_blendv_pd(b.0, a.0, mask.0)))
    }
    #[inline(always)]
    fn eq(self, other: Self) -> Mask64x4 {
        op!(Mask64x4(_mm256_cmp_pd::<_CMP_EQ_OQ>(self.0, other.0)))
    }
}

impl Lanes for U32x8 {
    type Elem = u32;
    type Mask = Mask32x8;
    const LEN: usize = 8;

    moves!(
        u32,
        _mm256_set1_epi32,
        _mm256_loadu_si256,
        _mm256_maskload_epi32,
        _mm256_storeu_si256,
        _mm256_maskstore_epi32,
        first32
    );
    mask32!();
    #[inline(always)]
    fn select(mask: Mask32x8, a: Self, b: Self) -> Self {
        op!({
            let blended = _mm256_blendv_ps(_mm256_castsi256_ps(b.0), _mm256_castsi256_ps(a.0), mask.0);
            Self(_mm256_castps_si256(blended))
        })
    }
    #[inline(always)]
    fn eq(self, other: Self) -> Mask32x8 {
        op!(Mask32x8(_mm256_castsi256_ps(_mm256_cmpeq_epi32(self.0, other.0))))
    }
}

macro_rules! float {
    ($t:ident, $mask:ident, $int_set1:ident, $int:ty, add $add:ident, sub $sub:ident, mul $mul:ident,
     div $div:ident, fma $fma:ident, fnma $fnma:ident, sqrt $sqrt:ident, floor $floor:ident, min $min:ident,
     max $max:ident, cmp $cmp:ident, cast $to_int:ident $from_int:ident, shl $shl:ident, shr $shr:ident,
     iadd $iadd:ident, and $and:ident, or $or:ident, xor $xor:ident) => {
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
                op!(Self($floor(self.0)))
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
            fn lt(self, other: Self) -> $mask {
                op!($mask($cmp::<_CMP_LT_OQ>(self.0, other.0)))
            }
            #[inline(always)]
            fn le(self, other: Self) -> $mask {
                op!($mask($cmp::<_CMP_LE_OQ>(self.0, other.0)))
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
        }
    };
}

float!(F32x8, Mask32x8, _mm256_set1_epi32, i32, add _mm256_add_ps, sub _mm256_sub_ps, mul _mm256_mul_ps,
    div _mm256_div_ps, fma _mm256_fmadd_ps, fnma _mm256_fnmadd_ps, sqrt _mm256_sqrt_ps, floor _mm256_floor_ps,
    min _mm256_min_ps, max _mm256_max_ps, cmp _mm256_cmp_ps, cast _mm256_castps_si256 _mm256_castsi256_ps,
    shl _mm256_sll_epi32, shr _mm256_srl_epi32, iadd _mm256_add_epi32, and _mm256_and_ps, or _mm256_or_ps,
    xor _mm256_xor_ps);
float!(F64x4, Mask64x4, _mm256_set1_epi64x, i64, add _mm256_add_pd, sub _mm256_sub_pd, mul _mm256_mul_pd,
    div _mm256_div_pd, fma _mm256_fmadd_pd, fnma _mm256_fnmadd_pd, sqrt _mm256_sqrt_pd, floor _mm256_floor_pd,
    min _mm256_min_pd, max _mm256_max_pd, cmp _mm256_cmp_pd, cast _mm256_castpd_si256 _mm256_castsi256_pd,
    shl _mm256_sll_epi64, shr _mm256_srl_epi64, iadd _mm256_add_epi64, and _mm256_and_pd, or _mm256_or_pd,
    xor _mm256_xor_pd);

impl Int for U32x8 {
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        op!(Self(_mm256_add_epi32(self.0, other.0)))
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        op!(Self(_mm256_sub_epi32(self.0, other.0)))
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        op!(Self(_mm256_mullo_epi32(self.0, other.0)))
    }
    #[inline(always)]
    fn max(self, other: Self, signed: bool) -> Self {
        op!(Self(if signed { _mm256_max_epi32(self.0, other.0) } else { _mm256_max_epu32(self.0, other.0) }))
    }
    #[inline(always)]
    fn min(self, other: Self, signed: bool) -> Self {
        op!(Self(if signed { _mm256_min_epi32(self.0, other.0) } else { _mm256_min_epu32(self.0, other.0) }))
    }
    #[inline(always)]
    fn lt(self, other: Self, signed: bool) -> Mask32x8 {
        op!({
            // There is only a signed comparison: flipping the top bits maps the unsigned order to the signed
            // order.
            let flip = _mm256_set1_epi32(if signed { 0 } else { i32::MIN });
            let (x, y) = (_mm256_xor_si256(self.0, flip), _mm256_xor_si256(other.0, flip));
            Mask32x8(_mm256_castsi256_ps(_mm256_cmpgt_epi32(y, x)))
        })
    }
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        op!(Self(_mm256_and_si256(self.0, other.0)))
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        op!(Self(_mm256_or_si256(self.0, other.0)))
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        op!(Self(_mm256_xor_si256(self.0, other.0)))
    }
    #[inline(always)]
    fn mul_wide(self, by: u32) -> (Self, Self) {
        op!({
            let by = _mm256_set1_epi64x(i64::from(by));
            let even = _mm256_mul_epu32(self.0, by);
            let odd = _mm256_mul_epu32(_mm256_srli_epi64::<32>(self.0), by);
            let high = _mm256_blend_epi32::<0xAA>(_mm256_srli_epi64::<32>(even), odd);
            let low = _mm256_blend_epi32::<0xAA>(even, _mm256_slli_epi64::<32>(odd));
            (Self(high), Self(low))
        })
    }
    #[inline(always)]
    fn block_numbers(self, first: u32) -> Self {
        op!({
            let steps = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
            Self(_mm256_add_epi32(steps, _mm256_set1_epi32(first as i32)))
        })
    }
    #[inline(always)]
    unsafe fn store_blocks([a, b, c, d]: [Self; 4], p: *mut u32) {
        op!({
            let (ab, ab_high) = (_mm256_unpacklo_epi32(a.0, b.0), _mm256_unpackhi_epi32(a.0, b.0));
            let (cd, cd_high) = (_mm256_unpacklo_epi32(c.0, d.0), _mm256_unpackhi_epi32(c.0, d.0));
            Self(_mm256_unpacklo_epi64(ab, cd)).store(p);
            Self(_mm256_unpackhi_epi64(ab, cd)).store(p.add(8));
            Self(_mm256_unpacklo_epi64(ab_high, cd_high)).store(p.add(16));
            Self(_mm256_unpackhi_epi64(ab_high, cd_high)).store(p.add(24));
        });
    }
}
