//! `SaveAt`: which times of a solve are saved.
//!
//! Data only. The driver saves y, or the value of `save_fn`, at these times.

use super::{ConfigError, OdeState};
use std::borrow::Cow;

/// What a solve saves: any mix of t0, t1, given times, every n-th accepted step, and dense output.
///
/// The saved times are the union of the selected times, in the order of the solve and without repetitions. A
/// solve that ends early saves the selected times before its end, and its end instead of t1. Dense output alone
/// saves no time. The default saves t1.
///
/// Values at given times come from the dense output of the step that contains them, so they do not change the
/// steps. At the end of a step, the value is that of the step itself.
///
/// The time axis is the first: `ys[i]` for plain states, `[time, ..y]` on tensors. The shapes of tensors are
/// fixed before the solve, so there is a row for each given time. If steps are saved, there are also rows for
/// the maximum number of accepted steps: `max_steps`, or the number of steps for constant steps and `StepTo`.
/// Unused rows at the end are NaN; the solution's `num_saved` is the number of used rows. On tensors, methods
/// whose dense output needs extra stages (order 7 and above, and methods with the cubic Hermite interpolant
/// that are not FSAL) evaluate these stages in every attempt if given times or dense output are saved, or if
/// there are events.
///
/// # Examples
/// ```
/// use flowline::ode::{Ode, SaveAt};
/// let decay = Ode::new(|_t, y: &f64| -y).save_at(SaveAt::ts(&[0.5, 1.0]).and_dense());
/// let solution = decay.solve(0.0, 2.0, 1.0)?;
/// assert_eq!(solution.ts, [0.5, 1.0]);
/// assert!((solution.ys[0] - (-0.5_f64).exp()).abs() < 1e-6);
/// assert!((solution.dense()?.eval(1.7)? - (-1.7_f64).exp()).abs() < 1e-6);
/// # Ok::<(), flowline::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SaveAt {
    pub(crate) t0: bool,
    pub(crate) t1: bool,
    /// The given times, list by list.
    pub(crate) ts: Vec<f64>,
    /// Where the second and each further list of times starts.
    starts: Vec<usize>,
    /// Saves every n-th accepted step; 0 for none.
    pub(crate) every: usize,
    /// Another n, of which neither is a multiple of the other; 0 for none. A solve refuses it.
    other: usize,
    pub(crate) dense: bool,
}

impl Default for SaveAt {
    fn default() -> Self {
        SaveAt::t1()
    }
}

impl SaveAt {
    const NOTHING: SaveAt =
        SaveAt { t0: false, t1: false, ts: Vec::new(), starts: Vec::new(), every: 0, other: 0, dense: false };

    /// Saves the value at t0.
    pub fn t0() -> Self {
        SaveAt { t0: true, ..Self::NOTHING }
    }
    /// Saves the end: t1, or the time at which the solve ended early.
    pub fn t1() -> Self {
        SaveAt { t1: true, ..Self::NOTHING }
    }
    /// Saves these times, which must be in the order of the solve.
    pub fn ts(ts: &[f64]) -> Self {
        SaveAt { ts: ts.to_vec(), ..Self::NOTHING }
    }
    /// Saves `n` equally spaced times from `start` to `end`.
    ///
    /// # Examples
    /// ```
    /// assert_eq!(flowline::ode::SaveAt::linspace(0.0, 1.0, 3), [0.0, 0.5, 1.0].into());
    /// ```
    pub fn linspace(start: f64, end: f64, n: usize) -> Self {
        SaveAt { ts: linspace(start, end, n), ..Self::NOTHING }
    }
    /// Saves the start and the end of every accepted step.
    #[doc(alias = "save_everystep")]
    pub fn steps() -> Self {
        Self::every_nth_step(1)
    }
    /// Saves the start, the end of every n-th accepted step, and the end of the last step. If n is 0, nothing
    /// is saved.
    pub fn every_nth_step(n: usize) -> Self {
        Self::NOTHING.and_every_nth_step(n)
    }
    /// Saves dense output: [`Solution::dense`](super::Solution::dense) returns it.
    pub fn dense() -> Self {
        SaveAt { dense: true, ..Self::NOTHING }
    }
    /// Also saves the start.
    pub fn and_t0(self) -> Self {
        SaveAt { t0: true, ..self }
    }
    /// Also saves the end.
    pub fn and_t1(self) -> Self {
        SaveAt { t1: true, ..self }
    }
    /// Also saves these times, which must be in the order of the solve, in addition to times given before. On
    /// tensors with a traced t0 or t1, several lists of times are an error.
    pub fn and_ts(mut self, ts: &[f64]) -> Self {
        if !self.ts.is_empty() && !ts.is_empty() {
            self.starts.push(self.ts.len());
        }
        self.ts.extend(ts);
        self
    }
    /// Also saves the start and the end of every accepted step.
    pub fn and_steps(self) -> Self {
        self.and_every_nth_step(1)
    }
    /// Also saves the start, the end of every n-th accepted step, and the end of the last step. If n is 0, it
    /// adds nothing. If steps were selected before, one n must be a multiple of the other.
    pub fn and_every_nth_step(self, n: usize) -> Self {
        let (few, many) = (self.every.min(n), self.every.max(n));
        let (every, other) = match few {
            0 => (many, self.other),
            _ if many.is_multiple_of(few) => (few, self.other),
            _ => (few, many),
        };
        let other = if other.is_multiple_of(every.max(1)) { 0 } else { other };
        SaveAt { t0: self.t0 || n > 0, t1: self.t1 || n > 0, every, other, ..self }
    }
    /// Also saves dense output.
    pub fn and_dense(self) -> Self {
        SaveAt { dense: true, ..self }
    }

