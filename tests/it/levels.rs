//! `FLOWLINE_LEVEL` sets the instruction level. A process reads it once, so each value is tested in a new process.

use flowline::__internal::simd::Level;
use flowline::prelude::*;
use std::env;
use std::process::{Command, Output};

/// The variable under test.
const LEVEL: &str = "FLOWLINE_LEVEL";

/// Runs one test of this binary at a level.
fn child(test: &str, level: &str) -> Output {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(LEVEL, level).output().unwrap()
}

/// The bits of the end state of a solve. Its last digits depend on whether multiply-adds round once.
fn end(level: Option<Level>) -> [u64; 3] {
    let lorenz = |_t: f64, y: &[f64; 3]| {
        [10.0 * (y[1] - y[0]), y[0] * (28.0 - y[2]) - y[1], y[0] * y[1] - 8.0 / 3.0 * y[2]]
    };
    let ode = Ode::new(lorenz).rtol(1e-9).atol(1e-9);
    let ode = if let Some(level) = level { ode.level(level) } else { ode };
    ode.solve(0.0, 3.0, [1.0; 3]).unwrap().y1.map(f64::to_bits)
}

#[test]
fn a_solve_without_a_level_uses_the_level_in_force() {
    let level = Level::detect();
    if let Ok(asked) = env::var(LEVEL) {
        assert_eq!(level.to_string(), asked);
    }
    assert_eq!(end(None), end(Some(level)));
    println!("the end is {:x?}", end(None));
}

#[test]
fn a_process_at_each_level_solves_with_that_levels_instructions() {
    let name = "levels::a_solve_without_a_level_uses_the_level_in_force";
    for level in Level::available() {
        let output = child(name, &level.to_string());
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && printed.contains("1 passed"), "{level}: {printed}");
        if level > Level::Portable && cfg!(not(target_feature = "fma")) {
            assert_ne!(end(Some(level)), end(Some(Level::Portable)), "the test distinguishes levels");
        }
        let want = format!("the end is {:x?}", end(Some(level)));
        assert!(printed.contains(&want), "{level}: {want} is missing in {printed}");
    }
}

#[test]
fn the_first_use_of_an_unknown_level_panics_with_its_name() {
    let output = child("levels::a_solve_without_a_level_uses_the_level_in_force", "sse9");
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && printed.contains("FLOWLINE_LEVEL=sse9 is not a level"), "{printed}");
}
