//! What is kept of a solve: saved values, the dense curve, hits of events.
//!
//! The recorder sees each accepted step after it was taken. Events come first, because one may end the step early;
//! then what lies in the step is saved, then an event may change the state. It asks the stepper for the step's curve
//! only where something lies inside the step; it must never choose a step.

use super::builder::{OnStep, SaveFn};
use super::event::{Watch, itp};
use super::stepper::Stepper;
use super::{Dense, EventHit, Field, HostState, Ode, OdeError, Outcome, SaveAt, Scheme, status};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The part of a step after which an event that starts on its root is taken to have left it.
const LEAVING: f64 = 1e-6;

/// What a solve keeps while it runs.
pub(super) struct Recorder<'o, 'f, Y: HostState, O> {
    asked: Asked<'o, 'f, Y, O>,
    pub ts: Vec<f64>,
    pub ys: Vec<O>,
    pub knots: Vec<f64>,
    pub events: Vec<EventHit<Y>>,
    pub dense: Option<Dense<Y>>,
    /// Why the recorder ended the solve, if it did.
    pub stopped: Option<Outcome>,
    /// The next of the times to save at.
    next: usize,
    /// The value of each event's function where the next step starts.
    signs: Vec<f64>,
    scratch: Y,
}

/// What a solve is asked to keep and to watch.
pub(super) struct Asked<'o, 'f, Y: HostState, O> {
    /// For the curve inside of steps.
    pub field: &'o dyn Field<Y>,
    pub save_at: &'o SaveAt,
    save_fn: &'o SaveFn<'f, Y, O>,
    watches: &'o [Watch<'f, Y>],
    on_step: Option<&'o OnStep<'f, Y>>,
}

impl<Y: HostState, O> Clone for Asked<'_, '_, Y, O> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<Y: HostState, O> Copy for Asked<'_, '_, Y, O> {}

impl<'o, 'f, Y: HostState, O> Asked<'o, 'f, Y, O> {
    pub fn of<F: Field<Y>>(ode: &'o Ode<'f, Y, F, O>) -> Self {
        let Ode { field, save_at, save_fn, watches, on_step, .. } = ode;
        Asked { field, save_at, save_fn, watches, on_step: on_step.as_ref() }
    }

    /// Whether anything may be asked of the inside of steps.
    pub fn needs_curve(&self) -> bool {
        let SaveAt { ts, dense, .. } = self.save_at;
        *dense || !ts.is_empty() || !self.watches.is_empty()
    }
}

/// A sign change within a step.
struct Hit {
    index: usize,
    t: f64,
}

impl<'o, 'f, Y: HostState, O> Recorder<'o, 'f, Y, O> {
    pub fn new(asked: Asked<'o, 'f, Y, O>, stepper: &Stepper<Y>) -> Result<Self, OdeError> {
        let (t, y) = (stepper.carry.t, &stepper.carry.y);
        let dense = asked.save_at.dense.then(|| {
            let mut dense = Dense::new(Arc::clone(&stepper.interpolant), t);
            dense.point(y);
            dense
        });
        let mut recorder = Recorder {
            asked,
            ts: Vec::new(),
            ys: Vec::new(),
            knots: vec![t],
            events: Vec::new(),
            dense,
            stopped: None,
            next: 0,
            signs: Vec::new(),
            scratch: y.clone(),
        };
        for (index, watch) in asked.watches.iter().enumerate() {
            recorder.signs.push(gauge(watch, index, t, y)?);
        }
        recorder.save_listed_at(t, y);
        if asked.save_at.t0 {
            recorder.save(t, y);
        }
        Ok(recorder)
    }

    /// Whether there is nothing to do after a step.
    pub fn keeps_ends_alone(&self) -> bool {
        !self.asked.needs_curve() && self.asked.save_at.every == 0 && self.asked.on_step.is_none()
    }

    /// Sees the step last accepted, whose end is the last of the knots.
    #[inline]
    pub fn after_step(&mut self, stepper: &mut Stepper<Y>, scheme: &Scheme<Y>) -> Result<(), OdeError> {
        let cut = if self.asked.watches.is_empty() { None } else { self.find_events(stepper, scheme)? };
        let t_end = match &cut {
            Some(hit) => hit.t,
            None => stepper.carry.t,
        };
        if let Some(hit) = cut {
            self.knots.pop();
            self.knots.push(t_end);
            // The step ends at the event; `scratch` is the state there.
            self.keep_step(stepper, scheme, t_end, true)?;
            self.act(&hit, stepper, scheme)?;
        } else {
            self.keep_step(stepper, scheme, t_end, false)?;
        }
        if let Some(watch) = self.asked.on_step
            && self.stopped.is_none()
            && let ControlFlow::Break(()) = watch(stepper.carry.t, &stepper.carry.y)
            && stepper.carry.status == status::RUNNING
        {
            stepper.carry.status = status::CANCELLED;
        }
        Ok(())
    }

