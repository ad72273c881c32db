//! `Solution`: what a solve of plain states returns.

use super::{ConfigError, DenseOutput, EventRecord, Outcome, PlainState, Stats, Tol};
use std::fmt;

/// A solved problem, whole or as far as it got: `outcome` says which.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Solution<Y, O = Y> {
    /// The time reached.
    pub t1: f64,
    /// The state there; the last good one where the solve ended early.
    pub y1: Y,
    /// The saved times.
    pub ts: Vec<f64>,
    /// What was saved at them: y, or what `save_fn` made of it.
    pub ys: Vec<O>,
    /// Every accepted time, t0 first.
    pub step_times: Vec<f64>,
    /// Records of events, in the order of the solve.
    pub events: Vec<EventRecord<Y>>,
    /// What it took.
    pub stats: Stats,
    /// Why it ended.
    pub outcome: Outcome,
    /// What the user should know of beside the numbers.
    pub warnings: Vec<Warning>,
    /// The method it ran with.
    pub method: String,
    /// The relative tolerance it ran with.
    pub rtol: Tol,
    /// The absolute tolerance.
    pub atol: Tol,
    pub(super) dense: Option<DenseOutput<Y>>,
}

/// Something suspicious in a solve that ran.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// Steps were as short as stability asks, not accuracy: in 15 looks, with no 6 good ones between them, `h |lambda|`
    /// lay at the end of the method's stability interval. A looser tolerance does not help there. Methods with two
    /// stages at c = 1 can detect it: Tsit5, Dopri5, the Verner pairs. Trajectories in lanes are looked at from their
    /// 1,000th attempt on.
    Stiff {
        /// The time where it was noticed.
        t: f64,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::Stiff { t } => write!(
                f,
                "the problem seems stiff from t={t} on, where stability bounds explicit steps, whatever the tolerance: use Method::Rodas5P (or Rkc2 for diffusion)"
            ),
        }
    }
}

impl<Y, O> Solution<Y, O> {
    /// The whole curve.
    ///
    /// # Errors
    /// [`ConfigError::NotSaved`] unless [`SaveAt::dense`](super::SaveAt::dense) asked for it.
    pub fn dense(&self) -> Result<&DenseOutput<Y>, ConfigError> {
        self.dense.as_ref().ok_or(ConfigError::NotSaved { what: "dense output" })
    }
}

impl<Y, O: PlainState> Solution<Y, O> {
    /// What was saved as numbers: how many times, how many components, and time after time the components.
    ///
    /// # Panics
    /// If what was saved has not the same number of components at each time.
    #[cfg_attr(
        not(any(test, feature = "nalgebra", feature = "ndarray")),
        expect(dead_code, reason = "for the arrays of those two")
    )]
    pub(super) fn table(&self) -> (usize, usize, Vec<f64>) {
        let columns = self.ys.first().map_or(0, O::num_components);
        let mut numbers = Vec::with_capacity(self.ys.len() * columns);
        for (i, y) in self.ys.iter().enumerate() {
            let n = y.num_components();
            assert!(
                n == columns,
                "ys[{i}] has {n} components and ys[0] has {columns}: no table has such rows"
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
            Outcome::Completed | Outcome::Event { .. } | Outcome::Terminated { .. } => {
                write!(f, "{outcome} at t={t1}")?;
            }
            // These tell their time themselves.
            Outcome::MaxSteps { .. }
            | Outcome::MaxEvents { .. }
            | Outcome::Zeno { .. }
            | Outcome::NonFiniteEvent { .. }
            | Outcome::StatesApart { .. }
            | Outcome::StepSizeTooSmall { .. }
            | Outcome::NonFinite { .. }
            | Outcome::NonFiniteJacobian { .. }
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
