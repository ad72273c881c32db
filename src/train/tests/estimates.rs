//! Estimates of the KL divergence of runs that learn from exact targets.

use super::{METRICS_FILE, MODEL_FILE, RunInfo, TrainOptions, TrainedFlow, Trainer, image, metrics, step};
use crate::error::Result;
use crate::eval::{Machine, Work};
use crate::io::run::{BEST_FILE, COUNTERS_FILE};
use crate::io::{read_checkpoint, scratch, write_checkpoint};
use crate::tensor::{Key, Tensor, Tree};
use crate::train::state::Stored;
use crate::train::{LearnedFrom, ObjectiveKind, PlotsKind, Scores};
use crate::world::World;
use std::cell::Cell;
use std::fs;
use std::path::Path;

fn options() -> TrainOptions {
    TrainOptions {
        updates: Some(40),
        batch: Some(8),
        width: Some(8),
        depth: Some(1),
        shards: Some(2),
        plots: Some(PlotsKind::None),
        ..TrainOptions::default()
    }
}

/// Makes updates of a run on an image until `last` is done, and saves it; nothing is scored.
fn until(last: u64, options: &TrainOptions, folder: &Path, world: Option<&World>) -> Result<TrainedFlow> {
    let done = Cell::new(0);
    let trainer = Trainer::new(image()).options(options).run_dir(folder);
    let trainer = trainer.on_update(|progress| done.set(progress.update)).stop_when(|| done.get() == last);
    match world {
        Some(world) => trainer.world(world).run(),
        None => trainer.run(),
    }
}

/// The checkpoint, the best weights, and the estimates in the metrics.
fn results(folder: &Path) -> (Vec<u8>, Vec<u8>, Vec<String>) {
    let rows = metrics::read(&folder.join(METRICS_FILE)).unwrap();
    let estimates =
        rows.iter().filter_map(|row| Some(format!("{} {:?}", row.update, row.kl_estimate?))).collect();
    let [model, best] = [MODEL_FILE, BEST_FILE].map(|name| fs::read(folder.join(name)).unwrap());
    (model, best, estimates)
}

fn weights(folder: &Path) -> Vec<Vec<f64>> {
    let checkpoint = read_checkpoint::<RunInfo>(folder.join(MODEL_FILE)).unwrap();
    let config = checkpoint.header.config.clone();
    let like = step::begin(&config, config.model.build(&Key::new(0)).unwrap(), &Key::new(0));
    checkpoint.into_tree(&Stored::of(&like, None)).unwrap().leaves().iter().map(Tensor::to_vec).collect()
}

#[test]
fn estimates_have_the_same_bits_after_stops_on_any_number_of_threads_and_ranks() {
    let place = scratch();
    let folder = |name: &str| place.path().join(name);
    let options = options();
    until(5, &options, &folder("whole"), None).unwrap_err();
    for last in [2, 3, 5] {
        until(last, &options, &folder("parts"), None).unwrap_err();
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| until(5, &options, &folder("thread"), None).unwrap_err());
    World::threads(2, |world| until(5, &options, &folder("ranks"), Some(world)).map(|_| ()).unwrap_err());
    let whole = results(&folder("whole"));
    // Of a phase with fewer than 100 updates, each is checked.
    assert_eq!(whole.2.len(), 5);
    for name in ["parts", "thread", "ranks"] {
        assert!(results(&folder(name)) == whole, "{name}");
    }
}

/// A run of an earlier version, whose header has no estimate, goes on without it: with the same bits as one with it, which
/// do not depend on estimates.
#[test]
fn a_run_from_before_the_estimate_goes_on_without_it() {
    let place = scratch();
    let (new, old) = (place.path().join("new"), place.path().join("old"));
    until(2, &options(), &new, None).unwrap_err();
    fs::create_dir(&old).unwrap();
    let checkpoint = read_checkpoint::<RunInfo>(new.join(MODEL_FILE)).unwrap();
    let config = checkpoint.header.config.clone();
    let header = RunInfo { kl_estimate: false, ..checkpoint.header.clone() };
    let text = serde_json::to_string(&header).unwrap();
    assert!(!text.contains("kl_estimate"), "{text}");
    let like = step::begin(&config, config.model.build(&Key::new(0)).unwrap(), &Key::new(0));
    let stored = checkpoint.into_tree(&Stored::of(&like, None)).unwrap();
    write_checkpoint(old.join(MODEL_FILE), &header, &stored).unwrap();
    let rows = fs::read_to_string(new.join(METRICS_FILE)).unwrap();
    let without = |line: &str| line.split(',').take(11).collect::<Vec<_>>().join(",") + "\n";
    fs::write(old.join(METRICS_FILE), rows.lines().map(without).collect::<String>()).unwrap();
    for folder in [&new, &old] {
        until(5, &options(), folder, None).unwrap_err();
    }
    assert!(weights(&new) == weights(&old));
    let of = |folder: &Path| {
        let text = fs::read_to_string(folder.join(METRICS_FILE)).unwrap();
        let columns: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
        (columns, folder.join(BEST_FILE).exists(), folder.join(COUNTERS_FILE).exists())
    };
    assert_eq!(of(&new), (vec![21; 6], true, true));
    assert_eq!(of(&old), (vec![11; 6], false, true));
}

