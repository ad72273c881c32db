//! A solution as paths to draw: its curve in smooth pieces, its saved points, its events.
//!
//! The drawing code depends only on numbers, not on the type of the solution.
use super::PlotError;
use crate::ode::{AsNumbers, AtTime};

/// Samples per curve, and the minimum and maximum per step before refinement.
const SAMPLES: usize = 20_000;
const PER_STEP: [usize; 2] = [2, 8];
/// The range of an axis, in pixels.
const AXIS: f64 = 1500.0;
/// The curve is refined until each sample is within this, in pixels, of the chord between its neighbors. A chord between two
/// samples is then within about a quarter of it from the curve, unless [`SAMPLES`] or [`ROUNDS`] ends the refinement.
const BEND: f64 = 1.0;
/// Most rounds of refinement. Each halves the distances between samples.
const ROUNDS: usize = 8;

/// A point of a path: t, and the drawn values of y.
pub(super) type Point = (f64, Vec<f64>);

/// What the axes of a figure show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scales {
    /// All values are on one axis, against t.
    Common,
    /// Each value has an axis of its own.
    Own,
}

/// The drawn parts of a solution.
pub(super) struct Trace {
    /// The curve, cut at state resets; straight between saved points without dense output.
    pub pieces: Vec<Vec<Point>>,
    /// Saved points.
    pub dots: Vec<Point>,
    /// For each event its index, its time, and the values on the curve; no values without dense output.
    pub events: Vec<(usize, Point)>,
    /// Method, tolerances, steps: the description in the figure's files.
    pub about: String,
}

impl Trace {
    /// Traces the values that `pick` selects from the components.
    ///
    /// Saved values on the curve are drawn as dots. Values of a `save_fn` are drawn instead of the curve,
    /// because the caller chose them.
    pub fn of(
        solution: &impl AsNumbers,
        scales: Scales,
        pick: &dyn Fn(&[f64]) -> Vec<f64>,
    ) -> Result<Trace, PlotError> {
        let picked = |(t, y): AtTime| (t, pick(&y));
        let events = solution.events();
        let pieces = match solution.has_saved_on_curve() {
            true => {
                sampled(solution, &events, pick).and_then(|pieces| refined(pieces, solution, scales, pick))
            }
            false => None,
        };
        let saved = match &pieces {
            // Dots of rows with their own times would need a curve each.
            Some(_) => solution.saved().unwrap_or_default(),
            None => solution.saved().ok_or(PlotError::OwnTimes)?,
        };
        let dots: Vec<Point> = saved.into_iter().map(picked).collect();
        let has_curve = pieces.is_some();
        let pieces = match pieces {
            Some(pieces) => pieces,
            None if dots.len() < 2 => return Err(PlotError::NoCurve { found: dots.len() }),
            None => vec![dots.clone()],
        };
        let on_curve = |(t, y): AtTime| match has_curve && !y.is_empty() {
            true => (t, pick(&y)),
            false => (t, Vec::new()),
        };
        let events = events.into_iter().map(|(index, at)| (index, on_curve(at))).collect();
        let trace = Trace { pieces, dots, events, about: solution.about() };
        trace.check()?;
        Ok(trace)
    }

    /// Every point of the curve.
    pub fn points(&self) -> impl Iterator<Item = &Point> {
        self.pieces.iter().flatten()
    }

    fn check(&self) -> Result<(), PlotError> {
        for (index, (_, values)) in self.points().chain(&self.dots).enumerate() {
            if let Some(&value) = values.iter().find(|v| !v.is_finite()) {
                return Err(PlotError::Value { what: "value of the solution at point", index, value });
            }
        }
        Ok(())
    }
}

/// The curve in smooth pieces; `None` without dense output.
fn sampled(
    solution: &impl AsNumbers,
    events: &[(usize, AtTime)],
    pick: &dyn Fn(&[f64]) -> Vec<f64>,
) -> Option<Vec<Vec<Point>>> {
    let step_times = solution.step_times();
    let is_event = |from: f64| events.iter().any(|(_, (t, _))| *t == from);
    let per_step = (SAMPLES / step_times.len().max(1)).clamp(PER_STEP[0], PER_STEP[1]);
    let mut times = vec![*step_times.first()?];
    for ends in step_times.windows(2) {
        let [from, to] = [ends[0], ends[1]];
        if is_event(from) {
            // At the time of a reset the curve has the state before the reset; a billionth of the step later,
            // the state after it.
            times.push(from + 1e-9 * (to - from));
        }
        times.extend((1..per_step).map(|j| from + (to - from) * (j as f64 / per_step as f64)).chain([to]));
    }
    let values = solution.on_curve(&times)?;
    let mut points = times.into_iter().zip(values.iter().map(|y| pick(y)));
    let mut pieces = vec![vec![points.next()?]];
    for ends in step_times.windows(2) {
        let after = is_event(ends[0]).then(|| points.next()).flatten();
        let own: Vec<Point> = points.by_ref().take(per_step).collect();
        let piece = pieces.last_mut().expect("invariant: there is a piece");
        match after {
            Some((_, after)) if jumps(&piece[piece.len() - 1].1, &after, &own[own.len() - 1].1) => {
                pieces.push([vec![(ends[0], after)], own].concat());
            }
            _ => piece.extend(own),
        }
    }
    Some(pieces)
}

