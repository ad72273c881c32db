//! Solves that continue after an event: one search per piece, each up to a step with events.
//!
//! A piece is a search that ends after the first step with an event. The events of this step are recorded. If
//! one of them ends the solve or changes the state, the step is cut at the first such event. The next piece
//! starts at the end of the step, with the counters, the step size and the controller's history so far. The
//! pieces are the iterations of one loop, whose body is one search. So the program has the same size for one
//! event and for a thousand, and differentiating an iteration differentiates its search and the event time.
//! Alternative considered: one search that cuts its steps. Every schedule would need a second time per step, its
//! end before the cut. This module must not depend on how a search is differentiated.

use super::TensorDenseOutput;
use super::algorithm::{self, Carry};
use super::behind::Errors;
use super::bodies::Bodies;
use super::curve::{Rows, choose};
use super::evaluations::Evaluations;
use super::event::{Events, Past, always, marks_of, number};
use super::event_records::{Cut, EventRecords, LastStep};
use super::leaves::Leaves;
use super::problem::{Problem, failed, solution};
use super::saved::{states_at, ys_of};
use super::solve::Recorded;
use super::stiffness::Stiffness;
use crate::array::DType;
use crate::graph::{Taps, Type};
use crate::ode::{self, FieldFailure, Rhythm, SolveError, Span, State, status};
use crate::tensor::{Tensor, Tree, Trip, cond, repeat, try_trace};
use crate::tree;

tree! {
/// The state between two pieces.
struct Leg {
    /// The start of the next piece.
    t: Tensor,
    /// The state at `t`.
    y: Leaves,
    occurrences: EventRecords<Leaves>,
    /// The states at the given times, NaN at times that no piece has reached yet.
    at_times: Option<Leaves>,
    steps: Option<PastSteps>,
    /// The carry of the search apart from t and y.
    search: Vec<Tensor>,
    /// The value of each event's function at `t`, and its side ([`Mark`](super::event::Mark)).
    values: Vec<Tensor>,
    sides: Vec<Tensor>,
    /// The errors at the start of the solve, or at the last instant.
    errors: Errors,
    /// The number of occurrences of each event.
    counts: Vec<Tensor>,
    /// The five clocks of the [`Rhythm`] of each event that changes the state.
    rhythms: Vec<Tensor>,
    num_off_grid: Tensor,
    /// The carry of the stiffness checks. It comes last and no other value depends on it, so a replay omits it.
    checks: Vec<Tensor>,
}
}

tree! {
/// The data of every step so far.
struct PastSteps {
    rows: Rows,
    /// The end time of each step, after any cut by an event; `rows.t_next` is the end before the cut.
    ends: Tensor,
}
}

/// A solve that is cut into pieces.
struct Pieces<'a> {
    of: &'a Problem<'a>,
    span: &'a Span<Tensor>,
    taps: Taps,
    /// The data that a step stores, for their shapes.
    like: Rows,
}

/// Records a solve that may continue after an event.
///
/// # Errors
/// The field's error while it was recorded; saved steps that take too many bytes.
pub(super) fn record(of: &Problem<'_>, (t0, t1): (&Tensor, &Tensor), y0: &Leaves) -> Recorded {
    let span = Span::new(t0.clone(), t1.clone());
    let like = of.trail.like(t0, y0);
    let pieces = Pieces { of, span: &span, taps: of.saved.taps(true, &like)?, like };
    let last = pieces.run(&pieces.first(y0)?)?;
    let mut end = pieces.carry(&last);
    let mut solution = solution(&end, of.scheme.limits.dt_min);
    solution.stiff_from = Stiffness::detected(&last.checks);
    let num_steps = std::mem::replace(&mut end.num_accepted, number(0.0));
    let steps = last.steps.as_ref();
    // A step that an event cut short is saved with the event's time as its end.
    let ended = steps.map(|kept| Rows { t_next: kept.ends.clone(), ..kept.rows.clone() });
    (solution.ts, solution.ys, solution.num_saved) = of.saved.join_legs(
        (t0, y0),
        (last.at_times, ended),
        (&last.t, &last.y),
        (&num_steps, &span.direction),
    );
    solution.dense = steps.filter(|_| of.saved.dense).and_then(|kept| {
        Some(TensorDenseOutput {
            t0: t0.clone(),
            t1: last.t.clone(),
            rows: None,
            num_steps,
            ends: kept.ends.clone(),
            steps: kept.rows.clone(),
            y1: last.y.clone(),
            curve: of.trail.curve.clone()?,
        })
    });
    (solution.t1, solution.y1, solution.events) = (last.t, last.y, Some(last.occurrences));
    Ok(solution)
}

