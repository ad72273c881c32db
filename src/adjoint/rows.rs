//! Solves of batches whose rows do not all share their steps.
//!
//! Each group of rows is an independent solve, traced for the rows of one group. [`Batching::Groups`] makes each
//! group a tile, which one thread runs from start to end. [`Batching::PerRow`] batches the solve of one row in
//! lockstep, so that the field is evaluated on all rows at once. Both are bit-equal to solving the groups one by
//! one. Each number of a group (its end, its counters, its verdict) becomes a vector over groups.

use super::dense::TensorDenseOutput;
use super::event_records::EventRecords;
use super::leaves::Leaves;
use super::problem::Problem;
use super::solve::Recorded;
use super::{Batching, TensorSolution, TensorStats};
use crate::array::DType;
use crate::graph::{Op, TileOut, Tiles, Type};
use crate::ode::{ConfigError, SolveError};
use crate::tensor::{Searches, Tensor, Tree, align, over_rows, try_trace, tuple};
use std::sync::Arc;

/// The partition of a batch into groups that share their steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Groups {
    pub(super) rows: usize,
    /// Rows per group; the last group may have fewer.
    pub(super) size: usize,
    lockstep: bool,
}

impl Groups {
    /// The groups of a state under `batching`; `None` if all rows share their steps.
    ///
    /// # Errors
    /// A state without rows or whose leaves differ in their number of rows, or groups of size 0.
    pub(super) fn of(batching: Batching, y: &Leaves) -> Result<Option<Groups>, ConfigError> {
        let (size, lockstep) = match batching {
            Batching::Joint => return Ok(None),
            Batching::PerRow => (1, true),
            Batching::Groups(n) => (n, false),
        };
        let leaves = y.tensors();
        let first = leaves.first().and_then(|leaf| leaf.shape().first().copied()).unwrap_or(0);
        if first == 0 || leaves.iter().any(|leaf| leaf.shape().first() != Some(&first)) {
            let shapes: Vec<String> = leaves.iter().map(|leaf| leaf.shape().to_string()).collect();
            return Err(ConfigError::NoRows { shapes: shapes.join(", ") });
        }
        if size == 0 {
            return Err(ConfigError::EmptyGroups);
        }
        Ok(Some(Groups { rows: first, size: size.min(first), lockstep }))
    }

    /// Components per leaf of a group.
    pub(super) fn parts(self, y: &Leaves) -> Vec<usize> {
        y.tensors().iter().map(|leaf| leaf.size() / self.rows * self.size).collect()
    }

    /// The rows of a group.
    pub(super) fn rows_of(self, group: usize, y: &Leaves) -> Leaves {
        let rows = group * self.size..self.rows.min((group + 1) * self.size);
        y.with(y.tensors().iter().map(|y| y.slice(0, rows.clone())).collect())
    }

    /// Solves every group.
    pub(super) fn record(self, problem: &Problem<'_>, (t0, t1): (&Tensor, &Tensor), y0: &Leaves) -> Recorded {
        let one = |y: &Leaves| problem.record_joint(t0, t1, y);
        // Pieces of a solve run row by row: in lockstep, rows would wait for each other at every event.
        let searches = if problem.events.go_on() { Searches::Alone } else { Searches::Lockstep };
        let mut found = match self.lockstep {
            true => self.in_lockstep(&one, y0, searches)?,
            false => self.in_tiles(&one, y0)?,
        }
        .into_iter();
        let n = y0.tensors().len();
        let mut leaves = |n: usize| found.by_ref().take(n).collect::<Vec<_>>();
        let timed = |ys: Vec<Tensor>| y0.with(ys.iter().map(swapped).collect());
        let has_events = !problem.events.is_empty();
        let (y1, ys) = (y0.with(leaves(n)), timed(leaves(n)));
        let occurrence_ys = has_events.then(|| timed(leaves(n)));
        let num_states =
            if problem.saved.dense { problem.trail.like(t0, y0).leaves().len() - 2 + n } else { 0 };
        let states = leaves(num_states);
        let numbers: Vec<Tensor> = leaves(NUMBERS).iter().map(|x| self.each(x)).collect();
        let [verdict, ts] = [0, 1].map(|_| self.each(&leaves(1)[0]));
        let events = occurrence_ys.map(|y| {
            let [index, t, count] = [0, 1, 2].map(|_| self.each(&leaves(1)[0]));
            EventRecords { index: swapped(&index), t: swapped(&t), y, num_events: count }
        });
        let dense = if problem.saved.dense { self.curve(problem, (t0, y0), states, leaves(6)) } else { None };
        let mut stats = numbers.into_iter();
        let mut next = || stats.next().expect("invariant: as many as were taken");
        let t1_reached = next();
        let stats = TensorStats {
            num_steps: next(),
            num_accepted: next(),
            num_rejected: next(),
            num_fn_evals: next(),
            num_jac_evals: next(),
            num_factorizations: next(),
        };
        let (num_saved, stiff_from) = (next(), next());
        let (t1, ts) = (t1_reached, swapped(&ts));
        Ok(TensorSolution { t1, y1, ts, ys, num_saved, stats, verdict, stiff_from, events, dense })
    }

