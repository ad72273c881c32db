//! Requests memory before it is needed.
//!
//! A prefetch is a hint: it changes no value and is allowed for any address.

/// Bytes of a cache line.
const LINE: usize = 64;

/// Requests that the `bytes` bytes from `at` on are loaded into the cache, possibly without the last line if
/// `at` is not the start of a line. Without effect on other targets than x86-64, and under Miri.
#[inline]
pub(crate) fn prefetch(at: *const u8, bytes: usize) {
    for offset in (0..bytes).step_by(LINE) {
        line(at.wrapping_add(offset));
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn line(at: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: every x86-64 machine has the instruction, and it does nothing for an invalid address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
}

#[cfg(any(miri, not(target_arch = "x86_64")))]
#[inline]
fn line(_at: *const u8) {}
