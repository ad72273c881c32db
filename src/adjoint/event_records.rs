//! Records of events: every change of sign within one step, in the order of time, and the rows that keep them.
//!
//! Shapes are part of a program, so a step has a place for an event at each pair of samples of each event, filled or not,
//! and a solve has so many rows. Places are sorted by counting those before: a few dozen squared are less than a sort's
//! rounds. Who stopped at the step, and what follows from an event, is none of its business.

use super::curve::{Curve, Rows, choose};
use super::event::{Along, Events, Mark, Watch, number};
use super::leaves::Leaves;
use super::root::implicit;
use crate::array::DType;
use crate::ode::{Bracket, SolveError, Span};
use crate::tensor::{Searches, Tensor, Tree, over_rows};
use crate::tree;

tree! {
/// Records of the events of a solve on tensors, in the order of the solve, along the first axis; rows behind the last one are
/// NaN.
///
/// A solve that its first event ends has as many rows as there are events; another has 64, or what `max_events` says. Where
/// rows of a batch do not share their steps, everything has an axis of their groups behind that of events, and states that of
/// their rows.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// // a ball that bounces with 9/10 of its speed: the first time at sqrt(2 height / g)
/// let height = Tensor::from(5.0);
/// let bounce = |height: &Tensor| {
///     let ball = Ode::new(|_t, y: &Tensor| Tensor::stack(&[&y.index(1), &Tensor::from(-10.0)]));
///     let ball = ball.max_events(8).on_event(Event::falling(), |_t, y| y.index(0), |_t, y| {
///         *y = Tensor::stack(&[&y.index(0), &(-0.9 * y.index(1))]);
///     });
///     ball.solve(0.0, 4.0, Tensor::stack(&[height, &Tensor::from(0.0)]))
/// };
/// let events = bounce(&height)?.events()?.clone();
/// assert_eq!(events.num_events.item(), 2.0);
/// assert!((events.t.to_vec()[1] - 2.8).abs() < 1e-6 && events.t.to_vec()[2].is_nan());
/// // the second bounce is at 2.8 sqrt(height / 5)
/// let gradient = grad(|h: &Tensor| bounce(h).unwrap().events().unwrap().t.index(1), &height);
/// assert!((gradient.item() - 0.28).abs() < 1e-6);
/// # Ok::<(), flowline::Error>(())
/// ```
#[non_exhaustive]
pub struct EventRecords<Y> {
    /// Which event, in the order they were given: f64, `[event]`.
    pub index: Tensor,
    /// When: f64, `[event]`.
    pub t: Tensor,
    /// The state there, before the change where the event makes one: `[event, ..y]`.
    pub y: Y,
    /// How many there are: an f64 tensor of rank 0, or one a group.
    pub num_events: Tensor,
}
}

/// A step in which the search ended.
pub(super) struct LastStep<'a> {
    pub(super) curve: &'a Curve,
    pub(super) span: &'a Span<Tensor>,
    pub(super) step: &'a Rows,
    /// The state at its end.
    pub(super) y1: &'a Leaves,
    /// What was known of the events at its start.
    pub(super) marks: &'a [Mark],
    /// How often each had happened; none where the first event ends the solve.
    pub(super) counts: &'a [Tensor],
    /// Whether an event ended the search.
    pub(super) is_met: &'a Tensor,
}

/// The places for events of one step, an axis of them in front, events one after the other, each in the order of time.
pub(super) struct Places {
    /// Whether there is one.
    found: Tensor,
    /// Which event's it is.
    index: Vec<usize>,
    /// When.
    t: Tensor,
    y: Leaves,
    /// The sample before it: its time, in the direction of the solve, and its value.
    before: [Tensor; 2],
    /// Whether it ends the step: it changes the state or ends the solve.
    acts: Tensor,
}

