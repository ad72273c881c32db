//! Refusals: wrong usage, excessive sizes, invalid input, other programs' files. No files are left behind.

use crate::place::{Place, SMALL, json, text};
use std::fs;

#[test]
fn wrong_usage_ends_with_2_and_touches_nothing() {
    let place = Place::new();
    for (arguments, words) in [
        ("train tiny.png --updates 0", &["--updates=0", "from 1"][..]),
        ("train tiny.png --rtol -1", &["--rtol=-1", "below 1"]),
        ("train tiny.png --rtol NaN", &["--rtol=NaN"]),
        ("train tiny.png --rtol 1e308", &["--rtol=1e308: must be"]),
        ("train tiny.png --rtol 1e-300", &["--rtol=1e-300: must be"]),
        ("train tiny.png --rtol 0 --atol 1e-3", &["--rtol=0: must be", "1.2e-7"]),
        ("train tiny.png --atol inf", &["--atol=inf"]),
        ("train tiny.png --atol 1e300", &["--atol=1e300: must be", "at most 1"]),
        ("train tiny.png --time-limit 1e300", &["--time-limit=1e300: must be", "1e8"]),
        ("train tiny.png --time-limit 1e-300", &["--time-limit=1e-300: must be"]),
        ("train tiny.png --time-limit 10x", &["--time-limit", "'10x'", "90s, 10m or 1h30m"]),
        ("train tiny.png --time-limit 0s", &["--time-limit=0: must be"]),
        ("train tiny.png --time-limit 1158d", &["--time-limit=100051200: must be", "1e8"]),
        ("train moons --patience 2", &["--patience=2", "a table or a set of images"]),
        ("train tiny.png --rtol 1e-4 --fixed-steps 5", &["--fixed-steps", "--rtol"]),
        ("train tiny.png --solver rk4 --rtol 1e-4", &["--solver=rk4", "no error estimate", "--fixed-steps"]),
        ("train tiny.png --solver rk5", &["--solver=rk5", "did you mean rk4?", "tsit5"]),
        (
            "train tiny.png --solver rodas5p",
            &["--solver=rodas5p", "no explicit method has this name", "vern9"],
        ),
        ("train tiny.png --lr -1e-3", &["--lr=-0.001", "above 0"]),
        ("train tiny.png --time-limit NaN", &["--time-limit=NaN"]),
        ("train tiny.png --updates 5 --time-limit 5", &["--updates", "--time-limit"]),
        (
            "train tiny.png --probes 2 --divergence exact",
            &["--probes=2: --divergence is exact", "leave --probes out"],
        ),
        ("train tiny.png --threads 0", &["--threads=0"]),
        ("", &["train, sample, density"]),
        ("trian", &["'trian'", "'train'"]),
        ("train --preset best", &["--preset", "'best'", "default, diffrax, points"]),
        ("train moons --preset documented", &["--preset=documented", "points"]),
        ("train moons --preset diffrax", &["--preset=diffrax: must be", "points"]),
        ("train tiny.png --solver rk5", &["--solver=rk5", "did you mean rk4?"]),
        ("train tiny.png --kinetic -1", &["--kinetic=-1: must be"]),
        ("train tiny.png --field mlp", &["--field=mlp: it needs a set of images", "leave --field out"]),
        ("density run --grid 0", &["--grid=0: must be"]),
        ("train tiny.png --validation tiny.csv", &["--validation=tiny.csv", "leave --validation out"]),
        ("train tiny.png --columns x,y", &["--columns=x,y", "not a table"]),
        ("train tiny.csv --delimiter ab", &["--delimiter", "'ab'", "one character"]),
        ("train --quick --updates 5", &["--quick", "--updates"]),
        ("train --log-format xml", &["--log-format", "text, jsonl"]),
        ("train --optimizer adan", &["'adan'", "adamw", "similar"]),
        ("sample run -o - --json", &["--json", "-o -"]),
        ("train --updates many", &["--updates", "'many'", "whole number"]),
        ("train --seed -1", &["--seed", "'-1'", "whole number"]),
        ("train a.png b.png", &["'b.png'", "[DATA]"]),
        ("train --lr fast", &["--lr", "'fast'", "give a number"]),
        ("sample", &["<RUN>"]),
        ("sample run -n -5", &["--count <N>", "'-5'", "whole number"]),
    ] {
        place.fails(arguments, 2, words);
    }
}

