//! Records of events: every sign change within one step, in time order, and the rows that store them.
//!
//! Shapes are constants of a program. So each event has a slot for a candidate between any two neighboring samples
//! of a step, used or not, and a solve has a fixed number of rows. Candidates are sorted by counting the earlier
//! ones: for a few dozen candidates this costs less than a sorting algorithm. This module must not depend on why
//! the search stopped or on how a solve continues after an event.

use super::behind::{Errors, certain};
use super::curve::{Curve, Rows, choose};
use super::event::{Along, Events, Mark, Watch, number};
use super::leaves::Leaves;
use super::root::implicit;
use crate::array::DType;
use crate::ode::{Bracket, SPEED_PART, SolveError, Span, ulps};
use crate::tensor::{Searches, Tensor, Tree, over_rows};
use crate::tree;

tree! {
/// Records of the events of a solve on tensors, in the order of the solve, along the first axis. Rows after the
/// last event are NaN.
///
/// There are `max_events` rows; the default is 64, or one per event function if every event ends the solve at its
/// first occurrence and none resets the state. If the rows of a batch do not share their steps, the second axis is
/// groups, or rows for states.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// // a ball that keeps 9/10 of its speed at a bounce; the first is at sqrt(2 height / g)
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
    /// The index of the event, in the order in which events were added: f64, `[event]`.
    pub index: Tensor,
    /// The time of the event: f64, `[event]`.
    pub t: Tensor,
    /// The state at the event, before a state reset: `[event, ..y]`.
    pub y: Y,
    /// The number of events: an f64 tensor of rank 0, or one per group.
    pub num_events: Tensor,
}
}

/// The step in which the search ended.
pub(super) struct LastStep<'a> {
    pub(super) curve: &'a Curve,
    pub(super) span: &'a Span<Tensor>,
    pub(super) step: &'a Rows,
    /// The state at the end of the step.
    pub(super) y1: &'a Leaves,
    /// The mark of each event at the start of the step.
    pub(super) marks: &'a [Mark],
    /// The errors at the start of the solve, or at the last instant before the step.
    pub(super) errors: &'a Errors,
    /// The number of earlier occurrences of each event; empty if the first event ends the solve.
    pub(super) counts: &'a [Tensor],
    /// Whether an event ended the search.
    pub(super) is_met: &'a Tensor,
}

/// The candidate events of one step along a leading axis: event by event, each in time order.
pub(super) struct Candidates {
    /// Whether the event occurred.
    found: Tensor,
    /// The index of its event.
    index: Vec<usize>,
    /// Its time.
    t: Tensor,
    y: Leaves,
    /// The sample before it: its time, in the direction of the solve, and its value.
    before: [Tensor; 2],
    /// Whether it ends the step: it changes the state or ends the solve.
    acts: Tensor,
    /// For each event, the times at which its sign is sampled in the step, and the values there.
    samples: Vec<Vec<[Tensor; 2]>>,
}

/// The instant that ends a step.
pub(super) struct Cut {
    pub(super) t: Tensor,
    pub(super) y: Leaves,
    /// Whether there is such an instant.
    pub(super) is_met: Tensor,
    /// Whether the instant is that of the first event for which no row is left.
    pub(super) is_beyond: Tensor,
    /// For each event, whether it occurs at the instant, and its own time, which differs from `t` only in its
    /// derivative.
    pub(super) group: Vec<Tensor>,
    pub(super) own: Vec<Tensor>,
    /// For each event, the number of occurrences in the step up to the instant.
    pub(super) counts: Vec<Tensor>,
    /// For each event, the sign that it has changed to: at the instant, or before it in the step; 0 if it has not.
    pub(super) sides: Vec<Tensor>,
    /// For each event, the value of its function at the last sample before the instant.
    pub(super) priors: Vec<Tensor>,
    /// The errors at the instant.
    pub(super) errors: Errors,
}

impl LastStep<'_> {
    fn along<'s>(&'s self, events: &Events<'s>, i: usize) -> Along<'s> {
        events.along(i, (self.curve, self.step, self.y1), self.errors)
    }

    /// The state at `t` if `occurrence` holds, else the state at the end of the step, because there may be no step.
    fn state(&self, t: &Tensor, occurrence: &Tensor) -> Leaves {
        choose(occurrence, &self.curve.eval(t, self.step), self.y1)
    }
}

