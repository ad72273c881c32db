//! The command line as other programs see it: exit codes, messages, files, bits.
//!
//! A binary of its own because it runs the program. Images are tiny and nets of width 8, so a whole run takes a second.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A folder with a tiny image of two dark boxes.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Place {
        let place = Place { folder: tempfile::tempdir().unwrap() };
        let dark = |x: u32, y: u32| match (x, y) {
            (2..6, 3..9) => 0,
            (8..14, 2..5) => 80,
            _ => 255,
        };
        image::GrayImage::from_fn(16, 12, |x, y| image::Luma([dark(x, y)]))
            .save(place.path("tiny.png"))
            .unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flowline"));
        command.current_dir(self.folder.path()).args(arguments.split_whitespace());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &str) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs what must go well.
    fn done(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// Runs what must fail with this code and a message of one to three lines that has these words.
    fn fails(&self, arguments: &str, code: i32, words: &[&str]) {
        let output = self.run(arguments);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments}: {message}");
        assert!((1..=3).contains(&message.lines().count()), "{arguments}: {message}");
        for word in words {
            assert!(message.contains(word), "{arguments}: \"{word}\" is missing in: {message}");
        }
    }

    /// What lies in the folder, without the image.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .filter(|n| n != "tiny.png")
            .collect();
        names.sort();
        names
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

const SMALL: &str = "--width 8 --depth 1 --batch 64 --fixed-steps 4";

#[test]
fn wrong_usage_ends_with_2_and_touches_nothing() {
    let place = Place::new();
    for (arguments, words) in [
        ("train tiny.png --updates 0", &["--updates=0", "from 1"][..]),
        ("train tiny.png --rtol -1", &["rtol=-1", "at least 0"]),
        ("train tiny.png --rtol NaN", &["rtol=NaN"]),
        ("train tiny.png --atol inf", &["atol=inf"]),
        ("train tiny.png --rtol 0 --atol 0", &["rtol=0", "above 0"]),
        ("train tiny.png --rtol 1e-4 --fixed-steps 5", &["--fixed-steps", "--rtol"]),
        ("train tiny.png --solver rk4 --rtol 1e-4", &["--solver=rk4", "no error estimate", "--fixed-steps"]),
        ("train tiny.png --solver rk5", &["--solver=rk5", "tsit5"]),
        ("train tiny.png --lr -1e-3", &["--lr=-0.001", "above 0"]),
        ("train tiny.png --time-limit NaN", &["--time-limit=NaN"]),
        ("train tiny.png --updates 5 --time-limit 5", &["--updates", "--time-limit"]),
        ("train tiny.png --probes 2 --divergence exact", &["--probes", "--divergence exact"]),
        ("train tiny.png --threads 0", &["--threads=0"]),
        ("", &["train, sample, density"]),
        ("trian", &["'trian'", "'train'"]),
        ("train --preset best", &["--preset", "'best'", "default, documented"]),
        ("train moons --preset documented", &["--preset=documented", "points"]),
        ("train tiny.png --validation tiny.csv", &["--validation=tiny.csv", "left out"]),
        ("train --updates many", &["--updates", "'many'", "whole number"]),
        ("train --seed -1", &["--seed", "'-1'", "whole number"]),
        ("train a.png b.png", &["'b.png'", "[DATA]"]),
        ("train --lr fast", &["--lr", "'fast'", "give a number"]),
        ("sample", &["-n <N>", "<DIR>"]),
        ("sample run -n -5", &["-n <N>", "'-5'", "whole number"]),
    ] {
        place.fails(arguments, 2, words);
    }
    assert!(place.names().is_empty(), "{:?}", place.names());
}

#[test]
fn what_no_machine_can_do_is_refused_at_once() {
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
    assert!(place.names().is_empty(), "{:?}", place.names());
}