#[test]
fn excessive_sizes_are_refused_at_once() {
    let place = Place::new();
    for (arguments, words) in [
        ("train tiny.png --batch 4000000000", &["--batch=4000000000", "1048576"][..]),
        ("train tiny.png --width 100000", &["--width=100000", "4096"]),
        ("train tiny.png --depth 1000", &["--depth=1000", "64"]),
        ("train tiny.png --blocks 1000", &["--blocks=1000", "64"]),
        ("train tiny.png --probes 100000", &["--probes=100000", "64"]),
        ("train tiny.png --fixed-steps 10001", &["--fixed-steps=10001", "10000"]),
        ("train tiny.png --checkpoints 4000000000", &["--checkpoints=4000000000"]),
        ("train tiny.png --depth 64 --blocks 64", &["error: --depth=64 --blocks=64: this", "12480 layers"]),
        ("train tiny.png --blocks 64 --probes 64", &["error: --blocks=64 --probes=64: this", "depth 3"]),
        ("sample run -n 99999999999", &["-n=99999999999", "1000000000"]),
        ("sample run -n 0", &["-n=0"]),
        ("density run --grid 5000", &["--grid=5000", "4096", ".npy"]),
        ("density run --grid 40000 --out a.npy", &["--grid=40000", "32768"]),
    ] {
        place.fails(arguments, 2, words);
    }
}

/// With `--json`, an error is also an object on standard output, whatever fails: the parser, an option, a file.
#[test]
fn an_error_is_json_on_request() {
    let place = Place::new();
    for (arguments, code) in [
        ("", 2),
        ("trian", 2),
        ("train --updates many", 2),
        ("train tiny.png --updates 0", 2),
        ("train tiny.png --solver rk5", 2),
        ("train missing.png", 1),
        ("sample", 2),
        ("sample run -o -", 2),
        ("log-prob nowhere tiny.csv", 1),
        ("density nowhere", 1),
        ("info latest", 1),
        ("train --config none.toml", 1),
        ("man --out tiny.png/x", 1),
    ] {
        let output = place.run(&format!("{arguments} --json"));
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{arguments}: {err}");
        let found = json(&out);
        assert_eq!(out.lines().count(), 1, "{arguments}: {out}");
        assert_eq!(found["exit_code"], code, "{arguments}");
        let message = found["error"].as_str().unwrap();
        let first = message.split("; ").next().unwrap();
        assert!(!first.is_empty() && err.starts_with(&format!("error: {first}")), "{message}\n{err}");
        assert_eq!(text(&place.run(arguments).stdout), "", "{arguments}");
    }
    // A completion script and a man page have no summary, and what follows `--` is no option.
    assert_eq!(text(&place.run("train -- --json").stdout), "");
}

/// Tables with many and long names: the message has a few of them.
#[test]
fn lists_of_columns_in_messages_are_short() {
    let place = Place::new();
    let names: Vec<String> = (0..200).map(|i| format!("a_long_name_of_column_{i}")).collect();
    let row = vec!["1"; 200].join(",");
    fs::write(place.path("wide.csv"), format!("{}\n{row}\n{row}\n", names.join(","))).unwrap();
    fs::write(place.path("head.csv"), names.join(",")).unwrap();
    fs::write(place.path("cell.csv"), format!("x\n1\n2\n3\n{}\n", "z".repeat(3_000))).unwrap();
    fs::write(place.path("name.csv"), format!("{}\n1\n1\n", "z".repeat(3_000))).unwrap();
    fs::write(place.path("p.csv"), "width,height\n1,2\n2,1\n3,5\n4,4\n5,0\n6,9\n7,3\n8,8\n9,7\n10,6\n")
        .unwrap();
    place
        .done("train p.csv --updates 1 --width 2 --depth 1 --batch 4 --fixed-steps 2 --plots none --out run");
    for (arguments, words) in [
        ("train wide.csv --columns none", &["no column \"none\"", "_column_5, ... (200 columns)"][..]),
        ("train cell.csv", &["cell.csv line 5", "zzz...\" is not a number"]),
        ("train name.csv", &["zzz... is 1 in all 2 rows"]),
        ("log-prob run wide.csv", &["no column \"width\"", "... (200 columns)"]),
        ("log-prob run head.csv", &["is read as a heading", "... (200 columns)"]),
        ("log-prob run wide.csv --columns 1", &["1 column of numbers instead of 2 (width, height)"]),
    ] {
        let message = text(&place.run(arguments).stderr);
        assert!(words.iter().all(|words| message.contains(words)), "{arguments}: {message}");
        assert!(
            message.len() < 700 && message.lines().all(|line| line.len() < 450),
            "{arguments}: {message}"
        );
    }
}

/// Data without points are an error in every form.
#[test]
fn no_points_are_an_error() {
    use std::process::Stdio;
    let place = Place::new();
    fs::write(place.path("p.csv"), "x,y\n1,2\n2,1\n3,5\n4,4\n5,0\n6,9\n7,3\n8,8\n9,7\n10,6\n").unwrap();
    place
        .done("train p.csv --updates 1 --width 2 --depth 1 --batch 4 --fixed-steps 2 --plots none --out run");
    fs::write(place.path("empty.csv"), "").unwrap();
    fs::write(place.path("lines.csv"), "\n\n").unwrap();
    fs::write(place.path("head.csv"), "x,y\n").unwrap();
    flowline::io::write_npy(place.path("none.npy"), &[0, 2], &[0.0_f64; 0]).unwrap();
    for file in ["empty.csv", "lines.csv", "none.npy"] {
        place.fails(&format!("log-prob run {file}"), 1, &[file, "contains no points"]);
    }
    place.fails("log-prob run head.csv", 1, &["head.csv line 1", "is read as a heading"]);
    let output = place.command("log-prob run -").stdin(Stdio::null()).output().unwrap();
    let message = text(&output.stderr);
    assert!(output.status.code() == Some(1) && message.contains("stdin contains no points"), "{message}");
}

