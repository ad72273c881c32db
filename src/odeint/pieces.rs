//! Solves that go on behind an event: one search after the other, each up to a step with hits.
//!
//! A piece is the search of a solve that ends at its first event, and what follows from it: hits are noted, the step is
//! cut at the first that ends the solve or changes the state, and the next piece starts there with the counters, the
//! step size and the controller's history of the one before. The pieces are the trips of one loop, whose body is one
//! search: the program is the same for one hit and for a thousand, and the derivative of a trip is that of a search and
//! of what surrounds it, the time of the event included. Cutting steps inside of the one loop instead would ask every
//! schedule for a second time a step, where the step was to end. What the pieces saved is added up from trip to trip. It
//! must never know how a search is differentiated.

use super::algorithm::{self, Carry};
use super::bodies::Bodies;
use super::curve::{Rows, choose};
use super::event::number;
use super::hits::{Cut, Hits};
use super::leaves::Leaves;
use super::saved::{states_at, ys_of};
use super::solve::{Problem, failed, solution};
use super::{Dense, Solution};
use crate::array::DType;
use crate::graph::{Op, Solve, Taps, Type};
use crate::ode::{self, OdeError, Span, State, status};
use crate::tensor::{Tensor, Tree, align, apply, trace, try_trace, tuple};
use crate::tree;
use std::sync::Arc;

tree! {
/// What one piece hands to the next.
struct Leg {
    /// Where it starts.
    t: Tensor,
    /// The state there.
    y: Leaves,
    hits: Hits<Leaves>,
    /// The states at given times, NaN where they are not known yet.
    at_times: Option<Leaves>,
    steps: Option<Kept>,
    /// What the search carries beside t and y.
    search: Vec<Tensor>,
    /// The value of each event's function.
    signs: Vec<Tensor>,
    num_off_grid: Tensor,
}
}

tree! {
/// Every step up to now.
struct Kept {
    rows: Rows,
    /// Where each ends, cut short or not.
    ends: Tensor,
}
}

/// The solve that is cut into pieces.
struct Pieces<'a> {
    of: &'a Problem<'a>,
    span: &'a Span<Tensor>,
    taps: Taps,
    /// What a step leaves.
    like: Rows,
}

