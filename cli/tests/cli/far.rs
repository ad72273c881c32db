//! Rows far from the data, and outputs that would replace files of a run.

use crate::place::Place;
use std::fmt::Write as _;
use std::fs;

const SMALL: &str = "--updates 5 --width 4 --depth 1 --batch 16 --plots none";

/// Writes a table of `rows` rows whose row `far`, from 0, is `value`.
fn table(place: &Place, name: &str, rows: usize, far: Option<(usize, f64)>) {
    let mut text = "a,b,c\n".to_owned();
    for i in 0..rows {
        let t = i as f64 * 0.7;
        let a = far.filter(|(row, _)| *row == i).map_or(t.sin(), |(_, value)| value);
        let _ = writeln!(text, "{a},{},{}", (1.3 * t).cos(), (2.1 * t).sin());
    }
    fs::write(place.path(name), text).unwrap();
}

/// The distances are from 150 to 1e100 standard deviations, in each row position, in each of three uses.
#[test]
fn a_far_row_is_refused_at_reading_by_file_and_line() {
    let place = Place::new();
    table(&place, "t.csv", 60, None);
    place.done(&format!("train t.csv --out run {SMALL}"));
    let mut uses = [0; 3];
    for (i, distance) in [150.0, -1e3, 1e6, -1e9, 1e30, 1e100].into_iter().enumerate() {
        let row = 7 * i;
        table(&place, "far.csv", 40, Some((row, distance)));
        let line = format!("far.csv line {}", row + 2);
        let words = [line.as_str(), "standard deviations", "leave it out"];
        for (count, arguments) in uses.iter_mut().zip([
            format!("train t.csv --test far.csv --out no {SMALL}"),
            format!("train t.csv --validation far.csv --out no {SMALL}"),
            "log-prob run far.csv".to_owned(),
        ]) {
            place.fails(&arguments, 1, &words);
            *count += 1;
        }
    }
    assert!(uses.iter().all(|&n| n == 6) && !place.path("no").exists());
    // A row at 50 standard deviations is scored.
    table(&place, "near.csv", 40, Some((3, 35.0)));
    place.done(&format!("train t.csv --test near.csv --out near {SMALL}"));
}

#[test]
fn outputs_replace_no_file_from_which_a_run_resumes() {
    let place = Place::new();
    table(&place, "t.csv", 60, None);
    place.done(&format!("train t.csv --columns a,b --out run {SMALL}"));
    fs::copy(place.path("t.csv"), place.path("points.csv")).unwrap();
    let before = fs::read(place.path("run/metrics.csv")).unwrap();
    for command in ["sample run", "log-prob run points.csv"] {
        place.fails(&format!("{command} -o run/metrics.csv"), 1, &["run/metrics.csv is a file of a run"]);
    }
    assert_eq!(fs::read(place.path("run/metrics.csv")).unwrap(), before);
    place.done("sample run -o run/mine.csv");
    place.fails(&format!("train t.csv {SMALL} --out /"), 1, &["/ is the root folder"]);
}