/// The curve with further samples where it bends.
fn refined(
    mut pieces: Vec<Vec<Point>>,
    solution: &impl AsNumbers,
    scales: Scales,
    pick: &dyn Fn(&[f64]) -> Vec<f64>,
) -> Option<Vec<Vec<Point>>> {
    let pixels = pixels_per_unit(&pieces, scales);
    for _ in 0..ROUNDS {
        let total: usize = pieces.iter().map(Vec::len).sum();
        let bends: Vec<Vec<f64>> = pieces.iter().map(|piece| bends(piece, &pixels)).collect();
        let least = threshold(&bends, SAMPLES.saturating_sub(total));
        let middle = |pair: &[Point]| pair[0].0 + 0.5 * (pair[1].0 - pair[0].0);
        let of_piece = |(piece, bends): (&Vec<Point>, &Vec<f64>)| -> Vec<f64> {
            let bent = piece.windows(2).zip(bends).filter(|&(_, &bend)| bend > least);
            bent.map(|(pair, _)| middle(pair)).collect()
        };
        let times: Vec<f64> = pieces.iter().zip(&bends).flat_map(of_piece).collect();
        if times.is_empty() {
            break;
        }
        let values = solution.on_curve(&times)?;
        let mut added = times.into_iter().zip(values.iter().map(|y| pick(y)));
        for (piece, bends) in pieces.iter_mut().zip(&bends) {
            let old = std::mem::take(piece);
            for (i, point) in old.into_iter().enumerate() {
                piece.push(point);
                let is_bent = bends.get(i).is_some_and(|&bend| bend > least);
                piece.extend(is_bent.then(|| added.next()).flatten());
            }
        }
    }
    Some(pieces)
}

/// Pixels per unit of each value.
fn pixels_per_unit(pieces: &[Vec<Point>], scales: Scales) -> Vec<f64> {
    let extent = |values: &mut dyn Iterator<Item = f64>| {
        let [low, high] =
            values.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], y| [low.min(y), high.max(y)]);
        if high > low { AXIS / (high - low) } else { 0.0 }
    };
    let (points, n) =
        (|| pieces.iter().flatten(), pieces.first().and_then(|piece| piece.first()).map_or(0, |p| p.1.len()));
    match scales {
        Scales::Common => vec![extent(&mut points().flat_map(|p| p.1.iter().copied())); n],
        Scales::Own => (0..n).map(|j| extent(&mut points().map(|p| p.1[j]))).collect(),
    }
}

/// The distance above which a pair is divided: [`BEND`], or more if there is room for fewer samples.
fn threshold(bends: &[Vec<f64>], room: usize) -> f64 {
    let mut bent: Vec<f64> = bends.iter().flatten().copied().filter(|&bend| bend > BEND).collect();
    if bent.len() <= room {
        return BEND;
    }
    let (_, &mut most, _) = bent.select_nth_unstable_by(room, |a, b| b.total_cmp(a));
    most
}

/// For each pair of neighbors, how far in pixels the curve bends at one of them: the larger distance of the two samples from the
/// chords of their neighbors.
fn bends(piece: &[Point], pixels: &[f64]) -> Vec<f64> {
    let mut pairs = vec![0.0; piece.len().saturating_sub(1)];
    for (i, three) in piece.windows(3).enumerate() {
        let [(t0, y0), (t, y), (t1, y1)] = three else { continue };
        let along = if t1 == t0 { 0.5 } else { (t - t0) / (t1 - t0) };
        let off = |j: usize| (y[j] - y0[j] - along * (y1[j] - y0[j])).abs() * pixels[j];
        let bend = (0..pixels.len()).map(off).fold(0.0, f64::max);
        pairs[i] = bend.max(pairs[i]);
        pairs[i + 1] = bend.max(pairs[i + 1]);
    }
    pairs
}

/// Whether a state reset changed the values: they differ by more than a billionth of the step to `end` can explain.
fn jumps(before: &[f64], after: &[f64], end: &[f64]) -> bool {
    let moved =
        |(b, (a, e)): (&f64, (&f64, &f64))| (a - b).abs() > 1e-6 * ((e - a).abs() + a.abs() + b.abs());
    before.iter().zip(after.iter().zip(end)).any(moved)
}
