//! The sign of an event's function along a step.

use super::Event;
use crate::ode::Clock;

/// The value of an event's function at the start of a step.
#[derive(Clone, Debug)]
pub(crate) struct Mark<C> {
    /// The value. Its sign counts, unless the value [is a root up to noise](Mark::is_on_root).
    pub(crate) value: C,
    /// The largest magnitude of the value at the event's root; 0 unless the event has just occurred. It has the
    /// sign that the event has changed to.
    pub(crate) noise: C,
}

/// A value whose magnitude is above this many times the noise has left the root.
const CLEAR: f64 = 4.0;
/// The number of additional times at which the sign after a root is sampled. They lie before the first sample
/// of the step, each closer to the start of the step by the factor `SHRINK`. Together they span all digits of
/// a time, however long the step is.
const LOOKS: i32 = 9;
const SHRINK: f64 = 64.0;

impl<C: Clock> Mark<C> {
    /// The mark of a value without a recent event.
    pub(crate) fn new(value: C) -> Self {
        let noise = value.like(0.0);
        Mark { value, noise }
    }

    /// Whether the value is a root up to noise. The sign of the event is then the sign that its function
    /// takes next.
    #[inline]
    pub(crate) fn is_on_root(&self) -> C::Mask {
        self.value.abs().le(&self.noise.abs().mul(&self.noise.like(CLEAR)))
    }

    /// Whether the event has just occurred, and `value`, the first one off the root, has the sign that the
    /// event changed to.
    #[inline]
    pub(crate) fn has_gone_on(&self, value: &C) -> C::Mask {
        let zero = value.like(0.0);
        let above = C::and(&zero.lt(value), &zero.lt(&self.noise));
        C::or(&above, &C::and(&value.lt(&zero), &self.noise.lt(&zero)))
    }

    /// The times after `t`, the start of a step, at which to check whether the event has left its root; the
    /// last is `first`, the step's first sample.
    pub(crate) fn looks(t: &C, first: &C) -> impl Iterator<Item = C> {
        let apart = first.sub(t);
        let shrunk = (1..=LOOKS).rev().map(move |look| apart.mul(&apart.like(SHRINK.powi(-look))));
        let t = t.clone();
        shrunk.map(move |part| t.add(&part)).chain([first.clone()])
    }

    /// Whether the event has left its root at this value of its function.
    #[inline]
    pub(crate) fn has_left(&self, value: &C) -> C::Mask {
        C::not(&Mark { value: value.clone(), noise: self.noise.clone() }.is_on_root())
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