impl Pieces<'_> {
    /// The state before the first piece.
    fn first(&self, y0: &Leaves) -> Result<Leg, SolveError> {
        let Problem { field, scheme, saved, events, .. } = self.of;
        let mut start = algorithm::start(*field, scheme, self.span, y0.clone()).map_err(failed)?;
        let rows =
            |n: usize, x: &Tensor, of: f64| Tensor::full(x.dtype(), [&[n], &x.shape()[..]].concat(), of);
        if let Some(found) = self.of.consistent(&Evaluations::of(*field), (&self.span.t0, y0))? {
            found.end(&found.is_violated(), &mut start);
        }
        let values = events.values(&self.span.t0, y0);
        Events::refuse_nan(&values, &always(), &mut start);
        let num_steps = saved.num_each();
        let kept = PastSteps {
            rows: self.like.map_leaves(|x| rows(num_steps, x, 0.0)),
            ends: Tensor::full(DType::F64, [num_steps], 0.0),
        };
        let times = saved.num_times();
        Ok(Leg {
            t: self.span.t0.clone(),
            y: y0.clone(),
            occurrences: EventRecords::none(events.num_rows(), y0),
            at_times: (times > 0).then(|| y0.map_leaves(|y| rows(times, y, f64::NAN))),
            steps: (num_steps > 0).then_some(kept),
            sides: vec![number(0.0); values.len()],
            errors: Errors::none(y0).of(y0),
            counts: vec![number(0.0); values.len()],
            rhythms: self
                .acting()
                .flat_map(|_| Rhythm::new(&self.span.t0.stop_gradient()).clocks())
                .collect(),
            values: values.iter().map(Tensor::stop_gradient).collect(),
            num_off_grid: start.num_off_grid.clone(),
            checks: self.of.stiffness.clocks(),
            search: self.of.carried(&mut start).split_off(y0.tensors().len()),
        })
    }

    /// The carry at the start of a piece.
    fn carry(&self, leg: &Leg) -> Carry {
        let mut carry = Carry::new(leg.t.clone(), leg.y.clone(), self.of.scheme.tableau.num_stages());
        self.of.load(&mut carry, &[leg.y.leaves(), leg.search.clone()].concat());
        carry.t = leg.t.clone();
        carry.num_off_grid = leg.num_off_grid.clone();
        carry
    }

    /// Records the loop over all pieces; returns the state after the last piece.
    fn run(&self, first: &Leg) -> Result<Leg, SolveError> {
        let leaves = first.leaves();
        let types: Vec<Type> =
            std::iter::once(Type::scalar(DType::F64)).chain(leaves.iter().map(Tensor::ty)).collect();
        let piece = try_trace(&types, &mut |x| {
            let next = self.piece(&x[0], &first.with_leaves(x[1..].to_vec()))?;
            let is_running = self.carry(&next).is_running();
            Ok::<_, SolveError>([vec![is_running], next.leaves()].concat())
        })?;
        let num_carry = leaves.len() - first.checks.len();
        let trip = Trip { traced: &piece, num_carry, guard: None };
        let end = repeat(&trip, &leaves, (0, self.of.options.adjoint.policy()));
        Ok(first.with_leaves(end))
    }

    /// One piece; `trip` is its number, counted from 0.
    fn piece(&self, trip: &Tensor, leg: &Leg) -> Result<Leg, SolveError> {
        let Problem { events, trail, .. } = self.of;
        let mut start = self.carry(leg);
        let num_steps = start.num_accepted.clone();
        let rhythms = self.rhythms(leg);
        let past = Past { rhythms: &rhythms, errors: Some(&leg.errors) };
        // The first stage was evaluated in the piece before.
        let field = Evaluations::of(self.of.field);
        let attempt = self.of.attempt((&field, false), self.span, &mut start, past)?;
        let (step, num_own) = self.of.step((&field, false), self.span, (&leg.t, &leg.y))?;
        let bodies = Bodies { attempt, step, inverse: None, num_own, first: vec![] };
        let marks = [&leg.values[..], &leg.sides].concat();
        let own = [start.status.clone(), leg.num_off_grid.clone()];
        let ext = [&marks[..], &marks, &own, &leg.checks].concat();
        let (end, ext, tapped) = self.of.search(self.span, start, bodies, (&ext, self.taps));
        let tapped = self.like.with_leaves(tapped);
        let step = tapped.map_leaves(|x| x.index(self.taps.num_rows() - 1));

        let curve = trail.curve.as_ref().expect("invariant: events have a curve");
        let n = events.watches.len();
        let (ends, starts, rest) = (&ext[..2 * n], &ext[2 * n..4 * n], &ext[4 * n..]);
        let is_met = end.status.eq(status::EVENT);
        let marks = marks_of(&starts[..n], &starts[n..]);
        let last = LastStep {
            curve,
            span: self.span,
            step: &step,
            y1: &end.y,
            marks: &marks,
            errors: &leg.errors,
            counts: &leg.counts,
            is_met: &is_met,
        };
        let (occurrences, cut) = leg.occurrences.and(events, &last)?;
        let own_status = is_met.select(&rest[0], &end.status);
        // The end of the piece before a state reset. If t1 is reached, this is `span.t1`, so that t1 has a gradient.
        let t = own_status.eq(status::COMPLETED).select(&self.span.t1, &end.t);
        let t = cut.is_met.select(&cut.t, &t);
        let y = choose(&cut.is_met, &cut.y, &end.y);
        let at_times = self.at_times(trip, leg, &tapped, (&t, &y));
        let steps = leg.steps.as_ref().map(|kept| {
            let rows = self.of.saved.all_steps(&tapped);
            kept.and(&rows, (&num_steps, &end.num_accepted), (&t, &y))
        });
        let stands = Stands { own_status, num_off_grid: rest[1].clone(), t_start: step.t.clone(), ends };
        let mut next = self.go_on(leg, end, stands, &cut, (t, y))?;
        (next.occurrences, next.at_times, next.steps) = (occurrences, at_times, steps);
        next.checks = rest[2..].iter().map(Tensor::stop_gradient).collect();
        Ok(next)
    }

    /// The indices of the events that change the state.
    fn acting(&self) -> impl Iterator<Item = usize> {
        let watches = self.of.events.watches;
        (0..watches.len()).filter(|&i| watches[i].then.is_some())
    }

    /// The index and the rhythm of each event that changes the state.
    fn rhythms(&self, leg: &Leg) -> Vec<(usize, Rhythm<Tensor>)> {
        let of = |x: &[Tensor]| Rhythm::of([0, 1, 2, 3, 4].map(|k: usize| x[k].clone()));
        self.acting().zip(leg.rhythms.chunks(5).map(of)).collect()
    }

    /// The states at the given times, after the piece that ends at (t, y).
    fn at_times(
        &self,
        trip: &Tensor,
        leg: &Leg,
        tapped: &Rows,
        (t, y): (&Tensor, &Leaves),
    ) -> Option<Leaves> {
        let ts = self.of.saved.ts.as_ref()?;
        let curve = self.of.trail.curve.as_ref()?;
        let ahead = |t: &Tensor| (ts - t) * &self.span.direction;
        let behind_start = ahead(&leg.t).gt(0.0).or(&ts.eq(&leg.t).and(&trip.eq(0.0)));
        let inside = behind_start.and(&ahead(t).le(0.0));
        let found = states_at(ts, curve, &tapped.slice(0..ts.size()), (t, y));
        leg.at_times.as_ref().map(|known| choose(&inside, &found, known))
    }

    /// At the instant `cut`, ends the solve, or resets the state and continues. If no event changes the state or
    /// ends the solve, continues unchanged.
    fn go_on(
        &self,
        leg: &Leg,
        end: Carry,
        stands: Stands<'_>,
        cut: &Cut,
        (t, y): (Tensor, Leaves),
    ) -> Result<Leg, SolveError> {
        let Problem { field, scheme, events, .. } = self.of;
        let Stands { own_status, num_off_grid, t_start, ends } = stands;
        let acts = cut.is_met.and(&cut.is_beyond.not());
        let group: Vec<Tensor> = cut.group.iter().map(|m| m.and(&acts)).collect();
        let (t, mut y) = self.act(&group, &cut.own, (t, y))?;
        let counts: Vec<Tensor> = leg.counts.iter().zip(&cut.counts).map(|(old, new)| old + new).collect();
        let is_last = |(i, occurrence): (usize, &Tensor)| match events.watches[i].event.terminal {
            0 => always().not(),
            n => occurrence.and(&counts[i].ge(n as f64)),
        };
        let lasts: Vec<Tensor> = group.iter().enumerate().map(is_last).collect();
        let (rhythms, zenos) = self.beat(leg, &group, &t);
        let any = |m: &[Tensor]| m.iter().fold(always().not(), |any, m| any.or(m));
        let (stops, accumulates) = (any(&lasts), any(&zenos));
        let goes_on = acts.and(&stops.not()).and(&accumulates.not());

        let mut next = end.clone();
        let is_event = end.status.eq(status::EVENT);
        next.status = accumulates.select(&number(status::ZENO), &own_status);
        next.status = stops.select(&number(status::EVENT), &next.status);
        next.status = cut.is_beyond.select(&number(status::MAX_EVENTS), &next.status);
        let which = stops.select(&Events::code(&lasts), &Events::code(&zenos));
        let which = Events::index_of(&which);
        let which = cut.is_beyond.select(&number(events.num_rows() as f64), &which);
        next.component = is_event.select(&which, &end.component);
        (next.t, next.y) = (t.clone(), y.clone());
        ode::resume(field, scheme, self.span, (&t_start, &num_off_grid, &end.t), &goes_on, &mut next)
            .map_err(failed)?;

        if let Some(found) = self.of.consistent(&Evaluations::of(*field), (&t, &y))? {
            let resets = self.acting().fold(always().not(), |any, i| any.or(&group[i]));
            let is_due = goes_on.and(&resets).and(&next.is_running());
            y = choose(&is_due.and(&found.is_found()), &found.y, &y);
            next.y = y.clone();
            found.end(&is_due.and(&found.is_found().not()), &mut next);
        }

        let (values, sides) = ends.split_at(events.watches.len());
        let again = events.values(&t, &y);
        Events::refuse_nan(&again, &goes_on, &mut next);
        let errors = cut.errors.of(&y);
        let (marks, marked): (Vec<Tensor>, Vec<Tensor>) = (0..events.watches.len())
            .map(|i| events.mark_behind(i, (&group[i], cut), (&t, &again[i]), [&cut.y, &y], &errors))
            .map(|mark| (mark.value, mark.side))
            .unzip();
        let chosen = |new: &[Tensor], old: &[Tensor]| -> Vec<Tensor> {
            let both = new.iter().zip(old);
            both.map(|(new, old)| goes_on.select(new, old).stop_gradient()).collect()
        };
        let search = self.of.carried(&mut next).split_off(y.tensors().len());
        Ok(Leg {
            t,
            occurrences: EventRecords::none(1, &y),
            y,
            at_times: None,
            steps: None,
            search: search.iter().map(Tensor::stop_gradient).collect(),
            values: chosen(&marks, values),
            sides: chosen(&marked, sides),
            errors: leg.errors.with_leaves(chosen(&errors.leaves(), &leg.errors.leaves())),
            counts,
            rhythms,
            num_off_grid: next.num_off_grid.stop_gradient(),
            checks: vec![],
        })
    }

    /// Applies the state resets of the events of `group`, one after the other.
    ///
    /// Each event acts at its `own` time. These times are equal but have different derivatives, so an Euler step
    /// of length 0 leads from one event to the next: its derivative is not 0. If M is singular, the derivative of y in
    /// time is unknown, so the result has the derivative NaN.
    fn act(
        &self,
        group: &[Tensor],
        own: &[Tensor],
        (mut t, mut y): (Tensor, Leaves),
    ) -> Result<(Tensor, Leaves), SolveError> {
        let Problem { field, events, mass, .. } = self.of;
        let size = group.iter().fold(number(0.0), |size, occurrence| size + occurrence.cast(DType::F64));
        let mut failure = None;
        for (i, occurrence) in group.iter().enumerate() {
            let (before, several) = (t, occurrence.and(&size.gt(1.5)));
            t = occurrence.select(&own[i], &before);
            let carried = |(t, t_next, y): &(Tensor, Tensor, Leaves)| {
                let (mut rate, mut out) = (y.clone(), y.clone());
                failure = field.eval(t, y, &mut rate).err();
                let mut h = t_next - t;
                if let Some(mass) = mass {
                    match mass.rate(&rate) {
                        Some(solved) => rate = solved,
                        // The root of 0 has no derivative.
                        None => h = h.square().sqrt(),
                    }
                }
                out.lincomb(y, &h, &[1.0], std::slice::from_ref(&rate));
                out
            };
            y = cond(&several, &(before, t.clone(), y), carried, |(_, _, y)| y.clone());
            if let Some(source) = failure.take() {
                return Err(failed(FieldFailure { t, source }));
            }
            y = events.then(i, occurrence, &t, y);
        }
        Ok((t, y))
    }

    /// The rhythms after the events of `group` have acted at t, and for each event whether its times accumulate
    /// there.
    fn beat(&self, leg: &Leg, group: &[Tensor], t: &Tensor) -> (Vec<Tensor>, Vec<Tensor>) {
        let mut accumulates = vec![always().not(); group.len()];
        let mut clocks = vec![];
        for (i, old) in self.rhythms(leg) {
            let t = t.stop_gradient();
            let new = old.beat(&t, &self.of.events.watches[i].event.resolution(&t));
            accumulates[i] = group[i].and(&new.accumulates());
            let both = old.clocks().into_iter().zip(new.clocks());
            clocks.extend(both.map(|(old, new)| group[i].select(&new, &old)));
        }
        (clocks, accumulates)
    }
}

/// Values of the last step that [`Pieces::go_on`] needs.
struct Stands<'a> {
    /// The status after the step, as if it had no event.
    own_status: Tensor,
    /// `Carry::num_off_grid` before the step.
    num_off_grid: Tensor,
    /// The start of the step.
    t_start: Tensor,
    /// The values of the marks at the end of the step, then their sides.
    ends: &'a [Tensor],
}

impl PastSteps {
    /// Adds the steps with numbers `from..to`; the last one ends at (t, y).
    fn and(&self, rows: &Rows, (from, to): (&Tensor, &Tensor), (t, y): (&Tensor, &Leaves)) -> Self {
        let index = Tensor::iota(DType::F64, [self.ends.size()], 0);
        let own = &index - from;
        let is_new = own.ge(0.0).and(&index.lt(to));
        let is_last = is_new.and(&index.eq(&(to - 1.0)));
        let mut rows = rows.take(&own.maximum(&number(0.0)));
        rows.y1 = rows.y1.map(|y1| choose(&is_last, &ys_of(y, &y1), &y1));
        let ends = is_last.select(t, &rows.t_next);
        PastSteps { rows: choose(&is_new, &rows, &self.rows), ends: is_new.select(&ends, &self.ends) }
    }
}
