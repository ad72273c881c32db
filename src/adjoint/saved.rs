//! The saved values of a traced solve: which steps are tapped, and how saved rows are computed from them.
//!
//! Shapes are constants of a program, so the number of saved steps is bounded before the solve. The loop finds the
//! step of each saved time, `curve` evaluates the solution inside that step, and `union` orders all saved rows.

use super::algorithm::Scheme;
use super::curve::{Curve, Rows, or_nan};
use super::leaves::Leaves;
use super::union::{self, List, SavedRows};
use crate::array::DType;
use crate::graph::Taps;
use crate::ode::{ConfigError, ConstantStepSize, Controller, SaveAt, StepTo, slack};
use crate::tensor::{Tensor, Tree};
use std::borrow::Cow;

/// The maximum number of bytes of saved steps, and that of event records. More bytes of steps usually mean that
/// `max_steps` has its large default.
pub(super) const BYTES_MAX: usize = 256 << 20;

/// The saved values of a solve on tensors.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is an independent option")]
pub(super) struct Saved {
    t0: bool,
    t1: bool,
    /// The given times: f64 of rank 1, not empty.
    pub(super) ts: Option<Tensor>,
    /// How many of t0 and t1 are saved as ends and are also known to be given times.
    num_twice: usize,
    /// Save every n-th step; 0 for none.
    every: usize,
    pub(super) dense: bool,
    /// Whether every step is tapped, not only the last of each group.
    each: bool,
    /// The maximum number of accepted steps; 0 if neither steps nor dense output are saved.
    steps_max: usize,
}

impl Saved {
    /// Resolves `save_at`; `ts` are times given as a tensor.
    ///
    /// # Errors
    /// Times that are not finite; if the interval is known, also times out of order or outside it. Times given as a
    /// tensor are checked only if they and the interval are known.
    pub(super) fn new(
        save_at: &SaveAt,
        ts: Option<&Tensor>,
        span: Option<(f64, f64)>,
        scheme: &Scheme<'_>,
    ) -> Result<Saved, ConfigError> {
        match (ts, span) {
            (Some(ts), Some((t0, t1))) if !ts.is_traced() => SaveAt::from(ts.to_vec()).check(t0, t1)?,
            (None, Some((t0, t1))) => save_at.check(t0, t1)?,
            _ => save_at.check_in_unknown_interval()?,
        }
        let save_at = span.map_or(Cow::Borrowed(save_at), |(t0, t1)| save_at.in_order(t0, t1));
        let SaveAt { t0, t1, ts: times, every, dense, .. } = &*save_at;
        if let Some(&value) = times.iter().find(|t| !t.is_finite()) {
            return Err(ConfigError::Time { name: "save_at ts", value });
        }
        let mut times = times.clone();
        times.dedup();
        let is_end = |is_saved: bool, t: Option<&f64>, end: fn((f64, f64)) -> f64| {
            usize::from(is_saved && ts.is_none() && t.copied() == span.map(end) && span.is_some())
        };
        let num_twice = is_end(*t0, times.first(), |(t0, _)| t0) + is_end(*t1, times.last(), |(_, t1)| t1);
        let given = (!times.is_empty()).then(|| Tensor::from(&times[..]));
        let ts = ts.cloned().or(given);
        let steps_max = if *every > 0 || *dense { steps_max(scheme, span) } else { 0 };
        let (t0, t1, every, dense) = (*t0, *t1, *every, *dense);
        Ok(Saved { t0, t1, ts, num_twice, every, dense, each: dense, steps_max })
    }

    /// Saves only the end.
    pub(super) const END: Saved = Saved {
        t0: false,
        t1: true,
        ts: None,
        num_twice: 0,
        every: 0,
        dense: false,
        each: false,
        steps_max: 0,
    };

    /// Saves only these times.
    pub(super) fn at(ts: &Tensor) -> Saved {
        Saved { t1: false, ts: Some(ts.clone()), ..Saved::END }
    }

    /// The saved values of a solve in pieces. Groups of steps do not start where pieces start, so every step is
    /// tapped. Each of `max_events` events may split a step in two.
    pub(super) fn in_pieces(self, max_events: usize, max_steps: u64) -> Saved {
        let most = usize::try_from(max_steps).unwrap_or(usize::MAX);
        let steps_max = match self.steps_max {
            0 => 0,
            steps => steps.saturating_add(max_events).min(most).max(1),
        };
        Saved { each: self.each || self.every > 0, steps_max, ..self }
    }

