//! Selection of the best weights: by validation NLL in runs on a fixed set of points or images, by the estimate of the KL
//! divergence in runs that learn from exact targets alone ([`estimator`](super::estimator)).
//!
//! Other runs on an image or a toy density use the averaged weights after the last update: they hardly overfit. Runs on
//! points or image sets overfit sooner or later. They validate about ten times per phase and store
//! the averaged weights with the lowest NLL in a separate file. These checks happen at fixed updates, not at
//! fixed times, so a resumed run ends with the same weights as an uninterrupted one. Under a time limit, they
//! happen at tenths of a phase's seconds, and at the end of the phase. They then score as many random rows of
//! the validation part, the same in each check, as take a small fraction of the time. The final weights are
//! scored on more rows at the end of the run.
//!
//! The buffers of the best weights are allocated at the start and never shared: memory does not grow at the first
//! validation, and updates still write in place.

use super::{Flow, Phase, RunInfo, StartKind, TrainConfig, TrainError};
use crate::error::Result;
use crate::io::run::{BEST_FILE, RunFolder};
use crate::io::{IoError, read_checkpoint, write_checkpoint};
use crate::tensor::{Tensor, Tree};
use serde::{Deserialize, Serialize};

/// Approximate number of validation checks per phase.
pub(super) const MEASURES: u64 = 10;

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

/// Whether a check is due after the `done`-th update of a phase with about `checks` of them.
pub(super) fn is_due(phase: &Phase, done: u64, checks: u64) -> bool {
    done == phase.updates || done.is_multiple_of((phase.updates / checks).max(1))
}

/// Number of checks, about `checks` per phase, after update `from`, up to and including update `to`.
pub(super) fn checks_since(config: &TrainConfig, checks: u64, from: u64, to: u64) -> u64 {
    let (mut first, mut count) = (0, 0);
    for phase in &config.phases {
        let of_phase = |update: u64| update.clamp(first, first + phase.updates) - first;
        count +=
            (of_phase(from) + 1..=of_phase(to)).filter(|&done| is_due(phase, done, checks)).count() as u64;
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
                    && (update == 0 || header.config.start == StartKind::Normal)
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
    use crate::train::TrainOptions;

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
        let due =
            |updates| (1..=updates).filter(|&done| is_due(&phase(updates), done, 10)).collect::<Vec<u64>>();
        assert_eq!(due(100), (1..=10).map(|i| 10 * i).collect::<Vec<_>>());
        assert_eq!(due(7), [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(due(25).last(), Some(&25));
        let mut config = TrainConfig::new(&TrainOptions { updates: Some(400), ..TrainOptions::default() });
        config.phases[0].updates = 100;
        config.phases[1].updates = 300;
        assert_eq!(checks_since(&config, 10, 10, 10), 0);
        let since = |from, to| checks_since(&config, 10, from, to);
        assert_eq!((since(10, 40), since(90, 130)), (3, 2));
    }
}
