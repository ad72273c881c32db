//! Runs on toy densities and on points from a file, in the units of the data.

use crate::place::{Place, json, keeps_its_buffers};
use std::fs;

#[test]
fn a_toy_density_is_learned_by_name_and_reported_in_its_units() {
    let place = Place::new();
    let report =
        json(&place.done("train checkerboard --updates 20 --width 8 --depth 1 --batch 64 --json --out run"));
    let nats = |field: &str| report[field].as_f64().unwrap_or_else(|| panic!("no {field} in {report}"));
    assert!((nats("entropy_nats") - 32f64.ln()).abs() < 1e-12);
    assert!(
        (nats("gap_nats") - nats("nll_nats") + nats("entropy_nats")).abs() < 1e-12 && nats("gap_nats") > 0.0
    );
    assert!(
        (nats("test_nll_nats") - nats("nll_nats")).abs() < 1e-9,
        "the checkerboard's density is constant"
    );
    let off = (nats("validation_nats") - nats("nll_nats")).abs();
    assert!(off < 5.0 * nats("validation_stderr_nats") && (nats("mass") - 1.0).abs() < 2e-3, "{report}");
    assert!(nats("gap_stderr_nats") > 0.0 && nats("gap_stderr_nats") == nats("nll_stderr_nats"), "{report}");
    for name in ["density", "comparison", "samples", "flow", "loss", "metrics", "model"] {
        assert!(place.path(report["files"][name].as_str().unwrap()).exists(), "{name}");
    }
    place.done("sample run -n 500 --out a.csv");
    let a = flowline::io::read_csv(place.path("a.csv")).unwrap();
    assert_eq!((a.columns, a.lines.len()), (vec!["x".to_owned(), "y".to_owned()], 500));
    assert!(a.data.iter().any(|x| x.abs() > 2.5), "samples are in units");
    // Densities at points and at the grid's cell centers agree; the first row of the grid has the largest y.
    place.done("density run --grid 5 --out grid.npy");
    place.fails("density run --grid 5 --out nowhere/grid.npy", 1, &["nowhere/grid.npy cannot be written"]);
    let grid = flowline::io::read_npy(place.path("grid.npy")).unwrap();
    let info = json(&place.done("info run --json"));
    let (image, number) = (&info["header"]["image"], |x: &serde_json::Value| x.as_f64().unwrap());
    let center = |a: usize, side: &str, i: f64| {
        number(&image["units"]["origin"][a])
            + number(&image["units"]["pixel"][a]) * number(&image[side]) * i / 5.0
    };
    let point = format!("x,y\n{},{}\n", center(0, "width", 1.5), center(1, "height", 0.5));
    assert!(center(1, "height", 0.5) > 2.0);
    fs::write(place.path("point.csv"), point).unwrap();
    let value: f64 = place.done("log-prob run point.csv").trim().parse().unwrap();
    assert!((value - grid.data[1]).abs() < 1e-3, "{value} {:?}", grid.data);
}

/// Writes 300 points in 3-D, each coordinate on a different scale.
fn orbit(place: &Place) {
    let rows: Vec<String> = (0..300)
        .map(|i| f64::from(i) * 0.7)
        .map(|t| format!("{},{},{}", 100.0 * t.sin(), 0.01 * (1.3 * t).cos(), 5.0 + (0.31 * t).sin()))
        .collect();
    fs::write(place.path("orbit.csv"), format!("mass,speed,height\n{}\n", rows.join("\n"))).unwrap();
}

