//! The length of a run: a number of updates, or seconds that its phases share.
//!
//! Under a time limit the number of updates is not fixed. Each phase gets a share of the run's time, and its
//! schedule follows the elapsed fraction of this share: a loaded machine makes fewer updates, but the
//! schedule still ends on time. The time for reading, compiling, validating and saving counts as time of the
//! phase in which they happen. The rest of the limit is for the final evaluation and the figures, which
//! process only as much as this time allows ([`Deadline`]).

use super::{PlotsKind, TrainError};
use crate::eval::Deadline;
use std::time::{Duration, Instant};

/// Share of a limit that is reserved for the final evaluation and the figures (the end of the run), and its
/// maximum in seconds. The reserve is never more than half of the limit.
const END_SHARE: f64 = 0.25;
const END_MOST_S: f64 = 120.0;

/// The minimum number of seconds for the end: one for the scores, and more if figures are drawn.
fn end_least_s(plots: PlotsKind) -> f64 {
    match plots {
        PlotsKind::All => 4.0,
        PlotsKind::Density => 2.0,
        PlotsKind::None => 1.0,
    }
}

/// The clock of a run, over all its processes.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    started: Instant,
    /// Seconds of earlier processes.
    earlier_s: f64,
    limit: Option<Limit>,
}

/// The limit of a run in seconds, and the time at which each phase ends.
#[derive(Clone, Debug)]
struct Limit {
    seconds: f64,
    ends: Vec<f64>,
    /// The minimum number of seconds for the end.
    least_s: f64,
}

impl Limit {
    /// The time at which the last phase ends.
    fn end(&self) -> f64 {
        self.ends[self.ends.len() - 1]
    }
}

impl Clock {
    /// For a process started at `started`. Under a limit the phases share the training time according to
    /// `shares`. `plots` sets the minimum time for the end.
    pub fn new(started: Instant, limit_s: Option<f64>, shares: &[f64], plots: PlotsKind) -> Clock {
        let least_s = end_least_s(plots);
        let limit = limit_s.map(|seconds| {
            let end = (END_SHARE * seconds).clamp(least_s, END_MOST_S).min(0.5 * seconds);
            let mut part = 0.0;
            let ends = shares.iter().map(|share| {
                part += share;
                part * (seconds - end)
            });
            Limit { seconds, ends: ends.collect(), least_s }
        });
        Clock { started, earlier_s: 0.0, limit }
    }

    /// Continues after earlier processes that took this many seconds. If no time was recorded, the limit is
    /// removed: the file of counters is lost, or an older version began the run, and the number of updates is
    /// fixed.
    pub fn resume(&mut self, earlier_s: Option<f64>) {
        match earlier_s {
            Some(seconds) => self.earlier_s = seconds,
            None => self.limit = None,
        }
    }

    /// Whether time ends the phases rather than a number of updates.
    pub fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// Seconds of the run so far.
    pub fn seconds(&self) -> f64 {
        self.earlier_s + self.started.elapsed().as_secs_f64()
    }

    /// Seconds of the run up to the end of its last phase, from which a later process continues. Each process
    /// has its own time for the end.
    pub fn trained_s(&self) -> f64 {
        let all = self.limit.as_ref().map_or(f64::INFINITY, Limit::end);
        self.seconds().min(all)
    }

    /// Remaining seconds of a phase; `None` without a limit.
    pub fn left_s(&self, phase: usize) -> Option<f64> {
        self.limit.as_ref().map(|limit| limit.ends[phase] - self.seconds())
    }

    /// The elapsed fraction of a phase's seconds, from 0 to 1; `None` without a limit.
    pub fn share(&self, phase: usize) -> Option<f64> {
        let limit = self.limit.as_ref()?;
        let begin = if phase == 0 { 0.0 } else { limit.ends[phase - 1] };
        let length = limit.ends[phase] - begin;
        Some(if length > 0.0 { ((self.seconds() - begin) / length).clamp(0.0, 1.0) } else { 1.0 })
    }

    /// The expected number of updates of a phase at the pace so far. The schedule divides the updates done by
    /// this number, and so follows the elapsed seconds. `None` without a limit.
    pub fn updates(&self, phase: usize, done: u64) -> Option<f64> {
        // Before the first update the schedule is at its start for any divisor.
        let of = |share: f64| (done as f64 / share.max(f64::MIN_POSITIVE)).clamp(1.0, f64::from(u32::MAX));
        self.share(phase).map(of)
    }

