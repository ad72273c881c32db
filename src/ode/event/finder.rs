//! Events of a solve on plain states: which of them occur in a step, and their actions.

use super::behind::Displacements;
use super::occurrence::{Occurrence, keep_first_of_each, put_in_order};
use super::signs::{SPEED_PART, TANGENT, TURNED_BACK};
use super::{Bracket, EventRecord, Mark, Rhythm, Watch};
use crate::ode::builder::locked;
use crate::ode::given_times::Resets;
use crate::ode::integrator::Integrator;
use crate::ode::step_end::ulps;
use crate::ode::{Outcome, PlainState, Scheme, SolveError, VectorField, status};

/// The events of a solve, and the state of their search at the start of the next step.
pub(in crate::ode) struct Finder<'o, 'f, Y: PlainState> {
    watches: &'o [Watch<'f, Y>],
    marks: Vec<Mark<f64>>,
    /// Occurrences of each event so far.
    counts: Vec<u64>,
    rhythms: Vec<Rhythm<f64>>,
    /// The maximum number of recorded events.
    max_events: usize,
    /// The sign changes within the current step.
    occurrences: Vec<Occurrence>,
    /// The events at the time at which the step is cut, each with its function's value at the sample before.
    group: Vec<(usize, f64)>,
    /// The marks at the end of the step.
    ends: Vec<Mark<f64>>,
    /// The errors [`BEHIND`] the start or the last instant, and of the time of two events [`AT_ONCE`].
    displacements: [Displacements<Y>; 2],
    sizes: Vec<f64>,
    scratch: Y,
}

const BEHIND: usize = 0;
const AT_ONCE: usize = 1;

/// The result of searching a step.
pub(in crate::ode) enum Found {
    /// No event ends the step.
    Nothing,
    /// The step ends at this time, at which [`Finder::act`] runs the state resets.
    Instant(f64),
    /// The step ends at this time, at the first event beyond `max_events`.
    Full(f64),
    /// The function of the event with this index is NaN in the step.
    NotANumber(usize),
    /// A reset of the event with this index sends the solution back, but the state is beyond the root as soon
    /// as its sign is certain: its precision no longer resolves the occurrences.
    Sunk(usize),
}

/// An event's function on the dense output of a step.
struct Curve<'a, 'f, Y: PlainState> {
    watch: &'a Watch<'f, Y>,
    integrator: &'a mut Integrator<Y>,
    scratch: &'a mut Y,
}

impl<Y: PlainState> Curve<'_, '_, Y> {
    /// The time at a fraction of the step, and the function's value there.
    fn at_part(&mut self, part: f64) -> [f64; 2] {
        let (t0, t1) = (self.integrator.t(), self.integrator.carry.t);
        let t = if part == 1.0 { t1 } else { t0 + (t1 - t0) * part };
        [t, self.at(&t)]
    }

    /// The function's value at a time within the step.
    fn at(&mut self, t: &f64) -> f64 {
        state_at(*t, self.integrator, self.scratch);
        (self.watch.when)(*t, self.scratch)
    }

    /// The value at a time within the step if its sign is certain.
    fn certain_at(&mut self, t: f64, mark: &Mark<f64>, displacements: &mut Displacements<Y>) -> Option<f64> {
        state_at(t, self.integrator, self.scratch);
        displacements.certain(&*self.watch.when, (t, self.scratch), mark.side)
    }

    /// The last sample without NaN between `before` and the time `nan`.
    fn last_number(&mut self, mut before: [f64; 2], mut nan: f64) -> [f64; 2] {
        loop {
            let t = before[0] + (nan - before[0]) * 0.5;
            let is_apart = (nan - before[0]).abs() > self.watch.event.resolution(&nan);
            if !is_apart || t == before[0] || t == nan {
                return before;
            }
            let value = self.at(&t);
            if value.is_nan() { nan = t } else { before = [t, value] }
        }
    }

