//! Events of a traced solve: which attempt ends the search, and where each event function changes its sign.
//!
//! An attempt checks the signs along its dense output and stops the loop at a change, with the code for plain
//! states ([`ode`](crate::ode)). Event times are found outside the loop ([`root`](super::root)), on the dense
//! output of the last step. This module must not depend on the saved values or on how a solve continues after
//! an event.

use super::algorithm::Carry;
use super::behind::{Errors, Opened};
use super::curve::{Curve, Rows};
use super::leaves::Leaves;
use super::root::search;
use crate::array::{DType, Shape};
use crate::ode::{self, Bracket, Event, EventValue, Outcome, Rhythm, SolveError, TURNED_BACK, status};
use crate::tensor::{Tensor, cond};

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

/// What is known of the sign of an event's function at the start of a step.
pub(super) type Mark = ode::Mark<Tensor>;

/// The marks of several events, from their values and sides.
pub(super) fn marks_of(values: &[Tensor], sides: &[Tensor]) -> Vec<Mark> {
    let both = values.iter().cloned().zip(sides.iter().cloned());
    both.map(|(value, side)| Mark { value, side }).collect()
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
    /// The errors at the start of the solve, or at the last instant.
    pub(super) errors: &'a Errors,
}

/// The signs of an event's function along a step.
pub(super) struct Samples {
    /// The times at which the sign is sampled, with the values there; 0 as long as the sign is open. The first is
    /// the step's start, or the first look at which the sign is certain.
    pub(super) values: Vec<[Tensor; 2]>,
    pub(super) opened: Opened,
    /// Whether the sign is still open at the end.
    pub(super) is_open: Tensor,
    pub(super) is_nan: Tensor,
}

/// What a solve that may continue after an event knows at the start of a piece.
#[derive(Clone, Copy)]
pub(super) struct Past<'a> {
    /// The histories of the events that change the state, with their indices.
    pub(super) rhythms: &'a [(usize, Rhythm<Tensor>)],
    /// The errors at the start of the piece, if there are events.
    pub(super) errors: Option<&'a Errors>,
}

/// The events of one attempt.
pub(super) struct Seen {
    /// The mark of each event at the end of the step.
    pub(super) ends: Vec<Mark>,
    /// Whether a sign has changed.
    pub(super) has_occurred: Tensor,
    /// Whether to reject the step: an event function is NaN in it, or an event passes its root because its
    /// occurrences have accumulated beyond the resolution of the state.
    pub(super) is_bad: Tensor,
    /// The code of the event for which the step is rejected, stored in place of a component.
    pub(super) code: Tensor,
    /// Whether the step is rejected because of an accumulation.
    pub(super) is_zeno: Tensor,
}

