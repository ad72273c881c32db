//! A learned density over the plane: its domain, its total probability, and its values on a grid.
//!
//! The domain is the image, extended on all sides until its outer band is nearly empty. The density is
//! evaluated once, at the requested resolution. With a deadline, a coarse evaluation comes first and measures
//! the time per cell. The second evaluation then uses the finest grid for which there is time.
//!
//! The total probability is the sum over this grid if the grid resolves the density, otherwise an adaptive integral,
//! which has its own points.

use super::frame::Cells;
use super::integral::{self, Integral};
use super::measure::{LogDensity, ROWS, Sampler};
use super::{Deadline, ImageFrame};
use crate::cnf::config::Flow;
use crate::error::{Error, Result};
use std::time::Instant;

/// The domain grows until its outer band holds less than this probability, or its largest size is reached.
pub const OUTER_MASS: f64 = 1e-5;
/// Bands along the image's longer side. The domain grows by one band on each side, until its longer side is
/// up to 4 times that of the image.
const BANDS: usize = 16;
/// Cells along the longer side of the image in the coarse evaluation.
const COARSE: usize = 48;

/// Points of the base that show where a density lies, and the half width of their square in standard deviations: 7e-6 of
/// the base lie outside on either axis.
const SEEDS: usize = 1 << 14;
const REACH: f64 = 4.5;
/// The largest number of evaluations of an adaptive integral: about those of the finest grid on the largest domain.
const EVALUATIONS: usize = 1 << 19;
/// Fraction of the remaining time for a fine grid.
const GRID: f64 = 0.7;

/// The integral of a learned density.
#[derive(Clone, Copy, Debug)]
pub struct TotalProbability {
    /// The integral over the domain.
    pub total: f64,
    /// The estimate of the error of the quadrature.
    pub error: f64,
    /// The part in the outermost band, whose width is a sixteenth of the image's longer side.
    pub outer: f64,
}

/// The density over the image itself: values per square pixel, rows, columns.
pub type Inner = (Vec<f64>, usize, usize);

/// A density to evaluate on a grid.
pub struct OnPlane<'a> {
    /// The compiled program that evaluates log-densities.
    pub density: &'a LogDensity,
    /// The flow.
    pub flow: &'a Flow,
    /// The frame of the image, or of a window over points.
    pub frame: &'a ImageFrame,
}

