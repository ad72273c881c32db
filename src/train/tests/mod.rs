//! Runs through the public API.

mod builder;
mod classes;
mod decorrelated;
mod earlier;
mod estimates;
mod folder;
mod images;
mod limits;
mod pictures;
mod ranks;
mod rounded;
mod start;

use super::*;
use crate::cnf::Cnf;
use crate::data::{Estimate, Points, ToyDensity, tests::boxes as image};
use crate::error::Error;
use crate::eval::HeldOut;
#[cfg(feature = "plot")]
use crate::eval::figures;
use crate::nn::{Activation, AnyVelocityField, ConcatSquash, Mlp};
use crate::ode::Outcome;
use crate::tensor::{Key, Tensor, Tree};

fn flow(seed: u64) -> Cnf<ConcatSquash> {
    Cnf::new(ConcatSquash::new(2, [8], &Key::new(seed))).fixed_steps(4)
}

fn small() -> TrainConfig {
    let objective = Some(ObjectiveKind::Both);
    let mut config =
        TrainConfig::new(&TrainOptions { updates: Some(30), objective, ..TrainOptions::default() });
    config.phases.iter_mut().for_each(|phase| phase.batch = 64);
    config
}

#[test]
fn draws_follow_the_density_of_the_image() {
    for data in [image(), image().with_rule(crate::data::SamplingRule::Uniform { below: 254 }).unwrap()] {
        let batch = Tables::new(&data).draw(40_000, &Key::new(5));
        let (points, weight) = (batch.points.to_vec(), batch.weight.to_vec());
        let total: f64 = weight.iter().sum();
        assert!((total / 40_000.0 - data.mean_weight).abs() < 0.01, "{total}");
        for axis in 0..2 {
            let x = |i: usize| points[2 * i + axis];
            let mean = (0..40_000).map(|i| weight[i] * x(i)).sum::<f64>() / total;
            let exact: f64 =
                data.positions().zip(data.probabilities()).map(|(p, m)| f64::from(p[axis]) * m).sum();
            assert!((mean - exact).abs() < 0.02, "axis {axis}: {mean} {exact}");
            let square = (0..40_000).map(|i| weight[i] * x(i).powi(2)).sum::<f64>() / total;
            let jitter = data.jitter_std[axis].powi(2);
            let pixels =
                data.positions().zip(data.probabilities()).map(|(p, m)| f64::from(p[axis]).powi(2) * m);
            let exact = pixels.sum::<f64>() + jitter;
            assert!((square / exact - 1.0).abs() < 0.03, "axis {axis}: {square} {exact}");
        }
    }
}

#[test]
fn a_run_of_the_library_resumes_by_itself_and_opens_again() {
    let folder = crate::io::scratch();
    let mut seen = Vec::new();
    let run = |folder: &std::path::Path| Trainer::from_flow(flow(0), image()).config(small()).run_dir(folder);
    let learned = run(folder.path()).on_update(|p| seen.push(p.update)).run().unwrap();
    assert_eq!(seen, (1..=30).collect::<Vec<_>>());
    let report = learned.report.as_ref().unwrap();
    assert!(
        report.gap_nats.unwrap() > 0.0 && report.phases.iter().all(|phase| phase.traces == 1),
        "{report:?}"
    );

    let model = std::fs::read(folder.path().join(MODEL_FILE)).unwrap();
    let again = run(folder.path()).run().unwrap();
    assert_eq!(again.report.unwrap().resumed_from_update, Some(30));
    assert_eq!(std::fs::read(folder.path().join(MODEL_FILE)).unwrap(), model);
    assert!(
        learned.summary().starts_with("KL divergence") && learned.summary().contains("±"),
        "{}",
        learned.summary()
    );
    scores_are_read_or_their_absence_is_explained(folder.path(), &learned);
    let opened = Cnf::<AnyVelocityField>::open(folder.path()).unwrap();
    let leaves = |flow: &Flow| flow.leaves().iter().map(Tensor::to_vec).collect::<Vec<_>>();
    assert_eq!(leaves(&opened), leaves(learned.cnf()));

    let other = run(folder.path()).updates(31).run().unwrap_err().to_string();
    assert!(other.contains("config.phases.0.updates"), "{other}");
    let other = run(folder.path()).seed(9).run().unwrap_err().to_string();
    assert!(other.contains("config.seed"), "{other}");
}

