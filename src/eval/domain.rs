//! A learned density over the plane: its domain, its total probability, and its values on a grid.
//!
//! The domain is the image, extended on all sides until its outer band is nearly empty. The density is
//! evaluated once, at the requested resolution, by the rules of `refine`: cells where it hardly changes are interpolated.
//! With a deadline, a coarse evaluation comes first, at most `COARSE` cells wide and fewer on a slow machine. A second
//! evaluation then uses the finest grid for which there is time.
//!
//! The total probability is the sum over this grid if the grid resolves the density, otherwise an adaptive integral,
//! which has its own points. For a large image it is an integral by importance sampling, and the grid, which then only
//! figures show, covers the image itself.

use super::deadline::Work;
use super::frame::Cells;
use super::integral::{self, Integral};
use super::measure::{LogDensity, Sampler};
use super::most::at_most;
use super::refine::{Accuracy, OfFlow, Refined};
use super::{Deadline, ImageFrame};
use crate::cnf::config::Flow;
use crate::data::{Cover, ImageDensity};
use crate::error::{Error, Result};
use crate::tensor::Key;

/// The domain grows until its outer band holds less than this probability, or its largest size is reached.
pub const OUTER_MASS: f64 = 1e-5;
/// Bands along the image's longer side. The domain grows by one band on each side, until its longer side is
/// up to 4 times that of the image.
const BANDS: usize = 16;
/// Cells along the longer side of the image in the coarse evaluation: the largest number for which there is
/// time.
const COARSE: [usize; 4] = [48, 32, 24, 16];
/// Cells of a coarse evaluation, with the bands around it, in multiples of the cells of the image. It is a
/// typical number: the image is extended by half of its side on each side.
const AROUND: f64 = 7.0;

/// Points of the base that show where a density lies: the largest number for which there is time. The half width of
/// their square is in standard deviations: 7e-6 of the base lie outside on either axis.
const SEEDS: [usize; 3] = [1 << 14, 1 << 12, 1 << 10];
const REACH: f64 = 4.5;
/// The largest number of evaluations of an adaptive integral. A thin density needs minutes for more.
const EVALUATIONS: usize = 1 << 18;

/// The least number of cells, along the longer side of an image, for the bands around it.
const BAND_LEAST: usize = 32;
/// Cells along the longer side of a large image for the bands around it.
const BAND_CELLS: usize = 256;
/// The key of the samples that show where cells are solved.
pub const NEAR_STREAM: u64 = 0x0a5e_11ed_ce11_5000;
/// The key of the points of an integral by importance sampling.
const SAMPLED_STREAM: u64 = 0x5eed_0f7e_57da_7a03;

/// The integral of a learned density.
#[derive(Clone, Copy, Debug)]
pub struct TotalProbability {
    /// The integral over the domain.
    pub total: f64,
    /// The estimate of the error of the quadrature, or the standard error.
    pub error: f64,
    /// Number of points, if the integral is by importance sampling.
    pub points: Option<u64>,
    /// The part in the outermost band, whose width is a sixteenth of the image's longer side.
    pub outer: f64,
}

/// The density over the image itself: values per square pixel, rows, columns.
pub type Inner = (Vec<f64>, usize, usize);

/// A density on a grid: its values over the image, its integral, and the share of the cells that was solved.
struct OnGrid {
    inner: Inner,
    total: Integral,
    solved: f64,
}

/// A density to evaluate on a grid.
pub struct OnPlane<'a> {
    /// The compiled program that evaluates log-densities.
    pub density: &'a LogDensity,
    /// The compiled program that samples, with as many rows per call as the density.
    pub sampler: &'a Sampler,
    /// The flow.
    pub flow: &'a Flow,
    /// The frame of the image, or of a window over points.
    pub frame: &'a ImageFrame,
    /// The image, if the data are one.
    pub image: Option<&'a ImageDensity>,
}

