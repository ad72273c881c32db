//! Scores of a learned density: NLL on held-out points, KL divergence from a known density, and samples.
//!
//! Every log-density uses the exact divergence and its own tolerance, independent of the settings in
//! training. A compiled program takes a fixed number of rows, so it is compiled once for any number of
//! points.

use super::deadline::{Deadline, Work};
use super::most::at_most;
use crate::cnf::config::Flow;
use crate::cnf::{Chunked, Divergence, ErrorNorm};
use crate::data::{Estimate, ImageDensity, Standardizer, ToyDensity};
use crate::error::{Error, Result};
use crate::nn::VelocityField;
use crate::ode::{Method, SolveError};
use crate::tensor::{Key, Tensor};
use rand::Rng;
use rayon::prelude::*;
use std::borrow::Cow;

/// Rows per call: enough to keep many threads busy, and few enough that the last call, which is filled up to this
/// number, wastes little time.
pub const ROWS: usize = 4096;
/// Rows per call for points that may be far from the data. Such a call may take a minute, so progress is
/// reported between calls.
const PART: usize = 1024;
/// Rows of the smaller program for the last points: a multiple of a tile.
const FEW: usize = 256;
/// Rows per tile by default. The number of rows per call is a multiple of it.
const TILE: usize = 64;
/// Tolerance of the log-densities of rows, relative and absolute.
pub const MEASURE_TOLERANCE: f64 = 1e-6;
/// Tolerance of the scores of a run, which are means. On the default run, the mean over 2,048 rows is off by 3e-7 nats, a
/// single row by at most 4e-3; the standard error of such a mean is 1e-3 or more.
pub const SCORE_TOLERANCE: f64 = 1e-5;
/// Tolerance of densities on grids and of samples: errors of this size are not visible in a figure, and
/// change a total probability by much less than 1e-3.
pub const DRAW_TOLERANCE: f64 = 1e-4;
/// [`DRAW_TOLERANCE`], relative and absolute.
pub const DRAWN: (f64, f64) = (DRAW_TOLERANCE, DRAW_TOLERANCE);

/// The largest number of rows that a score leaves out because their solves ended early.
const LOST: usize = 4;

/// Distance from the center in standard deviations beyond which densities count as 0 in figures and total
/// probabilities: a normal density has exp(-450) there. A solve takes thousands of steps for points farther out.
const REACH: f64 = 30.0;

/// Log-densities of any number of points, with one tolerance and one compiled program.
pub struct LogDensity {
    program: Chunked<'static, Flow, Tensor>,
    rows: usize,
    /// The same for [`FEW`] rows: for the last points, which fill a small part of a call.
    few: Chunked<'static, Flow, Tensor>,
    reach: f64,
    by_distance: bool,
    tolerances: (f64, f64),
}

impl LogDensity {
    /// Evaluates with these tolerances, for figures and total probabilities: the density is 0 beyond 30
    /// standard deviations.
    pub fn new(rtol: f64, atol: f64) -> LogDensity {
        LogDensity::of_rows(ROWS, rtol, atol).within(REACH)
    }

    /// Evaluates with these tolerances, for held-out points, in parts so that progress can be reported.
    pub fn for_measures(rtol: f64, atol: f64) -> LogDensity {
        LogDensity::of_rows(PART, rtol, atol)
    }

    /// Evaluates with these tolerances, for `num_points` points at any distance from the data.
    pub fn for_points(num_points: usize, rtol: f64, atol: f64) -> LogDensity {
        LogDensity::of_rows(LogDensity::rows_for(num_points), rtol, atol)
    }

    /// For held-out points and for figures like [`LogDensity::for_measures`] and [`LogDensity::new`], with these
    /// tolerances each, in short calls, so that the time of a call is a small part of a time limit. There are enough
    /// tiles for all threads.
    pub fn in_short_calls(measure: f64, draw: f64) -> [LogDensity; 2] {
        let tiles = (2 * rayon::current_num_threads()).max(4);
        let of = |tiles: usize, tolerance: f64| {
            LogDensity::of_rows((tiles * TILE).min(ROWS), tolerance, tolerance)
        };
        [of(tiles, measure), of(2 * tiles, draw).within(REACH)]
    }