#[test]
fn bad_input_ends_with_1_and_leaves_nothing() {
    let place = Place::new();
    let grey = |w, h| image::GrayImage::from_pixel(w, h, image::Luma([128]));
    grey(9, 9).save(place.path("grey.png")).unwrap();
    grey(1, 1).save(place.path("dot.png")).unwrap();
    let whole = fs::read(place.path("tiny.png")).unwrap();
    fs::write(place.path("cut.png"), &whole[..whole.len() / 2]).unwrap();
    fs::write(place.path("text.png"), "not a picture").unwrap();
    fs::write(place.path("empty.png"), "").unwrap();
    fs::write(place.path("file"), "").unwrap();
    let before = place.names();
    for (arguments, words) in [
        ("train missing.png", &["missing.png", "cannot be read"][..]),
        ("train cut.png", &["cut.png", "cannot be decoded"]),
        ("train text.png", &["text.png", "cannot be decoded"]),
        ("train empty.png", &["empty.png", "empty"]),
        ("train grey.png", &["grey.png", "one grey"]),
        ("train dot.png", &["dot.png", "1 x 1"]),
        ("train tiny.png --out file/run", &["file/run", "cannot be written"]),
        ("sample nowhere -n 5", &["nowhere", "cannot be read"]),
        ("density nowhere --grid 4", &["nowhere"]),
        ("info nowhere", &["nowhere"]),
        ("train tiny.png --time-limit 0.001 --out limited", &["time limit", "allow at least"]),
    ] {
        place.fails(arguments, 1, words);
    }
    assert_eq!(place.names(), before);
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
        return; // whoever may write everywhere (root) cannot be refused
    }
    place.fails("train tiny.png --out locked/run", 1, &["locked/run", "cannot be written"]);
}

#[test]
fn a_run_writes_its_files_and_tells_every_field() {
    let place = Place::new();
    let report =
        json(&place.done(&format!("train tiny.png --updates 120 --seed 3 --threads 2 --json {SMALL}")));
    for field in [
        "updates",
        "weights",
        "loss",
        "nll_nats",
        "entropy_nats",
        "gap_nats",
        "mass",
        "first_update_s",
        "phases",
        "compiles",
        "resumed_from_update",
        "states_kept_max",
        "plan_peak_bytes",
        "peak_rss_mb",
        "seconds_to_gap",
        "threads",
        "seed",
        "files",
    ] {
        assert!(report.get(field).is_some(), "{field} is missing in {report}");
    }
    for phase in report["phases"].as_array().unwrap() {
        for field in [
            "objective",
            "updates",
            "seconds",
            "ms_per_update",
            "field_evals_per_update",
            "recomputed_steps_per_update",
            "live_buffers_at_100",
            "live_buffers_at_end",
            "live_bytes_at_100",
            "live_bytes_at_end",
            "rss_mb_at_100",
            "rss_mb_at_end",
            "nll_nats",
            "gap_nats",
        ] {
            assert!(phase.get(field).is_some(), "{field} is missing in {phase}");
        }
        assert_eq!(phase["traces"], 1);
    }
    let first = &report["phases"][0];
    assert_eq!(first["live_buffers_at_100"], first["live_buffers_at_end"]);
    assert_eq!(first["live_bytes_at_100"], first["live_bytes_at_end"]);
    assert_eq!(
        (report["updates"].as_u64(), report["seed"].as_u64(), report["threads"].as_u64()),
        (Some(120), Some(3), Some(2))
    );
    assert!((report["mass"].as_f64().unwrap() - 1.0).abs() < 2e-3, "{}", report["mass"]);
    for name in ["density", "comparison", "samples", "flow", "loss", "metrics", "model"] {
        let path = place.path(report["files"][name].as_str().unwrap_or_else(|| panic!("no {name}")));
        assert!(path.starts_with(place.path("runs/tiny")) && fs::metadata(&path).unwrap().len() > 0);
    }
    let metrics = fs::read_to_string(place.path("runs/tiny/metrics.csv")).unwrap();
    let heading = "update,phase,loss,nll_nats,ms,field_evals,live_buffers,live_bytes,rss_mb,traces";
    assert_eq!((metrics.lines().next(), metrics.lines().count()), (Some(heading), 121));
    uses_of_a_run(&place);
}