    /// The maximum number of tapped steps if every step is tapped; 0 if neither steps nor dense output are saved.
    pub(super) fn num_each(&self) -> usize {
        self.steps_max
    }

    /// The number of given times.
    pub(super) fn num_times(&self) -> usize {
        self.ts.as_ref().map_or(0, Tensor::size)
    }

    /// Whether dense output is needed.
    pub(super) fn needs_curve(&self) -> bool {
        self.ts.is_some() || self.dense
    }

    /// Whether the ends of steps are saved.
    pub(super) fn has_steps(&self) -> bool {
        self.every > 0
    }

    /// The first saved item other than given times and ends, if any.
    pub(super) fn beside_times(&self) -> Option<&'static str> {
        match self {
            Saved { dense: true, .. } => Some("dense output"),
            Saved { every: 1.., .. } => Some("saved steps"),
            _ => None,
        }
    }

    /// The steps to tap, including the last one if `last`.
    ///
    /// # Errors
    /// The saved steps take more than [`BYTES_MAX`] bytes; `row` is the data of one step.
    pub(super) fn taps(&self, last: bool, row: &Rows) -> Result<Taps, ConfigError> {
        let times = self.num_times();
        let every = if self.each { 1 } else { self.every };
        let groups = if every > 0 { self.steps_max.div_ceil(every) } else { 0 };
        let bytes = groups.saturating_mul(row.bytes());
        if bytes > BYTES_MAX {
            return Err(ConfigError::SavedSteps {
                steps: self.steps_max,
                rows: groups,
                bytes,
                most: BYTES_MAX,
            });
        }
        Ok(Taps { times, every, groups, last })
    }

    /// The rows of all steps, if every step is tapped.
    pub(super) fn all_steps(&self, tapped: &Rows) -> Rows {
        let first = self.num_times();
        tapped.slice(first..first + self.steps_max)
    }

    /// The saved rows of a solve that took `num_steps` steps to (t1, y1); `may_be_cut`: whether an event may
    /// have cut the last step short there.
    pub(super) fn join(
        &self,
        (t0, y0): (&Tensor, &Leaves),
        (tapped, curve): (&Rows, Option<&Curve>),
        (t1, y1): (&Tensor, &Leaves),
        (num_steps, direction, may_be_cut): (&Tensor, &Tensor, bool),
    ) -> SavedRows {
        let at_times = self.ts.as_ref().zip(curve);
        let at_times =
            at_times.map(|(ts, curve)| states_at(ts, curve, &tapped.slice(0..ts.size()), (t1, y1)));
        let steps = self.has_steps().then(|| self.steps(tapped, num_steps, (t1, y1), may_be_cut));
        self.in_order((t0, y0), (at_times, steps), (t1, y1), direction)
    }

    /// [`Saved::join`] for a solve in pieces, from its states at given times and the rows of all its steps.
    pub(super) fn join_legs(
        &self,
        start: (&Tensor, &Leaves),
        (at_times, steps): (Option<Leaves>, Option<Rows>),
        end: (&Tensor, &Leaves),
        (num_steps, direction): (&Tensor, &Tensor),
    ) -> SavedRows {
        let steps = steps.filter(|_| self.has_steps()).map(|steps| {
            let rows = self.group_ends(&steps, num_steps);
            let y_ends = rows.y1.expect("invariant: saved steps leave their ends");
            List::first(self.num_groups(num_steps), rows.t_next, y_ends)
        });
        self.in_order(start, (at_times, steps), end, direction)
    }

    /// The saved rows in the order of the solve, from the states at given times and the ends of steps.
    pub(super) fn in_order(
        &self,
        (t0, y0): (&Tensor, &Leaves),
        (at_times, steps): (Option<Leaves>, Option<List>),
        (t1, y1): (&Tensor, &Leaves),
        direction: &Tensor,
    ) -> SavedRows {
        let ends = match (self.t0, self.t1, steps) {
            // The last step ends at t1, so t1 is not added again.
            (_, _, Some(steps)) => Some(List::one(t0, y0).then(steps)),
            (true, true, None) => Some(union::both_ends((t0, y0), (t1, y1))),
            (true, false, None) => Some(List::one(t0, y0)),
            (false, true, None) => Some(List::one(t1, y1)),
            (false, false, None) => None,
        };
        let given = self.ts.as_ref().zip(at_times).map(|(ts, ys)| {
            let ahead = |t: &Tensor| (ts - t) * direction;
            let is_real = ahead(t0).ge(0.0).and(&ahead(t1).le(0.0));
            List { ts: ts.clone(), ys, count: is_real.cast(DType::F64).sum(), is_real: Some(is_real) }
        });
        match (ends, given) {
            (None, None) => List::empty(y0),
            (Some(list), None) | (None, Some(list)) => list.alone(),
            (Some(ends), Some(given)) => {
                let room = ends.ts.size() + given.ts.size() - self.num_twice;
                ends.merged(&given, room, direction)
            }
        }
    }

    /// The number of saved steps among `num_steps`.
    fn num_groups(&self, num_steps: &Tensor) -> Tensor {
        -(num_steps * (-1.0 / self.every as f64)).floor()
    }

    /// The last step of each group.
    fn group_ends(&self, steps: &Rows, num_steps: &Tensor) -> Rows {
        let group = Tensor::iota(DType::F64, [self.steps_max.div_ceil(self.every)], 0);
        steps.take(&(((group + 1.0) * self.every as f64).minimum(num_steps) - 1.0))
    }

    /// The ends of the saved steps; where the last step may have been cut short, its end is (t1, y1).
    fn steps(
        &self,
        tapped: &Rows,
        num_steps: &Tensor,
        (t1, y1): (&Tensor, &Leaves),
        may_be_cut: bool,
    ) -> List {
        let num_rows = self.steps_max.div_ceil(self.every);
        let index = Tensor::iota(DType::F64, [num_rows], 0);
        let first = self.ts.as_ref().map_or(0, Tensor::size);
        let rows = if self.each && self.every > 1 {
            self.group_ends(&self.all_steps(tapped), num_steps)
        } else {
            tapped.slice(first..first + num_rows)
        };
        let count = self.num_groups(num_steps);
        let y_ends = rows.y1.expect("invariant: saved steps leave their ends");
        let (mut ts, mut ys) = (rows.t_next, y_ends);
        if may_be_cut {
            let last = index.eq(&count - 1.0);
            (ts, ys) = (last.select(t1, &ts), super::curve::choose(&last, &ys_of(y1, &ys), &ys));
        }
        List::first(count, ts, ys)
    }
}

