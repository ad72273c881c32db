//! An image's probabilities blurred by a normal, on the cells of a grid: one separable convolution, from
//! which entropy, cross-entropy and figures of the exact density are computed.
//!
//! Rows are computed on demand, one by one, so a quadrature with 64 cells per pixel needs memory for one row,
//! not for the whole grid. An FFT would cost about the same at nine taps and leave rounding noise where the
//! density is zero.

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

/// The density per square pixel at points; point i uses taps i along both axes.
pub(super) fn at_points(mass: &[f64], width: usize, xs: &Taps, ys: &Taps) -> Vec<f64> {
    let at = |((col, across), (row, down)): (&(usize, Vec<f64>), &(usize, Vec<f64>))| {
        let along =
            |r: usize| across.iter().zip(&mass[(row + r) * width + col..]).map(|(w, m)| w * m).sum::<f64>();
        down.iter().enumerate().map(|(r, w)| w * along(r)).sum()
    };
    xs.0.iter().zip(&ys.0).map(at).collect()
}

/// The density per square pixel at the cells, row by row:
/// `d[i][j] = sum_rc ys[i][r] mass[r][c] xs[j][c]`, with `mass` row-major of `width` columns.
pub(super) struct Blur<'a> {
    mass: &'a [f64],
    width: usize,
    xs: Taps,
    ys: Taps,
    column: Vec<f64>,
    density: Vec<f64>,
}

impl<'a> Blur<'a> {
    pub(super) fn new(mass: &'a [f64], width: usize, xs: Taps, ys: Taps) -> Self {
        Self { mass, width, column: vec![0.0; width], density: vec![0.0; xs.0.len()], xs, ys }
    }

    /// Number of rows of cells.
    pub(super) fn rows(&self) -> usize {
        self.ys.0.len()
    }

    /// The densities in row `i`.
    pub(super) fn row(&mut self, i: usize) -> &[f64] {
        let (first, weights) = &self.ys.0[i];
        self.column.fill(0.0);
        for (row, w) in self.mass.chunks_exact(self.width).skip(*first).zip(weights) {
            for (sum, m) in self.column.iter_mut().zip(row) {
                *sum += w * m;
            }
        }
        for (d, (first, weights)) in self.density.iter_mut().zip(&self.xs.0) {
            *d = weights.iter().zip(&self.column[*first..]).map(|(w, m)| w * m).sum();
        }
        &self.density
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pixel_becomes_the_normal_density() {
        let mass = [0.0, 0.0, 0.0, 0.0, 1.0, 0.0]; // 3 columns, pixel (row 1, column 1)
        let centers = [1.5, 2.0, 0.25];
        let taps = |pixels| Taps::new(centers.into_iter(), pixels, 0.5);
        let mut blur = Blur::new(&mass, 3, taps(3), taps(2));
        for (i, y) in centers.iter().enumerate() {
            let found = blur.row(i);
            for (j, x) in centers.iter().enumerate() {
                let expected =
                    (-2.0 * ((x - 1.5).powi(2) + (y - 1.5).powi(2))).exp() * 2.0 / std::f64::consts::PI;
                assert!((found[j] - expected).abs() < 1e-14);
            }
        }
    }

    #[test]
    fn a_grid_that_covers_the_image_keeps_the_total_probability() {
        let mass = [0.1, 0.2, 0.3, 0.4];
        let centers = || (0..80).map(|i| -4.0 + (i as f64 + 0.5) / 8.0);
        let taps = || Taps::new(centers(), 2, 0.5);
        let mut blur = Blur::new(&mass, 2, taps(), taps());
        let sum: f64 = (0..blur.rows()).map(|i| blur.row(i).iter().sum::<f64>() / 64.0).sum();
        assert!((sum - 1.0).abs() < 1e-12, "{sum}");
    }
}
