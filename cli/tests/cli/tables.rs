//! Tables of points: columns, separators, standard input; finding runs; JSON output.

use crate::place::{Place, json, text};
use std::fmt::Write as _;
use std::fs;
use std::io::Write;

const SMALL: &str = "--updates 5 --width 4 --depth 1 --batch 16 --fixed-steps 2 --plots none";

/// Writes a table of 60 people: a number, a name, height and weight.
fn people(place: &Place) {
    let mut text = "id,name,height_cm,weight_kg\n".to_owned();
    for i in 0..60 {
        let t = f64::from(i) * 0.7;
        let _ = writeln!(text, "{},p{i},{},{}", i + 1, 170.0 + 9.0 * t.sin(), 70.0 + 8.0 * (1.3 * t).cos());
    }
    fs::write(place.path("people.csv"), text).unwrap();
}

#[test]
fn columns_of_text_are_left_out_and_others_can_be_chosen() {
    let place = Place::new();
    people(&place);
    let (out, err) = place.output("train people.csv --out counted --plan");
    let columns = "people.csv: columns height_cm, weight_kg; left out, not numbers: name; left out, count rows: id (--keep-counters keeps them)\n";
    assert!(err.contains(columns), "{out} {err}");
    let (out, err) = place.output(&format!("train people.csv --keep-counters --out all {SMALL}"));
    assert!(out.contains("flowline log-prob all DATA\n"), "{out}");
    assert!(err.contains("columns id, height_cm, weight_kg; left out, not numbers: name\n"), "{err}");
    // A run that learned a counter reads it again.
    let (_, err) = place.output(&format!("train people.csv --resume --out all {SMALL}"));
    assert!(err.contains("people.csv: columns id, height_cm, weight_kg\n"), "{err}");
    place.done(&format!("train people.csv --columns weight_kg,3 --out two {SMALL}"));
    assert!(place.done("info two").contains("people.csv: weight_kg, height_cm"));
    place.done("sample two -n 20 -o s.csv");
    assert!(fs::read_to_string(place.path("s.csv")).unwrap().starts_with("weight_kg,height_cm\n"));

    // The columns are found by their headings, in any order, or by --columns.
    let values = place.done("log-prob two people.csv");
    assert_eq!(values.lines().count(), 60);
    let table = fs::read_to_string(place.path("people.csv")).unwrap();
    let columns = |order: &dyn Fn(&[&str]) -> String| -> String {
        table.lines().map(|line| order(&line.split(',').collect::<Vec<_>>()) + "\n").collect()
    };
    fs::write(place.path("other.tsv"), columns(&|c| format!("{}\t{}", c[3], c[2]))).unwrap();
    assert_eq!(place.done("log-prob two other.tsv"), values);
    let bare = columns(&|c| format!("{};{}", c[3], c[2]));
    fs::write(place.path("bare.csv"), bare.split_once('\n').unwrap().1).unwrap();
    assert_eq!(place.done("log-prob two bare.csv"), values);
    assert_eq!(place.done("log-prob two bare.csv --columns 1,2"), values);
    assert_ne!(place.done("log-prob two bare.csv --columns 2,1"), values);

    place.fails(
        &format!("train people.csv --columns age --out no {SMALL}"),
        2,
        &["no column \"age\"", "height_cm"],
    );
    place.fails(
        &format!("train people.csv --columns name --out no {SMALL}"),
        1,
        &["people.csv line 2: column name: \"p0\" is not a number; correct the cell, or choose the other columns"],
    );
    place.fails(
        "log-prob all bare.csv",
        1,
        &[
            "bare.csv line 1",
            "2 columns of numbers instead of 3 (id, height_cm, weight_kg); give a table with these columns\n",
        ],
    );
    let renamed = table.replace("height_cm", "height");
    fs::write(place.path("renamed.csv"), renamed).unwrap();
    let words = "renamed.csv line 1: no column \"height_cm\"; the columns are id, height, weight_kg, name; choose with --columns\n";
    place.fails("log-prob two renamed.csv", 1, &[words]);
    fs::write(place.path("wide.csv"), "1,2,3\n").unwrap();
    place.fails("log-prob two wide.csv", 1, &["3 columns of numbers instead of 2", "choose with --columns"]);
    fs::write(place.path("mixed.csv"), "a;b;c\n1;2;3\n4;5\n").unwrap();
    place.fails(
        &format!("train mixed.csv --out no {SMALL}"),
        1,
        &["mixed.csv line 3: 2 columns instead of 3"],
    );
    fs::write(place.path("mixed.csv"), "a;b\n1;2;3\n4;5;6;7\n").unwrap();
    place.fails(&format!("train mixed.csv --out no {SMALL}"), 1, &["mixed.csv line", "--delimiter ';'"]);
}

