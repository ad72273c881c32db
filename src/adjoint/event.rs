//! Events of a traced solve: which attempt ends the search, and where each event function changes its sign.
//!
//! An attempt checks the signs along its dense output and stops the loop at a change, with the code for plain
//! states ([`ode`](crate::ode)). Event times are found outside the loop ([`root`](super::root)), on the dense
//! output of the last step. This module must not depend on the saved values or on how a solve continues after
//! an event.

use super::algorithm::Carry;
use super::curve::{Curve, Rows};
use super::leaves::Leaves;
use super::root::search;
use crate::array::{DType, Shape};
use crate::ode::{Bracket, Event, EventValue, Outcome, Rhythm, SolveError, status};
use crate::tensor::{Searches, Tensor, cond, over_rows};

/// The value of an event function: a number whose sign counts, or a condition. It has one element.
impl EventValue<Tensor> for Tensor {
    #[track_caller]
    fn value(self) -> Tensor {
        assert!(
            self.size() == 1,
            "an event's function returned {self:?}: it must return one number or one condition"
        );
        let one = self.reshape(Shape::scalar());
        match one.dtype() {
            DType::Bool => one.select(&number(1.0), &number(-1.0)),
            _ => one.cast(DType::F64),
        }
    }
}

pub(super) fn number(x: f64) -> Tensor {
    Tensor::scalar(DType::F64, x)
}

/// A mask that is always true.
pub(super) fn always() -> Tensor {
    number(0.0).eq(0.0)
}

pub(super) fn is_nan(x: &Tensor) -> Tensor {
    x.abs().le(f64::INFINITY).not()
}

/// The value of an event's function at the start of a step.
#[derive(Clone)]
pub(super) struct Mark {
    /// The value. Its sign counts, unless the value [is a root up to noise](Mark::is_on_root).
    pub(super) value: Tensor,
    /// The largest magnitude of the value at the event's root; 0 unless the event has just occurred. It has the
    /// sign that the event has changed to.
    pub(super) noise: Tensor,
}

/// A value whose magnitude is above this many times the noise has left the root.
const CLEAR: f64 = 4.0;

impl Mark {
    /// The mark of a value without a recent event.
    pub(super) fn new(value: Tensor) -> Self {
        Mark { value, noise: number(0.0) }
    }

    /// Whether `value` is a root up to noise. The sign of the event is then the sign that its function takes next.
    fn is_root(&self, value: &Tensor) -> Tensor {
        value.abs().le(self.noise.abs() * CLEAR)
    }

    /// Whether the event has just occurred, and `value`, the first one off the root, has the sign that the event
    /// changed to.
    fn has_gone_on(&self, value: &Tensor) -> Tensor {
        (value * &self.noise).gt(0.0)
    }
}

/// The marks of several events, from their values and noise.
pub(super) fn marks_of(values: &[Tensor], noise: &[Tensor]) -> Vec<Mark> {
    let both = values.iter().cloned().zip(noise.iter().cloned());
    both.map(|(value, noise)| Mark { value, noise }).collect()
}

/// An event with its functions on leaves.
pub(super) struct Watch<'a> {
    pub(super) event: Event,
    /// The event function at (t, y), whose sign counts.
    pub(super) when: Box<dyn Fn(&Tensor, &Leaves) -> Tensor + 'a>,
    /// The state reset: y after the event at t.
    pub(super) then: Option<Box<dyn Fn(&Tensor, &Leaves) -> Leaves + 'a>>,
}

/// The events of a solve.
#[derive(Clone, Copy)]
pub(super) struct Events<'a> {
    pub(super) watches: &'a [Watch<'a>],
    /// The maximum number of recorded events, if set.
    pub(super) max_events: Option<usize>,
}

/// One event's function along a step.
#[derive(Clone, Copy)]
pub(super) struct Along<'a> {
    pub(super) watch: &'a Watch<'a>,
    pub(super) curve: &'a Curve,
    pub(super) step: &'a Rows,
    /// The state at the end of the step.
    pub(super) y1: &'a Leaves,
}

