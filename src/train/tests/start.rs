//! Runs on tables that start from a mixture of normal densities.

use super::*;
use crate::cnf::NormalMixture;
use crate::io::run::BEST_FILE;
use crate::io::scratch;
use std::cell::Cell;
use std::path::Path;

/// Rows of two normals on a line, 16 standard deviations apart: no density over a plane is evaluated.
fn table(n: usize) -> Points {
    let row = |(i, z): (usize, f64)| [z + if i % 3 == 0 { 8.0 } else { -8.0 }];
    let rows = Key::new(8).normal([n]).to_vec().into_iter().enumerate().map(row);
    Points::from_rows(rows.collect::<Vec<_>>()).unwrap()
}

/// Four updates of flow matching; with a rate of 0.3 they make a start worse.
fn options(lr: f64) -> TrainOptions {
    TrainOptions {
        updates: Some(4),
        objective: Some(ObjectiveKind::FlowMatching),
        batch: Some(16),
        width: Some(4),
        depth: Some(1),
        lr: Some(lr),
        plots: Some(PlotsKind::None),
        ..TrainOptions::default()
    }
}

fn run(folder: &Path, options: &TrainOptions) -> crate::Result<TrainedFlow> {
    Trainer::new(table(120)).options(options).run_dir(folder).run()
}

fn leaves(flow: &Flow) -> Vec<Vec<f64>> {
    flow.leaves().iter().map(Tensor::to_vec).collect()
}

fn of_field(flow: &Flow) -> NormalMixture {
    let AnyVelocityField::MixturePreconditionedFourier(field) = &flow.blocks[0] else { panic!("{flow:?}") };
    NormalMixture::of_field(field)
}

#[test]
fn a_table_of_two_normals_starts_from_both() {
    let folder = scratch();
    let learned = run(folder.path(), &options(1e-3)).unwrap();
    let config = &learned.header.config;
    assert_eq!((config.start, config.start_normals()), (InitialFlowKind::Mixture, Some(2)));
    let report = learned.report.as_ref().unwrap();
    assert_eq!(report.start_normals, Some(2));
    assert!(
        report.to_string().contains("\nstart                a mixture of 2 normal densities"),
        "{report}"
    );
    // The entropy of the drawn rows: that of the normals, and of which of them.
    let entropy = 0.5 * (std::f64::consts::TAU * std::f64::consts::E).ln() + 0.6365;
    assert!((report.test_nll_nats - entropy).abs() < 0.4, "{} {entropy}", report.test_nll_nats);
    let opened = TrainedFlow::open(folder.path()).unwrap();
    assert_eq!(leaves(opened.cnf()), leaves(learned.cnf()));
    assert_eq!((opened.summary(), &opened.header.config), (learned.summary(), config));
}

/// The numbers of a report that do not depend on the time.
fn scores(learned: &TrainedFlow) -> [f64; 4] {
    let report = learned.report.as_ref().unwrap();
    [report.validation_nats, report.test_nll_nats, report.test_nll_stderr_nats.unwrap(), report.loss]
}

#[test]
fn a_run_that_is_stopped_at_each_update_ends_with_the_same_bytes() {
    for lr in [1e-3, 0.3] {
        let place = scratch();
        let (whole, parts) = (place.path().join("whole"), place.path().join("parts"));
        let alone = run(&whole, &options(lr)).unwrap();
        for last in 0..4 {
            // Before its first update, or after the next one.
            let done = Cell::new(if last == 0 { 0 } else { u64::MAX });
            let trainer = Trainer::new(table(120)).options(&options(lr)).run_dir(&parts);
            let trainer = trainer.on_update(|p| done.set(p.update)).stop_when(|| done.get() == last);
            drop(trainer.run().unwrap_err());
        }
        let learned = run(&parts, &options(lr)).unwrap();
        for name in [MODEL_FILE, BEST_FILE] {
            let [a, b] = [&whole, &parts].map(|folder| std::fs::read(folder.join(name)).unwrap());
            assert!(a == b, "{lr}: {name}");
        }
        assert_eq!(scores(&learned), scores(&alone));
        // A run that has ended reports the same again.
        assert_eq!(scores(&run(&whole, &options(lr)).unwrap()), scores(&alone));
        assert_eq!(leaves(run(&parts, &options(lr)).unwrap().cnf()), leaves(alone.cnf()));
    }
}

