//! Runs with a time limit end in time, even on a busy machine.

use crate::place::{Place, SMALL, json};
use crate::resuming::wait_for_checkpoint;
use std::fs;
use std::time::{Duration, Instant};

/// How far a process may exceed its limit: the machine may stall in the last part of a run, which cannot be shortened.
const SLACK: Duration = Duration::from_secs(2);

#[test]
fn a_time_limit_holds_with_figures_and_a_kl_divergence() {
    let place = Place::new();
    let begun = Instant::now();
    let report = json(&place.done(&format!("train tiny.png --time-limit 8 --json {SMALL}")));
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(8) + SLACK && took > Duration::from_secs(3), "{took:?}");
    assert!(report["gap_nats"].as_f64().is_some_and(|gap| gap > 0.0), "{report}");
    assert!((report["mass"].as_f64().unwrap() - 1.0).abs() < 1e-2, "{report}");
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
    let again = json(&place.done(&format!("train tiny.png --time-limit 8 --resume --json {SMALL}")));
    assert_eq!(again["updates"], report["updates"]);
    place.fails("train tiny.png --time-limit 9 --resume", 2, &["--time-limit=8", "not --time-limit=9"]);
}

#[test]
fn a_killed_run_resumes_with_the_rest_of_its_limit() {
    let place = Place::new();
    let train = format!("train tiny.png --time-limit 14 --out run {SMALL}");
    let mut child = place.command(&train).spawn().unwrap();
    wait_for_checkpoint(&place, "run", &mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    let counters = json(&fs::read_to_string(place.path("run/counters.json")).unwrap());
    let spent = counters["seconds"].as_f64().unwrap();
    assert!(spent > 1.0 && spent < 11.0, "{counters}");
    let begun = Instant::now();
    let report = json(&place.done(&format!("{train} --resume --json")));
    let took = begun.elapsed().as_secs_f64();
    assert!(spent + took < 14.0 + SLACK.as_secs_f64(), "{spent} s and {took} s");
    let trained: f64 =
        report["phases"].as_array().unwrap().iter().map(|p| p["seconds"].as_f64().unwrap()).sum();
    assert!(
        trained < 11.0 && report["resumed_from_update"].as_u64().is_some_and(|update| update > 0),
        "{report}"
    );
}
