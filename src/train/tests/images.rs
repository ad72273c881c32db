//! Runs on a set of images, through the public API.

use crate::data::{ImageSet, LogitTransform, PixelTransform, Rows};
use crate::error::Result;
use crate::io::run::BEST_FILE;
use crate::io::{Scratch, scratch};
use crate::tensor::Key;
use crate::time_source::TimeSource;
use crate::train::{
    DivergenceKind, Given, ImageScores, METRICS_FILE, ModelKind, ObjectiveKind, PixelTransformKind,
    TrainOptions, TrainedFlow, Trainer, TrainingData,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Images of 4 x 6 pixels: a vertical (class 0) or horizontal (class 1) bar, 2 pixels thick, at one of 3 positions.
fn bars(n: usize) -> (Vec<u8>, Vec<u8>) {
    let class = |i: usize| i % 2;
    let pixel = |i: usize, y: usize, x: usize| {
        let at = i / 2 % 3;
        let inside = if class(i) == 0 { (at..at + 2).contains(&x) } else { (at + 1..at + 3).contains(&y) };
        if inside { 200 + (i * 7 % 50) as u8 } else { 0 }
    };
    let bytes = (0..n).flat_map(|i| (0..24).map(move |p| pixel(i, p / 4, p % 4))).collect();
    (bytes, (0..n).map(|i| class(i) as u8).collect())
}

pub(super) struct Place {
    folder: Scratch,
}

impl Place {
    pub(super) fn new() -> Place {
        Place { folder: scratch() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn set(&self, n: usize, with_labels: bool) -> Arc<ImageSet> {
        let (bytes, labels) = bars(n);
        let count = (n as u32).to_be_bytes();
        let images = [[0, 0, 8, 3], count, [0, 0, 0, 6], [0, 0, 0, 4]].concat();
        std::fs::write(self.path("images"), [images, bytes].concat()).unwrap();
        std::fs::write(self.path("labels"), [[[0, 0, 8, 1], count].concat(), labels].concat()).unwrap();
        let set = ImageSet::open(self.path("images")).unwrap();
        Arc::new(if with_labels { set.with_labels(self.path("labels")).unwrap() } else { set })
    }

    fn run(&self, name: &str, options: &TrainOptions, data: TrainingData) -> Result<TrainedFlow> {
        Trainer::new(data).options(options).run_dir(self.path(name)).run()
    }
}

fn validation(set: Arc<ImageSet>) -> Given<Arc<ImageSet>> {
    Given { validation: Some(set), test: None }
}

fn small(updates: u64) -> TrainOptions {
    TrainOptions {
        updates: Some(updates),
        batch: Some(16),
        width: Some(8),
        depth: Some(1),
        ..TrainOptions::default()
    }
}

fn learning() -> TrainOptions {
    TrainOptions { lr: Some(1e-2), ..small(80) }
}

fn bytes(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

#[test]
fn images_are_learned_resumed_sampled_and_measured() {
    let place = Place::new();
    let data = TrainingData::Images(place.set(300, false), Given::default());
    let learned = place.run("whole", &learning(), data.clone()).unwrap();
    let report = learned.report.as_ref().unwrap();
    let bits = report.bits_per_dim.unwrap();
    // One update leaves the pixels nearly independent.
    let first = place.run("first", &small(1), data.clone()).unwrap().report.unwrap().bits_per_dim.unwrap();
    assert!(bits < first - 0.1 && report.bits_per_dim_stderr.unwrap() > 0.0, "{bits} {first}");
    assert!((report.nll_nats - bits * 24.0 * std::f64::consts::LN_2).abs() < 1e-9);
    assert_eq!((report.gap_nats, report.total_probability, report.tolerances.len()), (None, None, 4));
    assert_eq!((report.validation_rows, report.test_rows), (30, 30));
    let of_test = report.test_bits_per_dim.unwrap();
    assert!((report.test_nll_nats - of_test * 24.0 * std::f64::consts::LN_2).abs() < 1e-9);
    assert!(of_test != bits && (of_test - bits).abs() < 0.6, "{of_test} {bits}");
    let text = report.to_string();
    assert!(text.starts_with(&format!("test bits/dim        {of_test:.4} ± ")), "{text}");
    let spread = report.tolerances.iter().map(|row| row.bits_per_dim - report.tolerances[3].bits_per_dim);
    assert!(spread.clone().all(|x| x.abs() < 0.05), "{:?}", report.tolerances);
    for image in ["samples", "flow", "nearest", "bits", "loss"] {
        let is_there = place.path("whole").join(format!("{image}.png")).exists();
        assert_eq!(is_there, cfg!(feature = "plot"), "{image}");
    }

    // A finished run is resumed without updates; its folder has the same result.
    let again = place.run("whole", &learning(), data.clone()).unwrap();
    assert_eq!(again.report.unwrap().resumed_from_update, Some(80));
    let opened = TrainedFlow::open(place.path("whole")).unwrap();
    let draw = |learned: &TrainedFlow| -> Vec<u8> {
        let key = Key::new(5);
        learned.sample(300, &key).unwrap().to_pixel_bytes()
    };
    let samples = draw(&opened);
    assert_eq!((samples.len(), samples == draw(&learned)), (300 * 24, true));
    assert_eq!(opened.sample(10, &Key::new(5)).unwrap().to_pixel_bytes(), samples[..240]);

    let images = place.set(300, false);
    let scored = |draws| opened.clone().noise_draws(draws).image_scores(&images, |_| {}).unwrap();
    let ImageScores { log_probs, bits_per_dim: found } = scored(2);
    assert_eq!((log_probs.len(), found.bits.count, found.draws), (300, 300, 2));
    let mean = -log_probs.iter().sum::<f64>() / 300.0 / 24.0 / std::f64::consts::LN_2;
    // Eight tenths of these images are training images.
    assert!((mean - found.bits.mean).abs() < 1e-9 && (mean - bits).abs() < 0.6, "{mean} {bits}");
    let twice = opened.clone().noise_draws(2);
    assert_eq!(twice.log_prob(&*images).unwrap(), log_probs);
    let pixels = Rows::from_flat(
        images.rows(&(0..300).collect::<Vec<_>>()).unwrap().into_iter().map(f64::from).collect(),
        24,
    );
    assert_eq!(twice.log_prob(&pixels).unwrap(), log_probs);
    assert_eq!(twice.log_prob([&pixels[0]]).unwrap().len(), 1);
    assert!(opened.clone().noise_draws(0).log_prob(&*images).unwrap_err().to_string().contains("0 draws"));
    assert_ne!(twice.clone().noise_seed(2).log_prob(&pixels).unwrap(), log_probs);
    let refused = |rows: Rows| opened.log_prob(rows).unwrap_err().to_string();
    let half = refused(Rows::from_flat(vec![0.5; 24], 24));
    assert!(half.contains("row 1: pixel 0 is 0.5"), "{half}");
    assert!(
        refused(Rows::from_flat(vec![0.0; 23], 23)).contains("23 columns, but the training points have 24")
    );
    let (drawn, of_drawn) = opened.sample_with_log_prob(300, &Key::new(5)).unwrap();
    assert_eq!((drawn.to_pixel_bytes(), of_drawn), (samples, opened.log_prob(&drawn).unwrap()));
    assert!((drawn.columns()[23] == "pixel23") && opened.sample_given(&[0.0; 24], 1, &Key::new(0)).is_err());
    let once = scored(1).bits_per_dim;
    let ratio = once.noise_stderr.unwrap() / found.noise_stderr.unwrap();
    assert!(
        (1.0..2.0).contains(&ratio),
        "with twice the draws, the noise is smaller by a factor of sqrt(2): {ratio}"
    );

    let other = place
        .run("whole", &TrainOptions { pixels: Some(PixelTransformKind::Logit), ..learning() }, data)
        .unwrap_err();
    assert!(other.to_string().contains("`pixels`=marginals, not `pixels`=logit"), "{other}");
}

#[test]
fn a_run_that_was_stopped_halfway_ends_with_the_same_bits() {
    let place = Place::new();
    let data = TrainingData::Images(place.set(100, true), Given::default());
    place.run("whole", &small(30), data.clone()).unwrap();
    // A process killed at update 18 leaves the checkpoint of update 11.
    let time = TimeSource::set();
    let halfway = Trainer::new(data.clone()).options(&small(30)).run_dir(place.path("cut"));
    let halfway = halfway.time(time.clone());
    let stop = |p: &crate::train::Progress| {
        match p.update {
            // Longer than the checkpoint interval: the next update writes one.
            10 => time.advance(3.2),
            18 => std::panic::panic_any("killed"),
            _ => {}
        }
    };
    let killed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = halfway.on_update(stop).run();
    }));
    assert!(killed.is_err());
    let resumed = place.run("cut", &small(30), data).unwrap();
    assert_eq!(resumed.report.unwrap().resumed_from_update, Some(11));
    for file in ["model.safetensors", BEST_FILE] {
        assert!(bytes(&place.path("whole").join(file)) == bytes(&place.path("cut").join(file)), "{file}");
    }
}

#[test]
fn images_of_a_class_are_drawn_where_classes_were_learned() {
    let place = Place::new();
    let data = TrainingData::Images(place.set(200, true), validation(place.set(200, true)));
    let options = TrainOptions { updates: Some(200), lr: Some(1e-2), ..small(1) };
    let learned = place.run("classes", &options, data).unwrap();
    // A vertical bar: the means of its columns vary more than those of its rows.
    let stands = |image: &[u8]| {
        let column = |x: usize| image.iter().skip(x).step_by(4).map(|&v| f64::from(v)).sum::<f64>() / 6.0;
        let row = |y: usize| image[4 * y..4 * y + 4].iter().map(|&v| f64::from(v)).sum::<f64>() / 4.0;
        let variance = |values: Vec<f64>| {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>()
        };
        variance((0..4).map(column).collect()) > variance((0..6).map(row).collect())
    };
    let key = Key::new(2);
    for (class, least) in [(0, 0.8), (1, 0.8)] {
        let images = learned.clone().class(class).sample(100, &key).unwrap().to_pixel_bytes();
        let right = images.chunks(24).filter(|image| stands(image) == (class == 0)).count();
        assert!(right as f64 >= 100.0 * least, "class {class}: {right} of 100");
    }
    let refused = |flow: TrainedFlow| flow.sample(1, &key).unwrap_err().to_string();
    let (none, third) = (refused(learned.clone()), refused(learned.clone().class(2)));
    assert!(none.contains("this run has 2 classes; choose one with `class`"), "{none}");
    assert!(third.contains("`class`=2: this run has classes 0 to 1"), "{third}");
    let unlabeled = place.set(50, false);
    let message = learned.log_prob(&*unlabeled).unwrap_err().to_string();
    assert!(message.contains("has no labels"), "{message}");
}

#[test]
fn every_field_transform_and_objective_runs() {
    let place = Place::new();
    let data = TrainingData::Images(place.set(60, false), Given::default());
    let few = |options: TrainOptions| TrainOptions {
        updates: Some(4),
        batch: Some(8),
        depth: Some(1),
        width: Some(8),
        ..options
    };
    let all = [
        TrainOptions { field: Some(ModelKind::Mlp), ..TrainOptions::default() },
        TrainOptions {
            field: Some(ModelKind::ConcatSquash),
            pixels: Some(PixelTransformKind::Logit),
            ..TrainOptions::default()
        },
        TrainOptions { pixels: Some(PixelTransformKind::Logit), ..TrainOptions::default() },
        TrainOptions {
            objective: Some(ObjectiveKind::MaximumLikelihood),
            kinetic: Some(0.01),
            jacobian: Some(0.01),
            ..TrainOptions::default()
        },
        TrainOptions { objective: Some(ObjectiveKind::Both), ..TrainOptions::default() },
    ];
    for (i, options) in all.into_iter().enumerate() {
        let learned = place.run(&format!("run{i}"), &few(options), data.clone()).unwrap();
        assert_eq!(learned.header.config.model.solve.divergence, DivergenceKind::Hutchinson);
        assert!(learned.report.unwrap().bits_per_dim.unwrap().is_finite(), "{i}");
        assert!(TrainedFlow::open(place.path(&format!("run{i}"))).is_ok(), "{i}");
    }
}

#[test]
fn a_run_that_does_not_improve_ends_early_with_its_best() {
    let place = Place::new();
    let data = TrainingData::Images(place.set(40, false), Given::default());
    // A learning rate that changes nothing.
    let options = TrainOptions { lr: Some(1e-30), patience: Some(2), ..small(100) };
    let learned = place.run("run", &options, data.clone()).unwrap();
    let report = learned.report.unwrap();
    // The first of ten checks is the best; the third is the second without improvement.
    assert_eq!(report.updates, 30);
    let rows = std::fs::read_to_string(place.path("run").join(METRICS_FILE)).unwrap();
    assert_eq!(rows.lines().count() as u64, 1 + report.updates);
    let again = place.run("run", &options, data).unwrap().report.unwrap();
    assert_eq!(again.updates, report.updates, "a run that ended early must not continue");
}

#[test]
fn what_is_no_data_for_a_run_on_images_is_named() {
    let place = Place::new();
    let set = place.set(40, true);
    let refused = |options: &TrainOptions, data: TrainingData| {
        let run = Trainer::new(data).options(options).run().map(|_| ());
        run.unwrap_err().to_string()
    };
    let preset = TrainOptions { preset: Some(crate::train::Preset::Points), ..small(1) };
    assert!(
        refused(&preset, TrainingData::Images(set.clone(), Given::default())).contains("`preset`=points")
    );
    let squash = TrainOptions { field: Some(ModelKind::ConcatSquash), ..small(1) };
    assert!(
        refused(&squash, TrainingData::Images(set.clone(), Given::default()))
            .contains("`field`=concatsquash takes no classes")
    );
    let field = TrainOptions { field: Some(ModelKind::Mlp), ..TrainOptions::default() };
    assert!(
        refused(&field, crate::data::ToyDensity::Moons.into())
            .contains("`field`=mlp: it needs a set of images")
    );
    let unlabeled = place.set(40, false);
    let message = refused(&small(1), TrainingData::Images(set.clone(), validation(unlabeled)));
    assert!(message.contains("has no labels"), "{message}");
    std::fs::write(
        place.path("other"),
        [&[0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3][..], &[9; 6]].concat(),
    )
    .unwrap();
    let other = Arc::new(ImageSet::open(place.path("other")).unwrap());
    let message = refused(&small(1), TrainingData::Images(set, validation(other)));
    assert!(message.contains("3 x 1 pixels") && message.contains("4 x 6"), "{message}");
}

#[test]
fn a_logit_transform_is_kept_in_the_checkpoint() {
    let place = Place::new();
    let options = TrainOptions { pixels: Some(PixelTransformKind::Logit), ..small(1) };
    place.run("run", &options, TrainingData::Images(place.set(60, false), Given::default())).unwrap();
    let opened = TrainedFlow::open(place.path("run")).unwrap();
    let Some(PixelTransform::Logit(LogitTransform { mean, .. })) = &opened.fitted.pixels else {
        panic!("{opened:?}")
    };
    assert!(mean.len() == 24 && mean.iter().all(|m| m.is_finite()), "{mean:?}");
}

#[test]
fn sets_that_are_sorted_by_class_have_each_class_in_each_part() {
    let bytes: Vec<u8> = (0..300u32).flat_map(|i| [(i % 251) as u8, (i * 7 % 253) as u8]).collect();
    let classes: Vec<u16> = (0..300).map(|i| i / 100).collect();
    let set = ImageSet::from_bytes("sorted", bytes, [1, 2, 1]).unwrap().with_classes(classes).unwrap();
    let data = TrainingData::from(set);
    let TrainingData::Images(set, given) = &data else { panic!() };
    for seed in 0..20 {
        let (train, held_out) =
            given.parts(set, ("images", "sorted", set.labels()), |set| set.len(), seed).unwrap();
        let parts = [train, held_out[0].1.clone(), held_out[1].1.clone()];
        for (part, share) in parts.iter().zip([80_usize, 10, 10]) {
            for class in 0..3 {
                let found = part.iter().filter(|&&i| i / 100 == class).count();
                assert!(found.abs_diff(share) <= 2, "class {class}: {found} of {share}, seed {seed}");
            }
        }
        let mut all = parts.concat();
        all.sort_unstable();
        assert_eq!(all, (0..300).collect::<Vec<_>>());
    }
    let prepared = data.prepare(&crate::train::TrainConfig::new(&TrainOptions::default()), None).unwrap();
    assert_eq!((prepared.parts.train, prepared.parts.validation, prepared.parts.test), (240, 30, 30));
}
