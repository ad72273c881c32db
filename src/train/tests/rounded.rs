//! Runs on tables with rounded columns, with `dequantize`.

use super::*;
use crate::data::{Rounding, Rows};
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use rand_distr::StandardNormal;

/// 300 rows: a normal rounded to a step of 0.5, and two that are not rounded. Three columns need no figures over a plane.
fn table() -> Points {
    let mut rng = SmallRng::seed_from_u64(2);
    let normal = |rng: &mut SmallRng| -> f64 { rng.sample(StandardNormal) };
    let rows: Vec<[f64; 3]> = (0..300)
        .map(|_| {
            let x = normal(&mut rng);
            [(2.0 * x).round() / 2.0, x + normal(&mut rng), normal(&mut rng)]
        })
        .collect();
    Points::from_rows(rows).unwrap()
}

fn options() -> TrainOptions {
    TrainOptions {
        updates: Some(4),
        objective: Some(ObjectiveKind::FlowMatching),
        batch: Some(16),
        width: Some(4),
        depth: Some(1),
        dequantize: Some(true),
        plots: Some(PlotsKind::None),
        ..TrainOptions::default()
    }
}

#[test]
fn draws_of_rounded_columns_are_uniform_over_a_step_and_others_are_rows() {
    let mut decorrelated = table();
    decorrelated.decorrelate();
    assert_eq!(decorrelated.standard.factor.len(), 9);
    [table(), decorrelated].iter().for_each(draws_are_rounded);
}

fn draws_are_rounded(points: &Points) {
    let rounding = Rounding::of(points);
    assert_eq!(rounding.steps(), [0.5, 0.0, 0.0]);
    let tables = Tables::of_rounded(points, &rounding);
    let draw =
        |key: u64| points.standard.inverse_transform(&tables.draw(20_000, &Key::new(key)).points.to_vec());
    let drawn = draw(3);
    let noise: Vec<f64> = drawn.chunks(3).map(|p| p[0] - (2.0 * p[0]).round() / 2.0).collect();
    // A bin of a tenth of a step has 2,000 draws, with a standard deviation of 42.
    for bin in 0..10 {
        let from = -0.25 + 0.05 * f64::from(bin);
        let count = noise.iter().filter(|&&x| (from..from + 0.05).contains(&x)).count();
        assert!(count.abs_diff(2_000) < 210, "bin {bin}: {count}");
    }
    let is_row = |y: f64| points.values().chunks(3).any(|p| (p[1] - y).abs() < 1e-5);
    assert!(drawn.chunks(3).take(500).all(|p| is_row(p[1])));
    assert_ne!(draw(4), drawn);
}

#[test]
fn a_run_with_noise_stores_its_steps_resumes_and_scores_rows_with_and_without_noise() {
    let folder = crate::io::scratch();
    let mut notes = Vec::new();
    let run = |path: &std::path::Path| Trainer::new(table()).options(&options()).run_dir(path);
    let learned = run(folder.path()).on_note(|text| notes.push(text.to_owned())).run().unwrap();
    assert!(notes.iter().any(|text| text.starts_with("dequantized columns: x1 (step 0.5);")), "{notes:?}");
    assert!(!notes.iter().any(|text| text.contains("arbitrarily large")), "{notes:?}");
    assert!(learned.summary().contains("dequantized          x1 (step 0.5)"), "{}", learned.summary());
    let frame = learned.header.frames.points.as_ref().unwrap();
    assert_eq!(frame.steps, [0.5, 0.0, 0.0]);

    let model = std::fs::read(folder.path().join(MODEL_FILE)).unwrap();
    run(folder.path()).run().unwrap();
    assert_eq!(std::fs::read(folder.path().join(MODEL_FILE)).unwrap(), model);
    let opened = TrainedFlow::open(folder.path()).unwrap();
    assert_eq!(opened.summary(), learned.summary());
    assert!(opened.header.config.dequantize && opened.header.frames == learned.header.frames);
    let other = Trainer::new(table()).options(&TrainOptions { dequantize: Some(false), ..options() });
    let message = other.run_dir(folder.path()).run().unwrap_err().to_string();
    assert!(message.contains("`dequantize`=true, not `dequantize`=false"), "{message}");

    let points = table();
    let rows = Rows::from_flat(points.values()[..30].to_vec(), 3);
    let coarse = opened.rtol(1e-4).atol(1e-4);
    let at = |draws, seed| coarse.clone().noise_draws(draws).noise_seed(seed).log_prob(&rows).unwrap();
    let plain = coarse.log_prob(&rows).unwrap();
    assert!(coarse.clone().noise_draws(0).log_prob(&rows).unwrap_err().to_string().contains("0 draws"));
    assert_ne!(at(1, 0), plain);
    assert_eq!(at(3, 0), at(3, 0));
    // The step is a sixth of the range, so the mean density over a step is near that at its center.
    assert!(at(32, 1).iter().zip(&plain).all(|(a, b)| (a - b).abs() < 0.3), "{:?} {plain:?}", at(32, 1));
}

#[test]
fn without_noise_and_without_rounded_columns_a_run_has_the_same_bits() {
    let mut rng = SmallRng::seed_from_u64(5);
    let rows: Vec<[f64; 3]> = (0..60).map(|_| std::array::from_fn(|_| rng.sample(StandardNormal))).collect();
    let of = |dequantize| {
        let options = TrainOptions { dequantize, ..options() };
        let mut notes = Vec::new();
        let trainer = Trainer::new(Points::from_rows(rows.clone()).unwrap()).options(&options);
        let learned = trainer.on_note(|text| notes.push(text.to_owned())).run().unwrap();
        let text = serde_json::to_string(&learned.header.config).unwrap();
        assert_eq!(text.contains("dequantize"), dequantize == Some(true));
        assert!(!serde_json::to_string(&learned.header.frames).unwrap().contains("steps"));
        assert_eq!(notes.iter().any(|text| text.contains("adds no noise")), dequantize == Some(true));
        learned.cnf().leaves().iter().map(Tensor::to_vec).collect::<Vec<_>>()
    };
    assert_eq!(of(None), of(Some(true)));
}
