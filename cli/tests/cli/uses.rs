//! Uses of a trained density: samples in few steps, rows with given columns, anomaly scores.

use crate::place::{Place, SMALL, json};
use std::fmt::Write as _;
use std::fs;

/// A run on 400 rows of three columns. The second rises with the first, by half as much, and the third does not.
fn run() -> Place {
    let place = Place::new();
    let bell = |i: u32| (-2.0 * ((f64::from(i) + 0.5) / 400.0).ln()).sqrt() * (f64::from(i) * 2.4).cos();
    let mut text = "height,weight,age\n".to_owned();
    for i in 0..400 {
        let (x, y, z) = (bell(i), bell((i * 77 + 5) % 400), bell((i * 131 + 9) % 400));
        let _ = writeln!(text, "{},{},{}", 170.0 + 10.0 * x, 65.0 + 5.0 * x + 3.0 * y, 40.0 + 9.0 * z);
    }
    fs::write(place.path("people.csv"), text).unwrap();
    let options = "--objective flow-matching --updates 200 --width 8 --depth 1 --batch 64 --plots none";
    place.done(&format!("train people.csv --out run {options}"));
    place
}

const HEADING: &str = "height,weight,age";

/// The numbers of a table with this heading, by rows.
fn table(text: &str, heading: &str) -> Vec<Vec<f64>> {
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(heading));
    let numbers = |line: &str| line.split(',').map(|x| x.parse().unwrap()).collect();
    lines.filter(|line| line.starts_with(|c: char| c.is_ascii_digit() || c == '-')).map(numbers).collect()
}

#[test]
fn few_steps_approach_the_adaptive_samples_and_are_recorded() {
    let place = run();
    let drawn = |options: &str| table(&place.done(&format!("sample run -n 50 -o - {options}")), HEADING);
    let exact = drawn("");
    let off = |steps: usize| {
        let rows = drawn(&format!("--steps {steps}"));
        let pairs = rows.as_slice().concat().into_iter().zip(exact.concat());
        pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    };
    let [one, four, many] = [1, 4, 64].map(off);
    assert!(one.is_finite() && four < one && many < 0.2 * four && many < 0.1, "{one} {four} {many}");
    let report = json(&place.done("sample run -n 5 --steps 3 --json -o few.npy"));
    assert_eq!((report["steps"].as_u64(), report["count"].as_u64()), (Some(3), Some(5)));
    assert!(json(&place.done("sample run -n 5 --json -o all.npy"))["steps"].is_null());
    place.fails("sample run --steps 0", 2, &["--steps=0", "from 1 to 1024"]);
    place.fails("sample run --steps 2000", 2, &["--steps=2000", "from 1 to 1024"]);
    place.fails("sample run --steps few", 2, &["--steps", "whole number"]);
    place.fails("sample run --steps 4 --given height=170", 2, &["--steps and --given"]);
}

#[test]
fn rows_have_the_given_columns_and_the_others_follow() {
    let place = run();
    let mean = |height: f64| {
        let (out, err) = place.output(&format!("sample run -n 400 --given height={height} -o -"));
        let rows = table(&out, HEADING);
        assert!(rows.len() == 400 && rows.iter().all(|row| row[0] == height), "{out}");
        assert!(err.contains("effective sample size") && err.contains("of 4,096 proposals"), "{err}");
        rows.iter().map(|row| row[1]).sum::<f64>() / 400.0
    };
    assert!(mean(182.0) > mean(158.0) + 2.0);
    let report = json(&place.done("sample run -n 50 --given 2=64.5 --json -o light.csv"));
    assert_eq!(report["given"].as_array().unwrap()[0].as_str(), Some("2=64.5"));
    assert!(
        report["effective_sample_size"].as_f64().unwrap() > 100.0
            && report["proposals"].as_u64() == Some(4096)
    );
    assert!(report["log_prob_given_nats"].as_f64().unwrap() < -1.0);
    assert!(report["log_prob_given_stderr_nats"].as_f64().unwrap() < 0.2);
    let rows = table(&fs::read_to_string(place.path("light.csv")).unwrap(), HEADING);
    assert!(rows.len() == 50 && rows.iter().all(|row| row[1] == 64.5));
    // The same seed, the same bytes.
    let again = place.done("sample run -n 50 --given weight=64.5 -o -");
    assert_eq!(again, fs::read_to_string(place.path("light.csv")).unwrap());
    let (_, err) = place.output("sample run -n 20000 --given weight=64.5 -o many.npy");
    assert!(!err.contains("warning") || err.contains("rows repeat"), "{err}");
    for (given, words) in [
        ("size=3", &["--given=size=3", "no column \"size\"", "height, weight, age"][..]),
        ("height", &["as COLUMN=X"]),
        ("height=tall", &["\"tall\" is not a finite number"]),
        ("height=170,weight=60,age=30", &["nothing to draw"]),
        ("height=170,1=160", &["height is given twice"]),
    ] {
        place.fails(&format!("sample run --given {given}"), 2, words);
    }
    place.fails("sample run --given height=17000", 1, &["17000", "standard deviations"]);
    place.fails("sample run -n 2000000 --given height=170", 2, &["-n=2000000", "--given"]);
}

