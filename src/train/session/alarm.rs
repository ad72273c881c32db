//! When a run saves, validates and draws: at intervals, and within a fixed share of its time.
//!
//! This file depends only on the time. Nothing in a checkpoint may depend on it.

/// Seconds after which the next update writes a checkpoint, if writing takes less than a 50th of this time.
const SAVE_EVERY_S: f64 = 3.0;
/// Shortest times after which another validation check or figure is due. The interval is also at least
/// `LOOK_SHARE` times the duration of the last check or figure, so that most of the time is left for
/// training.
const MEASURE_EVERY_S: f64 = 10.0;
#[cfg(feature = "plot")]
const DRAW_EVERY_S: f64 = 20.0;
pub(super) const LOOK_SHARE: f64 = 20.0;
/// The same factor for checkpoints, whose models may have millions of weights.
const SAVE_SHARE: f64 = 50.0;

/// A recurring task. Times are in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alarm {
    every_s: f64,
    /// The minimum interval, in multiples of the duration of the task.
    share: f64,
    last_s: Option<f64>,
    took_s: f64,
}

impl Alarm {
    /// For checkpoints; the first interval starts at `begun_s`.
    pub fn of_saving(begun_s: f64) -> Alarm {
        Alarm { last_s: Some(begun_s), ..Alarm::new(SAVE_EVERY_S, SAVE_SHARE) }
    }

    /// For validation; inactive until the first check.
    pub fn of_measuring() -> Alarm {
        Alarm::new(MEASURE_EVERY_S, LOOK_SHARE)
    }

    /// For figures; inactive until the first one.
    #[cfg(feature = "plot")]
    pub fn of_drawing() -> Alarm {
        Alarm::new(DRAW_EVERY_S, LOOK_SHARE)
    }

    fn new(every_s: f64, share: f64) -> Alarm {
        Alarm { every_s, share, last_s: None, took_s: 0.0 }
    }

    /// Whether the task has run, and this many times its duration has passed since.
    pub fn is_past(&self, times: f64, now_s: f64) -> bool {
        self.last_s.is_some_and(|last_s| now_s - last_s >= self.took_s * times)
    }

    /// Whether the task is due again.
    pub fn rings(&self, now_s: f64) -> bool {
        self.is_past(self.share, now_s) && self.last_s.is_some_and(|last_s| now_s - last_s >= self.every_s)
    }

    /// Records a run of the task that began at `since_s` and has just ended.
    pub fn done(&mut self, since_s: f64, now_s: f64) {
        (self.last_s, self.took_s) = (Some(now_s), now_s - since_s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_due_after_its_interval_and_a_multiple_of_its_duration() {
        let mut alarm = Alarm::of_measuring();
        assert!(!alarm.rings(1e9) && !alarm.is_past(0.0, 1e9));
        alarm.done(4.0, 4.25);
        assert_eq!([9.0, 14.0, 14.25].map(|now_s| alarm.rings(now_s)), [false, false, true]);
        alarm.done(20.0, 24.0);
        assert_eq!([40.0, 103.0, 104.0].map(|now_s| alarm.rings(now_s)), [false, false, true]);
        assert_eq!([39.0, 40.0].map(|now_s| alarm.is_past(4.0, now_s)), [false, true]);
        let saving = Alarm::of_saving(5.0);
        assert_eq!([7.0, 8.0].map(|now_s| saving.rings(now_s)), [false, true]);
    }
}
