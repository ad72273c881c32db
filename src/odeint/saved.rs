//! What a traced solve saves: which steps are tapped for it, and what becomes of what they left.
//!
//! Shapes are part of a program, so the number of saved steps is bounded before the solve; rows behind the last one
//! are NaN, and a number on the device says how many are real. How a step's inside is found is `curve`'s business,
//! which step holds what the loop's.

use super::algorithm::Scheme;
use super::curve::{Curve, Rows, or_nan};
use super::leaves::Leaves;
use crate::array::DType;
use crate::graph::Taps;
use crate::ode::{Constant, Controller, OdeError, SaveAt, StepTo, slack};
use crate::tensor::{Tensor, Tree};

/// The most bytes that steps may leave behind: beyond, it is more likely that `max_steps` was not thought of.
pub(super) const BYTES_MAX: usize = 256 << 20;

/// What a solve on tensors is to save.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a thing of its own that may be asked for")]
pub(super) struct Saved {
    t0: bool,
    t1: bool,
    /// f64 of rank 1, not empty.
    pub(super) ts: Option<Tensor>,
    /// Every so many steps; 0 for none.
    every: usize,
    pub(super) dense: bool,
    /// Whether every step is tapped, not the last of each group alone.
    each: bool,
    /// The most steps that the solve may accept; 0 where no steps are kept.
    steps_max: usize,
}

impl Saved {
    /// What was asked for, `ts` being times given as a tensor.
    ///
    /// # Errors
    /// Nothing to save; times out of order or outside the interval, if it is known.
    pub(super) fn new(
        save_at: &SaveAt,
        ts: Option<&Tensor>,
        span: Option<(f64, f64)>,
        scheme: &Scheme<'_>,
    ) -> Result<Saved, OdeError> {
        let SaveAt { t0, t1, ts: times, every, dense } = save_at;
        if !(*t0 || *t1 || *dense || ts.is_some() || !times.is_empty()) {
            return Err(OdeError::SaveNothing);
        }
        match (ts, span) {
            (Some(ts), Some((t0, t1))) if !ts.is_traced() => SaveAt::from(ts.to_vec()).check(t0, t1)?,
            (None, Some((t0, t1))) => save_at.check(t0, t1)?,
            _ => {}
        }
        if let Some(&value) = times.iter().find(|t| !t.is_finite()) {
            return Err(OdeError::Time { name: "save_at ts", value });
        }
        let given = (!times.is_empty()).then(|| Tensor::from(&times[..]));
        let ts = ts.cloned().or(given);
        let steps_max = if *every > 0 || *dense { steps_max(scheme, span) } else { 0 };
        // A curve alone leaves its end in `ts` and `ys`, which cannot be empty.
        let t1 = *every == 0 && (*t1 || !*t0 && ts.is_none());
        Ok(Saved { t0: *t0, t1, ts, every: *every, dense: *dense, each: *dense, steps_max })
    }

    /// The end alone.
    pub(super) const END: Saved =
        Saved { t0: false, t1: true, ts: None, every: 0, dense: false, each: false, steps_max: 0 };

    /// These times alone.
    pub(super) fn at(ts: &Tensor) -> Saved {
        Saved { t1: false, ts: Some(ts.clone()), ..Saved::END }
    }

    /// For a solve that is cut into pieces, in which groups of steps do not start where pieces do, and each of `max_events`
    /// may make two steps of one.
    pub(super) fn in_pieces(self, max_events: usize, max_steps: u64) -> Saved {
        let most = usize::try_from(max_steps).unwrap_or(usize::MAX);
        let steps_max = match self.steps_max {
            0 => 0,
            steps => steps.saturating_add(max_events).min(most).max(1),
        };
        Saved { each: self.each || self.every > 0, steps_max, ..self }
    }

    /// The most steps that are tapped where each is; 0 where none are kept.
    pub(super) fn num_each(&self) -> usize {
        self.steps_max
    }

    /// How many times lie inside of steps.
    pub(super) fn num_times(&self) -> usize {
        self.ts.as_ref().map_or(0, Tensor::size)
    }

    /// Whether anything is asked of the inside of steps.
    pub(super) fn needs_curve(&self) -> bool {
        self.ts.is_some() || self.dense
    }

    /// Whether the ends of steps are saved.
    pub(super) fn has_steps(&self) -> bool {
        self.every > 0
    }

