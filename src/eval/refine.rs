//! Log-densities at the cells of a grid: solved where the density changes, interpolated elsewhere.
//!
//! First, the cells of every n-th row and column are solved. Then the distance between known cells is halved until it is 1.
//! A cell halfway between known cells is predicted by cubic interpolation of the log-density. It is solved if a solved
//! cell nearby was *rough*, which means that its prediction was off, or if samples lie nearby; elsewhere the prediction
//! stands. A cell that turns out to be rough has its neighbors solved in turn. So cells are solved along the edges and the
//! thin lines of a density, and few of them far from it (interpolating wavelets on a sparse grid: Holmström 1999, Solving
//! hyperbolic PDEs using interpolating wavelets, SIAM J. Sci. Comput. 21).

use super::measure::LogDensity;
use super::{Deadline, Work};
use crate::cnf::config::Flow;
use crate::error::{Error, Result};

/// What a prediction may be off by.
#[derive(Clone, Copy, Debug)]
pub struct Accuracy {
    /// The distance of the cells that are solved first: a power of two. With 1 every cell is solved.
    pub first: usize,
    /// The largest error of a log-density in nats, for densities above the `floor`.
    pub nats: f32,
    /// Log of a density as a fraction of the peak. Below it, only the error of the density counts.
    pub floor: f32,
}

impl Accuracy {
    /// For figures: a factor of 1.1 in the density, above 1e-4 of the peak.
    pub const FIGURE: Accuracy = Accuracy { first: 16, nats: 0.1, floor: -9.0 };
    /// For numbers: 0.02 nats, above 1e-6 of the peak.
    pub const NUMBERS: Accuracy = Accuracy { first: 8, nats: 0.02, floor: -14.0 };
    /// Every cell is solved.
    pub const EVERY_CELL: Accuracy = Accuracy { first: 1, ..Accuracy::NUMBERS };

    /// The distance of the cells that are solved first on a grid of this shape.
    pub fn first_of(self, [rows, cols]: [usize; 2]) -> usize {
        if rows * cols <= SMALL { 1 } else { self.first }
    }
}

/// The largest error of a density, as a fraction of the peak.
const OF_PEAK: f32 = 1e-4;
/// The largest difference between a prediction and the mean of its two neighbors, in nats. Beyond a cliff of the
/// log-density, a cubic would overshoot.
const BEND: f32 = 0.5;
/// How often rough cells have their neighbors solved at one distance.
const ROUNDS: i32 = 16;
/// On a grid of fewer cells every cell is solved.
const SMALL: usize = 4096;

/// What is known of a cell, as bits.
const SOLVED: u8 = 1;
const WANTED: u8 = 2;
const ROUGH: u8 = 4;

/// A row and a column.
pub type Place = [usize; 2];

/// Solves cells: their log-densities in nats, or `None` if there is no time for them. The second argument has the fractions
/// of all work that are done before and after these cells.
pub type Solve<'a, E> = dyn FnMut(&[Place], [f64; 2]) -> Result<Option<Vec<f32>>, E> + 'a;

/// A grid whose cells are solved or predicted.
#[derive(Debug)]
pub struct Refined {
    /// The number of rows and of columns.
    pub shape: [usize; 2],
    /// The largest log-density that is known beforehand, for example of samples.
    pub peak: f32,
    /// Cells in which samples lie.
    pub seeds: Vec<Place>,
    /// What a prediction may be off by.
    pub accuracy: Accuracy,
}

impl Refined {
    /// A grid of which nothing is known.
    pub fn new(shape: [usize; 2], accuracy: Accuracy) -> Refined {
        Refined { shape, peak: f32::NEG_INFINITY, seeds: Vec::new(), accuracy }
    }