    /// Saves what lies in the step, and its end.
    fn keep_step(
        &mut self,
        stepper: &mut Stepper<Y>,
        scheme: &Scheme<Y>,
        t_end: f64,
        cut: bool,
    ) -> Result<(), OdeError> {
        let f = self.asked.field;
        let sign = stepper.span.direction;
        let inside = |ts: &[f64], next: usize| ts.get(next).is_some_and(|&t| t * sign < t_end * sign);
        if self.dense.is_some() || inside(&self.asked.save_at.ts, self.next) {
            stepper.complete(f, scheme)?;
        }
        while inside(&self.asked.save_at.ts, self.next) {
            let t = self.asked.save_at.ts[self.next];
            self.next += 1;
            if self.ts.last() == Some(&t) {
                continue;
            }
            let mut y = stepper.carry.y.clone();
            stepper.eval_into(t, &mut y);
            self.save(t, &y);
        }
        let SaveAt { every, ts, .. } = &self.asked.save_at;
        let due = *every > 0 && (self.knots.len() - 1).is_multiple_of(*every);
        if !due && self.dense.is_none() && ts.get(self.next) != Some(&t_end) {
            return Ok(());
        }
        let y_end = if cut { self.scratch.clone() } else { stepper.carry.y.clone() };
        self.save_listed_at(t_end, &y_end);
        if due {
            self.save(t_end, &y_end);
        }
        if let Some(dense) = &mut self.dense {
            dense.push(&stepper.segment(), t_end, &y_end);
        }
        Ok(())
    }

    /// Saves the end of the solve, if it was asked for.
    pub fn finish(&mut self, stepper: &Stepper<Y>) {
        let (t, y) = (stepper.carry.t, &stepper.carry.y);
        self.save_listed_at(t, y);
        if self.asked.save_at.t1 {
            self.save(t, y);
        }
    }

    /// Saves (t, y), unless that time was saved last.
    fn save(&mut self, t: f64, y: &Y) {
        if self.ts.last() != Some(&t) {
            self.ts.push(t);
            self.ys.push((self.asked.save_fn)(t, y));
        }
    }

    /// Saves y if `t` is one of the listed times.
    fn save_listed_at(&mut self, t: f64, y: &Y) {
        while self.asked.save_at.ts.get(self.next) == Some(&t) {
            self.next += 1;
            self.save(t, y);
        }
    }

    /// Notes the events of the step last accepted, up to the first that stops the solve or changes the state: that
    /// one is returned, with the state there in `scratch`.
    fn find_events(&mut self, stepper: &mut Stepper<Y>, scheme: &Scheme<Y>) -> Result<Option<Hit>, OdeError> {
        let asked = self.asked;
        stepper.complete(asked.field, scheme)?;
        let (t0, t1) = (stepper.t(), stepper.carry.t);
        let mut hits = Vec::new();
        for (index, watch) in asked.watches.iter().enumerate() {
            let (mut t, mut g) = (t0, self.signs[index]);
            if g == 0.0 {
                // On the root already: the side it leaves to is its sign.
                t = t0 + LEAVING * (t1 - t0);
                g = self.gauge_at(index, t, stepper)?;
            }
            let n = watch.event.samples;
            for j in 1..=n {
                let t_next = if j == n { t1 } else { t0 + (t1 - t0) * (j as f64 / n as f64) };
                let g_next = self.gauge_at(index, t_next, stepper)?;
                if watch.event.hit(g, g_next) {
                    let tolerance = watch.event.tolerance.max(4.0 * f64::EPSILON * stepper.span.scale());
                    let at = |t| self.gauge_at(index, t, stepper);
                    hits.push(Hit { index, t: itp(at, (t, t_next), (g, g_next), tolerance)? });
                }
                (t, g) = (t_next, g_next);
            }
            self.signs[index] = g;
        }
        let sign = stepper.span.direction;
        hits.sort_by(|a, b| (a.t * sign).total_cmp(&(b.t * sign)));
        for hit in hits {
            let watch = &asked.watches[hit.index];
            self.state_at(hit.t, stepper);
            let y = self.scratch.clone();
            self.events.push(EventHit { index: hit.index, t: hit.t, y });
            if watch.event.stop || watch.then.is_some() {
                return Ok(Some(hit));
            }
        }
        Ok(None)
    }

    /// Stops, or changes the state and goes on.
    fn act(&mut self, hit: &Hit, stepper: &mut Stepper<Y>, scheme: &Scheme<Y>) -> Result<(), OdeError> {
        let asked = self.asked;
        let watch = &asked.watches[hit.index];
        let mut y = self.scratch.clone();
        if let Some(then) = &watch.then {
            then(hit.t, &mut y);
        }
        if watch.event.stop {
            (stepper.carry.t, stepper.carry.y) = (hit.t, y);
            stepper.carry.status = status::EVENT;
            self.stopped = Some(Outcome::Event { index: hit.index, t: hit.t });
            return Ok(());
        }
        stepper.restart(asked.field, scheme, hit.t, y)?;
        for (index, watch) in asked.watches.iter().enumerate() {
            self.signs[index] = gauge(watch, index, hit.t, &stepper.carry.y)?;
        }
        // At its own root, moved past it by rounding alone, this event has no sign until it has left.
        self.signs[hit.index] = 0.0;
        Ok(())
    }

    /// The event's function on the curve of the step last accepted.
    fn gauge_at(&mut self, index: usize, t: f64, stepper: &mut Stepper<Y>) -> Result<f64, OdeError> {
        self.state_at(t, stepper);
        gauge(&self.asked.watches[index], index, t, &self.scratch)
    }

    /// The state at t, into `scratch`.
    fn state_at(&mut self, t: f64, stepper: &mut Stepper<Y>) {
        if t == stepper.carry.t {
            self.scratch.copy_of(&stepper.carry.y);
        } else {
            stepper.eval_into(t, &mut self.scratch);
        }
    }
}

/// The event's function at (t, y).
fn gauge<Y: HostState>(watch: &Watch<Y>, index: usize, t: f64, y: &Y) -> Result<f64, OdeError> {
    let g = (watch.when)(t, y);
    if g.is_nan() { Err(OdeError::EventNotANumber { index, t }) } else { Ok(g) }
}
