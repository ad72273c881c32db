//! An image's probabilities blurred by a normal, on the cells of a grid: one separable convolution, from
//! which entropy, cross-entropy and figures of the exact density are computed.
//!
//! Rows are computed in blocks of fixed size on all threads, each from the few rows of pixels around it. So a
//! quadrature with 64 cells per pixel needs little memory, and its result does not depend on the number of threads.
//! An FFT would cost about the same at nine taps and leave rounding noise where the density is zero.

use rayon::prelude::*;
use std::collections::VecDeque;
use std::ops::Range;

/// Rows of cells per block.
const BLOCK: usize = 64;
/// The normal density is set to zero beyond this many standard deviations, where it is exp(-32) = 1e-14 of
/// its peak.
const REACH: f64 = 8.0;

/// Weights of the pixels along one axis for each cell: `(first pixel, weights)`; each weight is a density per
/// pixel.
pub(super) struct Taps(Vec<(usize, Vec<f64>)>);

impl Taps {
    /// The weights for cells with the given `centers` (in pixels) and `pixels` pixels with centers at
    /// half-integer coordinates: the normal density, with standard deviation `std` pixels, at the distance of
    /// the two centers.
    pub(super) fn new(centers: impl Iterator<Item = f64>, pixels: usize, std: f64) -> Self {
        let scale = 1.0 / (std * (2.0 * std::f64::consts::PI).sqrt());
        let reach = REACH * std;
        Self(
            centers
                .map(|x| {
                    let first = (x - reach - 0.5).ceil().clamp(0.0, pixels as f64) as usize;
                    let end = (x + reach + 0.5).floor().clamp(first as f64, pixels as f64) as usize;
                    let weight = |i: usize| scale * (-0.5 * ((x - i as f64 - 0.5) / std).powi(2)).exp();
                    (first, (first..end).map(weight).collect())
                })
                .collect(),
        )
    }
}

/// The probabilities of the pixels of an image.
pub(super) trait Masses: Sync {
    /// Columns of the image.
    fn width(&self) -> usize;
    /// Probabilities of a range of pixels, row-major.
    fn masses(&self, pixels: Range<usize>) -> impl Iterator<Item = f64>;
}

/// The density per square pixel at points; point i uses taps i along both axes.
pub(super) fn at_points(image: &impl Masses, xs: &Taps, ys: &Taps) -> Vec<f64> {
    let at = |((col, across), (row, down)): (&(usize, Vec<f64>), &(usize, Vec<f64>))| {
        let along = |r: usize| {
            let first = (row + r) * image.width() + col;
            across.iter().zip(image.masses(first..first + across.len())).map(|(w, m)| w * m).sum::<f64>()
        };
        down.iter().enumerate().map(|(r, w)| w * along(r)).sum()
    };
    xs.0.iter().zip(&ys.0).map(at).collect()
}

/// The density per square pixel at the cells, row by row: `d[i][j] = sum_rc ys[i][r] mass[r][c] xs[j][c]`. Cells lie in
/// ascending order.
pub(super) struct Blur<'a, M> {
    image: &'a M,
    xs: Taps,
    ys: Taps,
}

impl<'a, M: Masses> Blur<'a, M> {
    pub(super) fn new(image: &'a M, xs: Taps, ys: Taps) -> Self {
        Self { image, xs, ys }
    }

    /// The rows of cells in blocks.
    pub(super) fn blocks(&self) -> Vec<Range<usize>> {
        let rows = self.ys.0.len();
        (0..rows).step_by(BLOCK).map(|first| first..(first + BLOCK).min(rows)).collect()
    }

    /// A function of the densities of each row of cells.
    pub(super) fn map_rows<T: Send>(&self, f: impl Fn(&[f64]) -> T + Sync) -> Vec<T> {
        self.blocks().into_par_iter().flat_map_iter(|rows| self.map_block(rows, &f)).collect()
    }

    /// [`map_rows`](Self::map_rows) for the rows of a block.
    pub(super) fn map_block<T>(&self, rows: Range<usize>, f: impl Fn(&[f64]) -> T) -> Vec<T> {
        let width = self.image.width();
        let (mut column, mut density) = (vec![0.0; width], vec![0.0; self.xs.0.len()]);
        // The rows of pixels around the row of cells, with their numbers.
        let mut near: VecDeque<(usize, Vec<f64>)> = VecDeque::new();
        let row = |(from, weights): &(usize, Vec<f64>)| {
            near.retain(|(row, _)| row >= from);
            let next = near.back().map_or(*from, |(row, _)| row + 1);
            near.extend(
                (next..from + weights.len())
                    .map(|row| (row, self.image.masses(row * width..(row + 1) * width).collect())),
            );
            column.fill(0.0);
            for ((_, row), w) in near.iter().zip(weights) {
                for (sum, m) in column.iter_mut().zip(row) {
                    *sum += w * m;
                }
            }
            for (d, (first, weights)) in density.iter_mut().zip(&self.xs.0) {
                *d = weights.iter().zip(&column[*first..]).map(|(w, m)| w * m).sum();
            }
            f(&density)
        };
        self.ys.0[rows].iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Pixels<'a>(usize, &'a [f64]);

    impl Masses for Pixels<'_> {
        fn width(&self) -> usize {
            self.0
        }

        fn masses(&self, pixels: Range<usize>) -> impl Iterator<Item = f64> {
            self.1[pixels].iter().copied()
        }
    }

    #[test]
    fn one_pixel_becomes_the_normal_density() {
        let mass = [0.0, 0.0, 0.0, 0.0, 1.0, 0.0]; // 3 columns, pixel (row 1, column 1)
        let (image, centers) = (Pixels(3, &mass), [0.25, 1.5, 2.0]);
        let taps = |pixels| Taps::new(centers.into_iter(), pixels, 0.5);
        let blur = Blur::new(&image, taps(3), taps(2));
        for (y, found) in centers.iter().zip(blur.map_rows(<[f64]>::to_vec)) {
            for (j, x) in centers.iter().enumerate() {
                let expected =
                    (-2.0 * ((x - 1.5).powi(2) + (y - 1.5).powi(2))).exp() * 2.0 / std::f64::consts::PI;
                assert!((found[j] - expected).abs() < 1e-14);
            }
        }
    }

    #[test]
    fn a_grid_that_covers_the_image_keeps_the_total_probability() {
        let image = Pixels(2, &[0.1, 0.2, 0.3, 0.4]);
        let centers = || (0..80).map(|i| -4.0 + (i as f64 + 0.5) / 8.0);
        let taps = || Taps::new(centers(), 2, 0.5);
        let blur = Blur::new(&image, taps(), taps());
        let sum: f64 = blur.map_rows(|row| row.iter().sum::<f64>() / 64.0).iter().sum();
        assert!((sum - 1.0).abs() < 1e-12, "{sum}");
    }
}
