//! Which instruction sets the machine has. It knows feature bits, never processor names: a hypervisor may
//! report a model whose name promises less, or more, than its bits.

use std::sync::OnceLock;

/// A set of instructions that kernels are compiled for, ordered from the plainest to the widest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Arrays of lanes that the compiler maps to what the target always has (SSE2, NEON, or scalars).
    Portable,
    /// x86-64 with AVX2 and FMA: 8 lanes of f32, 4 of f64.
    Avx2,
    /// x86-64 with AVX-512 F, DQ, BW and VL: 16 lanes of f32, 8 of f64, masks for the tails.
    Avx512,
}

impl Level {
    /// The best level of this machine. It is found once.
    #[inline]
    pub fn detect() -> Self {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(Self::find)
    }

    fn find() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            let avx2 = has!("avx2") && has!("fma");
            if avx2 && has!("avx512f") && has!("avx512dq") && has!("avx512bw") && has!("avx512vl") {
                return Self::Avx512;
            }
            if avx2 {
                return Self::Avx2;
            }
        }
        Self::Portable
    }

    /// Each level that this machine can run, plainest first. Tests force each in turn.
    pub fn available() -> Vec<Self> {
        let best = Self::detect();
        [Self::Portable, Self::Avx2, Self::Avx512].into_iter().filter(|&level| level <= best).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Level;

    #[test]
    fn the_detected_level_is_the_last_of_the_available_ones() {
        let all = Level::available();
        assert_eq!(all[0], Level::Portable);
        assert_eq!(*all.last().unwrap(), Level::detect());
    }
}
