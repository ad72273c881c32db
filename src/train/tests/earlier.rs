//! Runs on tables that an earlier version began: their presets, phases and checks stay as they were.

use super::{
    METRICS_FILE, MODEL_FILE, Points, Preset, RunInfo, TrainConfig, TrainOptions, Trainer, metrics, step,
};
use crate::io::run::BEST_FILE;
use crate::io::{read_checkpoint, scratch, write_checkpoint};
use crate::tensor::Key;
use crate::time_source::TimeSource;
use crate::train::config::DataShape;
use crate::train::state::Stored;
use crate::train::{FieldConfig, ObjectiveKind, PlotsKind, TimesKind};
use std::cell::Cell;
use std::fs;
use std::path::Path;

const UPDATES: u64 = 24;

/// 90 rows of three normal columns.
fn table() -> Points {
    let z = Key::new(6).normal([90, 3]).to_vec();
    Points::from_rows(z.chunks(3).map(<[f64]>::to_vec).collect::<Vec<_>>()).unwrap()
}

fn options() -> TrainOptions {
    TrainOptions {
        updates: Some(UPDATES),
        batch: Some(16),
        width: Some(4),
        depth: Some(1),
        plots: Some(PlotsKind::None),
        ..TrainOptions::default()
    }
}

/// The configuration of a version whose preset had features without damping, uniform times and two phases.
fn config() -> TrainConfig {
    let (preset, objective) = (Some(Preset::Points), Some(ObjectiveKind::Both));
    let shape = DataShape { dim: 3, ..DataShape::PLANE };
    let mut config = TrainConfig::of(&TrainOptions { objective, preset, ..options() }, shape);
    let (features, log_frequency_max) = (32, 1.5);
    config.model.field = FieldConfig::Fourier {
        features,
        log_frequency_max,
        damping: 0.0,
        preconditioned: false,
        normals: 0,
        classes: 0,
    };
    config.times = TimesKind::Uniform;
    config
}

/// Makes updates until `last` is done; a run with all of its updates is scored. The clock stands still.
fn until(last: u64, folder: &Path, config: Option<TrainConfig>) {
    let done = Cell::new(0);
    let trainer = Trainer::new(table()).options(&options()).run_dir(folder).time(TimeSource::set());
    let trainer = match config {
        Some(config) => trainer.config(config),
        None => trainer,
    };
    let trainer = trainer.on_update(|progress| done.set(progress.update));
    let found = trainer.stop_when(|| last < UPDATES && done.get() == last).run();
    assert_eq!(found.err().map(|e| e.to_string().contains("stopped")), (last < UPDATES).then_some(true));
}

/// The last and the best weights, and the updates that were checked.
fn results(folder: &Path) -> ([Vec<u8>; 2], Vec<u64>) {
    let rows = metrics::read(&folder.join(METRICS_FILE)).unwrap();
    let checked = rows.iter().filter(|row| row.nll_nats.is_some()).map(|row| row.update).collect();
    ([MODEL_FILE, BEST_FILE].map(|name| fs::read(folder.join(name)).unwrap()), checked)
}

/// Removes from the header of a checkpoint what earlier versions did not write.
fn age(folder: &Path) {
    let path = folder.join(MODEL_FILE);
    let checkpoint = read_checkpoint::<RunInfo>(&path).unwrap();
    let config = checkpoint.header.config.clone();
    let header = RunInfo { rising_checks: false, ..checkpoint.header.clone() };
    assert!(!serde_json::to_string(&header).unwrap().contains("rising"));
    let like = step::begin(&config, config.model.build(&Key::new(0)).unwrap(), &Key::new(0));
    let stored = checkpoint.into_tree(&Stored::of(&like, None)).unwrap();
    write_checkpoint(&path, &header, &stored).unwrap();
}

#[test]
fn a_run_of_an_earlier_version_keeps_its_preset_its_phases_and_its_tenths() {
    let place = scratch();
    let [with, without] = ["with", "without"].map(|name| place.path().join(name));
    for folder in [&with, &without] {
        until(0, folder, Some(config()));
        age(folder);
    }
    until(UPDATES, &with, Some(config()));
    // Without the configuration there are only the presets of this version.
    until(9, &without, None);
    until(UPDATES, &without, None);
    let (weights, checked) = results(&with);
    assert!(results(&without) == (weights, checked.clone()));
    // The first phase has 23 updates.
    let tenths: Vec<u64> = (1..=11).map(|i| 2 * i).chain([23, 24]).collect();
    assert_eq!(checked, tenths);
}

#[test]
fn a_table_is_checked_after_the_same_updates_if_it_is_resumed() {
    let place = scratch();
    let [whole, parts] = ["whole", "parts"].map(|name| place.path().join(name));
    until(UPDATES, &whole, None);
    for last in [1, 7, UPDATES] {
        until(last, &parts, None);
    }
    let (weights, checked) = results(&whole);
    assert!(results(&parts) == (weights, checked.clone()));
    assert_eq!(checked, (1..=UPDATES).collect::<Vec<_>>());
}