    /// Whether the tangent of the solution at the start of the step leads to the side that the mark's event
    /// came from, before the time `end`.
    fn returns_at_first(&mut self, mark: &Mark<f64>, end: f64, displacements: &mut Displacements<Y>) -> bool {
        let (t0, y0) = (self.integrator.t(), self.integrator.segment().y.clone());
        let mut slope = y0.clone();
        self.integrator.derivative_into(t0, &mut slope);
        let mut certain = self.watch.event.looks(&t0, &end).filter_map(|t| {
            self.scratch.lincomb(&y0, &(t - t0), &[1.0], std::slice::from_ref(&slope));
            displacements.certain(&*self.watch.when, (t, self.scratch), mark.side)
        });
        certain.next().is_some_and(|value| mark.has_returned(&value))
    }
}

/// Writes the state at `t`, a time within the last accepted step, to `out`.
fn state_at<Y: PlainState>(t: f64, integrator: &mut Integrator<Y>, out: &mut Y) {
    if t == integrator.carry.t {
        out.copy_of(&integrator.carry.y);
    } else {
        integrator.eval_into(t, out);
    }
}

impl<'o, 'f, Y: PlainState> Finder<'o, 'f, Y> {
    /// Creates the finder at the start of a solve. The solve ends at once if the function of an event is NaN.
    pub fn new(watches: &'o [Watch<'f, Y>], max_events: usize, integrator: &mut Integrator<Y>) -> Self {
        let (t0, n) = (integrator.carry.t, watches.len());
        let mut finder = Finder {
            watches,
            marks: Vec::with_capacity(n),
            counts: vec![0; n],
            rhythms: vec![Rhythm::new(&t0); n],
            max_events,
            occurrences: Vec::new(),
            group: Vec::new(),
            ends: Vec::with_capacity(n),
            displacements: [(); 2].map(|()| Displacements::none(&integrator.carry.y, n > 0)),
            sizes: vec![],
            scratch: integrator.carry.y.clone(),
        };
        if n > 0 {
            finder.displacements[BEHIND].set(t0, &integrator.carry.y);
        }
        for index in 0..n {
            let value = finder.value_behind(index, integrator);
            finder.marks.push(Mark::new(value));
        }
        finder
    }

    /// Whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.watches.is_empty()
    }

    /// Searches the last accepted step, which is complete. Records its events up to the first time at which
    /// an event changes the state or ends the solve, that time included.
    pub fn find(&mut self, integrator: &mut Integrator<Y>, events: &mut Vec<EventRecord<Y>>) -> Found {
        let nan = match self.search(integrator) {
            Ok(nan) => nan,
            Err(sunk) => return sunk,
        };
        let (sign, num_before) = (integrator.span.direction, events.len());
        put_in_order(&mut self.occurrences, sign);
        while let Some(t) = self.occurrences.iter().find(|one| !one.is_recorded).map(|one| one.t) {
            if nan.is_some_and(|(nan, _)| t * sign > nan * sign) {
                break;
            }
            self.gather(t, integrator);
            if events.len() + self.group.len() > self.max_events {
                state_at(t, integrator, &mut self.scratch);
                return Found::Full(t);
            }
            let mut acts = false;
            state_at(t, integrator, &mut self.scratch);
            for &(index, _) in &self.group {
                events.push(EventRecord { index, t, y: self.scratch.clone() });
                self.counts[index] += 1;
                let Watch { event, then, .. } = &self.watches[index];
                acts |= then.is_some() || event.ends_at(self.counts[index]);
            }
            if acts {
                return Found::Instant(t);
            }
        }
        // An event that ends the step before a NaN is valid: the step is cut there.
        if let Some((_, index)) = nan {
            events.drain(num_before..).for_each(|event| self.counts[event.index] -= 1);
            return Found::NotANumber(index);
        }
        std::mem::swap(&mut self.marks, &mut self.ends);
        Found::Nothing
    }

    /// Finds every sign change of the step, and the marks at its end. Returns the last time before the first NaN
    /// of an event's function, and the event's index.
    fn search(&mut self, integrator: &mut Integrator<Y>) -> Result<Option<(f64, usize)>, Found> {
        self.occurrences.clear();
        self.ends.clear();
        let (t0, sign) = (integrator.t(), integrator.span.direction);
        let mut first_nan: Option<(f64, usize)> = None;
        for (index, watch) in self.watches.iter().enumerate() {
            let Watch { event, then, .. } = watch;
            let mark = &self.marks[index];
            let mut curve = Curve { watch, integrator, scratch: &mut self.scratch };
            let displacements = &mut self.displacements[BEHIND];
            let mut before = [t0, mark.value];
            let (mut is_open, mut first_certain, mut nan) = (mark.is_open(), None, None);
            if is_open {
                let first = t0 + (curve.integrator.carry.t - t0) / event.interp_points as f64;
                let mut looks = event.looks(&t0, &first).filter(|t| *t != t0);
                first_certain = looks.find_map(|t| Some([t, curve.certain_at(t, mark, displacements)?]));
                (is_open, before) = (first_certain.is_none(), first_certain.unwrap_or(before));
            }
            for part in event.parts() {
                let mut after = curve.at_part(part);
                if after[1].is_nan() {
                    after = curve.last_number(before, after[0]);
                    nan = Some((after[0], index));
                }
                if is_open {
                    first_certain =
                        curve.certain_at(after[0], mark, displacements).map(|value| [after[0], value]);
                    is_open = first_certain.is_none();
                } else if event.has_occurred(&before[1], &after[1]) {
                    match Bracket::new(before, after).search(event, |t| curve.at(t)) {
                        Some(t) => self.occurrences.push(Occurrence { index, before, t, is_recorded: false }),
                        None => nan = Some((before[0], index)),
                    }
                }
                before = after;
                if nan.is_some() {
                    break;
                }
            }
            let mut side = 0.0;
            if mark.side != 0.0 && then.is_some() {
                let end = t0 + sign * TANGENT * self.rhythms[index].interval();
                let has_gone_on = first_certain.is_some_and(|[_, value]| mark.has_gone_on(&value));
                let rests = first_certain.is_some_and(|[t, _]| self.rhythms[index].rests(&t));
                let returns = (is_open || has_gone_on)
                    && (rests || mark.has_turned_back() || curve.returns_at_first(mark, end, displacements));
                if returns && has_gone_on {
                    return Err(Found::Sunk(index));
                }
                side = if returns { TURNED_BACK } else { 1.0 } * mark.side.signum();
            }
            self.ends.push(if is_open { Mark { value: 0.0, side } } else { Mark::new(before[1]) });
            let is_first = |t: f64| first_nan.is_none_or(|(first, _)| t * sign < first * sign);
            first_nan = nan.filter(|(t, _)| is_first(*t)).or(first_nan);
        }
        Ok(first_nan)
    }

    /// Collects in `group` the events at `t`, the time of the first occurrence that is not recorded yet. An event
    /// with a later occurrence is one of them if its sign has changed at `t`, or is not certain there.
    fn gather(&mut self, t: f64, integrator: &mut Integrator<Y>) {
        let sign = integrator.span.direction;
        let is_near = |one: &Occurrence| !one.is_recorded && (one.t == t || one.before[0] * sign < t * sign);
        if self.occurrences.iter().any(|one| is_near(one) && one.t != t) {
            self.measure(AT_ONCE, (t, ulps(4.0, &t)), false, integrator);
            self.displacements[AT_ONCE].set(t, &self.scratch);
        }
        self.group.clear();
        for one in self.occurrences.iter_mut().filter(|one| is_near(one)) {
            let Watch { event, when, .. } = &self.watches[one.index];
            let has_changed = || event.has_occurred(&one.before[1], &when(t, &self.scratch));
            let mut is_certain =
                || self.displacements[AT_ONCE].certain(&**when, (t, &self.scratch), 0.0).is_some();
            if one.t == t || has_changed() || !is_certain() {
                one.is_recorded = true;
                self.group.push((one.index, one.before[1]));
            }
        }
        keep_first_of_each(&mut self.group);
    }

    /// The state at the time at which the step is cut.
    pub fn y_end(&self) -> &Y {
        &self.scratch
    }

    /// Runs the resets that are due at the end of the last step, at which no event has ended it.
    ///
    /// # Errors
    /// As [`act`](Self::act).
    pub fn act_at_end(
        &mut self,
        resets: &mut Resets<'_, 'f, Y>,
        (field, scheme): (&dyn VectorField<Y>, &Scheme<Y>),
        integrator: &mut Integrator<Y>,
    ) -> Result<(), SolveError> {
        let t = integrator.carry.t;
        self.group.clear();
        self.scratch.copy_of(&integrator.carry.y);
        self.act(t, resets, (field, scheme), integrator).map(|_| ())
    }

    /// Cuts the step at `t`, and runs the state resets of the events in `group`, then the `resets` that are due.
    /// The solve then ends or continues from the new state. Returns the outcome if the solve ends.
    ///
    /// # Errors
    /// A vector field that failed; a state reset that changed the shape of y, or made it NaN or infinite. The step
    /// then ends at t, without the resets.
    pub fn act(
        &mut self,
        t: f64,
        resets: &mut Resets<'_, 'f, Y>,
        (field, scheme): (&dyn VectorField<Y>, &Scheme<Y>),
        integrator: &mut Integrator<Y>,
    ) -> Result<Option<Outcome>, SolveError> {
        let t_end = integrator.carry.t;
        if self.is_empty() {
            return self.reset(t, resets, integrator).and_then(|_| {
                integrator.resume(field, scheme, t_end)?;
                Ok(None)
            });
        }
        let is_open = |(index, mark): (usize, &Mark<f64>)| mark.side != 0.0 && !self.is_in_group(index);
        let keeps_larger = self.marks.iter().enumerate().any(is_open);
        self.measure(BEHIND, (t, self.resolution(t)), keeps_larger, integrator);
        if let Some(outcome) = self.reset(t, resets, integrator)? {
            let is_last = matches!(outcome, Outcome::Event { .. });
            integrator.carry.status = if is_last { status::EVENT } else { status::ZENO };
            return Ok(Some(outcome));
        }
        integrator.resume(field, scheme, t_end)?;
        self.displacements[BEHIND].set(t, &integrator.carry.y);
        self.ends.clear();
        for index in 0..self.watches.len() {
            let value = self.value_behind(index, integrator);
            let mark = self.mark_behind(index, (t, t_end, value), integrator);
            self.ends.push(mark);
        }
        std::mem::swap(&mut self.marks, &mut self.ends);
        Ok(None)
    }

    /// Cuts the step at `t` with the state after the resets. Returns the outcome if an event ends the solve; the
    /// resets that are due at `t` then do not run.
    fn reset(
        &mut self,
        t: f64,
        resets: &mut Resets<'_, 'f, Y>,
        integrator: &mut Integrator<Y>,
    ) -> Result<Option<Outcome>, SolveError> {
        let mut y = self.scratch.clone();
        integrator.cut(t, y.clone());
        let (mut last, mut zeno) = (None, None);
        for &(index, _) in &self.group {
            let Watch { event, then, .. } = &self.watches[index];
            if let Some(then) = then {
                locked(then)(t, &mut y);
                if let Err(change) = y.conforms(&self.scratch) {
                    let reason = format!("changed y, {change}; a state reset must keep the shape of y");
                    return Err(SolveError::Event { index, t, reason, partial: Box::new(()) });
                }
                let broken = y.first_non_finite(&t);
                if broken >= 0.0 {
                    let reason =
                        format!("made component {broken} NaN or infinite; a state reset must keep y finite");
                    return Err(SolveError::Event { index, t, reason, partial: Box::new(()) });
                }
                self.rhythms[index] = self.rhythms[index].beat(&t, &event.resolution(&t));
                let accumulates = self.rhythms[index].accumulates();
                zeno = zeno.or(accumulates.then_some(Outcome::Zeno { index, t }));
            }
            let ends = event.ends_at(self.counts[index]);
            last = last.or(ends.then_some(Outcome::Event { index, t }));
        }
        let outcome = last.or(zeno);
        if outcome.is_none() {
            resets.act(t, &mut y)?;
        }
        integrator.cut(t, y);
        Ok(outcome)
    }

    /// Measures the errors of the time `t`, known up to `resolution`, and of the state there, and writes the state to
    /// `scratch`. The last step is not cut yet.
    fn measure(
        &mut self,
        which: usize,
        (t, resolution): (f64, f64),
        keeps_larger: bool,
        integrator: &mut Integrator<Y>,
    ) {
        let t0 = integrator.t();
        let span = (t - t0) * (resolution / (t - t0).abs()).clamp(SPEED_PART, 1.0);
        let mut earlier = self.scratch.clone();
        state_at(t - span, integrator, &mut earlier);
        state_at(t, integrator, &mut self.scratch);
        integrator.sizes_into(t, &mut self.sizes);
        let (dt, part) = (resolution.copysign(span), resolution / span.abs());
        let displacements = &mut self.displacements[which];
        displacements.measure(dt, (&earlier, part), &self.scratch, &self.sizes, keeps_larger);
    }

    /// The resolution of the time of the events in `group`; without events, that of a given time.
    fn resolution(&self, t: f64) -> f64 {
        let least = if self.group.is_empty() { ulps(4.0, &t) } else { 0.0 };
        self.group.iter().fold(least, |most, (index, _)| self.watches[*index].event.resolution(&t).max(most))
    }

    fn is_in_group(&self, index: usize) -> bool {
        self.group.binary_search_by_key(&index, |(index, _)| *index).is_ok()
    }

    /// The value of an event's function at the carry's state. A NaN ends the solve.
    fn value_behind(&self, index: usize, integrator: &mut Integrator<Y>) -> f64 {
        let carry = &mut integrator.carry;
        let value = (self.watches[index].when)(carry.t, &carry.y);
        if value.is_nan() && carry.status == status::RUNNING {
            carry.status = status::NON_FINITE;
            (carry.component, carry.h) = (Outcome::code_of_event(index), 0.0);
        }
        value
    }

    /// The mark of an event whose function has this value behind the instant `t`. The step would have ended at
    /// `t_end`, and `scratch` is the state before the resets.
    ///
    /// An event that has just occurred has the sign that its function takes next. For any other event, a change
    /// of sign by the resets themselves is no event. If the sign is not certain and the resets have not
    /// changed that, the event keeps its last sign before the instant: it may occur right after the instant.
    fn mark_behind(
        &mut self,
        index: usize,
        (t, t_end, value): (f64, f64, f64),
        integrator: &mut Integrator<Y>,
    ) -> Mark<f64> {
        let (old, sign) = (self.marks[index].clone(), integrator.span.direction);
        let is_here = |o: &&Occurrence| o.index == index && o.t * sign <= t * sign;
        if let Ok(own) = self.group.binary_search_by_key(&index, |(index, _)| *index) {
            return Mark { value, side: -self.group[own].1.signum() };
        }
        let when = &*self.watches[index].when;
        if self.displacements[BEHIND].certain(when, (t, &integrator.carry.y), 0.0).is_some() {
            return Mark::new(value);
        }
        if self.displacements[BEHIND].certain(when, (t, &self.scratch), 0.0).is_some() {
            return Mark::new(0.0);
        }
        if let Some(occurrence) = self.occurrences.iter().rev().find(is_here) {
            return Mark { value, side: -occurrence.before[1].signum() };
        }
        let t0 = integrator.t();
        let times = self.watches[index].event.parts().map(|part| t0 + (t_end - t0) * part);
        let Some(last) = times.filter(|time| time * sign < t * sign).last() else { return old };
        let mut y = self.scratch.clone();
        integrator.eval_into(last, &mut y);
        let value = when(last, &y);
        if value.abs() > 0.0 { Mark::new(f64::MIN_POSITIVE.copysign(value)) } else { Mark::new(0.0) }
    }
}