/// The instant that a step ends with.
pub(super) struct Cut {
    pub(super) t: Tensor,
    pub(super) y: Leaves,
    /// Whether there is one.
    pub(super) is_met: Tensor,
    /// Whether it is one for which there was no row.
    pub(super) is_beyond: Tensor,
    /// For each event whether it happens at the instant, and its own time then, which differs from `t` by its derivative alone.
    pub(super) group: Vec<Tensor>,
    pub(super) own: Vec<Tensor>,
    /// For each event how often it happened in the step up to then.
    pub(super) counts: Vec<Tensor>,
    /// For each event of the group how large its function is at its root, with the sign that it has changed to.
    pub(super) noise: Vec<Tensor>,
}

impl LastStep<'_> {
    fn along<'s>(&'s self, events: &Events<'s>, i: usize) -> Along<'s> {
        events.along(i, self.curve, self.step, self.y1)
    }

    /// The state at `t`, where `event`; elsewhere the step may be none, and it is that of its end.
    fn state(&self, t: &Tensor, occurrence: &Tensor) -> Leaves {
        choose(occurrence, &self.curve.eval(t, self.step), self.y1)
    }
}

impl Events<'_> {
    /// Every event within the step, none unless an event ended the search there: the first of each event where that ends the
    /// solve.
    ///
    /// # Errors
    /// What a search said while it was recorded.
    pub(super) fn places(&self, last: &LastStep<'_>) -> Result<Places, SolveError> {
        let still = last.step.map_leaves(Tensor::stop_gradient);
        let still_y1 = last.y1.map_leaves(Tensor::stop_gradient);
        let (mut parts, mut index) = (vec![], vec![]);
        for (i, watch) in self.watches.iter().enumerate() {
            let along = self.along(i, last.curve, &still, &still_y1);
            let mut brackets = along.brackets(&last.marks[i]);
            if !self.go_on() {
                brackets = vec![earliest(brackets)];
            }
            let mut columns: [Vec<Tensor>; 6] = Default::default();
            for (occurrence, bracket) in &brackets {
                let row = [&[occurrence.and(last.is_met)][..], &bracket.clocks()].concat();
                columns.iter_mut().zip(row).for_each(|(column, x)| column.push(x));
            }
            let columns = columns.map(|column| Tensor::stack(&column.iter().collect::<Vec<_>>()));
            let n = brackets.len();
            let acts = self.acts(i, &columns[0], last.counts);
            let mut part = vec![columns[0].clone(), acts, columns[1].clone(), columns[2].clone()];
            let mut one = |x: &[Tensor]| {
                let bracket = Bracket::of([1, 2, 3, 4, 5].map(|k| x[k].clone()));
                let root = Events::root(&along, bracket)?;
                let gauge = |t: &Tensor| (watch.when)(t, &last.state(t, &x[0]));
                let t = implicit(&gauge, &root, &x[0]);
                let y = last.state(&t, &x[0]);
                Ok::<_, SolveError>([&[t], y.tensors()].concat())
            };
            part.extend(match n {
                1 => {
                    let row = columns.map(|column| column.index(0));
                    one(&row)?.iter().map(|x| x.expand_dims(0)).collect()
                }
                _ => over_rows(columns.to_vec(), &[], (n, Searches::Lockstep), &mut one)?,
            });
            parts.push(part);
            index.extend(vec![i; n]);
        }
        let all = |k: usize| Tensor::concat(&parts.iter().map(|part| &part[k]).collect::<Vec<_>>(), 0);
        let y = last.y1.with((5..parts[0].len()).map(all).collect());
        let before = [all(2) * &last.span.direction, all(3)];
        Ok(Places { found: all(0), index, t: all(4), y, before, acts: all(1) })
    }

    /// Which of an event's places, `found` in the order of time, change the state or end the solve.
    fn acts(&self, i: usize, found: &Tensor, counts: &[Tensor]) -> Tensor {
        let Watch { event, then, .. } = &self.watches[i];
        match event.terminal {
            _ if then.is_some() => found.clone(),
            0 => found.and(&found.not()),
            1 => found.clone(),
            terminal => {
                let place = Tensor::iota(DType::F64, [found.size()], 0);
                let up_to = place.expand_dims(0).le(place.expand_dims(1)).and(&found.expand_dims(0));
                let occurrence = up_to.cast(DType::F64).sum_axes(&[1]) + &counts[i];
                found.and(&occurrence.ge(terminal as f64))
            }
        }
    }

    /// Where events `index` of each place count a change from `before` to `after`.
    fn have_occurred(&self, index: &[usize], before: &Tensor, after: &Tensor) -> Tensor {
        let flags = |of: fn(&crate::ode::Event) -> bool| {
            let flags: Vec<f64> =
                index.iter().map(|&i| f64::from(u8::from(of(&self.watches[i].event)))).collect();
            Tensor::from(flags).gt(0.5)
        };
        let rises = before.lt(0.0).and(&after.ge(0.0)).and(&flags(|event| event.rising));
        rises.or(&before.gt(0.0).and(&after.le(0.0)).and(&flags(|event| event.falling)))
    }

    /// The first of the places that act, with every event whose sign has changed by then, and all that happened before.
    fn cut(&self, last: &LastStep<'_>, mut of: Places, left: &Tensor) -> (Places, Tensor, Cut) {
        let Span { direction, .. } = last.span;
        let some = |m: &Tensor| count(m).gt(0.5);
        let index = Tensor::from(of.index.iter().map(|&i| i as f64).collect::<Vec<_>>());
        let acts = of.found.and(&of.acts);
        let is_met = some(&acts);
        let first = Places::at(&acts.and(&of.ranks(&acts, direction).eq(0.0)));
        let (t, y) = (of.t.take(&first), of.y.map_leaves(|y| y.take(&first)));
        let (when, place) = (t.stop_gradient() * direction, of.t.stop_gradient() * direction);

        let along = |i: usize| last.along(self, i);
        let safe = is_met.select(&t, &last.step.t_next);
        let value = |i: usize, t: &Tensor| (along(i).watch.when)(t, &last.state(t, &is_met)).stop_gradient();
        let values: Vec<Tensor> = (0..self.watches.len()).map(|i| value(i, &safe)).collect();
        let at_instant = Tensor::stack(&values.iter().collect::<Vec<_>>()).take(&index);
        let has_changed = self.have_occurred(&of.index, &of.before[1], &at_instant);
        let is_later = place.gt(&when).and(&of.before[0].lt(&when)).and(&has_changed);
        let group = of.found.and(&is_met).and(&place.eq(&when).or(&is_later));
        // All of the group are at the one time, and each has the slope of its own.
        let of_one = |one: &Tensor, own: &Tensor| one.stop_gradient() + (own - own.stop_gradient());
        of.t = group.select(&of_one(&t, &of.t), &of.t);
        let mut one = y.leaves().into_iter();
        let together = of
            .y
            .map_leaves(|own| of_one(&one.next().expect("invariant: a leaf for each").expand_dims(0), own));
        of.y = choose(&group, &together, &of.y);
        let noted = of.found.and(&is_met.not().or(&place.lt(&when)).or(&group));

        let ranks = of.ranks(&noted, direction);
        let is_beyond = count(&noted).gt(left);
        let beyond = Places::at(&noted.and(&ranks.eq(left)));
        let pick = |x: &Tensor, other: &Tensor| is_beyond.select(&x.take(&beyond), other);
        let (t_cut, y_cut) = (pick(&of.t, &t), choose(&is_beyond, &of.y.map_leaves(|y| y.take(&beyond)), &y));
        let of_event = |m: &Tensor, i: usize| m.and(&index.eq(i as f64));
        let noise = |i: usize| {
            let earlier = &safe - self.watches[i].event.resolution(&safe) * direction;
            let size = values[i].abs().maximum(&value(i, &earlier).abs()).maximum(&number(f64::MIN_POSITIVE));
            let before = of_event(&group, i).select(&of.before[1], &number(0.0)).sum();
            before.lt(0.0).select(&size, &-&size)
        };
        let events = 0..self.watches.len();
        let cut = Cut {
            t: t_cut,
            y: y_cut,
            is_met: is_met.or(&is_beyond),
            is_beyond,
            group: events.clone().map(|i| some(&of_event(&group, i))).collect(),
            own: events.clone().map(|i| of_event(&group, i).select(&of.t, &number(0.0)).sum()).collect(),
            counts: events.clone().map(|i| count(&of_event(&noted, i))).collect(),
            noise: events.map(noise).collect(),
        };
        of.found = noted;
        (of, ranks, cut)
    }
}