/// Records a solve with events that it may go on behind.
///
/// # Errors
/// What the field said while it was recorded; more bytes than hits or steps may leave behind.
pub(super) fn record(
    of: &Problem<'_>,
    (t0, t1): (&Tensor, &Tensor),
    y0: &Leaves,
) -> Result<Solution<Leaves>, OdeError> {
    let span = Span::new(t0.clone(), t1.clone());
    let like = of.trail.like(t0, y0);
    let pieces = Pieces { of, span: &span, taps: of.saved.taps(true, &like)?, like };
    let last = pieces.run(&pieces.first(y0)?)?;
    let mut end = pieces.carry(&last);
    let mut solution = solution(&end, of.scheme.limits.dt_min);
    let num_steps = std::mem::replace(&mut end.num_accepted, number(0.0));
    let steps = last.steps.as_ref();
    // Their ends, where events cut them short, are those of what is saved.
    let ended = steps.map(|kept| Rows { t_next: kept.ends.clone(), ..kept.rows.clone() });
    (solution.ts, solution.ys, solution.num_saved) = of.saved.join_legs(
        (t0, y0),
        (last.at_times, ended),
        (&last.t, &last.y),
        (&num_steps, &span.direction),
    );
    solution.dense = steps.filter(|_| of.saved.dense).and_then(|kept| {
        Some(Dense {
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
    (solution.t1, solution.y1, solution.events) = (last.t, last.y, Some(last.hits));
    Ok(solution)
}

impl Pieces<'_> {
    /// Before the first piece.
    fn first(&self, y0: &Leaves) -> Result<Leg, OdeError> {
        let Problem { field, scheme, saved, events, .. } = self.of;
        let mut start = algorithm::start(*field, scheme, self.span, y0.clone()).map_err(failed)?;
        let rows =
            |n: usize, x: &Tensor, of: f64| Tensor::full(x.dtype(), [&[n], &x.shape()[..]].concat(), of);
        let num_steps = saved.num_each();
        let kept = Kept {
            rows: self.like.map_leaves(|x| rows(num_steps, x, 0.0)),
            ends: Tensor::full(DType::F64, [num_steps], 0.0),
        };
        let times = saved.num_times();
        Ok(Leg {
            t: self.span.t0.clone(),
            y: y0.clone(),
            hits: Hits::none(self.of.options.max_hits(), y0),
            at_times: (times > 0).then(|| y0.map_leaves(|y| rows(times, y, f64::NAN))),
            steps: (num_steps > 0).then_some(kept),
            signs: events.signs(&self.span.t0, y0),
            num_off_grid: start.num_off_grid.clone(),
            search: self.of.carried(&mut start).split_off(y0.tensors().len()),
        })
    }

    /// The carry that a piece starts with.
    fn carry(&self, leg: &Leg) -> Carry {
        let mut carry = Carry::new(leg.t.clone(), leg.y.clone(), self.of.scheme.tableau.num_stages());
        self.of.load(&mut carry, &[leg.y.leaves(), leg.search.clone()].concat());
        carry.t = leg.t.clone();
        carry.num_off_grid = leg.num_off_grid.clone();
        carry
    }

    /// The loop over all pieces, to what the last one leaves.
    fn run(&self, first: &Leg) -> Result<Leg, OdeError> {
        let leaves = first.leaves();
        let (flag, time) = (Type::scalar(DType::Bool), Type::scalar(DType::F64));
        let carried: Vec<Type> = leaves.iter().map(Tensor::ty).collect();
        let types = [std::slice::from_ref(&time), &carried].concat();
        let piece = try_trace(&types, &mut |x| {
            Ok::<_, OdeError>(self.piece(&x[0], &first.with_leaves(x[1..].to_vec()))?.leaves())
        })?;
        let after = |trip: &Tensor, carry: &[Tensor]| {
            let mut out = apply(&piece.func, &[std::slice::from_ref(trip), carry, &piece.captures].concat());
            out.truncate(piece.num_outputs);
            out
        };
        let attempt = trace(&types, &mut |x| {
            let out = after(&x[0], &x[1..]);
            let yes = number(0.0).eq(0.0);
            let running = self.carry(&first.with_leaves(out.clone())).is_running();
            [vec![yes.clone(), running, yes, &x[0] + 1.0], out].concat()
        });
        let types = [&[flag.clone(), flag, time.clone(), time], &carried[..]].concat();
        let step = trace(&types, &mut |x| after(&x[2], &x[4..]));

        let (bodies, captures) = align(&[&attempt, &step]);
        let [attempt, step]: [_; 2] = bodies.try_into().expect("invariant: a body for each trace");
        let (taps, policy) = (Taps::default(), self.of.options.adjoint.policy());
        let op = Solve { attempt, step, inverse: None, num_carry: leaves.len(), num_ext: 0, taps, policy };
        let args = [&[Tensor::scalar(DType::U32, 0.0), number(0.0)], &leaves[..], &captures].concat();
        let out = tuple(Op::Solve(Arc::new(op)), args.iter());
        Ok(first.with_leaves(out[..leaves.len()].to_vec()))
    }

    /// One piece, the `trip`-th counted from 0.
    fn piece(&self, trip: &Tensor, leg: &Leg) -> Result<Leg, OdeError> {
        let Problem { events, trail, .. } = self.of;
        let mut start = self.carry(leg);
        let num_steps = start.num_accepted.clone();
        let attempt = self.of.attempt(self.span, &mut start)?;
        let step = self.of.step(self.span, &leg.t, &leg.y)?;
        let bodies = Bodies { attempt, step, inverse: None };
        let ext = [&leg.signs[..], &leg.signs, &[start.status.clone(), leg.num_off_grid.clone()]].concat();
        let (end, ext, tapped) = self.of.search(self.span, start, bodies, (&ext, self.taps));
        let tapped = self.like.with_leaves(tapped);
        let last = tapped.map_leaves(|x| x.at(self.taps.num_rows() - 1));

        let curve = trail.curve.as_ref().expect("invariant: events have a curve");
        let (signs, rest) = ext.split_at(events.0.len());
        let (starts, rest) = rest.split_at(events.0.len());
        let is_met = end.status.eq(status::EVENT);
        let places = events.places(curve, self.span, &last, (starts, &end.y), &is_met)?;
        let (hits, cut) = leg.hits.and(&places, &self.span.direction);
        let own_status = is_met.select(&rest[0], &end.status);
        // Where it ends, before the state is changed: at t1 itself, of which gradients know.
        let t = own_status.eq(status::COMPLETED).select(&self.span.t1, &end.t);
        let t = cut.is_met.select(&cut.t, &t);
        let y = choose(&cut.is_met, &cut.y, &end.y);
        let at_times = self.at_times(trip, leg, &tapped, (&t, &y));
        let steps = leg.steps.as_ref().map(|kept| {
            let rows = self.of.saved.all_steps(&tapped);
            kept.and(&rows, (&num_steps, &end.num_accepted), (&t, &y))
        });
        let mut leg = self.go_on(end, (&own_status, &rest[1]), &cut, (t, y), signs)?;
        (leg.hits, leg.at_times, leg.steps) = (hits, at_times, steps);
        Ok(leg)
    }

    /// The states at given times, with those that lie in a piece which ends at (t, y).
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

    /// Ends the solve at a hit, or changes the state there and goes on, or goes on as if nothing had been. `signs` are
    /// those at the end of the last step, which had the number `off_grid` of stops off the grid before it.
    fn go_on(
        &self,
        end: Carry,
        (own_status, off_grid): (&Tensor, &Tensor),
        cut: &Cut,
        (t, y): (Tensor, Leaves),
        signs: &[Tensor],
    ) -> Result<Leg, OdeError> {
        let Problem { field, scheme, events, options, .. } = self.of;
        let acts = cut.is_met.and(&cut.is_beyond.not());
        let y = events.then((&acts, &cut.index), &t, y);
        let stops: Vec<f64> = events.0.iter().map(|w| f64::from(u8::from(w.event.stop))).collect();
        let stops = Tensor::from(stops).take(&cut.index).gt(0.5).and(&acts);
        let goes_on = acts.and(&stops.not());
        let is_short = cut.is_met.and(&t.ne(&end.t));

        let mut next = end.clone();
        // The end that was reached is reached no more.
        let unreached = is_short.and(&own_status.eq(status::COMPLETED));
        next.status = unreached.select(&number(status::RUNNING), own_status);
        let is_running = next.is_running();
        next.status = stops.select(&number(status::EVENT), &next.status);
        next.status = cut.is_beyond.select(&number(status::MAX_HITS), &next.status);
        let beyond = cut.is_beyond.select(&number(options.max_hits() as f64), &number(-1.0));
        next.component = stops.select(&cut.index, &beyond);
        let component = end.status.eq(status::EVENT).select(&next.component, &end.component);
        next.component = component;
        next.num_off_grid = is_short.select(&(off_grid + 1.0), &end.num_off_grid);
        if !scheme.limits.stops.is_empty() {
            let passed = (Tensor::from(scheme.limits.stops) - &t) * &self.span.direction;
            next.num_stops = is_short.select(&passed.le(0.0).cast(DType::F64).sum(), &end.num_stops);
        }
        (next.t, next.y) = (t.clone(), y.clone());
        let mut changed = next.clone();
        ode::restart(field, scheme, self.span, &mut changed).map_err(failed)?;
        let renews = goes_on.and(&is_running);
        next.k[0].keep(&renews, &mut changed.k[0]);
        next.num_field_evals = renews.select(&changed.num_field_evals, &next.num_field_evals);

        // At its own root, moved past it by rounding alone, an event has no sign until it has left.
        let again = events.signs(&t, &y);
        let own = |i: usize, sign: &Tensor| cut.index.eq(i as f64).select(&number(0.0), sign);
        let signs = signs.iter().zip(&again).enumerate();
        let signs = signs.map(|(i, (old, new))| goes_on.select(&own(i, new), old).stop_gradient()).collect();
        let search = self.of.carried(&mut next).split_off(y.tensors().len());
        Ok(Leg {
            t,
            hits: Hits::none(1, &y),
            y,
            at_times: None,
            steps: None,
            search: search.iter().map(Tensor::stop_gradient).collect(),
            signs,
            num_off_grid: next.num_off_grid.stop_gradient(),
        })
    }
}

impl Kept {
    /// With the steps from number `from` to number `to` of the solve, the last of which ends at (t, y).
    fn and(&self, rows: &Rows, (from, to): (&Tensor, &Tensor), (t, y): (&Tensor, &Leaves)) -> Self {
        let index = Tensor::iota(DType::F64, [self.ends.size()], 0);
        let own = &index - from;
        let is_new = own.ge(0.0).and(&index.lt(to));
        let is_last = is_new.and(&index.eq(&(to - 1.0)));
        let mut rows = rows.take(&own.maximum(&number(0.0)));
        rows.y1 = rows.y1.map(|y1| choose(&is_last, &ys_of(y, &y1), &y1));
        let ends = is_last.select(t, &rows.t_next);
        Kept { rows: choose(&is_new, &rows, &self.rows), ends: is_new.select(&ends, &self.ends) }
    }
}