fn scores_are_read_or_their_absence_is_explained(folder: &std::path::Path, learned: &TrainedFlow) {
    let opened = TrainedFlow::open(folder).unwrap();
    assert_eq!(opened.summary(), learned.summary());
    assert_eq!(opened.scores.unwrap().test_rows, learned.report.as_ref().unwrap().test_rows);
    assert!(opened.scores.is_some() && opened.report.is_none());
    let path = folder.join("counters.json");
    let whole = std::fs::read_to_string(&path).unwrap();
    let run = &learned.header.run;
    // An older version, a run that has not ended, another run, and a damaged file.
    for (text, reason) in [
        (format!("{{\"run\": \"{run}\", \"plan_peak_bytes\": 3}}"), "has none, so the run has not ended"),
        (
            format!("{{\"run\": \"{run}\", \"scores\": {{\"update\": 29}}}}"),
            "has none, so the run has not ended",
        ),
        ("{\"run\": \"other\"}".to_owned(), "counters.json"),
        (whole.replace("\"test_rows\"", "\"test_row\""), "counters.json is damaged"),
    ] {
        std::fs::write(&path, text).unwrap();
        let opened = TrainedFlow::open(folder).unwrap();
        let summary = opened.summary();
        assert!(opened.scores.is_none() && summary.starts_with("30 updates, no scores: "), "{summary}");
        assert!(summary.contains(reason), "{summary}");
    }
    std::fs::remove_file(&path).unwrap();
    assert!(TrainedFlow::open(folder).unwrap().summary().ends_with("counters.json is missing"));
    std::fs::write(&path, whole).unwrap();
}

#[test]
fn a_flow_of_unlike_blocks_and_rows_with_steps_of_their_own_opens_as_it_was_saved() {
    let (folder, key) = (crate::io::scratch(), Key::new(4));
    let blocks: Vec<AnyVelocityField> = vec![
        ConcatSquash::new(2, [8], &key).into(),
        Mlp::new([3, 6, 2], Activation::Tanh, &key).into(),
        ConcatSquash::new(2, [5, 4], &key).into(),
    ];
    let flow = Cnf::from_blocks(blocks).fixed_steps(2).per_row(true);
    let learned = Trainer::from_flow(flow, image()).config(small()).run_dir(folder.path()).run().unwrap();
    let opened = Cnf::<AnyVelocityField>::open(folder.path()).unwrap();
    let leaves = |flow: &Flow| flow.leaves().iter().map(Tensor::to_vec).collect::<Vec<_>>();
    assert_eq!(leaves(&opened), leaves(learned.cnf()));
    assert_eq!(opened.settings, learned.cnf().settings);
}

#[test]
fn numbers_that_turn_nan_end_a_run_with_where_and_leave_the_checkpoint() {
    let mut flow = flow(0);
    flow.blocks[0].layers[0].linear.weight = Tensor::full(crate::array::DType::F32, [2, 8], f64::NAN);
    let mut config = small();
    config.phases.remove(0);
    let folder = crate::io::scratch();
    let run =
        |config: TrainConfig| Trainer::from_flow(flow.clone(), image()).config(config).run_dir(folder.path());
    let failed = run(config).run().unwrap_err();
    let outcome = match &failed {
        Error::Train(TrainError::Diverged { outcome, update: 1, .. }) => outcome,
        other => panic!("{other}"),
    };
    assert!(matches!(outcome, Outcome::NonFinite { .. }));
    let message = failed.to_string();
    assert!(
        message.contains("from t=1") && message.contains("at update 1 (maximum_likelihood)"),
        "{message}"
    );
    assert_eq!(TrainedFlow::open(folder.path()).unwrap().num_updates, 0);

    let other = crate::io::scratch();
    let failed = Trainer::from_flow(flow.clone(), image()).config(small()).run_dir(other.path()).run();
    let message = failed.unwrap_err().to_string();
    assert!(message.contains("the loss is NaN at update 1 (flow_matching)"), "{message}");
}