#[test]
fn a_toy_is_learned_by_name_and_told_in_its_own_units() {
    let place = Place::new();
    let report =
        json(&place.done("train checkerboard --updates 20 --width 8 --depth 1 --batch 64 --json --out run"));
    let nats = |field: &str| report[field].as_f64().unwrap_or_else(|| panic!("no {field} in {report}"));
    assert!((nats("entropy_nats") - 32f64.ln()).abs() < 1e-12);
    assert!(
        (nats("gap_nats") - nats("nll_nats") + nats("entropy_nats")).abs() < 1e-12 && nats("gap_nats") > 0.0
    );
    assert!((nats("validation_nats") - nats("nll_nats")).abs() < 1e-9 && (nats("mass") - 1.0).abs() < 2e-3);
    for name in ["density", "comparison", "samples", "flow", "loss", "metrics", "model"] {
        assert!(place.path(report["files"][name].as_str().unwrap()).exists(), "{name}");
    }
    place.done("sample run -n 500 --out a.csv");
    let a = flowline::io::read_csv_table(place.path("a.csv")).unwrap();
    assert_eq!((a.heading, a.lines.len()), (vec!["x".to_owned(), "y".to_owned()], 500));
    assert!(a.data.iter().any(|x| x.abs() > 2.5), "samples are in units");
    // Densities of points and of a grid's centres agree, the first row of the grid being that of the largest y.
    place.done("density run --grid 5 --out grid.npy");
    let grid = flowline::io::read_npy(place.path("grid.npy")).unwrap();
    let info = json(&place.done("info run --json"));
    let (image, number) = (&info["header"]["image"], |x: &serde_json::Value| x.as_f64().unwrap());
    let centre = |a: usize, side: &str, i: f64| {
        number(&image["units"]["origin"][a])
            + number(&image["units"]["pixel"][a]) * number(&image[side]) * i / 5.0
    };
    let point = format!("x,y\n{},{}\n", centre(0, "width", 1.5), centre(1, "height", 0.5));
    assert!(centre(1, "height", 0.5) > 2.0);
    fs::write(place.path("point.csv"), point).unwrap();
    let told: f64 = place.done("log-prob run point.csv").trim().parse().unwrap();
    assert!((told - grid.data[1]).abs() < 1e-3, "{told} {:?}", grid.data);
}

#[test]
fn points_of_a_file_keep_their_columns_and_odd_ones_leave_nothing() {
    let place = Place::new();
    let rows: Vec<String> = (0..300)
        .map(|i| f64::from(i) * 0.7)
        .map(|t| format!("{},{},{}", 100.0 * t.sin(), 0.01 * (1.3 * t).cos(), 5.0 + (0.31 * t).sin()))
        .collect();
    fs::write(place.path("orbit.csv"), format!("mass,speed,height\n{}\n", rows.join("\n"))).unwrap();
    let report = json(&place.done("train orbit.csv --updates 30 --width 8 --depth 1 --batch 64 --json"));
    assert!(
        report.get("gap_nats").is_none()
            && report.get("mass").is_none()
            && report["validation_nats"].is_f64()
    );
    assert!(report["phases"].as_array().unwrap().iter().all(|phase| phase.get("gap_nats").is_none()));
    assert!(
        place.path("runs/orbit/corner.png").exists() && place.path("runs/orbit/best.safetensors").exists()
    );
    place.done("sample runs/orbit -n 50 --out a.csv");
    let text = fs::read_to_string(place.path("a.csv")).unwrap();
    assert!(text.starts_with("mass,speed,height\n") && text.lines().count() == 51);
    place.done("log-prob runs/orbit orbit.csv --out told.npy");
    assert_eq!(flowline::io::read_npy(place.path("told.npy")).unwrap().shape, [300]);
    place.fails("density runs/orbit --grid 8", 2, &["points have 3"]);
    place.fails("train orbit.csv --validation odd.csv --out run", 1, &["odd.csv", "cannot be read"]);

    let before = place.names();
    for (text, words) in [
        ("a,b\n1,2\n", &["odd.csv", "1 is too few"][..]),
        ("a,b\n1,2\n3,inf\n5,6\n", &["line 3", "column b is inf"]),
        ("a,b\n1,2\n3\n", &["line 3", "1 column instead of 2"]),
        ("", &["d = 0"]),
        ("a,b\n1,2\n1,3\n1,4\n", &["column a is 1 in all"]),
    ] {
        fs::write(place.path("odd.csv"), text).unwrap();
        place.fails("train odd.csv --updates 5", 1, words);
        fs::remove_file(place.path("odd.csv")).unwrap();
        assert_eq!(place.names(), before, "{text}");
    }
}

