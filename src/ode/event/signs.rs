//! What is known of the sign of an event's function along a step.

use super::Event;
use crate::ode::Clock;

/// The value of an event's function where a step starts.
#[derive(Clone, Debug)]
pub(crate) struct Mark<C> {
    /// Its sign counts, unless it is no larger than `noise`.
    pub(crate) value: C,
    /// How large a value may be at the event's root: 0 but where the event has just happened. It has the sign that the
    /// event has changed to.
    pub(crate) noise: C,
}

/// A value that is this many times what it may be at a root has left it.
const CLEAR: f64 = 4.0;
/// Looks for the side that is left to: at the first sample of the step, and at times before it, each a `SHRINK`-th as far
/// from the step's start as the one after. Together they span the digits of a time, however long the step is.
const LOOKS: i32 = 9;
const SHRINK: f64 = 64.0;

impl<C: Clock> Mark<C> {
    /// At (t, y), where nothing has happened.
    pub(crate) fn new(value: C) -> Self {
        let noise = value.like(0.0);
        Mark { value, noise }
    }

    /// Whether the value is a root up to noise. The event then takes its sign from the side to which the solution leaves.
    #[inline]
    pub(crate) fn is_on_root(&self) -> C::Mask {
        self.value.abs().le(&self.noise.abs().mul(&self.noise.like(CLEAR)))
    }

    /// The event has just happened, and `value`, where it has left its root, is on the side that it changed to.
    #[inline]
    pub(crate) fn has_gone_on(&self, value: &C) -> C::Mask {
        let zero = value.like(0.0);
        let above = C::and(&zero.lt(value), &zero.lt(&self.noise));
        C::or(&above, &C::and(&value.lt(&zero), &self.noise.lt(&zero)))
    }

    /// The times after `t`, where a step starts, at which it is asked whether the event has left its root; `first`, the
    /// step's first sample, is the last of them.
    pub(crate) fn looks(t: &C, first: &C) -> impl Iterator<Item = C> {
        let apart = first.sub(t);
        let shrunk = (1..=LOOKS).rev().map(move |look| apart.mul(&apart.like(SHRINK.powi(-look))));
        let t = t.clone();
        shrunk.map(move |part| t.add(&part)).chain([first.clone()])
    }

    /// Whether the event has left its root where its function has this value.
    #[inline]
    pub(crate) fn has_left(&self, value: &C) -> C::Mask {
        C::not(&Mark { value: value.clone(), noise: self.noise.clone() }.is_on_root())
    }
}

impl Event {
    /// Whether going from `before` to `after` is an event.
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

    /// The parts of a step at which the sign is looked at, without its start.
    pub(crate) fn parts(&self) -> impl Iterator<Item = f64> + use<> {
        let n = self.interp_points;
        (1..=n).map(move |j| j as f64 / n as f64)
    }

    /// Whether the occurrence of this number, counted from 1, ends the solve.
    pub(crate) fn ends_at(&self, occurrence: u64) -> bool {
        self.terminal > 0 && occurrence >= self.terminal as u64
    }
}