    /// What a gradient that knows given times and the ends alone has no cotangent for.
    pub(super) fn beside_times(&self) -> Option<&'static str> {
        match self {
            Saved { dense: true, .. } => Some("the dense curve"),
            Saved { every: 1.., .. } => Some("saved steps"),
            _ => None,
        }
    }

    /// The steps to tap, the last one too if `last`.
    ///
    /// # Errors
    /// More bytes than steps may leave behind, `row` being one step's.
    pub(super) fn taps(&self, last: bool, row: &Rows) -> Result<Taps, OdeError> {
        let times = self.num_times();
        let every = if self.each { 1 } else { self.every };
        let groups = if every > 0 { self.steps_max.div_ceil(every) } else { 0 };
        let bytes = groups.saturating_mul(row.bytes());
        if bytes > BYTES_MAX {
            return Err(OdeError::SavedSteps { steps: self.steps_max, rows: groups, bytes, most: BYTES_MAX });
        }
        Ok(Taps { times, every, groups, last })
    }

    /// The rows of all steps, where each is tapped.
    pub(super) fn all_steps(&self, tapped: &Rows) -> Rows {
        let first = self.num_times();
        tapped.slice(first..first + self.steps_max)
    }

    /// Times and states that were saved, and how many of them are real: t0, the given times, the steps, t1, as far as
    /// they were asked for. `num_steps` is the number of accepted steps; where the last one may have been cut short at
    /// (t1, y1), `cut` is the direction of the solve.
    pub(super) fn join(
        &self,
        (t0, y0): (&Tensor, &Leaves),
        (tapped, curve): (&Rows, Option<&Curve>),
        (t1, y1): (&Tensor, &Leaves),
        (num_steps, cut): (&Tensor, Option<&Tensor>),
    ) -> (Tensor, Leaves, Tensor) {
        let mut inner = Vec::new();
        if let (Some(ts), Some(curve)) = (&self.ts, curve) {
            let rows = tapped.slice(0..ts.size());
            let mut ys = states_at(ts, curve, &rows, (t1, y1));
            if let Some(ahead) = cut {
                ys = or_nan(&((ts - t1) * ahead).le(0.0), &ys);
            }
            inner.push((ts.clone(), ys));
        }
        let mut num_saved = Tensor::scalar(DType::F64, 0.0);
        if self.every > 0 {
            let (count, steps) = self.steps(tapped, num_steps, (t1, y1), cut.is_some());
            num_saved = count;
            inner.push(steps);
        }
        let others = usize::from(self.t0) + usize::from(self.t1) + self.num_times();
        let (ts, ys) = self.around(inner, (t0, y0), (t1, y1));
        (ts, ys, num_saved + others as f64)
    }

    /// [`Saved::join`] of a solve in pieces: what they gathered at the given times and from all their steps.
    pub(super) fn join_legs(
        &self,
        (t0, y0): (&Tensor, &Leaves),
        (at_times, steps): (Option<Leaves>, Option<Rows>),
        (t1, y1): (&Tensor, &Leaves),
        num_steps: &Tensor,
    ) -> (Tensor, Leaves, Tensor) {
        let mut inner = Vec::new();
        if let (Some(ts), Some(ys)) = (&self.ts, at_times) {
            inner.push((ts.clone(), ys));
        }
        let mut num_saved = Tensor::scalar(DType::F64, 0.0);
        if let Some(steps) = steps {
            num_saved = self.num_groups(num_steps);
            let rows = self.group_ends(&steps, num_steps);
            let y_ends = rows.y1.expect("invariant: saved steps leave their ends");
            inner.push(up_to(&num_saved, (&rows.t_next, &y_ends)));
        }
        let others = usize::from(self.t0) + usize::from(self.t1) + self.num_times();
        let (ts, ys) = self.around(inner, (t0, y0), (t1, y1));
        (ts, ys, num_saved + others as f64)
    }

    /// How many steps are saved of so many.
    fn num_groups(&self, num_steps: &Tensor) -> Tensor {
        -(num_steps * (-1.0 / self.every as f64)).floor()
    }

    /// The last step of each group.
    fn group_ends(&self, steps: &Rows, num_steps: &Tensor) -> Rows {
        let group = Tensor::iota(DType::F64, [self.steps_max.div_ceil(self.every)], 0);
        steps.take(&(((group + 1.0) * self.every as f64).minimum(num_steps) - 1.0))
    }

    /// Times and states in one: the start, what was saved between, the end, as far as they were asked for. States have
    /// their axis of times in front.
    pub(super) fn around(
        &self,
        inner: Vec<(Tensor, Leaves)>,
        (t0, y0): (&Tensor, &Leaves),
        (t1, y1): (&Tensor, &Leaves),
    ) -> (Tensor, Leaves) {
        let one = |t: &Tensor, y: &Leaves| (t.reshape([1]), y.map_leaves(|y| y.expand(0)));
        let mut parts: Vec<(Tensor, Leaves)> = Vec::new();
        parts.extend(self.t0.then(|| one(t0, y0)));
        parts.extend(inner);
        parts.extend(self.t1.then(|| one(t1, y1)));
        let axis = time_axis(y0);
        let all = |i: usize| {
            let parts: Vec<Tensor> = parts.iter().map(|(_, y)| moved(&y.tensors()[i], axis)).collect();
            Tensor::concat(&parts.iter().collect::<Vec<_>>(), axis)
        };
        let ts = Tensor::concat(&parts.iter().map(|(t, _)| t).collect::<Vec<_>>(), 0);
        (ts, y0.with((0..y0.tensors().len()).map(all).collect()))
    }

    /// The ends of the saved steps, NaN behind the last one, and their number; where the last step may have been cut
    /// short, its end is (t1, y1).
    fn steps(
        &self,
        tapped: &Rows,
        num_steps: &Tensor,
        (t1, y1): (&Tensor, &Leaves),
        may_be_cut: bool,
    ) -> (Tensor, (Tensor, Leaves)) {
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
        (count.clone(), up_to(&count, (&ts, &ys)))
    }
}

