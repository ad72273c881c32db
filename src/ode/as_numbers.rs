//! Solutions as numbers: what files and figures need of a solution, for states of any type.

use super::{PlainState, Solution, Stats};

/// A time and the components of a state.
pub type AtTime = (f64, Vec<f64>);

/// A solution of any kind of state as numbers.
pub trait AsNumbers {
    /// The saved times, and the components of the value saved at each; `None` if rows have their own times.
    fn saved(&self) -> Option<Vec<AtTime>>;

    /// t0 and the ends of the steps. Solves on tensors store them only with dense output.
    fn step_times(&self) -> Vec<f64>;

    /// The components of the dense output at these times; `None` without dense output.
    fn on_curve(&self, ts: &[f64]) -> Option<Vec<Vec<f64>>>;

    /// Whether the saved values lie on the dense output, if there is any.
    fn has_saved_on_curve(&self) -> bool;

    /// The index, the time and the components of each event; no components if rows have their own events.
    fn events(&self) -> Vec<(usize, AtTime)>;

    /// The counters; sums, if rows have their own.
    fn stats(&self) -> Stats;

    /// What is known of the method and its tolerances, followed by the counters.
    fn about(&self) -> String;

    /// The saved values, or those at the step times if there is only dense output.
    fn rows(&self) -> Option<Vec<AtTime>> {
        let saved = self.saved()?;
        if !saved.is_empty() {
            return Some(saved);
        }
        let times = self.step_times();
        let states = self.on_curve(&times).unwrap_or_default();
        Some(times.into_iter().zip(states).collect())
    }

    /// The number of components that a figure shows: of the dense output, or of the saved values if they are others.
    fn num_shown(&self) -> usize {
        let on_curve = || self.on_curve(&self.step_times()[..1])?.first().map(Vec::len);
        let is_on_curve = !self.step_times().is_empty() && self.has_saved_on_curve();
        let saved = || self.saved()?.first().map(|(_, y)| y.len());
        is_on_curve.then(on_curve).flatten().or_else(saved).unwrap_or(0)
    }
}

impl<Y: PlainState, O: PlainState> AsNumbers for Solution<Y, O> {
    fn saved(&self) -> Option<Vec<AtTime>> {
        Some(self.ts.iter().zip(&self.ys).map(|(&t, y)| (t, y.components())).collect())
    }

    fn step_times(&self) -> Vec<f64> {
        self.step_times.clone()
    }

    fn on_curve(&self, ts: &[f64]) -> Option<Vec<Vec<f64>>> {
        let curve = self.dense().ok()?;
        Some(ts.iter().map(|&t| curve.eval(t).map(|y| y.components()).unwrap_or_default()).collect())
    }

    /// Values of a `save_fn` may be others. Values at the times of events are not compared, because the state after a
    /// reset may be saved.
    fn has_saved_on_curve(&self) -> bool {
        let Ok(curve) = self.dense() else { return false };
        self.ts.iter().zip(&self.ys).all(|(&t, y)| {
            self.events.iter().any(|event| event.t == t)
                || curve.eval(t).is_ok_and(|on_curve| on_curve.components() == y.components())
        })
    }

    fn events(&self) -> Vec<(usize, AtTime)> {
        self.events.iter().map(|event| (event.index, (event.t, event.y.components()))).collect()
    }

    fn stats(&self) -> Stats {
        self.stats
    }

    fn about(&self) -> String {
        let Solution { method, rtol, atol, stats, .. } = self;
        format!("{method}, rtol={rtol:e}, atol={atol:e}, {stats}")
    }
}