impl Along<'_> {
    /// The value at a time in the step.
    pub(super) fn at(&self, t: &Tensor) -> Tensor {
        (self.watch.when)(t, &self.curve.eval(t, self.step))
    }

    /// The time at a fraction of the step, and the value there.
    fn at_part(&self, part: f64) -> [Tensor; 2] {
        let Along { watch, curve, step, y1, .. } = self;
        if part == 1.0 {
            return [step.t_next.clone(), (watch.when)(&step.t_next, y1)];
        }
        let t = &step.t + (&step.t_next - &step.t) * part;
        let value = (watch.when)(&t, &curve.at_part(part, step));
        [t, value]
    }

    /// The signs along the step.
    pub(super) fn samples(&self, mark: &Mark) -> Samples {
        let parts: Vec<[Tensor; 2]> = self.watch.event.parts().map(|part| self.at_part(part)).collect();
        let opened = self.opened(mark, &parts);
        let start = |at: usize, own: &Tensor, open: Tensor| {
            opened.by_look().select(&opened.left[at], &opened.was_open().select(&open, own))
        };
        let t0 = &self.step.t;
        let mut values = vec![[start(0, t0, t0.clone()), start(1, &mark.value, number(0.0))]];
        let mut is_nan = always().not();
        for (part, [t, value]) in parts.iter().enumerate() {
            values.push([t.clone(), opened.is_open_at(part).select(&number(0.0), value)]);
            is_nan = is_nan.or(&self::is_nan(value));
        }
        let is_open = opened.is_open_at(parts.len() - 1);
        Samples { values, opened, is_open, is_nan }
    }

    /// Whether the state no longer resolves the occurrences of an event with this history, and the event's mark at
    /// the end of the step.
    fn end(&self, mark: &Mark, samples: &Samples, rhythm: Option<&Rhythm<Tensor>>) -> (Tensor, Mark) {
        let Samples { values, opened: Opened { left: [t_left, left], .. }, is_open, .. } = samples;
        let value = values[values.len() - 1][1].clone();
        let Some(rhythm) = rhythm else { return (always().not(), Mark::new(value)) };
        let has_acted = mark.side.ne(0.0);
        let has_gone_on = has_acted.and(&mark.has_gone_on(left));
        let is_asked = has_gone_on.or(&has_acted.and(is_open));
        let interval = rhythm.interval();
        let returns = cond(
            &is_asked,
            &interval,
            |interval| self.returns_at_first(mark, interval),
            |_: &Tensor| always().not(),
        );
        let rests = has_gone_on.and(&rhythm.rests(t_left));
        let back = rests.or(&returns).or(&mark.has_turned_back());
        let sign = mark.side.lt(0.0).select(&number(-1.0), &number(1.0));
        let side = back.select(&(&sign * TURNED_BACK), &sign);
        let side = has_acted.and(is_open).select(&side, &number(0.0));
        (has_gone_on.and(&back), Mark { value, side })
    }

    /// The samples of the step, and each pair of neighbors as a bracket with whether the sign changes in it; a pair
    /// without a change is replaced by the end of the step.
    pub(super) fn brackets(&self, mark: &Mark) -> (Vec<[Tensor; 2]>, Vec<(Tensor, Bracket<Tensor>)>) {
        let samples = self.samples(mark).values;
        let end = &samples[samples.len() - 1];
        let of = |pair: &[[Tensor; 2]]| {
            let occurrence = self.watch.event.has_occurred(&pair[0][1], &pair[1][1]);
            let or_end =
                |x: &[Tensor; 2]| [occurrence.select(&x[0], &end[0]), occurrence.select(&x[1], &end[1])];
            let bracket = Bracket::new(or_end(&pair[0]), or_end(&pair[1]));
            (occurrence, bracket)
        };
        let brackets = samples.windows(2).map(of).collect();
        (samples, brackets)
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
    pub(super) fn along<'s>(
        &self,
        i: usize,
        (curve, step, y1): (&'s Curve, &'s Rows, &'s Leaves),
        errors: &'s Errors,
    ) -> Along<'s>
    where
        'a: 's,
    {
        Along { watch: &self.watches[i], curve, step, y1, errors }
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

    /// Checks an attempted step that led to `y1`.
    pub(super) fn check(
        &self,
        curve: &Curve,
        (step, y1): (&Rows, &Leaves),
        marks: &[Mark],
        past: Past<'_>,
    ) -> Seen {
        let no = always().not();
        let (mut has_occurred, mut ends) = (no.clone(), vec![]);
        let (mut nan, mut zeno) = (vec![], vec![]);
        for (i, watch) in self.watches.iter().enumerate() {
            let errors = past.errors.expect("invariant: a solve with events has the errors at its start");
            let along = self.along(i, (curve, step, y1), errors);
            let samples = along.samples(&marks[i]);
            let pairs = samples.values.windows(2);
            let occurrences = pairs.map(|pair| watch.event.has_occurred(&pair[0][1], &pair[1][1]));
            has_occurred = occurrences.fold(has_occurred, |all, occurrence| all.or(&occurrence));
            let rhythm = past.rhythms.iter().find(|(of, _)| *of == i).map(|(_, rhythm)| rhythm);
            let (is_zeno, end) = along.end(&marks[i], &samples, rhythm);
            zeno.push(is_zeno);
            nan.push(samples.is_nan);
            ends.push(end);
        }
        let any = |m: &[Tensor]| m.iter().fold(no.clone(), |any, m| any.or(m));
        let is_zeno = any(&zeno);
        let code = is_zeno.select(&Self::code(&zeno), &Self::code(&nan));
        Seen { ends, has_occurred, is_bad: any(&nan).or(&is_zeno), code, is_zeno }
    }

    /// The event time in `bracket`.
    ///
    /// # Errors
    /// The error of the event function while it was recorded.
    pub(super) fn root(along: &Along<'_>, bracket: Bracket<Tensor>) -> Result<Tensor, SolveError> {
        search(bracket, &along.watch.event, &|t| along.at(t))
    }
}