impl OnPlane<'_> {
    /// The total probability, and the values over the image on at most `finest` cells along its longer side.
    ///
    /// # Errors
    /// A solve that ended early.
    pub fn over_domain(
        &self,
        finest: usize,
        by: Deadline,
        progress: &mut dyn FnMut(f64),
    ) -> Result<(Inner, TotalProbability)> {
        let (margin, outer) = self.reach(by.share(0.5))?;
        let on =
            |side: usize, by: Deadline, progress: &mut dyn FnMut(f64)| -> Result<Option<(Inner, Integral)>> {
                let (cells, around) = self.frame.cells_around(side, margin);
                let Some(values) = self.on_cells(&cells, by, progress)? else { return Ok(None) };
                let total = integral::of_grid(&values, cells.cols, cells.area);
                Ok(Some((crop(&cells, &values, around), total)))
            };
        let whole = |found: Option<_>| found.expect("invariant: without a deadline all cells are evaluated");
        if by.0.is_none() {
            let (inner, total) = whole(on(finest, by, progress)?);
            return Ok((inner, self.total(total, margin, outer, by)?));
        }
        let since = Instant::now();
        let coarse = whole(on(COARSE.min(finest), Deadline(None), &mut |_| ())?);
        let calls = |side: usize| self.frame.cells_around(side, margin).0.centers.len().div_ceil(ROWS);
        let call_s = since.elapsed().as_secs_f64() / calls(COARSE.min(finest)) as f64;
        let affordable = by.count(calls(finest), call_s);
        // The number of cells is proportional to the square of the side.
        let side = (finest as f64 * (affordable as f64 / calls(finest) as f64).sqrt()) as usize;
        let (inner, total) =
            if side <= COARSE { coarse } else { on(side, by.share(GRID), progress)?.unwrap_or(coarse) };
        Ok((inner, self.total(total, margin, outer, by)?))
    }

    /// The total probability from that of a grid. If the grid does not resolve the density, it is integrated again by
    /// rectangles that are divided where the flow maps points of its base.
    fn total(&self, grid: Integral, margin: usize, outer: f64, by: Deadline) -> Result<TotalProbability> {
        let of = |found: Integral| TotalProbability { total: found.value, error: found.error, outer };
        let since = Instant::now();
        if grid.error < 0.5 * integral::ERROR || by.left_s() <= 0.0 {
            return Ok(of(grid));
        }
        let base: Vec<[f32; 2]> = integral::seeds(SEEDS, REACH).map(|z| z.map(|x| x as f32)).collect();
        let seeds = Sampler::new().push(self.flow, base.as_flattened())?;
        let frame = self.frame.grown(margin as f64);
        let [from, to] = [0, 1].map(|i| self.frame.to_standard([frame.x[i], frame.y[i]]));
        let bounds = [0, 1].map(|a| [from[a].min(to[a]), from[a].max(to[a])]);
        let density = |points: &[[f64; 2]]| {
            let rounded: Vec<[f32; 2]> = points.iter().map(|x| x.map(|x| x as f32)).collect();
            let log_probs = self.density.eval(self.flow, &rounded)?;
            Ok::<_, Error>(log_probs.into_iter().map(|x| f64::from(x).exp()).collect())
        };
        // The first rectangles and their parts have about as many nodes as there are seeds.
        let mut planned = 2 * SEEDS;
        let fits = |more: usize| {
            let each_s = since.elapsed().as_secs_f64() / planned as f64;
            planned += more;
            planned <= EVALUATIONS && by.fits(more as f64 * each_s)
        };
        let found = integral::adaptive(density, bounds, seeds.as_chunks::<2>().0, fits)?;
        Ok(of(if found.error < grid.error { found } else { grid }))
    }

    /// Densities per square pixel; `None` if there was not enough time for all cells.
    fn on_cells(
        &self,
        cells: &Cells,
        by: Deadline,
        progress: &mut dyn FnMut(f64),
    ) -> Result<Option<Vec<f64>>> {
        let (shift, mut values) = (self.frame.log_jacobian(), Vec::with_capacity(cells.centers.len()));
        let done = by.in_chunks(cells.centers.len(), ROWS, progress, |part| {
            let log_probs = self.density.eval(self.flow, &cells.centers[part])?;
            values.extend(log_probs.iter().map(|&x| (f64::from(x) + shift).exp()));
            Ok::<_, Error>(())
        })?;
        Ok((done == cells.centers.len()).then_some(values))
    }

    /// The margin in pixels at which the outer band is nearly empty (or the largest margin, or the last one
    /// before the deadline), and the probability in that band.
    ///
    /// A band is evaluated with one cell per pixel; if the longer side of the image has fewer than 32 pixels,
    /// with several, so that it has at least 32 cells. Under a deadline, it has at most `COARSE` cells.
    fn reach(&self, by: Deadline) -> Result<(usize, f64)> {
        let side = self.frame.side();
        let (width, finest) = (side.div_ceil(BANDS), side * 32usize.div_ceil(side));
        let cells = if by.0.is_some() { finest.min(COARSE) } else { finest };
        let (mut margin, mut outer) = (0, f64::INFINITY);
        while outer >= OUTER_MASS && 2 * (margin + width) <= 3 * side && (margin == 0 || by.left_s() > 0.0) {
            margin += width;
            outer = self.band_mass(cells, margin, width)?;
        }
        Ok((margin, outer))
    }

    /// The probability between the image grown by `margin - width` and by `margin` pixels, on `side` cells along its
    /// longer side.
    fn band_mass(&self, side: usize, margin: usize, width: usize) -> Result<f64> {
        let (mut cells, _) = self.frame.cells_around(side, margin);
        let inner = (margin - width) as f64;
        let within = |x: f64, side: usize| x > -inner && x < side as f64 + inner;
        cells.centers.retain(|c| {
            let [x, y] = self.frame.place(self.frame.to_pixels(c.map(f64::from)));
            !(within(x, self.frame.width) && within(y, self.frame.height))
        });
        let values = self.on_cells(&cells, Deadline(None), &mut |_| ())?;
        Ok(values.iter().flatten().sum::<f64>() * cells.area)
    }
}

/// The values over the image itself, without the given rows and columns around it.
fn crop(cells: &Cells, values: &[f64], [around_rows, around_cols]: [usize; 2]) -> Inner {
    let (rows, cols) = (cells.rows - 2 * around_rows, cells.cols - 2 * around_cols);
    let row = |r: usize| &values[(r + around_rows) * cells.cols + around_cols..][..cols];
    ((0..rows).flat_map(row).copied().collect(), rows, cols)
}