/// The first of the brackets of one event that hold a change.
fn earliest(brackets: Vec<(Tensor, Bracket<Tensor>)>) -> (Tensor, Bracket<Tensor>) {
    let mut brackets = brackets.into_iter().rev();
    let last = brackets.next().expect("invariant: an event has a sample");
    brackets.fold(last, |(found, later), (occurrence, earlier)| {
        let (earlier, later) = (earlier.clocks(), later.clocks());
        let mut both = earlier.iter().zip(&later).map(|(earlier, later)| occurrence.select(earlier, later));
        let bracket = Bracket::of([(); 5].map(|()| both.next().expect("invariant: five clocks")));
        (occurrence.or(&found), bracket)
    })
}

/// How many of the places `m` holds at.
fn count(m: &Tensor) -> Tensor {
    m.cast(DType::F64).sum()
}

impl Places {
    /// For each place how many of `those` come before it; of equal times the event given first, as on plain states.
    fn ranks(&self, those: &Tensor, direction: &Tensor) -> Tensor {
        let n = self.t.size();
        let (t, place) = (self.t.stop_gradient() * direction, Tensor::iota(DType::F64, [n], 0));
        let (of, other) = (t.expand_dims(1), t.expand_dims(0));
        let is_earlier = place.expand_dims(0).lt(place.expand_dims(1));
        let before = other.lt(&of).or(&other.eq(&of).and(&is_earlier)).and(&those.expand_dims(0));
        before.cast(DType::F64).sum_axes(&[1])
    }