    /// The log-densities of all cells, row-major, and the number of cells that were solved; `None` if there was no time
    /// for all of them. Cells up to `first` beyond the last row and column may be solved too.
    ///
    /// # Errors
    /// Errors of `solve`.
    pub fn eval<E>(&self, solve: &mut Solve<'_, E>) -> Result<Option<(Vec<f32>, usize)>, E> {
        let [rows, cols] = self.shape;
        let first = self.accuracy.first_of(self.shape);
        let whole = |n: usize| (n - 1).div_ceil(first) * first + 1;
        let (high, wide) = (whole(rows), whole(cols));
        let on_row = |row: usize| (0..wide).step_by(first).map(move |col| row * wide + col);
        let known: Vec<usize> = (0..high).step_by(first).flat_map(on_row).collect();
        let mut lattice = Lattice {
            wide,
            values: vec![f32::NAN; high * wide],
            marks: vec![0; high * wide],
            wanted: known.clone(),
            rough: Vec::new(),
            peak: self.peak,
            num_solved: 0,
            accuracy: self.accuracy,
        };
        // Each halving of the distance is taken to be three times as much work as the one before it.
        let halvings = first.trailing_zeros();
        let begin =
            |halving: u32| (3f64.powf(halving.into()) - 1.0) / (3f64.powf(halvings as f64 + 1.0) - 1.0);
        if !lattice.solve([0.0, begin(1)], solve)? {
            return Ok(None);
        }
        lattice.judge_first(&known);
        for halving in 1..=halvings {
            let share = [halving, halving + 1].map(begin);
            if !lattice.halve(first >> halving, &self.seeds, share, solve)? {
                return Ok(None);
            }
        }
        let row = |row: usize| &lattice.values[row * wide..][..cols];
        Ok(Some(((0..rows).flat_map(row).copied().collect(), lattice.num_solved)))
    }
}

/// Solves the cells of a [`Refined`] grid by a flow.
pub struct OfFlow<'a, C> {
    /// The program that evaluates log-densities.
    pub density: &'a LogDensity,
    /// The flow.
    pub flow: &'a Flow,
    /// The center of a cell in standardized coordinates.
    pub center: C,
    /// When the work must end.
    pub by: &'a Deadline,
}

impl<C: Fn(Place) -> [f32; 2]> OfFlow<'_, C> {
    /// [`Refined::eval`] by the flow, in standardized coordinates. `progress` takes the fraction that is done.
    ///
    /// # Errors
    /// A solve that ended early.
    pub fn eval(&self, grid: &Refined, progress: &mut dyn FnMut(f64)) -> Result<Option<(Vec<f32>, usize)>> {
        grid.eval(&mut |places: &[Place], [from, to]: [f64; 2]| {
            let mut found = Vec::with_capacity(places.len());
            for part in places.chunks(self.density.rows_per_call()) {
                let rows = self.density.rows_solved(part.len()) as f64;
                if !self.by.fits(Work::Grid, rows) {
                    return Ok(None);
                }
                let points: Vec<[f32; 2]> = part.iter().map(|&place| (self.center)(place)).collect();
                let solve = || self.density.eval(self.flow, &points);
                found.extend(self.by.watch.run(Work::Grid, rows, solve)?);
                progress(from + (to - from) * found.len() as f64 / places.len() as f64);
            }
            Ok::<_, Error>(Some(found))
        })
    }
}

/// The cells of a grid, and of the rows and columns up to the last that is solved first.
struct Lattice {
    wide: usize,
    values: Vec<f32>,
    marks: Vec<u8>,
    /// The cells that are solved next.
    wanted: Vec<usize>,
    /// The rough cells.
    rough: Vec<usize>,
    peak: f32,
    num_solved: usize,
    accuracy: Accuracy,
}

impl Lattice {
    /// Solves the wanted cells in an order in which neighbors are close: along a Z curve.
    fn solve<E>(&mut self, share: [f64; 2], solve: &mut Solve<'_, E>) -> Result<bool, E> {
        let wide = self.wide;
        self.wanted.sort_unstable_by_key(|&at| interleaved([at / wide, at % wide]));
        let places: Vec<Place> = self.wanted.iter().map(|&at| [at / wide, at % wide]).collect();
        let Some(found) = solve(&places, share)? else { return Ok(false) };
        for (at, value) in self.wanted.drain(..).zip(found) {
            self.values[at] = value;
            self.marks[at] |= SOLVED;
            self.peak = self.peak.max(value);
        }
        self.num_solved += places.len();
        Ok(true)
    }

    /// The first cells have no prediction: those with a density that counts are rough.
    fn judge_first(&mut self, first: &[usize]) {
        let least = self.peak + self.accuracy.floor.min(OF_PEAK.ln());
        self.rough.extend(first.iter().filter(|&&at| self.values[at] > least));
        self.rough.iter().for_each(|&at| self.marks[at] |= ROUGH);
    }

