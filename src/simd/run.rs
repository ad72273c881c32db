//! Safe code compiled for a level: how a whole loop over lanes gets the machine's widest instructions in a plain
//! build. It knows the feature names; it must never know what it runs.
//!
//! Beside `dispatch::enter`, whose tasks are kernels over the level's own types: this work is written over plain
//! arrays, has no level in its types, and needs no promise from its caller.

use super::Level;

/// Work that is compiled once for each level.
///
/// `run`, and everything that it calls on its hot path, must be `#[inline(always)]`: a function that stays a call
/// is compiled for the level of the whole crate, SSE2 on x86-64, and is several times slower without a word.
pub(crate) trait Work {
    /// What it gives.
    type Output;
    /// Does it.
    fn run(self) -> Self::Output;
}

/// Whether lanes have a product and sum in one rounding at this level. Without it each one is a call into the C
/// library, so work over lanes is not even compiled for such a level.
pub(crate) fn is_fused(level: Level) -> bool {
    level > Level::Portable || cfg!(any(target_arch = "aarch64", target_feature = "fma"))
}

/// Runs `work` with the instructions of `level`.
///
/// # Panics
/// Where this machine does not have the level, or the level is not [fused](is_fused).
pub(crate) fn run_at<W: Work>(level: Level, work: W) -> W::Output {
    assert!(level <= Level::detect(), "invariant: level {level:?} on a machine that does not have it");
    #[cfg(target_arch = "x86_64")]
    {
        match level {
            Level::Portable => {}
            Level::Avx2 => return run_at_avx2(work),
            Level::Avx512 => return run_at_avx512(work),
        }
    }
    run_portable(work)
}

/// [`run_at`] a [fused](is_fused) level, with no wider registers than AVX2 has: compiled once, and not for AVX-512 too.
///
/// # Panics
/// As [`run_at`].
pub(crate) fn run_narrow<W: Work>(level: Level, work: W) -> W::Output {
    assert!(level <= Level::detect(), "invariant: level {level:?} on a machine that does not have it");
    #[cfg(target_arch = "x86_64")]
    if level >= Level::Avx2 {
        return run_at_avx2(work);
    }
    run_portable(work)
}

/// [`run_at`] the level of AVX2 and FMA, compiled for no other.
#[cfg(target_arch = "x86_64")]
fn run_at_avx2<W: Work>(work: W) -> W::Output {
    #[target_feature(enable = "avx2,fma")]
    fn avx2<W: Work>(work: W) -> W::Output {
        work.run()
    }
    assert!(Level::detect() >= Level::Avx2, "invariant: AVX2 on a machine that does not have it");
    // SAFETY: the machine has the level, as the assertion says.
    unsafe { avx2(work) }
}

/// [`run_at`] the widest level, compiled for no other.
#[cfg(target_arch = "x86_64")]
pub(crate) fn run_at_avx512<W: Work>(work: W) -> W::Output {
    #[target_feature(enable = "avx2,fma,avx512f,avx512dq,avx512bw,avx512vl")]
    fn avx512<W: Work>(work: W) -> W::Output {
        work.run()
    }
    assert!(Level::detect() == Level::Avx512, "invariant: AVX-512 on a machine that does not have it");
    // SAFETY: the machine has the level, as the assertion says.
    unsafe { avx512(work) }
}

#[cfg(any(target_arch = "aarch64", target_feature = "fma"))]
fn run_portable<W: Work>(work: W) -> W::Output {
    work.run()
}
#[cfg(not(any(target_arch = "aarch64", target_feature = "fma")))]
fn run_portable<W: Work>(_work: W) -> W::Output {
    unreachable!("invariant: lanes at a level that is not fused")
}
