//! The step sizes of a solve.
use super::{Axes, Figure, PlotError, axis::thousands};
use crate::ode::AsNumbers;

/// Step sizes against t on a logarithmic axis, with the counts of steps and function evaluations in the title.
///
/// # Errors
/// [`PlotError::NoCurve`] for a solution without steps, or of tensors without dense output.
///
/// # Examples
/// ```
/// use flowline::{ode::{Ode, SaveAt}, plot::extra::step_sizes};
/// let stiff = Ode::new(|_t, y: &[f64; 1]| [-50.0 * y[0]]).save_at(SaveAt::dense()).solve(0.0, 1.0, [1.0])?;
/// assert!(step_sizes(&stiff).is_ok());
/// # Ok::<(), flowline::Error>(())
/// ```
pub fn step_sizes(solution: &impl AsNumbers) -> Result<Figure, PlotError> {
    let times = solution.step_times();
    let steps = times.windows(2).filter(|ends| ends[0] != ends[1]);
    // A step is drawn over its time interval.
    let path: Vec<[f64; 2]> =
        steps.flat_map(|ends| ends.iter().map(|&t| [t, (ends[1] - ends[0]).abs()])).collect();
    if path.is_empty() {
        return Err(PlotError::NoCurve { found: times.len() });
    }
    let count = |n: u64| thousands(&n.to_string());
    let stats = solution.stats();
    let title = format!(
        "{} accepted and {} rejected steps, {} function evaluations",
        count(stats.num_accepted),
        count(stats.num_rejected),
        count(stats.num_fn_evals)
    );
    Axes::new("t", "step size").title(&title).log_y().lines("", &[path], 0).render()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ode::{Ode, SaveAt};

    #[test]
    fn each_step_is_drawn_and_a_solution_without_steps_is_refused() {
        let solve = |t1: f64| {
            let ode = Ode::new(|_t, y: &[f64; 1]| [-50.0 * y[0]]).save_at(SaveAt::dense());
            ode.solve(0.0, t1, [1.0]).unwrap()
        };
        assert!(step_sizes(&solve(1.0)).is_ok());
        assert!(matches!(step_sizes(&solve(0.0)), Err(PlotError::NoCurve { .. })));
    }
}