#[test]
fn a_start_that_no_update_improves_is_fitted_again_to_training_and_validation_rows() {
    let mut notes = Vec::new();
    let trainer = Trainer::new(table(120)).options(&options(0.3)).on_note(|text| notes.push(text.to_owned()));
    let learned = trainer.run().unwrap();
    assert!(notes.iter().any(|note| note == crate::train::start::FITTED_AGAIN), "{notes:?}");
    // The mean of the mixture is that of all rows but the test part.
    let parts = learned.header.parts.unwrap();
    assert_eq!((parts.train, parts.validation), (96, 12));
    let prepared = TrainingData::from(table(120)).prepare(&learned.header.config, None).unwrap();
    let (Source::Tables(Tables::Points(rows)), HeldOut::Rows { validation, .. }) =
        (&prepared.source, &prepared.held_out)
    else {
        panic!("a table has rows")
    };
    let rows = rows.rows.to_vec().into_iter().chain(validation.points.iter().map(|&x| f64::from(x)));
    let (mean, found) = (rows.sum::<f64>() / 108.0, of_field(learned.cnf()));
    let of_mixture: f64 = found.weights().iter().zip(found.means()).map(|(w, m)| w * m).sum();
    assert!((mean - of_mixture).abs() < 1e-5, "{mean} {of_mixture}");
    let report = learned.report.as_ref().unwrap();
    assert!((report.test_nll_nats - report.validation_nats).abs() < 0.6, "{report}");
}

/// A normal density in d dimensions has a weight, d means and d (d + 1) / 2 covariances. By default a mixture has two rows
/// of the training part for each parameter of each component. Training parts have 2 p - 1 and 2 p rows of 1, 3 or 4 columns: no
/// density over a plane is evaluated.
#[test]
fn tables_with_fewer_than_two_rows_per_parameter_start_from_a_normal_density() {
    for columns in [1, 3, 4] {
        let enough = 2 * (1 + columns + columns * (columns + 1) / 2);
        for train in [enough - 1, enough] {
            // A tenth of n rows, rounded, validates, and as many test.
            let rows = (train..2 * train).find(|n| n - 2 * ((n + 5) / 10) == train).unwrap();
            let values = Key::new(rows as u64).normal([rows, columns]).to_vec();
            let rows: Vec<Vec<f64>> = values.chunks(columns).map(<[f64]>::to_vec).collect();
            let table = Points::from_rows(rows).unwrap();
            let run = |start| {
                let options = TrainOptions { start, ..options(1e-3) };
                let learned = Trainer::new(table.clone()).options(&options).run().unwrap();
                assert_eq!(learned.header.parts.as_ref().unwrap().train, train);
                learned.report.unwrap().start_normals
            };
            let expected = Some(usize::from(train >= enough));
            assert_eq!(run(None), expected, "{columns} columns, {train} rows");
            assert_eq!(run(Some(InitialFlowKind::Mixture)), Some(1), "{columns} columns, {train} rows");
        }
    }
}

