//! A solution as paths to draw: its curve in smooth pieces, its saved points, its events.
//!
//! Everything of the solution's type ends here; what draws sees numbers alone.
use super::PlotError;
use crate::ode::{DenseOutput, PlainState, Solution, State};

/// Samples of a whole curve, and the least and most in a step.
const SAMPLES: usize = 20_000;
const PER_STEP: [usize; 2] = [2, 24];

/// A point of a path: t, and what is drawn of y.
pub(super) type Point = (f64, Vec<f64>);

/// What is drawn of a solution.
pub(super) struct Trace {
    /// The curve, cut where an event changed the state; straight between saved points where no curve was kept.
    pub pieces: Vec<Vec<Point>>,
    /// Saved points.
    pub dots: Vec<Point>,
    /// Events: their index, and the point on the curve, empty where there is none.
    pub events: Vec<(usize, Point)>,
    /// Method, tolerances, steps: what stands in the figure's files.
    pub about: String,
}

impl Trace {
    /// Traces what `pick` makes of the components.
    ///
    /// Saved values that lie on the curve are its dots. Others, of a `save_fn`, are drawn in place of it: they are
    /// what the caller asked to keep.
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

/// The number of components of what a solution's figure shows.
pub(super) fn num_components<Y: PlainState, O: PlainState>(solution: &Solution<Y, O>) -> usize {
    match solution.dense() {
        Ok(curve) if carries_saved(solution, curve) => solution.y1.num_components(),
        _ => solution.ys.first().map_or(0, State::num_components),
    }
}

/// Whether the saved values are those of the curve: at an event the state may have been saved after its change.
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
            // The curve gives the state before a change at its time; a billionth of the step later it is that after.
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

/// Whether a path is broken: beyond what a billionth of the step to `end` moves it.
fn jumps(before: &[f64], after: &[f64], end: &[f64]) -> bool {
    let moved =
        |(b, (a, e)): (&f64, (&f64, &f64))| (a - b).abs() > 1e-6 * ((e - a).abs() + a.abs() + b.abs());
    before.iter().zip(after.iter().zip(end)).any(moved)
}
