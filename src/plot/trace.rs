//! A solution as paths to draw: its curve in smooth pieces, its saved points, its events.
//!
//! The drawing code depends only on numbers, not on the type of the solution.
use super::PlotError;
use crate::ode::{DenseOutput, PlainState, Solution, State};

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
    pub fn of<Y: PlainState, O: PlainState>(
        solution: &Solution<Y, O>,
        pick: &dyn Fn(&[f64]) -> Vec<f64>,
    ) -> Result<Trace, PlotError> {
        let saved = solution.ts.iter().zip(&solution.ys);
        let dots: Vec<Point> = saved.map(|(&t, y)| (t, pick(&y.components()))).collect();
        let curve = solution.dense().ok().filter(|curve| carries_saved(solution, curve));
        let pieces = match curve {
            Some(curve) => sampled(solution, curve, pick),
            None if dots.len() < 2 => return Err(PlotError::NoCurve { found: dots.len() }),
            None => vec![dots.clone()],
        };
        let on_curve = |y: &Y| if curve.is_some() { pick(&y.components()) } else { Vec::new() };
        let events = solution
            .events
            .iter()
            .map(|occurrence| (occurrence.index, (occurrence.t, on_curve(&occurrence.y))))
            .collect();
        let Solution { method, rtol, atol, stats, .. } = solution;
        let about = format!("{method}, rtol={rtol:e}, atol={atol:e}, {stats}");
        let trace = Trace { pieces, dots, events, about };
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

/// The number of components that a figure of a solution shows.
pub(super) fn num_components<Y: PlainState, O: PlainState>(solution: &Solution<Y, O>) -> usize {
    match solution.dense() {
        Ok(curve) if carries_saved(solution, curve) => solution.y1.num_components(),
        _ => solution.ys.first().map_or(0, State::num_components),
    }
}

/// Whether the saved values lie on the curve. Event times are not checked, because the state after a reset may be
/// saved.
fn carries_saved<Y: PlainState, O: PlainState>(solution: &Solution<Y, O>, curve: &DenseOutput<Y>) -> bool {
    solution.ts.iter().zip(&solution.ys).all(|(&t, y)| {
        solution.events.iter().any(|occurrence| occurrence.t == t)
            || curve.eval(t).is_ok_and(|on_curve| on_curve.components() == y.components())
    })
}

fn sampled<Y: PlainState, O>(
    solution: &Solution<Y, O>,
    curve: &DenseOutput<Y>,
    pick: &dyn Fn(&[f64]) -> Vec<f64>,
) -> Vec<Vec<Point>> {
    let at = |t: f64| curve.eval(t).map(|y| pick(&y.components())).unwrap_or_default();
    let step_times = &solution.step_times;
    let mut pieces = vec![vec![(step_times[0], at(step_times[0]))]];
    let per_step = (SAMPLES / step_times.len()).clamp(PER_STEP[0], PER_STEP[1]);
    for ends in step_times.windows(2) {
        let [from, to] = [ends[0], ends[1]];
        if solution.events.iter().any(|occurrence| occurrence.t == from) {
            // At the time of a reset the curve has the state before the reset; a billionth of the step later,
            // the state after it.
            let after = at(from + 1e-9 * (to - from));
            let piece = pieces.last().expect("invariant: there is a piece");
            if jumps(&piece[piece.len() - 1].1, &after, &at(to)) {
                pieces.push(vec![(from, after)]);
            }
        }
        let piece = pieces.last_mut().expect("invariant: there is a piece");
        for j in 1..=per_step {
            let t = if j == per_step { to } else { from + (to - from) * (j as f64 / per_step as f64) };
            piece.push((t, at(t)));
        }
    }
    pieces
}

/// Whether a state reset changed the values: they differ by more than a billionth of the step to `end` can explain.
fn jumps(before: &[f64], after: &[f64], end: &[f64]) -> bool {
    let moved =
        |(b, (a, e)): (&f64, (&f64, &f64))| (a - b).abs() > 1e-6 * ((e - a).abs() + a.abs() + b.abs());
    before.iter().zip(after.iter().zip(end)).any(moved)
}
