//! `FLOWLINE_LEVEL` sets the instruction level; a level that the machine lacks is refused.

use crate::place::{Place, SMALL, json, text};
use flowline::__internal::simd::Level;
use std::process::Output;

/// Runs the program at an instruction level.
fn at(place: &Place, level: &str, arguments: &str) -> Output {
    place.command(arguments).env("FLOWLINE_LEVEL", level).output().unwrap()
}

#[test]
fn a_run_is_trained_and_described_at_each_level() {
    let place = Place::new();
    for level in Level::available() {
        let folder = format!("at-{level}");
        let train = format!("train tiny.png --updates 3 --seed 3 {SMALL} --plots none --out {folder}");
        let run = at(&place, &level.to_string(), &train);
        assert!(run.status.success(), "{level}: {}", text(&run.stderr));
        let output = at(&place, &level.to_string(), &format!("info {folder} --json"));
        assert_eq!(json(&text(&output.stdout))["level"], level.to_string());
        let output = text(&at(&place, &level.to_string(), &format!("info {folder} --machine")).stdout);
        assert!(output.contains(&format!("instructions of {level}")), "{output}");
    }
}

#[test]
fn an_unsupported_level_ends_with_2() {
    let place = Place::new();
    let mut refused = vec![("sse9", "is not a level"), ("AVX2", "is not a level")];
    if cfg!(not(target_arch = "x86_64")) {
        refused.push(("avx2", "is not supported"));
    }
    for (level, words) in refused {
        let output = at(&place, level, "info nowhere");
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.starts_with(&format!("error: FLOWLINE_LEVEL={level} {words}")), "{message}");
    }
}
