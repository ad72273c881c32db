//! When a run saves, measures and draws: every now and then, and never for more than a share of its time.
//!
//! It knows the clock, and nothing of a run. Nothing that a checkpoint holds may depend on what rings here.

use std::time::{Duration, Instant};

/// Longest time between two checkpoints, less the time of an update, where writing one takes less than a 50th of it.
const SAVE_EVERY: Duration = Duration::from_secs(3);
/// Shortest times between two measures of the held-out NLL and between two figures, and the least multiple of what one
/// takes: the clock of a run belongs to training.
const MEASURE_EVERY: Duration = Duration::from_secs(10);
#[cfg(feature = "plot")]
const DRAW_EVERY: Duration = Duration::from_secs(20);
const LOOK_SHARE: u32 = 20;
/// As much for checkpoints, whose models may have millions of weights.
const SAVE_SHARE: u32 = 50;

/// Something that is done every now and then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alarm {
    every: Duration,
    /// The least multiple of what it takes.
    share: u32,
    last: Option<Instant>,
    took: Duration,
}

impl Alarm {
    /// Of checkpoints; the first is due as long after `begun` as each after the one before.
    pub fn of_saving(begun: Instant) -> Alarm {
        Alarm { last: Some(begun), ..Alarm::new(SAVE_EVERY, SAVE_SHARE) }
    }

    /// Of measures; silent until the first.
    pub fn of_measuring() -> Alarm {
        Alarm::new(MEASURE_EVERY, LOOK_SHARE)
    }

    /// Of figures; silent until the first.
    #[cfg(feature = "plot")]
    pub fn of_drawing() -> Alarm {
        Alarm::new(DRAW_EVERY, LOOK_SHARE)
    }

    fn new(every: Duration, share: u32) -> Alarm {
        Alarm { every, share, last: None, took: Duration::ZERO }
    }

    /// Whether it was done, and doing it again costs no more than its share of the time since.
    pub fn is_cheap(&self) -> bool {
        self.last.is_some_and(|last| last.elapsed() >= self.took * self.share)
    }

    /// Whether it is to be done again.
    pub fn rings(&self) -> bool {
        self.last.is_some_and(|last| last.elapsed() >= self.every.max(self.took * self.share))
    }

    /// It was done, begun at `since`.
    pub fn done(&mut self, since: Instant) {
        (self.last, self.took) = (Some(Instant::now()), since.elapsed());
    }
}
