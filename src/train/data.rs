//! What follows from the data before the first update: a source of batches, what is held out, and the frames that a
//! checkpoint keeps.
//!
//! Files have three parts, drawn by the seed: training, validation (which chooses weights) and test (which is measured
//! once, at the end). Images and toys are drawn from without end, so their test points are fresh. A toy is learned from a
//! million of its points: drawing anew in each update would be eight more programs, and what a table of N points costs a
//! model of W weights, about W / 2N nats, is 0.005 at a million.

use super::config::DataShape;
use super::state::{Source, Tables};
use super::{
    Feed, Flow, Given, ImageFrame, ImagesFrame, Parts, PixelTables, PixelTransformKind, PointsFrame,
    TrainConfig, TrainingData,
};
use crate::data::{DataError, ImageDensity, ImageSet, PixelTransform, Points, ToyDensity, subset};
use crate::error::Result;
use crate::eval::{Frames, HeldOut, Images, Rows, TEST_STREAM, file_name};
use crate::heatmap::{ColorScale, Heatmap};
use crate::nn::{AnyVelocityField, Buffer};
use crate::tensor::{Key, Tensor};
use std::sync::Arc;

/// Points of a toy that a run learns from.
const TOY_POINTS: usize = 1 << 20;
/// Separates this use of a seed from all others.
const TOY_STREAM: u64 = 0x70f5_0f7e_57da_7a01;
const VALIDATION_STREAM: u64 = 0x5eed_0f7e_57da_7a00;
/// Most points of a part of a file that are measured, chosen by the seed, and points of a known density that are watched.
const MEASURED: usize = 4_000;

/// Data ready to be learned from.
pub(super) struct Prepared {
    pub source: Source,
    pub held_out: HeldOut,
    pub frames: Frames,
    pub parts: Parts,
}

impl TrainingData {
    /// A number that two sets of points have in common if they are the same.
    ///
    /// # Errors
    /// A file that has gone or shrunk.
    pub(super) fn fingerprint(&self) -> Result<u64> {
        Ok(match self {
            TrainingData::Image(image) => image.fingerprint(),
            TrainingData::Points(points, given) => {
                let of = |points: &Option<Points>| points.as_ref().map_or(0, Points::fingerprint);
                points.fingerprint() ^ of(&given.validation).rotate_left(1) ^ of(&given.test).rotate_left(2)
            }
            TrainingData::Toy(toy) => toy.name().bytes().fold(0, |sum, byte| (sum << 8) ^ u64::from(byte)),
            TrainingData::Images(images, given) => {
                let of =
                    |images: &Option<Arc<ImageSet>>| images.as_ref().map_or(Ok(0), |set| set.fingerprint());
                let (validation, test) = (of(&given.validation)?, of(&given.test)?);
                images.fingerprint()? ^ validation.rotate_left(1) ^ test.rotate_left(2)
            }
        })
    }

    /// The shape of a point.
    pub(super) fn shape(&self) -> DataShape {
        let dim = self.dim();
        match self {
            TrainingData::Images(set, _) => {
                let image = Some([set.height, set.width, set.channels]);
                DataShape { dim, image, classes: set.classes().unwrap_or(0) }
            }
            TrainingData::Image(_) | TrainingData::Points(..) | TrainingData::Toy(_) => {
                DataShape { dim, ..DataShape::PLANE }
            }
        }
    }

    /// Everything that a run of a configuration needs of it. The transform of pixels is fitted where none is given.
    pub(super) fn prepare(&self, config: &TrainConfig, pixels: Option<PixelTransform>) -> Result<Prepared> {
        let seed = config.seed;
        match self {
            TrainingData::Image(image) => Ok(prepare_image(image, seed)),
            TrainingData::Points(points, given) => self.prepare_points(points, given, seed),
            TrainingData::Toy(toy) => self.prepare_toy(*toy, seed),
            TrainingData::Images(images, given) => {
                let kind = config.pixels.unwrap_or(PixelTransformKind::Marginals);
                prepare_images(images, given, (kind, pixels), seed)
            }
        }
    }

    fn prepare_points(&self, points: &Points, given: &Given<Points>, seed: u64) -> Result<Prepared> {
        let (train, held_out) = given.parts(points, ("points", &points.name, None), Points::len, seed)?;
        let parts = Parts::of(&train, &held_out);
        let train = points.rows(&train)?;
        let rows = |i: usize, stream: u64| -> Result<Rows> {
            let (of, rows) = &held_out[i];
            let few = subset(rows, None, MEASURED, seed ^ stream);
            Ok(Rows { points: of.held_out(&few, &train)?.standardized(), log_p: None })
        };
        let (validation, test) = (rows(0, VALIDATION_STREAM)?, Some(rows(1, TEST_STREAM)?));
        // The test rows have no part in the number: they influence nothing that is kept.
        let of_others = given.validation.as_ref().map_or(0, |p| p.fingerprint().rotate_left(1));
        let frame = PointsFrame::of(&train, format!("{:016x}", points.fingerprint() ^ of_others));
        Ok(self.over(&train, frame, HeldOut::Rows { validation, test }, parts))
    }