#[test]
fn points_of_a_file_keep_their_columns_and_invalid_ones_leave_no_files() {
    let place = Place::new();
    orbit(&place);
    let report = json(&place.done("train orbit.csv --updates 30 --width 8 --depth 1 --batch 64 --json"));
    assert!(
        report.get("gap_nats").is_none()
            && report.get("mass").is_none()
            && report["validation_nats"] == report["nll_nats"]
            && report["test_nll_nats"] != report["nll_nats"]
            && report["test_nll_stderr_nats"].is_f64()
    );
    assert_eq!((report["validation_rows"].as_u64(), report["test_rows"].as_u64()), (Some(30), Some(30)));
    assert!(report["phases"].as_array().unwrap().iter().all(|phase| phase.get("gap_nats").is_none()));
    assert!(
        place.path("runs/orbit/corner.png").exists() && place.path("runs/orbit/best.safetensors").exists()
    );
    place.done("sample runs/orbit -n 50 --out a.csv");
    let text = fs::read_to_string(place.path("a.csv")).unwrap();
    assert!(text.starts_with("mass,speed,height\n") && text.lines().count() == 51);
    place.done("log-prob runs/orbit orbit.csv --out values.npy");
    assert_eq!(flowline::io::read_npy(place.path("values.npy")).unwrap().shape, [300]);
    place.fails(
        "log-prob runs/orbit orbit.csv --labels orbit.csv",
        2,
        &["--labels=orbit.csv", "without labels"],
    );
    place.fails("log-prob runs/orbit orbit.csv --draws 2", 2, &["--draws=2", "set of images"]);
    place.fails("density runs/orbit --grid 8", 2, &["data of this run have 3"]);
    place.fails("train orbit.csv --validation odd.csv --out run", 1, &["odd.csv", "cannot be read"]);
    place.fails("train orbit.csv --test odd.csv --out run", 1, &["odd.csv", "cannot be read"]);
    place.fails("train moons --test orbit.csv", 2, &["--test=orbit.csv", "leave --test out"]);

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
fn the_test_file_is_scored_once_and_changes_no_weight() {
    let place = Place::new();
    orbit(&place);
    let rows = |shift: f64| (0..50).map(move |i| format!("{},{},{}\n", shift + f64::from(i), 0.01, 5.0));
    let train = "train orbit.csv --updates 10 --width 4 --depth 1 --batch 16 --plots none --json";
    let [near, far] = [("near", 0.0), ("far", 200.0)].map(|(name, shift)| {
        let text: String =
            rows(shift).enumerate().map(|(i, row)| row.replace("0.01", &format!("0.0{i}"))).collect();
        let text = text.replacen(",5\n", ",5.5\n", 1);
        fs::write(place.path(&format!("{name}.csv")), format!("mass,speed,height\n{text}")).unwrap();
        let (out, err) = place.output(&format!("{train} --test {name}.csv --out {name}"));
        assert!(err.contains("test NLL") && err.contains("(50 points)"), "{err}");
        json(&out)
    });
    let model = |run: &str| fs::read(place.path(run).join("model.safetensors")).unwrap();
    assert!(model("near") == model("far"), "the test rows changed the weights");
    assert!(near["validation_nats"] == far["validation_nats"] && near["nll_nats"] == far["nll_nats"]);
    assert!(near["test_nll_nats"].as_f64().unwrap() < far["test_nll_nats"].as_f64().unwrap());
    place.fails("train orbit.csv --out near --resume", 1, &["270 training", "--test"]);
    let (_, err) = place.output("log-prob near near.csv");
    assert!(err.contains("50 points") && err.contains(" ± "), "{err}");
}

#[test]
fn a_run_holds_as_many_buffers_at_its_end_as_before_its_first_validation() {
    let place = Place::new();
    orbit(&place);
    let options = "--updates 1100 --objective flow-matching --width 8 --depth 1 --batch 64 --plots none";
    keeps_its_buffers(&place.done(&format!("train orbit.csv --json {options}")));
}

/// Writes 200 normally distributed points to `p.csv`; `row` formats the two coordinates of a point.
fn bells(place: &Place, row: impl Fn(f64, f64) -> String) {
    let bell = |i: u32| (-2.0 * ((f64::from(i) + 0.5) / 200.0).ln()).sqrt() * (f64::from(i) * 2.4).cos();
    let rows: Vec<String> = (0..200).map(|i| row(bell(i), bell((i * 77 + 5) % 200))).collect();
    fs::write(place.path("p.csv"), rows.join("\n")).unwrap();
}

#[test]
fn samples_have_the_precision_of_the_data_whatever_their_units() {
    let place = Place::new();
    let train = "train p.csv --updates 4 --width 4 --depth 1 --batch 16 --fixed-steps 2 --plots none";
    // Time stamps, and columns whose scales do not fit into 32 bits.
    bells(&place, |x, y| format!("{},{}", 1e9 + x, -1e15 + y));
    place.done(&format!("{train} --out far"));
    bells(&place, |x, y| format!("{},{}", 1e-40 * x, 1e150 * y));
    place.done(&format!("{train} --out wide"));
    for (run, distinct) in [("far", [990, 5]), ("wide", [990, 990])] {
        place.done(&format!("sample {run} -n 1000 --out s.csv"));
        place.done(&format!("sample {run} -n 1000 --out s.npy"));
        let csv = flowline::io::read_csv(place.path("s.csv")).unwrap().data;
        let npy = flowline::io::read_npy(place.path("s.npy")).unwrap();
        assert!(fs::read(place.path("s.npy")).unwrap().windows(3).any(|w| w == b"<f8"));
        assert!(csv == npy.data && csv.iter().all(|x| x.is_finite()), "{run}");
        for axis in 0..2 {
            let mut column: Vec<u64> = csv.iter().skip(axis).step_by(2).map(|x| x.to_bits()).collect();
            column.sort_unstable();
            column.dedup();
            assert!(column.len() >= distinct[axis], "{run}: {} values on axis {axis}", column.len());
        }
    }
}

#[test]
fn invalid_numbers_are_named_with_their_file_and_a_remedy() {
    let place = Place::new();
    for (text, words) in [
        ("1,2\n3,5\n", &["p.csv", "2 are too few", "--validation"][..]),
        ("1,2\n2,1e308\n3,4\n5,6\n", &["p.csv", "column x2", "deviation inf", "scale"]),
        ("1,1e-310\n2,2e-310\n3,4e-310\n5,6e-310\n", &["p.csv", "column x2", "deviation 0.0"]),
        ("1,1e308\n2,1e308\n3,1e308\n", &["p.csv", "column 2 is 1e308 in all"]),
    ] {
        fs::write(place.path("p.csv"), text).unwrap();
        place.fails("train p.csv --updates 2 --out run", 1, words);
    }
    bells(&place, |x, y| format!("{x},{y}"));
    place.done(
        "train p.csv --updates 2 --width 4 --depth 1 --batch 16 --fixed-steps 2 --plots none --out run",
    );
    for line in ["\"1,2\"", "1 2 3"] {
        fs::write(place.path("odd.csv"), line).unwrap();
        place.fails("log-prob run odd.csv", 1, &["odd.csv line 1", line.split([',', ' ']).next().unwrap()]);
    }
    place.fails("log-prob run p.csv --out p.csv", 2, &["--out=p.csv", "overwrite"]);
    fs::write(place.path("far.csv"), "1e308,0\n").unwrap();
    let output = place.run("log-prob run far.csv");
    assert!(output.status.code() == Some(1) && output.stderr.len() < 300, "{output:?}");
    let head = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({}), }}\n", "1, ".repeat(500));
    let length = (head.len() as u16).to_le_bytes();
    fs::write(place.path("axes.npy"), [b"\x93NUMPY\x01\x00", &length[..], head.as_bytes(), &[0; 8]].concat())
        .unwrap();
    let output = place.run("log-prob run axes.npy");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("axes.npy") && message.contains("500 axes") && message.len() < 300, "{message}");
}

