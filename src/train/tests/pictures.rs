//! Whole runs on drawn pictures of all kinds: each is trained, or refused by its name with nothing left behind.
//!
//! The cases are drawn at random, one of each kind. `FLOWLINE_CASES=200` draws more of them.

use super::{FieldConfig, PlotsKind, TrainConfig, TrainOptions, TrainedFlow, Trainer};
use crate::data::ImageDensity;
use crate::error::Result;
use crate::eval::{Machine, Work, with_at_most};
use crate::io::raster::{Channels, Depth, encode_png};
use crate::io::scratch;
use crate::train::config::DataShape;
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    OnePixel,
    Row,
    Column,
    White,
    Black,
    OneDark,
    AllInk,
    Colors,
    Alpha,
    SixteenBits,
    Fine,
    Large,
}

impl Kind {
    const ALL: [Kind; 12] = [
        Kind::OnePixel,
        Kind::Row,
        Kind::Column,
        Kind::White,
        Kind::Black,
        Kind::OneDark,
        Kind::AllInk,
        Kind::Colors,
        Kind::Alpha,
        Kind::SixteenBits,
        Kind::Fine,
        Kind::Large,
    ];

    /// Columns and rows: 1; 2 to 90; for a fine picture 190 to 250, more than 2^17 cells but fewer pixels; for a large one
    /// 730 to 900, more than 2^19 pixels.
    fn size(self, rng: &mut SmallRng) -> [u32; 2] {
        let mut side = || rng.random_range(2..90);
        match self {
            Kind::OnePixel => [1, 1],
            Kind::Row => [side(), 1],
            Kind::Column => [1, side()],
            Kind::Fine => [0, 1].map(|_| rng.random_range(190..250)),
            Kind::Large => [0, 1].map(|_| rng.random_range(730..900)),
            _ => [side(), side()],
        }
    }

    fn channels(self) -> Channels {
        match self {
            Kind::Colors => Channels::Rgb,
            Kind::Alpha => Channels::Rgba,
            _ => Channels::Gray,
        }
    }

    /// The samples of a pixel, of which the least significant byte of 16 bits is drawn too. `dark` tells whether the
    /// pixel belongs to a random half of the picture.
    fn pixel(self, dark: bool, is_chosen: bool, rng: &mut SmallRng) -> Vec<u8> {
        match self {
            Kind::OnePixel | Kind::Black => vec![0],
            Kind::White => vec![255],
            Kind::OneDark => vec![if is_chosen { rng.random_range(0..250) } else { 255 }],
            Kind::AllInk => vec![rng.random_range(0..60)],
            Kind::Colors => (0..3).map(|_| if dark { rng.random() } else { 255 }).collect(),
            // What a transparent pixel has for a color does not matter.
            Kind::Alpha => vec![rng.random(), rng.random(), 0, if dark { rng.random() } else { 0 }],
            Kind::SixteenBits => vec![if dark { rng.random_range(0..255) } else { 255 }, rng.random()],
            Kind::Row | Kind::Column | Kind::Fine | Kind::Large => {
                vec![if dark { rng.random() } else { 255 }]
            }
        }
    }

    fn png(self, rng: &mut SmallRng) -> Vec<u8> {
        let size = self.size(rng);
        let chosen = [rng.random_range(0..size[0]), rng.random_range(0..size[1])];
        let (slope, edge) = (rng.random_range(-1.0..1.0), rng.random::<f64>() * f64::from(size[1]));
        let mut bytes = Vec::new();
        for [column, row] in (0..size[0] * size[1]).map(|i| [i % size[0], i / size[0]]) {
            let dark = f64::from(row) > edge + slope * f64::from(column) || rng.random_range(0..10) == 0;
            bytes.extend(self.pixel(dark, [column, row] == chosen, rng));
        }
        let depth = if self == Kind::SixteenBits { Depth::Sixteen } else { Depth::Eight };
        encode_png(size, self.channels(), depth, &bytes).unwrap()
    }
}

