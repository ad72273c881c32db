//! `flowline runs` and `flowline plot` on finished, interrupted, running and damaged runs.

use crate::place::{Place, json, text};
use std::fs;
use std::path::Path;

/// The folder `runs` with a finished run on a table of three columns.
fn finished() -> Place {
    let place = Place::new();
    let row = |i: i32| (f64::from(i) * 0.7).sin_cos();
    let rows = (0..80).map(row).map(|(a, b)| format!("{},{},{}\n", 10.0 * a, b, a * b + 0.1 * b));
    fs::write(place.path("p.csv"), format!("a,b,c\n{}", rows.collect::<String>())).unwrap();
    place.done("train p.csv --updates 2 --width 2 --depth 1 --batch 8 --plots none --out runs/good");
    place
}

fn copy(from: &Path, to: &Path, left_out: &str) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap).filter(|entry| entry.file_name() != left_out)
    {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[test]
fn every_state_of_a_run_is_listed_and_other_folders_are_named() {
    let place = finished();
    let good = place.path("runs/good");
    copy(&good, &place.path("runs/a_run_with_a_long_name_that_was_killed"), "counters.json");
    copy(&good, &place.path("runs/bad"), "");
    let model = place.path("runs/bad/model.safetensors");
    let bytes = fs::read(&model).unwrap();
    fs::write(&model, &bytes[..bytes.len() / 2]).unwrap();
    fs::create_dir(place.path("runs/notes")).unwrap();
    fs::write(place.path("runs/readme.txt"), "").unwrap();
    // A run that has no checkpoint yet: its process holds the lock.
    fs::create_dir(place.path("runs/new")).unwrap();
    let lock = fs::File::create(place.path("runs/new/.lock")).unwrap();
    fs::write(place.path("runs/new/.lock"), "4711").unwrap();
    lock.try_lock().unwrap();

    let output = place.command("runs").env("COLUMNS", "80").output().unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{err}");
    assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
    assert!(out.contains("a_run") && out.contains("killed") && out.contains('…'), "{out}");
    for words in ["finished", "interrupted", "running", "unreadable", "NLL", "p.csv", "table"] {
        assert!(out.contains(words), "{words}: {out}");
    }
    assert!(err.contains("not runs: notes") && err.contains("model.safetensors is damaged"), "{err}");
    // On a pipe, names are whole.
    assert!(place.done("runs").contains("a_run_with_a_long_name_that_was_killed"));

    let listed = json(&place.done("runs --json"));
    let runs = listed["runs"].as_array().unwrap();
    let of = |name: &str| runs.iter().find(|run| run["name"] == name).unwrap();
    assert_eq!((runs.len(), listed["other_folders"][0].as_str()), (4, Some("notes")));
    assert_eq!((of("good")["state"].as_str(), of("good")["updates"].as_u64()), (Some("finished"), Some(2)));
    assert!(of("good")["scores"]["test_nll_nats"].is_f64() && of("good")["bytes"].as_u64().unwrap() > 1000);
    assert!(of("good")["seconds"].as_f64().unwrap() > 0.0);
    assert_eq!((of("new")["state"].as_str(), of("new")["process"].as_u64()), (Some("running"), Some(4711)));
    assert!(of("bad")["error"].as_str().unwrap().contains("damaged") && of("bad")["data"].is_null());
    assert_eq!(of("a_run_with_a_long_name_that_was_killed")["state"], "interrupted");
    let times: Vec<f64> = runs.iter().map(|run| run["written"].as_f64().unwrap()).collect();
    assert!(times.is_sorted_by(|a, b| a >= b), "{times:?}");
    // The folder of a run is a list of one.
    assert_eq!(json(&place.done("runs runs/good --json"))["runs"].as_array().unwrap().len(), 1);
    drop(lock);
    assert!(!place.done("runs").contains("running"));
}

#[test]
fn a_folder_without_runs_is_no_failure_unless_it_is_missing() {
    let place = Place::new();
    let (out, err) = place.output("runs");
    assert!(out.is_empty() && err.contains("no runs in runs; `flowline train` writes one"), "{out}{err}");
    assert_eq!(json(&place.done("runs . --json"))["runs"].as_array().unwrap().len(), 0);
    place.fails("runs nowhere", 1, &["nowhere cannot be read"]);
    place.fails("runs tiny.png", 1, &["tiny.png cannot be read"]);
}

#[test]
fn chosen_columns_are_drawn_with_the_data_beside_them() {
    let place = finished();
    for (options, file) in
        [("--columns c,a --data p.csv", "pair.png"), ("--columns 2", "one.svg"), ("", "all.svg")]
    {
        place.done(&format!("plot runs/good -n 500 {options} -o {file}"));
        assert!(fs::metadata(place.path(file)).unwrap().len() > 1_000, "{file}");
    }
    let all = fs::read_to_string(place.path("all.svg")).unwrap().replace('\n', "");
    for words in [">a<", ">b<", ">c<", "samples of the model", "density"] {
        assert!(all.contains(words), "{words}");
    }
    let report = json(&place.done("plot latest -n 50 --columns c,a --json"));
    assert_eq!((report["columns"][0].as_str(), report["count"].as_u64()), (Some("c"), Some(50)));
    assert!(place.path("runs/good/pairs.png").exists());
    fs::write(place.path("q.csv"), "a,b\n1,2\n").unwrap();
    for (options, words) in [
        ("--columns a,x", &["--columns=a,x", "no column \"x\"; the columns are a, b, c"][..]),
        ("--columns a,1", &["column a is given twice"]),
        ("--columns 1,", &["--columns=1,", "no column \"\""]),
        ("-n 0", &["-n=0", "from 1 to"]),
        ("-o pair.npy", &["pair.npy", ".png or .svg"]),
    ] {
        place.fails(&format!("plot runs/good {options}"), 2, words);
    }
    place.fails("plot runs/good --data q.csv", 1, &["q.csv", "no column \"c\""]);
}