/// A learning rate that changes nothing: the first estimate is the best, and the third is the second without improvement.
#[test]
fn patience_ends_a_run_on_exact_targets_by_its_estimate() {
    let (place, done) = (scratch(), Cell::new(0));
    let options = TrainOptions { lr: Some(1e-30), patience: Some(2), ..options() };
    let mut notes = Vec::new();
    // Without the stop, a run that goes on after the third update would score the flow.
    let trainer = Trainer::new(image()).options(&options).run_dir(place.path());
    let trainer = trainer.on_note(|note| notes.push(note.to_owned()));
    let trainer = trainer.on_update(|progress| done.set(progress.update)).stop_when(|| done.get() == 3);
    trainer.run().map(|_| ()).unwrap_err();
    let restored = "restored the best weights: update 1 of 3, estimate of the KL divergence";
    assert!(notes.iter().any(|note| note.starts_with(restored)), "{notes:?}");
    let rows = metrics::read(&place.path().join(METRICS_FILE)).unwrap();
    let first = rows[0].kl_estimate.unwrap();
    assert!(rows.len() == 3 && rows.iter().all(|row| row.kl_estimate == Some(first)), "{rows:?}");
    assert!(first[0] > 0.1 && first[2..].iter().all(|&loss| loss > 0.0), "{first:?}");
}

/// Maximum likelihood moves the flow off the paths, so such a run keeps its last weights.
#[test]
fn runs_with_maximum_likelihood_are_estimated_only_in_flow_matching() {
    let place = scratch();
    let options = TrainOptions {
        objective: Some(ObjectiveKind::Both),
        fixed_steps: Some(2),
        updates: Some(4),
        ..options()
    };
    until(4, &options, place.path(), None).unwrap_err();
    let rows = metrics::read(&place.path().join(METRICS_FILE)).unwrap();
    let is_matching = |row: &metrics::Row| row.phase == "flow_matching";
    assert!(rows.iter().all(|row| row.kl_estimate.is_some() == is_matching(row)));
    assert!(!rows.iter().all(is_matching) && !place.path().join(BEST_FILE).exists());
}

/// Under a time limit, there are fifty estimates over the seconds of the phase. The run ends with the weights of the least.
#[test]
fn a_run_by_time_is_estimated_at_fiftieths_and_ends_with_the_best() {
    let (mut machine, place) = (Machine::new(0, f64::INFINITY), scratch());
    machine.slow = 1.0;
    machine.takes(Work::Update, 0.08);
    machine.takes(Work::Score, 1e-3);
    machine.takes(Work::Grid, 2.5e-4);
    let options = TrainOptions { updates: None, time_limit: Some(12.0), ..options() };
    let trainer = Trainer::new(image()).options(&options).run_dir(place.path()).time(machine.time());
    let report = trainer.run().unwrap().report.unwrap();
    let rows = metrics::read(&place.path().join(METRICS_FILE)).unwrap();
    let found: Vec<f64> = rows.iter().filter_map(|row| Some(row.kl_estimate?[0])).collect();
    assert!(rows.len() > 60 && (40..=51).contains(&found.len()), "{} of {}", found.len(), rows.len());
    let least = found.iter().copied().fold(f64::INFINITY, f64::min);
    assert_eq!((report.kl_estimate_nats, report.learned_from), (Some(least), None));
    assert!(report.kl_estimate_stderr_nats.unwrap() > 0.0 && report.gap_nats.unwrap() > 0.0, "{report:?}");
    assert!(place.path().join(BEST_FILE).exists());
}

#[test]
fn scores_say_that_a_toy_was_learned_from_its_formula() {
    let lines = |learned_from| {
        let scores = Scores { gap_nats: Some(0.1), learned_from: Some(learned_from), ..Scores::default() };
        (scores.figures().iter().map(|(name, _)| *name).collect::<Vec<_>>(), serde_json::json!(scores))
    };
    let (formula, json) = lines(LearnedFrom::Formula);
    assert_eq!(formula[..2], ["KL divergence", "learned from"]);
    assert_eq!(json["learned_from"], "formula");
    let (samples, json) = lines(LearnedFrom::Samples);
    assert!(!samples.contains(&"learned from"));
    assert_eq!(json["learned_from"], "samples");
}
