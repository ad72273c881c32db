//! The backend in use: the CPU, or the oracle for tests.
//!
//! In builds with debug assertions, and in tests, `FLOWLINE_BACKEND=oracle` runs every program on the reference
//! interpreter. Another value than `cpu` or `oracle` is an error. The variable is read once.

use super::cpu::Cpu;
use super::{Backend, Oracle};
use crate::simd::Level;
use std::sync::OnceLock;

/// The environment variable that chooses the backend.
#[cfg(any(debug_assertions, test))]
const VARIABLE: &str = "FLOWLINE_BACKEND";

/// The backend that compiles the programs of this process.
///
/// # Panics
/// If `FLOWLINE_LEVEL` or, where it is read, `FLOWLINE_BACKEND` has an invalid value.
pub fn current() -> &'static dyn Backend {
    static CURRENT: OnceLock<Box<dyn Backend>> = OnceLock::new();
    &**CURRENT.get_or_init(|| match is_oracle() {
        true => Box::new(Oracle),
        false => Box::new(Cpu::new(Level::detect())),
    })
}

/// Every optimizing backend that can run on this machine: the CPU at each level up to the one in use.
pub fn available() -> Vec<Box<dyn Backend>> {
    Level::available().into_iter().map(|level| Box::new(Cpu::new(level)) as Box<dyn Backend>).collect()
}

/// Whether the oracle runs the programs of this process.
#[cfg(any(debug_assertions, test))]
pub fn is_oracle() -> bool {
    static IS_ORACLE: OnceLock<bool> = OnceLock::new();
    let read = || named(&std::env::var_os(VARIABLE).unwrap_or_default().to_string_lossy());
    *IS_ORACLE.get_or_init(read)
}

/// Whether the oracle runs the programs of this process: never in a build without debug assertions.
#[cfg(not(any(debug_assertions, test)))]
pub fn is_oracle() -> bool {
    false
}

/// Whether this value of the variable names the oracle.
#[cfg(any(debug_assertions, test))]
fn named(value: &str) -> bool {
    match value {
        "" | "cpu" => false,
        "oracle" => true,
        other => panic!("{VARIABLE}={other} is not a backend; use cpu or oracle"),
    }
}

/// Whether a test must be skipped, because the oracle runs the programs and has no `what`.
#[cfg(test)]
pub(crate) fn oracle_lacks(what: &str) -> bool {
    if is_oracle() {
        println!("skipped: the oracle has no {what}");
    }
    is_oracle()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_names_a_backend() {
        assert_eq!(["", "cpu", "oracle"].map(named), [false, false, true]);
        assert!(std::panic::catch_unwind(|| named("gpu")).is_err());
        assert_eq!(current().name() == "oracle", is_oracle());
    }
}