#[test]
fn rounded_columns_get_noise_on_request_and_rows_are_scored_with_or_without_it() {
    let place = Place::new();
    let row = |i: i32| {
        let t = f64::from(i) * 0.7;
        format!(
            "{},{},{}",
            (10.0 * t.sin()).round(),
            (1.3 * t).cos(),
            (20.0 * (0.31 * t).sin()).round() / 10.0
        )
    };
    let rows: Vec<String> = (0..300).map(row).collect();
    fs::write(place.path("ages.csv"), format!("age,speed,height\n{}\n", rows.join("\n"))).unwrap();
    let train =
        "train ages.csv --objective flow-matching --updates 3 --width 4 --depth 1 --batch 16 --plots none";
    let (_, err) = place.output(&format!("{train} --out plain"));
    assert!(err.contains("age (21 different values)") && err.contains("--dequantize"), "{err}");
    let (out, err) = place.output(&format!("{train} --out run --dequantize"));
    assert!(err.contains("dequantized columns: age (step 1), height (step 0.1);"), "{err}");
    assert!(
        !err.contains("different values") && format!("{out}{err}").contains("scores are of values"),
        "{err}"
    );
    assert!(place.done("info run").contains("age (step 1), height (step 0.1)"));
    assert!(place.done("info run --options").contains("dequantize = true"));
    let (_, err) = place.output("sample run -n 3 --out a.csv");
    assert!(err.contains("samples are not rounded") && err.contains("age (step 1)"), "{err}");

    fs::write(place.path("few.csv"), format!("age,speed,height\n{}\n", rows[..2].join("\n"))).unwrap();
    let (plain, err) = place.output("log-prob run few.csv");
    assert!(err.contains("at the rows as they are"), "{err}");
    let (mean, err) = place.output("log-prob run few.csv --draws 4");
    assert!(err.contains("4 draws") && err.contains("lower bound") && mean != plain, "{err}");
    assert_eq!(place.output("log-prob run few.csv --draws 4").0, mean);
    place.fails("log-prob run few.csv --draws 0", 2, &["--draws=0"]);
    place.fails("log-prob plain few.csv --draws 4", 2, &["--draws=4", "--dequantize"]);
    place.fails("train moons --dequantize --out toy", 2, &["--dequantize=true", "a table"]);
}
