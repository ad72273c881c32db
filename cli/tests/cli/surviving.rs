//! Runs survive kills at every write, full disks, signals, closed pipes, and damaged or locked folders.
//!
//! Only builds with debug assertions read `FLOWLINE_FAULT` (`src/io/fault.rs`); without them, the tests that need
//! it are skipped.

use crate::place::{Place, SMALL, json, text};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

/// Counters and rows of another state of the run, in both directions: the message names both files.
#[test]
fn counters_and_rows_that_do_not_belong_together_are_both_named() {
    let place = line();
    place.done(&format!("{} --updates 9 --out longer", LINE.replace(" --updates 4", "")));
    let file = |run: &str, name: &str| place.path(run).join(name);
    let copy = |from: PathBuf, to: PathBuf| fs::copy(from, to).unwrap();
    let keep = fs::read_to_string(file("whole", "metrics.csv")).unwrap();
    let words = ["whole/counters.json and whole/metrics.csv do not belong together", "delete both"];
    // Rows of another run of the same data have other losses; rows of the same run with one more time differ in length.
    for other in [keep.replacen(",1,", ",11,", 1), keep.replacen("\n2,", "\n02,", 1)] {
        assert_ne!(other, keep);
        fs::write(file("whole", "metrics.csv"), other).unwrap();
        place.fails(&format!("{LINE} --out whole --resume"), 1, &words);
        let (_, err) = place.output("info whole");
        assert!(err.contains("do not belong together") && !err.contains("delete"), "{err}");
    }
    fs::write(file("whole", "metrics.csv"), &keep).unwrap();
    // Counters of another run are refused by their run.
    let counters = fs::read(file("whole", "counters.json")).unwrap();
    copy(file("longer", "counters.json"), file("whole", "counters.json"));
    place.fails(&format!("{LINE} --out whole --resume"), 1, &["counters.json belongs to another run"]);
    fs::write(file("whole", "counters.json"), counters).unwrap();
    place.done(&format!("{LINE} --out whole --resume"));
}

/// A run on 1-D points, which has few writes, draws no figures over the plane, and stores the best weights.
const LINE: &str = "train line.csv --updates 4 --width 2 --depth 1 --batch 8";
/// A lower and an upper bound of the number of write steps of such a run.
const STEPS: [u64; 2] = [20, 200];

fn line() -> Place {
    let place = Place::new();
    let rows: String = (0..60).map(|i| format!("{}\n", (f64::from(i) * 0.7).sin())).collect();
    fs::write(place.path("line.csv"), format!("x\n{rows}")).unwrap();
    place.done(&format!("{LINE} --out whole"));
    place
}

fn faulty(place: &Place, fault: &str, arguments: &str) -> Output {
    place.command(arguments).env("FLOWLINE_FAULT", fault).output().unwrap()
}

