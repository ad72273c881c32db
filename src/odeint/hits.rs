//! Hits of events: every change of sign within one step, in the order of time, and the rows that keep them.
//!
//! Shapes are part of a program, so a step has a place for a hit at each pair of samples of each event, filled or not,
//! and a solve has so many rows. Places are sorted by counting those before: a few dozen squared are less than a sort's
//! rounds. Who stopped at the step, and what follows from a hit, is none of its business.

use super::curve::{Curve, Rows, choose};
use super::event::{Events, is_hit, number};
use super::leaves::Leaves;
use super::root::{Bracket, implicit};
use crate::array::DType;
use crate::ode::{OdeError, Span};
use crate::tensor::{Searches, Tensor, Tree, over_rows};
use crate::tree;

tree! {
/// Hits of the events of a solve on tensors, in the order of the solve, along the first axis; rows behind the last one are
/// NaN.
///
/// A solve whose events all end it has one row; another has 64, or what `max_hits` says. Where rows of a batch do not
/// share their steps, everything has an axis of their groups behind that of hits, and states that of their rows.
///
/// # Examples
/// ```
/// use flowline::prelude::*;
/// // a ball that bounces with 9/10 of its speed: the first time at sqrt(2 height / g)
/// let height = Tensor::from(5.0);
/// let bounce = |height: &Tensor| {
///     let ball = Ode::new(|_t, y: &Tensor| Tensor::stack(&[&y.at(1), &Tensor::from(-10.0)]));
///     let ball = ball.max_hits(8).jump(Event::falling(), |_t, y| y.at(0), |_t, y| {
///         *y = Tensor::stack(&[&y.at(0), &(-0.9 * y.at(1))]);
///     });
///     ball.solve(0.0, 4.0, Tensor::stack(&[height, &Tensor::from(0.0)]))
/// };
/// let hits = bounce(&height)?.events()?.clone();
/// assert_eq!(hits.count.item(), 2.0);
/// assert!((hits.t.to_vec()[1] - 2.8).abs() < 1e-6 && hits.t.to_vec()[2].is_nan());
/// // the second bounce is at 2.8 sqrt(height / 5)
/// let slope = grad(|h: &Tensor| bounce(h).unwrap().events().unwrap().t.at(1), &height);
/// assert!((slope.item() - 0.28).abs() < 1e-6);
/// # Ok::<(), flowline::Error>(())
/// ```
#[non_exhaustive]
pub struct Hits<Y> {
    /// Which event, in the order they were given: f64, `[event]`.
    pub index: Tensor,
    /// When: f64, `[event]`.
    pub t: Tensor,
    /// The state there, before the change where the event makes one: `[event, ..y]`.
    pub y: Y,
    /// How many there are: an f64 tensor of rank 0, or one a group.
    pub count: Tensor,
}
}

/// The places for hits of one step, an axis of them in front.
pub(super) struct Places {
    /// Whether there is one.
    found: Tensor,
    index: Tensor,
    t: Tensor,
    y: Leaves,
    /// Whether the step ends there, if it is hit.
    is_cut: Tensor,
}

/// The hit that a step ends with.
pub(super) struct Cut {
    pub(super) t: Tensor,
    pub(super) y: Leaves,
    pub(super) index: Tensor,
    /// Whether there is one.
    pub(super) is_met: Tensor,
    /// Whether it is one for which there was no row.
    pub(super) is_beyond: Tensor,
}

impl Events<'_> {
    /// Every hit within `step`, an accepted one that leads to `y1`; none unless `is_met`. `starts` are the signs at its
    /// start.
    ///
    /// # Errors
    /// What a search said while it was recorded.
    pub(super) fn places(
        &self,
        curve: &Curve,
        span: &Span<Tensor>,
        step: &Rows,
        (starts, y1): (&[Tensor], &Leaves),
        is_met: &Tensor,
    ) -> Result<Places, OdeError> {
        let still = step.map_leaves(Tensor::stop_gradient);
        let still_y1 = y1.map_leaves(Tensor::stop_gradient);
        let (mut parts, mut index, mut is_cut) = (vec![], vec![], vec![]);
        for (i, watch) in self.0.iter().enumerate() {
            let samples = self.samples(i, curve, &still, (&starts[i], &still_y1));
            let [nowhere, at_end] = &samples[samples.len() - 1];
            let mut columns: [Vec<Tensor>; 5] = Default::default();
            for pair in samples.windows(2) {
                let ([a, ga], [b, gb]) = (&pair[0], &pair[1]);
                let hit = is_hit(&watch.event, ga, gb).and(is_met);
                let [a, b] = [a, b].map(|t| hit.select(t, nowhere));
                let [ga, gb] = [ga, gb].map(|g| hit.select(g, at_end));
                columns.iter_mut().zip([hit, a, ga, b, gb]).for_each(|(column, x)| column.push(x));
            }
            let columns = columns.map(|column| Tensor::stack(&column.iter().collect::<Vec<_>>()));
            let n = samples.len() - 1;
            let found = columns[0].clone();
            let mut part = vec![found];
            part.extend(over_rows(columns.to_vec(), &[], (n, Searches::Lockstep), &mut |x| {
                let bracket =
                    Bracket { ends: [x[1].clone(), x[3].clone()], values: [x[2].clone(), x[4].clone()] };
                let root = bracket.root(watch, curve, span, &still)?;
                // Where there is no hit the step may be none: then the function is looked at where it makes sense.
                let state = |t: &Tensor| choose(&x[0], &curve.eval(t, step), y1);
                let t = implicit(&|t: &Tensor| (watch.when)(t, &state(t)), &root, &x[0]);
                let y = state(&t);
                Ok::<_, OdeError>([&[t], y.tensors()].concat())
            })?);
            parts.push(part);
            index.extend(vec![i as f64; n]);
            is_cut.extend(vec![f64::from(u8::from(watch.event.stop || watch.then.is_some())); n]);
        }
        let all = |k: usize| Tensor::concat(&parts.iter().map(|part| &part[k]).collect::<Vec<_>>(), 0);
        let y = y1.with((2..parts[0].len()).map(all).collect());
        let is_cut = Tensor::from(is_cut).gt(0.5);
        Ok(Places { found: all(0), index: Tensor::from(index), t: all(1), y, is_cut })
    }
}