impl Events<'_> {
    /// All candidate events of the step. None of them has occurred unless an event ended the search. If the first
    /// event ends the solve, there is only the first candidate of each event.
    ///
    /// # Errors
    /// The error of an event function while it was recorded.
    pub(super) fn candidates(&self, last: &LastStep<'_>) -> Result<Candidates, SolveError> {
        let still = last.step.map_leaves(Tensor::stop_gradient);
        let still_y1 = last.y1.map_leaves(Tensor::stop_gradient);
        let (mut parts, mut index, mut priors) = (vec![], vec![], vec![]);
        for (i, watch) in self.watches.iter().enumerate() {
            let along = self.along(i, (last.curve, &still, &still_y1), last.errors);
            let (samples, mut brackets) = along.brackets(&last.marks[i]);
            priors.push(samples);
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
                let event_fn = |t: &Tensor| (watch.when)(t, &last.state(t, &x[0]));
                let t = implicit(&event_fn, &root, &x[0]);
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
        Ok(Candidates { found: all(0), index, t: all(4), y, before, acts: all(1), samples: priors })
    }

    /// Which candidates of event `i` change the state or end the solve. `found`: which of them occurred, in time
    /// order.
    fn acts(&self, i: usize, found: &Tensor, counts: &[Tensor]) -> Tensor {
        let Watch { event, then, .. } = &self.watches[i];
        match event.terminal {
            _ if then.is_some() => found.clone(),
            0 => found.and(&found.not()),
            1 => found.clone(),
            terminal => {
                let position = Tensor::iota(DType::F64, [found.size()], 0);
                let up_to = position.expand_dims(0).le(position.expand_dims(1)).and(&found.expand_dims(0));
                let occurrence = up_to.cast(DType::F64).sum_axes(&[1]) + &counts[i];
                found.and(&occurrence.ge(terminal as f64))
            }
        }
    }

    /// For each candidate's event, whether the change from `before` to `after` counts as an occurrence.
    fn have_occurred(&self, index: &[usize], before: &Tensor, after: &Tensor) -> Tensor {
        let flags = |of: fn(&crate::ode::Event) -> bool| {
            let flags: Vec<f64> =
                index.iter().map(|&i| f64::from(u8::from(of(&self.watches[i].event)))).collect();
            Tensor::from(flags).gt(0.5)
        };
        let rises = before.lt(0.0).and(&after.ge(0.0)).and(&flags(|event| event.rising));
        rises.or(&before.gt(0.0).and(&after.le(0.0)).and(&flags(|event| event.falling)))
    }

    /// The instant of the first candidate that acts. Returns the candidates to record (those before the instant,
    /// and all whose sign has changed at the instant; without an instant, all that occurred), their ranks and the cut.
    fn cut(&self, last: &LastStep<'_>, mut of: Candidates, left: &Tensor) -> (Candidates, Tensor, Cut) {
        let Span { direction, .. } = last.span;
        let some = |m: &Tensor| count(m).gt(0.5);
        let index = Tensor::from(of.index.iter().map(|&i| i as f64).collect::<Vec<_>>());
        let acts = of.found.and(&of.acts);
        let is_met = some(&acts);
        let first = Candidates::at(&acts.and(&of.ranks(&acts, direction).eq(0.0)));
        let (t, y) = (of.t.take(&first), of.y.map_leaves(|y| y.take(&first)));
        let (when, position) = (t.stop_gradient() * direction, of.t.stop_gradient() * direction);

        let along = |i: usize| last.along(self, i);
        let safe = is_met.select(&t, &last.step.t_next);
        let value = |i: usize, t: &Tensor| (along(i).watch.when)(t, &last.state(t, &is_met)).stop_gradient();
        let values: Vec<Tensor> = (0..self.watches.len()).map(|i| value(i, &safe)).collect();
        let at_instant = Tensor::stack(&values.iter().collect::<Vec<_>>()).take(&index);
        let has_changed = self.have_occurred(&of.index, &of.before[1], &at_instant);
        let at_once = has_changed.or(&self.uncertain_at(last, (&safe, &is_met), &index));
        let is_later = position.gt(&when).and(&of.before[0].lt(&when)).and(&at_once);
        let group = of.found.and(&is_met).and(&position.eq(&when).or(&is_later));
        // All events of the group have the same time, each with its own derivative.
        let of_one = |one: &Tensor, own: &Tensor| one.stop_gradient() + (own - own.stop_gradient());
        of.t = group.select(&of_one(&t, &of.t), &of.t);
        let mut one = y.leaves().into_iter();
        let together = of
            .y
            .map_leaves(|own| of_one(&one.next().expect("invariant: a leaf for each").expand_dims(0), own));
        of.y = choose(&group, &together, &of.y);
        let recorded = of.found.and(&is_met.not().or(&position.lt(&when)).or(&group));

        let ranks = of.ranks(&recorded, direction);
        let is_beyond = count(&recorded).gt(left);
        let beyond = Candidates::at(&recorded.and(&ranks.eq(left)));
        let pick = |x: &Tensor, other: &Tensor| is_beyond.select(&x.take(&beyond), other);
        let (t_cut, y_cut) = (pick(&of.t, &t), choose(&is_beyond, &of.y.map_leaves(|y| y.take(&beyond)), &y));
        let of_event = |m: &Tensor, i: usize| m.and(&index.eq(i as f64));
        let recorded_until = recorded.and(&position.le(&when));
        // The last occurrence of an event up to the instant; all occurrences of the group count as one.
        let side = |i: usize| {
            let m = of_event(&recorded_until.or(&group), i);
            let last = m.select(&Tensor::iota(DType::F64, [m.size()], 0), &number(-1.0)).max();
            let before = of.before[1].take_clamped(&last.maximum(&number(0.0)));
            let changed = before.lt(0.0).select(&number(1.0), &number(-1.0));
            last.ge(0.0).select(&changed, &number(0.0)).stop_gradient()
        };
        let prior = |i: usize| {
            let start = last.marks[i].value.clone();
            of.samples[i][1..].iter().fold(start, |prior, [t, value]| {
                (t * direction).lt(&when).select(value, &prior).stop_gradient()
            })
        };
        let in_group: Vec<Tensor> = (0..self.watches.len()).map(|i| some(&of_event(&group, i))).collect();
        let errors = self.errors_behind(last, &safe, &in_group, &is_met);
        let events = 0..self.watches.len();
        let cut = Cut {
            t: t_cut,
            y: y_cut,
            is_met: is_met.or(&is_beyond),
            is_beyond,
            group: in_group,
            sides: events.clone().map(side).collect(),
            priors: events.clone().map(prior).collect(),
            errors,
            own: events.clone().map(|i| of_event(&group, i).select(&of.t, &number(0.0)).sum()).collect(),
            counts: events.map(|i| count(&of_event(&recorded, i))).collect(),
        };
        of.found = recorded;
        (of, ranks, cut)
    }
}

