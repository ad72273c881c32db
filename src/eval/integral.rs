//! The integral of a density over a rectangle of the plane, with an estimate of its error.
//!
//! [`of_grid`] needs no further evaluations: a grid determines the sum over all of its cells, and sums over every
//! second and every fourth cell. If these agree, the grid resolves the density. A thin density, for example of two nearly
//! collinear columns, lies between the cells, and the sums differ.
//!
//! [`adaptive`] divides rectangles where the sum of a rectangle's parts differs from its own value. Points of
//! the density, the seeds, show where a density lies that no node of a coarse rectangle meets. If the seeds lie near a
//! line, the rectangles are rotated into it.
//!
//! [`by_importance`] is for large images, whose details are too many for both. Elsewhere it is not used: its error falls
//! only with the root of the number of evaluations.

mod sampled;

pub use sampled::by_importance;

/// The largest error that is not mentioned.
pub const ERROR: f64 = 1e-3;
/// The refinement ends below this fraction of [`ERROR`].
const ENOUGH: f64 = 0.5;
/// Rectangles along each axis at the start.
const START: usize = 16;
/// Evaluations at the nodes of the first rectangles.
pub const FIRST: usize = START * START * NODES.len() * NODES.len();
/// Ratio of the standard deviations of the seeds along their principal axes, above which the rectangles are rotated.
const THIN: f64 = 4.0;
/// A density between the nodes is missed if a seed has more than this multiple of the largest value at the nodes.
const MISSED: f64 = 3.0;
/// Relative difference of rules of order 2 above which a rectangle does not resolve the density.
const ROUGH: f64 = 0.2;
/// Rectangles smaller than this fraction of the whole are not divided: points are rounded to f32.
const LEAST: f64 = 1e-7;
/// The nodes of the Gauss-Legendre rule of degree 5 on [-1, 1], and their weights, which sum to 1.
const NODES: [(f64, f64); 3] =
    [(-0.774_596_669_241_483_4, 5.0 / 18.0), (0.0, 8.0 / 18.0), (0.774_596_669_241_483_4, 5.0 / 18.0)];

/// An integral and an estimate of its error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Integral {
    /// The integral.
    pub value: f64,
    /// The estimate of its absolute error.
    pub error: f64,
}

/// The integral of the values at the centers of the cells of a grid, row-major, with `cols` columns.
///
/// Two sums over a checkerboard have cells whose side is larger by the root of 2, and four sums over every second row
/// and column have cells whose side is twice as large. The midpoint rule is of order 2, so a half and a quarter of the
/// largest difference estimate the error. If a thin density lies between all cells, the sums agree, so the distance of
/// the integral from 1 counts as an error too; where a density reaches far beyond the grid, this is too pessimistic.
pub fn of_grid(values: &[f64], cols: usize, cell_area: f64) -> Integral {
    let (mut sums, mut all) = ([0.0; 4], 0.0);
    for (i, &value) in values.iter().enumerate() {
        sums[2 * (i / cols % 2) + i % cols % 2] += value;
        all += value;
    }
    let off = |sum: f64, times: f64| (times * sum - all).abs() * cell_area / times;
    let boards = off(sums[0] + sums[3], 2.0);
    let error = sums.into_iter().fold(boards, |most, sum| most.max(off(sum, 4.0)));
    let value = all * cell_area;
    Integral { value, error: error.max((value - 1.0).abs()) }
}

/// A map from the coordinates of the rectangles to the plane: `x = center + axes w`.
struct Frame {
    center: [f64; 2],
    axes: [[f64; 2]; 2],
}

impl Frame {
    /// The identity, or the principal axes of the seeds in units of their standard deviations if the seeds lie near a
    /// line.
    fn of(seeds: &[[f64; 2]]) -> Frame {
        let n = seeds.len() as f64;
        let mean = [0, 1].map(|a| seeds.iter().map(|x| x[a]).sum::<f64>() / n);
        let product =
            |a: usize, b: usize| seeds.iter().map(|x| (x[a] - mean[a]) * (x[b] - mean[b])).sum::<f64>() / n;
        let (xx, xy, yy) = (product(0, 0), product(0, 1), product(1, 1));
        let (half, apart) = (0.5 * (xx + yy), (0.5 * (xx - yy)).hypot(xy));
        // The product of the eigenvalues is the determinant; their difference would lose its digits.
        let most = half + apart;
        let least = ((xx * yy - xy * xy) / most).max(1e-12 * most);
        if !(most.is_finite() && most > THIN * THIN * least) {
            return Frame { center: [0.0; 2], axes: [[1.0, 0.0], [0.0, 1.0]] };
        }
        let angle = 0.5 * (2.0 * xy).atan2(xx - yy);
        let (sin, cos) = angle.sin_cos();
        let (long, short) = (most.sqrt(), least.sqrt());
        Frame { center: mean, axes: [[long * cos, -short * sin], [long * sin, short * cos]] }
    }