    /// The place at which `m` holds, at most one.
    fn at(m: &Tensor) -> Tensor {
        let n = m.size();
        m.select(&Tensor::iota(DType::F64, [n], 0), &number(0.0)).sum()
    }
}

impl EventRecords<Leaves> {
    /// No events yet, so many rows for states like `y`.
    pub(super) fn none(rows: usize, y: &Leaves) -> Self {
        let nan = |dtype, shape: &[usize]| Tensor::full(dtype, [&[rows], shape].concat(), f64::NAN);
        EventRecords {
            index: nan(DType::F64, &[]),
            t: nan(DType::F64, &[]),
            y: y.map_leaves(|y| nan(y.dtype(), y.shape())),
            num_events: number(0.0),
        }
    }

    /// With the events of one step, up to the instant that the step ends with.
    ///
    /// # Errors
    /// What a search said while it was recorded.
    pub(super) fn and(&self, events: &Events<'_>, last: &LastStep<'_>) -> Result<(Self, Cut), SolveError> {
        let left = self.t.size() as f64 - &self.num_events;
        let (of, ranks, cut) = events.cut(last, events.places(last)?, &left);
        let (num_rows, num_places) = (self.t.size(), of.t.size());
        let is_noted = of.found.and(&ranks.lt(&left));
        // [row, place]
        let row = Tensor::iota(DType::F64, [num_rows], 0) - &self.num_events;
        let holds = ranks.expand_dims(0).eq(row.expand_dims(1)).and(&is_noted.expand_dims(0));
        let is_new = holds.cast(DType::F64).sum_axes(&[1]).gt(0.5);
        let place = Tensor::iota(DType::F64, [1, num_places], 1);
        let from = holds.select(&place, &number(0.0)).sum_axes(&[1]);
        let index = Tensor::from(of.index.iter().map(|&i| i as f64).collect::<Vec<_>>());
        let occurrences = EventRecords {
            index: is_new.select(&index.take(&from), &self.index),
            t: is_new.select(&of.t.take(&from), &self.t),
            y: choose(&is_new, &of.y.map_leaves(|y| y.take(&from)), &self.y),
            num_events: &self.num_events + count(&is_noted),
        };
        Ok((occurrences, cut))
    }
}