/// A run of 12 s on a machine that is so slow that there are a few updates, and about a thousand points and cells.
fn run(picture: &Path, folder: &Path, plots: PlotsKind) -> Result<TrainedFlow> {
    let mut machine = Machine::new(0, f64::INFINITY);
    machine.slow = 1.0;
    machine.takes(Work::Update, 0.5);
    machine.takes(Work::Score, 3e-3);
    machine.takes(Work::Grid, 2e-3);
    machine.takes(Work::Samples, 2e-3);
    let options = TrainOptions {
        time_limit: Some(12.0),
        batch: Some(16),
        width: Some(8),
        depth: Some(1),
        plots: Some(plots),
        ..TrainOptions::default()
    };
    let image = ImageDensity::open(picture)?;
    let trainer = Trainer::new(image).options(&options).run_dir(folder).time(machine.time());
    with_at_most(512, || trainer.run())
}

#[test]
fn any_picture_is_trained_or_refused_by_name_with_nothing_left_behind() {
    let kinds = Kind::ALL.len();
    let cases = std::env::var("FLOWLINE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(kinds);
    let mut rng = SmallRng::seed_from_u64(21);
    let (mut trained, mut refused) = ([0; Kind::ALL.len()], [0; Kind::ALL.len()]);
    for number in 0..cases.max(kinds) {
        let (kind, place) = (Kind::ALL[number % kinds], scratch());
        let (picture, folder) = (place.path().join("drawn.png"), place.path().join("run"));
        std::fs::write(&picture, kind.png(&mut rng)).unwrap();
        let plots = if number % 3 == 0 { PlotsKind::Density } else { PlotsKind::None };
        match run(&picture, &folder, plots) {
            Err(error) => {
                let text = error.to_string();
                let reasons = ["pixels, too small", "one gray only", "in row", "in column"];
                assert!(text.contains("drawn.png"), "{number} {kind:?}: {text}");
                assert!(reasons.iter().any(|reason| text.contains(reason)), "{number} {kind:?}: {text}");
                let left: Vec<_> = std::fs::read_dir(place.path()).unwrap().collect();
                assert_eq!(left.len(), 1, "{number} {kind:?}: {left:?}");
                refused[number % kinds] += 1;
            }
            Ok(flow) => {
                let report = flow.report.as_ref().unwrap();
                let scores = [Some(report.nll_nats), report.gap_nats, report.total_probability];
                assert!(
                    scores.iter().all(|score| score.is_some_and(f64::is_finite)),
                    "{number} {kind:?}: {report:?}"
                );
                assert_eq!(
                    report.total_probability_points.is_some(),
                    matches!(kind, Kind::Fine | Kind::Large),
                    "{number} {kind:?}"
                );
                assert!(report.updates > 3 && report.test_rows > 0, "{number} {kind:?}: {report:?}");
                assert_eq!(TrainedFlow::open(&folder).unwrap().num_updates, report.updates);
                trained[number % kinds] += 1;
            }
        }
    }
    let none_refused = |kind: Kind| {
        matches!(kind, Kind::Colors | Kind::Alpha | Kind::SixteenBits | Kind::Fine | Kind::Large)
    };
    for (i, kind) in Kind::ALL.into_iter().enumerate() {
        let is_drawn = if none_refused(kind) || kind == Kind::AllInk { trained[i] } else { refused[i] };
        assert!(is_drawn > 0, "{kind:?}: {trained:?} trained, {refused:?} refused");
    }
}

/// Smallest standard deviations from 1e-3 to 1, log-uniform. An image is fine below 0.45 / e^3.6.
#[test]
fn an_image_with_fine_structures_has_more_features_and_wider_layers() {
    let mut rng = SmallRng::seed_from_u64(5);
    let mut drawn = [0; 2];
    for _ in 0..200 {
        let scale = 10f64.powf(rng.random_range(-3.0..0.0));
        let shape = DataShape { smallest_scale: Some(scale), ..DataShape::PLANE };
        let config = TrainConfig::of(&TrainOptions::default(), shape);
        let is_fine = scale < 0.45 / 3.6f64.exp();
        let FieldConfig::Fourier { features, .. } = config.model.field else { panic!("{config:?}") };
        let expected = if is_fine { (64, vec![128; 3]) } else { (48, vec![72; 3]) };
        assert_eq!((features, config.model.hidden), expected, "{scale}");
        drawn[usize::from(is_fine)] += 1;
    }
    assert!(drawn.iter().all(|&n| n > 40), "{drawn:?}");
}