#[test]
fn what_cannot_start_from_a_mixture_says_so_or_starts_as_before() {
    let settled = |data: TrainingData, options: &TrainOptions| Trainer::new(data).options(options).settle();
    let start = |options: &TrainOptions| settled(table(50).into(), options).unwrap().1.start;
    let with = |start, blocks| TrainOptions { start, blocks, ..TrainOptions::default() };
    let (normal, mixture) = (Some(InitialFlowKind::Normal), Some(InitialFlowKind::Mixture));
    assert_eq!(start(&with(None, None)), InitialFlowKind::Mixture);
    assert_eq!(start(&with(normal, None)), InitialFlowKind::Normal);
    assert_eq!(start(&with(None, Some(2))), InitialFlowKind::Normal);
    let refused =
        |data: TrainingData, options: &TrainOptions| settled(data, options).unwrap_err().to_string();
    let blocks = refused(table(50).into(), &with(mixture, Some(2)));
    assert!(blocks.contains("`start`=mixture") && blocks.contains("a single block"), "{blocks}");
    let toy = refused(ToyDensity::Moons.into(), &with(mixture, None));
    assert!(toy.contains("`start`=mixture") && toy.contains("it needs a table"), "{toy}");
    let wide: Vec<Vec<f64>> = Key::new(1).normal([20, 65]).to_vec().chunks(65).map(<[f64]>::to_vec).collect();
    let wide = Points::from_rows(wide).unwrap();
    assert_eq!(settled(wide.clone().into(), &with(None, None)).unwrap().1.start, InitialFlowKind::Normal);
    let message = refused(wide.into(), &with(mixture, None));
    assert!(message.contains("at most 64 columns"), "{message}");
    // A given flow has its own start.
    let given = Trainer::from_flow(flow(0), image()).options(&with(mixture, None)).settle().unwrap_err();
    assert!(given.to_string().contains("`start`"), "{given}");
}

#[test]
fn a_run_from_before_the_option_is_resumed_as_it_began() {
    let place = scratch();
    let (old, options) = (place.path().join("old"), options(1e-3));
    // Its header has neither the option nor the field of the configuration.
    let config = TrainConfig::of(
        &TrainOptions { preset: Some(Preset::Points), ..options.clone() },
        TrainingData::from(table(120)).shape(),
    );
    let begun = Trainer::new(table(120)).config(config).options(&options).run_dir(&old);
    drop(begun.stop_when(|| true).run().unwrap_err());
    let header = crate::io::read_checkpoint::<RunInfo>(&old.join(MODEL_FILE)).unwrap().header;
    let text = serde_json::to_string(&header).unwrap();
    assert!(!text.contains("start") && !text.contains("normals"), "{text}");
    let learned = run(&old, &options).unwrap();
    assert_eq!(learned.report.unwrap().start_normals, None);
    let mixture = TrainOptions { start: Some(InitialFlowKind::Mixture), ..options.clone() };
    let other = run(&old, &mixture).map(|_| ()).unwrap_err().to_string();
    assert!(other.contains("`start`=normal, not `start`=mixture"), "{other}");
    // And one that starts from a mixture is not resumed without.
    let new = place.path().join("new");
    run(&new, &options).unwrap();
    let normal = TrainOptions { start: Some(InitialFlowKind::Normal), ..options.clone() };
    let other = run(&new, &normal).map(|_| ()).unwrap_err().to_string();
    assert!(other.contains("`start`=mixture, not `start`=normal"), "{other}");
    let same = TrainOptions { preset: Some(Preset::Points), ..mixture };
    assert!(run(&new, &same).is_ok());
}

#[test]
fn a_run_with_noise_on_rounded_columns_starts_from_a_mixture() {
    let rounded: Vec<[f64; 1]> = table(300).values().iter().map(|x| [x.round()]).collect();
    let options = TrainOptions { dequantize: Some(true), ..options(1e-3) };
    let learned = Trainer::new(Points::from_rows(rounded).unwrap()).options(&options).run().unwrap();
    let report = learned.report.as_ref().unwrap();
    assert!(
        report.start_normals.is_some_and(|count| count >= 2) && report.dequantized_columns.len() == 1,
        "{report}"
    );
}

#[test]
fn classes_that_no_update_tells_apart_are_reported() {
    for has_classes in [false, true] {
        let mut notes = Vec::new();
        let labels = (0..120).map(|i| if i % 2 == 0 { "a" } else { "b" });
        let points = if has_classes { table(120).with_labels(labels).unwrap() } else { table(120) };
        Trainer::new(points)
            .options(&options(0.3))
            .on_note(|text| notes.push(text.to_owned()))
            .run()
            .unwrap();
        assert!(notes.iter().any(|note| note == crate::train::start::FITTED_AGAIN), "{notes:?}");
        assert_eq!(
            notes.iter().any(|note| note == crate::train::start::CLASSES_ALIKE),
            has_classes,
            "{notes:?}"
        );
    }
}
