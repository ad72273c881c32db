//! What a run learns from: an image, points, a toy density or a set of images, and what follows from each before the first
//! update.
//!
//! Four kinds, one list: the exhaustive matches here are the places that a fifth would change. What a run needs of any
//! of them is [`Prepared`]: a source of batches, what is held out, and the frames that a checkpoint keeps. Files have three
//! parts, drawn by the seed: training, validation (which chooses weights) and test (which is measured once, at the end).
//! Images and toys are drawn from without end, so their test points are fresh. A toy is learned from a million of its
//! points: drawing anew in each update would be eight more programs, and what a table of N points costs a model of W
//! weights, about W / 2N nats, is 0.005 at a million.

use super::recipe::DataShape;
use super::state::{Source, Tables};
use super::{
    Feed, Flow, Given, ImageFrame, ImagesFrame, Parts, PixelTables, PixelsKind, PointsFrame, Recipe,
};
use crate::data::{DataError, ImageDensity, ImageSet, PixelTransform, Points, Rule, Standard, Toy, subset};
use crate::error::Result;
use crate::eval::{Frames, Images, Rows, file_name};
use crate::nn::{DriftNet, Fixed};
use crate::plot::{self, DensityMap, Scale};
use crate::tensor::{Key, Tensor};
use rand::Rng;
use rayon::prelude::*;
use std::sync::Arc;

/// Points of a toy that a run learns from.
const TOY_POINTS: usize = 1 << 20;
/// Told apart from every other use of a seed.
const TOY_STREAM: u64 = 0x70f5_0f7e_57da_7a01;
const VALIDATION_STREAM: u64 = 0x5eed_0f7e_57da_7a00;
const TEST_STREAM: u64 = 0x5eed_0f7e_57da_7a02;
/// Most points of a part of a file that are measured, chosen by the seed, and points of a known density that are watched.
const MEASURED: usize = 4_000;
/// Cells along a side of the histogram that stands for the density of points.
const COUNTED: usize = 64;

/// What a run learns from.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Data {
    /// One picture.
    Image(ImageDensity),
    /// Points, and those of validation and test where they are given; otherwise a seeded tenth is held out for each.
    Points(Points, Given<Points>),
    /// A toy density, whose entropy is known.
    Toy(Toy),
    /// Images, each a point, and those of validation and test where they are given; otherwise a seeded tenth is held out for
    /// each, every class in proportion.
    Images(Arc<ImageSet>, Given<Arc<ImageSet>>),
}

impl From<ImageDensity> for Data {
    fn from(image: ImageDensity) -> Data {
        Data::Image(image)
    }
}

impl From<Points> for Data {
    fn from(points: Points) -> Data {
        Data::Points(points, Given::default())
    }
}

impl From<ImageSet> for Data {
    fn from(images: ImageSet) -> Data {
        Data::Images(Arc::new(images), Given::default())
    }
}

impl From<Toy> for Data {
    fn from(toy: Toy) -> Data {
        Data::Toy(toy)
    }
}

/// Data ready to be learned from.
pub(super) struct Prepared {
    pub source: Source,
    pub held_out: HeldOut,
    pub frames: Frames,
    pub parts: Parts,
}

/// What training never sees.
pub(super) enum HeldOut {
    /// Points, of which those of a known density's test are drawn when they are measured.
    Rows { validation: Rows, test: Option<Rows> },
    /// Images, and the others beside them.
    Images(Box<Images>),
}

impl Data {
    /// What it is called in messages.
    pub fn name(&self) -> String {
        match self {
            Data::Image(image) => image.name.clone(),
            Data::Points(points, _) => points.name.clone(),
            Data::Toy(toy) => toy.name().to_owned(),
            Data::Images(images, _) => images.name.clone(),
        }
    }

    /// Length of a point.
    pub fn dim(&self) -> usize {
        match self {
            Data::Image(_) | Data::Toy(_) => 2,
            Data::Points(points, _) => points.dim(),
            Data::Images(images, _) => images.dim(),
        }
    }

    /// The shape of a point.
    pub(super) fn shape(&self) -> DataShape {
        DataShape { dim: self.dim(), picture: self.picture(), classes: self.classes().unwrap_or(0) }
    }

    /// Height, width and channels of images that are points; of other data none.
    fn picture(&self) -> Option<[usize; 3]> {
        match self {
            Data::Images(images, _) => Some([images.height, images.width, images.channels]),
            Data::Image(_) | Data::Points(..) | Data::Toy(_) => None,
        }
    }

    /// Number of classes, where points have one.
    pub(super) fn classes(&self) -> Option<usize> {
        match self {
            Data::Images(images, _) => images.classes(),
            Data::Image(_) | Data::Points(..) | Data::Toy(_) => None,
        }
    }

