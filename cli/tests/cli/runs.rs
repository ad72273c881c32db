//! A run on an image: its files, its report, and what can be done with its folder afterwards.

use crate::place::{Place, SMALL, json};
use flowline::io::raster;
use std::fs;
use std::io::Read;
use std::path::Path;

#[test]
fn a_run_writes_its_files_and_reports_every_field() {
    let place = Place::new();
    let report =
        json(&place.done(&format!("train tiny.png --updates 120 --seed 3 --threads 2 --json {SMALL}")));
    for field in [
        "updates",
        "weights",
        "loss",
        "nll_nats",
        "nll_stderr_nats",
        "test_nll_nats",
        "test_nll_stderr_nats",
        "validation_nats",
        "entropy_nats",
        "gap_nats",
        "gap_stderr_nats",
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
    files_of_a_run(&place, &report);
    uses_of_a_run(&place);
}

/// The files of a run and their names in the report; a row of metrics for each update.
fn files_of_a_run(place: &Place, report: &serde_json::Value) {
    let figures = ["density", "comparison", "samples", "flow", "field", "loss", "gap", "loss_by_t"];
    for name in figures.into_iter().chain(["metrics", "model"]) {
        let path = place.path(report["files"][name].as_str().unwrap_or_else(|| panic!("no {name}")));
        assert!(path.starts_with(place.path("runs/tiny")) && fs::metadata(&path).unwrap().len() > 0);
    }
    let metrics = fs::read_to_string(place.path("runs/tiny/metrics.csv")).unwrap();
    let heading = "update,phase,loss,nll_nats,ms,field_evals,live_buffers,live_bytes,rss_mb,traces,nll_stderr_nats,\
        kl_estimate_nats,kl_estimate_stderr_nats,loss_t1,loss_t2,loss_t3,loss_t4,loss_t5,loss_t6,loss_t7,loss_t8";
    assert_eq!((metrics.lines().next(), metrics.lines().count()), (Some(heading), 121));
}

/// Runs the commands that read a run folder. Points, grids and values agree.
fn uses_of_a_run(place: &Place) {
    assert!(place.done("info runs/tiny").contains("16 x 12 pixels"));
    place.done("sample runs/tiny -n 300 --out a.npy");
    place.done("sample runs/tiny -n 200 --out b.csv");
    place.done("sample runs/tiny -n 200 --out c.png");
    let a = flowline::io::read_npy(place.path("a.npy")).unwrap();
    let b = flowline::io::read_csv(place.path("b.csv")).unwrap().data;
    assert_eq!((a.shape, b.len()), (vec![300, 2], 400));
    let inside =
        a.data.chunks(2).filter(|p| (0.0..16.0).contains(&p[0]) && (0.0..12.0).contains(&p[1])).count();
    assert!(inside > 200, "{inside} of 300 points lie in the image");

    place.done("density runs/tiny --grid 8 --margin 2 --out grid.npy");
    place.done("density runs/tiny --grid 8 --out grid.png");
    for command in ["density runs/tiny --grid 8", "sample runs/tiny -n 50"] {
        place.done(&format!("{command} --out figure.svg"));
        let figure = std::fs::read_to_string(place.path("figure.svg")).unwrap();
        assert!(figure.starts_with("<svg") && figure.contains("</text>"), "{command}");
    }
    one_scale(place);
    // A longer sample begins with a shorter one, although it is computed in parts.
    place.done("sample runs/tiny -n 5000 --out long.npy");
    let long = flowline::io::read_npy(place.path("long.npy")).unwrap();
    assert!(long.shape == [5000, 2] && long.data[..600] == a.data[..]);
    let grid = flowline::io::read_npy(place.path("grid.npy")).unwrap();
    assert_eq!(grid.shape, [8, 8]);
    // `log-prob` returns the same value at the same point, the center of row 1, column 6 of the grid. The grid covers
    // 20 x 16 pixels from (-2, -2).
    let [x, y] = [-2.0 + 20.0 * 6.5 / 8.0, -2.0 + 16.0 * 1.5 / 8.0];
    fs::write(place.path("points.csv"), format!("x,y\n{x},{y}\n")).unwrap();
    let value: f64 = place.done("log-prob runs/tiny points.csv").trim().parse().unwrap();
    assert!((value - grid.data[8 + 6]).abs() < 2e-3, "{value} {}", grid.data[8 + 6]);
    place.done("log-prob runs/tiny a.npy --out values.npy --rtol 1e-4 --atol 1e-4");
    assert_eq!(flowline::io::read_npy(place.path("values.npy")).unwrap().shape, [300]);

    place.fails("log-prob runs/tiny a.npy --rtol 0 --atol 0 --out no.npy", 2, &["--rtol=0"]);
    place.fails("plot runs/tiny", 2, &["has no columns", "flowline density"]);
    place.fails("sample runs/tiny -n 3 --out no.txt", 2, &["no.txt", ".npy"]);
    place.fails("density runs/tiny --grid 0 --out no.png", 2, &["--grid=0"]);
    place.fails("density runs/tiny --grid 3 --margin NaN --out no.png", 2, &["--margin=NaN"]);
    place.fails("log-prob runs/tiny grid.npy --out no.npy", 1, &["grid.npy", "[8, 8]"]);
    place.fails("log-prob runs/tiny c.png --out no.npy", 1, &["c.png", "NPY"]);
    fs::write(place.path("nan.csv"), "1,2\nNaN,3\n").unwrap();
    place.fails("log-prob runs/tiny nan.csv --out no.npy", 1, &["nan.csv line 2", "NaN", "--drop-missing"]);
    fs::write(place.path("nan.csv"), "x,y\n1,2\n\n3,-1e6\n").unwrap();
    place.fails("log-prob runs/tiny nan.csv --out no.npy", 1, &["nan.csv line 4", "-1000000", "deviations"]);
    fs::write(place.path("nan.csv"), b"1,2\n\xff,3\n").unwrap();
    place.fails("log-prob runs/tiny nan.csv --out no.npy", 1, &["nan.csv line 2", "UTF-8"]);
    flowline::io::write_npy(place.path("nan.npy"), &[2, 2], &[1.0, 2.0, 3.0, f64::NAN]).unwrap();
    place.fails("log-prob runs/tiny nan.npy --out no.npy", 1, &["nan.npy row 2", "finite"]);
    place.fails("density runs/tiny --grid 9 --margin 1e6 --out no.npy", 2, &["--margin=1000000", "at most"]);
}

/// Checks that each figure has the color scale of the run, at its right end.
fn one_scale(place: &Place) {
    let beside = |name: &str| {
        let image = raster::decode(&fs::read(place.path(name)).unwrap()).unwrap();
        let (width, pixels) = (image.width() as usize, image.rgba8().collect::<Vec<_>>());
        pixels.chunks(width).skip(100).flat_map(|row| row[width - 150..].to_vec()).collect::<Vec<_>>()
    };
    let run = beside("runs/tiny/density.png");
    for name in ["c.png", "grid.png"] {
        assert!(beside(name) == run, "{name} has another color scale");
    }
}

#[test]
fn the_diffrax_preset_has_one_phase_of_maximum_likelihood() {
    let place = Place::new();
    let options = "--preset diffrax --width 8 --depth 1 --batch 40 --updates 2 --plots none";
    let report = json(&place.done(&format!("train tiny.png --out run --json {options}")));
    assert_eq!(report["phases"].as_array().unwrap().len(), 1);
    let phase = &report["phases"][0];
    assert_eq!(phase["objective"], "maximum_likelihood");
    assert_eq!(phase["field_evals_per_update"], 120.0);
    let info = json(&place.done("info run --json"));
    assert_eq!(info["header"]["recipe"]["model"]["t1"], 0.5);
    // Run folders store the older name of the preset.
    assert_eq!(info["header"]["options"]["preset"], "documented");
}

#[test]
fn progress_goes_to_standard_error_and_a_closed_pipe_is_not_a_failure() {
    let place = Place::new();
    let mut child =
        place.command(&format!("train tiny.png --updates 1 --plots none --json {SMALL}")).spawn().unwrap();
    drop(child.stdout.take());
    let mut message = String::new();
    child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
    assert!(child.wait().unwrap().success(), "{message}");
    assert!(
        message.contains("KL divergence")
            && message.contains(" test points)")
            && message.contains(&Path::new("runs").join("tiny").display().to_string())
    );
}
