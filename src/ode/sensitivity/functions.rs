//! Settings of an [`Ode`] by functions of its `vector_field!`, which have derivatives.
//!
//! A plain solve calls them like closures. The settings also keep the functions themselves, without their type,
//! for the replay of a sensitivity solve.

use crate::ode::event::Watch;
use crate::ode::given_times::{TimeEntry, TimeList, Times};
use crate::ode::{Event, GenericField, NumberFn, Ode, StateFn, TimeFn, VectorField};
use std::sync::{Arc, Mutex};

/// The functions of an event.
pub(super) struct FieldEvent<G: GenericField<N>, const N: usize> {
    pub when: NumberFn<G, N>,
    pub then: Option<StateFn<G, N>>,
}

/// The functions of a list of times.
pub(super) struct FieldTimes<G: GenericField<N>, const N: usize> {
    /// The times before they are moved.
    pub given: Vec<TimeEntry>,
    pub moved_to: Option<TimeFn<G, N>>,
    pub then: Option<StateFn<G, N>>,
}

impl<'f, G: GenericField<N> + VectorField<[f64; N]>, O, const N: usize> Ode<'f, [f64; N], G, O> {
    /// As [`event`](Ode::event), with a function of the `vector_field!` in place of a closure. The time of the
    /// event, the state there and the rest of the solution then have derivatives in
    /// [`forward_sensitivity`](Ode::forward_sensitivity).
    ///
    /// # Examples
    /// ```
    /// use flowline::ode::{Event, Ode};
    /// flowline::vector_field! {
    ///     struct Fall<R> { gravity: R }
    ///     fn eval(&self, _t, y: &[R; 2]) -> [R; 2] { [y[1], -self.gravity] }
    ///     fn height(&self, _t, y: &[R; 2]) -> R { y[0] }
    /// }
    /// let fall = Ode::from_generic(Fall { gravity: 10.0 }).rtol(1e-9);
    /// let fall = fall.field_event(Event::falling().terminal(), Fall::height);
    /// let s = fall.forward_sensitivity().solve(0.0, f64::INFINITY, [5.0, 0.0])?;
    /// // t1 = sqrt(2 h / g) = 1
    /// assert!((s.t1 - 1.0).abs() < 1e-9);
    /// assert!((s.dt1_dp.gravity + 0.05).abs() < 1e-9);
    /// assert!((s.dt1_dy0[0] - 0.1).abs() < 1e-9);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    pub fn field_event(self, event: Event, when: NumberFn<G, N>) -> Self {
        self.watch(event, when, None)
    }

    /// As [`on_event`](Ode::on_event), with functions of the `vector_field!` in place of closures. A reset with
    /// the argument `x` receives 0.
    ///
    /// # Examples
    /// A ball whose restitution is a parameter:
    /// ```
    /// use flowline::ode::{Event, Ode};
    /// flowline::vector_field! {
    ///     struct Ball<R> { gravity: R, restitution: R }
    ///     fn eval(&self, _t, y: &[R; 2]) -> [R; 2] { [y[1], -self.gravity] }
    ///     fn height(&self, _t, y: &[R; 2]) -> R { y[0] }
    ///     fn bounce(&self, _t, y: &[R; 2]) -> [R; 2] { [y[0], -self.restitution * y[1]] }
    /// }
    /// let ball = Ode::from_generic(Ball { gravity: 10.0, restitution: 0.8 }).rtol(1e-9);
    /// let ball = ball.on_field_event(Event::falling(), Ball::height, Ball::bounce);
    /// let s = ball.forward_sensitivity().solve(0.0, 2.0, [5.0, 0.0])?;
    /// // After the bounce at t = 1 with the speed 10: y1 = 8 - 5.
    /// assert!((s.y1[0] - 3.0).abs() < 1e-8);
    /// assert!((s.dy1_dp.restitution[0] - 10.0).abs() < 1e-7);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    pub fn on_field_event(self, event: Event, when: NumberFn<G, N>, then: StateFn<G, N>) -> Self {
        self.watch(event, when, Some(then))
    }

    /// As [`on_times`](Ode::on_times), with a reset of the `vector_field!` in place of a closure. The times may
    /// depend on parameters, too: see [`Times`]. A list of times or of pairs `(t, x)` can be given instead.
    pub fn on_field_times(mut self, times: impl Into<Times<G, N>>, then: StateFn<G, N>) -> Self {
        let (times, field) = (times.into(), self.field.clone());
        let entries = times.resolved(&field);
        self.settings.reset_times.extend(entries.iter().map(|entry| entry.t));
        let act = move |t: f64, y: &mut [f64; N], x: f64| *y = then.eval(&field, t, y, x);
        self.times.push(TimeList {
            entries,
            then: Some(Arc::new(Mutex::new(act))),
            of_field: Some(Arc::new(FieldTimes::of(times, Some(then)))),
        });
        self
    }

    /// As [`discontinuities`](Ode::discontinuities), at times that may depend on parameters. The vector field
    /// must switch at exactly the floating-point times of the list. If it computes a time by another formula,
    /// rounding may put an evaluation on the wrong side.
    pub fn field_discontinuities(mut self, times: impl Into<Times<G, N>>) -> Self {
        let times = times.into();
        let entries = times.resolved(&self.field);
        self.settings.discontinuities.extend(entries.iter().map(|entry| entry.t));
        let of_field = Some(Arc::new(FieldTimes::of(times, None)) as Arc<_>);
        self.times.push(TimeList { entries, then: None, of_field });
        self
    }

    fn watch(mut self, event: Event, when: NumberFn<G, N>, then: Option<StateFn<G, N>>) -> Self {
        let (field, again) = (self.field.clone(), self.field.clone());
        self.watches.push(Watch {
            event,
            when: Arc::new(move |t, y| when.eval(&field, t, y)),
            then: then.map(|then| -> crate::ode::event::Then<'f, [f64; N]> {
                Arc::new(Mutex::new(move |t: f64, y: &mut [f64; N]| *y = then.eval(&again, t, y, 0.0)))
            }),
            of_field: Some(Arc::new(FieldEvent { when, then })),
        });
        self
    }
}

impl<G: GenericField<N>, const N: usize> FieldTimes<G, N> {
    fn of(times: Times<G, N>, then: Option<StateFn<G, N>>) -> Self {
        FieldTimes { given: times.entries, moved_to: times.moved_to, then }
    }
}