    fn of_rows(rows: usize, rtol: f64, atol: f64) -> LogDensity {
        // The last column of a flow with classes has the class of the row.
        let solve = move |flow: &Flow, x: &Tensor, _: &Key| {
            let (mut flow, mut x) = (flow.clone().method(Method::Tsit5), x.clone());
            if flow.blocks[0].num_classes() > 0 {
                let dim = flow.base.dim;
                flow = flow.condition_on_classes(&x.slice(1, dim..dim + 1));
                x = x.slice(1, 0..dim);
            }
            let x = &x;
            flow.error_norm(ErrorNorm::default()).rtol(rtol).atol(atol).log_prob(x)
        };
        let rows = rows.min(at_most(rows).next_multiple_of(TILE));
        let (program, few) = (Chunked::new(rows, solve), Chunked::new(FEW, solve));
        LogDensity { program, rows, few, reach: f64::INFINITY, by_distance: false, tolerances: (rtol, atol) }
    }

    /// Sets the distance in standard deviations beyond which the density is 0.
    pub fn within(self, reach: f64) -> LogDensity {
        LogDensity { reach, ..self }
    }

    /// Solves the rows of each call in the order of their distances from the center. A point far from the data needs several
    /// times as many steps as the others, and the rows of a tile share their steps.
    pub fn by_distance(self) -> LogDensity {
        LogDensity { by_distance: true, ..self }
    }

    /// Number of rows per call of this program.
    pub fn rows_per_call(&self) -> usize {
        self.rows
    }

    /// The number of rows that a call for `num_points` points solves. It fills up the rows of its program.
    pub fn rows_solved(&self, num_points: usize) -> usize {
        if self.takes_few(num_points) { num_points.next_multiple_of(FEW) } else { self.rows }
    }

    /// Whether the smaller program solves this many points with at most half of the rows.
    fn takes_few(&self, num_points: usize) -> bool {
        2 * num_points.next_multiple_of(FEW) <= self.rows
    }

    /// Number of rows per call for `num_points` points.
    pub fn rows_for(num_points: usize) -> usize {
        num_points.min(PART).next_multiple_of(TILE).max(TILE)
    }

    /// The log-density of each point in nats, both in standardized coordinates.
    ///
    /// # Errors
    /// A solve that ended early.
    pub fn eval(&self, flow: &Flow, points: &[[f32; 2]]) -> Result<Vec<f32>> {
        self.eval_rows(flow, points.as_flattened(), 2)
    }

    /// [`LogDensity::eval`] for points of any dimension, row-major.
    ///
    /// # Errors
    /// A solve that ended early.
    pub fn eval_rows(&self, flow: &Flow, points: &[f32], dim: usize) -> Result<Vec<f32>> {
        let point = |i: usize| &points[i * dim..(i + 1) * dim];
        let mut found = vec![f32::NEG_INFINITY; points.len() / dim];
        let distance = |i: usize| point(i).iter().fold(0.0, |r: f64, &x| r.hypot(f64::from(x)));
        let mut near: Vec<usize> = (0..found.len()).filter(|&i| distance(i) <= self.reach).collect();
        for part in near.chunks_mut(self.rows) {
            if self.by_distance {
                part.sort_by(|&i, &j| distance(i).total_cmp(&distance(j)));
            }
            let rows: Vec<f32> = part.iter().flat_map(|&i| point(i)).copied().collect();
            let rows = Tensor::from_vec([part.len(), dim], rows).cast(flow.dtype());
            let program = if self.takes_few(part.len()) { &self.few } else { &self.program };
            let log_probs = program.call(flow, &rows, &Key::new(0))?.to_vec();
            part.iter().zip(log_probs).for_each(|(&i, x)| found[i] = x as f32);
        }
        Ok(found)
    }

