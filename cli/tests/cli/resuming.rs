//! Killed and resumed runs have the bits of an uninterrupted run.

use crate::place::{Place, SMALL, json};
use std::fs;
use std::process::Child;

/// Waits until the checkpoint in a folder is replaced, or the program has ended.
pub fn wait_for_checkpoint(place: &Place, folder: &str, child: &mut Child) {
    let model = place.path(folder).join("model.safetensors");
    let mut first = None;
    while child.try_wait().unwrap().is_none() {
        let now = fs::read(&model).ok();
        if first.is_none() {
            first = now;
        } else if now != first {
            return;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_killed_and_resumed_run_has_the_bits_of_an_uninterrupted_one() {
    let place = Place::new();
    let train = format!("train tiny.png --updates 4000 --objective both --seed 5 {SMALL} --plots none");
    let mut child = place.command(&format!("{train} --out killed")).spawn().unwrap();
    wait_for_checkpoint(&place, "killed", &mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    // Killed again soon after its start. The partial file stands for a kill in the middle of a write.
    let mut child = place.command(&format!("{train} --out killed --resume")).spawn().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    fs::write(place.path("killed/.model.safetensors.part"), "half a file").unwrap();

    let resumed = json(&place.done("train tiny.png --out killed --resume --threads 1 --json"));
    assert!(resumed["resumed_from_update"].as_u64().is_some_and(|u| u > 0), "{resumed}");
    assert!(resumed["first_update_s"].as_f64().is_some_and(|s| s > 0.0), "{resumed}");
    keeps_its_counts(&place, &resumed);
    place.done(&format!("{train} --out whole"));
    let model = |folder: &str| fs::read(place.path(folder).join("model.safetensors")).unwrap();
    assert!(model("killed") == model("whole"), "the two runs differ");
    assert!(!place.path("killed/.model.safetensors.part").exists());
    let updates = |folder: &str| -> Vec<String> {
        let rows = fs::read_to_string(place.path(folder).join("metrics.csv")).unwrap();
        rows.lines().map(|line| line.split(',').take(3).collect::<Vec<_>>().join(",")).collect()
    };
    assert!(updates("killed") == updates("whole"), "the rows of updates differ");
}

/// A run that is resumed after its end repeats its report.
fn keeps_its_counts(place: &Place, report: &serde_json::Value) {
    let again = json(&place.done("train tiny.png --out killed --resume --threads 1 --json"));
    for field in ["updates", "loss", "nll_nats", "gap_nats", "mass", "first_update_s", "states_kept_max"] {
        assert_eq!(again[field], report[field], "{field}");
    }
    assert_eq!(again["plan_peak_bytes"], report["plan_peak_bytes"]);
    assert!(report["plan_peak_bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{report}");
    assert!(report["states_kept_max"].as_u64().is_some_and(|states| states > 0), "{report}");
    for (phase, was) in again["phases"].as_array().unwrap().iter().zip(report["phases"].as_array().unwrap()) {
        for field in ["nll_nats", "live_buffers_at_100", "live_bytes_at_end", "recomputed_steps_per_update"] {
            assert_eq!(phase[field], was[field], "{field}");
        }
        assert!(
            was["live_buffers_at_100"].as_u64().is_some_and(|n| n > 0) || was["updates"].as_u64() < Some(100)
        );
        let seconds = |phase: &serde_json::Value| phase["seconds"].as_f64().unwrap();
        assert!((seconds(phase) / seconds(was) - 1.0).abs() < 0.05, "{phase} {was}");
    }
}

#[test]
fn resuming_requires_the_same_options() {
    let place = Place::new();
    let train = format!("train tiny.png --out run --updates 3 --seed 2 {SMALL} --plots none");
    place.done(&train);
    let model = fs::read(place.path("run/model.safetensors")).unwrap();
    for (option, words) in [
        ("--seed 4", &["--seed=2", "not --seed=4"][..]),
        ("--width 9", &["--width=8", "not --width=9"]),
        ("--updates 4", &["--updates=3", "not --updates=4"]),
        ("--lr 1e-2", &["--lr=", "not --lr=0.01"]),
        ("--probes 1", &["--probes=none (exact divergence)", "not --probes=1"]),
        ("--solver dopri5", &["--solver=", "not --solver=dopri5"]),
        ("--preset documented", &["--preset=default", "not --preset=documented"]),
        ("--time-limit 9", &["--time-limit=none", "not --time-limit=9"]),
    ] {
        place.fails(&format!("train tiny.png --out run --resume {option}"), 2, words);
    }
    place.image("other.png", [16, 12], |x, _| x as u8);
    place.fails("train other.png --out run --resume", 1, &["other.png", "16 x 12"]);
    assert_eq!(fs::read(place.path("run/model.safetensors")).unwrap(), model);
    // A run can be resumed with the same options, with some of them, or with defaults given explicitly.
    place.done(&format!("{train} --resume"));
    place.done("train tiny.png --out run --resume --seed 2 --optimizer adamw");
    assert_eq!(fs::read(place.path("run/model.safetensors")).unwrap(), model);
}

#[test]
fn the_optimizer_is_chosen_by_name_and_remembered() {
    let place = Place::new();
    let train = format!("train tiny.png --updates 2 {SMALL} --plots none");
    let all =
        ["sgd", "nesterov", "rmsprop", "adagrad", "adam", "adamw", "adabelief", "nadam", "radam", "lion"];
    place.fails(&format!("{train} --out run --optimizer adamax"), 2, &all);
    for name in ["radam", "lion"] {
        place.done(&format!("{train} --out {name} --optimizer {name} --lr 1e-3"));
        let model = fs::read(place.path(&format!("{name}/model.safetensors"))).unwrap();
        let words = [&*format!("--optimizer={name}"), "not --optimizer=adam"];
        place.fails(&format!("train tiny.png --out {name} --resume --optimizer adam"), 2, &words);
        place.done(&format!("train tiny.png --out {name} --resume"));
        assert_eq!(fs::read(place.path(&format!("{name}/model.safetensors"))).unwrap(), model);
    }
}

#[test]
fn other_versions_and_damaged_checkpoints_are_refused() {
    let place = Place::new();
    let train = format!("train tiny.png --out run --updates 2 {SMALL} --plots none");
    place.done(&train);
    let path = place.path("run/model.safetensors");
    let model = fs::read(&path).unwrap();
    let format = br#"\"format\":2"#;
    let at = model.windows(format.len()).position(|w| w == format).expect("the header contains the format");
    let mut other = model.clone();
    other[at + format.len() - 1] = b'7';
    fs::write(&path, &other).unwrap();
    for arguments in ["info run", "sample run -n 2", &format!("{train} --resume")] {
        place.fails(arguments, 1, &["run/model.safetensors", "format 7", "formats 1 to 2"]);
    }
    fs::write(&path, &model[..model.len() - 9]).unwrap();
    place.fails("info run", 1, &["run/model.safetensors", "damaged"]);
    place.fails("density run --grid 3 --out d.npy", 1, &["damaged"]);
    place.fails(&format!("{train} --resume"), 1, &["damaged", "nothing was changed"]);
    place.done(&format!("{train} --restart"));
    assert_eq!(fs::read(&path).unwrap(), model);
}