impl OnPlane<'_> {
    /// The total probability, and the values over the image on at most `finest` cells along its longer side.
    ///
    /// # Errors
    /// A solve that ended early.
    pub fn over_domain(
        &self,
        finest: usize,
        by: &Deadline,
        progress: &mut dyn FnMut(f64),
    ) -> Result<(Inner, TotalProbability)> {
        let coarse = self.coarse(by).min(finest);
        let near = self.near(&by.share(0.1))?;
        let (margin, outer) = self.reach(coarse, &near, &by.share(0.5))?;
        let large = self.image.filter(|_| self.frame.is_large());
        let around = if large.is_some() { 0 } else { margin };
        let on = |side: usize, by: &Deadline, progress: &mut dyn FnMut(f64)| -> Result<Option<OnGrid>> {
            let (cells, around) = self.frame.cells_around(side, around);
            let Some((values, num_solved)) = self.refined(&cells, &near, by, progress)? else {
                return Ok(None);
            };
            let total = integral::of_grid(&values, cells.cols, self.scaled_area(&cells));
            let (inner, rows, cols) = crop(&cells, &values, around);
            let solved = num_solved as f64 / values.len() as f64;
            Ok(Some(OnGrid { inner: (self.per_area(inner), rows, cols), total, solved }))
        };
        let whole = |found: Option<_>| found.expect("invariant: without a deadline all cells are evaluated");
        let first = if by.is_limited() { coarse } else { finest };
        let (mut found, mut side) = (whole(on(first, &by.open(), progress)?), first);
        let cells = self.frame.cells_around(finest, around).0.centers.len() as f64;
        while side < finest {
            // Half of the time remains for the total probability and for a machine that becomes slower. The number
            // of cells is proportional to the square of the side, and at most the same share of them is solved.
            let solved = (found.solved * cells).ceil() as usize;
            let affordable = by.share(0.5).count(Work::Grid, solved) as f64 / solved as f64;
            let finer = (finest as f64 * affordable.sqrt()) as usize;
            if finer < side + side / 3 {
                break;
            }
            let Some(whole) = on(finer, by, progress)? else { break };
            (found, side) = (whole, finer);
        }
        let OnGrid { inner, total, .. } = found;
        let (total, points) = match large {
            Some(image) => self.by_importance(image, margin, by, progress)?,
            None => (self.total(total, margin, by)?, None),
        };
        Ok((inner, TotalProbability { total: total.value, error: total.error, points, outer }))
    }

    /// The total probability over the image grown by `margin` pixels by importance sampling, and the number of points.
    fn by_importance(
        &self,
        image: &ImageDensity,
        margin: usize,
        by: &Deadline,
        progress: &mut dyn FnMut(f64),
    ) -> Result<(Integral, Option<u64>)> {
        let (rows, bounds) = (self.density.rows_per_call(), self.bounds(margin));
        let density = |points: &[[f32; 2]]| {
            let log_probs = by.watch.run(Work::Grid, rows as f64, || self.density.eval(self.flow, points))?;
            let is_inside =
                |x: &[f32; 2]| (0..2).all(|a| (bounds[a][0]..=bounds[a][1]).contains(&f64::from(x[a])));
            let value =
                |(x, log_p): (&[f32; 2], f32)| if is_inside(x) { f64::from(log_p).exp() } else { 0.0 };
            Ok::<_, Error>(points.iter().zip(log_probs).map(value).collect())
        };
        let fits = |done: f64| {
            progress(done);
            by.fits(Work::Grid, rows as f64)
        };
        let mut rng = Key::new(SAMPLED_STREAM).rng();
        let found = integral::by_importance(&Cover::of(image), density, rows, &mut rng, fits)?;
        Ok((found.integral, Some(found.points)))
    }

    /// The ends of the image grown by `margin` pixels, in scaled coordinates: standardized ones without the factor.
    fn bounds(&self, margin: usize) -> [[f64; 2]; 2] {
        let frame = self.frame.grown(margin as f64);
        let [from, to] = [0, 1].map(|i| self.frame.scaled([frame.x[i], frame.y[i]]));
        [0, 1].map(|a| [from[a].min(to[a]), from[a].max(to[a])])
    }

    /// The total probability, given its integral over a grid. If the grid does not resolve the density, rectangles
    /// replace the grid, as far as there is time. They are divided where the flow maps points of its base.
    fn total(&self, grid: Integral, margin: usize, by: &Deadline) -> Result<Integral> {
        let (rows, watch) = (self.density.rows_per_call(), &by.watch);
        let whole = |n: usize| n.next_multiple_of(rows) as f64;
        // The seeds are drawn, then the density is evaluated at the seeds and at the nodes of the first rectangles.
        let first = |&n: &usize| {
            n + integral::FIRST <= at_most(EVALUATIONS)
                && by.fits(Work::Samples, whole(n))
                && by.share(0.5).fits(Work::Grid, whole(n) + whole(integral::FIRST))
        };
        let seeds = SEEDS.into_iter().find(first).filter(|_| grid.error >= 0.5 * integral::ERROR);
        let Some(seeds) = seeds else { return Ok(grid) };
        let base: Vec<[f32; 2]> = integral::seeds(seeds, REACH).map(|z| z.map(|x| x as f32)).collect();
        let push = || self.sampler.push(self.flow, base.as_flattened());
        let images = watch.run(Work::Samples, whole(seeds), push)?;
        let images: Vec<[f64; 2]> =
            images.as_chunks::<2>().0.iter().map(|&x| self.frame.correlated(x)).collect();
        let (bounds, shift) = (self.bounds(margin), self.frame.log_factor());
        let density = |points: &[[f64; 2]]| {
            let rounded: Vec<[f32; 2]> =
                points.iter().map(|&z| self.frame.decorrelated(z).map(|x| x as f32)).collect();
            let eval = || self.density.eval(self.flow, &rounded);
            let log_probs = watch.run(Work::Grid, whole(points.len()), eval)?;
            Ok::<_, Error>(log_probs.into_iter().map(|x| (f64::from(x) - shift).exp()).collect())
        };
        let mut planned = seeds + integral::FIRST;
        let fits = |more: usize| {
            planned += more;
            planned <= at_most(EVALUATIONS) && by.fits(Work::Grid, whole(more))
        };
        let found = integral::adaptive(density, bounds, &images, fits)?;
        Ok(if found.error < grid.error { found } else { grid })
    }

    /// A few samples in standardized coordinates, near which cells are solved; none if there is no time.
    fn near(&self, by: &Deadline) -> Result<Vec<[f64; 2]>> {
        let rows = self.density.rows_per_call();
        if !by.fits(Work::Samples, rows as f64) {
            return Ok(Vec::new());
        }
        let key = Key::new(NEAR_STREAM);
        let found = by.watch.run(Work::Samples, rows as f64, || self.sampler.part(self.flow, rows, &key))?;
        Ok(found.as_chunks::<2>().0.to_vec())
    }

    /// The number of cells of the coarse evaluation: the largest that ends in time, also on a machine that
    /// becomes slow.
    fn coarse(&self, by: &Deadline) -> usize {
        let cells = |side: usize| AROUND * self.frame.cells_around(side, 0).0.centers.len() as f64;
        let fits = COARSE.into_iter().find(|&side| by.fits(Work::Grid, cells(side)));
        fits.unwrap_or(COARSE[COARSE.len() - 1])
    }

    /// Densities in scaled coordinates on a grid, and the number of cells that were solved; `None` if there was not enough
    /// time for them.
    fn refined(
        &self,
        cells: &Cells,
        near: &[[f64; 2]],
        by: &Deadline,
        progress: &mut dyn FnMut(f64),
    ) -> Result<Option<(Vec<f64>, usize)>> {
        let shape = [cells.rows, cells.cols];
        let cell = |&x: &[f64; 2]| self.frame.cell_of(cells.frame, shape, x);
        let seeds = near.iter().filter_map(cell).collect();
        let grid = Refined { seeds, ..Refined::new(shape, Accuracy::FIGURE) };
        let center = self.frame.centers(cells.frame, shape);
        let found = OfFlow { density: self.density, flow: self.flow, center, by }.eval(&grid, progress)?;
        let shift = self.frame.log_factor();
        let density = |x: f32| (f64::from(x) - shift).exp();
        Ok(found.map(|(values, solved)| (values.into_iter().map(density).collect(), solved)))
    }

    /// Densities in scaled coordinates, in which they and the areas of cells are numbers of moderate size, whatever the
    /// units of the data are.
    fn scaled(&self, centers: &[[f32; 2]], by: &Deadline) -> Result<Vec<f64>> {
        let (shift, mut values) = (self.frame.log_factor(), Vec::with_capacity(centers.len()));
        let chunk = self.density.rows_per_call();
        by.open().in_chunks(
            (Work::Grid, centers.len(), chunk, 0),
            |_| (),
            |part| {
                let log_probs = self.density.eval(self.flow, &centers[part])?;
                values.extend(log_probs.iter().map(|&x| (f64::from(x) - shift).exp()));
                Ok::<_, Error>(())
            },
        )?;
        Ok(values)
    }

    /// Densities per square pixel from densities in scaled coordinates.
    fn per_area(&self, values: Vec<f64>) -> Vec<f64> {
        let [x, y] = self.frame.std;
        values.into_iter().map(|value| value / x / y).collect()
    }

    /// The area of a cell in scaled coordinates.
    fn scaled_area(&self, cells: &Cells) -> f64 {
        let side = |[from, to]: [f64; 2], a: usize| (to - from).abs() / self.frame.std[a];
        side(cells.frame.x, 0) * side(cells.frame.y, 1) / (cells.rows * cells.cols) as f64
    }

    /// The margin in pixels at which the outer band is nearly empty (or the largest margin, or the last one
    /// before the deadline), and the probability in that band.
    ///
    /// A band is evaluated with one cell per four pixels, at least [`BAND_LEAST`] cells along the longer side of the image; a
    /// large image has [`BAND_CELLS`]. Under a deadline, it has at most `coarse` cells. Thin lines of a density may lie
    /// between these, so the share of samples in the band counts too.
    fn reach(&self, coarse: usize, near: &[[f64; 2]], by: &Deadline) -> Result<(usize, f64)> {
        let side = self.frame.side();
        let (width, finest) =
            (side.div_ceil(BANDS), (side / 4).max(side.min(BAND_LEAST) * BAND_LEAST.div_ceil(side)));
        let finest = if self.frame.is_large() { finest.min(BAND_CELLS) } else { finest };
        let cells = if by.is_limited() { finest.min(coarse) } else { finest };
        let (mut margin, mut outer) = (0, f64::INFINITY);
        // The grid over the domain needs the time of all bands once more.
        let whole = |margin: usize| self.frame.cells_around(cells, margin + width).0.centers.len() as f64;
        let fits = |margin: usize| margin == 0 || by.fits(Work::Grid, whole(margin));
        while outer >= OUTER_MASS && 2 * (margin + width) <= 3 * side && fits(margin) {
            margin += width;
            let in_band = |&&x: &&[f64; 2]| self.is_within(x, margin) && !self.is_within(x, margin - width);
            let drawn = near.iter().filter(in_band).count();
            outer = self.band_mass(cells, margin, width, by)?.max(drawn as f64 / near.len().max(1) as f64);
        }
        Ok((margin, outer))
    }

    /// Whether a point in standardized coordinates lies inside of the image grown by `margin` pixels.
    fn is_within(&self, point: [f64; 2], margin: usize) -> bool {
        let [x, y] = self.frame.place(self.frame.to_pixels(point));
        let within = |x: f64, side: usize| x > -(margin as f64) && x < (side + margin) as f64;
        within(x, self.frame.width) && within(y, self.frame.height)
    }

    /// The probability between the image grown by `margin - width` and by `margin` pixels, on `side` cells along its
    /// longer side.
    fn band_mass(&self, side: usize, margin: usize, width: usize, by: &Deadline) -> Result<f64> {
        let (mut cells, _) = self.frame.cells_around(side, margin);
        cells.centers.retain(|c| !self.is_within(c.map(f64::from), margin - width));
        Ok(self.scaled(&cells.centers, by)?.iter().sum::<f64>() * self.scaled_area(&cells))
    }
}

/// The values over the image itself, without the given rows and columns around it.
fn crop(cells: &Cells, values: &[f64], [around_rows, around_cols]: [usize; 2]) -> Inner {
    let (rows, cols) = (cells.rows - 2 * around_rows, cells.cols - 2 * around_cols);
    let row = |r: usize| &values[(r + around_rows) * cells.cols + around_cols..][..cols];
    ((0..rows).flat_map(row).copied().collect(), rows, cols)
}
