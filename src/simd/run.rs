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

/// Runs `work` with the instructions of `level`.
///
/// # Panics
/// Where this machine does not have the level.
pub(crate) fn run_at<W: Work>(level: Level, work: W) -> W::Output {
    assert!(level <= Level::detect(), "invariant: level {level:?} on a machine that does not have it");
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma")]
        fn avx2<W: Work>(work: W) -> W::Output {
            work.run()
        }
        #[target_feature(enable = "avx2,fma,avx512f,avx512dq,avx512bw,avx512vl")]
        fn avx512<W: Work>(work: W) -> W::Output {
            work.run()
        }
        match level {
            Level::Portable => {}
            // SAFETY: the machine has the level, as the assertion above says.
            Level::Avx2 => return unsafe { avx2(work) },
            // SAFETY: as above.
            Level::Avx512 => return unsafe { avx512(work) },
        }
    }
    work.run()
}