#[test]
fn rows_of_points_are_drawn_equally_often() {
    let points =
        Points::from_rows((0..5).map(|i| [f64::from(i), f64::from(i * i)]).collect::<Vec<_>>()).unwrap();
    let batch = Tables::of_points(&points).draw(20_000, &Key::new(3));
    let drawn = points.standard.inverse_transform(&batch.points.to_vec());
    for (row, p) in points.values().chunks(2).enumerate() {
        let count =
            drawn.chunks(2).filter(|q| (q[0] - p[0]).abs() < 1e-4 && (q[1] - p[1]).abs() < 1e-4).count();
        // 4,000 each, with a standard deviation of 57.
        assert!((3_750..4_250).contains(&count), "row {row}: {count}");
    }
    assert!(batch.weight.to_vec().iter().all(|&w| w == 1.0));
}

#[test]
fn the_plane_of_a_toy_holds_its_density_with_y_upward() {
    for toy in [ToyDensity::Moons, ToyDensity::Checkerboard] {
        let prepared =
            TrainingData::from(toy).prepare(&TrainConfig::new(&TrainOptions::default()), None).unwrap();
        let (frame, points) = (prepared.frames.image.unwrap(), prepared.frames.points.unwrap());
        let (values, rows, cols) = TrainingData::from(toy).truth(&frame, 2 * frame.side());
        let cell = frame.cells(0.0, rows, cols).area;
        let mass = values.iter().sum::<f64>() * cell;
        assert!((mass - 1.0).abs() < 0.01, "{toy}: {mass}");
        let entropy = -values.iter().filter(|p| **p > 0.0).map(|p| p * p.ln()).sum::<f64>() * cell;
        assert!((entropy - points.entropy_nats.unwrap()).abs() < 0.05, "{toy}: {entropy}");
        let HeldOut::Rows { validation, test: None } = &prepared.held_out else {
            panic!("the test points of a toy density are sampled during scoring")
        };
        let own = Estimate::of(validation.log_p.as_ref().unwrap()).plus(points.standard().log_jacobian());
        let off = own.plus(points.entropy_nats.unwrap());
        assert!(validation.points.len() == 8_000 && off.mean.abs() < 0.05, "{off}");
        if toy == ToyDensity::Moons {
            // The left moon is the upper one.
            let left = |r: usize| values[r * cols..r * cols + cols / 4].iter().sum::<f64>();
            let half = |range: std::ops::Range<usize>| range.map(left).sum::<f64>();
            assert!(half(0..rows / 2) > 3.0 * half(rows / 2..rows));
        }
    }
}

#[test]
fn a_toy_is_learned_sampled_and_measured_in_its_own_units() {
    let folder = crate::io::scratch();
    let options = TrainOptions {
        updates: Some(40),
        batch: Some(64),
        width: Some(8),
        depth: Some(1),
        fixed_steps: Some(4),
        ..TrainOptions::default()
    };
    assert_eq!(Trainer::new(ToyDensity::Rings).num_params().unwrap(), 9_518);
    let run = |data: TrainingData, options: &TrainOptions| {
        let density = Trainer::new(data).options(options).run_dir(folder.path());
        density.run()
    };
    let learned = run(ToyDensity::Rings.into(), &options).unwrap();
    let report = learned.report.as_ref().unwrap();
    assert_eq!(report.entropy_nats, Some(ToyDensity::Rings.entropy_nats()));
    assert_eq!(report.gap_nats, Some(report.nll_nats - ToyDensity::Rings.entropy_nats()));
    assert_eq!(report.nll_stderr_nats, report.gap_stderr_nats);
    let (gap, stderr) = (report.gap_nats.unwrap(), report.gap_stderr_nats.unwrap());
    let text = report.to_string();
    let line = format!(
        "KL divergence        {gap:.4} ± {stderr:.4} nats ({} test points)",
        crate::data::grouped(report.test_rows)
    );
    assert!(text.starts_with(&line), "{text}");
    assert!((report.total_probability.unwrap() - 1.0).abs() < 2e-3, "{:?}", report.total_probability);
    assert!((report.validation_nats - report.test_nll_nats).abs() < 0.1, "{text}");
    for image in ["density", "comparison", "samples", "flow", "loss"] {
        let is_there = folder.path().join(format!("{image}.png")).exists();
        assert_eq!(is_there, cfg!(feature = "plot"), "{image}");
    }
    // In the units of the data: the rings, of radii up to 3, have a standard deviation of 1.45 along an axis;
    // the log-density is per unit area.
    let x = learned.sample(2_000, &Key::new(5)).unwrap();
    let std = (x.iter().map(|p| p[0] * p[0]).sum::<f64>() / 2_000.0).sqrt();
    assert!((1.0..2.0).contains(&std), "{std}");
    let coarse = learned.clone().rtol(1e-4).atol(1e-4);
    let mut nll: f64 = coarse.log_prob(&x).unwrap().iter().sum();
    nll /= -2_000.0;
    assert!((nll - report.nll_nats).abs() < 0.5 && nll > 2.0, "{nll} {}", report.nll_nats);

    assert_eq!(TrainedFlow::open(folder.path()).unwrap().columns(), ["x", "y"]);
    assert_eq!(
        run(ToyDensity::Rings.into(), &options).unwrap().report.unwrap().resumed_from_update,
        Some(40)
    );
    assert!(run(ToyDensity::Rings.into(), &TrainOptions::default()).is_ok());
    for other in [TrainingData::from(ToyDensity::Moons), image().into()] {
        let message = run(other, &TrainOptions::default()).unwrap_err().to_string();
        assert!(message.contains("begun with rings") && message.contains("other data"), "{message}");
    }
    let given =
        TrainOptions { preset: Some(Preset::Given { name: "mine".into() }), ..TrainOptions::default() };
    let refused = Trainer::new(ToyDensity::Rings).options(&given).run().map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("`preset`=mine"), "{refused}");
}