/// What can be done with a run folder: the points, grids and values agree with each other.
fn uses_of_a_run(place: &Place) {
    assert!(place.done("info runs/tiny").contains("16 x 12 pixels"));
    place.done("sample runs/tiny -n 300 --out a.npy");
    place.done("sample runs/tiny -n 200 --out b.csv");
    place.done("sample runs/tiny -n 200 --out c.png");
    let a = flowline::io::read_npy(place.path("a.npy")).unwrap();
    let b = flowline::io::read_csv(place.path("b.csv"), 2).unwrap();
    assert_eq!((a.shape, b.len()), (vec![300, 2], 400));
    let inside =
        a.data.chunks(2).filter(|p| (0.0..16.0).contains(&p[0]) && (0.0..12.0).contains(&p[1])).count();
    assert!(inside > 200, "{inside} of 300 points lie over the image");

    place.done("density runs/tiny --grid 8 --margin 2 --out grid.npy");
    place.done("density runs/tiny --grid 8 --out grid.png");
    one_scale(place);
    // A longer draw begins with a shorter one, though they come in parts.
    place.done("sample runs/tiny -n 5000 --out long.npy");
    let long = flowline::io::read_npy(place.path("long.npy")).unwrap();
    assert!(long.shape == [5000, 2] && long.data[..600] == a.data[..]);
    let grid = flowline::io::read_npy(place.path("grid.npy")).unwrap();
    assert_eq!(grid.shape, [8, 8]);
    // The same values at the same places by the other command: row 1, column 6 of 20 x 16 pixels from (-2, -2).
    let [x, y] = [-2.0 + 20.0 * 6.5 / 8.0, -2.0 + 16.0 * 1.5 / 8.0];
    fs::write(place.path("points.csv"), format!("x,y\n{x},{y}\n")).unwrap();
    let value: f64 = place.done("log-prob runs/tiny points.csv").trim().parse().unwrap();
    assert!((value - grid.data[8 + 6]).abs() < 2e-3, "{value} {}", grid.data[8 + 6]);
    place.done("log-prob runs/tiny a.npy --out values.npy --rtol 1e-4 --atol 1e-4");
    assert_eq!(flowline::io::read_npy(place.path("values.npy")).unwrap().shape, [300]);

    let before = place.names();
    place.fails("log-prob runs/tiny a.npy --rtol 0 --atol 0 --out no.npy", 2, &["rtol=0"]);
    place.fails("sample runs/tiny -n 3 --out no.txt", 2, &["no.txt", ".npy"]);
    place.fails("density runs/tiny --grid 0 --out no.png", 2, &["--grid=0"]);
    place.fails("density runs/tiny --grid 3 --margin NaN --out no.png", 2, &["--margin=NaN"]);
    place.fails("log-prob runs/tiny grid.npy --out no.npy", 1, &["grid.npy", "[8, 8]"]);
    place.fails("log-prob runs/tiny c.png --out no.npy", 1, &["c.png", "NPY"]);
    fs::write(place.path("nan.csv"), "1,2\nNaN,3\n").unwrap();
    place.fails("log-prob runs/tiny nan.csv --out no.npy", 1, &["nan.csv line 2", "NaN", "finite"]);
    fs::write(place.path("nan.csv"), "x,y\n1,2\n\n3,-1e6\n").unwrap();
    place.fails("log-prob runs/tiny nan.csv --out no.npy", 1, &["nan.csv line 4", "-1000000", "deviations"]);
    fs::write(place.path("nan.csv"), b"1,2\n\xff,3\n").unwrap();
    place.fails("log-prob runs/tiny nan.csv --out no.npy", 1, &["nan.csv line 2", "UTF-8"]);
    flowline::io::write_npy(place.path("nan.npy"), &[2, 2], &[1.0, 2.0, 3.0, f64::NAN]).unwrap();
    place.fails("log-prob runs/tiny nan.npy --out no.npy", 1, &["nan.npy row 2", "finite"]);
    place.fails("density runs/tiny --grid 9 --margin 1e6 --out no.npy", 2, &["--margin=1000000", "at most"]);
    for name in ["nan.csv", "nan.npy"] {
        fs::remove_file(place.path(name)).unwrap();
    }
    assert_eq!(place.names(), before);
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

/// The numbers and the unit beside the colour bar, the right end of a picture, are those of the run's density.
fn one_scale(place: &Place) {
    let beside = |name: &str| {
        let picture = image::open(place.path(name)).unwrap().into_rgb8();
        let (width, height) = picture.dimensions();
        image::imageops::crop_imm(&picture, width - 150, 100, 150, height - 100).to_image()
    };
    let run = beside("runs/tiny/density.png");
    for name in ["c.png", "grid.png"] {
        assert!(beside(name) == run, "{name} has another colour scale");
    }
}

#[test]
fn files_of_somebody_else_are_not_overwritten() {
    let place = Place::new();
    let train = format!("train tiny.png --updates 1 {SMALL} --out mine");
    fs::create_dir(place.path("mine")).unwrap();
    for name in ["metrics.csv", "density.png"] {
        fs::write(place.path("mine").join(name), "mine").unwrap();
        for options in ["", " --resume"] {
            place.fails(&format!("{train}{options}"), 1, &[name, "overwritten", "--out"]);
        }
        assert_eq!(fs::read_dir(place.path("mine")).unwrap().count(), 1);
        assert_eq!(fs::read(place.path("mine").join(name)).unwrap(), b"mine");
        fs::remove_file(place.path("mine").join(name)).unwrap();
    }
    // What a run wrote is a run's, and one that lost its checkpoint begins anew.
    place.done(&train);
    fs::remove_file(place.path("mine/model.safetensors")).unwrap();
    place.fails(&train, 1, &["mine", "overwritten"]);
    place.done(&format!("{train} --resume"));
}

/// Waits until the checkpoint in a folder is another than the first, or the program has ended.
fn wait_for_checkpoint(place: &Place, folder: &str, child: &mut Child) {
    let model = place.path(folder).join("model.safetensors");
    let (begun, mut first) = (Instant::now(), None);
    while child.try_wait().unwrap().is_none() && begun.elapsed() < Duration::from_secs(60) {
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
    let train = format!("train tiny.png --updates 4000 --seed 5 {SMALL}");
    let mut child = place.command(&format!("{train} --out killed")).spawn().unwrap();
    wait_for_checkpoint(&place, "killed", &mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    // Killed a second time, at once, and in the middle of a write.
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

/// A run that is resumed when nothing is left to do tells what it told before.
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
fn resuming_asks_for_the_same_run() {
    let place = Place::new();
    let train = format!("train tiny.png --out run --updates 3 --seed 2 {SMALL}");
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
    image::GrayImage::from_fn(16, 12, |x, _| image::Luma([x as u8])).save(place.path("other.png")).unwrap();
    place.fails("train other.png --out run --resume", 1, &["other.png", "16 x 12"]);
    assert_eq!(fs::read(place.path("run/model.safetensors")).unwrap(), model);
    // The same options again, some of them, or defaults spelled out.
    place.done(&format!("{train} --resume"));
    place.done("train tiny.png --out run --resume --seed 2 --optimizer adamw");
    assert_eq!(fs::read(place.path("run/model.safetensors")).unwrap(), model);
}

#[test]
fn the_optimiser_is_chosen_by_name_and_remembered() {
    let place = Place::new();
    let train = format!("train tiny.png --updates 2 {SMALL}");
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
fn other_versions_are_refused_and_damaged_checkpoints_begin_anew() {
    let place = Place::new();
    let train = format!("train tiny.png --out run --updates 2 {SMALL}");
    place.done(&train);
    let path = place.path("run/model.safetensors");
    let model = fs::read(&path).unwrap();
    let format = br#"\"format\":1"#;
    let at = model.windows(format.len()).position(|w| w == format).expect("the format stands in the header");
    let mut other = model.clone();
    other[at + format.len() - 1] = b'7';
    fs::write(&path, &other).unwrap();
    for arguments in ["info run", "sample run -n 2", &format!("{train} --resume")] {
        place.fails(arguments, 1, &["run/model.safetensors", "format 7", "format 1"]);
    }
    fs::write(&path, &model[..model.len() - 9]).unwrap();
    place.fails("info run", 1, &["run/model.safetensors", "damaged"]);
    place.fails("density run --grid 3 --out d.npy", 1, &["damaged"]);
    place.done(&format!("{train} --resume"));
    assert_eq!(fs::read(&path).unwrap(), model);
}

#[test]
fn a_plan_runs_nothing_and_tells_memory_and_operations() {
    let place = Place::new();
    let plan = |options: &str| json(&place.done(&format!("train tiny.png --plan --json {options}")));
    let of = |checkpoints: usize| {
        let plan =
            plan(&format!("--width 8 --depth 1 --batch 64 --fixed-steps 100 --checkpoints {checkpoints}"));
        assert_eq!(plan["weights"], 490);
        for field in ["flops", "kernels", "bytes_moved", "peak_gflops"] {
            assert!(plan[field].as_f64().is_some_and(|x| x > 0.0), "{field} in {plan}");
        }
        plan["plan_peak_bytes"].as_u64().unwrap()
    };
    let peaks = [64, 16, 4].map(of);
    assert!(peaks[0] > peaks[1] && peaks[1] > peaks[2], "{peaks:?}");
    assert!(place.done(&format!("train tiny.png --plan {SMALL}")).contains("flow matching"));
    let small = plan("--width 8 --depth 1 --batch 64 --fixed-steps 100 --checkpoints 4");
    let states = &small["phases"][1]["states"][0];
    assert_eq!((states["slots"].as_u64(), states["kept"].as_u64()), (Some(4), Some(4)), "{small}");
    assert!(states["recomputed"].as_u64() > Some(100));
    let adaptive = "--width 8 --depth 1 --batch 64 --rtol 1e-4";
    assert_eq!(plan(adaptive)["phases"][1]["flops_of"], "step");
    assert!(plan(adaptive)["phases"][1]["states"][0]["steps"].is_null());
    assert_eq!(plan(adaptive)["phases"][0]["flops_of"], "update");
    let text = place.done(&format!("train tiny.png --plan {adaptive}"));
    for words in ["a step of each solve", "an update of", "kernels", "workspace", "floor"] {
        assert!(text.contains(words), "\"{words}\" is missing in: {text}");
    }
    assert!(place.names().is_empty());
}

#[test]
fn info_tells_the_planned_work_of_the_updates_and_their_share_of_the_peak() {
    let place = Place::new();
    // Three updates of them by the solver: the mean is told, not the sum.
    let options = format!("train tiny.png --updates 300 {SMALL}");
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
        for (told, of) in [("flops_per_update", "flops"), ("bytes_moved_per_update", "bytes_moved")] {
            let (told, planned) = (number(phase, told), number(planned, of));
            assert!(told > 0.0 && (told / planned - 1.0).abs() < 1e-6, "{of}: {told} {planned}");
        }
        let (rate, share) = (number(phase, "gflops"), number(phase, "share_of_peak"));
        assert!(share > 0.0 && share < 1.2, "{phase}");
        let again = number(phase, "flops_per_update") / number(phase, "ms_per_update") / 1e6;
        assert!(
            (rate / again - 1.0).abs() < 1e-9
                && (rate / share / number(&info, "peak_gflops") - 1.0).abs() < 1e-9
        );
    }
    let text = place.done("info run");
    assert!(
        text.contains("of the peak") && text.contains("GFLOP/s of matrix products on one thread"),
        "{text}"
    );

    // Adaptive: a plan counts one step of each solve, a run those that were taken.
    let options = "train tiny.png --updates 20 --width 8 --depth 1 --batch 64 --rtol 1e-4";
    let step = json(&place.done(&format!("{options} --plan --json")));
    place.done(&format!("{options} --out adaptive"));
    let solved = &json(&place.done("info adaptive --json"))["phases"][1];
    let steps = number(solved, "flops_per_update") / number(&step["phases"][1], "flops");
    assert!(steps > 1.5 && steps < 200.0, "{steps}");
    // Without its counters a run tells no work, and no more than that is missing.
    fs::remove_file(place.path("run/counters.json")).unwrap();
    assert_eq!(json(&place.done("info run --json"))["phases"].as_array().unwrap().len(), 0);
    assert!(!place.done("info run").contains("of the peak"));
}

#[test]
fn the_documented_preset_has_one_phase_through_the_solver() {
    let place = Place::new();
    let options = "--preset documented --width 8 --depth 1 --batch 40 --updates 2";
    let report = json(&place.done(&format!("train tiny.png --out run --json {options}")));
    assert_eq!(report["phases"].as_array().unwrap().len(), 1);
    let phase = &report["phases"][0];
    assert_eq!(phase["objective"], "maximum_likelihood");
    assert_eq!(phase["field_evals_per_update"], 120.0);
    let info = json(&place.done("info run --json"));
    assert_eq!(info["header"]["recipe"]["model"]["t1"], 0.5);
}

#[test]
fn progress_goes_to_standard_error_and_a_closed_reader_is_no_failure() {
    let place = Place::new();
    let mut child = place.command(&format!("train tiny.png --updates 1 --json {SMALL}")).spawn().unwrap();
    drop(child.stdout.take());
    let mut message = String::new();
    child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
    assert!(child.wait().unwrap().success(), "{message}");
    assert!(
        message.contains("gap") && message.contains(&Path::new("runs").join("tiny").display().to_string())
    );
}