    fn to_plane(&self, w: [f64; 2]) -> [f64; 2] {
        [0, 1].map(|a| self.center[a] + self.axes[a][0] * w[0] + self.axes[a][1] * w[1])
    }

    fn of_plane(&self, x: [f64; 2]) -> [f64; 2] {
        let [[a, b], [c, d]] = self.axes;
        let (det, x) = (a * d - b * c, [x[0] - self.center[0], x[1] - self.center[1]]);
        [(d * x[0] - b * x[1]) / det, (a * x[1] - c * x[0]) / det]
    }

    fn det(&self) -> f64 {
        (self.axes[0][0] * self.axes[1][1] - self.axes[0][1] * self.axes[1][0]).abs()
    }
}

/// A rectangle, its integral and an estimate of the error of the integral.
struct Cell {
    center: [f64; 2],
    half: [f64; 2],
    value: f64,
    error: f64,
    seeds: Vec<u32>,
    /// The largest value at the nodes; on the edge of the bounds, also at the nodes of larger rectangles.
    seen: f64,
}

impl Cell {
    fn new(center: [f64; 2], half: [f64; 2], seen: f64) -> Cell {
        Cell { center, half, value: 0.0, error: 0.0, seeds: Vec::new(), seen }
    }

    fn nodes(&self) -> impl Iterator<Item = ([f64; 2], f64)> + '_ {
        let at = |a: usize, node: f64| self.center[a] + self.half[a] * node;
        NODES.iter().flat_map(move |x| NODES.iter().map(move |y| ([at(0, x.0), at(1, y.0)], x.1 * y.1)))
    }

    /// Two halves of a long rectangle, four quarters of a square one.
    fn parts(&self) -> Vec<Cell> {
        let cut = |a: usize| self.half[a] > 0.51 * self.half[1 - a];
        let (cuts, [h, v]) = ([cut(0), cut(1)], self.half);
        let half = [if cuts[0] { 0.5 * h } else { h }, if cuts[1] { 0.5 * v } else { v }];
        let offsets = |a: usize| if cuts[a] { vec![-half[a], half[a]] } else { vec![0.0] };
        let mut parts = Vec::with_capacity(4);
        for x in offsets(0) {
            let at = |y: &f64| [self.center[0] + x, self.center[1] + y];
            parts.extend(offsets(1).iter().map(|y| Cell::new(at(y), half, self.seen)));
        }
        parts
    }

    fn corners(&self) -> [[f64; 2]; 4] {
        let [[x, y], [h, v]] = [self.center, self.half];
        [[x - h, y - v], [x - h, y + v], [x + h, y - v], [x + h, y + v]]
    }

    fn shorter(&self) -> f64 {
        self.half[0].min(self.half[1])
    }

    fn holds(&self, w: [f64; 2]) -> bool {
        (0..2).all(|a| {
            let from = self.center[a] - self.half[a];
            from <= w[a] && w[a] < from + 2.0 * self.half[a]
        })
    }
}

/// A density over a rectangle of the plane, in the coordinates of a frame.
struct Plane<F> {
    f: F,
    bounds: [[f64; 2]; 2],
    frame: Frame,
    /// In the coordinates of the frame.
    seeds: Vec<[f64; 2]>,
    /// The density at each seed.
    peaks: Vec<f64>,
}

