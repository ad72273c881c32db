//! What training carries from update to update, and the tables it draws from.
//!
//! Everything that changes is a tensor of [`TrainState`], the update's number and the key included, so a checkpoint
//! is this tree and nothing else: an update is a function of the state and of constants, and what follows a resume is
//! what would have followed without it.

use super::feed::Wanted;
use super::{Feed, Flow, PixelTables};
use crate::array::DType;
use crate::data::{ImageDensity, Points};
use crate::error::Result;
use crate::optim::OptState;
use crate::tensor::{Key, Tensor};
use crate::tree;
use std::ops::Range;
use std::sync::Arc;

tree! {
/// The state of a run.
pub struct TrainState {
    /// The model that gradients move.
    pub model: Flow,
    /// The moving average of its weights: what is measured, drawn and sampled.
    pub ema: Flow,
    /// The optimizer's moments and counts.
    pub optimizer: OptState,
    /// The key of every draw of the run.
    pub key: Key,
    /// Updates done, u32.
    pub update: Tensor,
}
}

tree! {
/// What a checkpoint holds: the state, and the tables without which a flow of images has no images.
pub struct Stored {
    model: Flow,
    ema: Flow,
    /// By this name checkpoints hold it.
    optimiser: OptState,
    key: Key,
    update: Tensor,
    pixels: Option<PixelTables>,
}
}

impl Stored {
    /// Of a state; what it holds is shared, not copied.
    pub fn of(state: &TrainState, pixels: Option<PixelTables>) -> Stored {
        let TrainState { model, ema, optimizer, key, update } = state.clone();
        Stored { model, ema, optimiser: optimizer, key, update, pixels }
    }

    /// The tables of images, where there are some.
    pub fn pixels(&self) -> Option<&PixelTables> {
        self.pixels.as_ref()
    }

    /// The state.
    pub fn state(self) -> TrainState {
        let Stored { model, ema, optimiser: optimizer, key, update, .. } = self;
        TrainState { model, ema, optimizer, key, update }
    }
}

/// Where the batches of a run come from.
#[derive(Clone)]
pub enum Source {
    /// Tables on the device, which an update draws from itself.
    Tables(Tables),
    /// Images, which are read for each update.
    Feed(Arc<Feed>),
}

impl Source {
    /// What the step of a phase is traced with: the tables, or rows of a batch.
    pub fn tables(&self, batch: usize) -> Tables {
        match self {
            Source::Tables(tables) => tables.clone(),
            Source::Feed(feed) => {
                let zeros = |columns| Tensor::full(DType::F32, [batch, columns], 0.0);
                let labels = feed.has_labels().then(|| zeros(1));
                Tables::Rows(Rows { rows: zeros(feed.dim()), labels })
            }
        }
    }

    /// What the shards `which` of update `update`, counted from 0, read: of `shards` that its batch is cut into.
    ///
    /// # Errors
    /// A file that has gone or shrunk.
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
            Tables::Rows(Rows { rows, labels })
        };
        let wanted = Wanted { update: update(), batch, shards, which };
        Ok(feed.batch(&wanted)?.into_iter().map(rows).collect())
    }
}

tree! {
/// The data on the device.
pub enum Tables {
    /// An image.
    Image(ImageTables),
    /// Points.
    Points(PointsTable),
    /// The very rows of an update.
    Rows(Rows),
}
}

tree! {
/// Rows that were made ready for an update.
pub struct Rows {
    /// Points `[batch, d]`.
    pub rows: Tensor,
    /// The class of each `[batch, 1]`, where they have one.
    pub labels: Option<Tensor>,
}
}

tree! {
/// Points on the device.
pub struct PointsTable {
    /// Standardised coordinates, [n, d].
    pub rows: Tensor,
}
}

tree! {
/// An [`ImageDensity`] on the device.
pub struct ImageTables {
    /// Centres of the pixels, [n, 2], standardised.
    pub positions: Tensor,
    /// Probability to keep a bucket, `[n]`.
    pub alias_prob: Tensor,
    /// Where a bucket that is not kept sends a draw, `[n]`.
    pub alias_index: Tensor,
    /// Weight of a pixel's points in the loss, `[n]`.
    pub weight: Tensor,
    /// Deviation of the jitter, `[2]`, standardised.
    pub jitter_sd: Tensor,
}
}

tree! {
/// Points to learn from.
pub struct Batch {
    /// Standardised coordinates, [rows, d].
    pub points: Tensor,
    /// Weights in the loss, `[rows]`.
    pub weight: Tensor,
    /// The class of each, `[rows, 1]`, where they have one.
    pub labels: Option<Tensor>,
}
}

impl Tables {
    /// The tables of an image.
    pub fn new(data: &ImageDensity) -> Tables {
        let n = data.positions.len();
        let flat: Vec<f32> = data.positions.iter().flatten().copied().collect();
        Tables::Image(ImageTables {
            positions: Tensor::from_vec([n, 2], flat),
            alias_prob: data.alias_prob.clone().into(),
            alias_index: data.alias_index.clone().into(),
            weight: data.weight.clone().into(),
            jitter_sd: data.jitter_std.map(|s| s as f32).into(),
        })
    }

    /// The table of points.
    pub fn of_points(points: &Points) -> Tables {
        let rows = Tensor::from_vec([points.len(), points.dim()], points.standardized());
        Tables::Points(PointsTable { rows })
    }

    /// `rows` independent points: a pixel by the alias method, then a normal step from its centre; or rows of a table, each
    /// as likely as another.
    ///
    /// # Numerics
    /// The bucket is `floor(n u)` with u of 32 bits in f64: in f32 some pixels of a large image would be drawn up to
    /// n / 2^24 too often, and some never.
    pub fn draw(&self, rows: usize, key: &Key) -> Batch {
        match self {
            Tables::Image(image) => image.draw(rows, key),
            Tables::Points(table) => {
                let which = below(table.rows.shape()[0], rows, key);
                Batch::plain(table.rows.take(&which), None)
            }
            Tables::Rows(given) => Batch::plain(given.rows.clone(), given.labels.clone()),
        }
    }
}

impl Batch {
    /// Rows that count the same.
    fn plain(points: Tensor, labels: Option<Tensor>) -> Batch {
        let weight = Tensor::full(DType::F32, [points.shape()[0]], 1.0);
        Batch { points, weight, labels }
    }
}

/// Whole numbers below n, `[rows]`.
fn below(n: usize, rows: usize, key: &Key) -> Tensor {
    let scale = n as f64 * 2.0f64.powi(-32);
    (key.bits([rows]).cast(DType::F64) * scale).floor().cast(DType::I32)
}

impl ImageTables {
    fn draw(&self, rows: usize, key: &Key) -> Batch {
        let [buckets, keep, jitter] = key.split();
        let bucket = below(self.alias_prob.size(), rows, &buckets);
        let kept = keep.uniform([rows]).lt(self.alias_prob.take(&bucket));
        let pixel = kept.select(&bucket, &self.alias_index.take(&bucket));
        let step = jitter.normal([rows, 2]) * self.jitter_sd.expand_dims(0);
        let points = self.positions.take(&pixel) + step;
        Batch { points, weight: self.weight.take(&pixel), labels: None }
    }
}
