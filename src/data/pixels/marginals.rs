//! Maps each pixel through its own distribution to a normal variable.
//!
//! The identity flow is then the model of independent pixels (1.690 bits/dim on MNIST), and a flow only has to
//! learn dependencies between pixels. The transform uses a histogram per pixel; it does not model pairs of
//! pixels.

use super::{BLOCK, LEVELS};
use crate::data::{DataError, ImageSet, normal};

/// [`MarginalTransform::ends`] raises smaller tail probabilities to this one, so that |z| is at most 5.2.
const RAREST: f64 = 1e-7;
/// Added to the count of every level, so that a level unseen in training has some probability.
pub const SMOOTHING: f64 = 0.02;

/// Each pixel through its own marginal: `z = Phi^-1(F_i(x))`, where F_i is piecewise linear over the 256
/// levels with slopes from the training histogram (counts + [`SMOOTHING`]).
///
/// `ln dz/dx = ln(256 p) - ln phi(z)`, where p is the level's probability. If z is standard normal, the
/// density of x is exactly the product of the pixels' histograms.
///
/// # Numerics
/// Probabilities below and above each level are both stored, so z is accurate in both tails.
#[derive(Clone, Debug, PartialEq)]
pub struct MarginalTransform {
    /// Count of each level `[dim, 256]`, stored in run folders; the other fields are computed from the
    /// counts.
    counts: Vec<u32>,
    /// Probability of each level `[dim, 256]`.
    p: Vec<f64>,
    /// Probability of all levels below each level.
    below: Vec<f64>,
    /// Probability of all levels above each level.
    above: Vec<f64>,
}

impl MarginalTransform {
    /// Fits the marginals of the images with the given numbers, which are read in blocks.
    ///
    /// # Errors
    /// As [`ImageSet::rows`].
    pub fn fit(images: &ImageSet, rows: &[usize]) -> Result<Self, DataError> {
        let mut counts = vec![0; images.dim() * LEVELS];
        for part in rows.chunks(BLOCK) {
            for image in images.rows(part)?.chunks_exact(images.dim()) {
                image.iter().enumerate().for_each(|(i, &level)| counts[i * LEVELS + usize::from(level)] += 1);
            }
        }
        Ok(Self::from_counts(&counts, SMOOTHING))
    }

    /// Fits the marginals to the level counts of each pixel, `[dim, 256]`, with `smoothing` added to every
    /// count.
    ///
    /// # Panics
    /// When there are not 256 counts per pixel, or a pixel has no counts and no smoothing.
    #[track_caller]
    pub fn from_counts(counts: &[u32], smoothing: f64) -> Self {
        assert!(
            counts.len().is_multiple_of(LEVELS),
            "{} counts are not a multiple of 256, the number of levels of a pixel",
            counts.len()
        );
        let mut table = Self { counts: counts.to_vec(), p: Vec::new(), below: Vec::new(), above: Vec::new() };
        for (i, pixel) in counts.chunks_exact(LEVELS).enumerate() {
            let total: f64 = pixel.iter().map(|&c| f64::from(c) + smoothing).sum();
            assert!(total > 0.0, "pixel {i} has no counts and there is no smoothing");
            let p: Vec<f64> = pixel.iter().map(|&c| (f64::from(c) + smoothing) / total).collect();
            table.below.extend(sums(p.iter()));
            table.above.extend(sums(p.iter().rev()).into_iter().rev());
            table.p.extend(p);
        }
        table
    }

    /// Count of each level per pixel, `[dim, 256]`.
    pub fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// Divides the 256 levels into `count + 1` ranges and returns the first level of each range except the
    /// lowest one, ascending. Counted over all pixels of the images, the ranges are equally frequent, as far
    /// as whole levels allow. A level that is more frequent than a range should be forms a range alone.
    pub fn level_ends(&self, count: usize) -> Vec<u8> {
        let mut levels = [0u64; LEVELS];
        for of_pixel in self.counts.chunks_exact(LEVELS) {
            levels.iter_mut().zip(of_pixel).for_each(|(sum, &n)| *sum += u64::from(n));
        }
        let (mut left, mut within, mut ends) = (levels.iter().sum::<u64>(), 0, Vec::new());
        for (level, n) in levels.into_iter().enumerate() {
            let wanted = |left: u64, ends: &[u8]| left.div_ceil((count + 1 - ends.len()) as u64).max(1);
            if level > 0 && within > 0 && ends.len() < count && within + n > wanted(left, &ends) {
                ends.push(level as u8);
                (left, within) = (left - within, 0);
            }
            within += n;
        }
        // Images with few levels: the widest range is halved until there are enough ranges.
        while ends.len() < count.min(LEVELS - 1) {
            let all: Vec<usize> =
                [0].into_iter().chain(ends.iter().map(|&end| usize::from(end))).chain([LEVELS]).collect();
            let widest = (1..all.len()).rev().max_by_key(|&i| all[i] - all[i - 1]).unwrap_or(1);
            ends.insert(widest - 1, usize::midpoint(all[widest], all[widest - 1]) as u8);
        }
        ends
    }

