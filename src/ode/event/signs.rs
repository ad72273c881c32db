//! The sign of an event's function along a step, and at an instant.
//!
//! At an instant, a state reset leaves the state on the event's root up to errors: the time is exact up to the
//! event's resolution, and the state up to rounding. The sign of one value means nothing there. A sign is
//! *certain* if it stays the same at every point displaced by these errors ([`pattern`]). This holds for
//! numbers and for conditions, whatever their scale.

use super::Event;
use crate::ode::Clock;

/// What is known of the sign of an event's function at the start of a step.
#[derive(Clone, Debug)]
pub(crate) struct Mark<C> {
    /// The value. Its sign counts, unless the mark [is open](Mark::is_open).
    pub(crate) value: C,
    /// The sign that the event has just changed to; 0 if the sign of the value counts. Times [`TURNED_BACK`] if
    /// the solution has turned back, but not yet as far that its sign is certain.
    pub(crate) side: C,
}

/// A factor of [`Mark::side`].
pub(crate) const TURNED_BACK: f64 = 2.0;

/// The number of additional times at which the sign behind an instant is evaluated, from the
/// event's resolution on, each farther from the instant by the factor `SPACING`. Together they span all digits of
/// a time.
const LOOKS: i32 = 27;
const SPACING: f64 = 4.0;

/// The number of displacements at which a sign is evaluated, in both directions each.
pub(crate) const NUM_PATTERNS: usize = 3;

/// Whether displacement `pattern` has the opposite sign in component `i`. The first displacement follows the
/// solution. The others are needed because the rounding errors of two components may cancel in it.
pub(crate) fn pattern(pattern: usize, i: usize) -> bool {
    let i = i + 1;
    pattern > 0 && (i >> (pattern - 1)) % 2 == 1
}

/// The rounding error of a state, in units of its epsilon.
pub(crate) const ROUNDING: f64 = 4.0;
/// The speed of the solution at an instant is measured over this part of the step before it.
pub(crate) const SPEED_PART: f64 = 1e-6;

impl<C: Clock> Mark<C> {
    /// The mark of a value whose sign counts.
    pub(crate) fn new(value: C) -> Self {
        let side = value.like(0.0);
        Mark { value, side }
    }

    /// Whether the sign is the one that the function takes next: the event has just occurred, or the value is 0.
    #[inline]
    pub(crate) fn is_open(&self) -> C::Mask {
        let zero = self.value.like(0.0);
        let is_zero = |x: &C| C::and(&x.le(&zero), &zero.le(x));
        C::or(&is_zero(&self.value), &C::not(&is_zero(&self.side)))
    }

    /// Whether the solution has turned back.
    #[inline]
    pub(crate) fn has_turned_back(&self) -> C::Mask {
        self.side.like(TURNED_BACK).le(&self.side.abs())
    }

    /// Whether the event has just occurred, and `value` has the sign that it changed to.
    #[inline]
    pub(crate) fn has_gone_on(&self, value: &C) -> C::Mask {
        value.like(0.0).lt(&value.mul(&self.side))
    }

    /// Whether the event has just occurred, and `value` has the sign that it changed from.
    #[inline]
    pub(crate) fn has_returned(&self, value: &C) -> C::Mask {
        value.mul(&self.side).lt(&value.like(0.0))
    }
}

impl Event {
    /// Whether the change from `before` to `after` is an event.
    #[inline]
    pub(crate) fn has_occurred<C: Clock>(&self, before: &C, after: &C) -> C::Mask {
        let zero = before.like(0.0);
        let rises = || C::and(&before.lt(&zero), &zero.le(after));
        let falls = || C::and(&zero.lt(before), &after.le(&zero));
        match (self.rising, self.falling) {
            (true, false) => rises(),
            (false, true) => falls(),
            _ => C::or(&rises(), &falls()),
        }
    }

    /// The times behind an open mark at `t` at which to evaluate the sign, in order. The last is `end`.
    pub(crate) fn looks<C: Clock>(&self, t: &C, end: &C) -> impl Iterator<Item = C> + use<C> {
        let apart = end.sub(t);
        let length = apart.abs().max(&t.like(f64::MIN_POSITIVE));
        let shortest = self.resolution(t).div(&length);
        let shortest = shortest.max(&t.like(SPACING.powi(-LOOKS)));
        let (t, end, one) = (t.clone(), end.clone(), t.like(1.0));
        (0..=LOOKS).map(move |look| {
            let part = if look == LOOKS { one.clone() } else { shortest.mul(&one.like(SPACING.powi(look))) };
            C::select(&one.le(&part), &end, &t.add(&apart.mul(&part)))
        })
    }

    /// The fractions of a step at which the sign is sampled, without its start.
    pub(crate) fn parts(&self) -> impl Iterator<Item = f64> + use<> {
        let n = self.interp_points;
        (1..=n).map(move |j| j as f64 / n as f64)
    }

    /// Whether this occurrence, counted from 1, ends the solve.
    pub(crate) fn ends_at(&self, occurrence: u64) -> bool {
        self.terminal > 0 && occurrence >= self.terminal as u64
    }
}
