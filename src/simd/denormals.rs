//! Flushes denormal numbers to zero as long as a guard exists.
//!
//! A product with a denormal operand takes about a hundred times as long as one of normal numbers. After some
//! ten thousand updates, the saturated units of a trained flow send cotangents of 1e-39 through every matrix
//! product: an update took 4.6 ms instead of 1.9 ms. Programs of tensors therefore run with flush-to-zero and
//! denormals-are-zero, as in other tensor libraries. Solves of plain Rust values do not.
//!
//! The mode belongs to a thread. It is restored when the guard is dropped, and suspended
//! ([`Denormals::kept`]) while a thread waits for others and may run other code. Under Miri, and on
//! architectures other than x86-64 and AArch64, the guard has no effect.

/// A guard for a floating-point mode of this thread. Dropping it restores the previous mode.
#[must_use]
pub(crate) struct Denormals {
    before: u64,
    now: u64,
}

impl Denormals {
    /// Denormal operands and results are treated as zero.
    #[inline]
    pub fn flushed() -> Self {
        Self::set(|mode| mode | FLUSH)
    }

    /// Denormals are not flushed, as in IEEE 754.
    #[inline]
    pub fn kept() -> Self {
        Self::set(|mode| mode & !FLUSH)
    }

    #[inline]
    fn set(change: impl Fn(u64) -> u64) -> Self {
        let before = read();
        let now = change(before);
        if now != before {
            write(now);
        }
        Denormals { before, now }
    }
}

impl Drop for Denormals {
    #[inline]
    fn drop(&mut self) {
        if self.now != self.before {
            write(self.before);
        }
    }
}

/// MXCSR's bits 15 (flush to zero) and 6 (denormals are zero).
#[cfg(all(target_arch = "x86_64", not(miri)))]
const FLUSH: u64 = 1 << 15 | 1 << 6;
/// FPCR's bit 24 (flush to zero, operands and results).
#[cfg(all(target_arch = "aarch64", not(miri)))]
const FLUSH: u64 = 1 << 24;
#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
const FLUSH: u64 = 0;

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn read() -> u64 {
    let mut mode = 0_u32;
    // SAFETY: it stores the four bytes of the register at `mode`.
    unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut mode, options(nostack, preserves_flags)) };
    u64::from(mode)
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn write(mode: u64) {
    let mode = mode as u32;
    // SAFETY: it loads the register from `mode`, which differs from the thread's value in two bits that are
    // defined on every x86-64 processor; rounding and exceptions are unchanged. Rust assumes the default
    // register value for the arithmetic that it compiles or folds itself. The kernels that run under the
    // guard load their operands from memory and store their results there. To the compiler, this block may
    // access memory too, so no load or store moves across it, and only denormal results of the kernels change.
    unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const mode, options(nostack, preserves_flags)) };
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline]
fn read() -> u64 {
    let mode: u64;
    // SAFETY: it reads the register.
    unsafe { std::arch::asm!("mrs {}, fpcr", out(reg) mode, options(nomem, nostack, preserves_flags)) };
    mode
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline]
fn write(mode: u64) {
    // SAFETY: as on x86-64, for one bit; without `nomem`, so that loads and stores do not move across the block.
    unsafe { std::arch::asm!("msr fpcr, {}", in(reg) mode, options(nostack, preserves_flags)) };
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn read() -> u64 {
    0
}
#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn write(_mode: u64) {}

#[cfg(test)]
mod tests {
    use super::{Denormals, FLUSH};
    use std::hint::black_box;

    #[test]
    fn a_guard_flushes_and_puts_the_mode_back() {
        let half = || black_box(f32::MIN_POSITIVE) * black_box(0.5);
        assert!(half() > 0.0);
        {
            let _flushed = Denormals::flushed();
            assert_eq!(half() == 0.0, FLUSH != 0);
            {
                let _kept = Denormals::kept();
                assert!(half() > 0.0);
            }
            assert_eq!(half() == 0.0, FLUSH != 0);
        }
        assert!(half() > 0.0);
    }
}