    /// Mean weight of a loss's points.
    pub(super) fn mean_weight(&self) -> f64 {
        match self {
            Data::Image(image) => image.mean_weight,
            Data::Points(..) | Data::Toy(_) | Data::Images(..) => 1.0,
        }
    }

    /// An image by another rule; other data have none.
    pub(super) fn with_rule(self, rule: Rule) -> Result<Data> {
        Ok(match self {
            Data::Image(image) => Data::Image(image.with_rule(rule)?),
            other => other,
        })
    }

    /// Everything that a run of a recipe needs of it.
    pub(super) fn prepare(&self, recipe: &Recipe) -> Result<Prepared> {
        let seed = recipe.seed;
        match self {
            Data::Image(data) => {
                let (source, frame) = (Source::Tables(Tables::new(data)), ImageFrame::of(data));
                let mut rng = Key::new(seed ^ VALIDATION_STREAM).rng();
                let held_out = HeldOut::Rows { validation: of_image(data, MEASURED, &mut rng), test: None };
                let parts = Parts { train: 0, validation: MEASURED, test: 0 };
                Ok(Prepared {
                    source,
                    held_out,
                    frames: Frames { image: Some(frame), ..Frames::default() },
                    parts,
                })
            }
            Data::Points(..) | Data::Toy(_) => self.prepare_points(seed),
            Data::Images(images, given) => {
                prepare_images(images, given, recipe.pixels.unwrap_or(PixelsKind::Marginals), seed)
            }
        }
    }

    /// Points of a density that is known, drawn for the test and for nothing else; the parts of one seed are independent.
    pub(super) fn fresh(&self, standard: &Standard, n: usize, seed: u64, part: u32) -> Option<Rows> {
        let mut rng = Key::new(seed ^ TEST_STREAM).fold_in(Tensor::from(part)).rng();
        match self {
            Data::Image(image) => Some(of_image(image, n, &mut rng)),
            Data::Toy(toy) => Some(of_toy(*toy, standard, n, &mut rng)),
            Data::Points(..) | Data::Images(..) => None,
        }
    }

    fn prepare_points(&self, seed: u64) -> Result<Prepared> {
        let (train, held_out, parts) = self.split(seed)?;
        let mut points = PointsFrame::of(&train, self.fingerprint());
        if let Data::Toy(toy) = self {
            points.entropy_nats = Some(toy.entropy_nats());
        }
        let mut image = (train.dim() == 2).then(|| ImageFrame::of_points(&train, &points));
        if let Some(frame) = &mut image {
            let (values, rows, cols) = self.truth(frame, 2);
            frame.density_max =
                Scale::of(&DensityMap { values: &values, rows, cols, frame: frame.window() }).max;
        }
        Ok(Prepared {
            source: Source::Tables(Tables::of_points(&train)),
            held_out,
            frames: Frames { image, points: Some(points), images: None },
            parts,
        })
    }

    /// Points to learn from, and what is held out of them; none of an image.
    fn split(&self, seed: u64) -> Result<(Points, HeldOut, Parts)> {
        match self {
            Data::Image(_) | Data::Images(..) => unreachable!("invariant: only points are split here"),
            Data::Points(points, given) => {
                let (train, held_out) =
                    given.parts(points, ("points", &points.name, None), Points::len, seed)?;
                let parts = Parts::of(&train, &held_out);
                let train = points.rows(&train)?;
                let rows = |i: usize, stream: u64| -> Result<Rows> {
                    let (of, rows) = &held_out[i];
                    let few = subset(rows, None, MEASURED, seed ^ stream);
                    Ok(Rows { points: of.held_out(&few, &train)?.standardised(), log_p: None })
                };
                let (validation, test) = (rows(0, VALIDATION_STREAM)?, Some(rows(1, TEST_STREAM)?));
                Ok((train, HeldOut::Rows { validation, test }, parts))
            }
            Data::Toy(toy) => {
                let mut rng = Key::new(seed ^ TOY_STREAM).rng();
                let mut train = Points::from(toy.draw(TOY_POINTS, &mut rng))?.named(toy.name());
                train.columns = ["x", "y"].map(str::to_owned).to_vec();
                let validation = of_toy(*toy, &train.standard, MEASURED, &mut rng);
                let parts = Parts { train: TOY_POINTS, validation: MEASURED, test: 0 };
                Ok((train, HeldOut::Rows { validation, test: None }, parts))
            }
        }
    }

    /// A number that tells data apart, hexadecimal. The test rows have no part in it: they influence nothing that is kept.
    fn fingerprint(&self) -> String {
        let number = match self {
            Data::Image(image) => image.fingerprint(),
            Data::Points(points, given) => {
                let of_others = given.validation.as_ref().map_or(0, |p| p.fingerprint().rotate_left(1));
                points.fingerprint() ^ of_others
            }
            Data::Toy(toy) => return toy.name().to_owned(),
            Data::Images(..) => unreachable!("invariant: a set of images has the number of its frame"),
        };
        format!("{number:016x}")
    }

