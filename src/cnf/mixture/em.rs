//! Expectation maximization of a mixture of normals, on several rows at a time.
//!
//! Rows are stored in blocks of eight, so that the compiler uses vector instructions for the loops over a block. The
//! expectation runs over blocks in parallel, the maximization over components; each sum has a fixed order.
//!
//! Reference: Dempster, Laird and Rubin (1977), Maximum likelihood from incomplete data via the EM algorithm.

use super::{FLOOR, NormalMixture};
use crate::triangular::cholesky;
use rayon::prelude::*;
use std::array::from_fn;
use std::f64::consts::TAU;

/// Rows of a block.
const LANES: usize = 8;
/// Blocks of a task.
const TASK: usize = 64;
/// A component has at least this many rows, so that its weight has a logarithm.
const LEAST: f64 = 1e-10;

/// A number per row of a block.
type Lanes = [f64; LANES];

/// Points in blocks.
pub(super) struct Rows {
    dim: usize,
    count: usize,
    /// `[blocks, dim]`; the rows after the last point are 0.
    blocks: Vec<Lanes>,
}

impl Rows {
    /// Blocks of points `[n, dim]`, row-major.
    #[track_caller]
    pub fn new(points: &[f64], dim: usize) -> Rows {
        assert!(
            dim > 0 && !points.is_empty() && points.len().is_multiple_of(dim),
            "a mixture needs points of {dim} coordinates, got {} numbers",
            points.len()
        );
        let odd = points.iter().position(|x| !x.is_finite());
        assert!(odd.is_none(), "point {} is not finite", odd.unwrap_or(0) / dim);
        let count = points.len() / dim;
        let at = |row: usize, a: usize| if row < count { points[row * dim + a] } else { 0.0 };
        let block = |b: usize| (0..dim).map(move |a| from_fn(|lane| at(b * LANES + lane, a)));
        Rows { dim, count, blocks: (0..count.div_ceil(LANES)).flat_map(block).collect() }
    }

    /// Number of points.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The squared distance of each point from a center.
    pub fn squares(&self, center: &[f64]) -> Vec<f64> {
        let square = |block: &[Lanes]| -> Lanes {
            let of = |lane: usize| block.iter().zip(center).map(|(x, c)| (x[lane] - c).powi(2)).sum();
            from_fn(of)
        };
        self.blocks.chunks_exact(self.dim).flat_map(square).take(self.count).collect()
    }

    /// A point.
    pub fn point(&self, row: usize) -> Vec<f64> {
        let block = &self.blocks[row / LANES * self.dim..][..self.dim];
        block.iter().map(|x| x[row % LANES]).collect()
    }

    /// Shares `[blocks, count]` of points that belong to one component each.
    pub fn one_hot(&self, labels: &[usize], count: usize) -> Vec<Lanes> {
        let mut shares = vec![[0.0; LANES]; self.count.div_ceil(LANES) * count];
        for (row, label) in labels.iter().enumerate() {
            shares[row / LANES * count + label][row % LANES] = 1.0;
        }
        shares
    }
}

/// The result of an expectation.
pub(super) struct Expected {
    /// The probability of each component given each point, `[blocks, K]`.
    pub shares: Vec<Lanes>,
    /// The log-density of each point.
    pub log_densities: Vec<f64>,
}

impl Expected {
    /// The mean log-density.
    pub fn mean_log(&self) -> f64 {
        self.log_densities.iter().sum::<f64>() / self.log_densities.len() as f64
    }
}

/// A component as the expectation needs it.
struct Component<'a> {
    mean: &'a [f64],
    /// The covariance is `L L^T`: L, row-major, and the inverses of its diagonal.
    root: Vec<f64>,
    inverse: Vec<f64>,
    /// The logarithm of its weight and of the factor of its density.
    log_factor: f64,
}

impl Component<'_> {
    fn all(mixture: &NormalMixture) -> Vec<Component<'_>> {
        let d = mixture.dim;
        let of = |((&log_weight, mean), covariance): ((&f64, _), &[f64])| {
            let root = cholesky(covariance.to_vec(), d);
            let inverse: Vec<f64> = (0..d).map(|a| 1.0 / root[a * d + a]).collect();
            let log_det: f64 = (0..d).map(|a| root[a * d + a].ln()).sum();
            Component { mean, root, inverse, log_factor: log_weight - log_det - 0.5 * d as f64 * TAU.ln() }
        };
        let means = mixture.log_weights.iter().zip(mixture.means.chunks_exact(d));
        means.zip(mixture.covariances.chunks_exact(d * d)).map(of).collect()
    }

    /// `log w_k N(x; m_k, C_k)` of a block of points; `z` is scratch.
    fn log_terms(&self, block: &[Lanes], z: &mut [Lanes]) -> Lanes {
        let (d, mut square) = (block.len(), [0.0; LANES]);
        for i in 0..d {
            let mut left: Lanes = from_fn(|lane| block[i][lane] - self.mean[i]);
            for (factor, z) in self.root[i * d..i * d + i].iter().zip(z.iter()) {
                (0..LANES).for_each(|lane| left[lane] -= factor * z[lane]);
            }
            for lane in 0..LANES {
                left[lane] *= self.inverse[i];
                square[lane] += left[lane] * left[lane];
            }
            z[i] = left;
        }
        square.map(|square| self.log_factor - 0.5 * square)
    }
}