    /// The fraction of all training that is done; without a limit it is `of_updates`, the fraction of updates.
    pub fn done(&self, of_updates: f64) -> f64 {
        let Some(limit) = &self.limit else { return of_updates };
        (self.seconds() / limit.end()).clamp(0.0, 1.0)
    }

    /// Refuses a limit if the time of the first phase is over before its first update; `compiled_s` is the
    /// time that compiling took.
    ///
    /// # Errors
    /// [`TrainError::NoTime`].
    pub fn check(&self, compiled_s: f64) -> Result<(), TrainError> {
        match &self.limit {
            Some(limit) if self.seconds() >= limit.ends[0] => {
                // If the reserve is a share of this limit, training has twice the time that has passed: half
                // of it remains for updates.
                let least_s = (2.0 * self.seconds() / (1.0 - END_SHARE)).max(2.0 * limit.least_s);
                Err(TrainError::NoTime { limit_s: limit.seconds, compiled_s, least_s })
            }
            _ => Ok(()),
        }
    }

    /// The end of the run's time.
    pub fn deadline(&self) -> Deadline {
        let left =
            |limit: &Limit| self.started + Duration::from_secs_f64((limit.seconds - self.earlier_s).max(0.0));
        Deadline(self.limit.as_ref().map(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optim::Schedule;
    use crate::tensor::Tensor;
    use std::f64::consts::PI;

    fn ago(seconds: f64) -> Instant {
        Instant::now().checked_sub(Duration::from_secs_f64(seconds)).unwrap()
    }

    #[test]
    fn a_schedule_ends_with_its_seconds_whatever_they_were_spent_on() {
        let at = |seconds: f64| Clock::new(ago(seconds), Some(100.0), &[0.8, 0.2], PlotsKind::All);
        let near = |found: Option<f64>, wanted: f64| {
            assert!((found.unwrap() - wanted).abs() < 1e-2, "{found:?} {wanted}");
        };
        // The end has a quarter; the phases have 60 s and 15 s.
        near(at(0.0).share(0), 0.0);
        near(at(30.0).share(0), 0.5);
        near(at(30.0).share(1), 0.0);
        near(at(67.5).share(0), 1.0);
        near(at(67.5).share(1), 0.5);
        near(at(90.0).share(1), 1.0);
        near(at(90.0).left_s(1), -15.0);
        assert_eq!(Clock::new(ago(5.0), None, &[1.0], PlotsKind::All).share(0), None);
    }

    #[test]
    fn learning_rates_fall_with_the_seconds() {
        for (spent, done) in [(15.0, 3), (30.0, 7), (59.0, 100_000)] {
            let clock = Clock::new(ago(spent), Some(100.0), &[0.8, 0.2], PlotsKind::All);
            let rate = Schedule::cosine_decay(0.1, clock.updates(0, done).unwrap())
                .at(&Tensor::from(done as u32))
                .item();
            let wanted = 0.05 * (1.0 + (PI * spent / 60.0).cos());
            assert!((rate - wanted).abs() < 1e-4, "{rate} {wanted}");
        }
        let late = Clock::new(ago(80.0), Some(100.0), &[1.0], PlotsKind::All);
        assert_eq!((late.updates(0, 0), late.updates(0, 50)), (Some(1.0), Some(50.0)));
    }

    #[test]
    fn a_resumed_run_has_what_is_left_of_its_limit() {
        let mut clock = Clock::new(ago(1.0), Some(100.0), &[1.0], PlotsKind::All);
        clock.resume(Some(70.0));
        assert!((clock.left_s(0).unwrap() - 4.0).abs() < 1e-2, "{clock:?}");
        assert!((clock.deadline().left_s() - 29.0).abs() < 1e-2, "{clock:?}");
        clock.resume(Some(200.0));
        assert_eq!((clock.share(0), clock.deadline().left_s()), (Some(1.0), 0.0));
        clock.resume(None);
        assert!(!clock.is_limited() && clock.deadline().0.is_none());
    }

    #[test]
    fn a_limit_that_compiling_takes_up_is_refused_with_one_that_would_do() {
        let check =
            |spent: f64, limit| Clock::new(ago(spent), Some(limit), &[1.0], PlotsKind::All).check(2.0);
        assert!(check(2.0, 10.0).is_ok());
        let refused = check(2.0, 3.0).unwrap_err().to_string();
        assert!(refused.contains("time limit of 3 s") && refused.contains("allow at least 8 s"), "{refused}");
        assert!(Clock::new(ago(2.0), Some(3.1), &[1.0], PlotsKind::None).check(1.0).is_ok());
    }
}
