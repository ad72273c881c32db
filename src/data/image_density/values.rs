//! The exact values that follow from an image: entropy, best Gaussian, densities at points and on a grid.

use super::{ImageDensity, JITTER_PIXELS, center, moments};
use crate::data::Grid;
use crate::data::quadrature::{Blur, Masses, Taps, at_points};
use rayon::prelude::*;
use std::f64::consts::PI;
use std::ops::Range;

/// Width of the border around the image in quadratures, in standard deviations of the blur.
const QUADRATURE_MARGIN: f64 = 8.0;

impl Masses for ImageDensity {
    fn width(&self) -> usize {
        self.width
    }

    fn masses(&self, pixels: Range<usize>) -> impl Iterator<Item = f64> {
        self.gray.darkness(pixels, self.below).map(|dark| dark / self.darkness)
    }
}

impl ImageDensity {
    /// Entropy of the density in standardized coordinates, in nats: the minimal mean NLL of any model.
    ///
    /// `H = -integral p ln p`, by the midpoint rule on 8 x 8 cells per pixel (4 x 4 or 2 x 2 for images with
    /// more than 2^18 or 2^22 pixels), accurate to 1e-6 for a mixture of normals half a pixel wide.
    pub fn entropy_nats(&self) -> f64 {
        let cells = self.quadrature_cells();
        let blur = self.blur(JITTER_PIXELS, QUADRATURE_MARGIN * JITTER_PIXELS, cells);
        let row_sum = |row: &[f64]| row.iter().filter(|p| **p > 0.0).map(|p| p * p.ln()).sum::<f64>();
        let sum: f64 = blur.map_rows(row_sum).into_iter().sum();
        self.log_jacobian() - sum / (cells * cells) as f64
    }

    /// KL divergence of a model that blurs the density by a normal of `std` pixels, in nats:
    /// `KL(p || p * N(0, std^2))`, where `*` is a convolution.
    ///
    /// It measures the amount of fine structure: it is close to 0 for a smooth image.
    pub fn blur_cost_nats(&self, std: f64) -> f64 {
        let wide = JITTER_PIXELS.hypot(std);
        let (cells, margin) = (self.quadrature_cells(), QUADRATURE_MARGIN * wide);
        let (sharp, blurred) = (self.blur(JITTER_PIXELS, margin, cells), self.blur(wide, margin, cells));
        let row_sum = |p: &[f64], q: &[f64]| {
            let term = |(p, q): (&f64, &f64)| p * (p / q.max(f64::MIN_POSITIVE)).ln();
            p.iter().zip(q).filter(|(p, _)| **p > 0.0).map(term).sum::<f64>()
        };
        let of_block = |rows: Range<usize>| {
            let [p, q] = [&sharp, &blurred].map(|blur| blur.map_block(rows.clone(), <[f64]>::to_vec));
            p.iter().zip(&q).map(|(p, q)| row_sum(p, q)).sum::<f64>()
        };
        let sums: Vec<f64> = sharp.blocks().into_par_iter().map(of_block).collect();
        let sum: f64 = sums.iter().sum();
        sum / (cells * cells) as f64
    }

    /// Mean NLL of the best single Gaussian, in nats and standardized coordinates:
    /// `ln(2 pi e) + ln(det C) / 2`.
    ///
    /// C is the full covariance of the density, including jitter. A flow with a higher NLL has learned less
    /// than one Gaussian.
    pub fn gaussian_nats(&self) -> f64 {
        let points = || {
            let all = self.in_use(0..self.gray.count());
            all.map(|(pixel, dark)| (center(pixel, self.width), dark / self.darkness))
        };
        let (mean, std) = moments(points);
        let covariance: f64 = points().map(|(p, m)| m * (p[0] - mean[0]) * (p[1] - mean[1])).sum();
        let [xx, yy] = std.map(|s| s * s + JITTER_PIXELS * JITTER_PIXELS);
        (2.0 * PI).ln() + 1.0 + 0.5 * (xx * yy - covariance * covariance).ln() + self.log_jacobian()
    }

    /// The exact log-density at points, both in standardized coordinates. The sum covers all pixels within 8
    /// standard deviations; the result is -infinity at a point without such pixels.
    ///
    /// Its mean under the density is `-entropy_nats()`.
    pub fn log_probs(&self, points: &[[f32; 2]]) -> Vec<f64> {
        let taps = |a: usize, pixels: usize| {
            let centers = points.iter().map(move |x| self.mean[a] + self.std[a] * f64::from(x[a]));
            Taps::new(centers, pixels, JITTER_PIXELS)
        };
        let (xs, ys) = (taps(0, self.width), taps(1, self.height));
        let per_pixel = at_points(self, &xs, &ys);
        per_pixel.into_iter().map(|p| p.ln() - self.log_jacobian()).collect()
    }

    /// The exact density per square pixel at the centers of a grid, row-major, top row first.
    pub fn density_on(&self, grid: &Grid) -> Vec<f64> {
        let taps = |n: usize, center: &dyn Fn(usize) -> f64, pixels| {
            Taps::new((0..n).map(center), pixels, JITTER_PIXELS)
        };
        let xs = taps(grid.cols, &|i| grid.col_center(i), self.width);
        let ys = taps(grid.rows, &|i| grid.row_center(i), self.height);
        Blur::new(self, xs, ys).map_rows(<[f64]>::to_vec).concat()
    }

    fn quadrature_cells(&self) -> usize {
        match self.width * self.height {
            0..=0x4_0000 => 8,
            0x4_0001..=0x40_0000 => 4,
            _ => 2,
        }
    }

    /// The density with a jitter of `std` pixels on the image extended by `margin` pixels (rounded up), with
    /// `cells` cells per pixel along each axis.
    fn blur(&self, std: f64, margin: f64, cells: usize) -> Blur<'_, Self> {
        let margin = margin.ceil();
        let taps = |pixels: usize| {
            let n = (pixels + 2 * margin as usize) * cells;
            Taps::new((0..n).map(|i| (i as f64 + 0.5) / cells as f64 - margin), pixels, std)
        };
        Blur::new(self, taps(self.width), taps(self.height))
    }
}
