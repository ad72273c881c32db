//! Preparation of the data: the source of batches, the validation and test parts, and the frames that a
//! checkpoint stores.
//!
//! Tables and image sets are split by the seed into training, validation (selects the weights) and test
//! (scored once, at the end). Images and toy densities can be sampled without limit, so their test points are
//! new samples. A toy is trained on a fixed million of its points, because sampling in each update would need
//! eight more compiled programs. A model of W weights loses about W / 2N nats on N points: 0.005 for 10,000
//! weights and a million points.

use super::config::DataShape;
use super::estimator::Exact;
use super::state::{Source, Tables};
use super::{
    Feed, Flow, Given, ImageFrame, ImagesFrame, Parts, PixelTables, PixelTransformKind, PointsFrame,
    TargetKind, TimesKind, TrainConfig, TrainingData,
};
use crate::cnf::{FlowMatching, Times};
use crate::data::{DataError, ImageDensity, ImageSet, PixelTransform, Points, Rounding, ToyDensity, subset};
use crate::error::Result;
use crate::eval::{DATA, Frames, HeldOut, HeldOutRows, Images, TEST_STREAM, check_rows, file_name};
use crate::heatmap::{ColorScale, Heatmap};
use crate::nn::{AnyVelocityField, Buffer};
use crate::tensor::{Key, Tensor};
use std::sync::Arc;

/// Smallest standard deviation of data for which it is not known, in the coordinates of the flow, for the times of flow
/// matching.
const SMALLEST_SCALE: f64 = 0.01;
/// Training points of a toy density.
const TOY_POINTS: usize = 1 << 20;
/// Combined with a run's seed, so that these two uses have their own random numbers.
const TOY_STREAM: u64 = 0x70f5_0f7e_57da_7a01;
const VALIDATION_STREAM: u64 = 0x5eed_0f7e_57da_7a00;
/// Maximum number of validation points, and of test points of a table. The seed chooses them.
const MEASURED: usize = 4_000;

/// Data ready for training.
pub(super) struct Prepared {
    pub source: Source,
    /// How flow matching draws paths to the points of the source.
    pub matching: FlowMatching,
    /// The target of flow matching, if it is exact.
    pub exact: Option<Exact>,
    pub held_out: HeldOut,
    pub frames: Frames,
    pub parts: Parts,
}

impl TrainingData {
    /// A hash of the training data and of the given validation and test data.
    ///
    /// # Errors
    /// A file of images cannot be read.
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

    /// The shape of the data.
    pub(super) fn shape(&self) -> DataShape {
        let dim = self.dim();
        match self {
            TrainingData::Images(set, _) => {
                let image = Some([set.height, set.width, set.channels]);
                DataShape { dim, image, classes: set.classes().unwrap_or(0), ..DataShape::PLANE }
            }
            TrainingData::Image(image) => {
                let smallest = image.jitter_std[0].min(image.jitter_std[1]);
                DataShape {
                    smallest_scale: Some(smallest).filter(|_| !self.is_weighted()),
                    ..DataShape::PLANE
                }
            }
            TrainingData::Points(points, _) => {
                DataShape { dim, is_table: true, classes: points.classes().unwrap_or(0), ..DataShape::PLANE }
            }
            TrainingData::Toy(_) => DataShape { dim, ..DataShape::PLANE },
        }
    }

    /// Prepares the data for a configuration. The pixel transform is fitted if none is given.
    pub(super) fn prepare(&self, config: &TrainConfig, pixels: Option<PixelTransform>) -> Result<Prepared> {
        let seed = config.seed;
        let mut prepared = match self {
            TrainingData::Image(image) => prepare_image(image, seed),
            TrainingData::Points(points, given) => self.prepare_points(points, given, config)?,
            TrainingData::Toy(toy) => self.prepare_toy(*toy, seed)?,
            TrainingData::Images(images, given) => {
                let kind = config.pixels.unwrap_or(PixelTransformKind::Marginals);
                prepare_images(images, given, (kind, pixels), seed)?
            }
        };
        (prepared.matching, prepared.exact) = self.matching(config, &prepared);
        Ok(prepared)
    }

    /// The settings of flow matching, and its target if it is exact.
    fn matching(&self, config: &TrainConfig, prepared: &Prepared) -> (FlowMatching, Option<Exact>) {
        let exact = match (self, &prepared.frames.points) {
            _ if config.target == TargetKind::Drawn => None,
            (TrainingData::Image(image), _) => Some(image.velocity()),
            (TrainingData::Toy(toy), Some(frame)) => {
                let standard = frame.standard();
                Some(toy.velocity([0, 1].map(|i| standard.mean[i]), [0, 1].map(|i| standard.std[i])))
            }
            _ => None,
        };
        let scale = match self {
            TrainingData::Image(image) => image.jitter_std[0].min(image.jitter_std[1]),
            _ => SMALLEST_SCALE,
        };
        let matching = FlowMatching::new().times(match config.times {
            TimesKind::Uniform => Times::Uniform,
            TimesKind::Half => Times::Half { scale },
            TimesKind::Likelihood => Times::Likelihood { scale },
        });
        let Some(velocity) = exact else { return (matching, None) };
        let exact = Exact { velocity: Arc::new(velocity), scale };
        (matching.target(exact.velocity.clone()), Some(exact))
    }