#[test]
fn rows_with_missing_cells_are_refused_or_left_out_and_counted() {
    let place = Place::new();
    people(&place);
    let table = fs::read_to_string(place.path("people.csv")).unwrap();
    let row = |(i, line): (usize, &str)| {
        let (before, weight) = line.rsplit_once(',').unwrap();
        format!("{before},{}\n", if i > 0 && i % 10 == 0 { "NA" } else { weight })
            .replace(',', ";")
            .replace('.', ",")
    };
    let text: String = table.lines().enumerate().map(row).collect();
    fs::write(place.path("people.txt"), text).unwrap();
    let remedy = "leave such rows out with --drop-missing";
    let words = "people.txt line 11: column weight_kg: \"NA\" stands for a missing value; 6 of 60 rows have missing cells";
    place.fails(&format!("train people.txt --out no {SMALL}"), 1, &[words, remedy]);
    let (out, err) = place.output(&format!("train people.txt --drop-missing --out run {SMALL}"));
    assert!(err.contains("people.txt: 6 of 60 rows left out, cells are missing\n"), "{err}");
    assert!(out.contains("6 rows with missing cells"), "{out}");
    assert!(place.done("info run").contains("6 rows with missing cells"));
    assert_eq!(json(&place.done("info run --json"))["header"]["points"]["num_dropped"], 6);
    place.fails("log-prob run people.txt", 1, &[words, remedy]);
    let (values, err) = place.output("log-prob run people.txt --drop-missing");
    assert!(values.lines().count() == 54 && err.contains("6 of 60 rows left out"), "{values} {err}");
    // The decimal commas are those of the file with points.
    let numbers = |text: &str| text.lines().map(|line| line.parse().unwrap()).collect::<Vec<f64>>();
    let plain = numbers(&place.done("log-prob run people.csv"));
    let is_there = |value: f64| plain.iter().any(|other| (other - value).abs() < 1e-4);
    assert!(numbers(&values).into_iter().all(is_there), "{values} {plain:?}");
    place.fails("train moons --drop-missing", 2, &["--drop-missing", "not a table"]);
    place.fails("train people.csv --decimal x", 2, &["give . or ,"]);
}