#[test]
#[cfg(feature = "plot")]
fn points_on_a_line_are_drawn_as_a_curve_over_their_counts() {
    let folder = crate::io::scratch();
    let options =
        TrainOptions { updates: Some(20), batch: Some(64), width: Some(8), ..TrainOptions::default() };
    let two = |i: u32| [if i.is_multiple_of(3) { -4.0 } else { 10.0 } + (f64::from(i) * 0.7).sin()];
    let points = Points::from_rows((0..600).map(two).collect::<Vec<_>>()).unwrap();
    let places = figures::on_line(&points);
    assert!((places[0] + 6.6).abs() < 0.01 && (places[places.len() - 1] - 12.6).abs() < 0.01, "{places:?}");
    let density = Trainer::new(points).options(&options);
    let learned = density.run_dir(folder.path()).run().unwrap();
    let curve = figures::over_line(learned.cnf(), &learned.header.standard(), places.clone()).unwrap();
    let asked = learned.rtol(1e-4).atol(1e-4).log_prob(crate::data::Rows::from_flat(places, 1)).unwrap();
    assert!(curve.iter().zip(&asked).all(|([_, p], log)| (p / log.exp() - 1.0).abs() < 1e-2), "{curve:?}");
    let is_there = |name: &str| folder.path().join(name).exists();
    assert!(is_there("density.png") && !is_there("corner.png") && is_there("loss.png"));
}

#[test]
fn points_in_space_are_learned_measured_by_others_and_keep_their_units() {
    let normals = |n: usize, seed: u64| {
        let z = Key::new(seed).normal([n, 3]).to_vec();
        let row = |z: &[f64]| [1e3 + 10.0 * z[0], 0.1 * (z[1] + z[0]), z[2] - 5.0];
        Points::from_rows(z.chunks(3).map(row).collect::<Vec<_>>()).unwrap()
    };
    let folder = crate::io::scratch();
    let options = TrainOptions {
        updates: Some(60),
        batch: Some(256),
        width: Some(32),
        depth: Some(2),
        ..TrainOptions::default()
    };
    let given = Given { validation: Some(normals(500, 2)), test: Some(normals(700, 3)) };
    let data = TrainingData::Points(normals(2_000, 1), given);
    let learned = Trainer::new(data).options(&options).run_dir(folder.path()).run().unwrap();
    let report = learned.report.as_ref().unwrap();
    assert_eq!((report.entropy_nats, report.gap_nats, report.total_probability), (None, None, None));
    assert_eq!(report.validation_nats, report.nll_nats);
    assert_eq!((report.validation_rows, report.test_rows), (500, 700));
    assert_eq!(learned.header.parts, Some(Parts { train: 2_000, validation: 500, test: 700 }));
    // The entropy of these normals in the units of the data: 3/2 ln(2 pi e) + ln(10 x 0.1 x 1).
    let entropy = 1.5 * (2.0 * std::f64::consts::PI * std::f64::consts::E).ln();
    assert!((-0.1..1.0).contains(&(report.nll_nats - entropy)), "{} {entropy}", report.nll_nats);
    for image in ["corner.png", "loss.png"] {
        assert_eq!(folder.path().join(image).exists(), cfg!(feature = "plot"), "{image}");
    }
    let json = serde_json::to_value(report).unwrap();
    assert!(json.get("gap_nats").is_none() && json.get("validation_nats").is_some(), "{json}");

    let rows = learned.sample(1_000, &Key::new(1)).unwrap();
    let mean = |a: usize| rows.column(a).iter().sum::<f64>() / 1_000.0;
    assert!((mean(0) - 1e3).abs() < 4.0 && mean(1).abs() < 0.1 && (mean(2) + 5.0).abs() < 0.4);
    let found = learned.log_prob(&rows).unwrap();
    assert!(found.len() == 1_000 && found[..10].iter().all(|x| (-30.0..0.0).contains(x)), "{found:?}");
    let message = learned.log_prob([[0.0; 2]; 3]).unwrap_err().to_string();
    assert!(message.contains("have 2 columns, but the training points have 3"), "{message}");
    #[cfg(feature = "plot")]
    {
        let message = learned.plot_density(folder.path().join("no.png"), 64).unwrap_err().to_string();
        assert!(message.contains("the data of this run have 3"), "{message}");
    }
}

