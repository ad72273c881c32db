//! Events: signs that change along a solution, and the times at which they do.
//!
//! An event is a function of (t, y) whose zero is looked for on the dense output of each accepted step. It knows
//! the curve through a closure alone; it must never see the stepper. What follows from a hit (stop, change the state,
//! note it) is the driver's business.

use super::{OdeError, State};
use std::sync::Arc;

/// Which sign change counts, how closely it is looked for, and whether the solve ends there.
///
/// Rising and falling are meant along the solve, whichever way t runs. A sign change is looked for between
/// [`samples`](Event::samples) points of each step, so two changes closer together than that may go unseen; a value
/// of exactly 0 at the start of a solve is no change: the side it leaves to counts.
///
/// Host values note as many hits as there are. On tensors shapes are known before a solve, so hits have rows, 64 where
/// `max_hits` did not say how many; a hit that finds none left ends the solve with
/// [`Outcome::MaxHits`](super::Outcome::MaxHits). Their times and states, and `t1` and `y1` where one ends the solve, have
/// derivatives of the first and second order by all that the time of the event depends on. A function that becomes NaN
/// there ends the solve with [`Outcome::NonFinite`](super::Outcome::NonFinite).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    pub(crate) rising: bool,
    pub(crate) falling: bool,
    pub(crate) stop: bool,
    pub(crate) samples: usize,
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
        Event { rising: true, falling: true, stop: false, samples: 4, tolerance: 0.0 }
    }
    /// The first hit ends the solve.
    pub fn stop(self) -> Self {
        Event { stop: true, ..self }
    }
    /// Points of a step at which the sign is looked at, its end included: 4 if not said.
    pub fn samples(self, samples: usize) -> Self {
        Event { samples: samples.max(1), ..self }
    }
    /// How closely the time is found, in the unit of t: 4 ulp of max(|t0|, |t1|) if not said.
    pub fn tolerance(self, dt: f64) -> Self {
        Event { tolerance: dt, ..self }
    }

    /// Whether going from `before` to `after` is a hit.
    pub(super) fn hit(&self, before: f64, after: f64) -> bool {
        self.rising && before < 0.0 && after >= 0.0 || self.falling && before > 0.0 && after <= 0.0
    }
}

/// What an event's function may return: a number whose sign counts, or a condition; `C` is the clock of the solve,
/// a tensor of one element on tensors.
pub trait Gauge<C = f64> {
    /// The number; 1 for true and -1 for false.
    fn gauge(self) -> C;
}
impl Gauge for f64 {
    fn gauge(self) -> f64 {
        self
    }
}
impl Gauge for f32 {
    fn gauge(self) -> f64 {
        f64::from(self)
    }
}
impl Gauge for bool {
    fn gauge(self) -> f64 {
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
pub(crate) type Then<'f, Y> = Arc<dyn Fn(<Y as State>::Clock, &mut Y) + Send + Sync + 'f>;

/// A hit of an event.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EventHit<Y> {
    /// Which event, in the order they were given.
    pub index: usize,
    /// When: at the root or past it by less than the event's tolerance, so the sign has changed.
    pub t: f64,
    /// The state there; before the change, where the event makes one.
    pub y: Y,
}

/// The time in `[a, b]` at which `g` changes its sign, `ga` and `gb` being its values at the ends: the end of a
/// bracket of at most `tolerance` on which the sign is that of `gb` (0 counts as it).
///
/// # Errors
/// A value of `g` that is NaN.
///
/// # References
/// Oliveira, Takahashi (2020), An enhancement of the bisection method average performance preserving minmax
/// optimality, ACM TOMS 47, algorithm ITP, with kappa_1 = 0.2 / (b - a), kappa_2 = 2, n_0 = 1: never more than one
/// step beyond bisection's number.
pub(super) fn itp(
    mut g: impl FnMut(f64) -> Result<f64, OdeError>,
    (mut a, mut b): (f64, f64),
    (mut ga, mut gb): (f64, f64),
    tolerance: f64,
) -> Result<f64, OdeError> {
    let width = (b - a).abs();
    let half = 0.5 * tolerance.max(f64::MIN_POSITIVE);
    let most = ((width / (2.0 * half)).log2().ceil().max(0.0) + 1.0).min(2000.0);
    let mut j = 0.0;
    while (b - a).abs() > 2.0 * half && gb != 0.0 {
        let middle = 0.5 * (a + b);
        if middle == a || middle == b {
            break;
        }
        let secant = (gb * a - ga * b) / (gb - ga);
        let sigma = (middle - secant).signum();
        let delta = 0.2 / width * (b - a) * (b - a);
        let truncated =
            if delta.abs() <= (middle - secant).abs() { secant + sigma * delta.abs() } else { middle };
        let radius = half * f64::exp2(most - j) - 0.5 * (b - a).abs();
        let x = if (truncated - middle).abs() <= radius { truncated } else { middle - sigma * radius };
        let x = if x.is_finite() && (x - a) * (x - b) < 0.0 { x } else { middle };
        let gx = g(x)?;
        if gx == 0.0 || (gx > 0.0) == (gb > 0.0) {
            (b, gb) = (x, gx);
        } else {
            (a, ga) = (x, gx);
        }
        j += 1.0;
    }
    Ok(b)
}