/// Two kinds of rows, 40 units apart, with a class each.
#[test]
fn classes_of_a_table_are_learned_sampled_and_scored_by_their_names() {
    let place = Place::new();
    let mut text = "kind,x,y\n".to_owned();
    for i in 0..120 {
        let t = f64::from(i) * 0.7;
        let (kind, at) = if i % 3 == 0 { ("tall", 40.0) } else { ("small", 0.0) };
        let _ = writeln!(text, "{kind},{},{}", at + t.sin(), (1.3 * t).cos());
    }
    fs::write(place.path("kinds.csv"), &text).unwrap();
    let train =
        "train kinds.csv --labels kind --out run --updates 150 --width 16 --depth 1 --batch 64 --plots none";
    let (out, err) = place.output(train);
    assert!(err.contains("kinds.csv: 2 classes, with their rows: small (80), tall (40)\n"), "{err}");
    assert!(out.contains("2 by kind: small, tall"), "{out}");
    let mean = |class: &str| {
        place.done(&format!("sample run -n 200 --label {class} -o s.csv"));
        let rows = flowline::io::read_csv(place.path("s.csv")).unwrap();
        rows.column("x").unwrap().iter().sum::<f64>() / 200.0
    };
    let means = [mean("tall"), mean("small")];
    assert!(means[0] > means[1] + 10.0, "{means:?}");
    // With y given, x is drawn from the class.
    place.done("sample run -n 200 --label tall --given y=0.3 -o g.csv");
    let given = flowline::io::read_csv(place.path("g.csv")).unwrap();
    assert!(given.column("y").unwrap().iter().all(|&y| y == 0.3));
    assert!(given.column("x").unwrap().iter().sum::<f64>() / 200.0 > means[1] + 10.0);
    place.fails("sample run -n 2", 2, &["classes small, tall", "choose one with --label"]);
    place.fails("sample run -n 2 --label huge", 2, &["--label=huge", "small, tall"]);
    // Each row is scored under its label, or all under one class.
    let numbers = |text: String| -> Vec<f64> { text.lines().map(|x| x.parse().unwrap()).collect() };
    let own = numbers(place.done("log-prob run kinds.csv"));
    let tall = numbers(place.done("log-prob run kinds.csv --label tall"));
    assert!(own.len() == 120 && (0..120).all(|i| i % 3 != 0 || (own[i] - tall[i]).abs() < 1e-3));
    assert!(own.iter().sum::<f64>() > tall.iter().sum::<f64>() + 10.0);
    fs::write(place.path("other.csv"), text.replacen("small", "huge", 1)).unwrap();
    place.fails("log-prob run other.csv", 1, &["other.csv line 3: \"huge\" is no class of this run"]);
    place.fails("train kinds.csv --labels x --out no", 1, &["kinds.csv, column x: 120 classes in 120 rows"]);
}

