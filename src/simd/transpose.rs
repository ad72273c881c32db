//! Transposes of blocks with rows of 256 bits on x86-64, by shuffles within 128-bit halves. AVX2 and AVX-512
//! both use them, because 256-bit shuffles run on two ports and 512-bit shuffles on one port.

use std::arch::x86_64::*;

/// Four words of row `i`, then four words of row `i + 4`.
#[inline(always)]
unsafe fn row_pair_4(src: *const f32, lds: usize, i: usize) -> __m256 {
    // SAFETY: the caller promises that the rows are readable and that AVX is available.
    unsafe {
        let low = _mm256_castps128_ps256(_mm_loadu_ps(src.add(i * lds)));
        _mm256_insertf128_ps::<1>(low, _mm_loadu_ps(src.add((i + 4) * lds)))
    }
}

/// Two double words of row `i`, then two of row `i + 2`.
#[inline(always)]
unsafe fn row_pair_8(src: *const f64, lds: usize, i: usize) -> __m256d {
    // SAFETY: the caller promises that the rows are readable and that AVX is available.
    unsafe {
        let low = _mm256_castpd128_pd256(_mm_loadu_pd(src.add(i * lds)));
        _mm256_insertf128_pd::<1>(low, _mm_loadu_pd(src.add((i + 2) * lds)))
    }
}

/// Transposes an 8 x 8 block of words. Halves of rows `i` and `i + 4` are loaded into one register, so that
/// all shuffles are within 128-bit halves.
///
/// # Safety
/// Both blocks are valid, and AVX2 is available.
#[inline(always)]
pub(super) unsafe fn transpose_8x8(src: *const u32, lds: usize, dst: *mut u32, ldd: usize) {
    let (src, dst) = (src.cast::<f32>(), dst.cast::<f32>());
    // SAFETY: the caller promises 8 rows of 8 words on both sides.
    unsafe {
        for half in 0..2 {
            let at = src.add(4 * half);
            let (r0, r1) = (row_pair_4(at, lds, 0), row_pair_4(at, lds, 1));
            let (r2, r3) = (row_pair_4(at, lds, 2), row_pair_4(at, lds, 3));
            let (t0, t1) = (_mm256_unpacklo_ps(r0, r1), _mm256_unpackhi_ps(r0, r1));
            let (t2, t3) = (_mm256_unpacklo_ps(r2, r3), _mm256_unpackhi_ps(r2, r3));
            let out = dst.add(4 * half * ldd);
            _mm256_storeu_ps(out, _mm256_shuffle_ps::<0x44>(t0, t2));
            _mm256_storeu_ps(out.add(ldd), _mm256_shuffle_ps::<0xEE>(t0, t2));
            _mm256_storeu_ps(out.add(2 * ldd), _mm256_shuffle_ps::<0x44>(t1, t3));
            _mm256_storeu_ps(out.add(3 * ldd), _mm256_shuffle_ps::<0xEE>(t1, t3));
        }
    }
}

/// Transposes a 4 x 4 block of double words in the same way.
///
/// # Safety
/// Both blocks are valid, and AVX2 is available.
#[inline(always)]
pub(super) unsafe fn transpose_4x4(src: *const u64, lds: usize, dst: *mut u64, ldd: usize) {
    let (src, dst) = (src.cast::<f64>(), dst.cast::<f64>());
    // SAFETY: the caller promises 4 rows of 4 double words on both sides.
    unsafe {
        for half in 0..2 {
            let at = src.add(2 * half);
            let (r0, r1) = (row_pair_8(at, lds, 0), row_pair_8(at, lds, 1));
            let out = dst.add(2 * half * ldd);
            _mm256_storeu_pd(out, _mm256_unpacklo_pd(r0, r1));
            _mm256_storeu_pd(out.add(ldd), _mm256_unpackhi_pd(r0, r1));
        }
    }
}
