//! What training carries from update to update, and the tables it draws from.
//!
//! Everything that changes is a tensor of [`TrainState`], the update's number and the key included, so a checkpoint
//! is this tree and nothing else: an update is a function of the state and of constants, and what follows a resume is
//! what would have followed without it.

use super::model::Flow;
use crate::array::DType;
use crate::data::{ImageDensity, Points};
use crate::optim::OptState;
use crate::tensor::{Key, Tensor};
use crate::tree;

tree! {
/// The state of a run.
pub struct TrainState {
    /// The model that gradients move.
    pub model: Flow,
    /// The moving average of its weights: what is measured, drawn and sampled.
    pub ema: Flow,
    /// The optimiser's moments and counts.
    pub optimiser: OptState,
    /// The key of every draw of the run.
    pub key: Key,
    /// Updates done, u32.
    pub update: Tensor,
}
}

tree! {
/// The data on the device.
pub enum Tables {
    /// An image.
    Image(ImageTables),
    /// Points.
    Points(PointsTable),
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
            jitter_sd: data.jitter_sd.map(|s| s as f32).into(),
        })
    }

    /// The table of points.
    pub fn of_points(points: &Points) -> Tables {
        let rows = Tensor::from_vec([points.len(), points.dim()], points.standardised());
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
                Batch { points: table.rows.take(&which), weight: Tensor::full(DType::F32, [rows], 1.0) }
            }
        }
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
        let step = jitter.normal([rows, 2]) * self.jitter_sd.expand(0);
        Batch { points: self.positions.take(&pixel) + step, weight: self.weight.take(&pixel) }
    }
}
