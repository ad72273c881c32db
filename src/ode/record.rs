//! The recorder of a solve: saved values, dense output, records of events.
//!
//! The recorder sees each accepted step, unless it records only their end times. It handles events first,
//! because an event may end the step early, and the step is undone if an event function is NaN. Then it saves
//! the selected times within the step. Last, events may reset the state, and `on_step` may end the solve. It
//! computes the step's dense output only for events, for saved times inside the step, or to save it. Only
//! events change the steps.

use super::builder::{OnStep, SaveFn, locked};
use super::event::{Finder, Found, Watch};
use super::given_times::{Resets, TimeList};
use super::integrator::Integrator;
use super::{
    DenseOutput, EventRecord, Ode, Outcome, PlainState, Recoverable, SaveAt, Scheme, SolveError, VectorField,
    status,
};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The number of steps for whose end times memory is allocated at the start of a solve.
const FEW_STEPS: usize = 63;

/// The data that a solve records while it runs.
pub(super) struct Recorder<'o, 'f, Y: PlainState, O> {
    selection: Selection<'o, 'f, Y, O>,
    pub ts: Vec<f64>,
    pub ys: Vec<O>,
    pub step_times: Vec<f64>,
    pub events: Vec<EventRecord<Y>>,
    pub dense: Option<DenseOutput<Y>>,
    /// The outcome, if an event ended the solve.
    pub stopped: Option<Outcome>,
    /// The index of the next time to save at.
    next: usize,
    finder: Finder<'o, 'f, Y>,
    resets: Resets<'o, 'f, Y>,
    /// See [`Tape::cuts`](super::sensitivity::Tape).
    pub cuts: Vec<(usize, f64)>,
    /// The number of the step of each event.
    pub event_steps: Vec<usize>,
}

/// The values that a solve saves, and its events.
pub(super) struct Selection<'o, 'f, Y: PlainState, O> {
    /// The vector field, for the extra stages of dense output.
    pub field: &'o dyn VectorField<Y>,
    pub save_at: &'o SaveAt,
    save_fn: &'o SaveFn<'f, Y, O>,
    watches: &'o [Watch<'f, Y>],
    max_events: usize,
    on_step: Option<&'o OnStep<'f, Y>>,
    pub times: &'o [TimeList<'f, Y>],
}

impl<Y: PlainState, O> Clone for Selection<'_, '_, Y, O> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<Y: PlainState, O> Copy for Selection<'_, '_, Y, O> {}

impl<'o, 'f, Y: PlainState, O> Selection<'o, 'f, Y, O> {
    /// `save_at` is the selection of `ode` in the order of the solve.
    pub fn of<F: VectorField<Y>>(ode: &'o Ode<'f, Y, F, O>, save_at: &'o SaveAt) -> Self {
        let Ode { field, save_fn, watches, on_step, settings, times, .. } = ode;
        let max_events = settings.max_events.unwrap_or(usize::MAX);
        Selection { field, save_at, save_fn, watches, max_events, on_step: on_step.as_ref(), times }
    }

    /// Whether the dense output of steps may be needed.
    pub fn needs_curve(&self) -> bool {
        let SaveAt { ts, dense, .. } = self.save_at;
        *dense || !ts.is_empty() || !self.watches.is_empty()
    }
}

impl<'o, 'f, Y: PlainState, O> Recorder<'o, 'f, Y, O> {
    /// Creates the recorder at the start of a solve, where the state is `y` before any `resets`.
    pub fn new(
        selection: Selection<'o, 'f, Y, O>,
        (y, resets): (&Y, Resets<'o, 'f, Y>),
        (integrator, scheme): (&mut Integrator<Y>, &Scheme<Y>),
    ) -> Self {
        let finder = Finder::new(selection.watches, selection.max_events, integrator);
        let t = integrator.carry.t;
        let dense = selection.save_at.dense.then(|| {
            let mut dense = DenseOutput::new(Arc::clone(integrator.interpolant(scheme)), t);
            dense.point(y);
            dense
        });
        let mut step_times = Vec::with_capacity(1 + FEW_STEPS);
        step_times.push(t);
        let mut recorder = Recorder {
            selection,
            ts: Vec::new(),
            ys: Vec::new(),
            step_times,
            events: Vec::new(),
            dense,
            stopped: None,
            next: 0,
            finder,
            resets,
            cuts: Vec::new(),
            event_steps: Vec::new(),
        };
        recorder.save_listed_at(t, y);
        if selection.save_at.t0 {
            recorder.save(t, y);
        }
        recorder
    }

    /// Whether only the end times of steps are recorded, so that there is nothing to do after a step.
    pub fn keeps_ends_alone(&self) -> bool {
        let Selection { save_at, on_step, .. } = self.selection;
        !self.selection.needs_curve() && save_at.every == 0 && on_step.is_none() && self.resets.is_empty()
    }

    /// The number of resets at given times that have run.
    pub fn num_resets(&self) -> usize {
        self.resets.num_done
    }

