//! The instruction sets used: the best that the machine has, or a lower level set by `FLOWLINE_LEVEL`. The
//! detection reads feature bits, not processor names, because a hypervisor may report a model name that does
//! not match the feature bits.
//!
//! `FLOWLINE_LEVEL=portable`, `avx2` or `avx512` limits the level of all code that is selected at run time:
//! kernels, lanes, loops over steps of plain Rust values and the vector fields that they call.
//! [`Level::detect`] reads the variable at its first call. A level that the machine does not have is an
//! error, and is not replaced by a lower one. The variable is for tests at each level, for sanitizers, and
//! for results that are bitwise equal on machines with and without FMA.

use std::fmt;
use std::sync::OnceLock;

/// The environment variable that limits the level.
const VARIABLE: &str = "FLOWLINE_LEVEL";

/// A set of instructions that kernels are compiled for, ordered from the simplest to the widest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Arrays of lanes that the compiler maps to the instructions of its target (SSE2, NEON, or scalars).
    Portable,
    /// x86-64 with AVX2 and FMA: 8 lanes of f32, 4 of f64.
    Avx2,
    /// x86-64 with AVX-512 F, DQ, BW and VL: 16 lanes of f32, 8 of f64, masks for the tails.
    Avx512,
}

/// An invalid value of `FLOWLINE_LEVEL`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LevelError {
    /// Not the name of a level.
    #[error(
        "FLOWLINE_LEVEL={value} is not a level; use one of portable, avx2, avx512 (this machine supports up to {best})"
    )]
    Unknown {
        /// The value of the variable.
        value: String,
        /// The best level of the machine.
        best: Level,
    },
    /// A level that the machine does not have.
    #[error("FLOWLINE_LEVEL={asked} is not supported by this machine; its best level is {best}")]
    Missing {
        /// The requested level.
        asked: Level,
        /// The best level of the machine.
        best: Level,
    },
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        })
    }
}

impl Level {
    /// Every level, simplest first.
    const ALL: [Self; 3] = [Self::Portable, Self::Avx2, Self::Avx512];

    /// The level in use: the best of this machine, or a lower one from `FLOWLINE_LEVEL`. It is computed once.
    ///
    /// # Panics
    /// If [`try_detect`](Self::try_detect) returns an error.
    #[inline]
    pub fn detect() -> Self {
        static IN_FORCE: OnceLock<Level> = OnceLock::new();
        *IN_FORCE.get_or_init(|| Self::try_detect().unwrap_or_else(|e| panic!("{e}")))
    }

    /// The level in use, for programs that report an invalid `FLOWLINE_LEVEL` themselves.
    ///
    /// # Errors
    /// If `FLOWLINE_LEVEL` is not the name of a level, or names a level that the machine does not have.
    pub fn try_detect() -> Result<Self, LevelError> {
        let asked = std::env::var_os(VARIABLE).map(|value| value.to_string_lossy().into_owned());
        Self::capped(Self::find(), asked.as_deref())
    }

    /// The level in use on a machine whose best level is `best`; an empty value is ignored.
    fn capped(best: Self, asked: Option<&str>) -> Result<Self, LevelError> {
        let Some(value) = asked.filter(|value| !value.is_empty()) else { return Ok(best) };
        let named = Self::ALL.into_iter().find(|level| level.to_string() == value);
        let asked = named.ok_or_else(|| LevelError::Unknown { value: value.to_owned(), best })?;
        if asked > best { Err(LevelError::Missing { asked, best }) } else { Ok(asked) }
    }

    /// The best level of this machine.
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

    /// Each level up to the one in use, simplest first, for tests and benchmarks that run all of them.
    pub fn available() -> Vec<Self> {
        let best = Self::detect();
        Self::ALL.into_iter().filter(|&level| level <= best).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Level, LevelError};

    #[test]
    fn a_level_that_is_asked_for_caps_the_machines_best() {
        use Level::{Avx2, Avx512, Portable};
        for best in Level::ALL {
            assert_eq!(Level::capped(best, None), Ok(best));
            assert_eq!(Level::capped(best, Some("")), Ok(best));
            assert_eq!(Level::capped(best, Some("portable")), Ok(Portable));
        }
        assert_eq!(Level::capped(Avx512, Some("avx2")), Ok(Avx2));
        assert_eq!(Level::capped(Avx512, Some("avx512")), Ok(Avx512));
        for (asked, best) in [(Avx512, Avx2), (Avx512, Portable), (Avx2, Portable)] {
            assert_eq!(
                Level::capped(best, Some(&asked.to_string())),
                Err(LevelError::Missing { asked, best })
            );
        }
        for word in ["AVX2", "sse2", " avx2"] {
            let refused = LevelError::Unknown { value: word.to_owned(), best: Avx2 };
            assert_eq!(Level::capped(Avx2, Some(word)), Err(refused));
        }
    }

    #[test]
    fn the_level_that_is_asked_for_is_there() {
        let asked = std::env::var(super::VARIABLE).unwrap_or_default();
        assert!(asked.is_empty() || Level::detect().to_string() == asked);
    }

    #[test]
    fn messages_name_the_variable_its_value_and_what_the_machine_has() {
        let [unknown, missing] =
            ["sse9", "avx512"].map(|word| Level::capped(Level::Avx2, Some(word)).unwrap_err());
        assert_eq!(
            unknown.to_string(),
            "FLOWLINE_LEVEL=sse9 is not a level; use one of portable, avx2, avx512 (this machine supports up to avx2)"
        );
        assert_eq!(
            missing.to_string(),
            "FLOWLINE_LEVEL=avx512 is not supported by this machine; its best level is avx2"
        );
    }
}