/// Checks that the run in a folder equals `whole`, and that no partly written file remains.
fn is_whole(place: &Place, folder: &str, at: &str) {
    for name in ["model.safetensors", "best.safetensors"] {
        let [found, whole] = [folder, "whole"].map(|folder| fs::read(place.path(folder).join(name)).unwrap());
        assert!(found == whole, "{at}: {name} differs");
    }
    let hidden = |name: &String| name.starts_with('.');
    assert_eq!(names(&place.path(folder)).into_iter().find(hidden), None, "{at}");
    assert!(names(&place.path(folder)) == names(&place.path("whole")), "{at}");
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Calls `tried` with every `stride`-th write step, which it makes fail, until a run completes.
fn at_steps(stride: usize, mut tried: impl FnMut(u64) -> bool) {
    let through = (1..STEPS[1]).step_by(stride).find(|&step| tried(step));
    assert!(
        through.is_some_and(|step| step > STEPS[0]),
        "the run completed with a fault at step {through:?}"
    );
}

fn killed(stride: usize) {
    if !cfg!(debug_assertions) {
        return;
    }
    let place = line();
    at_steps(stride, |step| {
        let folder = format!("killed-{step}");
        let train = format!("{LINE} --out {folder}");
        if faulty(&place, &format!("kill:{step}"), &train).status.success() {
            return true;
        }
        // In a folder without a checkpoint a run starts, in any other it is resumed. This second process may be
        // killed as well.
        let again = |resume: &str| format!("{LINE} --out {folder}{resume}");
        let is_begun = |place: &Place| place.path(&folder).join("model.safetensors").exists();
        let resume = if is_begun(&place) { " --resume" } else { "" };
        faulty(&place, &format!("kill:{}", 1 + step % 9), &again(resume));
        let resume = if is_begun(&place) { " --resume" } else { "" };
        place.done(&again(resume));
        is_whole(&place, &folder, &format!("killed at step {step}"));
        fs::remove_dir_all(place.path(&folder)).unwrap();
        false
    });
}

/// Every third write step; `a_kill_at_any_write_...` covers all of them.
#[test]
fn a_kill_at_many_writes_leaves_a_folder_that_starts_or_resumes() {
    killed(3);
}

#[test]
#[ignore = "every write step; takes three times as long as the test above"]
fn a_kill_at_any_write_leaves_a_folder_that_starts_or_resumes() {
    killed(1);
}

#[test]
fn a_disk_that_fills_at_any_write_is_named_and_loses_nothing() {
    if !cfg!(debug_assertions) {
        return;
    }
    let place = line();
    at_steps(4, |step| {
        let folder = format!("full-{step}");
        let output = faulty(&place, &format!("full:{step}"), &format!("{LINE} --out {folder}"));
        if output.status.success() {
            return true;
        }
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert!(
            message.contains(&format!("{folder}/")) && message.contains("cannot be written"),
            "{message}"
        );
        place.done(&format!("{LINE} --out {folder} --resume"));
        is_whole(&place, &folder, &format!("full at step {step}"));
        false
    });
}

#[test]
fn a_kill_while_a_run_is_moved_aside_loses_nothing_of_it() {
    let place = line();
    let old = fs::read(place.path("whole/model.safetensors")).unwrap();
    fs::create_dir(place.path("old")).unwrap();
    for name in names(&place.path("whole")) {
        fs::copy(place.path("whole").join(&name), place.path("old").join(&name)).unwrap();
    }
    let train = format!("{LINE} --out old --seed 3");
    place.fails(&train, 1, &["old holds a run already", "--restart"]);
    place.fails(&format!("{train} --restart --resume"), 2, &["--restart", "--resume"]);
    if cfg!(debug_assertions) {
        for step in 1..5 {
            assert!(!faulty(&place, &format!("kill:{step}"), &format!("{train} --restart")).status.success());
        }
    }
    let (_, err) = place.output(&format!("{train} --restart"));
    assert!(err.contains("was moved to old."), "{err}");
    let moved: Vec<PathBuf> = (1..6).map(|n| place.path(&format!("old.{n}/model.safetensors"))).collect();
    assert!(moved.iter().any(|path| fs::read(path).is_ok_and(|bytes| bytes == old)), "the old run is lost");
    assert_eq!(json(&place.done("info old --json"))["header"]["recipe"]["seed"], 3);
}

#[test]
fn a_damaged_run_is_refused_and_restarts_on_request() {
    let place = line();
    let model = place.path("whole/model.safetensors");
    let whole = fs::read(&model).unwrap();
    let mut damaged = whole.clone();
    damaged[700] ^= 1;
    fs::write(&model, &damaged).unwrap();
    let before = names(&place.path("whole"));
    place.fails(&format!("{LINE} --out whole --resume"), 1, &["model.safetensors is damaged", "--restart"]);
    place.fails("sample whole -n 3 --out no.csv", 1, &["model.safetensors is damaged"]);
    assert!(fs::read(&model).unwrap() == damaged && names(&place.path("whole")) == before);
    fs::remove_file(&model).unwrap();
    place.fails(&format!("{LINE} --out whole --resume"), 1, &["no model.safetensors", "--restart"]);
    place.done(&format!("{LINE} --out whole --restart"));
    assert!(fs::read(&model).unwrap() == whole);
    // `info` reports a damaged `metrics.csv` and describes the rest.
    let metrics = place.path("whole/metrics.csv");
    let rows = fs::read_to_string(&metrics).unwrap();
    fs::write(&metrics, rows.replacen("\n2,", "\n2x,", 1)).unwrap();
    let (_, err) = place.output("info whole");
    assert!(err.contains("metrics.csv is damaged") && err.contains("line 3"), "{err}");
    place.fails(&format!("{LINE} --out whole --resume"), 1, &["line 3", "delete it", "nothing was changed"]);
    let (_, err) = place.output("info whole");
    assert!(!err.contains("delete it"), "{err}");
    fs::remove_file(&metrics).unwrap();
    let (_, err) = place.output(&format!("{LINE} --out whole --resume"));
    assert!(err.contains("metrics.csv is missing"), "{err}");
}

#[cfg(target_os = "linux")]
#[test]
fn signals_save_the_run_and_end_it_as_signals_do() {
    use std::os::unix::process::ExitStatusExt;
    let place = Place::new();
    let signals = [("INT", 2), ("TERM", 15), ("HUP", 1), ("USR1", 10), ("USR2", 12), ("XCPU", 24)];
    let train = |name: &str| {
        format!("train tiny.png --updates 2000000 {SMALL} --plots none --threads 1 --out {name}")
    };
    // Under `nohup`, the runs ignore SIGHUP, as the tests do.
    let ignores_hup = is_in(&own_status(), "SigIgn:", 1);
    let signals = signals.into_iter().filter(|(name, _)| *name != "HUP" || !ignores_hup);
    let start = |(name, number)| (name, number, place.command(&train(name)).spawn().unwrap());
    for (name, number, mut child) in signals.map(start).collect::<Vec<_>>() {
        crate::resuming::wait_for_checkpoint(&place, name, &mut child);
        // Only SIGINT and SIGTERM end a run at once if they come again.
        for _ in 0..if ["INT", "TERM"].contains(&name) { 1 } else { 20 } {
            send(name, child.id());
        }
        let output = child.wait_with_output().unwrap();
        let message = text(&output.stderr);
        assert_eq!(output.status.signal(), Some(number), "{message}");
        assert!(message.contains("stopped after update ") && message.contains("--resume"), "{message}");
        let rest = message.split("stopped after update ").nth(1).unwrap();
        let update: u64 = rest.split(' ').next().unwrap().parse().unwrap();
        let info = json(&place.done(&format!("info {name} --json")));
        assert!(update > 0 && info["update"].as_u64() == Some(update), "{message}");
    }
}

#[cfg(target_os = "linux")]
fn send(signal: &str, process: u32) {
    let status =
        std::process::Command::new("kill").args([format!("-{signal}"), process.to_string()]).status();
    assert!(status.unwrap().success());
}

#[cfg(target_os = "linux")]
fn own_status() -> String {
    fs::read_to_string("/proc/self/status").unwrap()
}

/// Whether the set of signals `name` in a process's status contains a signal.
#[cfg(target_os = "linux")]
fn is_in(status: &str, name: &str, signal: u32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() >> (signal - 1) & 1 == 1
}

/// `nohup` has the process ignore SIGHUP.
#[cfg(target_os = "linux")]
#[test]
fn a_run_under_nohup_does_not_watch_sighup() {
    let place = Place::new();
    let train = format!("train tiny.png --updates 2000000 {SMALL} --plots none --out");
    let program = env!("CARGO_BIN_EXE_flowline");
    // The tests themselves may run under `nohup`.
    let is_heard = !is_in(&own_status(), "SigIgn:", 1);
    for (out, launcher, is_watched) in [("plain", "env", is_heard), ("hung", "nohup", false)] {
        let mut command = std::process::Command::new(launcher);
        command.arg(program).args(train.split(' ')).arg(out).current_dir(place.path("."));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        crate::resuming::wait_for_checkpoint(&place, out, &mut child);
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let is_caught = |signal: u32| is_in(&status, "SigCgt:", signal);
        assert_eq!([1, 2, 15].map(is_caught), [is_watched, true, true], "{launcher}: {status}");
        send("TERM", child.id());
        child.wait().unwrap();
    }
}

#[test]
fn a_second_process_in_a_folder_is_refused_by_the_number_of_the_first() {
    let place = Place::new();
    let train = format!("train tiny.png --updates 2000000 {SMALL} --plots none --out run");
    let mut child = place.command(&train).spawn().unwrap();
    crate::resuming::wait_for_checkpoint(&place, "run", &mut child);
    let number = format!("process {} works in run", child.id());
    place.fails(&format!("{train} --resume"), 1, &[&number, "another folder"]);
    place.fails(&format!("{train} --restart"), 1, &[&number]);
    child.kill().unwrap();
    child.wait().unwrap();
    place.done(&format!("train tiny.png --updates 2 {SMALL} --plots none --out run --restart"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_closed_standard_error_ends_nothing() {
    let place = line();
    fs::write(place.path("p.csv"), "0.1\n0.2\n").unwrap();
    for (arguments, code) in [
        (&*format!("{LINE} --out lost"), 0),
        ("sample whole -n 5 --out s.csv", 0),
        ("log-prob whole p.csv --out l.csv", 0),
        ("info whole", 0),
        ("train --updates 0", 2),
        ("sample", 2),
        ("info nowhere", 1),
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let status = place.command(arguments).stderr(full).output().unwrap().status;
        assert_eq!(status.code(), Some(code), "{arguments} > /dev/full");
        let mut child = place.command(&arguments.replace(" lost", " gone")).spawn().unwrap();
        drop(child.stderr.take());
        assert_eq!(child.wait_with_output().unwrap().status.code(), Some(code), "{arguments}, reader gone");
    }
    is_whole(&place, "lost", "a full standard error");
    is_whole(&place, "gone", "no reader of standard error");
}
