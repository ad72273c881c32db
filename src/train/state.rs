//! The training state, and the data tables that updates read.
//!
//! Everything that an update changes is a tensor of [`TrainState`], including the update's number and the key.
//! Without a time limit, an update is a function of the state and constants, so a run resumed from the state of a
//! checkpoint continues as if uninterrupted.

use super::feed::Wanted;
use super::{Feed, Flow, PixelTables};
use crate::array::DType;
use crate::data::{ImageDensity, Points, Rounding};
use crate::error::Result;
use crate::optim::OptState;
use crate::tensor::{Key, Tensor};
use crate::tree;
use crate::triangular::below as decorrelated;
use std::ops::Range;
use std::sync::Arc;

tree! {
/// The training state.
pub struct TrainState {
    /// The trained model.
    pub model: Flow,
    /// The exponential moving average of its weights, which is scored, plotted and sampled.
    pub ema: Flow,
    /// The optimizer's moments and counts.
    pub optimizer: OptState,
    /// The key of all random numbers.
    pub key: Key,
    /// Updates done, u32.
    pub update: Tensor,
}
}

tree! {
/// The contents of a checkpoint: the state and, for images, the tables of the pixel transform.
pub struct Stored {
    model: Flow,
    ema: Flow,
    /// The spelling of this field is part of the checkpoint format.
    optimiser: OptState,
    key: Key,
    update: Tensor,
    pixels: Option<PixelTables>,
}
}

impl Stored {
    /// The contents of the checkpoint of a state; buffers are shared, not copied.
    pub fn of(state: &TrainState, pixels: Option<PixelTables>) -> Stored {
        let TrainState { model, ema, optimizer, key, update } = state.clone();
        Stored { model, ema, optimiser: optimizer, key, update, pixels }
    }

    /// The tables of the pixel transform, for images.
    pub fn pixels(&self) -> Option<&PixelTables> {
        self.pixels.as_ref()
    }

    /// The state.
    pub fn state(self) -> TrainState {
        let Stored { model, ema, optimiser: optimizer, key, update, .. } = self;
        TrainState { model, ema, optimizer, key, update }
    }
}

/// The source of batches.
#[derive(Clone)]
pub enum Source {
    /// Tables as tensors; an update samples from them.
    Tables(Tables),
    /// Images; the rows of each update are read before it.
    Feed(Arc<Feed>),
}

impl Source {
    /// The data argument of an update, for its plan: the tables, or zeros with the shapes of a batch of images.
    pub fn tables(&self, batch: usize) -> Tables {
        match self {
            Source::Tables(tables) => tables.clone(),
            Source::Feed(feed) => {
                let zeros = |columns| Tensor::full(DType::F32, [batch, columns], 0.0);
                let labels = feed.has_labels().then(|| zeros(1));
                Tables::Rows(ImageRows { rows: zeros(feed.dim()), labels })
            }
        }
    }

    /// The data for the shards `which` of an update, whose batch has `shards` shards. `update` is counted
    /// from 0.
    ///
    /// # Errors
    /// A file of images cannot be read.
    pub fn shards(
        &self,
        update: impl FnOnce() -> u64,
        batch: usize,
        shards: usize,
        which: Range<usize>,
    ) -> Result<Vec<Tables>> {
        let feed = match self {
            Source::Tables(tables) => return Ok(vec![tables.clone(); which.len()]),
            Source::Feed(feed) => feed,
        };
        let rows = |(rows, labels): (Tensor, Option<Tensor>)| {
            let labels = labels.map(|labels| labels.cast(DType::F32).reshape([batch / shards, 1]));
            Tables::Rows(ImageRows { rows, labels })
        };
        let wanted = Wanted { update: update(), batch, shards, which };
        Ok(feed.batch(&wanted)?.into_iter().map(rows).collect())
    }
}

tree! {
/// The data as tensors.
pub enum Tables {
    /// An image.
    Image(ImageTables),
    /// Points.
    Points(PointsTable),
    /// The rows of an update.
    Rows(ImageRows),
}
}

tree! {
/// The prepared rows of an update.
pub struct ImageRows {
    /// Points `[batch, d]`.
    pub rows: Tensor,
    /// Their classes `[batch, 1]`, if they have labels.
    pub labels: Option<Tensor>,
}
}

tree! {
/// Points as a tensor.
pub struct PointsTable {
    /// Standardized coordinates, `[n, d]`.
    pub rows: Tensor,
    /// The width of the noise on each column in standardized coordinates, `[d]`, if the points are dequantized; if they
    /// are also decorrelated, `[d, d]`, row i for the noise on column i.
    pub steps: Option<Tensor>,
    /// The class of each row, `[n, 1]`, if they have labels.
    pub labels: Option<Tensor>,
}
}

tree! {
/// An [`ImageDensity`] as tensors: the n pixels in use.
pub struct ImageTables {
    /// Row-major indices of the pixels, `[n]`.
    pub pixels: Tensor,
    /// Standardized centers of the columns, `[width]`.
    pub columns: Tensor,
    /// Standardized centers of the rows, `[height]`.
    pub rows: Tensor,
    /// Probability that a bucket's own pixel is the sample, `[n]`.
    pub alias_prob: Tensor,
    /// The pixel that is the sample otherwise, `[n]`.
    pub alias_index: Tensor,
    /// Loss weight of a pixel's points, `[n]`, if it is not 1.
    pub weight: Option<Tensor>,
    /// Standard deviation of the jitter, `[2]`, standardized.
    pub jitter_sd: Tensor,
}
}