    /// Handles the last accepted step, whose end is the last of the step times.
    #[inline]
    pub fn after_step(
        &mut self,
        integrator: &mut Integrator<Y>,
        scheme: &Scheme<Y>,
    ) -> Result<(), SolveError> {
        let mut found = Found::Nothing;
        if !self.finder.is_empty() {
            match integrator.complete(self.selection.field, scheme) {
                Err(SolveError::Field { source, .. })
                    if source.is::<Recoverable>() && scheme.is_adaptive() =>
                {
                    self.step_times.pop();
                    integrator.take_back(scheme, -1.0);
                    return Ok(());
                }
                done => done?,
            }
            found = self.finder.find(integrator, &mut self.events);
            self.event_steps.resize(self.events.len(), self.step_times.len() - 2);
        }
        match found {
            Found::Nothing => {
                self.keep_step(integrator, scheme, integrator.carry.t, false)?;
                if self.resets.is_due(integrator.carry.t) && integrator.carry.status == status::RUNNING {
                    self.finder.act_at_end(&mut self.resets, (self.selection.field, scheme), integrator)?;
                }
            }
            Found::Instant(t) => {
                self.end_step(t, integrator, scheme)?;
                let with = (self.selection.field, scheme);
                self.stopped = self.finder.act(t, &mut self.resets, with, integrator)?;
            }
            Found::Full(t) => {
                self.end_step(t, integrator, scheme)?;
                integrator.cut(t, self.finder.y_end().clone());
                integrator.carry.status = status::MAX_EVENTS;
                self.stopped = Some(Outcome::MaxEvents { t, max_events: self.selection.max_events });
            }
            Found::NotANumber(index) => {
                self.step_times.pop();
                integrator.take_back(scheme, Outcome::code_of_event(index));
                return Ok(());
            }
            Found::Sunk(index) => {
                self.step_times.pop();
                integrator.take_back(scheme, Outcome::code_of_event(index));
                integrator.carry.status = status::ZENO;
                self.stopped = Some(Outcome::Zeno { index, t: integrator.carry.t });
            }
        }
        if let Some(watch) = self.selection.on_step
            && self.stopped.is_none()
            && let ControlFlow::Break(()) = locked(watch)(integrator.carry.t, &integrator.carry.y)
            && integrator.carry.status == status::RUNNING
        {
            integrator.carry.status = status::CANCELLED;
        }
        Ok(())
    }

    /// Ends the step at `t`. The finder holds the state at this time.
    fn end_step(
        &mut self,
        t: f64,
        integrator: &mut Integrator<Y>,
        scheme: &Scheme<Y>,
    ) -> Result<(), SolveError> {
        self.step_times.pop();
        self.step_times.push(t);
        self.cuts.push((self.step_times.len() - 2, integrator.carry.t));
        self.keep_step(integrator, scheme, t, true)
    }

    /// Saves the selected times up to `t_end`, and the step itself for dense output. If `cut`, an event ended
    /// the step at `t_end`.
    fn keep_step(
        &mut self,
        integrator: &mut Integrator<Y>,
        scheme: &Scheme<Y>,
        t_end: f64,
        cut: bool,
    ) -> Result<(), SolveError> {
        let f = self.selection.field;
        let sign = integrator.span.direction;
        let inside = |ts: &[f64], next: usize| ts.get(next).is_some_and(|&t| t * sign < t_end * sign);
        if self.dense.is_some() || inside(&self.selection.save_at.ts, self.next) {
            integrator.complete(f, scheme)?;
        }
        while inside(&self.selection.save_at.ts, self.next) {
            let t = self.selection.save_at.ts[self.next];
            self.next += 1;
            if self.ts.last() == Some(&t) {
                continue;
            }
            let mut y = integrator.carry.y.clone();
            integrator.eval_into(t, &mut y);
            self.save(t, &y);
        }
        let SaveAt { every, ts, .. } = &self.selection.save_at;
        let due = *every > 0 && (self.step_times.len() - 1).is_multiple_of(*every);
        if !due && self.dense.is_none() && ts.get(self.next) != Some(&t_end) {
            return Ok(());
        }
        let y_end = if cut { self.finder.y_end().clone() } else { integrator.carry.y.clone() };
        self.save_listed_at(t_end, &y_end);
        if due {
            self.save(t_end, &y_end);
        }
        if let Some(dense) = &mut self.dense {
            let interpolant = Arc::clone(integrator.interpolant(scheme));
            dense.push(&interpolant, &integrator.segment(), (t_end, &y_end));
        }
        Ok(())
    }

    /// Saves the end of the solve, if it is selected.
    pub fn finish(&mut self, integrator: &Integrator<Y>) {
        let (t, y) = (integrator.carry.t, &integrator.carry.y);
        self.save_listed_at(t, y);
        if self.selection.save_at.t1 {
            self.save(t, y);
        }
    }

    /// Saves the value at (t, y), unless t is the time saved last.
    fn save(&mut self, t: f64, y: &Y) {
        if self.ts.last() != Some(&t) {
            self.ts.push(t);
            self.ys.push(locked(self.selection.save_fn)(t, y));
        }
    }

    /// Saves y if `t` is one of the given times.
    fn save_listed_at(&mut self, t: f64, y: &Y) {
        while self.selection.save_at.ts.get(self.next) == Some(&t) {
            self.next += 1;
            self.save(t, y);
        }
    }
}
