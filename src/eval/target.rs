//! The target density for evaluation: points with their true log-densities, if known, and its values over the
//! plane.
//!
//! There are four kinds of data: an image, points, a toy density and an image set.

use super::ImageFrame;
use super::measure::HeldOutRows;
use crate::data::{Given, ImageDensity, ImageSet, Points, SamplingRule, Standardizer, ToyDensity};
use crate::error::Result;
use crate::heatmap::Extent;
use crate::tensor::{Key, Tensor};
use std::sync::Arc;

/// Combined with a run's seed, so that test points have their own random numbers.
pub(crate) const TEST_STREAM: u64 = 0x5eed_0f7e_57da_7a02;
/// Maximum number of cells along a side of the histogram that represents the density of points.
const COUNTED: usize = 64;

/// The training data.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant, reason = "a run has one, and a box would complicate the type")]
pub enum TrainingData {
    /// One image.
    Image(ImageDensity),
    /// Points, with optional validation and test points. If one of them is missing, a random tenth of the
    /// points, chosen by the seed, is held out for it.
    Points(Points, Given<Points>),
    /// A toy density, whose entropy is known.
    Toy(ToyDensity),
    /// An image set, with optional validation and test images. If one of them is missing, a random tenth of
    /// the images, stratified by class and chosen by the seed, is held out for it.
    Images(Arc<ImageSet>, Given<Arc<ImageSet>>),
}

impl From<ImageDensity> for TrainingData {
    fn from(image: ImageDensity) -> TrainingData {
        TrainingData::Image(image)
    }
}

impl From<Points> for TrainingData {
    fn from(points: Points) -> TrainingData {
        TrainingData::Points(points, Given::default())
    }
}

impl From<ImageSet> for TrainingData {
    fn from(images: ImageSet) -> TrainingData {
        TrainingData::Images(Arc::new(images), Given::default())
    }
}

impl From<ToyDensity> for TrainingData {
    fn from(toy: ToyDensity) -> TrainingData {
        TrainingData::Toy(toy)
    }
}

impl TrainingData {
    /// The name in messages.
    pub fn name(&self) -> String {
        match self {
            TrainingData::Image(image) => image.name.clone(),
            TrainingData::Points(points, _) => points.name.clone(),
            TrainingData::Toy(toy) => toy.name().to_owned(),
            TrainingData::Images(images, _) => images.name.clone(),
        }
    }

    /// Number of coordinates.
    pub fn dim(&self) -> usize {
        match self {
            TrainingData::Image(_) | TrainingData::Toy(_) => 2,
            TrainingData::Points(points, _) => points.dim(),
            TrainingData::Images(images, _) => images.dim(),
        }
    }

    /// Mean weight of the points in the loss.
    #[cfg(feature = "plot")]
    pub(crate) fn mean_weight(&self) -> f64 {
        match self {
            TrainingData::Image(image) => image.mean_weight,
            TrainingData::Points(..) | TrainingData::Toy(_) | TrainingData::Images(..) => 1.0,
        }
    }

    /// Whether points have weights in the loss.
    pub(crate) fn is_weighted(&self) -> bool {
        matches!(self, TrainingData::Image(image) if image.rule != SamplingRule::Default)
    }

    /// The image with another sampling rule; other kinds of data have no rule.
    pub(crate) fn with_rule(self, rule: SamplingRule) -> Result<TrainingData> {
        Ok(match self {
            TrainingData::Image(image) => TrainingData::Image(image.with_rule(rule)?),
            other => other,
        })
    }

    /// `n` new test points of a known density, `None` for other data. Parts with the same seed are
    /// independent.
    pub(crate) fn fresh(
        &self,
        standard: &Standardizer,
        n: usize,
        seed: u64,
        part: u32,
    ) -> Option<HeldOutRows> {
        let mut rng = Key::new(seed ^ TEST_STREAM).fold_in(Tensor::from(part)).rng();
        match self {
            TrainingData::Image(image) => Some(HeldOutRows::of_image(image, n, &mut rng)),
            TrainingData::Toy(toy) => Some(HeldOutRows::of_toy(*toy, standard, n, &mut rng)),
            TrainingData::Points(..) | TrainingData::Images(..) => None,
        }
    }

    /// The target density over a window, on `side` cells along its longer side: values, rows, columns. For
    /// points it is a histogram of at most 64 cells per side.
    pub(crate) fn truth(&self, frame: &ImageFrame, side: usize) -> (Vec<f64>, usize, usize) {
        let [rows, cols] = [frame.height, frame.width].map(|n| (n * side).div_ceil(frame.side()));
        match self {
            TrainingData::Image(image) => {
                (image.density_on(&image.grid_with_shape(0.0, rows, cols)), rows, cols)
            }
            TrainingData::Toy(toy) => {
                let density = toy.density();
                let at = |p: [f32; 2]| density.log_prob(frame.to_pixels(p.map(f64::from))).exp();
                (frame.cells(0.0, rows, cols).centers.into_iter().map(at).collect(), rows, cols)
            }
            TrainingData::Points(points, _) => {
                let (rows, cols) = (rows.min(COUNTED), cols.min(COUNTED));
                (counted(points, frame.window(), rows, cols), rows, cols)
            }
            TrainingData::Images(..) => unreachable!("invariant: images have no plane"),
        }
    }

    /// The title of the target density in figures.
    #[cfg(feature = "plot")]
    pub(crate) fn title(&self) -> &'static str {
        match self {
            TrainingData::Image(_) => "Density of the image",
            TrainingData::Points(..) => "Histogram of the points",
            TrainingData::Toy(_) | TrainingData::Images(..) => "Density to learn",
        }
    }
}

/// The fraction of points in each cell, per unit area.
fn counted(points: &Points, Extent { x, y }: Extent, rows: usize, cols: usize) -> Vec<f64> {
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