    /// Also saves what `other` selects.
    #[must_use]
    pub(crate) fn and(self, other: SaveAt) -> Self {
        let before = self.ts.len();
        let mut both = self.and_ts(&other.ts);
        both.starts.extend(other.starts.iter().map(|start| before + start));
        let both = both.and_every_nth_step(other.every).and_every_nth_step(other.other);
        SaveAt { t0: both.t0 || other.t0, t1: both.t1 || other.t1, dense: both.dense || other.dense, ..both }
    }

    /// Whether times are selected, at which values are saved.
    pub(super) fn has_times(&self) -> bool {
        self.t0 || self.t1 || self.every > 0 || !self.ts.is_empty()
    }

    /// The same selection with all given times in one list, in the order of the solve.
    pub(crate) fn in_order(&self, t0: f64, t1: f64) -> Cow<'_, SaveAt> {
        if self.starts.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut ts = self.ts.clone();
        sort_times(&mut ts, (t0, t1));
        Cow::Owned(SaveAt { ts, starts: Vec::new(), ..self.clone() })
    }

    /// Rejects what has no meaning in an unknown interval, because its direction is unknown: several lists of
    /// times.
    #[cfg(feature = "autodiff")]
    pub(crate) fn check_in_unknown_interval(&self) -> Result<(), ConfigError> {
        if !self.starts.is_empty() {
            return Err(ConfigError::StopsOfUnknownInterval { name: "save_at with several lists of times" });
        }
        self.check_steps()
    }

    /// Rejects selections of steps that cannot be combined.
    fn check_steps(&self) -> Result<(), ConfigError> {
        match self.other {
            0 => Ok(()),
            second => Err(ConfigError::SavedStrides { first: self.every, second }),
        }
    }

    /// Rejects times that are not finite, outside the interval or out of order, and selections of steps that
    /// cannot be combined.
    pub(crate) fn check(&self, t0: f64, t1: f64) -> Result<(), ConfigError> {
        self.check_steps()?;
        let sign = if t1 < t0 { -1.0 } else { 1.0 };
        for (index, pair) in self.ts.windows(2).enumerate() {
            if self.starts.contains(&(index + 1)) {
                continue;
            }
            // This comparison lets a NaN pass; the check below rejects it.
            if pair[1] * sign < pair[0] * sign {
                return Err(ConfigError::TimesNotMonotone {
                    name: "save_at",
                    index,
                    previous: pair[0],
                    next: pair[1],
                });
            }
        }
        let (low, high) = (t0.min(t1), t0.max(t1));
        if let Some((index, &t)) =
            self.ts.iter().enumerate().find(|(_, t)| !(t.is_finite() && low <= **t && **t <= high))
        {
            return Err(ConfigError::SavedTime { index, t, t0, t1 });
        }
        Ok(())
    }
}

/// The arguments of [`Ode::save_at`](super::Ode::save_at): a [`SaveAt`], or times as an array, a slice or a
/// `Vec`; on tensors also a tensor of rank 1.
pub trait IntoSaveAt<Y: OdeState> {
    /// Stores the selection in the settings.
    #[doc(hidden)]
    fn write(self, save_at: &mut Option<SaveAt>, options: &mut Y::Options);
}
impl<Y: OdeState, S: Into<SaveAt>> IntoSaveAt<Y> for S {
    fn write(self, save_at: &mut Option<SaveAt>, _options: &mut Y::Options) {
        *save_at = Some(self.into());
    }
}

impl From<&[f64]> for SaveAt {
    fn from(ts: &[f64]) -> Self {
        SaveAt::ts(ts)
    }
}
impl From<&Vec<f64>> for SaveAt {
    fn from(ts: &Vec<f64>) -> Self {
        SaveAt::ts(ts)
    }
}
impl From<Vec<f64>> for SaveAt {
    fn from(ts: Vec<f64>) -> Self {
        SaveAt { ts, ..Self::NOTHING }
    }
}
impl<const N: usize> From<[f64; N]> for SaveAt {
    fn from(ts: [f64; N]) -> Self {
        SaveAt::ts(&ts)
    }
}
impl<const N: usize> From<&[f64; N]> for SaveAt {
    fn from(ts: &[f64; N]) -> Self {
        SaveAt::ts(ts)
    }
}

/// Puts times in the order of a solve from t0 to t1, each once.
pub(super) fn sort_times(ts: &mut Vec<f64>, (t0, t1): (f64, f64)) {
    ts.sort_by(f64::total_cmp);
    if t1 < t0 {
        ts.reverse();
    }
    ts.dedup();
}

/// `n` equally spaced numbers from `start` to `end`, both included.
pub(crate) fn linspace(start: f64, end: f64, n: usize) -> Vec<f64> {
    let last = n.saturating_sub(1).max(1) as f64;
    let (width, is_finite) = (end - start, start.is_finite() && end.is_finite());
    let inside = |part: f64| match (is_finite, width.is_finite()) {
        (true, true) => start + width * part,
        (true, false) => start * (1.0 - part) + end * part,
        // The solve refuses the end that is not finite.
        (false, _) => start,
    };
    (0..n).map(|i| if i + 1 == n && n > 1 { end } else { inside(i as f64 / last) }).collect()
}

#[cfg(test)]
mod tests {
    use super::SaveAt;

    #[test]
    fn linspace_has_both_ends_in_either_direction_and_no_times_for_none() {
        assert_eq!(SaveAt::linspace(1.0, 0.0, 3), [1.0, 0.5, 0.0].into());
        assert_eq!(SaveAt::linspace(0.0, 0.1, 4).ts.last(), Some(&0.1));
        assert_eq!(SaveAt::linspace(2.0, 5.0, 1), [2.0].into());
        assert_eq!(SaveAt::linspace(2.0, 5.0, 0), SaveAt::ts(&[]));
    }
}
