//! Draws from an image: the tables for training points, and held-out points.

use super::{ImageDensity, SamplingRule};
use crate::data::alias::AliasTable;
use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

/// Above this number of pixels, held-out points are drawn without a table.
const TABLE: usize = 1 << 19;
/// Pixels per block of a draw without a table.
pub(super) const BLOCK: usize = 1024;

/// Pixels to draw from: the table of the pixels in use, or for a large image the blocks.
pub(super) enum Pixels {
    Table(AliasTable, Vec<u32>),
    Blocks,
}

/// The tables for drawing training points.
///
/// # Shapes and units
/// n pixels are in use. To draw a point, take a uniform bucket b of 0..n and `u` uniform in [0, 1) from separate random
/// numbers (the 24 random bits of one f32 are too few for both), `i = if u < prob[b] { b } else { index[b] }`, then
/// `x = (xs[column], ys[row]) + jitter_std * normal` for the column and the row of `pixels[i]`, with weight `weight[i]` in
/// the loss.
pub(crate) struct PixelTable {
    /// Row-major indices of the pixels in use `[n]`.
    pub pixels: Vec<i32>,
    /// Probability that a bucket's own pixel is drawn `[n]`.
    pub prob: Vec<f32>,
    /// The pixel that is drawn otherwise `[n]`, an index into `pixels`.
    pub index: Vec<i32>,
    /// Weight of a point in the loss `[n]`: its darkness with [`SamplingRule::Uniform`]; `None` if all weights are 1.
    pub weight: Option<Vec<f32>>,
    /// Standardized centers of the columns.
    pub xs: Vec<f32>,
    /// Standardized centers of the rows.
    pub ys: Vec<f32>,
}

impl ImageDensity {
    /// The tables for drawing training points, of 12 bytes per pixel in use, or 16 if points have weights.
    pub(crate) fn pixel_table(&self) -> PixelTable {
        let all = || self.in_use(0..self.gray.count());
        let pixels: Vec<i32> = all().map(|(pixel, _)| pixel as i32).collect();
        let AliasTable { prob, index } =
            AliasTable::new(pixels.len(), |i| self.rule.drawn(self.dark(pixels[i] as usize)));
        let weight = match self.rule {
            SamplingRule::Default => None,
            SamplingRule::Uniform { .. } => Some(all().map(|(_, dark)| dark as f32).collect()),
        };
        let xs = (0..self.width).map(|column| self.position(column)[0]).collect();
        let ys = (0..self.height).map(|row| self.position(row * self.width)[1]).collect();
        PixelTable { pixels, prob, index, weight, xs, ys }
    }

    /// n independent points from the density, in standardized coordinates.
    ///
    /// Meant for held-out points: give a generator that training does not use, so that the points are
    /// independent of the training points.
    pub fn sample<R: Rng + ?Sized>(&self, n: usize, rng: &mut R) -> Vec<[f32; 2]> {
        let pixels = self.pixels();
        (0..n)
            .map(|_| {
                let position = self.position(self.draw(&pixels, rng));
                std::array::from_fn(|a| {
                    let z: f64 = rng.sample(StandardNormal);
                    (f64::from(position[a]) + self.jitter_std[a] * z) as f32
                })
            })
            .collect()
    }

    /// What [`draw`](Self::draw) needs.
    pub(super) fn pixels(&self) -> Pixels {
        if self.gray.count() > TABLE {
            return Pixels::Blocks;
        }
        let pixels: Vec<u32> = self.in_use(0..self.gray.count()).map(|(pixel, _)| pixel as u32).collect();
        let probability = |i: usize| self.dark(pixels[i] as usize) / self.darkness;
        Pixels::Table(AliasTable::new(pixels.len(), probability), pixels)
    }

    /// Draws a pixel with its probability. Without a table, a uniform number chooses a block and then the pixel in it.
    pub(super) fn draw<R: Rng + ?Sized>(&self, pixels: &Pixels, rng: &mut R) -> usize {
        if let Pixels::Table(table, pixels) = pixels {
            return pixels[table.draw(rng)] as usize;
        }
        let below = self.darkness * rng.random::<f64>();
        let block = self.up_to.partition_point(|&sum| sum <= below).min(self.up_to.len() - 1);
        let mut rest = below - block.checked_sub(1).map_or(0.0, |before| self.up_to[before]);
        let first = block * BLOCK;
        let mut last = first;
        for (pixel, dark) in self.in_use(first..(first + BLOCK).min(self.gray.count())) {
            if dark > 0.0 {
                last = pixel;
            }
            rest -= dark;
            if rest < 0.0 {
                break;
            }
        }
        last
    }

    /// The darkness of a pixel in use.
    fn dark(&self, pixel: usize) -> f64 {
        self.gray.darkness(pixel..pixel + 1, f64::INFINITY).sum()
    }
}
