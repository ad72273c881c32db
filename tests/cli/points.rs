//! Runs on toys and on points of a file, in their own units.

use crate::place::{Place, json, keeps_its_buffers};
use std::fs;

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

/// Writes 300 points in space, each coordinate of another scale.
fn orbit(place: &Place) {
    let rows: Vec<String> = (0..300)
        .map(|i| f64::from(i) * 0.7)
        .map(|t| format!("{},{},{}", 100.0 * t.sin(), 0.01 * (1.3 * t).cos(), 5.0 + (0.31 * t).sin()))
        .collect();
    fs::write(place.path("orbit.csv"), format!("mass,speed,height\n{}\n", rows.join("\n"))).unwrap();
}

#[test]
fn points_of_a_file_keep_their_columns_and_odd_ones_leave_nothing() {
    let place = Place::new();
    orbit(&place);
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

    for (text, words) in [
        ("a,b\n1,2\n", &["odd.csv", "1 is too few"][..]),
        ("a,b\n1,2\n3,inf\n5,6\n", &["line 3", "column b is inf"]),
        ("a,b\n1,2\n3\n", &["line 3", "1 column instead of 2"]),
        ("", &["d = 0"]),
        ("a,b\n1,2\n1,3\n1,4\n", &["column a is 1 in all"]),
    ] {
        fs::write(place.path("odd.csv"), text).unwrap();
        place.fails("train odd.csv --updates 5", 1, words);
    }
}

#[test]
fn a_run_holds_as_many_buffers_at_its_end_as_before_its_first_measure() {
    let place = Place::new();
    orbit(&place);
    let options = "--updates 1100 --objective flow-matching --width 8 --depth 1 --batch 64";
    keeps_its_buffers(&place.done(&format!("train orbit.csv --json {options}")));
}