#[test]
fn a_checkpoint_of_an_image_says_nothing_of_points() {
    let folder = crate::io::scratch();
    let config = TrainConfig { phases: small().phases[..1].to_vec(), ..small() }.with_updates(1);
    let learned = Trainer::from_flow(flow(0), image()).config(config).run_dir(folder.path()).run().unwrap();
    let header = serde_json::to_value(&learned.header).unwrap();
    let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&header), ["image", "options", "parts", "recipe", "run"]);
    assert_eq!(keys(&header["image"]).len(), 8, "{header}");
}

#[test]
fn the_test_part_influences_no_weight_and_validation_alone_chooses() {
    let place = crate::io::scratch();
    let points = |n: u32, shift: f64| {
        let row = |i: u32| [shift + (f64::from(i) * 0.7).sin()];
        Points::from_rows((0..n).map(row).collect::<Vec<_>>()).unwrap()
    };
    let options = TrainOptions {
        updates: Some(20),
        batch: Some(16),
        width: Some(4),
        start: Some(InitialFlowKind::Normal),
        ..TrainOptions::default()
    };
    let run = |name: &str, validation: f64, test: f64| {
        let given = Given { validation: Some(points(30, validation)), test: Some(points(40, test)) };
        let (density, folder) = (TrainingData::Points(points(100, 0.0), given), place.path().join(name));
        let report = Trainer::new(density).options(&options).run_dir(&folder).run().unwrap().report.unwrap();
        let bytes = ["model.safetensors", "best.safetensors"].map(|f| std::fs::read(folder.join(f)).unwrap());
        (report, bytes)
    };
    let (a, bytes) = run("a", 0.0, 0.0);
    let (b, others) = run("b", 0.0, 2.0);
    assert!(bytes == others, "the test part has changed weights");
    assert!(a.validation_nats == b.validation_nats && a.nll_nats == b.nll_nats);
    assert!(b.test_nll_nats > a.test_nll_nats + 1.0, "{} {}", a.test_nll_nats, b.test_nll_nats);
    // The reported validation NLL is the lowest of the run.
    let rows = metrics::read(&place.path().join("b").join(METRICS_FILE)).unwrap();
    let least = rows.iter().filter_map(|row| row.nll_nats).fold(f64::INFINITY, f64::min);
    assert_eq!(b.validation_nats, least);
    assert!(rows.iter().all(|row| row.nll_nats.is_some() == row.nll_stderr_nats.is_some()));
    let (c, chosen) = run("c", 2.0, 0.0);
    assert!(c.validation_nats > a.validation_nats + 1.0 && bytes[1] != chosen[1]);
}