    /// The dense output of each row, from the results of the groups.
    fn curve(
        self,
        problem: &Problem<'_>,
        (t0, y0): (&Tensor, &Leaves),
        states: Vec<Tensor>,
        numbers: Vec<Tensor>,
    ) -> Option<TensorDenseOutput<Leaves>> {
        let curve = problem.trail.curve.clone()?;
        let like = problem.trail.like(t0, y0);
        let (mut states, [t0, t1, num_steps, t, t_next, ends]) =
            (states, <[Tensor; 6]>::try_from(numbers).ok()?);
        let y1 = y0.with(states.split_off(states.len() - y0.tensors().len()));
        let steps = like.with_leaves([t, t_next].into_iter().chain(states).collect::<Vec<_>>());
        Some(TensorDenseOutput { t0, t1, rows: Some(self.rows), num_steps, ends, steps, y1, curve })
    }

    /// The result of each row, computed with one tile per group. The numbers of a group are repeated for its rows.
    fn in_tiles(self, one: &dyn Fn(&Leaves) -> Recorded, y0: &Leaves) -> Result<Vec<Tensor>, SolveError> {
        let Groups { rows, size, .. } = self;
        let row = |x: &Tensor, n: usize| x.broadcast_to([&[n][..], x.shape()].concat());
        let tile = |n: usize| {
            let mut types = vec![Type::scalar(DType::U32)];
            types.extend(y0.tensors().iter().map(|y| y.ty().with_shape(y.shape().with_axis(0, n))));
            try_trace(&types, &mut |x| {
                let (mut out, numbers) = parts(&one(&y0.with(x[1..].to_vec()))?);
                out.extend(numbers.iter().map(|x| row(x, n)));
                Ok::<_, SolveError>(out)
            })
        };
        let mut bodies = vec![tile(size)?];
        if rows % size > 0 {
            bodies.push(tile(rows % size)?);
        }
        let (bodies, captures) = align(&bodies.iter().collect::<Vec<_>>());
        let mut bodies = bodies.into_iter();
        let body = bodies.next().expect("invariant: a body for each trace");
        let (outs, leaves) = (vec![TileOut::Rows; body.num_outputs()], y0.leaves());
        let tiles = Tiles { rows, tile: size, body, tail: bodies.next(), num_rowed: leaves.len(), outs };
        Ok(tuple(Op::Tiles(Arc::new(tiles)), leaves.iter().chain(&captures)))
    }

    /// The result of each row.
    fn in_lockstep(
        self,
        one: &dyn Fn(&Leaves) -> Recorded,
        y0: &Leaves,
        searches: Searches,
    ) -> Result<Vec<Tensor>, SolveError> {
        over_rows(y0.leaves(), &[], (self.rows, searches), &mut |x| {
            let y = y0.with(x.iter().map(|x| x.expand_dims(0)).collect());
            let (out, numbers) = parts(&one(&y)?);
            let mut out: Vec<Tensor> = out.iter().map(|y| y.reshape(y.shape().without_axes(&[0]))).collect();
            out.extend(numbers);
            Ok(out)
        })
    }

    /// One entry per group, from one per row.
    fn each(self, x: &Tensor) -> Tensor {
        if self.size == 1 {
            return x.clone();
        }
        let groups = self.rows.div_ceil(self.size);
        x.take(&(Tensor::iota(DType::I32, [groups], 0) * self.size as f64))
    }
}

/// The number of values of a group before its verdict: the end, the counters, and when stiffness was detected.
const NUMBERS: usize = 9;

/// A group's result: its rows, and its numbers. These are the end, the counters, when stiffness was detected, the
/// verdict and the times, then the numbers of events and of dense output.
fn parts(s: &TensorSolution<Leaves>) -> (Vec<Tensor>, Vec<Tensor>) {
    let mut rows = s.y1.leaves();
    let rows_first = |ys: &Leaves| ys.leaves().iter().map(swapped).collect::<Vec<Tensor>>();
    rows.extend(rows_first(&s.ys));
    let others = [&s.num_saved, &s.stiff_from, &s.verdict, &s.ts].map(Clone::clone);
    let mut numbers = [vec![s.t1.clone()], s.stats.leaves(), others.to_vec()].concat();
    if let Some(EventRecords { index, t, y, num_events: count }) = &s.events {
        rows.extend(rows_first(y));
        numbers.extend([index, t, count].map(Clone::clone));
    }
    if let Some(TensorDenseOutput { t0, t1, num_steps, steps, y1, ends, .. }) = &s.dense {
        // A row's dense output belongs to a state of one row.
        let states = steps.leaves().split_off(2);
        rows.extend(
            states
                .iter()
                .map(|y| swapped(y).expand_dims(2))
                .chain(y1.leaves().iter().map(|y| y.expand_dims(1))),
        );
        numbers.extend([t0, t1, num_steps, &steps.t, &steps.t_next, ends].map(Clone::clone));
    }
    (rows, numbers)
}

/// Swaps the first two axes.
pub(super) fn swapped(y: &Tensor) -> Tensor {
    let dims = y.shape();
    if dims[0] == 1 || dims[1] == 1 {
        // The memory layout stays the same, so a reshape is enough.
        return y.reshape([&[dims[1], dims[0]], &dims[2..]].concat());
    }
    y.permute(&[&[1, 0], &(2..y.rank()).collect::<Vec<_>>()[..]].concat())
}
