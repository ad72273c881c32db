//! The length of a run: a number of updates, or seconds that its phases share.
//!
//! Under a time limit the number of updates is not fixed. Each phase gets a share of the run's time, and its
//! schedule follows the elapsed fraction of this share: a loaded machine makes fewer updates, but the
//! schedule still ends on time. The time for reading, compiling, validating and saving counts as time of the
//! phase in which they happen. The rest of the limit is for the final evaluation and the figures, which
//! process only as much as this time allows ([`Deadline`]). This reserve grows if the machine becomes slow.

use super::{PlotsKind, TrainError};
use crate::eval::{Deadline, Stopwatch, Work};
use crate::time_source::TimeSource;

/// Share of a limit that is reserved for the final evaluation and the figures (the end of the run), and its
/// maximum in seconds, on a machine that is fast enough. The reserve is never more than half of the limit.
const END_SHARE: f64 = 0.25;
const END_MOST_S: f64 = 120.0;
/// A limit may be exceeded by this fraction of it or by these seconds, whichever is more, if the machine
/// becomes much slower at the end.
const OVER_SHARE: f64 = 0.05;
const OVER_S: f64 = 2.0;
/// The expected time of the end is multiplied by this factor.
const CAUTION: f64 = 1.25;

/// The minimum number of seconds for the end: one for the scores, and more if figures are drawn.
fn end_least_s(plots: PlotsKind) -> f64 {
    match plots {
        PlotsKind::All => 4.0,
        PlotsKind::Density => 2.0,
        PlotsKind::None => 1.0,
    }
}

/// The time of a run, over all its processes.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    /// The time of this process.
    pub time: TimeSource,
    /// Seconds of earlier processes.
    earlier_s: f64,
    limit: Option<Limit>,
    /// Whether the last phase has ended.
    is_trained: bool,
}

/// The limit of a run in seconds.
#[derive(Clone, Debug)]
struct Limit {
    seconds: f64,
    /// The fraction of the training time after which each phase ends.
    ends: Vec<f64>,
    /// The minimum number of seconds for the end, and the seconds reserved now.
    least_s: f64,
    reserve_s: f64,
}

impl Limit {
    /// Seconds for training.
    fn training_s(&self) -> f64 {
        self.seconds - self.reserve_s
    }

    /// The time at which a phase ends.
    fn end_s(&self, phase: usize) -> f64 {
        self.ends[phase] * self.training_s()
    }

    /// The reserve if the end is expected to take `wanted_s`.
    fn reserve_s(&self, wanted_s: f64) -> f64 {
        let usual_s = (END_SHARE * self.seconds).clamp(self.least_s, END_MOST_S);
        usual_s.max(CAUTION * wanted_s).min(0.5 * self.seconds)
    }
}

/// The seconds that a new run took before its first update.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    /// From the start of the process: reading the data.
    pub reading_s: f64,
    /// Splitting the data and preparing the held-out points.
    pub preparing_s: f64,
    /// Compiling the update.
    pub compiling_s: f64,
}

