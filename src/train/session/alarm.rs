//! When a run saves, validates and draws: at intervals, and within a fixed share of its time.
//!
//! This file depends only on the clock. Nothing in a checkpoint may depend on it.

use std::time::{Duration, Instant};

/// Time after which the next update writes a checkpoint, if writing takes less than a 50th of this time.
const SAVE_EVERY: Duration = Duration::from_secs(3);
/// Shortest times after which the clock requests another validation check or figure. The interval is also at least
/// `LOOK_SHARE` times the duration of the last check or figure, so that most of the time is left for
/// training.
const MEASURE_EVERY: Duration = Duration::from_secs(10);
#[cfg(feature = "plot")]
const DRAW_EVERY: Duration = Duration::from_secs(20);
const LOOK_SHARE: u32 = 20;
/// The same factor for checkpoints, whose models may have millions of weights.
const SAVE_SHARE: u32 = 50;

/// A recurring task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alarm {
    every: Duration,
    /// The minimum interval, in multiples of the duration of the task.
    share: u32,
    last: Option<Instant>,
    took: Duration,
}

impl Alarm {
    /// For checkpoints; the first interval starts at `begun`.
    pub fn of_saving(begun: Instant) -> Alarm {
        Alarm { last: Some(begun), ..Alarm::new(SAVE_EVERY, SAVE_SHARE) }
    }

    /// For validation; inactive until the first check.
    pub fn of_measuring() -> Alarm {
        Alarm::new(MEASURE_EVERY, LOOK_SHARE)
    }

    /// For figures; inactive until the first one.
    #[cfg(feature = "plot")]
    pub fn of_drawing() -> Alarm {
        Alarm::new(DRAW_EVERY, LOOK_SHARE)
    }

    fn new(every: Duration, share: u32) -> Alarm {
        Alarm { every, share, last: None, took: Duration::ZERO }
    }

    /// Whether the task has run, and repeating it now stays within its share of the time.
    pub fn is_cheap(&self) -> bool {
        self.last.is_some_and(|last| last.elapsed() >= self.took * self.share)
    }

    /// Whether the task is due again.
    pub fn rings(&self) -> bool {
        self.last.is_some_and(|last| last.elapsed() >= self.every.max(self.took * self.share))
    }

    /// Records a run of the task that began at `since`.
    pub fn done(&mut self, since: Instant) {
        (self.last, self.took) = (Some(Instant::now()), since.elapsed());
    }
}
