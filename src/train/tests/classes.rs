//! Runs on tables with classes.

use super::*;
use crate::data::{Given, Rows};
use crate::io::scratch;
use std::path::Path;

/// Rows of two normals on a line, 6 standard deviations apart, each with its class: two thirds are `low`.
fn table(n: usize, seed: u32) -> Points {
    let is_high = |i: usize| i.is_multiple_of(3);
    let row = |(i, z): (usize, f64)| [z + if is_high(i) { 6.0 } else { 0.0 }];
    let rows: Vec<[f64; 1]> =
        Key::new(u64::from(seed)).normal([n]).to_vec().into_iter().enumerate().map(row).collect();
    let labels = (0..n).map(|i| if is_high(i) { "high" } else { "low" });
    Points::from_rows(rows).unwrap().with_labels(labels).unwrap()
}

fn options(updates: u64) -> TrainOptions {
    TrainOptions {
        updates: Some(updates),
        batch: Some(64),
        width: Some(16),
        depth: Some(1),
        plots: Some(PlotsKind::None),
        ..TrainOptions::default()
    }
}

fn run(folder: &Path, updates: u64) -> crate::Result<TrainedFlow> {
    Trainer::new(table(150, 3)).options(&options(updates)).run_dir(folder).run()
}

#[test]
fn rows_have_the_density_of_their_class_and_a_class_has_samples() {
    let folder = scratch();
    let learned = run(folder.path(), 150).unwrap();
    assert_eq!(learned.class_names(), ["high", "low"]);
    assert!(learned.summary().contains("2: high, low"), "{}", learned.summary());
    let opened = TrainedFlow::open(folder.path()).unwrap();
    let points = table(30, 5);
    let all = opened.log_prob(&points).unwrap();
    let of_class =
        |k: usize| opened.clone().class(k).log_prob(Rows::from_flat(points.values().to_vec(), 1)).unwrap();
    let each = [of_class(0), of_class(1)];
    for (i, &k) in points.labels().unwrap().iter().enumerate() {
        assert!((all[i] - each[usize::from(k)][i]).abs() < 1e-3, "{all:?} {each:?}");
    }
    let sum = |k: usize| all.iter().zip(&each[k]).map(|(own, other)| own - other).sum::<f64>();
    assert!(sum(0) > 5.0 && sum(1) > 5.0, "{} {}", sum(0), sum(1));
    let mean = |k: usize| {
        let rows = opened.clone().class(k).sample(300, &Key::new(1)).unwrap();
        rows.values().iter().sum::<f64>() / 300.0
    };
    assert!(mean(0) > mean(1) + 2.0, "{} {}", mean(0), mean(1));

    let message = |found: crate::Result<Vec<f64>>| found.unwrap_err().to_string();
    assert!(message(opened.log_prob([[0.0]])).contains("this run has 2 classes"));
    assert!(message(opened.clone().class(2).log_prob([[0.0]])).contains("classes 0 to 1"));
    let odd = Rows::from([[0.0], [1.0]]).with_labels(["low", "mid"]).unwrap();
    assert!(
        message(opened.log_prob(odd))
            .contains("row 2: \"mid\" is no class of this run; its classes are high, low")
    );
    assert!(opened.sample(2, &Key::new(1)).is_err() && opened.log_grid(8, 0.0).is_err());
}

#[test]
fn a_resumed_run_with_classes_has_the_weights_of_a_whole_one_and_other_labels_are_refused() {
    let (whole, parts) = (scratch(), scratch());
    let leaves = |run: &TrainedFlow| run.cnf().leaves().iter().map(Tensor::to_vec).collect::<Vec<_>>();
    let expected = leaves(&run(whole.path(), 6).unwrap());
    let stopped = Trainer::new(table(150, 3)).options(&options(6)).run_dir(parts.path());
    let seen = std::cell::Cell::new(0);
    let stopped = stopped.on_update(|_| seen.set(seen.get() + 1)).stop_when(|| seen.get() >= 3).run();
    assert!(matches!(stopped, Err(Error::Train(TrainError::Stopped { .. }))));
    let other = table(150, 3).with_labels((0..150).map(|i| if i % 2 == 0 { "high" } else { "low" })).unwrap();
    let refused = Trainer::new(other).options(&options(6)).run_dir(parts.path()).run();
    assert!(refused.unwrap_err().to_string().contains("holds other data"));
    assert_eq!(leaves(&run(parts.path(), 6).unwrap()), expected);
    // Other parts need labels of the same classes.
    let plain = Points::from_rows([[1.0], [2.0]]).unwrap();
    let given = Given { validation: Some(plain), test: None };
    let unlabeled = Trainer::new(TrainingData::Points(table(150, 3), given)).options(&options(6)).run();
    assert!(unlabeled.unwrap_err().to_string().contains("have no labels, but the training points have"));
}
