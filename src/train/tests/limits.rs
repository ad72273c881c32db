//! Time limits, on machines of which a test sets the speed.

use super::images::Place as Images;
use super::{Given, PlotsKind, TrainOptions, TrainReport, TrainedFlow, Trainer, TrainingData, image};
use crate::data::{Points, ToyDensity};
use crate::eval::{Machine, Work, with_at_most};
use crate::io::scratch;
use crate::tensor::Key;
use crate::time_source::TimeSource;
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use std::cell::Cell;

fn options(limit_s: f64, plots: PlotsKind) -> TrainOptions {
    TrainOptions {
        time_limit: Some(limit_s),
        batch: Some(16),
        width: Some(4),
        depth: Some(1),
        fixed_steps: Some(2),
        plots: Some(plots),
        ..TrainOptions::default()
    }
}

/// A table of normal rows.
fn table(rows: usize, dim: usize) -> TrainingData {
    let z = Key::new(9).normal([rows, dim]).to_vec();
    let rows: Vec<Vec<f64>> = z.chunks(dim).map(<[f64]>::to_vec).collect();
    TrainingData::from(Points::from_rows(rows).unwrap())
}

/// Seconds of work on a machine on which all kinds take a time in proportion to `scale`.
fn machine(seed: u64, change_s: f64, scale: f64, rng: &mut SmallRng) -> Machine {
    let mut machine = Machine::new(seed, change_s);
    let mut draw = |least: f64, most: f64| scale * least * (most / least).powf(rng.random());
    machine.takes(Work::Update, draw(0.1, 0.3));
    let score = draw(0.002, 0.04) / 256.0;
    machine.takes(Work::Score, score);
    machine.takes(Work::Grid, score * 0.6);
    machine.takes(Work::Samples, score * 0.3);
    machine.takes(Work::Trajectories, score * 2.0);
    machine.takes(Work::Target, draw(1e-7, 1e-6));
    machine.takes(Work::Figures, draw(0.01, 0.1));
    let image = draw(0.002, 0.04) / 32.0;
    machine.takes(Work::ImageScore, image);
    machine.takes(Work::ImageSamples, image * 0.5);
    machine.compiling_s = draw(0.01, 0.08);
    machine
}

/// Runs on all kinds of data with limits of 10 to 60 s, on machines whose speed is constant or changes by factors of
/// up to 8 at random moments: each ends by its limit, or at most 5 % or 2 s later. `FLOWLINE_LIMITS` sets their number.
#[test]
fn runs_end_in_time_on_machines_whose_speed_changes() {
    let count = std::env::var("FLOWLINE_LIMITS").ok().and_then(|n| n.parse().ok()).unwrap_or(7);
    let images = Images::new();
    for seed in 0..count {
        let mut rng = SmallRng::seed_from_u64(100 + seed);
        let (name, data, fields): (_, TrainingData, bool) = match seed % 7 {
            0 => ("image", image().into(), true),
            1 => ("toy", ToyDensity::Moons.into(), true),
            2 => ("table", table(3_000, 3), true),
            3 => ("line", table(500, 1), true),
            4 => ("plane", table(800, 2), true),
            5 => ("spirals", ToyDensity::TwoSpirals.into(), true),
            _ => ("images", TrainingData::Images(images.set(200, false), Given::default()), false),
        };
        let plots = [PlotsKind::All, PlotsKind::Density, PlotsKind::None][(seed / 2 % 3) as usize];
        let limit_s = rng.random_range(10.0..60.0);
        let change_s = if seed % 5 == 4 { f64::INFINITY } else { 0.2 * 150f64.powf(rng.random()) };
        let machine = machine(seed, change_s, limit_s / 60.0, &mut rng);
        let (time, folder) = (machine.time(), scratch());
        // Reading the data takes time before the run.
        time.worked(Work::Target as usize, rng.random_range(0.0..1e6));
        let options = options(limit_s, plots);
        let options = TrainOptions { fixed_steps: options.fixed_steps.filter(|_| fields), ..options };
        let trainer = Trainer::new(data.clone()).options(&options).run_dir(folder.path()).time(time.clone());
        let report = with_at_most(512, || trainer.run().unwrap().report.unwrap());
        let (took_s, latest_s) = (time.now_s(), limit_s + (0.05 * limit_s).max(2.0));
        assert!(took_s <= latest_s, "{seed} {name} {plots:?}: {took_s} s, the limit is {limit_s} s");
        assert!(took_s > 0.4 * limit_s && report.updates > 5, "{name}: {took_s} s of {limit_s} s");
        assert!(report.test_rows > 0 && report.validation_rows > 0, "{name}: {report:?}");
        let opened = TrainedFlow::open(folder.path()).unwrap();
        assert_eq!(opened.num_updates, report.updates, "{name}: the checkpoint holds the last update");
        if plots == PlotsKind::None {
            // A process with the smallest reserve for its end makes no more updates.
            let trainer = Trainer::new(data).options(&options).run_dir(folder.path());
            let trainer = trainer.time(TimeSource::set());
            let again = with_at_most(512, || trainer.run().unwrap().report.unwrap());
            assert_eq!(again.updates, report.updates, "{name}");
        }
        assert_eq!(
            folder.path().join("loss.png").exists(),
            cfg!(feature = "plot") && plots != PlotsKind::None
        );
    }
}