/// The probability of each component given each point.
pub(super) fn expect(rows: &Rows, mixture: &NormalMixture) -> Expected {
    let (d, count, components) = (rows.dim, mixture.num_components(), Component::all(mixture));
    let task = |(task, blocks): (usize, &[Lanes])| {
        let (mut shares, mut logs) = (Vec::with_capacity(blocks.len() / d * count), Vec::new());
        let mut z = vec![[0.0; LANES]; d];
        for (i, block) in blocks.chunks_exact(d).enumerate() {
            let mut terms: Vec<Lanes> = components.iter().map(|c| c.log_terms(block, &mut z)).collect();
            let log: Lanes = from_fn(|lane| to_shares(&mut terms, lane));
            let left = rows.count - (task * TASK + i) * LANES;
            terms.iter_mut().flat_map(|term| term.iter_mut().skip(left)).for_each(|share| *share = 0.0);
            shares.extend(terms);
            logs.extend(log.into_iter().take(left));
        }
        (shares, logs)
    };
    let found: Vec<(Vec<Lanes>, Vec<f64>)> = rows.blocks.par_chunks(TASK * d).enumerate().map(task).collect();
    let (shares, logs): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    Expected { shares: shares.concat(), log_densities: logs.concat() }
}

/// Replaces the log terms of one lane by their shares of the sum; returns the logarithm of the sum.
fn to_shares(terms: &mut [Lanes], lane: usize) -> f64 {
    let most = terms.iter().map(|term| term[lane]).fold(f64::NEG_INFINITY, f64::max);
    // Infinitely far from all components, the shares are equal.
    terms
        .iter_mut()
        .for_each(|term| term[lane] = if most.is_finite() { (term[lane] - most).exp() } else { 1.0 });
    let sum: f64 = terms.iter().map(|term| term[lane]).sum();
    terms.iter_mut().for_each(|term| term[lane] /= sum);
    most + sum.ln()
}

/// The mixture that fits best if the components have these shares `[blocks, K]` of the points.
pub(super) fn maximize(rows: &Rows, shares: &[Lanes], count: usize) -> NormalMixture {
    let found: Vec<(f64, Vec<f64>, Vec<f64>)> =
        (0..count).into_par_iter().map(|k| moments(rows, shares, (k, count))).collect();
    let total: f64 = found.iter().map(|(size, ..)| size).sum();
    let (mut log_weights, mut means, mut covariances) = (vec![], vec![], vec![]);
    for (size, mean, covariance) in found {
        log_weights.push((size / total).ln());
        means.extend(mean);
        covariances.extend(covariance);
    }
    NormalMixture { dim: rows.dim, log_weights, means, covariances }
}

/// The number of rows of component k of `count`, their mean and their covariance.
fn moments(rows: &Rows, shares: &[Lanes], (k, count): (usize, usize)) -> (f64, Vec<f64>, Vec<f64>) {
    let d = rows.dim;
    let each = || rows.blocks.chunks_exact(d).zip(shares.iter().skip(k).step_by(count));
    let (mut size, mut sums) = ([0.0; LANES], vec![[0.0; LANES]; d]);
    for (block, share) in each() {
        (0..LANES).for_each(|lane| size[lane] += share[lane]);
        for (sum, x) in sums.iter_mut().zip(block) {
            (0..LANES).for_each(|lane| sum[lane] += share[lane] * x[lane]);
        }
    }
    let size = size.iter().sum::<f64>().max(LEAST);
    let mean: Vec<f64> = sums.iter().map(|sum| sum.iter().sum::<f64>() / size).collect();
    let (mut off, mut sums) = (vec![[0.0; LANES]; d], vec![[0.0; LANES]; d * d]);
    for (block, share) in each() {
        for ((off, x), mean) in off.iter_mut().zip(block).zip(&mean) {
            *off = from_fn(|lane| x[lane] - mean);
        }
        for a in 0..d {
            let weighted: Lanes = from_fn(|lane| share[lane] * off[a][lane]);
            for (sum, off) in sums[a * d..=a * d + a].iter_mut().zip(&off) {
                (0..LANES).for_each(|lane| sum[lane] += weighted[lane] * off[lane]);
            }
        }
    }
    let mut covariance: Vec<f64> = sums.iter().map(|sum| sum.iter().sum::<f64>() / size).collect();
    for a in 0..d {
        (0..a).for_each(|b| covariance[b * d + a] = covariance[a * d + b]);
        covariance[a * d + a] += FLOOR;
    }
    (size, mean, covariance)
}