#[test]
fn bad_input_ends_with_1_and_leaves_nothing() {
    let place = Place::new();
    place.image("gray.png", [9, 9], |_, _| 128);
    place.image("dot.png", [1, 1], |_, _| 128);
    let whole = fs::read(place.path("tiny.png")).unwrap();
    fs::write(place.path("cut.png"), &whole[..whole.len() / 2]).unwrap();
    fs::write(place.path("text.png"), "not an image").unwrap();
    fs::write(place.path("empty.png"), "").unwrap();
    fs::write(place.path("file"), "").unwrap();
    for (arguments, words) in [
        ("train missing.png", &["missing.png", "cannot be read"][..]),
        ("train cut.png", &["cut.png", "cannot be decoded"]),
        ("train text.png", &["text.png", "cannot be decoded"]),
        ("train empty.png", &["empty.png", "empty"]),
        ("train gray.png", &["gray.png", "one gray"]),
        ("train dot.png", &["dot.png", "1 x 1"]),
        ("train tiny.png --out file/run", &["file/run", "cannot be written"]),
        ("sample nowhere -n 5", &["nowhere is not a run folder", "no such folder"]),
        ("info .", &[". is not a run folder", "no model.safetensors", "flowline train"]),
        ("info latest", &["no run in runs"]),
        ("train moon", &["moon cannot be read", "did you mean the toy density moons?"]),
        ("train nothing", &["nothing cannot be read", "a toy density (moons,"]),
        ("density nowhere --grid 4", &["nowhere"]),
        ("info nowhere", &["nowhere"]),
        ("train tiny.png --time-limit 0.001 --out limited", &["time limit of 0.001 s", "allow at least"]),
    ] {
        place.fails(arguments, 1, words);
    }
}

#[test]
#[cfg(unix)]
fn a_folder_without_permission_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let locked = place.path("locked");
    fs::create_dir(&locked).unwrap();
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o555)).unwrap();
    if fs::write(locked.join("probe"), "").is_ok() {
        return; // root may write everywhere
    }
    place.fails("train tiny.png --out locked/run", 1, &["locked/run", "cannot be written"]);
}

#[test]
fn folders_are_numbered_and_never_overwritten() {
    let place = Place::new();
    let train = format!("train tiny.png --updates 1 {SMALL} --plots none");
    place.done(&train);
    place.done(&train);
    assert!(
        place.path("runs/tiny/model.safetensors").exists()
            && place.path("runs/tiny-2/model.safetensors").exists()
    );
    place.fails(&format!("{train} --out runs/tiny"), 1, &["runs/tiny", "--resume"]);
}

#[test]
fn files_of_other_programs_are_not_overwritten() {
    let place = Place::new();
    let train = format!("train tiny.png --updates 1 {SMALL} --out mine");
    fs::create_dir(place.path("mine")).unwrap();
    for name in ["metrics.csv", "density.png"] {
        fs::write(place.path("mine").join(name), "mine").unwrap();
        for options in ["", " --resume", " --restart"] {
            place.fails(&format!("{train}{options}"), 1, &[name, "overwritten", "--out"]);
        }
        assert_eq!(fs::read_dir(place.path("mine")).unwrap().count(), 1);
        assert_eq!(fs::read(place.path("mine").join(name)).unwrap(), b"mine");
        fs::remove_file(place.path("mine").join(name)).unwrap();
    }
    // Files of a run without a checkpoint are moved aside only by --restart.
    place.done(&format!("{train} --plots none"));
    fs::remove_file(place.path("mine/model.safetensors")).unwrap();
    place.fails(&train, 1, &["mine", "overwritten"]);
    place.fails(&format!("{train} --resume"), 1, &["mine", "overwritten", "--restart"]);
    place.done(&format!("{train} --plots none --restart"));
    assert!(place.path("mine.1/metrics.csv").exists());
}

#[cfg(not(feature = "mpi"))]
#[test]
fn a_build_without_mpi_refuses_to_run_in_parallel() {
    let place = Place::new();
    for name in ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"] {
        let output = place.command("train tiny.png").env(name, "4").output().unwrap();
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{name}: {message}");
        assert!(
            message.contains("4 processes were launched, but this build has no MPI"),
            "{name}: {message}"
        );
    }
}
