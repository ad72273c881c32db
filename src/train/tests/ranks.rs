//! Training on several ranks: bit-identical to one rank, also after failures.

use super::images::Place;
use super::{Flow, MODEL_FILE, TrainError, TrainOptions, TrainedFlow, Trainer, TrainingData, image};
use crate::array::DType;
use crate::data::{Points, ToyDensity};
use crate::error::{Error, Result};
use crate::eval::with_at_most;
use crate::io::{Scratch, scratch};
use crate::tensor::{Tensor, Tree};
use crate::time_source::TimeSource;
use crate::train::{Given, ObjectiveKind, PlotsKind, Preset};
use crate::world::{World, WorldError};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

fn options(objective: Option<ObjectiveKind>, updates: u64) -> TrainOptions {
    let small = TrainOptions {
        updates: Some(updates),
        batch: Some(32),
        width: Some(8),
        depth: Some(1),
        plots: Some(PlotsKind::None),
        ..Default::default()
    };
    TrainOptions { objective, fixed_steps: objective.map(|_| 3), shards: Some(16), ..small }
}

fn points() -> Points {
    let rows = (0..60)
        .flat_map(|i| [(f64::from(i) * 0.7).sin() as f32, (f64::from(i) * 0.3).cos() as f32, i as f32]);
    Points::from_rows(
        rows.collect::<Vec<f32>>().chunks(3).map(|row| [row[0], row[1], row[2]]).collect::<Vec<_>>(),
    )
    .unwrap()
    .with_name("spiral")
}

/// An image, points and a set of images, each with options for a run.
fn jobs(place: &Place) -> Vec<(&'static str, TrainingData, TrainOptions)> {
    let images = TrainingData::Images(place.set(80, true), Given::default());
    vec![
        ("image by both", image().into(), options(Some(ObjectiveKind::Both), 4)),
        ("points", points().into(), options(None, 6)),
        ("labelled images", images, TrainOptions { fixed_steps: None, ..options(None, 4) }),
    ]
}

fn train(
    data: &TrainingData,
    options: &TrainOptions,
    folder: &Path,
    world: Option<&World>,
) -> Result<TrainedFlow> {
    let trainer = Trainer::new(data.clone()).options(options).run_dir(folder);
    // Each rank is a thread.
    with_at_most(512, || match world {
        Some(world) => trainer.world(world).run(),
        None => trainer.run(),
    })
}

fn model(folder: &Path) -> Vec<u8> {
    std::fs::read(folder.join(MODEL_FILE)).unwrap()
}

fn weights(flow: &Flow) -> Vec<Vec<f64>> {
    flow.leaves().iter().map(Tensor::to_vec).collect()
}

#[test]
fn a_run_ends_with_the_same_bytes_on_any_number_of_ranks() {
    let (place, files) = (scratch(), Place::new());
    for (name, data, options) in jobs(&files) {
        let folder = |ranks: usize| place.path().join(format!("{}-{ranks}", name.replace(' ', "-")));
        let alone = train(&data, &options, &folder(1), None).unwrap();
        // Each rank compiles its own programs, so few jobs run on many ranks.
        let counts: &[usize] = if name == "points" { &[2, 4, 16] } else { &[3] };
        for &ranks in counts {
            let flows =
                World::threads(ranks, |world| train(&data, &options, &folder(ranks), Some(world)).unwrap());
            assert!(model(&folder(ranks)) == model(&folder(1)), "{name}: {ranks} ranks");
            assert!(
                flows.iter().all(|flow| weights(flow.cnf()) == weights(alone.cnf())),
                "{name}: {ranks} ranks"
            );
            assert!(flows[1].report.is_none() && flows[0].report.is_some());
        }
    }
}

#[test]
fn other_shards_are_other_draws_and_one_shard_is_the_default() {
    let place = scratch();
    let run = |shards: Option<usize>, name: &str| {
        let options = TrainOptions { shards, ..options(Some(ObjectiveKind::Both), 4) };
        train(&image().into(), &options, &place.path().join(name), None).unwrap();
        weights(TrainedFlow::open(place.path().join(name)).unwrap().cnf())
    };
    let (none, one, two) = (run(None, "none"), run(Some(1), "one"), run(Some(2), "two"));
    assert!(none == one && one != two);
}