impl Places {
    /// For each place how many hits come before it; of equal times the event given first, as on the host.
    fn ranks(&self, direction: &Tensor) -> Tensor {
        let n = self.t.size();
        let (t, place) = (self.t.stop_gradient() * direction, Tensor::iota(DType::F64, [n], 0));
        let (of, other) = (t.expand(1), t.expand(0));
        let is_earlier = place.expand(0).lt(place.expand(1));
        let before = other.lt(&of).or(&other.eq(&of).and(&is_earlier)).and(&self.found.expand(0));
        before.cast(DType::F64).sum_axes(&[1])
    }

    /// The place at which `m` holds, at most one.
    fn at(m: &Tensor) -> Tensor {
        let n = m.size();
        m.select(&Tensor::iota(DType::F64, [n], 0), &number(0.0)).sum()
    }
}

impl Hits<Leaves> {
    /// No hits yet, so many rows for states like `y`.
    pub(super) fn none(rows: usize, y: &Leaves) -> Self {
        let nan = |dtype, shape: &[usize]| Tensor::full(dtype, [&[rows], shape].concat(), f64::NAN);
        Hits {
            index: nan(DType::F64, &[]),
            t: nan(DType::F64, &[]),
            y: y.map_leaves(|y| nan(y.dtype(), y.shape())),
            count: number(0.0),
        }
    }

    /// One row, for the hit at `t` and `y` where there was one.
    pub(super) fn one(is_hit: &Tensor, index: &Tensor, t: &Tensor, y: &Leaves) -> Self {
        let or_nan = |x: &Tensor| is_hit.select(x, &Tensor::scalar(x.dtype(), f64::NAN)).expand(0);
        let count = is_hit.cast(DType::F64);
        Hits { index: or_nan(index), t: or_nan(t), y: y.map_leaves(or_nan), count }
    }

    /// With the hits of one step, up to the one that the step ends with.
    pub(super) fn and(&self, of: &Places, direction: &Tensor) -> (Self, Cut) {
        let (num_rows, num_places) = (self.t.size(), of.t.size());
        let count = |m: &Tensor| m.cast(DType::F64).sum();
        let ranks = of.ranks(direction);
        let none = number(num_places as f64);
        let first = of.found.and(&of.is_cut).select(&ranks, &none).min();
        let left = num_rows as f64 - &self.count;
        let is_beyond = count(&of.found.and(&ranks.le(&first))).gt(&left);
        let last = is_beyond.select(&left, &first);

        let is_noted = of.found.and(&ranks.le(&last)).and(&ranks.lt(&left));
        // [row, place]
        let row = Tensor::iota(DType::F64, [num_rows], 0) - &self.count;
        let holds = ranks.expand(0).eq(row.expand(1)).and(&is_noted.expand(0));
        let is_new = holds.cast(DType::F64).sum_axes(&[1]).gt(0.5);
        let place = Tensor::iota(DType::F64, [1, num_places], 1);
        let from = holds.select(&place, &number(0.0)).sum_axes(&[1]);
        let hits = Hits {
            index: is_new.select(&of.index.take(&from), &self.index),
            t: is_new.select(&of.t.take(&from), &self.t),
            y: choose(&is_new, &of.y.map_leaves(|y| y.take(&from)), &self.y),
            count: &self.count + count(&is_noted),
        };
        let at = Places::at(&of.found.and(&ranks.eq(&last)));
        let cut = Cut {
            t: of.t.take(&at),
            y: of.y.map_leaves(|y| y.take(&at)),
            index: of.index.take(&at),
            is_met: last.lt(&none).and(&count(&of.found).gt(0.5)),
            is_beyond,
        };
        (hits, cut)
    }
}