impl Events<'_> {
    /// For each candidate, whether the sign of its event's function is not certain at `t`, the time of another event,
    /// which is exact up to 4 ulp. `index` has the event of each candidate.
    fn uncertain_at(&self, last: &LastStep<'_>, (t, is_met): (&Tensor, &Tensor), index: &Tensor) -> Tensor {
        if self.watches.len() == 1 {
            return index.lt(0.0);
        }
        let y = last.state(t, is_met).map_leaves(Tensor::stop_gradient);
        let t = t.stop_gradient();
        let errors = last.errors_at((&t, &ulps(4.0, &t)), is_met, &number(0.0).lt(0.0)).of(&y);
        let is_certain = |watch: &Watch<'_>| certain(&watch.when, (&t, &y), &errors, &number(0.0)).1;
        let all: Vec<Tensor> = self.watches.iter().map(|watch| is_certain(watch).cast(DType::F64)).collect();
        Tensor::stack(&all.iter().collect::<Vec<_>>()).take(index).lt(0.5)
    }

    /// The errors at an instant at which the events of `group` occur.
    fn errors_behind(&self, last: &LastStep<'_>, t: &Tensor, group: &[Tensor], is_met: &Tensor) -> Errors {
        let zero = number(0.0);
        let resolutions =
            group.iter().zip(self.watches).map(|(m, watch)| m.select(&watch.event.resolution(t), &zero));
        let resolution = resolutions.fold(zero.clone(), |most, one| most.maximum(&one));
        let is_open = |(mark, m): (&Mark, &Tensor)| mark.side.ne(0.0).and(&m.not());
        let any_open = last.marks.iter().zip(group).map(is_open);
        let keeps_larger = any_open.fold(zero.lt(0.0), |any, one| any.or(&one));
        last.errors_at((t, &resolution), is_met, &keeps_larger)
    }
}