    fn prepare_toy(&self, toy: ToyDensity, seed: u64) -> Result<Prepared> {
        let mut rng = Key::new(seed ^ TOY_STREAM).rng();
        let mut train = Points::from_rows(toy.sample(TOY_POINTS, &mut rng))?.with_name(toy.name());
        train.columns = ["x", "y"].map(str::to_owned).to_vec();
        let validation = Rows::of_toy(toy, &train.standard, MEASURED, &mut rng);
        let parts = Parts { train: TOY_POINTS, validation: MEASURED, test: 0 };
        let mut frame = PointsFrame::of(&train, toy.name().to_owned());
        frame.entropy_nats = Some(toy.entropy_nats());
        Ok(self.over(&train, frame, HeldOut::Rows { validation, test: None }, parts))
    }

    /// Points with a window over the plane where they lie in one, whose colors are those of the density to learn.
    fn over(&self, train: &Points, points: PointsFrame, held_out: HeldOut, parts: Parts) -> Prepared {
        let mut image = (train.dim() == 2).then(|| ImageFrame::of_points(train, &points));
        if let Some(frame) = &mut image {
            let (values, rows, cols) = self.truth(frame, 2);
            frame.density_max =
                ColorScale::of(&Heatmap { values: &values, rows, cols, frame: frame.window() }).max;
        }
        let source = Source::Tables(Tables::of_points(train));
        Prepared { source, held_out, frames: Frames { image, points: Some(points), images: None }, parts }
    }
}

fn prepare_image(image: &ImageDensity, seed: u64) -> Prepared {
    let mut rng = Key::new(seed ^ VALIDATION_STREAM).rng();
    let frames = Frames { image: Some(ImageFrame::of(image)), ..Frames::default() };
    Prepared {
        source: Source::Tables(Tables::new(image)),
        held_out: HeldOut::Rows { validation: Rows::of_image(image, MEASURED, &mut rng), test: None },
        frames,
        parts: Parts { train: 0, validation: MEASURED, test: 0 },
    }
}

/// A set of images, split, with the transform of its pixels.
fn prepare_images(
    set: &Arc<ImageSet>,
    given: &Given<Arc<ImageSet>>,
    (pixels, transform): (PixelTransformKind, Option<PixelTransform>),
    seed: u64,
) -> Result<Prepared> {
    [&given.validation, &given.test].into_iter().flatten().try_for_each(|other| check_other(set, other))?;
    let (train, held_out) = given.parts(set, ("images", &set.name, set.labels()), |set| set.len(), seed)?;
    let parts = Parts::of(&train, &held_out);
    let transform = match transform {
        Some(transform) => transform,
        None => pixels.fit(set, &train, seed)?,
    };
    let mut number = set.fingerprint()?;
    if let Some(others) = &given.validation {
        number ^= others.fingerprint()?.rotate_left(1);
    }
    let frame = ImagesFrame {
        name: file_name(&set.name),
        height: set.height,
        width: set.width,
        channels: set.channels,
        pixels,
        classes: set.classes(),
        fingerprint: format!("{number:016x}"),
    };
    let feed = Feed::new(set.clone(), &train, transform.clone(), seed);
    let [validation, test] = held_out.map(|(set, rows)| (set.as_ref(), rows));
    let images = Images::new(set.clone(), train, validation, test, transform, seed)?;
    let (source, held_out) = (Source::Feed(Arc::new(feed)), HeldOut::Images(Box::new(images)));
    Ok(Prepared { source, held_out, frames: Frames { images: Some(frame), ..Frames::default() }, parts })
}

/// Refuses images to measure by that are of another size, or have no classes where the others do.
fn check_other(set: &ImageSet, others: &ImageSet) -> Result<()> {
    let size = |set: &ImageSet| [set.height, set.width, set.channels];
    if size(set) != size(others) {
        let (name, found, wanted) = (others.name.clone(), size(others), size(set));
        return Err(DataError::OtherSize { name, found, wanted }.into());
    }
    match (set.labels(), others.labels()) {
        (Some(_), None) => Err(DataError::NoLabels { name: others.name.clone() }.into()),
        _ => Ok(()),
    }
}

impl Prepared {
    /// Puts the ends of ranges of levels into fields that were made by a configuration, before the images were read.
    pub(super) fn set_ends(&self, flow: &mut Flow) {
        let Some(images) = self.held_out.images() else { return };
        let PixelTransform::Marginals(marginals) = &images.transform else { return };
        for block in &mut flow.blocks {
            if let AnyVelocityField::Levels(levels) = block {
                let ends = marginals.level_ends(levels.ends.get().shape()[0]);
                let ends = Tensor::from_vec([ends.len(), marginals.dim()], marginals.ends(&ends));
                levels.ends = Buffer::new(ends);
            }
        }
    }

    /// What a checkpoint keeps of the transform of pixels.
    pub(super) fn pixels(&self) -> Option<PixelTables> {
        self.held_out.images().map(|images| PixelTables::of(&images.transform))
    }
}