    /// Halves the distance between known cells, to `half`. It begins and ends at these fractions of all work.
    fn halve<E>(
        &mut self,
        half: usize,
        seeds: &[Place],
        [begin, end]: [f64; 2],
        solve: &mut Solve<'_, E>,
    ) -> Result<bool, E> {
        if half > 1 {
            seeds.iter().for_each(|&seed| self.want_near(seed, half));
        }
        let mut seen = 0;
        for round in 0.. {
            // The first round is near the rough cells of all larger distances.
            if round < ROUNDS {
                for i in seen..self.rough.len() {
                    self.want_near([self.rough[i] / self.wide, self.rough[i] % self.wide], half);
                }
                seen = self.rough.len();
            }
            if round > 0 && self.wanted.is_empty() {
                break;
            }
            // Each round solves most of what was left.
            let share = [round, round + 1].map(|round| begin + (end - begin) * (1.0 - 0.3f64.powi(round)));
            if !self.wanted.is_empty() && !self.solve(share, solve)? {
                return Ok(false);
            }
            self.predict(half);
        }
        Ok(true)
    }

    /// Wants the unsolved cells, `half` apart, at most `2 half` from a place.
    fn want_near(&mut self, place: Place, half: usize) {
        let ends = [self.values.len() / self.wide, self.wide];
        let near = |a: usize| {
            let from = place[a].saturating_sub(2 * half).next_multiple_of(half);
            (from..ends[a].min(place[a] + 2 * half + 1)).step_by(half)
        };
        // Cells at larger distances are known already.
        let is_known = |row: usize, col: usize| [row, col].iter().all(|x| x.is_multiple_of(2 * half));
        for row in near(0) {
            near(1).filter(|&col| !is_known(row, col)).for_each(|col| self.want(row * self.wide + col));
        }
    }

    /// Wants a cell, unless it is solved or wanted.
    fn want(&mut self, at: usize) {
        if self.marks[at] & (SOLVED | WANTED) == 0 {
            self.marks[at] |= WANTED;
            self.wanted.push(at);
        }
    }

    /// Predicts all cells halfway between known ones; wants those without a finite prediction.
    fn predict(&mut self, half: usize) {
        let (wide, high) = (self.wide, self.values.len() / self.wide);
        let num = |side: usize| (side - 1) / (2 * half) + 1;
        for row in (0..high).step_by(2 * half) {
            self.predict_line(row * wide, half, num(wide));
        }
        for col in (0..wide).step_by(2 * half) {
            self.predict_line(col, half * wide, num(high));
        }
        for row in (half..high).step_by(2 * half) {
            self.predict_line(row * wide, half, num(wide));
        }
    }

    /// Predicts the cells of a line between its `num` known cells, which are `2 step` apart.
    fn predict_line(&mut self, start: usize, step: usize, num: usize) {
        for k in 0..num - 1 {
            let known = |k: usize| self.values[start + 2 * k * step];
            let second = |k: usize| known(k - 1) - 2.0 * known(k) + known(k + 1);
            let (left, right) = ((k > 0).then(|| second(k)), (k + 2 < num).then(|| second(k + 1)));
            let bend = match (left, right) {
                (Some(left), Some(right)) => left + right,
                (Some(one), None) | (None, Some(one)) => 2.0 * one,
                (None, None) => 0.0,
            };
            let predicted = 0.5 * (known(k) + known(k + 1)) - (bend / 16.0).clamp(-BEND, BEND);
            let at = start + (2 * k + 1) * step;
            if self.marks[at] & SOLVED != 0 {
                if self.marks[at] & ROUGH == 0 && self.is_off(self.values[at], predicted) {
                    self.marks[at] |= ROUGH;
                    self.rough.push(at);
                }
            } else {
                self.values[at] = predicted;
                if !predicted.is_finite() {
                    self.want(at);
                }
            }
        }
    }

    /// Whether a prediction is too far from the solved value.
    fn is_off(&self, solved: f32, predicted: f32) -> bool {
        if !predicted.is_finite() {
            return solved.is_finite();
        }
        let [solved, predicted] = [solved - self.peak, predicted - self.peak];
        let of_peak = (solved.exp() - predicted.exp()).abs() > OF_PEAK;
        of_peak
            || (solved.max(predicted) > self.accuracy.floor
                && (solved - predicted).abs() > self.accuracy.nats)
    }
}

/// The bits of a row and of a column in turn: places that are close along this number are close in the plane.
fn interleaved([row, col]: Place) -> u64 {
    let spread = |x: usize| (0..32).fold(0, |all: u64, bit| all | ((x as u64 >> bit) & 1) << (2 * bit));
    spread(row) << 1 | spread(col)
}

#[cfg(test)]
mod tests;