    /// The density to learn over a plane's window, as well as it is known, at about `per_pixel` cells along a pixel: values,
    /// rows, columns. Of points it is a histogram.
    pub(super) fn truth(&self, frame: &ImageFrame, per_pixel: usize) -> (Vec<f64>, usize, usize) {
        let (rows, cols) = (frame.height * per_pixel, frame.width * per_pixel);
        match self {
            Data::Image(image) => (image.density_on(&image.grid_of(0.0, rows, cols)), rows, cols),
            Data::Toy(toy) => {
                let density = toy.density();
                let at = |p: [f32; 2]| density.log_prob(frame.to_pixels(p.map(f64::from))).exp();
                (frame.cells(0.0, rows, cols).centres.into_iter().map(at).collect(), rows, cols)
            }
            Data::Points(points, _) => {
                let (rows, cols) = (rows.min(COUNTED), cols.min(COUNTED));
                (counted(points, frame.window(), rows, cols), rows, cols)
            }
            Data::Images(..) => unreachable!("invariant: images have no plane"),
        }
    }

    /// What the truth is called over its picture.
    pub(super) fn title(&self) -> &'static str {
        match self {
            Data::Image(_) => "density of the image",
            Data::Points(..) => "histogram of the points",
            Data::Toy(_) | Data::Images(..) => "density to learn",
        }
    }
}

/// Points of an image with their true log-densities.
fn of_image<R: Rng + ?Sized>(image: &ImageDensity, n: usize, rng: &mut R) -> Rows {
    let points = image.sample(n, rng);
    let log_p = Some(image.log_probs(&points));
    Rows { points: points.into_flattened(), log_p }
}

/// Points of a toy with their true log-densities at the points as they were drawn: one that is rounded may lie off the
/// checkerboard.
fn of_toy<R: Rng + ?Sized>(toy: Toy, standard: &Standard, n: usize, rng: &mut R) -> Rows {
    let (drawn, density, shift) = (toy.draw(n, rng), toy.density(), standard.log_jacobian());
    let points = standard.to_standard(drawn.as_flattened()).into_iter().map(|x| x as f32).collect();
    Rows { points, log_p: Some(drawn.par_iter().map(|&x| density.log_prob(x) - shift).collect()) }
}

/// A set of images, split, its transform fitted.
fn prepare_images(
    set: &Arc<ImageSet>,
    given: &Given<Arc<ImageSet>>,
    pixels: PixelsKind,
    seed: u64,
) -> Result<Prepared> {
    [&given.validation, &given.test].into_iter().flatten().try_for_each(|other| check_other(set, other))?;
    let (train, held_out) = given.parts(set, ("images", &set.name, set.labels()), |set| set.len(), seed)?;
    let parts = Parts::of(&train, &held_out);
    let transform = pixels.fit(set, &train, seed)?;
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
    /// Puts the ends of ranges of levels into fields that were made by a recipe, before the images were read.
    pub(super) fn set_ends(&self, flow: &mut Flow) {
        let HeldOut::Images(images) = &self.held_out else { return };
        let PixelTransform::Marginals(marginals) = &images.transform else { return };
        for block in &mut flow.blocks {
            if let DriftNet::Levels(levels) = block {
                let ends = marginals.level_ends(levels.ends.get().shape()[0]);
                let ends = Tensor::from_vec([ends.len(), marginals.dim()], marginals.ends(&ends));
                levels.ends = Fixed::new(ends);
            }
        }
    }

    /// What a checkpoint keeps of the transform of pixels.
    pub(super) fn pixels(&self) -> Option<PixelTables> {
        match &self.held_out {
            HeldOut::Rows { .. } => None,
            HeldOut::Images(images) => Some(PixelTables::of(&images.transform)),
        }
    }
}

/// The share of points in each cell, per unit of area.
fn counted(points: &Points, plot::Frame { x, y }: plot::Frame, rows: usize, cols: usize) -> Vec<f64> {
    let mut values = vec![0.0; rows * cols];
    let area = (x[1] - x[0]) * (y[1] - y[0]).abs() / (rows * cols) as f64;
    let at = |v: f64, [from, to]: [f64; 2], n: usize| ((v - from) / (to - from) * n as f64).floor();
    for p in points.values().as_chunks::<2>().0 {
        let (col, row) = (at(p[0], x, cols), at(p[1], y, rows));
        if (0.0..cols as f64).contains(&col) && (0.0..rows as f64).contains(&row) {
            values[row as usize * cols + col as usize] += 1.0 / (points.len() as f64 * area);
        }
    }
    values
}