/// A run of 40 s on which an update takes 0.05 s and a check of a validation row `row_s`.
fn checked(row_s: f64, patience: Option<u64>) -> (TrainReport, Vec<(u64, f64)>) {
    let (mut machine, folder) = (Machine::new(0, f64::INFINITY), scratch());
    machine.slow = 1.0;
    machine.takes(Work::Update, 0.05);
    machine.takes(Work::Score, row_s);
    let options = TrainOptions {
        patience,
        lr: patience.map(|_| 1e-30),
        objective: Some(crate::train::ObjectiveKind::FlowMatching),
        fixed_steps: None,
        ..options(40.0, PlotsKind::None)
    };
    let trainer = Trainer::new(table(20_000, 2)).options(&options).run_dir(folder.path());
    let report = trainer.time(machine.time()).run().unwrap().report.unwrap();
    let rows = crate::train::metrics::read(&folder.path().join(crate::train::METRICS_FILE)).unwrap();
    (report, rows.iter().filter_map(|row| Some((row.update, row.nll_stderr_nats?))).collect())
}

/// A check of all 2,000 validation rows takes 0.02 s to 0.4 s of a phase of 30 s.
#[test]
fn the_validation_part_is_measured_early_and_then_a_quarter_later_each_time_on_fewer_rows_if_it_is_slow() {
    let mut errors = Vec::new();
    for row_s in [1e-5, 4e-5, 2e-4] {
        let (report, checks) = checked(row_s, None);
        let (updates, at): (_, Vec<u64>) =
            (report.updates, checks.iter().map(|(update, _)| *update).collect());
        assert!((15..30).contains(&at[0]) && at.len() <= 32, "{row_s} s per row: {at:?}");
        let far = |pair: &[u64]| pair[1] > pair[0] + pair[0] / 3 + 3;
        assert!(!at.windows(2).any(far) && 4 * at[at.len() - 1] > 3 * updates, "{row_s} s per row: {at:?}");
        errors.push(checks[3].1);
        assert_eq!((report.validation_rows, report.test_rows).0 % 4, 0);
    }
    assert!(errors[0] < errors[1] && errors[1] < errors[2], "{errors:?}");
}

#[test]
fn patience_acts_under_a_time_limit() {
    // The weights do not change, so the check before the first update is the best, and the second one after it ends the run.
    let (report, checks) = checked(1e-4, Some(2));
    assert!((20..40).contains(&report.updates) && checks.len() == 2, "{report:?} {checks:?}");
}

#[test]
fn a_run_with_a_time_limit_is_a_function_of_the_times_that_it_reads() {
    let run = || {
        let (mut machine, folder) = (Machine::new(5, 1.0), scratch());
        machine.takes(Work::Update, 0.2);
        machine.takes(Work::Score, 1e-3);
        let options = options(20.0, PlotsKind::None);
        let trainer = Trainer::new(table(400, 1)).options(&options).run_dir(folder.path());
        trainer.time(machine.time()).run().unwrap();
        std::fs::read(folder.path().join(crate::train::MODEL_FILE)).unwrap()
    };
    assert!(run() == run());
}

#[test]
fn a_run_that_resumes_on_a_faster_machine_does_not_go_back_to_an_earlier_phase() {
    let objective = Some(crate::train::ObjectiveKind::Both);
    let (folder, options) = (scratch(), TrainOptions { objective, ..options(40.0, PlotsKind::None) });
    let run = |row_s: f64, stop_in: Option<usize>| {
        let (mut machine, phase) = (Machine::new(0, f64::INFINITY), Cell::new((0, 0)));
        machine.slow = 1.0;
        machine.takes(Work::Update, 0.2);
        machine.takes(Work::Score, row_s);
        let trainer = Trainer::new(table(400, 2)).options(&options).run_dir(folder.path());
        let trainer = trainer.on_update(|p| phase.set((p.phase, p.update)));
        trainer.stop_when(|| Some(phase.get().0) == stop_in).time(machine.time()).run()
    };
    // The scores and the grid at the end are expected to take half of the limit, so the first phase ends after 17 s.
    assert!(run(0.003, Some(1)).is_err());
    let first = TrainedFlow::open(folder.path()).unwrap().header.config.phases[0].updates;
    assert!(first < 80, "{first}");
    // On a fast machine it would have 25.5 s.
    let phases = run(1e-5, None).unwrap().report.unwrap().phases;
    assert_eq!(phases[0].updates, first);
    assert!(phases[1].updates > 20, "{phases:?}");
}

#[test]
fn a_limit_that_reading_takes_up_is_refused_with_that_as_the_reason() {
    let time = TimeSource::set();
    time.advance(14.0);
    let trainer = Trainer::new(table(400, 2)).options(&options(15.0, PlotsKind::All)).time(time);
    let message = trainer.run().map(|_| ()).unwrap_err().to_string();
    assert!(message.contains("reading the data took 14.0 s, preparing them 0.0 s"), "{message}");
}
