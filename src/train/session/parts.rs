//! The parts of a session: the compiled programs, the time, and the scores.
//!
//! Nothing in a checkpoint may depend on the time, except under a time limit.

use super::alarm::Alarm;
use super::checks::keeps_best;
use crate::cnf::{KlEstimate, KlEstimator};
use crate::eval::{DRAW_TOLERANCE, SCORE_TOLERANCE};
use crate::eval::{LogDensity, Score, Stopwatch, Work};
use crate::train::best::{Best, Measured};
use crate::train::budget::Budget;
use crate::train::progress::Pace;
use crate::train::run::{RunInfo, Trainer};
use crate::train::state::TrainState;
use crate::train::step::Step;
use crate::train::tally::Tallies;

/// The programs of a run's phases.
pub(in crate::train) struct PhasePrograms {
    /// Those of each phase, from compilation to the end of the phase.
    pub steps: Vec<Option<Step>>,
    /// What updates and solves cost.
    pub tallies: Tallies,
    /// The programs compiled for phases that have ended, and for figures.
    pub compiles: usize,
}

impl PhasePrograms {
    pub(super) fn new(header: &RunInfo) -> PhasePrograms {
        PhasePrograms {
            steps: header.config.phases.iter().map(|_| None).collect(),
            tallies: Tallies::new(&header.config, header.frames.entropy_nats()),
            compiles: 0,
        }
    }

    /// Counts the traces of a phase's gradient for the report, and drops the programs.
    pub(super) fn end(&mut self, phase: usize) {
        self.compiles += self.steps[phase].take().map_or(0, |step| step.traces());
    }
}

/// The time of a run. Times are in seconds.
pub(in crate::train) struct Timing {
    pub budget: Budget,
    /// Measures the work of the run.
    pub watch: Stopwatch,
    /// When the phase began in this process, and whether its first validation is done.
    pub(super) begun_s: f64,
    pub(super) looked: bool,
    /// The share of the phase's seconds before its first update, and the checks due that had passed at the last one.
    pub(super) begun_share: f64,
    pub(super) passed: u64,
    pub(super) pace: Pace,
    pub(super) saving: Alarm,
    pub(super) measuring: Alarm,
    #[cfg(feature = "plot")]
    pub(super) drawing: Alarm,
}

impl Timing {
    /// For a run whose data were prepared at `begun_s`.
    pub(super) fn new(trainer: &Trainer<'_>, header: &RunInfo, begun_s: f64) -> Timing {
        let (limit_s, shares) = (header.options.time_limit, header.config.time_shares());
        let time = trainer.time.clone();
        Timing {
            budget: Budget::new(time.clone(), limit_s, &shares, trainer.plots_kind()),
            watch: Stopwatch::new(time),
            begun_s,
            looked: false,
            begun_share: 0.0,
            passed: 0,
            pace: Pace::default(),
            saving: Alarm::of_saving(begun_s),
            measuring: Alarm::of_measuring(),
            #[cfg(feature = "plot")]
            drawing: Alarm::of_drawing(),
        }
    }

    /// The time now.
    pub fn now_s(&self) -> f64 {
        self.budget.time.now_s()
    }

    /// Begins a phase.
    pub(super) fn begin(&mut self) {
        (self.pace, self.begun_s, self.looked) = (Pace::default(), self.now_s(), false);
        self.watch.forget(Work::Update);
    }

    /// The share of a phase's seconds that has passed since its first update; 0 without a time limit. What comes before,
    /// reading and compiling, would take the place of the first checks.
    pub(super) fn trained_share(&self, phase: usize) -> f64 {
        let share = self.budget.share(phase).unwrap_or(0.0);
        ((share - self.begun_share) / (1.0 - self.begun_share).max(f64::EPSILON)).clamp(0.0, 1.0)
    }
}

/// Scores and chosen weights.
pub(in crate::train) struct Judging {
    /// Evaluates densities for scores, and for figures.
    pub measure: LogDensity,
    pub draw: LogDensity,
    /// The last validation score.
    pub last_score: Option<Score>,
    /// In a run that learns from exact targets, the estimator of its KL divergence, and the last estimate.
    pub estimator: Option<KlEstimator>,
    pub last_estimate: Option<KlEstimate>,
    /// The best weights, for runs on points and sets of images, which may overfit, and on exact targets alone.
    pub best: Option<Best>,
    /// The validation NLL of the final weights and their update, at the end of the run.
    pub kept: Option<Measured>,
    /// Whether early stopping has ended the run.
    pub(super) stopped: bool,
    /// Under a time limit, the number of validation rows of each check, once it is known.
    pub(super) rows_checked: Option<usize>,
}

impl Judging {
    pub(super) fn new(
        trainer: &Trainer<'_>,
        header: &RunInfo,
        state: &TrainState,
        estimator: Option<KlEstimator>,
    ) -> Judging {
        let [measure, draw] = if header.options.time_limit.is_some() {
            LogDensity::in_short_calls(SCORE_TOLERANCE, DRAW_TOLERANCE)
        } else {
            [
                LogDensity::for_measures(SCORE_TOLERANCE, SCORE_TOLERANCE),
                LogDensity::new(DRAW_TOLERANCE, DRAW_TOLERANCE),
            ]
        };
        Judging {
            measure,
            draw,
            last_score: None,
            estimator,
            last_estimate: None,
            best: keeps_best(&trainer.data, header).then(|| Best::room(&state.ema)),
            kept: None,
            stopped: false,
            rows_checked: None,
        }
    }
}