#[test]
fn shards_see_the_batch_that_one_shard_sees_but_for_its_draws() {
    // The loss of a fixed model is a mean over rows: with many rows it does not depend on the number of shards.
    let place = scratch();
    let loss = |shards: usize| {
        let options = TrainOptions {
            shards: Some(shards),
            batch: Some(8192),
            lr: Some(1e-12),
            ..options(Some(ObjectiveKind::FlowMatching), 1)
        };
        let losses = std::cell::Cell::new(0.0);
        let trainer = Trainer::new(image()).options(&options).run_dir(place.path().join(shards.to_string()));
        let trainer = trainer.on_update(|progress| losses.set(progress.loss));
        with_at_most(512, || trainer.run().unwrap());
        losses.get()
    };
    let (one, many) = (loss(1), loss(16));
    assert!((one / many - 1.0).abs() < 0.05, "{one} {many}");
}

/// Simulates a kill: the last rank panics at call `at` (from 0) of its stop predicate.
fn killed(data: &TrainingData, options: &TrainOptions, folder: &Path, ranks: usize, at: u64) {
    let asked = AtomicU64::new(0);
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        World::threads(ranks, |world| {
            let stop = || {
                let is_last = world.rank() + 1 == world.size();
                assert!(!(is_last && asked.fetch_add(1, Relaxed) == at), "killed");
                false
            };
            let trainer = Trainer::new(data.clone()).options(options).run_dir(folder).stop_when(stop);
            trainer.world(world).run().map(|_| ())
        })
    }));
    assert!(ended.is_err(), "the run ended before it was killed");
}

#[test]
fn a_run_that_is_killed_on_four_ranks_goes_on_on_any_number() {
    let place = scratch();
    let (data, options) = (TrainingData::from(points()), options(None, 9));
    train(&data, &options, &place.path().join("whole"), None).unwrap();
    let parts = place.path().join("parts");
    for (ranks, at) in [(4, 2), (2, 1), (1, 0), (3, 1)] {
        killed(&data, &options, &parts, ranks, at);
    }
    World::threads(2, |world| train(&data, &options, &parts, Some(world)).map(|_| ()))
        .into_iter()
        .for_each(|r| r.unwrap());
    assert!(model(&parts) == model(&place.path().join("whole")));
}

fn refusals(run: impl Fn(&World) -> Result<TrainedFlow> + Sync, ranks: usize) -> Vec<Error> {
    World::threads(ranks, |world| run(world).unwrap_err())
}

#[test]
fn ranks_that_have_no_shard_are_refused_with_the_number_to_ask_for() {
    let place = scratch();
    let options = TrainOptions { shards: Some(2), ..options(None, 2) };
    let errors = refusals(|world| train(&points().into(), &options, place.path(), Some(world)), 3);
    assert!(errors[0].to_string().contains("3 ranks cannot share 2 shard(s)"), "{}", errors[0]);
    assert!(errors[0].to_string().contains("give `shards` of at least 3"));
    assert!(errors[1].to_string().starts_with("rank 0 (this process): 3 ranks"), "{}", errors[1]);
    assert!(!place.path().join(MODEL_FILE).exists());
    let options = TrainOptions { shards: Some(5), ..options };
    let error = train(&points().into(), &options, place.path(), None).unwrap_err().to_string();
    assert!(error.contains("`shards`=5 does not divide a batch of 32"), "{error}");
}

#[test]
fn a_flow_of_other_precision_has_one_shard() {
    let double = super::flow(0).cast_floats(DType::F64);
    let run =
        |shards| Trainer::from_flow(double.clone(), image()).config(super::small()).updates(2).shards(shards);
    let refused = run(2).run().unwrap_err().to_string();
    assert!(refused.contains("`shards`=2: must be 1 for a flow whose weights are not f32"), "{refused}");
    assert!(run(1).run().is_ok());
}