/// The first `count` of these times and states, NaN behind them.
fn up_to(count: &Tensor, (ts, ys): (&Tensor, &Leaves)) -> (Tensor, Leaves) {
    let real = Tensor::iota(DType::F64, [ts.size()], 0).lt(count);
    (real.select(ts, &Tensor::scalar(DType::F64, f64::NAN)), or_nan(&real, ys))
}

/// One state as a row for each of `rows`.
pub(super) fn ys_of(y: &Leaves, rows: &Leaves) -> Leaves {
    let mut wide = rows.leaves().into_iter();
    y.map_leaves(|y| {
        let wide = wide.next().expect("invariant: trees of one structure");
        y.expand(0).broadcast_to(wide.shape().clone())
    })
}

/// The most steps that a solve may accept, at least one.
fn steps_max(scheme: &Scheme<'_>, span: Option<(f64, f64)>) -> usize {
    let most = usize::try_from(scheme.limits.max_steps).unwrap_or(usize::MAX);
    let known = match (scheme.controller, span) {
        (Controller::StepTo(StepTo { ts }), _) => ts.len() - 1,
        (Controller::Constant(Constant { dt0 }), Some((t0, t1))) => {
            // A remainder within the slack of a span belongs to the step before it.
            (((t1 - t0).abs() - slack(&t0, &t1)) / dt0.abs()).ceil().max(1.0) as usize
                + scheme.limits.stops.len()
        }
        _ => most,
    };
    known.min(most).max(1)
}

/// The states at `ts` from what the steps that hold them left behind. A time that no step holds is y1's if it is the
/// time reached, else NaN.
pub(super) fn states_at(ts: &Tensor, curve: &Curve, rows: &Rows, (t1, y1): (&Tensor, &Leaves)) -> Leaves {
    let nowhere = rows.t.eq(&rows.t_next);
    let inside = curve.eval(ts, rows);
    let end = or_nan(&ts.eq(t1), &ys_of(y1, &inside));
    super::curve::choose(&nowhere, &end, &inside)
}

/// A leaf with its first axis, that of times, at `axis`.
fn moved(x: &Tensor, axis: usize) -> Tensor {
    let dims = x.shape();
    match axis {
        0 => x.clone(),
        _ if dims[0] == 1 => x.reshape([&dims[1..2], &[1], &dims[2..]].concat()),
        _ => x.permute(&[&[1, 0], &(2..x.rank()).collect::<Vec<_>>()[..]].concat()),
    }
}

/// A leaf of saved states, which has its axis of times at `axis`, with that axis in front.
pub(super) fn times_first(x: &Tensor, axis: usize) -> Tensor {
    match axis {
        0 => x.clone(),
        _ => x.permute(&[&[1, 0], &(2..x.rank()).collect::<Vec<_>>()[..]].concat()),
    }
}

/// States with an axis of times in front, with that axis where `like`, one of them, has it in a solution.
pub(super) fn with_time_axis(ys: &Leaves, like: &Leaves) -> Leaves {
    let axis = time_axis(like);
    ys.map_leaves(|y| moved(y, axis))
}

/// Where the axis of saved times goes: behind the rows where there are rows, else first. There are rows where the first
/// axes of all leaves have one length and some leaf has a further axis.
pub(super) fn time_axis(y: &Leaves) -> usize {
    let leaves = y.tensors();
    let rows = leaves.first().and_then(|leaf| leaf.shape().first().copied());
    let same = rows.is_some() && leaves.iter().all(|leaf| leaf.shape().first().copied() == rows);
    usize::from(same && leaves.iter().any(|leaf| leaf.rank() > 1))
}

#[cfg(test)]
mod tests;