    /// z at the lower end of each given level, for each pixel: `[levels, dim]`, with |z| at most 5.2.
    pub fn ends(&self, levels: &[u8]) -> Vec<f32> {
        let end = |level: u8, pixel: usize| {
            let at = pixel * LEVELS + usize::from(level);
            // The probability above a level's lower end includes the level itself.
            let (below, above) = (self.below[at], self.above[at] + self.p[at]);
            let z = if below <= above {
                normal::lower_quantile(below.clamp(RAREST, 0.5))
            } else {
                -normal::lower_quantile(above.clamp(RAREST, 0.5))
            };
            z as f32
        };
        levels.iter().flat_map(|&level| (0..self.dim()).map(move |pixel| end(level, pixel))).collect()
    }

    /// Number of coordinates of an image.
    pub fn dim(&self) -> usize {
        self.p.len() / LEVELS
    }

    /// z, and the probability of x's level.
    pub(super) fn to_normal(&self, pixel: usize, x: f64) -> (f64, f64) {
        let place = x * LEVELS as f64;
        let level = (place as usize).min(LEVELS - 1);
        let (at, u) = (pixel * LEVELS + level, place - level as f64);
        let p = self.p[at];
        let (lower, upper) = (self.below[at] + p * u, self.above[at] + p * (1.0 - u));
        let z = if lower <= upper {
            normal::lower_quantile(lower.min(0.5))
        } else {
            -normal::lower_quantile(upper.min(0.5))
        };
        (z, p)
    }

    pub(super) fn forward(&self, pixel: usize, x: f64) -> (f64, f64) {
        let (z, p) = self.to_normal(pixel, x);
        (z, (LEVELS as f64 * p).ln() - normal::ln_density(z))
    }

    pub(super) fn inverse(&self, pixel: usize, z: f64) -> f64 {
        let row = pixel * LEVELS..(pixel + 1) * LEVELS;
        let (p, below, above) = (&self.p[row.clone()], &self.below[row.clone()], &self.above[row]);
        let tail = normal::cdf(-z.abs());
        let (level, u) = if z <= 0.0 {
            let level = below.partition_point(|&b| b <= tail).saturating_sub(1);
            (level, (tail - below[level]) / p[level])
        } else {
            let level = above.partition_point(|&a| a > tail).min(LEVELS - 1);
            (level, 1.0 - (tail - above[level]) / p[level])
        };
        // Without smoothing a level may have probability 0; then x is at the edge of the level.
        let u = if u.is_finite() { u.clamp(0.0, 1.0) } else { 0.0 };
        (level as f64 + u) / LEVELS as f64
    }
}

/// Exclusive prefix sums.
fn sums<'a>(p: impl Iterator<Item = &'a f64>) -> Vec<f64> {
    p.scan(0.0, |sum, p| Some(std::mem::replace(sum, *sum + p))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pixels with the given (level, count) histogram.
    fn of(levels: &[(usize, u32)]) -> MarginalTransform {
        let mut counts = vec![0; 2 * LEVELS];
        for &(level, n) in levels {
            counts[level] += n / 2;
            counts[LEVELS + level] += n - n / 2;
        }
        MarginalTransform::from_counts(&counts, 0.5)
    }

    #[test]
    fn ranges_of_levels_are_as_likely_as_each_other_and_frequent_levels_stand_alone() {
        let even: Vec<(usize, u32)> = (0..LEVELS).map(|level| (level, 10)).collect();
        assert_eq!(of(&even).level_ends(3), [64, 128, 192]);
        // Ink: mostly black, some of every level, much white.
        let ink: Vec<(usize, u32)> = even
            .iter()
            .map(|&(l, _)| {
                (
                    l,
                    match l {
                        0 => 50_000,
                        253 => 2_000,
                        _ => 8,
                    },
                )
            })
            .collect();
        let ends = of(&ink).level_ends(8);
        assert!(ends[0] == 1 && ends.contains(&253) && ends.contains(&254), "{ends:?}");
        assert!(ends.windows(2).all(|pair| pair[0] < pair[1]) && ends.len() == 8, "{ends:?}");
        // Images with few levels: black forms a range alone, the other levels are divided evenly.
        assert_eq!(of(&[(0, 7), (255, 9)]).level_ends(3), [1, 128, 192]);
        for levels in [&[(3, 5)][..], &[]] {
            let ends = of(levels).level_ends(8);
            assert!(
                ends.windows(2).all(|pair| pair[0] < pair[1]) && ends.len() == 8 && ends[0] > 0,
                "{ends:?}"
            );
        }
    }
}
