//! Densities that cover an image and what a flow may have learned of it, for importance sampling.
//!
//! The components are the image with a wider jitter, its histograms on cells of 4, 16, 64, ... pixels, each cell spread over
//! its neighbors, and a broad normal. A flow that resolves the image lies under the first, one that is too smooth under a
//! histogram whose cells are as wide as its details, also beyond the edge of the image, and one that reaches far beyond it
//! under the normal. Each has total probability 1 and is cheap to
//! evaluate.

use super::draws::Pixels;
use super::{ImageDensity, center};
use crate::data::quadrature::{Masses, Taps, at_points};
use rand::{Rng, RngExt};
use rand_distr::StandardNormal;
use std::f64::consts::PI;

/// Standard deviation of the wider jitter, in pixels. The ratio of the image's density to this one is at most 2.25.
const JITTER: f64 = 0.75;
/// Pixels along the side of the smallest cells of a histogram, and the ratio of the next larger side.
const SIDE: usize = 4;
/// Cells along the longer side of the image in the coarsest histogram, at least.
const LEAST: usize = 4;
/// Standard deviation of the normal, in standardized coordinates.
const BROAD: f64 = 1.5;

/// The components.
pub(crate) struct Cover<'a> {
    image: &'a ImageDensity,
    pixels: Pixels,
    histograms: Vec<Histogram>,
}

/// The probabilities of square cells, row-major from the upper left corner of the image.
struct Histogram {
    side: usize,
    cols: usize,
    mass: Vec<f64>,
}

impl Histogram {
    fn of(image: &ImageDensity, side: usize) -> Histogram {
        let (cols, rows) = (image.width.div_ceil(side), image.height.div_ceil(side));
        let mut mass = vec![0.0; cols * rows];
        for row in 0..image.height {
            let cells = &mut mass[row / side * cols..][..cols];
            let pixels = image.masses(row * image.width..(row + 1) * image.width);
            pixels.enumerate().for_each(|(column, pixel)| cells[column / side] += pixel);
        }
        Histogram { side, cols, mass }
    }

    /// The density per square pixel at a point in pixel coordinates: a cell is spread over itself and its eight neighbors.
    fn at(&self, p: [f64; 2]) -> f64 {
        let [col, row] = p.map(|p| (p / self.side as f64).floor() as i64);
        let size = [self.cols, self.mass.len() / self.cols];
        let near =
            |at: i64, n: usize| (at - 1).clamp(0, n as i64) as usize..(at + 2).clamp(0, n as i64) as usize;
        let (cols, rows) = (near(col, size[0]), near(row, size[1]));
        let mass: f64 = rows.map(|row| self.mass[row * self.cols..][cols.clone()].iter().sum::<f64>()).sum();
        mass / (9 * self.side * self.side) as f64
    }
}