    /// [`LogDensity::eval_rows`], except that a row whose solve ends early is an entry of `lost` instead of an error,
    /// and has the log-density NaN.
    ///
    /// The rows of a tile share their steps, so a row whose solve ends early ends the solves of others. Tiles, then
    /// single rows, are solved again by smaller programs.
    ///
    /// # Errors
    /// More than [`LOST`] solves ended early: the cause is then the flow, not a row.
    fn eval_solved(
        &self,
        flow: &Flow,
        points: &[f32],
        (dim, first): (usize, usize),
        lost: &mut Vec<usize>,
    ) -> Result<Vec<f32>> {
        match self.eval_rows(flow, points, dim) {
            Err(Error::Solve(SolveError::Incomplete { .. })) if self.rows == 1 && lost.len() < LOST => {
                lost.push(first);
                Ok(vec![f32::NAN])
            }
            Err(Error::Solve(SolveError::Incomplete { .. })) if self.rows > 1 => {
                let (rows, (rtol, atol)) = (if self.rows > TILE { TILE } else { 1 }, self.tolerances);
                let smaller = LogDensity::of_rows(rows, rtol, atol).within(self.reach);
                let mut found = Vec::with_capacity(points.len() / dim);
                for (i, part) in points.chunks(rows * dim).enumerate() {
                    found.extend(smaller.eval_solved(flow, part, (dim, first + i * rows), lost)?);
                }
                Ok(found)
            }
            found => found,
        }
    }

    /// Number of traces of the program.
    pub fn traces(&self) -> usize {
        self.program.traces() + self.few.traces()
    }
}

/// Held-out points.
pub struct HeldOutRows {
    /// Standardized, row-major.
    pub points: Vec<f32>,
    /// Log-density of each under the target density, in standardized coordinates, if known.
    pub log_p: Option<Vec<f64>>,
    /// The place of each row in its file, for messages; empty for rows that are sampled.
    pub places: Vec<String>,
    /// The number of each row's class; empty without classes.
    pub labels: Vec<u16>,
}

impl HeldOutRows {
    /// Points of an image with their true log-densities.
    pub(crate) fn of_image<R: Rng + ?Sized>(image: &ImageDensity, n: usize, rng: &mut R) -> HeldOutRows {
        let points = image.sample(n, rng);
        let log_p = Some(image.log_probs(&points));
        HeldOutRows { points: points.into_flattened(), log_p, places: Vec::new(), labels: Vec::new() }
    }

    /// Points of a toy density with their true log-densities, evaluated before rounding to f32: a rounded point may lie
    /// off the checkerboard.
    pub(crate) fn of_toy<R: Rng + ?Sized>(
        toy: ToyDensity,
        standard: &Standardizer,
        n: usize,
        rng: &mut R,
    ) -> HeldOutRows {
        let (drawn, density, shift) = (toy.sample(n, rng), toy.density(), standard.log_jacobian());
        let points = standard.transform(drawn.as_flattened()).into_iter().map(|x| x as f32).collect();
        let log_p = Some(drawn.par_iter().map(|&x| density.log_prob(x) - shift).collect());
        HeldOutRows { points, log_p, places: Vec::new(), labels: Vec::new() }
    }
}

/// Rows, with their class as the last column if they have labels, and the number of columns: what [`LogDensity`] of a
/// flow with classes takes.
pub fn with_labels<'a>(points: &'a [f32], labels: &[u16], dim: usize) -> (Cow<'a, [f32]>, usize) {
    if labels.is_empty() {
        return (points.into(), dim);
    }
    let rows = points.chunks_exact(dim).zip(labels);
    let rows = rows.flat_map(|(row, &k)| row.iter().copied().chain([f32::from(k)]));
    (rows.collect::<Vec<_>>().into(), dim + 1)
}

