//! Events: signs that change along a solution, and the times at which they do.
//!
//! An event is a function of (t, y) whose zero is looked for on the dense output of each accepted step. What is known of
//! its sign ([`signs`]), the search for its time ([`root`]) and the guard against times that accumulate ([`zeno`]) are
//! written once, over a clock: the driver of plain states ([`finder`]) and the recorder of tensors (`adjoint`) run the same
//! code.
//!
//! All events whose sign has changed at an instant belong to it, and their actions follow one another in the order of
//! declaration. An instant is a time of the clock, so what changes an ulp later is the next instant.

mod finder;
mod root;
mod signs;
mod zeno;

pub(super) use finder::{Finder, Found};
pub(crate) use root::Bracket;
pub(crate) use signs::Mark;
pub(crate) use zeno::Rhythm;

use super::State;
use std::sync::{Arc, Mutex};

/// Which sign change counts, how closely it is looked for, and whether the solve ends there.
///
/// Rising and falling are meant along the solve, whichever way t runs. A sign change is looked for between
/// [`samples`](Event::interp_points) points of each step, so two changes closer together than that may go unseen; a value
/// of exactly 0 at the start of a solve is no change: the side it leaves to counts.
///
/// All events that have changed their sign at one instant are noted, and those that change the state do so one after the
/// other in the order of declaration, each seeing what the one before has made of it. After an action an event that stands
/// on its own root takes its sign from the side that the solution leaves to, however long the next step is.
///
/// Events that accumulate (a ball with a restitution below 1 bounces without end before a finite time) end the solve with
/// [`Outcome::Zeno`](super::Outcome::Zeno): where the intervals between the actions of an event have shrunk eight times in a
/// row, and by the rate of the last the sum of all that would follow is below 1e-9 of the time since the first of them.
///
/// A function that is NaN within a trial step shortens it, as a field that is NaN does; where that does not help the solve
/// ends with [`Outcome::NonFinite`](super::Outcome::NonFinite).
///
/// A solve of plain states records all events. On tensors shapes are known before a solve, so events have rows, 64 where
/// `max_events` did not say how many; an event that finds none left ends the solve with
/// [`Outcome::MaxEvents`](super::Outcome::MaxEvents). Their times and states, and `t1` and `y1` where one ends the solve, have
/// derivatives of the first and second order by all that the time of the event depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    pub(crate) rising: bool,
    pub(crate) falling: bool,
    /// The occurrence that ends the solve, counted from 1; 0 for none.
    pub(crate) terminal: usize,
    pub(crate) interp_points: usize,
    pub(crate) tolerance: f64,
}

impl Event {
    /// From negative to positive; of a condition that is `true` or `false`: when it becomes true.
    pub fn rising() -> Self {
        Event { rising: true, falling: false, ..Event::crossing() }
    }
    /// From positive to negative; of a condition: when it ceases.
    pub fn falling() -> Self {
        Event { rising: false, falling: true, ..Event::crossing() }
    }
    /// Either way.
    pub fn crossing() -> Self {
        Event { rising: true, falling: true, terminal: 0, interp_points: 4, tolerance: 0.0 }
    }
    /// The first occurrence ends the solve.
    pub fn terminal(self) -> Self {
        self.terminal_after(1)
    }
    /// The n-th occurrence ends the solve; 0 is taken as 1.
    ///
    /// # Examples
    /// ```
    /// use flowline::ode::{Event, Ode};
    /// let sine = Ode::new(|_t, y: &[f64; 2]| [y[1], -y[0]]).rtol(1e-9).atol(1e-9);
    /// let third = sine.event(Event::crossing().terminal_after(3), |_t, y| y[0]);
    /// let solution = third.solve(0.0, f64::INFINITY, [0.0, 1.0])?;
    /// assert!((solution.t1 - 3.0 * std::f64::consts::PI).abs() < 1e-7);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    pub fn terminal_after(self, n: usize) -> Self {
        Event { terminal: n.max(1), ..self }
    }
    /// Points of a step at which the sign is looked at, its end included: 4 if not said.
    pub fn interp_points(self, samples: usize) -> Self {
        Event { interp_points: samples.max(1), ..self }
    }
    /// How closely the time is found, in the unit of t: 4 ulp of it if not said.
    pub fn tolerance(self, dt: f64) -> Self {
        Event { tolerance: dt, ..self }
    }
}

/// What an event's function may return: a number whose sign counts, or a condition; `C` is the clock of the solve,
/// a tensor of one element on tensors.
pub trait EventValue<C = f64> {
    /// The number; 1 for true and -1 for false.
    fn value(self) -> C;
}
impl EventValue for f64 {
    fn value(self) -> f64 {
        self
    }
}
impl EventValue for f32 {
    fn value(self) -> f64 {
        f64::from(self)
    }
}
impl EventValue for bool {
    fn value(self) -> f64 {
        if self { 1.0 } else { -1.0 }
    }
}

/// An event with its functions.
#[derive(Clone)]
pub(crate) struct Watch<'f, Y: State> {
    pub event: Event,
    pub when: Arc<dyn Fn(Y::Clock, &Y) -> Y::Clock + Send + Sync + 'f>,
    pub then: Option<Then<'f, Y>>,
}

/// What an event makes of the state.
pub(crate) type Then<'f, Y> = Arc<Mutex<dyn FnMut(<Y as State>::Clock, &mut Y) + Send + 'f>>;

/// The record of an event that occurred.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EventRecord<Y> {
    /// Which event, in the order they were given.
    pub index: usize,
    /// When: at the root or past it by less than the event's tolerance, so the sign has changed.
    pub t: f64,
    /// The state there; before the change, where the event makes one.
    pub y: Y,
}