/// The events of one attempt.
pub(super) struct Seen {
    /// The value of each event's function at the end of the step.
    pub(super) ends: Vec<Tensor>,
    /// Whether a sign has changed.
    pub(super) has_occurred: Tensor,
    /// Whether to reject the step: an event function is NaN in it, or an event passes its root because its
    /// occurrences have accumulated beyond the resolution of the state.
    pub(super) is_bad: Tensor,
    /// The code of the event for which the step is rejected, stored in place of a component.
    pub(super) code: Tensor,
    /// Whether the step is rejected because of an accumulation.
    pub(super) has_sunk: Tensor,
}

impl Along<'_> {
    /// The value at a time in the step.
    pub(super) fn at(&self, t: &Tensor) -> Tensor {
        (self.watch.when)(t, &self.curve.eval(t, self.step))
    }

    /// The time at a fraction of the step, and the value there.
    fn at_part(&self, part: f64) -> [Tensor; 2] {
        let Along { watch, curve, step, y1 } = self;
        if part == 1.0 {
            return [step.t_next.clone(), (watch.when)(&step.t_next, y1)];
        }
        let t = &step.t + (&step.t_next - &step.t) * part;
        let value = (watch.when)(&t, &curve.at_part(part, step));
        [t, value]
    }

    /// The times in the step at which the sign is checked, with the values there. The first is the step's
    /// start. If the event is on its root there, it is the first of several later times at which the event has left
    /// its root, else the last of these.
    pub(super) fn samples(&self, mark: &Mark) -> Vec<[Tensor; 2]> {
        let parts: Vec<[Tensor; 2]> = self.watch.event.parts().map(|part| self.at_part(part)).collect();
        let start = [self.step.t.clone(), mark.value.clone()];
        let times = self.watch.event.looks(&self.step.t, &parts[0][0]);
        let times = Tensor::stack(&times.collect::<Vec<_>>().iter().collect::<Vec<_>>());
        let left = |times: &Tensor| {
            let n = times.size();
            let at = |x: &[Tensor]| Ok::<_, std::convert::Infallible>(vec![self.at(&x[0])]);
            let Ok(mut values) = over_rows(vec![times.clone()], &[], (n, Searches::Lockstep), &mut { at });
            let values = values.swap_remove(0);
            let last = number(n as f64 - 1.0);
            let rank = Tensor::iota(DType::F64, [n], 0);
            let first = mark.is_root(&values).select(&last, &rank).min();
            (times.take_clamped(&first), values.take_clamped(&first))
        };
        let (t, value) =
            cond(&mark.is_root(&mark.value), &times, left, |_: &Tensor| (start[0].clone(), start[1].clone()));
        [vec![[t, value]], parts].concat()
    }

    /// Each pair of neighboring samples as a bracket, and whether the sign changes in it; a pair without a
    /// change is replaced by the end of the step.
    pub(super) fn brackets(&self, mark: &Mark) -> Vec<(Tensor, Bracket<Tensor>)> {
        let samples = self.samples(mark);
        let end = &samples[samples.len() - 1];
        let of = |pair: &[[Tensor; 2]]| {
            let occurrence = self.watch.event.has_occurred(&pair[0][1], &pair[1][1]);
            let or_end =
                |x: &[Tensor; 2]| [occurrence.select(&x[0], &end[0]), occurrence.select(&x[1], &end[1])];
            let bracket = Bracket::new(or_end(&pair[0]), or_end(&pair[1]));
            (occurrence, bracket)
        };
        samples.windows(2).map(of).collect()
    }
}

impl<'a> Events<'a> {
    pub(super) const NONE: Events<'static> = Events { watches: &[], max_events: None };

    pub(super) fn is_empty(&self) -> bool {
        self.watches.is_empty()
    }

    /// Whether a solve may continue after an event, or end with a state other than the state at the event.
    pub(super) fn go_on(&self) -> bool {
        self.watches.iter().any(|watch| watch.event.terminal != 1 || watch.then.is_some())
    }

    /// Whether an event can end the solve.
    pub(super) fn can_end(&self) -> bool {
        self.watches.iter().any(|watch| watch.event.terminal > 0)
    }

    /// The number of rows for event records.
    pub(super) fn num_rows(&self) -> usize {
        self.max_events.unwrap_or(if self.go_on() { 64 } else { self.watches.len() })
    }