/// The score of a flow on held-out points, in nats.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Score {
    /// Mean negative log-density.
    pub nll: Estimate,
    /// Mean of `log p(x) - log q(x)`, if the target density p is known: an estimate of the KL divergence. Its
    /// standard error is 0 for a perfect model.
    pub gap: Option<Estimate>,
    /// Rows that the means leave out, because their solves ended early.
    pub lost: Option<Lost>,
}

/// Rows whose log-density could not be computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lost {
    /// Their number.
    pub count: usize,
    /// The index of the first, from 0.
    pub first: usize,
}

impl Score {
    /// The most precise estimate of the NLL: for a known density, its entropy plus the KL divergence.
    pub fn best_nll(self, entropy_nats: Option<f64>) -> Estimate {
        self.gap.zip(entropy_nats).map_or(self.nll, |(gap, entropy)| gap.plus(entropy))
    }

    /// The score over both sets of points.
    pub fn merge(self, other: Score) -> Score {
        let gap = self.gap.zip(other.gap).map(|(a, b)| a.merge(b));
        let lost = match (self.lost, other.lost) {
            (Some(a), Some(b)) => Some(Lost { count: a.count + b.count, ..a }),
            (a, b) => a.or(b),
        };
        Score { nll: self.nll.merge(other.nll), gap, lost }
    }
}

/// Scores a flow on the first `most` rows, or on as many of them as there is time for, in standardized
/// coordinates. Leaves out rows whose solves end early.
///
/// # Errors
/// More than [`LOST`] such rows in one part.
pub fn score(
    density: &LogDensity,
    flow: &Flow,
    (rows, most): (&HeldOutRows, usize),
    dim: usize,
    by: &Deadline,
    progress: impl FnMut(f64),
) -> Result<Score> {
    let mut all: Option<Score> = None;
    let n = at_most(most.min(rows.points.len() / dim));
    let chunk = density.rows_per_call();
    by.in_chunks((Work::Score, n, chunk, chunk), progress, |part| {
        let points = &rows.points[part.start * dim..part.end * dim];
        let labels = if rows.labels.is_empty() { &[][..] } else { &rows.labels[part.clone()] };
        let (points, width) = with_labels(points, labels, dim);
        let mut lost = Vec::new();
        let log_q = density.eval_solved(flow, &points, (width, part.start), &mut lost)?;
        let solved = || part.clone().zip(&log_q).filter(|(row, _)| !lost.contains(row));
        let gap = |log_p: &Vec<f64>| {
            Estimate::of(&solved().map(|(row, &q)| log_p[row] - f64::from(q)).collect::<Vec<_>>())
        };
        let found = Score {
            nll: Estimate::of(&solved().map(|(_, &q)| -f64::from(q)).collect::<Vec<_>>()),
            gap: rows.log_p.as_ref().map(gap),
            lost: lost.first().map(|&first| Lost { count: lost.len(), first }),
        };
        all = Some(all.map_or(found, |all| all.merge(found)));
        Ok::<_, Error>(())
    })?;
    Ok(all.unwrap_or_default())
}

/// Samples of a flow, any number of them with one compiled program.
pub struct Sampler {
    program: Chunked<'static, Flow, Tensor>,
    rows: usize,
}

impl Sampler {
    /// Samples with this relative and absolute tolerance.
    pub fn with_tolerances(tolerances: (f64, f64)) -> Sampler {
        let push = move |flow: &Flow, z: &Tensor, _: &Key| drawable(flow, tolerances).push_forward(z);
        Sampler { program: Chunked::new(ROWS, push), rows: ROWS }
    }

    /// Samples with [`DRAW_TOLERANCE`] in parts of this many rows, which determine the samples of a key.
    pub fn of_rows(rows: usize) -> Sampler {
        let push = |flow: &Flow, z: &Tensor, _: &Key| drawable(flow, DRAWN).push_forward(z);
        Sampler { program: Chunked::new(rows, push), rows }
    }