#[test]
fn a_flow_that_overfits_early_is_named_and_progress_has_the_validation_nll() {
    // The flow learns two peaks; the validation points lie between them, where the first weights are the best.
    let peaks = |i: u32| [f64::from(i).sin() + if i.is_multiple_of(2) { 6.0 } else { -6.0 }];
    let rows = |n: u32, scale: f64| (0..n).map(|i| [scale * peaks(i)[0]]).collect::<Vec<_>>();
    let given = Given { validation: Some(Points::from_rows(rows(40, 0.05)).unwrap()), test: None };
    let data = TrainingData::Points(Points::from_rows(rows(400, 1.0)).unwrap(), given);
    let options = TrainOptions {
        updates: Some(200),
        objective: Some(ObjectiveKind::Both),
        width: Some(16),
        depth: Some(1),
        batch: Some(64),
        lr: Some(1e-2),
        start: Some(InitialFlowKind::Normal),
        ..TrainOptions::default()
    };
    let run = |patience| {
        let options = TrainOptions { patience, ..options.clone() };
        let (mut notes, mut nll, mut units) = (Vec::new(), Vec::new(), Vec::new());
        let trainer =
            Trainer::new(data.clone()).options(&options).on_note(|note| notes.push(note.to_owned()));
        let learned = trainer.on_update(|p| {
            nll.extend(p.validation_nats);
            units.push(p.loss_unit);
        });
        let report = learned.run().unwrap().report.unwrap();
        (notes, nll, units, report)
    };
    let (notes, nll, units, report) = run(None);
    let is = |note: &String| note.contains("overfits after update");
    let restored = notes.iter().any(|note| note.starts_with("restored the best weights: update"));
    let shown = nll.iter().any(|nll| nll.mean == report.validation_nats);
    let found = (restored, notes.iter().any(is), shown, units[0], units[199]);
    assert_eq!(found, (true, true, true, "MSE", "nats (standardized)"), "{notes:?} {nll:?}");
    assert!(!run(Some(3)).0.iter().any(is));
}

#[test]
fn rows_are_divided_into_disjoint_parts_and_too_few_are_told_how_many_there_must_be() {
    let points = |n: u32| {
        Points::from_rows((0..n).map(|i| [f64::from(i), f64::from(i * i)]).collect::<Vec<_>>()).unwrap()
    };
    let config = TrainConfig::new(&TrainOptions { seed: Some(3), ..TrainOptions::default() });
    let prepared =
        |points: Points, given: Given<Points>| TrainingData::Points(points, given).prepare(&config, None);
    let all = prepared(points(300), Given::default()).unwrap();
    assert_eq!(all.parts, Parts { train: 240, validation: 30, test: 30 });
    let HeldOut::Rows { validation, test: Some(test) } = &all.held_out else { panic!() };
    let standard = all.frames.points.as_ref().unwrap().standard();
    let first = |rows: &crate::eval::HeldOutRows| -> Vec<i64> {
        let rows: Vec<f64> = rows.points.iter().map(|&x| f64::from(x)).collect();
        standard.inverse_transform(&rows).iter().step_by(2).map(|x| x.round() as i64).collect()
    };
    let (validation, test) = (first(validation), first(test));
    assert!(validation.iter().all(|row| !test.contains(row)) && (validation.len(), test.len()) == (30, 30));
    // Neither part is simply the first rows of the file.
    assert!([validation, test].iter().all(|rows| rows.iter().any(|&row| row > 200)));
    let given = |validation: bool, test: bool| Given {
        validation: validation.then(|| points(50)),
        test: test.then(|| points(60)),
    };
    for (given, sizes) in [
        (given(true, false), [270, 50, 30]),
        (given(false, true), [270, 30, 60]),
        (given(true, true), [300, 50, 60]),
    ] {
        let [train, validation, test] = sizes;
        assert_eq!(prepared(points(300), given).unwrap().parts, Parts { train, validation, test });
    }
    for (n, given, least) in [(3, given(false, false), 4), (2, given(true, false), 3)] {
        let message = prepared(points(n), given).map(|_| ()).unwrap_err().to_string();
        assert!(message.contains(&format!("give at least {least}")), "{message}");
    }
    let few = Given { validation: Some(points(2)), test: Some(points(3)) };
    assert!(prepared(points(4), Given::default()).is_ok() && prepared(points(2), few).is_ok());
    // The rows of a file that no flow can score are named before the training.
    let far = prepared(points(2), given(true, true)).map(|_| ()).unwrap_err().to_string();
    assert!(far.contains("row") && far.contains("standard deviations"), "{far}");
}