impl Cover<'_> {
    /// Covers an image.
    pub(crate) fn of(image: &ImageDensity) -> Cover<'_> {
        let longer = image.width.max(image.height);
        let sides = std::iter::successors(Some(SIDE), |side| Some(side * SIDE));
        let sides = sides.take_while(|side| side * LEAST <= longer);
        Cover {
            image,
            pixels: image.pixels(),
            histograms: sides.map(|side| Histogram::of(image, side)).collect(),
        }
    }

    /// Number of components.
    pub(crate) fn count(&self) -> usize {
        self.histograms.len() + 2
    }

    /// Draws a point of a component, in standardized coordinates.
    pub(crate) fn draw<R: Rng + ?Sized>(&self, component: usize, rng: &mut R) -> [f32; 2] {
        let mut normal = |std: f64| std * rng.sample::<f64, _>(StandardNormal);
        if component == self.histograms.len() + 1 {
            return [0, 1].map(|_| normal(BROAD) as f32);
        }
        let Some(histogram) = component.checked_sub(1).map(|i| &self.histograms[i]) else {
            let step = [0, 1].map(|_| normal(JITTER));
            let center = center(self.image.draw(&self.pixels, rng), self.image.width);
            return self.image.to_standard([0, 1].map(|a| center[a] + step[a])).map(|x| x as f32);
        };
        let (pixel, side) = (self.image.draw(&self.pixels, rng), histogram.side);
        let cell = [pixel % self.image.width / side, pixel / self.image.width / side];
        let p = cell.map(|i| (i as f64 - 1.0 + 3.0 * rng.random::<f64>()) * side as f64);
        self.image.to_standard(p).map(|x| x as f32)
    }

    /// The density of each component at points, both in standardized coordinates: a row per point.
    pub(crate) fn densities(&self, points: &[[f32; 2]]) -> Vec<Vec<f64>> {
        let pixels: Vec<[f64; 2]> = points.iter().map(|x| self.image.to_pixels(x.map(f64::from))).collect();
        let taps = |a: usize, n: usize| Taps::new(pixels.iter().map(move |p| p[a]), n, JITTER);
        let sharp = at_points(self.image, &taps(0, self.image.width), &taps(1, self.image.height));
        let area = self.image.std[0] * self.image.std[1];
        let of_point = |((x, &p), sharp): ((&[f32; 2], &[f64; 2]), f64)| {
            let [x, y] = x.map(|x| f64::from(x) / BROAD);
            let normal = (-0.5 * (x * x + y * y)).exp() / (2.0 * PI * BROAD * BROAD);
            let histograms = self.histograms.iter().map(|histogram| histogram.at(p) * area);
            std::iter::once(sharp * area).chain(histograms).chain([normal]).collect()
        };
        points.iter().zip(&pixels).zip(sharp).map(of_point).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::tests::density;
    use rand::{SeedableRng, rngs::SmallRng};

    /// For images of 20 to 90 pixels per side, each component has total probability 1 on a grid, and its draws have the
    /// frequencies of its density in the quarters of the plane around the image's mean.
    #[test]
    fn draws_of_a_component_have_its_density() {
        let mut rng = SmallRng::seed_from_u64(5);
        let (mut counts, n) = (Vec::new(), 4_000);
        for number in 0..4 {
            let longer = if number % 2 == 0 { 20..60 } else { 64..90 };
            let size = [0, 1].map(|_| rng.random_range(longer.clone()));
            let pixels = (0..size[0] * size[1]).filter(|_| rng.random_range(0..5) == 0).collect::<Vec<_>>();
            let dark: Vec<_> =
                pixels.iter().map(|i| (i % size[0], i / size[0], rng.random_range(0.0..250.0))).collect();
            let image = density(size[0], size[1], &dark);
            let cover = Cover::of(&image);
            let grid = image.grid(150.0, 1);
            let values = cover.densities(&grid.centers);
            for component in 0..cover.count() {
                let mut masses = [0.0; 4];
                let quarter = |x: &[f32; 2]| usize::from(x[0] > 0.0) + 2 * usize::from(x[1] > 0.0);
                grid.centers.iter().zip(&values).for_each(|(x, v)| {
                    masses[quarter(x)] += v[component] * grid.cell_area;
                });
                // At one cell per pixel, the sum over a jitter of 0.75 pixels is exact to 1e-4.
                let total: f64 = masses.iter().sum();
                assert!((total - 1.0).abs() < 1e-3, "{size:?} {component}: {total}");
                let mut drawn = [0.0; 4];
                (0..n).for_each(|_| drawn[quarter(&cover.draw(component, &mut rng))] += 1.0 / f64::from(n));
                for (drawn, mass) in drawn.iter().zip(masses) {
                    assert!((drawn - mass).abs() < 0.06, "{size:?} {component}: {drawn} {mass}");
                }
            }
            counts.push(cover.count());
        }
        // From 64 pixels on there are two histograms.
        assert!(counts.contains(&3) && counts.contains(&4), "{counts:?}");
    }
}
