//! Events: sign changes of functions along a solution, and their times.
//!
//! An event is a function of (t, y) whose zero is searched on the dense output of each accepted step. The sign
//! logic ([`signs`]), the root search ([`root`]) and the detection of accumulating events ([`zeno`]) are
//! written once, over a clock: the driver of plain states ([`finder`]) and the recorder of tensors (`adjoint`)
//! run the same code.
//!
//! All events whose sign has changed at one time form a group, and their state resets (also called actions)
//! run in the order of declaration. An event belongs to a group if its sign has changed at the time of the first
//! event of the group, or if a rounding error could change it there.

mod behind;
mod finder;
mod occurrence;
mod root;
mod signs;
mod zeno;

pub(super) use finder::{Finder, Found};
pub(crate) use root::Bracket;
pub(crate) use signs::Mark;
#[cfg(feature = "autodiff")]
pub(crate) use signs::{NUM_PATTERNS, ROUNDING, SPEED_PART, TANGENT, TURNED_BACK, pattern};
pub(crate) use zeno::Rhythm;

use super::State;
use std::any::Any;
use std::sync::{Arc, Mutex};

/// Which sign changes count, how they are searched, and whether an occurrence ends the solve.
///
/// Rising and falling refer to the direction of the solve, even if t decreases. The sign is sampled at
/// [`interp_points`](Event::interp_points) points of each step, so two changes between neighboring points may
/// be missed. A value of exactly 0 at the start of a solve has the sign that the function takes next, so it
/// causes no sign change.
///
/// All events that change their sign at the same time, up to rounding errors, are recorded. Their state resets
/// run in the order of declaration, each on the result of the previous reset. A change of sign by a reset itself
/// is no event. After the resets, the functions of these events are 0 up to the errors of the time and the state.
/// Their signs are then the signs that the functions take next, however long the next step is.
///
/// Events that accumulate end the solve with [`Outcome::Zeno`](super::Outcome::Zeno); an example is a ball
/// with a restitution below 1, which bounces infinitely often in finite time. The criterion: the intervals
/// between the resets by an event have shrunk eight times in a row, and all further intervals, extrapolated
/// from the last ratio, sum to at most 1e-9 of the time since this run of intervals began. On plain states and
/// on tensors, the solve also ends so if the state no longer resolves the occurrences: after ever shorter
/// intervals, the function stays at its root for a time, and then continues to the other side. On plain states
/// one such occurrence suffices if the reset sends the solution back.
///
/// If the function of an event is NaN within a trial step, the step is shortened, as it is for a NaN of the
/// vector field. If shorter steps do not help, the solve ends with
/// [`Outcome::NonFiniteEvent`](super::Outcome::NonFiniteEvent).
///
/// By default, a solve of plain states records all events. The shapes of tensors are fixed before the solve,
/// so on tensors [`max_events`](super::Ode::max_events) rows are allocated: by default 64, or one per event
/// function if the first occurrence of each ends the solve and none resets the state. One more event ends the solve with
/// [`Outcome::MaxEvents`](super::Outcome::MaxEvents). The times and states of events, and `t1` and `y1` if an
/// event ends the solve, have first and second derivatives, which include the derivative of the event time.
#[derive(Clone, Copy, Debug, PartialEq)]
#[doc(alias("cond_fn", "odeint_event"))]
pub struct Event {
    pub(crate) rising: bool,
    pub(crate) falling: bool,
    /// The occurrence that ends the solve, counted from 1; 0 for none.
    pub(crate) terminal: usize,
    pub(crate) interp_points: usize,
    pub(crate) tolerance: f64,
}

impl Event {
    /// A sign change from negative to positive; for a condition, from false to true.
    pub fn rising() -> Self {
        Event { rising: true, falling: false, ..Event::crossing() }
    }
    /// A sign change from positive to negative; for a condition, from true to false.
    pub fn falling() -> Self {
        Event { rising: false, falling: true, ..Event::crossing() }
    }
    /// A sign change in either direction.
    pub fn crossing() -> Self {
        Event { rising: true, falling: true, terminal: 0, interp_points: 4, tolerance: 0.0 }
    }
    /// The first occurrence ends the solve.
    #[doc(alias("terminating_event", "DiscreteTerminatingEvent"))]
    pub fn terminal(self) -> Self {
        self.terminal_after(1)
    }
    /// The n-th occurrence ends the solve; 0 means 1.
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
    /// The number of points per step at which the sign is sampled, the end of the step included; at least 1.
    /// The default is 4.
    pub fn interp_points(self, samples: usize) -> Self {
        Event { interp_points: samples.max(1), ..self }
    }
    /// The tolerance of the event time, in the unit of t. The default and the minimum are 4 ulp of t.
    pub fn tolerance(self, dt: f64) -> Self {
        Event { tolerance: dt, ..self }
    }
}

/// The return types of an event function: a number whose sign counts, or a condition. `C` is the clock of the
/// solve; on tensors it is a tensor of one element.
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
    /// For functions of a `vector_field!`: its `FieldEvent`.
    pub of_field: Option<Arc<dyn Any + Send + Sync>>,
}

/// The state reset of an event.
pub(crate) type Then<'f, Y> = Arc<Mutex<dyn FnMut(<Y as State>::Clock, &mut Y) + Send + 'f>>;

/// The record of an event that occurred.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EventRecord<Y> {
    /// The index of the event, in the order of declaration.
    pub index: usize,
    /// The time: at the root or past it by at most the event's tolerance, so the sign has changed.
    pub t: f64,
    /// The state at this time, before a state reset of the event.
    pub y: Y,
}
