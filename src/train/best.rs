//! Selection of the best weights: by validation NLL in runs on a fixed set of points or images, by the estimate of the KL
//! divergence in runs that learn from exact targets alone ([`estimator`](super::estimator)).
//!
//! Other runs on an image or a toy density use the averaged weights after the last update: they hardly overfit. Runs on
//! points or image sets overfit sooner or later. They validate at [`Checks`] of a phase and store
//! the averaged weights with the lowest NLL in a separate file. These checks happen at fixed updates, not at
//! fixed times, so a resumed run ends with the same weights as an uninterrupted one. Under a time limit, they
//! happen at fixed shares of a phase's seconds, and at the end of the phase. They then score as many random rows of
//! the validation part, the same in each check, as take a small fraction of the time. The final weights are
//! scored on more rows at the end of the run.
//!
//! The buffers of the best weights are allocated at the start and never shared: memory does not grow at the first
//! validation, and updates still write in place.

use super::{Flow, InitialFlowKind, Phase, RunInfo, TrainConfig, TrainError};
use crate::error::Result;
use crate::io::run::{BEST_FILE, RunFolder};
use crate::io::{IoError, read_checkpoint, write_checkpoint};
use crate::tensor::{Tensor, Tree};
use serde::{Deserialize, Serialize};

/// Approximate number of validation checks per phase on image sets.
pub(super) const MEASURES: u64 = 10;
/// Checks per phase on tables. The first is after this share of the phase, or after these updates if that is later.
const RISING: u32 = 30;
const FIRST_SHARE: f64 = 1e-3;
const FIRST_UPDATES: f64 = 20.0;

/// When a phase is checked for the best weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checks {
    /// About so many, at equal distances.
    Equal(u64),
    /// 30, each after about a quarter more updates or seconds than the one before: a small table overfits within a
    /// thousandth to a hundredth of a phase.
    Rising,
}

impl Checks {
    /// About how many there are.
    pub fn count(self) -> u64 {
        match self {
            Checks::Equal(count) => count,
            Checks::Rising => u64::from(RISING),
        }
    }

    /// The numbers of updates after which a phase of this many updates is checked, in order.
    fn due(self, updates: u64) -> Vec<u64> {
        let mut due = Vec::new();
        match self {
            Checks::Equal(count) => {
                let step = (updates / count).max(1);
                due.extend((1..=updates / step).map(|i| i * step));
            }
            Checks::Rising => {
                let last = updates as f64;
                let first = (FIRST_SHARE * last).max(FIRST_UPDATES).min(last / f64::from(RISING));
                for i in 0..RISING {
                    let at = (first * (last / first).powf(part(i))).round() as u64;
                    due.push(due.last().map_or(1, |before| before + 1).max(at));
                }
            }
        }
        due.retain(|&at| at < updates);
        due.push(updates);
        due
    }

    /// The number of checks that belong to the first `share` of a phase's seconds.
    pub fn passed(self, share: f64) -> u64 {
        match self {
            Checks::Equal(count) => (share * count as f64) as u64,
            Checks::Rising => {
                (0..RISING).filter(|&i| share >= FIRST_SHARE.powf(1.0 - part(i))).count() as u64
            }
        }
    }

    /// Checks without improvement after which a run may well end: after three tenths of a phase more, or after four times
    /// the updates of the best weights.
    pub fn usual_patience(self) -> u64 {
        match self {
            Checks::Equal(_) => 3,
            Checks::Rising => 6,
        }
    }

    /// Whether a phase under a time limit has made too few updates for a check.
    pub fn is_too_early(self, done: u64, share: f64) -> bool {
        self == Checks::Rising && (done as f64) < FIRST_UPDATES && share < 1.0 / f64::from(RISING)
    }
}

/// The place of a rising check between the first and the last, from 0 to 1.
fn part(i: u32) -> f64 {
    f64::from(i) / f64::from(RISING - 1)
}

/// The number by which weights are selected, in nats: the least is the best.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Criterion {
    /// The validation NLL.
    Validation { nll_nats: f64, nll_stderr_nats: Option<f64> },
    /// The estimate of the KL divergence.
    Estimate { kl_estimate_nats: f64, kl_estimate_stderr_nats: f64 },
}