/// The integral of `f` over the rectangle `bounds`, refined until the estimate of its error is below half of [`ERROR`],
/// or until `fits` returns false for the number of further evaluations.
///
/// `seeds` are points that cover the places where `f` is large.
///
/// # Errors
/// Errors of `f`.
pub fn adaptive<E>(
    mut f: impl FnMut(&[[f64; 2]]) -> Result<Vec<f64>, E>,
    bounds: [[f64; 2]; 2],
    seeds: &[[f64; 2]],
    mut fits: impl FnMut(usize) -> bool,
) -> Result<Integral, E> {
    let seeds: Vec<[f64; 2]> = seeds.iter().copied().filter(|&x| is_within(x, &bounds)).collect();
    let frame = Frame::of(&seeds);
    let peaks = if seeds.is_empty() { Vec::new() } else { f(&seeds)? };
    let peaks = peaks.into_iter().map(|p| p * frame.det()).collect();
    let seeds = seeds.into_iter().map(|x| frame.of_plane(x)).collect();
    let mut plane = Plane { f, bounds, frame, seeds, peaks };
    let mut cells = plane.start()?;
    let smallest = cells.iter().fold(f64::INFINITY, |least, cell| least.min(cell.shorter()));
    while total(&cells, |cell| cell.error) > ENOUGH * ERROR {
        let (divided, rest) = chosen(cells, |cell| cell.shorter() > LEAST * smallest);
        if divided.is_empty() || !fits(divided.len() * 4 * NODES.len().pow(2)) {
            cells = rest.into_iter().chain(divided).collect();
            break;
        }
        cells = rest;
        cells.extend(plane.divide(divided)?);
    }
    let error = total(&cells, |cell| cell.error).min(1.0);
    Ok(Integral { value: total(&cells, |cell| cell.value), error })
}

fn is_within(x: [f64; 2], bounds: &[[f64; 2]; 2]) -> bool {
    (0..2).all(|a| (bounds[a][0]..=bounds[a][1]).contains(&x[a]))
}

/// A sum over rectangles.
fn total(cells: &[Cell], of: impl Fn(&Cell) -> f64) -> f64 {
    cells.iter().map(of).sum()
}

/// The rectangles to divide next, and the others: the errors of the others sum to less than a quarter of the target.
fn chosen(mut cells: Vec<Cell>, is_divisible: impl Fn(&Cell) -> bool) -> (Vec<Cell>, Vec<Cell>) {
    cells.sort_by(|a, b| a.error.total_cmp(&b.error));
    let mut sum = 0.0;
    let is_small = |cell: &&Cell| {
        sum += cell.error;
        sum < 0.5 * ENOUGH * ERROR
    };
    let small = cells.iter().take_while(is_small).count();
    let large = cells.split_off(small);
    let (divided, left): (Vec<Cell>, Vec<Cell>) = large.into_iter().partition(is_divisible);
    cells.extend(left);
    (divided, cells)
}

impl<E, F: FnMut(&[[f64; 2]]) -> Result<Vec<f64>, E>> Plane<F> {
    fn is_inside(&self, w: [f64; 2]) -> bool {
        is_within(self.frame.to_plane(w), &self.bounds)
    }

    /// The first rectangles, which cover the bounds.
    fn start(&mut self) -> Result<Vec<Cell>, E> {
        let [x, y] = self.bounds;
        let corners =
            [[x[0], y[0]], [x[0], y[1]], [x[1], y[0]], [x[1], y[1]]].map(|p| self.frame.of_plane(p));
        let ends = [0, 1].map(|a| {
            let along = corners.map(|w| w[a]);
            along
                .into_iter()
                .fold([f64::INFINITY, f64::NEG_INFINITY], |[from, to], w| [from.min(w), to.max(w)])
        });
        let half = ends.map(|[from, to]| 0.5 * (to - from) / START as f64);
        let place = |a: usize, i: usize| ends[a][0] + half[a] * (2 * i + 1) as f64;
        let mut cells: Vec<Cell> = (0..START * START)
            .map(|i| Cell::new([place(0, i % START), place(1, i / START)], half, 0.0))
            .collect();
        for (i, &w) in (0..).zip(&self.seeds) {
            if let Some(cell) = cells.iter_mut().find(|cell| cell.holds(w)) {
                cell.seeds.push(i);
            }
        }
        self.evaluate(&mut cells)?;
        // Nothing is known yet about the error of a first rectangle.
        cells.iter_mut().for_each(|cell| cell.error = cell.error.max(cell.value));
        Ok(cells)
    }

