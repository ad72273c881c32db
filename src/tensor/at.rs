//! Indexing by places, ranges and steps: [`Tensor::get`].
//!
//! An index consists of [`At`]s, one per axis, which the macro [`at!`](crate::at!) makes of plain numbers and ranges. Known
//! indices become slices, which are views. A step becomes a slice of a reshaped axis, and a negative step a gather. Indices
//! that are tensors are those of [`Tensor::take`] and its relatives.

#[cfg(test)]
mod tests;

use super::Tensor;
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// One entry of an index of [`Tensor::get`], usually made by [`at!`](crate::at!).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// A place of an axis, which is removed; -1 is the last place.
    Place(i64),
    /// A range of an axis. Negative ends count from the end of the axis.
    Range {
        /// The first place; without it, the first one in the direction of the step.
        start: Option<i64>,
        /// The place at which the range ends; without it, all places in the direction of the step.
        end: Option<i64>,
        /// Whether the end is part of the range.
        is_inclusive: bool,
        /// The distance of the places, not 0; negative from the end to the start of the axis.
        step: i64,
    },
    /// A new axis of length 1.
    NewAxis,
    /// As many whole axes as the other entries leave. At most one per index; at the end it can be omitted.
    Ellipsis,
}

impl At {
    /// The same range in steps.
    ///
    /// # Panics
    /// If the entry is not a range, or the step is 0.
    #[must_use]
    #[track_caller]
    pub fn by(self, by: i64) -> At {
        assert!(by != 0, "get: a step of 0");
        match self {
            At::Range { start, end, is_inclusive, .. } => At::Range { start, end, is_inclusive, step: by },
            other => panic!("get: {other:?} is not a range and has no step"),
        }
    }
}

/// An index of [`Tensor::get`]: numbers, ranges, ranges with a step after `;`, and [`At`]s.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// let x = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
/// assert_eq!(x.get(at![-1, ..; -1]).to_vec(), [6.0, 5.0, 4.0]);
/// ```
#[macro_export]
macro_rules! at {
    ($($at:expr $(; $by:expr)?),* $(,)?) => {
        [$({
            // Here `1..-1` is not empty: its end counts from the end of the axis.
            #[allow(clippy::reversed_empty_ranges)]
            let at = $crate::tensor::At::from($at)$(.by($by))?;
            at
        }),*]
    };
}

/// The number, or the largest one if it is larger: it then is beyond every axis.
fn wide(place: impl TryInto<i64>) -> i64 {
    place.try_into().unwrap_or(i64::MAX)
}

macro_rules! from_numbers {
    ($($number:ty)*) => { $(
        impl From<$number> for At {
            fn from(place: $number) -> At { At::Place(wide(place)) }
        }
        impl From<Range<$number>> for At {
            fn from(r: Range<$number>) -> At { range(Some(wide(r.start)), Some(wide(r.end)), false) }
        }
        impl From<RangeInclusive<$number>> for At {
            fn from(r: RangeInclusive<$number>) -> At {
                range(Some(wide(*r.start())), Some(wide(*r.end())), true)
            }
        }
        impl From<RangeFrom<$number>> for At {
            fn from(r: RangeFrom<$number>) -> At { range(Some(wide(r.start)), None, false) }
        }
        impl From<RangeTo<$number>> for At {
            fn from(r: RangeTo<$number>) -> At { range(None, Some(wide(r.end)), false) }
        }
        impl From<RangeToInclusive<$number>> for At {
            fn from(r: RangeToInclusive<$number>) -> At { range(None, Some(wide(r.end)), true) }
        }
    )* };
}
from_numbers!(i32 usize);

impl From<RangeFull> for At {
    fn from(_: RangeFull) -> At {
        range(None, None, false)
    }
}

fn range(start: Option<i64>, end: Option<i64>, is_inclusive: bool) -> At {
    At::Range { start, end, is_inclusive, step: 1 }
}

/// The places of an axis: `len` of them, from `first` on, in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Places {
    first: usize,
    len: usize,
    step: i64,
}

impl Places {
    /// The places of a range of an axis of length n, with its ends cut to the axis as in Python's `slice.indices`.
    fn of(start: Option<i64>, end: Option<i64>, is_inclusive: bool, step: i64, n: usize) -> Places {
        let (n, is_up) = (n as i64, step > 0);
        let (low, high) = if is_up { (0, n) } else { (-1, n - 1) };
        let from_start = |i: i64| if i < 0 { i.saturating_add(n) } else { i };
        let first = start.map_or(if is_up { 0 } else { n - 1 }, |i| from_start(i).clamp(low, high));
        let beyond = i64::from(is_inclusive) * step.signum();
        let end =
            end.map_or(if is_up { n } else { -1 }, |i| from_start(i).saturating_add(beyond).clamp(low, high));
        let distance = if is_up { end - first } else { first - end };
        let len = if distance > 0 { ((distance as u64 - 1) / step.unsigned_abs() + 1) as usize } else { 0 };
        Places { first: if len == 0 { 0 } else { first as usize }, len, step }
    }

    /// The first place in ascending order, and the first one after all places.
    fn span(self) -> Range<usize> {
        let width = match self.len {
            0 => return 0..0,
            len => (len as u64 - 1) * self.step.unsigned_abs(),
        } as usize;
        let low = if self.step > 0 { self.first } else { self.first - width };
        low..low + width + 1
    }
}

