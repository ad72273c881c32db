//! Checks the results that the example states.

mod place;

use super::run;
use flowline::__internal::with_at_most;
use flowline::train::TrainOptions;
use place::{is_picture, scratch};
use std::path::Path;

#[test]
fn species_are_told_apart_and_a_weight_is_completed() {
    let (folder, file) = (scratch(), Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/data/penguins.csv"));
    let short = TrainOptions {
        updates: Some(200),
        width: Some(16),
        depth: Some(2),
        batch: Some(128),
        ..TrainOptions::default()
    };
    let found = with_at_most(512, || run(folder.path(), &file, &short)).unwrap();
    assert!(found.wrong < 20, "{} rows have another species", found.wrong);
    let median = found.masses[500];
    assert!((4_600.0..5_400.0).contains(&median), "{median} g");
    assert!(found.p_values[0] > 0.05 && found.p_values[1] < 0.05, "{:?}", found.p_values);
    assert!(is_picture(folder.path(), "penguins.png"));
}
