//! Runs on sets of images: output, files and errors.

use crate::place::{Place, json, keeps_its_buffers};
use flowline::io::raster;
use std::fs;

/// Images of 4 x 6 pixels as an IDX file: vertical bars (class 0) and horizontal bars (class 1).
fn idx(n: usize) -> Vec<u8> {
    let pixel = |i: usize, p: usize| {
        let (y, x, at) = (p / 4, p % 4, i / 2 % 3);
        let inside =
            if i.is_multiple_of(2) { (at..at + 2).contains(&x) } else { (at + 1..at + 3).contains(&y) };
        if inside { 200 + (i * 7 % 50) as u8 } else { 0 }
    };
    let head = [[0, 0, 8, 3], (n as u32).to_be_bytes(), [0, 0, 0, 6], [0, 0, 0, 4]].concat();
    head.into_iter().chain((0..n).flat_map(|i| (0..24).map(move |p| pixel(i, p)))).collect()
}

/// A folder with a set of 80 images and their classes.
fn bars() -> Place {
    let place = Place::new();
    fs::write(place.path("bars.idx"), idx(80)).unwrap();
    let labels: String = (0..80).map(|i| format!("{}\n", i % 2)).collect();
    fs::write(place.path("labels.csv"), format!("class\n{labels}")).unwrap();
    place
}

const SMALL: &str = "--updates 30 --batch 16 --width 8 --depth 1 --lr 0.01";

#[test]
fn a_set_with_classes_is_trained_described_sampled_and_scored() {
    let place = bars();
    let (out, err) = place.output(&format!("train bars.idx --labels labels.csv --out run --json {SMALL}"));
    let report = json(&out);
    for key in [
        "bits_per_dim",
        "bits_per_dim_stderr",
        "test_bits_per_dim",
        "test_bits_per_dim_stderr",
        "validation_nats",
        "nll_nats",
        "nll_stderr_nats",
        "test_nll_nats",
        "test_nll_stderr_nats",
    ] {
        assert!(report[key].as_f64().is_some_and(f64::is_finite), "{key}: {report}");
    }
    assert!(report.get("gap_nats").is_none() && report.get("entropy_nats").is_none(), "{report}");
    assert!(err.contains("test bits/dim") && err.contains(" ± "), "{err}");
    for image in ["samples", "flow", "nearest", "bits", "loss"] {
        assert!(place.path(&format!("run/{image}.png")).exists(), "{image}");
    }

    let info = place.done("info run");
    for word in [
        "4 x 6 pixels",
        "64 training, 8 validation, 8 test",
        "marginals",
        "rtol = atol",
        "1e-5",
        " ± ",
        "weights 9 ranges",
    ] {
        assert!(info.contains(word), "\"{word}\" is missing in: {info}");
    }

    place.done("sample run -n 20 --label 1 --out ones.npy");
    let bytes = fs::read(place.path("ones.npy")).unwrap();
    let head = String::from_utf8_lossy(&bytes[..128]);
    assert!(head.contains("'|u1'") && head.contains("(20, 6, 4)") && bytes.len() == 128 + 480, "{head}");
    place.done("sample run -n 5 --label 0 --out zeros.csv");
    let rows = fs::read_to_string(place.path("zeros.csv")).unwrap();
    assert!(rows.lines().count() == 6 && rows.starts_with("pixel0,pixel1,"), "{rows}");
    place.done("sample run -n 9 --label 0 --out zeros.png");
    assert!(raster::decode(&fs::read(place.path("zeros.png")).unwrap()).is_ok());

    let (out, err) = place.output("log-prob run bars.idx --labels labels.csv --draws 2");
    assert_eq!(out.lines().filter(|line| line.parse::<f64>().is_ok_and(|x| x < 0.0)).count(), 80, "{out}");
    assert!(
        err.contains("80 images")
            && err.contains(" ± ")
            && err.contains("from dequantization and probes alone"),
        "{err}"
    );

    place.fails("sample run -n 5 --out no.npy", 1, &["2 classes", "choose one with --label"]);
    place.fails("sample run -n 5 --label 2 --out no.npy", 1, &["--label=2", "classes 0 to 1"]);
    place.fails("log-prob run bars.idx --out no.csv", 1, &["has no labels"]);
    place.fails("density run --grid 16 --out no.png", 2, &["two coordinates"]);
}

