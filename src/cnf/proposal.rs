//! A mixture of normal densities from which missing coordinates are proposed.
//!
//! It is fitted to weighted points: a kernel density whose kernels have the covariance of the points, scaled down, and
//! whose centers are drawn towards the mean so that the mixture has that covariance, too (West 1993, Approximating
//! posterior distributions by mixtures). One component in ten of the proposals is wide, so that no weight is large
//! where the kernels miss the target. The file knows numbers only, no flows.

use crate::tensor::Key;
use crate::triangular::{RIDGE, below, cholesky, log_det, times};
use rayon::prelude::*;
use std::f64::consts::TAU;

/// The largest number of kernels.
const KERNELS: usize = 512;
/// Share of the wide component.
const WIDE: f64 = 0.1;
/// Its standard deviation, in units of that of the points.
const WIDTH: f64 = 3.0;

/// A mixture in d dimensions.
pub(super) struct Proposal {
    dim: usize,
    mean: Vec<f64>,
    /// The covariance of the points is `L L^T`; row-major.
    root: Vec<f64>,
    /// Centers of the kernels as `L^-1 (center - mean)`, row-major.
    centers: Vec<f64>,
    /// Standard deviation of the kernels, in these coordinates.
    width: f64,
}

impl Proposal {
    /// Fits a mixture to points `[n, dim]`, row-major, with weights that have the sum 1.
    pub fn fit(points: &[f64], weights: &[f64], dim: usize, key: &Key) -> Proposal {
        let mean = mean_of(points, weights, dim);
        let root = cholesky(covariance_of(points, weights, &mean), dim);
        let effective = effective_size(weights);
        let silverman = 4.0 / ((dim as f64 + 2.0) * effective.min(KERNELS as f64));
        let width = silverman.powf(1.0 / (dim as f64 + 4.0)).min(1.0);
        let shrunk = (1.0 - width * width).sqrt();
        let chosen = resample(weights, KERNELS.min(weights.len()), key.uniform([1]).item());
        let center = |i: usize| {
            let from_mean: Vec<f64> = (0..dim).map(|a| points[i * dim + a] - mean[a]).collect();
            below(&root, from_mean, dim).into_iter().map(|x| shrunk * x)
        };
        let centers = chosen.into_iter().flat_map(center).collect();
        Proposal { dim, mean, root, centers, width }
    }

    /// n points, row-major.
    pub fn draw(&self, n: usize, key: &Key) -> Vec<f64> {
        let ([which, noise], d) = (key.split(), self.dim);
        let (which, noise) = (which.uniform([n]).to_vec(), noise.normal([n, d]).to_vec());
        let count = self.centers.len() / d;
        let point = |(u, noise): (&f64, &[f64])| {
            // u in [0, WIDE) means the wide component, the rest is divided among the kernels.
            let k = (u - WIDE) / (1.0 - WIDE) * count as f64;
            let at = |a: usize| match k < 0.0 {
                true => WIDTH * noise[a],
                false => self.centers[(k as usize).min(count - 1) * d + a] + self.width * noise[a],
            };
            let here = times(&self.root, (0..d).map(at).collect(), d);
            self.mean.iter().zip(here).map(|(mean, x)| mean + x)
        };
        which.iter().zip(noise.chunks_exact(d)).flat_map(point).collect()
    }

    /// The log-density of each point, in nats.
    pub fn log_prob(&self, points: &[f64]) -> Vec<f64> {
        let d = self.dim;
        let scale = -0.5 * d as f64 * TAU.ln() - log_det(&self.root, d);
        let count = (self.centers.len() / d) as f64;
        let of_kernels = ((1.0 - WIDE) / count).ln() - d as f64 * self.width.ln();
        let of_wide = WIDE.ln() - d as f64 * WIDTH.ln();
        let one = |point: &[f64]| {
            let from_mean = point.iter().zip(&self.mean).map(|(x, m)| x - m).collect();
            let here = below(&self.root, from_mean, d);
            let wide = of_wide - 0.5 * here.iter().map(|x| x * x).sum::<f64>() / (WIDTH * WIDTH);
            let kernel = |center: &[f64]| {
                let square: f64 = here.iter().zip(center).map(|(x, c)| (x - c) * (x - c)).sum();
                of_kernels - 0.5 * square / (self.width * self.width)
            };
            let terms: Vec<f64> =
                self.centers.chunks_exact(d).map(kernel).chain(std::iter::once(wide)).collect();
            scale + log_sum(&terms)
        };
        points.par_chunks_exact(d).map(one).collect()
    }
}

/// `ln sum exp`.
pub(super) fn log_sum(terms: &[f64]) -> f64 {
    let most = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if most == f64::NEG_INFINITY {
        return most;
    }
    most + terms.iter().map(|x| (x - most).exp()).sum::<f64>().ln()
}

/// `(sum w)^2 / sum w^2`.
pub(super) fn effective_size(weights: &[f64]) -> f64 {
    weights.iter().sum::<f64>().powi(2) / weights.iter().map(|w| w * w).sum::<f64>()
}

/// n indices, each as often as its share of the weights, rounded up or down: systematic resampling from the offset u in
/// [0, 1) (Kitagawa 1996, Monte Carlo filter and smoother, appendix).
pub(super) fn resample(weights: &[f64], n: usize, u: f64) -> Vec<usize> {
    let unit = weights.iter().sum::<f64>() / n as f64;
    let (mut chosen, mut sum, mut i) = (Vec::with_capacity(n), weights[0], 0);
    for k in 0..n {
        while sum <= (k as f64 + u) * unit && i + 1 < weights.len() {
            i += 1;
            sum += weights[i];
        }
        chosen.push(i);
    }
    chosen
}

/// The weighted mean of points, row-major.
pub(super) fn mean_of(points: &[f64], weights: &[f64], dim: usize) -> Vec<f64> {
    let of = |a: usize| points.iter().skip(a).step_by(dim).zip(weights).map(|(x, w)| x * w).sum();
    (0..dim).map(of).collect()
}

/// The weighted covariance of points, row-major, with a small ridge.
pub(super) fn covariance_of(points: &[f64], weights: &[f64], mean: &[f64]) -> Vec<f64> {
    let dim = mean.len();
    let mut found = vec![0.0; dim * dim];
    for (point, w) in points.chunks_exact(dim).zip(weights) {
        for a in 0..dim {
            (0..=a).for_each(|b| found[a * dim + b] += w * (point[a] - mean[a]) * (point[b] - mean[b]));
        }
    }
    for a in 0..dim {
        (0..a).for_each(|b| found[b * dim + a] = found[a * dim + b]);
        found[a * dim + a] += RIDGE * (found[a * dim + a] + mean[a] * mean[a]) + f64::MIN_POSITIVE;
    }
    found
}
