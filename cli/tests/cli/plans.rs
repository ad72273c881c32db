//! The reported cost of an update, before a run and after it.

use crate::place::{Place, SMALL, json};
use std::fs;

#[test]
fn a_plan_runs_nothing_and_reports_memory_and_operations() {
    let place = Place::new();
    let plan = |options: &str| {
        json(&place.done(&format!("train tiny.png --objective both --plan --json {options}")))
    };
    let of = |checkpoints: usize| {
        let plan =
            plan(&format!("--width 8 --depth 1 --batch 64 --fixed-steps 100 --checkpoints {checkpoints}"));
        assert_eq!(plan["weights"], 874);
        for field in ["flops", "kernels", "bytes_moved", "peak_gflops"] {
            assert!(plan[field].as_f64().is_some_and(|x| x > 0.0), "{field} in {plan}");
        }
        plan["plan_peak_bytes"].as_u64().unwrap()
    };
    let peaks = [64, 16, 4].map(of);
    assert!(peaks[0] > peaks[1] && peaks[1] > peaks[2], "{peaks:?}");
    assert!(place.done(&format!("train tiny.png --plan {SMALL} --plots none")).contains("flow matching"));
    let small = plan("--width 8 --depth 1 --batch 64 --fixed-steps 100 --checkpoints 4");
    let states = &small["phases"][1]["states"][0];
    assert_eq!((states["slots"].as_u64(), states["kept"].as_u64()), (Some(4), Some(4)), "{small}");
    assert!(states["recomputed"].as_u64() > Some(100));
    let adaptive = "--width 8 --depth 1 --batch 64 --rtol 1e-4";
    assert_eq!(plan(adaptive)["phases"][1]["flops_of"], "step");
    assert!(plan(adaptive)["phases"][1]["states"][0]["steps"].is_null());
    assert_eq!(plan(adaptive)["phases"][0]["flops_of"], "update");
    let text = place.done(&format!("train tiny.png --objective both --plan {adaptive}"));
    for words in ["one step of each solve", "one update", "kernels", "workspace", "at peak"] {
        assert!(text.contains(words), "\"{words}\" is missing in: {text}");
    }
    assert!(place.names().is_empty());
}

#[test]
fn info_reports_the_planned_work_of_the_updates_and_their_share_of_the_peak() {
    let place = Place::new();
    // Three of the updates are by maximum likelihood. Their mean cost is reported, not the sum.
    let options = format!("train tiny.png --updates 300 --objective both {SMALL} --plots none");
    let plan = json(&place.done(&format!("{options} --plan --json")));
    place.done(&format!("{options} --threads 1 --out run"));
    let info = json(&place.done("info run --json"));
    let number =
        |x: &serde_json::Value, field: &str| x[field].as_f64().unwrap_or_else(|| panic!("no {field} in {x}"));
    assert!(number(&plan, "peak_gflops") > 0.0 && number(&info, "peak_bytes_per_s") > 0.0);
    assert_eq!(info["peak_threads"], 1);
    let phases = info["phases"].as_array().unwrap();
    assert_eq!(phases.len(), 2);
    for (phase, planned) in phases.iter().zip(plan["phases"].as_array().unwrap()) {
        assert_eq!((&phase["objective"], &phase["kernels"]), (&planned["objective"], &planned["kernels"]));
        for (reported, of) in [("flops_per_update", "flops"), ("bytes_moved_per_update", "bytes_moved")] {
            let (reported, planned) = (number(phase, reported), number(planned, of));
            assert!(reported > 0.0 && (reported / planned - 1.0).abs() < 1e-6, "{of}: {reported} {planned}");
        }
        let (rate, share) = (number(phase, "gflops"), number(phase, "share_of_peak"));
        assert!(share > 0.0 && share <= 1.0, "{phase}");
        let again = number(phase, "flops_per_update") / number(phase, "ms_per_update") / 1e6;
        assert!(
            (rate / again - 1.0).abs() < 1e-9
                && (rate / share / number(&info, "peak_gflops") - 1.0).abs() < 1e-9
        );
    }
    let text = place.done("info run");
    assert!(text.contains("FLOP/s") && !text.contains('%') && text.contains("test NLL"), "{text}");
    let text = place.done("info run --machine");
    assert!(
        text.contains("of the peak") && text.contains("GFLOP/s of matrix products on one thread"),
        "{text}"
    );

    // With adaptive steps, a plan counts one step per solve, and a run counts the steps taken.
    let options = "train tiny.png --objective both --updates 20 --width 8 --depth 1 --batch 64 --rtol 1e-4";
    let step = json(&place.done(&format!("{options} --plan --json")));
    place.done(&format!("{options} --out adaptive"));
    let solved = &json(&place.done("info adaptive --json"))["phases"][1];
    let steps = number(solved, "flops_per_update") / number(&step["phases"][1], "flops");
    assert!(steps > 1.5 && steps < 200.0, "{steps}");
    // Without `counters.json`, `info` reports no cost of updates, but everything else.
    fs::remove_file(place.path("run/counters.json")).unwrap();
    assert_eq!(json(&place.done("info run --json"))["phases"].as_array().unwrap().len(), 0);
    assert!(!place.done("info run").contains("kernels"));
}