#[test]
fn test_images_come_from_a_file_with_its_own_classes() {
    let place = bars();
    fs::write(place.path("more.idx"), idx(30)).unwrap();
    let classes: String = (0..30).map(|i| format!("{}\n", i % 2)).collect();
    fs::write(place.path("more.csv"), format!("class\n{classes}")).unwrap();
    let train =
        format!("train bars.idx --labels labels.csv --test more.idx --out run --plots none --json {SMALL}");
    place.fails(&train, 1, &["more.idx has no labels", "--test-labels"]);
    let report = json(&place.done(&format!("{train} --test-labels more.csv")));
    assert_eq!((report["validation_rows"].as_u64(), report["test_rows"].as_u64()), (Some(8), Some(30)));
    assert!(place.done("info run").contains("72 training, 8 validation, 30 test"));
    place.fails("train moons --test-labels more.csv", 2, &["--test-labels=more.csv"]);
}

#[test]
fn invalid_image_sets_are_named_and_leave_no_files() {
    let place = bars();
    let whole = idx(80);
    fs::write(place.path("cut.idx"), &whole[..whole.len() - 7]).unwrap();
    place.fails(&format!("train cut.idx --out run {SMALL}"), 1, &["cut.idx", "1936", "1929"]);

    fs::create_dir(place.path("unequal")).unwrap();
    for (name, side) in [("a.png", 4), ("b.png", 5)] {
        place.image(&format!("unequal/{name}"), [side, 4], |_, _| 0);
    }
    place.fails(&format!("train unequal --out run {SMALL}"), 1, &["a.png", "b.png", "4 x 4", "5 x 4"]);
    fs::create_dir(place.path("empty")).unwrap();
    place.fails(&format!("train empty --out run {SMALL}"), 1, &["empty"]);

    fs::write(place.path("few.csv"), "class\n0\n1\n").unwrap();
    place.fails(&format!("train bars.idx --labels few.csv --out run {SMALL}"), 1, &["few.csv", "2", "80"]);
    fs::write(place.path("odd.csv"), "class\n".to_owned() + &"0.5\n".repeat(80)).unwrap();
    place.fails(&format!("train bars.idx --labels odd.csv --out run {SMALL}"), 1, &["odd.csv", "0.5"]);
    place.fails(&format!("train moons --labels labels.csv --out run {SMALL}"), 2, &["--labels=labels.csv"]);
    place.fails(&format!("train bars.idx --preset points --out run {SMALL}"), 2, &["--preset=points"]);
    place.fails("train bars.idx --out run --patience 0", 2, &["--patience=0"]);
    place.fails("train bars.idx --out run --kinetic -1", 2, &["--kinetic=-1"]);
}

#[test]
fn a_run_holds_as_many_buffers_at_its_end_as_before_its_first_validation() {
    let place = bars();
    let options = "--updates 1100 --batch 8 --width 4 --depth 1 --field mlp --plots none";
    keeps_its_buffers(&place.done(&format!("train bars.idx --labels labels.csv --json {options}")));
}

#[test]
fn images_with_neither_1_nor_3_channels_are_refused() {
    let place = bars();
    for channels in [2, 4, 5] {
        let bytes = vec![7_u8; 30 * 8 * 8 * channels];
        flowline::io::write_npy(place.path("c.npy"), &[30, 8, 8, channels], &bytes).unwrap();
        let words = ["c.npy", &format!("{channels} channels"), "1 (gray) or 3"];
        place.fails(&format!("train c.npy --out run {SMALL}"), 1, &words);
    }
}
