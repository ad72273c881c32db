//! `Solution`: the result of a solve of plain states.

use super::shown::shown;
use super::{ConfigError, DenseOutput, EventRecord, Outcome, PlainState, Stats, Tol};
use std::fmt;

/// The solution of a problem, complete or partial; see `outcome`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Solution<Y, O = Y> {
    /// The time reached.
    pub t1: f64,
    /// The state at t1; if the solve ended early, the last good state.
    pub y1: Y,
    /// The saved times.
    pub ts: Vec<f64>,
    /// The saved values at these times: y, or the value of `save_fn`.
    pub ys: Vec<O>,
    /// t0 and the end times of all accepted steps; empty if the solve failed before its first step.
    pub step_times: Vec<f64>,
    /// Records of events, in the order of the solve.
    pub events: Vec<EventRecord<Y>>,
    /// The counters of the solve.
    pub stats: Stats,
    /// Why the solve ended.
    pub outcome: Outcome,
    /// Warnings about the solution.
    pub warnings: Vec<Warning>,
    /// The method used.
    pub method: String,
    /// The relative tolerance used.
    pub rtol: Tol,
    /// The absolute tolerance used.
    pub atol: Tol,
    pub(super) dense: Option<DenseOutput<Y>>,
}

/// A warning about a solve.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// Stability limited the step size, not accuracy. A looser tolerance does not help. Either `h |lambda|` was
    /// near or beyond the end of the method's stability interval in 15 checks, and never below this range in 6
    /// consecutive checks between them. Or a trial step of Rodas5P over many steps of the method met the
    /// tolerance; [`Stats`] do not count the evaluations of trials. Only methods with two stages at c = 1 can
    /// detect this: Tsit5, Dopri5, Vern7, Vern9, and some custom tableaux. Trajectories in lanes are checked
    /// from their 1,000th attempt on. Ensembles and solves on tensors make no trials.
    Stiff {
        /// The time at which stiffness was detected.
        t: f64,
    },
    /// The function of an event grazed zero: at the event its slope in time is 0 or not finite, or the derivative of
    /// the event's time overflows. The time then has no derivative, and the derivatives of the event's record
    /// are NaN. If the event resets the state or ends the solve, all later derivatives are NaN, too.
    Grazing {
        /// The index of the event, in the order of declaration.
        index: usize,
        /// Its time.
        t: f64,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::Stiff { t } => write!(
                f,
                "the problem seems stiff from t={} on: stability limits the explicit steps there, and a looser tolerance does not help; use Method::Rodas5P (or Rkc2 for diffusion)",
                shown(*t)
            ),
            Warning::Grazing { index, t } => write!(
                f,
                "the function of event {index} grazes zero at t={}: its derivative in time is 0 or not finite there, so the time of the event has no derivative. The derivatives of its record are NaN, and all later ones if it resets the state or ends the solve",
                shown(*t)
            ),
        }
    }
}

impl<Y, O> Solution<Y, O> {
    /// The dense output, which evaluates the solution at any time from t0 to t1.
    ///
    /// # Errors
    /// [`ConfigError::NotSaved`] unless [`SaveAt::dense`](super::SaveAt::dense) was selected.
    pub fn dense(&self) -> Result<&DenseOutput<Y>, ConfigError> {
        self.dense.as_ref().ok_or(ConfigError::NotSaved { what: "dense output" })
    }
}

impl<Y, O: PlainState> Solution<Y, O> {
    /// The saved values as numbers: the number of times, the number of components, and the components of each
    /// time in turn.
    ///
    /// # Panics
    /// If the number of components differs between times.
    #[cfg_attr(
        not(any(test, feature = "nalgebra", feature = "ndarray")),
        expect(dead_code, reason = "used by the arrays of these features")
    )]
    pub(super) fn table(&self) -> (usize, usize, Vec<f64>) {
        let columns = self.ys.first().map_or(0, O::num_components);
        let mut numbers = Vec::with_capacity(self.ys.len() * columns);
        for (i, y) in self.ys.iter().enumerate() {
            let n = y.num_components();
            assert!(
                n == columns,
                "ys[{i}] has {n} components but ys[0] has {columns}: all rows of a table must have the same length"
            );
            y.each_component(&mut |x| numbers.push(x));
        }
        (self.ys.len(), columns, numbers)
    }
}

impl<Y, O> fmt::Display for Solution<Y, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Solution { outcome, t1, stats, method, rtol, atol, .. } = self;
        match outcome {
            Outcome::Completed | Outcome::Event { .. } | Outcome::StoppedByOnStep { .. } => {
                write!(f, "{outcome} at t={}", shown(*t1))?;
            }
            // These outcomes print their own time.
            Outcome::MaxSteps { .. }
            | Outcome::MaxEvents { .. }
            | Outcome::Zeno { .. }
            | Outcome::NonFiniteEvent { .. }
            | Outcome::ReversibleUnstable { .. }
            | Outcome::Inconsistent { .. }
            | Outcome::StepSizeTooSmall { .. }
            | Outcome::NonFinite { .. }
            | Outcome::NonFiniteJacobian { .. }
            | Outcome::NonFiniteNorm { .. }
            | Outcome::SingularMatrix { .. }
            | Outcome::Failed { .. } => write!(f, "{outcome}")?,
        }
        write!(f, ": {method}, rtol={rtol:e}, atol={atol:e}, {stats}")?;
        match self.events.len() {
            0 => {}
            1 => write!(f, ", 1 event")?,
            n => write!(f, ", {n} events")?,
        }
        self.warnings.iter().try_for_each(|warning| write!(f, "; {warning}"))
    }
}
