//! A solution as paths to draw: its curve in smooth pieces, its saved points, its events.
//!
//! The drawing code depends only on numbers, not on the type of the solution.
use super::PlotError;
use crate::ode::{AsNumbers, AtTime};

/// Samples per curve, and the minimum and maximum per step.
const SAMPLES: usize = 20_000;
const PER_STEP: [usize; 2] = [2, 24];

/// A point of a path: t, and the drawn values of y.
pub(super) type Point = (f64, Vec<f64>);

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
    pub fn of(solution: &impl AsNumbers, pick: &dyn Fn(&[f64]) -> Vec<f64>) -> Result<Trace, PlotError> {
        let picked = |(t, y): AtTime| (t, pick(&y));
        let events = solution.events();
        let pieces = match solution.has_saved_on_curve() {
            true => sampled(solution, &events, pick),
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

/// Whether a state reset changed the values: they differ by more than a billionth of the step to `end` can explain.
fn jumps(before: &[f64], after: &[f64], end: &[f64]) -> bool {
    let moved =
        |(b, (a, e)): (&f64, (&f64, &f64))| (a - b).abs() > 1e-6 * ((e - a).abs() + a.abs() + b.abs());
    before.iter().zip(after.iter().zip(end)).any(moved)
}