    /// The parts of rectangles, with errors from the difference between a rectangle and its parts.
    fn divide(&mut self, whole: Vec<Cell>) -> Result<Vec<Cell>, E> {
        let (mut parts, mut counts) = (Vec::new(), Vec::with_capacity(whole.len()));
        for cell in &whole {
            let mut of_cell = cell.parts();
            for &seed in &cell.seeds {
                let near = of_cell.iter().position(|part| part.holds(self.seeds[seed as usize]));
                of_cell[near.unwrap_or(0)].seeds.push(seed);
            }
            counts.push(of_cell.len());
            parts.extend(of_cell);
        }
        self.evaluate(&mut parts)?;
        let mut rest = &mut parts[..];
        for (cell, count) in whole.iter().zip(counts) {
            let (of_cell, others) = rest.split_at_mut(count);
            let change = total(of_cell, |part| part.value) - cell.value;
            // The rule is of order 6, so the parts of a smooth density are far more accurate than this. Two halves tell
            // nothing about the other axis.
            let error = if count == 4 { change.abs() } else { cell.error.max(change.abs()) };
            let is_empty = |part: &Cell| part.value == 0.0 && part.seeds.is_empty();
            let each = error / of_cell.iter().filter(|part| !is_empty(part)).count().max(1) as f64;
            let parts = of_cell.iter_mut().filter(|part| !is_empty(part));
            parts.for_each(|part| part.error = part.error.max(each));
            rest = others;
        }
        Ok(parts)
    }

    /// Computes the integrals of rectangles, and what the nodes may miss: a density between them, and the edge of the
    /// bounds, at which a column of nodes has up to a quarter of the weight.
    fn evaluate(&mut self, cells: &mut [Cell]) -> Result<(), E> {
        let nodes: Vec<[f64; 2]> = cells.iter().flat_map(|cell| cell.nodes().map(|(w, _)| w)).collect();
        let values = self.at(&nodes)?;
        for (cell, values) in cells.iter_mut().zip(values.chunks_exact(NODES.len().pow(2))) {
            let area = 4.0 * cell.half[0] * cell.half[1];
            cell.value =
                area * cell.nodes().zip(values).map(|((_, weight), value)| weight * value).sum::<f64>();
            let seen = values.iter().copied().fold(0.0, f64::max);
            let peak = cell.seeds.iter().map(|&seed| self.peaks[seed as usize]).fold(0.0, f64::max);
            let missed = if peak > MISSED * seen { peak * area } else { 0.0 };
            let inside = cell.corners().into_iter().filter(|&w| self.is_inside(w)).count();
            cell.seen = if (1..4).contains(&inside) { cell.seen.max(seen) } else { seen };
            let cut = if (1..4).contains(&inside) { 0.25 * cell.seen * area } else { 0.0 };
            // Rules of order 2 with a part of the nodes: if they differ by much, the rule of order 6 is no better.
            let corners = [0, 2, 6, 8].iter().map(|&i| values[i]).sum::<f64>() / 4.0;
            let spread = [values[4], corners].map(|value| (value * area - cell.value).abs());
            let spread = spread[0].max(spread[1]);
            let rough = if spread > ROUGH * cell.value { spread } else { 0.0 };
            cell.error = missed.max(cut).max(rough).min(1.0);
        }
        Ok(())
    }

    /// The density in the coordinates of the frame; 0 outside of the bounds.
    fn at(&mut self, w: &[[f64; 2]]) -> Result<Vec<f64>, E> {
        let points: Vec<[f64; 2]> = w.iter().map(|&w| self.frame.to_plane(w)).collect();
        let inside: Vec<[f64; 2]> = points.iter().copied().filter(|&x| is_within(x, &self.bounds)).collect();
        let found = if inside.is_empty() { Vec::new() } else { (self.f)(&inside)? };
        let (mut found, det) = (found.into_iter(), self.frame.det());
        let value =
            |&x: &[f64; 2]| if is_within(x, &self.bounds) { found.next().unwrap_or(0.0) * det } else { 0.0 };
        Ok(points.iter().map(value).collect())
    }
}

/// `n` points of the square from -`reach` to `reach` with nearly equal distances, for any n: multiples of the powers of
/// the inverse plastic number, modulo 1 (Roberts 2018, The unreasonable effectiveness of quasirandom sequences).
pub fn seeds(n: usize, reach: f64) -> impl Iterator<Item = [f64; 2]> {
    const STEP: [f64; 2] = [0.754_877_666_246_692_8, 0.569_840_290_998_053_3];
    (0..n).map(move |i| STEP.map(|step| reach * (2.0 * (0.5 + i as f64 * step).fract() - 1.0)))
}

#[cfg(test)]
mod tests;
