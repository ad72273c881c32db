//! Refusals: wrong usage, excessive sizes, invalid input, other programs' files. No files are left behind.

use crate::place::{Place, SMALL, text};
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
        ("train tiny.png --probes 2 --divergence exact", &["--probes", "--divergence exact"]),
        ("train tiny.png --threads 0", &["--threads=0"]),
        ("", &["train, sample, density"]),
        ("trian", &["'trian'", "'train'"]),
        ("train --preset best", &["--preset", "'best'", "default, diffrax, documented"]),
        ("train moons --preset documented", &["--preset=documented", "points"]),
        ("train tiny.png --validation tiny.csv", &["--validation=tiny.csv", "leave --validation out"]),
        ("train tiny.png --columns x,y", &["--columns=x,y", "not a table"]),
        ("train tiny.csv --delimiter ab", &["--delimiter", "'ab'", "one character"]),
        ("train --quick --updates 5", &["--quick", "--updates"]),
        ("train --log-format xml", &["--log-format", "text, jsonl"]),
        ("train --optimizer adan", &["'adan'", "adamw", "similar"]),
        ("sample run -o - --json", &["--json", "--out -"]),
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
        ("train tiny.png --depth 64 --blocks 64", &["--depth=64", "--blocks=64", "12480 layers"]),
        ("sample run -n 99999999999", &["-n=99999999999", "1000000000"]),
        ("sample run -n 0", &["-n=0"]),
        ("density run --grid 5000", &["--grid=5000", "4096", ".npy"]),
        ("density run --grid 40000 --out a.npy", &["--grid=40000", "32768"]),
    ] {
        place.fails(arguments, 2, words);
    }
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
    let train = format!("train tiny.png --updates 1 {SMALL}");
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
    place.done(&train);
    fs::remove_file(place.path("mine/model.safetensors")).unwrap();
    place.fails(&train, 1, &["mine", "overwritten"]);
    place.fails(&format!("{train} --resume"), 1, &["mine", "overwritten", "--restart"]);
    place.done(&format!("{train} --restart"));
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