impl Budget {
    /// For the process with this time. Under a limit the phases share the training time according to `shares`.
    /// `plots` sets the minimum time for the end.
    pub fn new(time: TimeSource, limit_s: Option<f64>, shares: &[f64], plots: PlotsKind) -> Budget {
        let limit = limit_s.map(|seconds| {
            let mut part = 0.0;
            let ends = shares.iter().map(|share| {
                part += share;
                part
            });
            let limit = Limit { seconds, ends: ends.collect(), least_s: end_least_s(plots), reserve_s: 0.0 };
            Limit { reserve_s: limit.reserve_s(0.0), ..limit }
        });
        Budget { time, earlier_s: 0.0, limit, is_trained: false }
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

    /// Sets the reserve for the end, which is expected to take `wanted_s` at the present speed of the machine.
    pub fn reserve(&mut self, wanted_s: f64) {
        if let Some(limit) = &mut self.limit {
            limit.reserve_s = limit.reserve_s(wanted_s);
        }
    }

    /// Ends the training: a later process makes no more updates, even if its reserve for the end is smaller.
    pub fn end_training(&mut self) {
        self.is_trained = true;
    }

    /// Whether time ends the phases rather than a number of updates.
    pub fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// Seconds of the run so far.
    pub fn seconds(&self) -> f64 {
        self.earlier_s + self.time.now_s()
    }

    /// Seconds of the run up to the end of its last phase, from which a later process continues. Each process
    /// has its own time for the end.
    pub fn trained_s(&self) -> f64 {
        let Some(limit) = &self.limit else { return self.seconds() };
        let longest_s = limit.seconds - limit.reserve_s(0.0);
        if self.is_trained { longest_s } else { self.seconds().min(longest_s) }
    }

    /// Remaining seconds of a phase; `None` without a limit.
    pub fn left_s(&self, phase: usize) -> Option<f64> {
        self.limit.as_ref().map(|limit| limit.end_s(phase) - self.seconds())
    }

    /// Seconds of a phase; `None` without a limit.
    pub fn phase_s(&self, phase: usize) -> Option<f64> {
        let limit = self.limit.as_ref()?;
        Some(limit.end_s(phase) - if phase == 0 { 0.0 } else { limit.end_s(phase - 1) })
    }

    /// The elapsed fraction of a phase's seconds, from 0 to 1; `None` without a limit.
    pub fn share(&self, phase: usize) -> Option<f64> {
        let length = self.phase_s(phase)?;
        let left_s = self.left_s(phase)?;
        Some(if length > 0.0 { (1.0 - left_s / length).clamp(0.0, 1.0) } else { 1.0 })
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
        (self.seconds() / limit.training_s()).clamp(0.0, 1.0)
    }

    /// Refuses a limit if the time of the first phase is over before its first update.
    ///
    /// # Errors
    /// [`TrainError::NoTime`].
    pub fn check(&self, Before { reading_s, preparing_s, compiling_s }: Before) -> Result<(), TrainError> {
        match &self.limit {
            Some(limit) if self.seconds() >= limit.end_s(0) => {
                // If the reserve is a share of this limit, training has twice the time that has passed: half
                // of it remains for updates.
                let least_s = (2.0 * self.seconds() / (1.0 - END_SHARE)).max(2.0 * limit.least_s);
                let limit_s = limit.seconds;
                Err(TrainError::NoTime { limit_s, reading_s, preparing_s, compiled_s: compiling_s, least_s })
            }
            _ => Ok(()),
        }
    }

    /// The end of the run's time.
    pub fn deadline(&self, watch: &Stopwatch) -> Deadline {
        let Some(Limit { seconds, .. }) = self.limit else { return watch.no_deadline() };
        let at_s = (seconds - self.earlier_s).max(0.0);
        watch.deadline(at_s, at_s + (OVER_SHARE * seconds).max(OVER_S))
    }
}

/// What the end of a run needs, to be worth its time.
pub(super) struct End {
    /// Held-out points or images that are scored.
    pub scores: (Work, usize),
    /// Cells of the plane, if the data have one.
    pub cells: usize,
    /// Samples and trajectories for figures.
    pub samples: usize,
    pub trajectories: usize,
    /// Figures, in the unit of [`Work::Figures`].
    pub figures: f64,
}

impl End {
    /// Expected seconds at the present speed of the machine.
    pub fn expected_s(&self, watch: &Stopwatch) -> f64 {
        let (score, num_scores) = self.scores;
        watch.expected_s(score, num_scores as f64)
            + watch.expected_s(Work::Grid, self.cells as f64)
            + watch.expected_s(
                if score == Work::Score { Work::Samples } else { Work::ImageSamples },
                self.samples as f64,
            )
            + watch.expected_s(Work::Trajectories, self.trajectories as f64)
            + watch.expected_s(Work::Figures, self.figures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optim::Schedule;
    use crate::tensor::Tensor;
    use std::f64::consts::PI;

    fn at(seconds: f64, limit_s: Option<f64>, shares: &[f64]) -> Budget {
        let time = TimeSource::set();
        time.advance(seconds);
        Budget::new(time, limit_s, shares, PlotsKind::All)
    }

    #[test]
    fn a_schedule_ends_with_its_seconds_whatever_they_were_spent_on() {
        let at = |seconds: f64| at(seconds, Some(100.0), &[0.8, 0.2]);
        let near = |found: Option<f64>, wanted: f64| {
            assert!((found.unwrap() - wanted).abs() < 1e-9, "{found:?} {wanted}");
        };
        // The end has a quarter; the phases have 60 s and 15 s.
        near(at(0.0).share(0), 0.0);
        near(at(30.0).share(0), 0.5);
        near(at(30.0).share(1), 0.0);
        near(at(67.5).share(0), 1.0);
        near(at(67.5).share(1), 0.5);
        near(at(90.0).share(1), 1.0);
        near(at(90.0).left_s(1), -15.0);
        near(at(0.0).phase_s(1), 15.0);
        assert_eq!(self::at(5.0, None, &[1.0]).share(0), None);
        // A machine on which the end takes 32 s or more has less time for training.
        for (wanted_s, reserve_s) in [(4.0, 25.0), (32.0, 40.0), (90.0, 50.0), (1.0, 25.0)] {
            let mut budget = at(15.0);
            budget.reserve(wanted_s);
            near(budget.left_s(1), 85.0 - reserve_s);
        }
    }

    #[test]
    fn learning_rates_fall_with_the_seconds() {
        for (spent, done) in [(15.0, 3), (30.0, 7), (59.0, 100_000)] {
            let budget = at(spent, Some(100.0), &[0.8, 0.2]);
            let rate = Schedule::cosine_decay(0.1, budget.updates(0, done).unwrap())
                .at(&Tensor::from(done as u32))
                .item();
            let wanted = 0.05 * (1.0 + (PI * spent / 60.0).cos());
            assert!((rate - wanted).abs() < 1e-4, "{rate} {wanted}");
        }
        let late = at(80.0, Some(100.0), &[1.0]);
        assert_eq!((late.updates(0, 0), late.updates(0, 50)), (Some(1.0), Some(50.0)));
    }

    #[test]
    fn a_resumed_run_has_what_is_left_of_its_limit() {
        let mut budget = at(1.0, Some(100.0), &[1.0]);
        let left_s = |budget: &Budget| budget.deadline(&Stopwatch::new(budget.time.clone())).left_s();
        budget.resume(Some(70.0));
        assert_eq!((budget.left_s(0), left_s(&budget)), (Some(4.0), 29.0));
        budget.resume(Some(200.0));
        assert_eq!((budget.share(0), left_s(&budget)), (Some(1.0), 0.0));
        budget.resume(None);
        assert!(!budget.is_limited() && left_s(&budget).is_infinite());
    }

    #[test]
    fn a_limit_that_is_over_before_the_first_update_is_refused_with_what_took_the_time() {
        let check = |spent: f64, limit| {
            let before = Before { reading_s: 0.75 * spent, preparing_s: 0.25 * spent, compiling_s: 0.0 };
            at(spent, Some(limit), &[1.0]).check(before)
        };
        assert!(check(2.0, 10.0).is_ok());
        let refused = check(2.0, 3.0).unwrap_err().to_string();
        assert!(refused.contains("time limit of 3 s") && refused.contains("allow at least 8 s"), "{refused}");
        assert!(refused.contains("reading the data took 1.5 s, preparing them 0.5 s"), "{refused}");
        let none = Budget::new(TimeSource::set(), Some(3.1), &[1.0], PlotsKind::None);
        none.time.advance(2.0);
        assert!(none.check(Before { reading_s: 0.0, preparing_s: 0.0, compiling_s: 2.0 }).is_ok());
    }
}