impl Criterion {
    pub(super) fn nats(&self) -> f64 {
        match *self {
            Criterion::Validation { nll_nats, .. } => nll_nats,
            Criterion::Estimate { kl_estimate_nats, .. } => kl_estimate_nats,
        }
    }
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Measured {
    #[serde(flatten)]
    pub by: Criterion,
    pub update: u64,
    /// Under a time limit, the number of validation rows, the same in each check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<usize>,
}

/// The header of the file of the best weights.
#[derive(Serialize, Deserialize)]
struct Named {
    /// The run's [`id`](RunInfo::run): the folder may hold weights of an older run.
    run: String,
    #[serde(flatten)]
    measured: Measured,
}

/// The averaged weights with the lowest validation NLL or estimate.
#[derive(Clone, Debug)]
pub(super) struct Best {
    /// `None` before the first check.
    pub measured: Option<Measured>,
    /// Its buffers are not shared with other tensors.
    pub flow: Flow,
}

/// Whether a check is due after the `done`-th update of a phase.
pub(super) fn is_due(phase: &Phase, done: u64, checks: Checks) -> bool {
    checks.due(phase.updates).binary_search(&done).is_ok()
}

/// Number of checks after update `from`, up to and including update `to`.
pub(super) fn checks_since(config: &TrainConfig, checks: Checks, from: u64, to: u64) -> u64 {
    let (mut first, mut count) = (0, 0);
    for phase in config.phases.iter().filter(|phase| phase.updates > 0) {
        let is_between = |&&done: &&u64| (from + 1..=to).contains(&(first + done));
        count += checks.due(phase.updates).iter().filter(is_between).count() as u64;
        first += phase.updates;
    }
    count
}

impl Best {
    /// Allocates buffers for the weights of a flow like this one.
    pub(super) fn room(like: &Flow) -> Best {
        Best { measured: None, flow: copy(like) }
    }

    /// Stores the weights, also in the folder if there is one, if they are better than the best so far.
    pub(super) fn keep(
        &mut self,
        measured: Measured,
        flow: &Flow,
        folder: Option<&RunFolder>,
        run: &str,
    ) -> Result<()> {
        if self.measured.is_some_and(|best| best.by.nats() <= measured.by.nats()) {
            return Ok(());
        }
        if let Some(folder) = folder {
            write_checkpoint(folder.target(BEST_FILE)?, &Named { run: run.to_owned(), measured }, flow)?;
        }
        *self = Best { measured: Some(measured), flow: copy(flow) };
        Ok(())
    }