#[test]
fn a_table_comes_from_standard_input_and_samples_go_to_standard_output() {
    let place = Place::new();
    people(&place);
    let piped = |arguments: &str| {
        let mut child = place.command(arguments).stdin(std::process::Stdio::piped()).spawn().unwrap();
        let table = fs::read(place.path("people.csv")).unwrap();
        child.stdin.take().unwrap().write_all(&table).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    piped(&format!("train - --columns height_cm,weight_kg {SMALL}"));
    assert!(place.path("runs/stdin/model.safetensors").exists());
    let values = place.done("log-prob latest people.csv");
    assert_eq!(piped("log-prob latest -"), values);
    let samples = place.done("sample latest -n 7 -o -");
    assert!(samples.starts_with("height_cm,weight_kg\n") && samples.lines().count() == 8, "{samples}");
}

#[test]
fn latest_is_the_run_written_last_and_others_are_listed() {
    let place = Place::new();
    people(&place);
    let train = format!("train people.csv --columns height_cm,weight_kg {SMALL}");
    place.done(&format!("{train} --out runs/a"));
    place.done(&format!("{train} --out runs/b --seed 7"));
    assert_eq!(json(&place.done("info latest --json"))["header"]["recipe"]["seed"], 7);
    fs::create_dir(place.path("empty")).unwrap();
    place.fails("info empty", 1, &["empty is not a run folder", "runs here:", "latest"]);
    place.done(&format!("{train} --out kept/c --seed 8"));
    place.done("sample latest -n 4 --out kept/x.csv --seed 2");
    let (_, err) = place.output("sample latest -n 4 --out kept/x.csv");
    assert!(err.contains("4 points in kept/x.csv"), "{err}");
    assert_eq!(json(&place.done("sample latest -n 4 --out kept/x.csv --json"))["run"], "kept/c");
}

#[test]
fn every_command_has_a_summary_as_json_and_can_be_quiet() {
    let place = Place::new();
    people(&place);
    let train = format!("train people.csv --columns height_cm,weight_kg {SMALL} --out run");
    let (out, err) = place.output(&format!("{train} --quiet --json"));
    assert!(json(&out)["test_nll_nats"].is_f64() && err.is_empty(), "{err}");
    let sample = json(&place.done("sample run --json"));
    assert_eq!((&sample["count"], &sample["file"]), (&1000.into(), &"run/samples.npy".into()));
    assert_eq!(sample["columns"][1], "weight_kg");
    let density = json(&place.done("density run --grid 16 --json"));
    assert_eq!((&density["grid"], &density["file"]), (&16.into(), &"run/density-16.png".into()));
    let values = json(&place.done("log-prob run people.csv --json"));
    assert_eq!((values["log_prob"].as_array().unwrap().len(), &values["count"]), (60, &60.into()));
    let values = json(&place.done("log-prob run people.csv --json -o v.npy"));
    assert!(
        values["mean_log_prob_nats"].is_f64()
            && values["file"] == "v.npy"
            && values.get("log_prob").is_none()
    );
    let scores = &json(&place.done("info run --json"))["scores"];
    assert_eq!(scores["test_nll_nats"], json(&out)["test_nll_nats"]);
    let (out, err) = place.output("sample run -n 5 --quiet");
    assert!(out.is_empty() && err.is_empty(), "{out} {err}");
}

#[test]
fn progress_is_json_lines_on_request() {
    let place = Place::new();
    let (out, err) = place.output(&format!("train moons --log-format jsonl {SMALL} --out run"));
    let events: Vec<serde_json::Value> = err.lines().filter(|line| line.starts_with('{')).map(json).collect();
    let kinds = |kind: &str| events.iter().filter(|event| event["event"] == kind).count();
    assert!(kinds("note") > 0 && kinds("stage") > 1 && kinds("update") > 0, "{err}");
    assert!(events.iter().filter(|e| e["event"] == "update").all(|e| e["loss"].is_f64()), "{err}");
    people(&place);
    let (_, err) = place.output(&format!("train people.csv --log-format jsonl {SMALL} --out people"));
    let last = err.lines().rfind(|line| line.contains("\"update\"")).map(json).unwrap();
    assert!(last["validation_nats"].is_f64() && last["validation_stderr_nats"].is_f64(), "{last}");
    for words in [
        "KL divergence",
        "how far the model is from the data",
        " ± ",
        "total probability",
        "should be 1",
        "Next: flowline sample run",
    ] {
        assert!(out.contains(words), "\"{words}\" is missing in: {out}");
    }
}

#[test]
fn options_are_read_from_a_file_and_printed_as_one() {
    let place = Place::new();
    let file = "data = \"moons\"\nupdates = 5\nwidth = 4\ndepth = 1\nbatch = 16\nfixed-steps = 2\nplots = \"none\"\nfield = \"unet\"\n";
    fs::write(place.path("run.toml"), file).unwrap();
    place.fails("train --config run.toml --out no", 2, &["--field=unet", "set of images"]);
    fs::write(place.path("run.toml"), file.replace("field = \"unet\"", "seed = 3")).unwrap();
    place.done("train --config run.toml --out a --seed 4");
    let options = place.done("info a --options");
    assert!(options.contains("seed = 4") && options.contains("fixed_steps = 2"), "{options}");
    fs::write(place.path("again.toml"), options).unwrap();
    place.done("train moons --config again.toml --out b");
    let model = |run: &str| fs::read(place.path(run).join("model.safetensors")).unwrap();
    assert!(model("a") == model("b"));

    for (text, words) in [
        ("update = 5\n", &["--update", "--updates"][..]),
        ("updates = many\n", &["odd.toml", "one option per line"]),
        ("updates = [1, 2]\n", &["odd.toml", "updates"]),
        ("updates = \"many\"\n", &["--updates", "whole number"]),
    ] {
        fs::write(place.path("odd.toml"), text).unwrap();
        place.fails("train moons --config odd.toml --out no", 2, words);
    }
    place.fails("train moons --config none.toml", 1, &["none.toml", "cannot be read"]);
}

#[test]
fn figures_can_be_left_out() {
    let place = Place::new();
    place.done(&format!("train moons {SMALL} --out none"));
    let drawn = SMALL.replace("none", "density");
    place.done(&format!("train moons {drawn} --out density"));
    let figures = |run: &str| {
        let entries =
            fs::read_dir(place.path(run)).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = entries.filter(|name| name.contains(".png")).collect();
        names.sort();
        names
    };
    assert!(figures("none").is_empty());
    assert_eq!(figures("density"), ["density.png", "loss.png"]);
    // The figures do not affect the weights, and may change when a run is resumed.
    let model = |run: &str| fs::read(place.path(run).join("model.safetensors")).unwrap();
    assert!(model("none") == model("density"));
    place.done("train moons --resume --plots density --out none");
    assert_eq!(figures("none"), ["density.png", "loss.png"]);
}