    /// Samples in this many steps of fixed cost; otherwise as [`Sampler::with_tolerances`], from the same points of the base.
    pub fn in_steps(steps: usize) -> Sampler {
        let push = move |flow: &Flow, z: &Tensor, _: &Key| flow.push_forward_in_steps(z, steps);
        Sampler { program: Chunked::new(ROWS, push), rows: ROWS }
    }

    /// Number of rows per call of this program.
    pub fn rows_per_call(&self) -> usize {
        self.rows
    }

    /// Number of traces of the program.
    pub fn traces(&self) -> usize {
        self.program.traces()
    }

    /// The points to which the flow maps points of its base, row-major.
    ///
    /// # Errors
    /// A solve that ended early.
    pub fn push(&self, flow: &Flow, base: &[f32]) -> Result<Vec<f64>> {
        let dim = flow.blocks[0].dim();
        let z = Tensor::from_vec([base.len() / dim, dim], base.to_vec()).cast(flow.dtype());
        Ok(self.program.call(flow, &z, &Key::new(0))?.to_vec())
    }

    /// n samples in standardized coordinates, row-major, in parts. With the same key, a longer draw
    /// starts with the samples of a shorter one.
    pub fn draw<'a>(
        self,
        flow: &'a Flow,
        n: usize,
        key: &'a Key,
    ) -> impl Iterator<Item = Result<Vec<f64>>> + 'a {
        (0u32..)
            .zip((0..n).step_by(self.rows))
            .map(move |(i, start)| self.part(flow, (n - start).min(self.rows), &key.fold_in(i)))
    }

    /// Up to as many samples as a part has, in standardized coordinates, row-major.
    ///
    /// # Errors
    /// A solve that ended early.
    pub fn part(&self, flow: &Flow, n: usize, key: &Key) -> Result<Vec<f64>> {
        let z = flow.base.sample(self.rows, flow.dtype(), key);
        // The rows of a tile share their steps, so the last part is computed whole and truncated.
        let mut points = self.program.call(flow, &z, key)?.to_vec();
        points.truncate(n * flow.base.dim);
        Ok(points)
    }
}

/// Samples of a flow and their log-densities from one solve each, any number of them with one compiled program.
pub struct PairSampler {
    program: Chunked<'static, Flow, (Tensor, Tensor)>,
}

impl PairSampler {
    /// Solves with this relative and absolute tolerance, and with the exact divergence.
    pub fn new((rtol, atol): (f64, f64)) -> PairSampler {
        let push = move |flow: &Flow, z: &Tensor, key: &Key| {
            let flow = drawable(flow, (rtol, atol)).error_norm(ErrorNorm::default());
            flow.divergence(Divergence::Exact).push_with_density(z, key)
        };
        PairSampler { program: Chunked::new(ROWS, push) }
    }

    /// n samples, row-major, and their log-densities, both in standardized coordinates, in parts. With the same key,
    /// they start from the points of the base from which [`Sampler::draw`] starts.
    pub fn draw<'a>(
        self,
        flow: &'a Flow,
        n: usize,
        key: &'a Key,
    ) -> impl Iterator<Item = Result<(Vec<f64>, Vec<f64>)>> + 'a {
        let dim = flow.blocks[0].dim();
        (0u32..).zip((0..n).step_by(ROWS)).map(move |(i, start)| {
            let z = flow.base.sample(ROWS, flow.dtype(), &key.fold_in(i));
            let (points, log_probs) = self.program.call(flow, &z, key)?;
            let (mut points, mut log_probs) = (points.to_vec(), log_probs.to_vec());
            points.truncate((n - start) * dim);
            log_probs.truncate(n - start);
            Ok((points, log_probs))
        })
    }
}

/// The flow with solver options for sampling, independent of the settings in training.
pub fn drawable(flow: &Flow, (rtol, atol): (f64, f64)) -> Flow {
    flow.clone().method(Method::Tsit5).rtol(rtol).atol(atol)
}