    /// Reads the best weights of the run whose checkpoint is at `update`. The file may be newer than the
    /// checkpoint: the resumed run computes the same weights again.
    pub(super) fn read(
        folder: &RunFolder,
        header: &RunInfo,
        update: u64,
        like: &Flow,
    ) -> Result<Option<Best>> {
        let path = folder.file(BEST_FILE);
        match read_checkpoint::<Named>(&path) {
            Ok(file) if file.header.run == header.run => {
                Ok(Some(Best { measured: Some(file.header.measured), flow: file.into_tree(like)? }))
            }
            Ok(_) => Err(TrainError::OtherRun { path }.into()),
            Err(IoError::Read { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound
                    && (update == 0 || header.config.start == InitialFlowKind::Normal)
                    && checks_since(&header.config, header.checks(), 0, update) == 0 =>
            {
                Ok(None)
            }
            Err(other) => Err(other.into()),
        }
    }
}

/// A copy in new buffers, because an update cannot write in place to shared buffers.
fn copy(flow: &Flow) -> Flow {
    flow.map_leaves(|leaf| Tensor::from_array(leaf.array().clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::Key;
    use crate::train::{ObjectiveKind, TrainOptions};
    use rand::{RngExt, SeedableRng, rngs::SmallRng};

    const TENTHS: Checks = Checks::Equal(MEASURES);

    #[test]
    fn the_least_nll_is_kept_and_read_again() {
        let config =
            TrainConfig::new(&TrainOptions { width: Some(4), depth: Some(1), ..TrainOptions::default() });
        let flows: Vec<Flow> = (0..3).map(|i| config.model.build(&Key::new(i)).unwrap()).collect();
        let place = crate::io::scratch();
        let folder = RunFolder::open(place.path()).unwrap();
        let measured = |nll_nats, update| {
            let by = Criterion::Validation { nll_nats, nll_stderr_nats: Some(0.1) };
            Measured { by, update, rows: None }
        };
        let mut best = Best::room(&flows[0]);
        let places =
            |flow: &Flow| flow.leaves().iter().map(|x| x.array().data().as_ptr()).collect::<Vec<_>>();
        for (i, nll_nats) in [2.0, 1.0, 1.5].into_iter().enumerate() {
            let measured = measured(nll_nats, 10 * (i as u64 + 1));
            best.keep(measured, &flows[i], Some(&folder), "one").unwrap();
            let shared = places(&best.flow).iter().any(|place| places(&flows[i]).contains(place));
            assert!(!shared, "the best weights lie in buffers of their own");
        }
        let options = TrainOptions::default();
        let header = |run: &str| RunInfo {
            run: run.to_owned(),
            options: options.clone(),
            config: config.clone(),
            frames: crate::eval::Frames::default(),
            parts: None,
            kl_estimate: false,
            rising_checks: false,
        };
        let read = Best::read(&folder, &header("one"), 20, &flows[0]).unwrap().unwrap();
        assert_eq!(read.measured, Some(measured(1.0, 20)));
        let leaves = |flow: &Flow| flow.leaves().iter().map(Tensor::to_vec).collect::<Vec<_>>();
        assert_eq!((leaves(&read.flow), leaves(&best.flow)), (leaves(&flows[1]), leaves(&flows[1])));
        let other = Best::read(&folder, &header("other"), 20, &flows[0]).unwrap_err().to_string();
        assert!(other.contains("best.safetensors belongs to another run"), "{other}");
        // The file may be missing only before the first check.
        std::fs::remove_file(folder.file(BEST_FILE)).unwrap();
        assert!(Best::read(&folder, &header("one"), 0, &flows[0]).unwrap().is_none());
        let measured = config.phases[0].updates;
        let lost = Best::read(&folder, &header("one"), measured, &flows[0]).unwrap_err().to_string();
        assert!(lost.contains("best.safetensors cannot be read"), "{lost}");
    }

    #[test]
    fn a_phase_is_measured_ten_times_and_at_its_end() {
        let phase = |updates| Phase { updates, ..TrainConfig::new(&TrainOptions::default()).phases[0] };
        let due = |updates| {
            (1..=updates).filter(|&done| is_due(&phase(updates), done, TENTHS)).collect::<Vec<u64>>()
        };
        assert_eq!(due(100), (1..=10).map(|i| 10 * i).collect::<Vec<_>>());
        assert_eq!(due(7), [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(due(25).last(), Some(&25));
        let (updates, objective) = (Some(400), Some(ObjectiveKind::Both));
        let mut config = TrainConfig::new(&TrainOptions { objective, updates, ..TrainOptions::default() });
        config.phases[0].updates = 100;
        config.phases[1].updates = 300;
        assert_eq!(checks_since(&config, TENTHS, 10, 10), 0);
        let since = |from, to| checks_since(&config, TENTHS, from, to);
        assert_eq!((since(10, 40), since(90, 130)), (3, 2));
    }

    /// Phases of 1 to 1,000,000 updates, the same number of cases in each decade.
    #[test]
    fn checks_of_a_table_rise_by_about_a_quarter_to_the_end_of_the_phase() {
        let mut rng = SmallRng::seed_from_u64(11);
        let mut cases = vec![1, 2, 29, 30, 31, 600, 12_000];
        cases.extend((0..300).map(|_| 10f64.powf(rng.random_range(0.0..6.0)) as u64));
        for updates in cases {
            let due = Checks::Rising.due(updates);
            assert!(due.windows(2).all(|pair| pair[0] < pair[1]), "{updates}: {due:?}");
            assert_eq!((due.last(), due.len() as u64), (Some(&updates), updates.min(30)), "{due:?}");
            if updates <= 30 {
                continue;
            }
            let first = (updates as f64 / 1e3).max(20.0).min(updates as f64 / 30.0);
            assert!((due[0] as f64 - first).abs() <= 0.5, "{updates}: {due:?}");
            let most =
                due.windows(2).map(|pair| (pair[1] - 1) as f64 / (pair[0] + 1) as f64).fold(0.0, f64::max);
            assert!(most < 1.3, "{updates}: {due:?}");
            // Counted in two parts, as after a resume, they are the same.
            let mut config = TrainConfig::new(&TrainOptions::default());
            config.phases[0].updates = updates;
            let [from, stop] = [0, 1].map(|_| rng.random_range(0..=updates));
            let since = |from, to| checks_since(&config, Checks::Rising, from, to);
            let parts = [
                since(0, from.min(stop)),
                since(from.min(stop), from.max(stop)),
                since(from.max(stop), updates),
            ];
            assert_eq!(parts.iter().sum::<u64>(), 30, "{updates}: {parts:?}");
        }
        assert_eq!(Checks::Rising.due(12_000)[..6], [20, 25, 31, 39, 48, 60]);
        let passed = [0.0, 9e-4, 1.1e-3, 0.0316, 0.9, 1.0].map(|share| Checks::Rising.passed(share));
        assert_eq!(passed, [0, 0, 1, 15, 29, 30]);
        assert_eq!([0.0, 0.35, 1.0].map(|share| TENTHS.passed(share)), [0, 3, 10]);
    }
}