impl Tensor {
    /// Parts of the axes, as `x[..]` in NumPy: one entry per axis, from the first axis on; the other axes are whole.
    ///
    /// A place removes its axis. Ranges are those of Rust: `1..3`, `2..`, `..=1`, `..`. A step follows after a semicolon:
    /// `..; 2`. Negative numbers count from the end, and a negative step goes from the end to the start: `..; -1` reverses an
    /// axis. Ends beyond the axis are cut, as in NumPy; an inclusive range includes its end in both directions.
    /// [`At::NewAxis`] adds an axis of length 1, and [`At::Ellipsis`] stands for the whole axes between other entries.
    ///
    /// For indices that are tensors see [`Tensor::take`], [`Tensor::take_axis`], [`Tensor::take_along`] and
    /// [`Tensor::dynamic_slice`]. The shape of the result cannot depend on values, so there is no indexing by a bool tensor:
    /// [`Tensor::select`] keeps the shape.
    ///
    /// # Panics
    /// If there are more entries than axes, a place is out of range, or there are two ellipses.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// use flowline::tensor::At;
    /// let x = Tensor::from([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]);
    /// assert_eq!(x.get(at![1, 1..3]).to_vec(), [6.0, 7.0]);
    /// assert_eq!(x.get(at![.., -1]).to_vec(), [4.0, 8.0]);
    /// assert_eq!(x.get(at![0, ..; 2]).to_vec(), [1.0, 3.0]);
    /// assert_eq!(x.get(at![At::Ellipsis, 3..1; -1]).shape().to_vec(), [2, 2]);
    /// assert_eq!(x.get(at![At::NewAxis]).shape().to_vec(), [1, 2, 4]);
    /// ```
    #[track_caller]
    pub fn get(&self, at: impl AsRef<[At]>) -> Tensor {
        self.got(at.as_ref())
    }

    #[track_caller]
    fn got(&self, at: &[At]) -> Tensor {
        let (mut shape, mut places) = (vec![], vec![]);
        for entry in self.whole(at) {
            let axis = places.len();
            match entry {
                At::NewAxis => shape.push(1),
                At::Place(i) => places.push(Places { first: self.known(axis, i), len: 1, step: 1 }),
                At::Range { start, end, is_inclusive, step } => {
                    assert!(step != 0, "get: a step of 0");
                    let of = Places::of(start, end, is_inclusive, step, self.shape()[axis]);
                    places.push(of);
                    shape.push(of.len);
                }
                At::Ellipsis => unreachable!("invariant: an ellipsis stands for axes"),
            }
        }
        let spans: Vec<Range<usize>> = places.iter().map(|p| p.span()).collect();
        let part = places.iter().enumerate().fold(self.spanned(&spans), |x, (axis, p)| x.stepped(axis, *p));
        part.reshape(shape)
    }

    /// The index with one entry for each axis.
    #[track_caller]
    fn whole(&self, at: &[At]) -> Vec<At> {
        let is_axis = |at: &&At| matches!(at, At::Place(_) | At::Range { .. });
        let count = at.iter().filter(is_axis).count();
        assert!(count <= self.rank(), "get: {count} entries for the {} axes of {}", self.rank(), self.ty());
        let rest = vec![At::from(..); self.rank() - count];
        let mut parts = at.split(|at| *at == At::Ellipsis);
        let [before, after] = [(); 2].map(|()| parts.next().unwrap_or_default());
        assert!(parts.next().is_none(), "get: an index has at most one ellipsis");
        [before, &rest, after].concat()
    }

    #[track_caller]
    fn known(&self, axis: usize, i: i64) -> usize {
        let n = self.shape()[axis];
        let from_start = if i < 0 { i.saturating_add(n as i64) } else { i };
        match usize::try_from(from_start) {
            Ok(place) if place < n => place,
            _ if n == 0 => panic!("get: place {i} of axis {axis} of {}, which has no elements", self.ty()),
            _ => panic!(
                "get: place {i} is out of range for axis {axis} of {}, of length {n}: it must be from -{n} to {}",
                self.ty(),
                n - 1
            ),
        }
    }

    /// A range of every axis.
    fn spanned(&self, spans: &[Range<usize>]) -> Tensor {
        if spans.iter().zip(&**self.shape()).all(|(span, &n)| *span == (0..n)) {
            return self.clone();
        }
        let (start, limit) = spans.iter().map(|s| (s.start, s.end)).unzip();
        Tensor::op(crate::graph::Op::Slice { start, limit }, &[self], None)
    }

    /// The places of an axis, which begins with the first and ends with the last of them.
    fn stepped(&self, axis: usize, places: Places) -> Tensor {
        let Places { len, step, .. } = places;
        let by = step.unsigned_abs() as usize;
        if step < 0 && len > 1 {
            return self.places_along(axis, (0..len).rev().map(|i| i * by).collect());
        }
        if by == 1 || len < 2 {
            return self.clone();
        }
        // All places but the last are the first column of rows of `by` elements: only the places themselves are copied.
        let n = self.shape()[axis];
        let dims = |of: &[usize]| [&self.shape()[..axis], of, &self.shape()[axis + 1..]].concat();
        let table = self.slice(axis, 0..n - 1).reshape(dims(&[len - 1, by]));
        let head = table.slice(axis + 1, 0..1).reshape(dims(&[len - 1]));
        Tensor::concat(&[&head, &self.slice(axis, n - 1..n)], axis)
    }
}
