//! Runs with a time limit. `FLOWLINE_TIME` sets their time: each reading advances it by these seconds, so no outcome
//! depends on the load of the machine. Only builds with debug assertions read it (`src/time_source.rs`); without them,
//! the tests are skipped.

use crate::place::{Place, SMALL, json, text};
use std::fs;

/// Runs a command that must succeed, with a time that advances by `reading_s` with each reading; returns standard
/// output.
fn timed(place: &Place, reading_s: &str, arguments: &str) -> String {
    let output = place.command(arguments).env("FLOWLINE_TIME", reading_s).output().unwrap();
    assert!(output.status.success(), "{arguments}: {}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn a_run_with_a_time_limit_has_all_scores_and_figures() {
    if !cfg!(debug_assertions) {
        return;
    }
    let place = Place::new();
    let train = format!("train tiny.png --objective both --time-limit 30 {SMALL} --json");
    let report = json(&timed(&place, "0.005", &train));
    assert!(report["gap_nats"].as_f64().is_some_and(|gap| gap > 0.0), "{report}");
    assert!((report["mass"].as_f64().unwrap() - 1.0).abs() < 5e-2, "{report}");
    for name in ["density", "comparison", "samples", "flow", "loss"] {
        assert!(report["files"].get(name).is_some(), "no {name} in {report}");
    }
    let phases = report["phases"].as_array().unwrap();
    let updates = |phase: &serde_json::Value| phase["updates"].as_u64().unwrap();
    assert_eq!(phases.len(), 2);
    assert_eq!(report["updates"].as_u64(), Some(phases.iter().map(updates).sum()));
    assert!(phases.iter().all(|phase| updates(phase) > 0 && phase["traces"] == 1), "{report}");
    // The header holds the number of updates done and the same limit, so the run can be resumed.
    let config = &json(&place.done("info runs/tiny --json"))["header"]["recipe"];
    for (planned, done) in config["phases"].as_array().unwrap().iter().zip(phases) {
        assert_eq!(planned["updates"], done["updates"]);
    }
    let again = json(&timed(&place, "0.005", &format!("{train} --resume")));
    assert_eq!(again["updates"], report["updates"]);
    place.fails("train tiny.png --time-limit 9 --resume", 2, &["--time-limit=30", "not --time-limit=9"]);
}

#[test]
fn a_quick_run_has_scores_and_a_limit_that_is_over_names_what_took_the_time() {
    if !cfg!(debug_assertions) {
        return;
    }
    let place = Place::new();
    let quick = "--plots density --width 8 --depth 1 --batch 64 --json --out quick";
    let report = json(&timed(&place, "0.005", &format!("train moons --quick {quick}")));
    assert!(report["gap_nats"].is_f64() && report["updates"].as_u64() > Some(10), "{report}");
    let mut late = place.command(&format!("train tiny.png --quick {SMALL}"));
    let message = text(&late.env("FLOWLINE_TIME", "8").output().unwrap().stderr);
    let words = "a time limit of 15 s leaves no time to train: reading the data took 8.0 s, preparing them ";
    assert!(message.contains(words), "{message}");
}

#[test]
fn a_killed_run_resumes_with_the_rest_of_its_limit() {
    if !cfg!(debug_assertions) {
        return;
    }
    let place = Place::new();
    let train = format!("train tiny.png --time-limit 14 --plots none --out run {SMALL}");
    let counters = || json(&fs::read_to_string(place.path("run/counters.json")).unwrap());
    // Killed at later and later writes, until the folder has a checkpoint with updates.
    let mut spent_s = 0.0;
    for step in (20..200).step_by(4) {
        let mut killed = place.command(&format!("{train} --resume"));
        let killed = killed.env("FLOWLINE_TIME", "0.01").env("FLOWLINE_FAULT", format!("kill:{step}"));
        assert!(!killed.output().unwrap().status.success(), "the run ended before write {step}");
        let before_s = spent_s;
        spent_s = counters()["seconds"].as_f64().unwrap();
        assert!(spent_s >= before_s, "{spent_s} {before_s}");
        if spent_s > 2.0 {
            break;
        }
    }
    assert!(spent_s > 2.0 && spent_s < 10.5, "{spent_s}");
    let report = json(&timed(&place, "0.01", &format!("{train} --resume --json")));
    assert!(report["resumed_from_update"].as_u64().is_some_and(|update| update > 0), "{report}");
    // A quarter of the limit is for the end, and one update may begin before the end of the training.
    let trained_s = counters()["seconds"].as_f64().unwrap();
    assert!(trained_s > spent_s && trained_s <= 10.5, "{trained_s} after {spent_s}");
    let all: f64 = report["phases"].as_array().unwrap().iter().map(|p| p["seconds"].as_f64().unwrap()).sum();
    assert!(all <= 10.6, "{report}");
}