    /// The state after the reset of event `index` at t if `occurrence` holds, else `y`. Only one branch of the `cond`
    /// runs, so a reset function never receives a state at which its event did not occur.
    pub(super) fn then(&self, index: usize, occurrence: &Tensor, t: &Tensor, y: Leaves) -> Leaves {
        let Some(then) = &self.watches[index].then else { return y };
        let changed = |(t, y): &(Tensor, Leaves)| then(t, y);
        cond(occurrence, &(t.clone(), y), changed, |(_, y)| y.clone())
    }

    /// The values of the event functions at (t, y).
    pub(super) fn values(&self, t: &Tensor, y: &Leaves) -> Vec<Tensor> {
        self.watches.iter().map(|watch| (watch.when)(t, y)).collect()
    }

    /// The function of event `i` along a step.
    pub(super) fn along<'s>(&self, i: usize, curve: &'s Curve, step: &'s Rows, y1: &'s Leaves) -> Along<'s>
    where
        'a: 's,
    {
        Along { watch: &self.watches[i], curve, step, y1 }
    }

    /// The code of the first event for which `m` holds, stored in place of a component; -1 if there is none.
    pub(super) fn code(m: &[Tensor]) -> Tensor {
        let none = number(-1.0);
        m.iter()
            .enumerate()
            .rev()
            .fold(none, |code, (i, m)| m.select(&number(Outcome::code_of_event(i)), &code))
    }

    /// The inverse of [`code`](Self::code), where defined.
    pub(super) fn index_of(code: &Tensor) -> Tensor {
        -(code + 2.0)
    }

    /// Ends a solve where `m` holds and an event function is NaN: at its start, or after an event.
    pub(super) fn refuse_nan(values: &[Tensor], m: &Tensor, carry: &mut Carry) {
        let nan: Vec<Tensor> = values.iter().map(|value| is_nan(value).and(m)).collect();
        let any = nan.iter().fold(number(0.0).lt(0.0), |any, nan| any.or(nan)).and(&carry.is_running());
        carry.component = any.select(&Self::code(&nan), &carry.component);
        carry.h = any.select(&number(0.0), &carry.h);
        carry.status = any.select(&number(status::NON_FINITE), &carry.status);
    }

    /// Checks an attempted step that led to `y1`. `rhythms` are the histories of the events that change the state. If
    /// such an event rests on its root and then passes it, the state no longer resolves its occurrences.
    pub(super) fn check(
        &self,
        curve: &Curve,
        (step, y1): (&Rows, &Leaves),
        marks: &[Mark],
        rhythms: &[(usize, Rhythm<Tensor>)],
    ) -> Seen {
        let no = number(0.0).lt(0.0);
        let (mut has_occurred, mut ends) = (no.clone(), vec![]);
        let (mut nan, mut sunk) = (vec![], vec![]);
        for (i, watch) in self.watches.iter().enumerate() {
            let samples = self.along(i, curve, step, y1).samples(&marks[i]);
            let occurrences =
                samples.windows(2).map(|pair| watch.event.has_occurred(&pair[0][1], &pair[1][1]));
            has_occurred = occurrences.fold(has_occurred, |all, occurrence| all.or(&occurrence));
            nan.push(samples[1..].iter().fold(no.clone(), |any, sample| any.or(&is_nan(&sample[1]))));
            let [t_left, left] = &samples[0];
            let rhythm = rhythms.iter().find(|(of, _)| *of == i);
            let has_sunk = rhythm.map(|(_, rhythm)| rhythm.rests(t_left).and(&marks[i].has_gone_on(left)));
            sunk.push(has_sunk.unwrap_or_else(|| no.clone()));
            ends.push(samples[samples.len() - 1][1].clone());
        }
        let any = |m: &[Tensor]| m.iter().fold(no.clone(), |any, m| any.or(m));
        let has_sunk = any(&sunk);
        let code = has_sunk.select(&Self::code(&sunk), &Self::code(&nan));
        Seen { ends, has_occurred, is_bad: any(&nan).or(&has_sunk), code, has_sunk }
    }

    /// The event time in `bracket`.
    ///
    /// # Errors
    /// The error of the event function while it was recorded.
    pub(super) fn root(along: &Along<'_>, bracket: Bracket<Tensor>) -> Result<Tensor, SolveError> {
        search(bracket, &along.watch.event, &|t| along.at(t))
    }
}