#[test]
fn other_data_and_other_options_are_named_before_anything_is_written() {
    let place = scratch();
    let folder = |name: &str| place.path().join(name);
    let errors = refusals(
        |world| {
            let data = if world.rank() == 2 { ToyDensity::Circles } else { ToyDensity::Moons };
            train(&data.into(), &options(None, 2), &folder("data"), Some(world))
        },
        3,
    );
    assert!(
        errors.iter().all(|e| e.to_string().contains("data differs on rank 2 (this process)")),
        "{}",
        errors[0]
    );
    // Each option by its name and both values, in one short line.
    let none = TrainOptions::default();
    for (other, line) in [
        (
            TrainOptions { seed: Some(7), ..none.clone() },
            "`seed` differs on rank 1 (this process): 7, but rank 0 has",
        ),
        (
            TrainOptions { lr: Some(0.5), ..none.clone() },
            "`lr` differs on rank 1 (this process): 0.5, but rank 0 has",
        ),
        (
            TrainOptions { batch: Some(64), ..none.clone() },
            "`batch` differs on rank 1 (this process): 64, but rank 0 has 32",
        ),
        (
            TrainOptions { solver: Some("bosh3".into()), ..none.clone() },
            "`solver` differs on rank 1 (this process): bosh3",
        ),
        (
            TrainOptions { kinetic: Some(0.5), ..none.clone() },
            "`kinetic` differs on rank 1 (this process): 0.5, but rank 0 has 0.0",
        ),
        // An option that sets others is named before them.
        (
            TrainOptions { preset: Some(Preset::Default), ..none },
            "`preset` differs on rank 1 (this process): default, but rank 0 has points",
        ),
    ] {
        let errors = refusals(
            |world| {
                let given = options(None, 2);
                let options = if world.rank() == 1 { given.with(&other) } else { given };
                train(&ToyDensity::Moons.into(), &options, &folder("options"), Some(world))
            },
            2,
        );
        let is_short = |text: &str| text.contains(line) && text.len() < 120;
        assert!(errors.iter().all(|e| is_short(&e.to_string())), "{}", errors[0]);
    }
    assert!(!folder("data").exists() && !folder("options").exists());
}

#[test]
fn a_rank_that_is_asked_to_stop_stops_all_after_the_same_update() {
    let place = scratch();
    let whole = place.path().join("whole");
    let (data, options) = (TrainingData::from(points()), options(None, 6));
    train(&data, &options, &whole, None).unwrap();
    let parts = place.path().join("parts");
    let ended = World::threads(3, |world| {
        let asked = std::cell::Cell::new(0);
        let stop = || asked.replace(asked.get() + 1) == 2 && world.rank() == 2;
        let trainer = Trainer::new(data.clone()).options(&options).run_dir(&parts).stop_when(stop);
        trainer.world(world).run().unwrap_err()
    });
    for error in &ended {
        assert!(matches!(error, Error::Train(TrainError::Stopped { update: 3, .. })), "{error}");
    }
    train(&data, &options, &parts, None).unwrap();
    assert!(model(&parts) == model(&whole));
}

#[test]
fn a_loss_or_a_solve_that_fails_is_the_same_error_on_every_rank() {
    let place = scratch();
    let options = TrainOptions { lr: Some(1e30), ..options(Some(ObjectiveKind::MaximumLikelihood), 20) };
    let errors = refusals(|world| train(&image().into(), &options, place.path(), Some(world)), 3);
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert!(texts.iter().all(|text| *text == texts[0] && text.contains("at update")), "{texts:?}");
}

#[test]
fn a_silent_rank_is_named_and_what_there_is_is_saved() {
    let place: Scratch = scratch();
    let data = TrainingData::from(points());
    let (time, gave_up) = (TimeSource::set(), AtomicBool::new(false));
    let ended = World::threads_by(&time, 2, |world| {
        let asked = std::cell::Cell::new(0);
        let stop = || {
            if world.rank() == 1 && asked.replace(asked.get() + 1) == 3 {
                // Silent until rank 0 has given up.
                while !gave_up.load(Ordering::SeqCst) {
                    time.advance(0.05);
                    std::thread::yield_now();
                }
            }
            false
        };
        let trainer =
            Trainer::new(data.clone()).options(&options(None, 6)).run_dir(place.path()).stop_when(stop);
        let ended = trainer.world(world).rank_timeout(Duration::from_millis(300)).run().map(|_| ());
        gave_up.store(world.is_root(), Ordering::SeqCst);
        ended
    });
    let error = ended[0].as_ref().unwrap_err();
    let silent = WorldError::Silent { ranks: vec![(1, "this process".to_owned())], seconds: 0 };
    assert!(matches!(error, Error::World(e) if *e == silent), "{error}");
    assert_eq!(TrainedFlow::open(place.path()).unwrap().num_updates, 3);
}
