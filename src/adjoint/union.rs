//! The saved rows of a solve, in the order of the solve and without duplicates.
//!
//! Saved values come as two sorted lists: the ends (t0, the ends of steps, t1) and the given times. Shapes are
//! constants of a program, so the union has room for both lists, and rows after the last entry are NaN. The
//! position of an entry is its index in its own list plus the number of earlier entries of the other list.
//! Counting these compares all pairs, and is skipped if there is only one list. This module must not depend on
//! which steps were saved.

use super::curve::or_nan;
use super::event::number;
use super::leaves::Leaves;
use crate::array::DType;
use crate::tensor::{Tensor, Tree};

/// Saved times and states with a leading axis of times, in the order of the solve.
pub(super) struct List {
    pub(super) ts: Tensor,
    pub(super) ys: Leaves,
    /// Which entries are present; `None` if all are.
    pub(super) is_real: Option<Tensor>,
    /// The number of present entries.
    pub(super) count: Tensor,
}

/// Saved times and states, and the number of rows in use.
pub(super) type SavedRows = (Tensor, Leaves, Tensor);

impl List {
    /// One entry.
    pub(super) fn one(t: &Tensor, y: &Leaves) -> List {
        List { ts: t.reshape([1]), ys: y.map_leaves(|y| y.expand_dims(0)), is_real: None, count: number(1.0) }
    }

    /// The first `count` entries of `ts` and `ys`.
    pub(super) fn first(count: Tensor, ts: Tensor, ys: Leaves) -> List {
        let is_real = Some(Tensor::iota(DType::F64, [ts.size()], 0).lt(&count));
        List { ts, ys, is_real, count }
    }

    /// No entries, for states like `y`.
    pub(super) fn empty(y: &Leaves) -> SavedRows {
        let none = |y: &Tensor| Tensor::full(y.dtype(), [&[0], &y.shape()[..]].concat(), 0.0);
        (Tensor::full(DType::F64, [0], 0.0), y.map_leaves(none), number(0.0))
    }

    /// This list followed by `rest`.
    pub(super) fn then(self, rest: List) -> List {
        let count = &self.count + &rest.count;
        let (ts, ys) = self.joined(&rest);
        List::first(count, ts, ys)
    }

    fn joined(&self, rest: &List) -> (Tensor, Leaves) {
        let both = |(a, b): (&Tensor, &Tensor)| Tensor::concat(&[a, b], 0);
        let ys = self.ys.tensors().iter().zip(rest.ys.tensors()).map(both).collect();
        (both((&self.ts, &rest.ts)), self.ys.with(ys))
    }

    fn or(&self, missing: f64, ts: &Tensor) -> Tensor {
        self.is_real.as_ref().map_or_else(|| ts.clone(), |is_real| is_real.select(ts, &number(missing)))
    }

    /// The rows of this list without another; rows of absent entries are NaN.
    pub(super) fn alone(self) -> SavedRows {
        let ts = self.or(f64::NAN, &self.ts);
        let ys = match &self.is_real {
            Some(is_real) => or_nan(is_real, &self.ys),
            None => self.ys,
        };
        (ts, ys, self.count)
    }

    /// Merges this list with `other`, the given times, into `room` rows. `direction` is 1 or -1. At a time in both
    /// lists, the result has the state of this list.
    pub(super) fn merged(&self, other: &List, room: usize, direction: &Tensor) -> SavedRows {
        let sum = |m: &Tensor, axis: usize| m.cast(DType::F64).sum_axes(&[axis]);
        // Absent entries of this list sort last. Absent entries of the other list are NaN, which is neither less
        // than nor equal to any time.
        let own = self.or(f64::INFINITY, &(&self.ts * direction)).expand_dims(1);
        let theirs = other.or(f64::NAN, &(&other.ts * direction)).expand_dims(0);
        let is_same = own.eq(&theirs);
        let (num_same, is_kept) = (sum(&is_same, 1), sum(&is_same, 0).lt(0.5));
        let num_own = self.ts.size();
        let index = Tensor::iota(DType::F64, [num_own], 0);
        let ranks = index + sum(&theirs.lt(&own).and(&is_kept.expand_dims(0)), 1);

        let row = Tensor::iota(DType::F64, [room], 0);
        let is_passed = ranks.expand_dims(0).le(row.expand_dims(1));
        let num_passed = sum(&is_passed, 1);
        let is_own = sum(&ranks.expand_dims(0).eq(row.expand_dims(1)), 1).gt(0.5);
        let num_skipped = is_passed.select(&num_same.expand_dims(0), &number(0.0)).sum_axes(&[1]);
        let from_other = &row - &num_passed + num_skipped + num_own as f64;
        let from = is_own.select(&(&num_passed - 1.0), &from_other);

        let (ts, ys) = self.joined(other);
        let num_kept = other.is_real.as_ref().map_or_else(|| is_kept.clone(), |real| real.and(&is_kept));
        let count = &self.count + num_kept.cast(DType::F64).sum();
        let union = List::first(count, ts.take(&from), ys.map_leaves(|y| y.take(&from)));
        union.alone()
    }
}

/// Both ends of a solve, or one if they are equal.
pub(super) fn both_ends((t0, y0): (&Tensor, &Leaves), (t1, y1): (&Tensor, &Leaves)) -> List {
    let (ts, ys) = List::one(t0, y0).joined(&List::one(t1, y1));
    List::first(1.0 + t1.ne(t0).cast(DType::F64), ts, ys)
}