tree! {
/// Training points.
pub struct Batch {
    /// Standardized coordinates, `[rows, d]`.
    pub points: Tensor,
    /// Loss weights, `[rows]`.
    pub weight: Tensor,
    /// Their classes, `[rows, 1]`, if they have labels.
    pub labels: Option<Tensor>,
}
}

impl Tables {
    /// The tables of an image.
    pub fn new(data: &ImageDensity) -> Tables {
        let table = data.pixel_table();
        Tables::Image(ImageTables {
            pixels: table.pixels.into(),
            columns: table.xs.into(),
            rows: table.ys.into(),
            alias_prob: table.prob.into(),
            alias_index: table.index.into(),
            weight: table.weight.map(Tensor::from),
            jitter_sd: data.jitter_std.map(|s| s as f32).into(),
        })
    }

    /// The table of points.
    pub fn of_points(points: &Points) -> Tables {
        let rows = Tensor::from_vec([points.len(), points.dim()], points.standardized());
        let labels = points.labels().map(|labels| {
            let labels = labels.iter().map(|&k| f32::from(k)).collect();
            Tensor::from_vec([points.len(), 1], labels)
        });
        Tables::Points(PointsTable { rows, steps: None, labels })
    }

    /// The table of points whose rounded columns get noise of one step, new in each draw.
    pub fn of_rounded(points: &Points, rounding: &Rounding) -> Tables {
        let Tables::Points(table) = Tables::of_points(points) else {
            unreachable!("invariant: points have a table of points")
        };
        let (standard, d) = (&points.standard, points.dim());
        let steps: Vec<f64> =
            rounding.steps().iter().zip(&standard.std).map(|(step, std)| step / std).collect();
        let steps = if standard.factor.is_empty() {
            Tensor::from_vec([d], steps.into_iter().map(|step| step as f32).collect())
        } else {
            // Row i is the noise of column i in decorrelated coordinates.
            let row = |i: usize| {
                let alone = (0..d).map(|j| if i == j { steps[i] } else { 0.0 }).collect();
                decorrelated(&standard.factor, alone, d).into_iter().map(|x| x as f32)
            };
            Tensor::from_vec([d, d], (0..d).flat_map(row).collect())
        };
        Tables::Points(PointsTable { steps: Some(steps), ..table })
    }

    /// `rows` independent samples: for an image, a pixel by the alias method plus Gaussian jitter; for
    /// points, uniformly chosen rows, with new noise if they are dequantized. Prepared rows of images are returned as they are.
    ///
    /// # Numerics
    /// The bucket is `floor(n u)` with a 32-bit u in f64: in f32 the frequencies of some pixels of a large
    /// image would be wrong by a fraction of up to n / 2^24.
    pub fn draw(&self, rows: usize, key: &Key) -> Batch {
        match self {
            Tables::Image(image) => image.draw(rows, key),
            Tables::Points(table) => {
                let n = table.rows.shape()[0];
                let of = |which: &Tensor| {
                    (table.rows.take(which), table.labels.as_ref().map(|labels| labels.take(which)))
                };
                let Some(steps) = &table.steps else {
                    let (points, labels) = of(&below(n, rows, key));
                    return Batch::plain(points, labels);
                };
                let [which, noise] = key.split();
                let (points, labels) = of(&below(n, rows, &which));
                Batch::plain(points + noise_of(steps, rows, &noise), labels)
            }
            Tables::Rows(given) => Batch::plain(given.rows.clone(), given.labels.clone()),
        }
    }
}

/// Noise of one step per column for some rows, given [`PointsTable::steps`].
pub(super) fn noise_of(steps: &Tensor, rows: usize, key: &Key) -> Tensor {
    let d = steps.shape()[steps.shape().len() - 1];
    let noise = key.uniform([rows, d]) - 0.5;
    if steps.shape().len() == 1 { noise * steps.expand_dims(0) } else { noise.matmul(steps) }
}

impl Batch {
    /// Rows of equal weight.
    fn plain(points: Tensor, labels: Option<Tensor>) -> Batch {
        let weight = Tensor::full(DType::F32, [points.shape()[0]], 1.0);
        Batch { points, weight, labels }
    }
}

/// Uniform integers below n, `[rows]`.
fn below(n: usize, rows: usize, key: &Key) -> Tensor {
    let scale = n as f64 * 2.0f64.powi(-32);
    (key.bits([rows]).cast(DType::F64) * scale).floor().cast(DType::I32)
}

impl ImageTables {
    fn draw(&self, rows: usize, key: &Key) -> Batch {
        let [buckets, keep, jitter] = key.split();
        let bucket = below(self.alias_prob.size(), rows, &buckets);
        let kept = keep.uniform([rows]).lt(self.alias_prob.take(&bucket));
        let which = kept.select(&bucket, &self.alias_index.take(&bucket));
        let step = jitter.normal([rows, 2]) * self.jitter_sd.expand_dims(0);
        let weight = match &self.weight {
            Some(weight) => weight.take(&which),
            None => Tensor::full(DType::F32, [rows], 1.0),
        };
        Batch { points: self.centers(&self.pixels.take(&which)) + step, weight, labels: None }
    }

    /// The centers of pixels `[rows]`, `[rows, 2]`.
    fn centers(&self, pixels: &Tensor) -> Tensor {
        let (width, pixels) = (self.columns.size() as f64, pixels.cast(DType::F64));
        let row = (&pixels / width).floor();
        let column = pixels - &row * width;
        let at = |centers: &Tensor, i: &Tensor| centers.take(&i.cast(DType::I32)).expand_dims(1);
        Tensor::concat(&[&at(&self.columns, &column), &at(&self.rows, &row)], 1)
    }
}
