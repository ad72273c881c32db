//! Events of a solve on plain states: which of them occur in a step, and their actions.

use super::{Bracket, EventRecord, Mark, Rhythm, Watch};
use crate::ode::builder::locked;
use crate::ode::integrator::Integrator;
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
    /// The values of the functions at the end of the step.
    ends: Vec<f64>,
    scratch: Y,
}

/// A sign change within a step.
struct Occurrence {
    index: usize,
    /// The time and the value of the sample before.
    before: [f64; 2],
    t: f64,
}

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
    /// The event with this index passes through its root without a reset, because the precision of the state
    /// no longer resolves its occurrences.
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
            scratch: integrator.carry.y.clone(),
        };
        finder.mark(&[], integrator);
        finder
    }

    /// Whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.watches.is_empty()
    }

    /// Searches the last accepted step, which is complete. Records its events up to the first time at which
    /// an event changes the state or ends the solve, that time included.
    pub fn find(&mut self, integrator: &mut Integrator<Y>, events: &mut Vec<EventRecord<Y>>) -> Found {
        if let Err(found) = self.search(integrator) {
            return found;
        }
        let sign = integrator.span.direction;
        self.occurrences.sort_by(|a, b| (a.t * sign).total_cmp(&(b.t * sign)).then(a.index.cmp(&b.index)));
        let end = self.first_that_acts();
        let free = self.max_events - events.len();
        for n in 0..self.occurrences.len() {
            let Occurrence { index, t, .. } = self.occurrences[n];
            if end == Some(t) {
                break;
            }
            if n == free {
                return self.full(t, integrator);
            }
            self.record(index, t, integrator, events);
        }
        let Some(t) = end else {
            for (mark, value) in self.marks.iter_mut().zip(&self.ends) {
                *mark = Mark::new(*value);
            }
            return Found::Nothing;
        };
        self.gather(t, integrator);
        if events.len() + self.group.len() > self.max_events {
            return self.full(t, integrator);
        }
        for n in 0..self.group.len() {
            self.record(self.group[n].0, t, integrator, events);
        }
        Found::Instant(t)
    }

    /// Finds every sign change of the step, and the values at its end.
    fn search(&mut self, integrator: &mut Integrator<Y>) -> Result<(), Found> {
        self.occurrences.clear();
        self.ends.clear();
        let t0 = integrator.t();
        for (index, watch) in self.watches.iter().enumerate() {
            let Watch { event, then, .. } = watch;
            let mark = &self.marks[index];
            let mut curve = Curve { watch, integrator, scratch: &mut self.scratch };
            let mut before = [t0, mark.value];
            if mark.is_on_root() {
                let first = curve.at_part(1.0 / event.interp_points as f64)[0];
                // At the first sample, at the latest, the event counts as off its root.
                let mut times = Mark::looks(&t0, &first).filter(|t| *t != t0).map(|t| [t, curve.at(&t)]);
                before = times.find(|[t, value]| *t == first || mark.has_left(value)).unwrap_or(before);
                if mark.has_gone_on(&before[1]) && then.is_some() && self.rhythms[index].has_sunk() {
                    return Err(Found::Sunk(index));
                }
            }
            for part in event.parts() {
                let after = curve.at_part(part);
                if after[1].is_nan() {
                    return Err(Found::NotANumber(index));
                }
                if event.has_occurred(&before[1], &after[1]) {
                    let time = Bracket::new(before, after).search(event, |t| curve.at(t));
                    let t = time.ok_or(Found::NotANumber(index))?;
                    self.occurrences.push(Occurrence { index, before, t });
                }
                before = after;
            }
            self.ends.push(before[1]);
        }
        Ok(())
    }

    /// The time of the first event that changes the state or ends the solve.
    fn first_that_acts(&self) -> Option<f64> {
        let acts = |n: usize, occurrence: &Occurrence| {
            let Watch { event, then, .. } = &self.watches[occurrence.index];
            let earlier =
                self.occurrences[..n].iter().filter(|other| other.index == occurrence.index).count() as u64;
            then.is_some() || event.ends_at(self.counts[occurrence.index] + earlier + 1)
        };
        let mut occurrences = self.occurrences.iter().enumerate();
        occurrences.find(|(n, occurrence)| acts(*n, occurrence)).map(|(_, occurrence)| occurrence.t)
    }

    /// Collects in `group` the events that are not recorded yet and whose sign has changed at the time `t`.
    fn gather(&mut self, t: f64, integrator: &mut Integrator<Y>) {
        let sign = integrator.span.direction;
        self.group.clear();
        for occurrence in &self.occurrences {
            let Occurrence { index, before, t: own } = *occurrence;
            let watch = &self.watches[index];
            let mut curve = Curve { watch, integrator, scratch: &mut self.scratch };
            let mut has_changed = || watch.event.has_occurred(&before[1], &curve.at(&t));
            if own == t || own * sign > t * sign && before[0] * sign < t * sign && has_changed() {
                self.group.push((index, before[1]));
            }
        }
        self.group.sort_by_key(|(index, _)| *index);
        self.group.dedup_by_key(|(index, _)| *index);
    }

    fn record(
        &mut self,
        index: usize,
        t: f64,
        integrator: &mut Integrator<Y>,
        events: &mut Vec<EventRecord<Y>>,
    ) {
        state_at(t, integrator, &mut self.scratch);
        self.counts[index] += 1;
        events.push(EventRecord { index, t, y: self.scratch.clone() });
    }

    fn full(&mut self, t: f64, integrator: &mut Integrator<Y>) -> Found {
        state_at(t, integrator, &mut self.scratch);
        Found::Full(t)
    }

    /// The state at the time at which the step is cut.
    pub fn y_end(&self) -> &Y {
        &self.scratch
    }

    /// Cuts the step at `t` and runs the state resets of the events in `group`. The solve then ends or
    /// continues from the new state. Returns the outcome if the solve ends.
    ///
    /// # Errors
    /// A vector field that failed; a state reset that changed the shape of y.
    pub fn act(
        &mut self,
        t: f64,
        (field, scheme): (&dyn VectorField<Y>, &Scheme<Y>),
        integrator: &mut Integrator<Y>,
    ) -> Result<Option<Outcome>, SolveError> {
        let before = self.noise(t, integrator);
        let t_end = integrator.carry.t;
        state_at(t, integrator, &mut self.scratch);
        let mut y = self.scratch.clone();
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
                self.rhythms[index] = self.rhythms[index].beat(&t);
                let accumulates = self.rhythms[index].accumulates();
                zeno = zeno.or(accumulates.then_some(Outcome::Zeno { index, t }));
            }
            let ends = event.ends_at(self.counts[index]);
            last = last.or(ends.then_some(Outcome::Event { index, t }));
        }
        integrator.cut(t, y);
        if let Some(outcome) = last.or(zeno) {
            let is_last = matches!(outcome, Outcome::Event { .. });
            integrator.carry.status = if is_last { status::EVENT } else { status::ZENO };
            return Ok(Some(outcome));
        }
        integrator.resume(field, scheme, t_end)?;
        self.mark(&before, integrator);
        Ok(None)
    }

    /// For each event of `group`, the magnitude of its function at the root, with the sign that the function
    /// has changed to.
    fn noise(&mut self, t: f64, integrator: &mut Integrator<Y>) -> Vec<f64> {
        let sign = integrator.span.direction;
        let noise = |&(index, before): &(usize, f64)| {
            let watch = &self.watches[index];
            let mut curve = Curve { watch, integrator, scratch: &mut self.scratch };
            let earlier = t - sign * watch.event.resolution(&t);
            let size = curve.at(&t).abs().max(curve.at(&earlier).abs()).max(f64::MIN_POSITIVE);
            if before < 0.0 { size } else { -size }
        };
        self.group.iter().map(noise).collect()
    }

    /// Evaluates every event's function at the carry's state and stores its sign. `noise` has one entry per
    /// event of `group`. A NaN ends the solve.
    fn mark(&mut self, noise: &[f64], integrator: &mut Integrator<Y>) {
        self.marks.clear();
        for (index, watch) in self.watches.iter().enumerate() {
            let value = (watch.when)(integrator.carry.t, &integrator.carry.y);
            if value.is_nan() && integrator.carry.status == status::RUNNING {
                integrator.carry.status = status::NON_FINITE;
                (integrator.carry.component, integrator.carry.h) = (Outcome::code_of_event(index), 0.0);
            }
            self.marks.push(Mark::new(value));
        }
        for (&(index, _), &noise) in self.group.iter().zip(noise) {
            self.marks[index].noise = noise;
        }
    }
}