    fn prepare_points(
        &self,
        points: &Points,
        given: &Given<Points>,
        config: &TrainConfig,
    ) -> Result<Prepared> {
        let seed = config.seed;
        let (train, held_out) =
            given.parts(points, ("points", &points.name, points.labels()), Points::len, seed)?;
        let parts = Parts::of(&train, &held_out);
        let mut train = points.rows(&train)?;
        check_classes(points, &train)?;
        let rounding = if config.dequantize { Rounding::of(&train) } else { Rounding::default() };
        rounding.widen(&mut train.standard);
        if config.decorrelate {
            train.decorrelate();
        }
        let rows = |i: usize, stream: u64| -> Result<HeldOutRows> {
            let (of, rows) = &held_out[i];
            let all = of.standardized_as(rows, &train)?;
            check_rows(all.values(), &all.standard, DATA, |row| all.place(row))?;
            let few = subset(rows, None, MEASURED, seed ^ stream);
            let places = few.iter().map(|&row| of.place(row)).collect();
            let points = of.standardized_as(&few, &train)?.dequantized(&rounding, &few, seed ^ stream);
            let labels = points.labels().unwrap_or_default().to_vec();
            Ok(HeldOutRows { points: points.standardized(), log_p: None, places, labels })
        };
        let (validation, test) = (rows(0, VALIDATION_STREAM)?, Some(rows(1, TEST_STREAM)?));
        // The hash does not include a separate test set, because the weights do not depend on it.
        let of_others = given.validation.as_ref().map_or(0, |p| p.fingerprint().rotate_left(1));
        let mut frame = PointsFrame::of(&train, format!("{:016x}", points.fingerprint() ^ of_others));
        frame.num_dropped = Some(points.num_dropped()).filter(|&count| count > 0);
        if !rounding.is_none() {
            frame.steps = rounding.steps().to_vec();
        }
        Ok(self.over(&train, frame, HeldOut::Rows { validation, test }, parts))
    }

    fn prepare_toy(&self, toy: ToyDensity, seed: u64) -> Result<Prepared> {
        let mut rng = Key::new(seed ^ TOY_STREAM).rng();
        let mut train = Points::from_rows(toy.sample(TOY_POINTS, &mut rng))?.with_name(toy.name());
        train.columns = ["x", "y"].map(str::to_owned).to_vec();
        let validation = HeldOutRows::of_toy(toy, &train.standard, MEASURED, &mut rng);
        let parts = Parts { train: TOY_POINTS, validation: MEASURED, test: 0 };
        let mut frame = PointsFrame::of(&train, toy.name().to_owned());
        frame.entropy_nats = Some(toy.entropy_nats());
        Ok(self.over(&train, frame, HeldOut::Rows { validation, test: None }, parts))
    }

    /// Prepares points and, if they lie in the plane and have no classes, the window of their figures. The color scale
    /// of the window is that of the target density, or of the histogram of the points.
    fn over(&self, train: &Points, points: PointsFrame, held_out: HeldOut, parts: Parts) -> Prepared {
        let is_plane = train.dim() == 2 && train.classes().is_none();
        let mut image = is_plane.then(|| ImageFrame::of_points(train, &points));
        if let Some(frame) = &mut image {
            let (values, rows, cols) = self.truth(frame, 2 * frame.side());
            frame.density_max =
                ColorScale::of(&Heatmap { values: &values, rows, cols, frame: frame.window() }).max;
        }
        let source = Source::Tables(match points.rounding() {
            Some(rounding) => Tables::of_rounded(train, &rounding),
            None => Tables::of_points(train),
        });
        let frames = Frames { image, points: Some(points), images: None };
        Prepared { source, matching: FlowMatching::new(), exact: None, held_out, frames, parts }
    }
}

/// Refuses classes without a training row.
fn check_classes(points: &Points, train: &Points) -> Result<()> {
    match train.class_counts().iter().position(|&count| count == 0) {
        None => Ok(()),
        Some(k) => {
            let (name, class) = (points.name.clone(), points.class_names()[k].clone());
            Err(DataError::EmptyClass { name, class }.into())
        }
    }
}

fn prepare_image(image: &ImageDensity, seed: u64) -> Prepared {
    let mut rng = Key::new(seed ^ VALIDATION_STREAM).rng();
    let frames = Frames { image: Some(ImageFrame::of(image)), ..Frames::default() };
    Prepared {
        source: Source::Tables(Tables::new(image)),
        matching: FlowMatching::new(),
        exact: None,
        held_out: HeldOut::Rows { validation: HeldOutRows::of_image(image, MEASURED, &mut rng), test: None },
        frames,
        parts: Parts { train: 0, validation: MEASURED, test: 0 },
    }
}

/// Splits a set of images, and fits its pixel transform if none is given.
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
    let frames = Frames { images: Some(frame), ..Frames::default() };
    Ok(Prepared { source, matching: FlowMatching::new(), exact: None, held_out, frames, parts })
}

/// Refuses validation and test images of another size, or without labels if the training images have them.
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
    /// Sets the level ends of vector fields that have them. They depend on the images, so the configuration
    /// cannot contain them.
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

    /// The pixel transform as stored in a checkpoint.
    pub(super) fn pixels(&self) -> Option<PixelTables> {
        self.held_out.images().map(|images| PixelTables::of(&images.transform))
    }
}