impl LastStep<'_> {
    /// The errors of the time `t`, known up to `resolution`, and of the state there, which the solution reaches from
    /// before.
    fn errors_at(
        &self,
        (t, resolution): (&Tensor, &Tensor),
        is_met: &Tensor,
        keeps_larger: &Tensor,
    ) -> Errors {
        let span = is_met.select(&(t - &self.step.t), &number(1.0));
        let part = (resolution / span.abs()).maximum(&number(SPEED_PART)).minimum(&number(1.0));
        let span = span * part;
        let [now, earlier] = [t.clone(), t - &span].map(|t| self.state(&t, is_met).into_tensors());
        let scale = resolution / span.abs();
        let moved = now.iter().zip(&earlier).map(|(now, earlier)| (now - earlier) * scale.cast(now.dtype()));
        let moved = self.y1.with(moved.collect());
        let sizes = choose(is_met, &self.curve.sizes(t, self.step), self.y1);
        let dt = span.lt(0.0).select(&-resolution, resolution);
        Errors::measured(&dt, &moved, &sizes, (keeps_larger, self.errors))
    }
}

/// The first bracket of one event in which its sign changes; the last bracket if there is none.
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

/// The number of candidates for which `m` holds.
fn count(m: &Tensor) -> Tensor {
    m.cast(DType::F64).sum()
}

impl Candidates {
    /// For each candidate, how many of `those` come before it. At equal times, the event that was added first
    /// comes first, as on plain states.
    fn ranks(&self, those: &Tensor, direction: &Tensor) -> Tensor {
        let n = self.t.size();
        let (t, position) = (self.t.stop_gradient() * direction, Tensor::iota(DType::F64, [n], 0));
        let (of, other) = (t.expand_dims(1), t.expand_dims(0));
        let is_earlier = position.expand_dims(0).lt(position.expand_dims(1));
        let before = other.lt(&of).or(&other.eq(&of).and(&is_earlier)).and(&those.expand_dims(0));
        before.cast(DType::F64).sum_axes(&[1])
    }

    /// The index of the only candidate for which `m` holds.
    fn at(m: &Tensor) -> Tensor {
        let n = m.size();
        m.select(&Tensor::iota(DType::F64, [n], 0), &number(0.0)).sum()
    }
}

impl EventRecords<Leaves> {
    /// Empty records with `rows` rows, for states like `y`.
    pub(super) fn none(rows: usize, y: &Leaves) -> Self {
        let nan = |dtype, shape: &[usize]| Tensor::full(dtype, [&[rows], shape].concat(), f64::NAN);
        EventRecords {
            index: nan(DType::F64, &[]),
            t: nan(DType::F64, &[]),
            y: y.map_leaves(|y| nan(y.dtype(), y.shape())),
            num_events: number(0.0),
        }
    }

    /// Adds the events of one step, up to the instant that ends it.
    ///
    /// # Errors
    /// The error of an event function while it was recorded.
    pub(super) fn and(&self, events: &Events<'_>, last: &LastStep<'_>) -> Result<(Self, Cut), SolveError> {
        let left = self.t.size() as f64 - &self.num_events;
        let (of, ranks, cut) = events.cut(last, events.candidates(last)?, &left);
        let (num_rows, num_candidates) = (self.t.size(), of.t.size());
        let is_recorded = of.found.and(&ranks.lt(&left));
        // [row, candidate]
        let row = Tensor::iota(DType::F64, [num_rows], 0) - &self.num_events;
        let holds = ranks.expand_dims(0).eq(row.expand_dims(1)).and(&is_recorded.expand_dims(0));
        let is_new = holds.cast(DType::F64).sum_axes(&[1]).gt(0.5);
        let position = Tensor::iota(DType::F64, [1, num_candidates], 1);
        let from = holds.select(&position, &number(0.0)).sum_axes(&[1]);
        let index = Tensor::from(of.index.iter().map(|&i| i as f64).collect::<Vec<_>>());
        let occurrences = EventRecords {
            index: is_new.select(&index.take(&from), &self.index),
            t: is_new.select(&of.t.take(&from), &self.t),
            y: choose(&is_new, &of.y.map_leaves(|y| y.take(&from)), &self.y),
            num_events: &self.num_events + count(&is_recorded),
        };
        Ok((occurrences, cut))
    }
}