#[test]
fn anomaly_scores_have_columns_and_find_the_odd_row() {
    let place = run();
    fs::write(place.path("rows.csv"), "height,weight,age\n168,64.2,45\n170,66,33\n140,95,40\n").unwrap();
    let heading = "log_prob,p_value,p_value_stderr,two_sided,z_squared";
    let (out, err) = place.output("log-prob run rows.csv --anomaly=500");
    let rows = table(&out, heading);
    assert!(rows.len() == 3 && err.contains("3 points, compared with 500 samples"), "{out} {err}");
    assert!(rows[2][1] < 0.01 && rows[2][4] > 9.0 && rows[0][1] > 0.1, "{rows:?}");
    for row in &rows {
        assert!((row[3] - 2.0 * row[1].min(1.0 - row[1])).abs() < 1e-9 && row[2] > 0.0);
    }
    // Without the option the output is as before, and the log-densities are the same.
    let plain = place.done("log-prob run rows.csv");
    let plain: Vec<f64> = plain.lines().map(|line| line.parse().unwrap()).collect();
    assert!(plain.iter().zip(&rows).all(|(a, row)| *a == row[0]) && plain.len() == 3);
    place.done("log-prob run rows.csv --anomaly=500 -o scores.csv");
    assert_eq!(table(&fs::read_to_string(place.path("scores.csv")).unwrap(), heading), rows);
    place.done("log-prob run rows.csv --anomaly=500 -o scores.npy");
    assert_eq!(flowline::io::read_npy(place.path("scores.npy")).unwrap().shape, [3, 5]);
    let report = json(&place.done("log-prob run rows.csv --anomaly --json"));
    assert_eq!((report["anomaly_draws"].as_u64(), report["unusual"].as_u64()), (Some(4096), Some(1)));
    for column in heading.split(',') {
        assert_eq!(report[column].as_array().map(Vec::len), Some(3), "{column}: {report}");
    }
    for few in ["0", "199"] {
        let words = [&*format!("--anomaly={few}"), "from 200 to 1000000"];
        place.fails(&format!("log-prob run rows.csv --anomaly={few}"), 2, &words);
    }
    fs::write(place.path("far.csv"), "height,weight,age\n168,64.2,45\n1e6,66,45\n").unwrap();
    place.fails("log-prob run far.csv --anomaly", 1, &["far.csv line 3", "standard deviations"]);
}

#[test]
fn an_image_is_sampled_in_steps_and_along_a_line() {
    let place = Place::new();
    place.done(&format!("train tiny.png --out run --updates 20 {SMALL} --plots none"));
    let rows = table(&place.done("sample run -n 200 --steps 8 -o -"), "x,y");
    assert!(rows.len() == 200 && rows.concat().iter().all(|x| x.is_finite()));
    let rows = table(&place.done("sample run -n 200 --given x=5 -o -"), "x,y");
    assert!(rows.iter().all(|row| row[0] == 5.0));
}

#[test]
fn image_sets_are_sampled_in_steps_and_have_no_other_use() {
    let place = Place::new();
    fs::create_dir(place.path("set")).unwrap();
    for i in 0..20 {
        place.image(&format!("set/{i:02}.png"), [4, 4], |x, y| if x == i % 4 { 200 } else { (10 * y) as u8 });
    }
    place.done("train set --out run --updates 6 --batch 8 --width 4 --depth 1 --field mlp --plots none");
    place.done("sample run -n 3 --steps 2 -o few.npy");
    assert_eq!(fs::read(place.path("few.npy")).unwrap().len(), 128 + 3 * 16);
    place.fails("sample run --given pixel0=3", 2, &["not available", "set of images", "missing pixels"]);
    place.fails("log-prob run set --anomaly", 2, &["anomaly scores", "not available", "set of images"]);
}
