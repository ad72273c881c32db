//! Events that accumulate: infinitely many before a finite time.
//!
//! A ball with restitution r < 1 bounces at times whose intervals shrink by the factor r. After a run of ever
//! shorter intervals, the accumulation time is extrapolated from the last two intervals. Events accumulate if
//! this time is ahead by only a tiny fraction of the run. For a ball that merely bounces often, it is not.
//! If the state or the time resolves the bounces no longer before that, [`finder`](super::finder) notices it.

use crate::ode::Clock;

/// Consecutive shrinking intervals that count as accumulation.
const RUN: f64 = 8.0;
/// The maximum sum of all further intervals, as a fraction of the duration of the run.
const REST: f64 = 1e-9;
/// This part of an interval counts beside the interval.
const SLOW: f64 = 1e-3;
/// Intervals that differ by less than this many times the resolution of a time neither prolong nor end a run.
const NOISE: f64 = 2.0;

/// The history of an event's state resets, its *actions*.
#[derive(Clone, Debug)]
pub(crate) struct Rhythm<C> {
    /// The time of the last action, t0 at first.
    t: C,
    /// The last interval between actions, the first one from t0; infinite before the first action.
    interval: C,
    /// The time from the start of the run to the last action.
    length: C,
    /// The number of consecutive shrinking intervals.
    run: C,
    /// The sum of all further intervals, extrapolated.
    rest: C,
}

impl<C: Clock> Rhythm<C> {
    /// The history of an event that has not acted yet.
    pub(crate) fn new(t0: &C) -> Self {
        let [zero, most] = [0.0, f64::INFINITY].map(|x| t0.like(x));
        Rhythm { t: t0.clone(), interval: most.clone(), length: zero.clone(), run: zero, rest: most }
    }

    /// All its clocks, in a fixed order.
    #[cfg(feature = "autodiff")]
    pub(crate) fn clocks(&self) -> [C; 5] {
        let Rhythm { t, interval, length, run, rest } = self.clone();
        [t, interval, length, run, rest]
    }

    /// The inverse of [`clocks`](Self::clocks).
    #[cfg(feature = "autodiff")]
    pub(crate) fn of([t, interval, length, run, rest]: [C; 5]) -> Self {
        Rhythm { t, interval, length, run, rest }
    }

    /// The time between the last two actions; from t0 if there was one action.
    pub(crate) fn interval(&self) -> C {
        self.interval.clone()
    }

    /// The history after an action at `t`, a time that is exact up to `resolution`.
    pub(crate) fn beat(&self, t: &C, resolution: &C) -> Self {
        let interval = t.sub(&self.t).abs();
        let [zero, one, most] = [0.0, 1.0, f64::INFINITY].map(|x| t.like(x));
        let is_first = most.le(&self.interval);
        let noise = resolution.mul(&t.like(NOISE));
        let shrinks = C::and(&interval.add(&noise).lt(&self.interval), &C::not(&is_first));
        let goes_on = C::and(&interval.le(&self.interval.add(&noise)), &C::not(&is_first));
        let run = C::select(&shrinks, &self.run.add(&one), &self.run);
        // q + q^2 + ... intervals, q the ratio of the last two.
        let rest = interval.mul(&interval).div(&self.interval.sub(&interval));
        Rhythm {
            t: t.clone(),
            length: C::select(&goes_on, &self.length.add(&interval), &interval),
            run: C::select(&goes_on, &run, &zero),
            rest: C::select(&shrinks, &rest, &C::select(&goes_on, &self.rest, &most)),
            interval,
        }
    }

    /// Whether the event has acted at ever shorter intervals, and is still on its root at `t`: for a time that
    /// counts beside the last interval.
    pub(crate) fn rests(&self, t: &C) -> C::Mask {
        let is_run = self.run.like(1.0).le(&self.run);
        C::and(&is_run, &self.interval.mul(&t.like(SLOW)).le(&t.sub(&self.t).abs()))
    }

    /// Whether the event's actions accumulate.
    pub(crate) fn accumulates(&self) -> C::Mask {
        let is_long = self.run.like(RUN).le(&self.run);
        C::and(&is_long, &self.rest.le(&self.length.mul(&self.rest.like(REST))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of actions after which an accumulation is detected, of at most 200.
    fn believed(interval: impl Fn(i32) -> f64) -> Option<i32> {
        let (mut rhythm, mut t) = (Rhythm::new(&0.0), 0.0);
        (0..200).find(|&n| {
            t += interval(n);
            rhythm = rhythm.beat(&t, &1e-15);
            rhythm.accumulates()
        })
    }

    #[test]
    fn intervals_that_shrink_by_a_factor_accumulate_and_others_do_not() {
        // The intervals after the n-th sum to q^n / (1 - q): 1e-9 of the total for q = 1/2 after 30.
        let found = believed(|n| 0.5_f64.powi(n)).unwrap();
        assert!((29..=31).contains(&found), "{found}");
        // For 1/25 it is 2e-10 after seven, but eight in a row are required.
        assert_eq!(believed(|n| 0.04_f64.powi(n)), Some(8));
        assert_eq!(believed(|_| 0.5), None);
        assert_eq!(believed(|n| 1.0 / f64::from(n + 1)), None, "a harmonic series diverges");
        assert_eq!(believed(|n| 0.5_f64.powi(n % 7)), None, "a broken run does not count");
    }
}
