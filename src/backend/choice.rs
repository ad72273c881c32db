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
    &**CURRENT.get_or_init(|| match choice() {
        Choice::Cpu => Box::new(Cpu::new(Level::detect())),
        Choice::Oracle => Box::new(Oracle),
    })
}

/// Every optimizing backend that can run on this machine: the CPU at each level up to the one in use.
pub fn available() -> Vec<Box<dyn Backend>> {
    Level::available().into_iter().map(|level| Box::new(Cpu::new(level)) as Box<dyn Backend>).collect()
}

/// A backend that can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Cpu,
    #[cfg_attr(not(any(debug_assertions, test)), expect(dead_code, reason = "only tests choose the oracle"))]
    Oracle,
}

/// The backend that the environment variable names.
#[cfg(any(debug_assertions, test))]
fn choice() -> Choice {
    static CHOICE: OnceLock<Choice> = OnceLock::new();
    *CHOICE.get_or_init(|| named(&std::env::var_os(VARIABLE).unwrap_or_default().to_string_lossy()))
}

/// The CPU: other builds do not read the variable.
#[cfg(not(any(debug_assertions, test)))]
fn choice() -> Choice {
    Choice::Cpu
}

/// The backend that a value of the variable names.
#[cfg(any(debug_assertions, test))]
fn named(value: &str) -> Choice {
    match value {
        "" | "cpu" => Choice::Cpu,
        "oracle" => Choice::Oracle,
        other => panic!("{VARIABLE}={other} is not a backend; use cpu or oracle"),
    }
}

/// Whether a test must be skipped, because the oracle runs the programs and has no `what`.
#[cfg(test)]
pub(crate) fn oracle_lacks(what: &str) -> bool {
    let lacks = choice() == Choice::Oracle;
    if lacks {
        println!("skipped: the oracle has no {what}");
    }
    lacks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_names_a_backend() {
        assert_eq!(["", "cpu", "oracle"].map(named), [Choice::Cpu, Choice::Cpu, Choice::Oracle]);
        assert!(std::panic::catch_unwind(|| named("gpu")).is_err());
        let is_asked = std::env::var(VARIABLE).is_ok_and(|value| value == "oracle");
        assert_eq!(current().name() == "oracle", is_asked);
    }
}