/// One state, repeated for each of `rows`.
pub(super) fn ys_of(y: &Leaves, rows: &Leaves) -> Leaves {
    let mut wide = rows.leaves().into_iter();
    y.map_leaves(|y| {
        let wide = wide.next().expect("invariant: trees of one structure");
        y.expand_dims(0).broadcast_to(wide.shape().clone())
    })
}

/// The maximum number of steps that a solve may accept, at least one.
fn steps_max(scheme: &Scheme<'_>, span: Option<(f64, f64)>) -> usize {
    let most = usize::try_from(scheme.limits.max_steps).unwrap_or(usize::MAX);
    let known = match (scheme.controller, span) {
        (Controller::StepTo(StepTo { ts }), _) => ts.len() - 1,
        (Controller::Constant(ConstantStepSize { dt0 }), Some((t0, t1))) => {
            // A remainder of the interval that is not longer than `slack` becomes part of the last step.
            (((t1 - t0).abs() - slack(&t0, &t1)) / dt0.abs()).ceil().max(1.0) as usize
                + scheme.limits.stops.len()
        }
        _ => most,
    };
    known.min(most).max(1)
}

/// The states at `ts`, from the data of the steps that contain them. At a time that no step contains, the state
/// is y1 if it is the time reached, else NaN.
pub(super) fn states_at(ts: &Tensor, curve: &Curve, rows: &Rows, (t1, y1): (&Tensor, &Leaves)) -> Leaves {
    let nowhere = rows.t.eq(&rows.t_next);
    let inside = curve.eval(ts, rows);
    let end = or_nan(&ts.eq(t1), &ys_of(y1, &inside));
    super::curve::choose(&nowhere, &end, &inside)
}

#[cfg(test)]
mod tests;
