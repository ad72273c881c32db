//! The estimate of the KL divergence, for runs that learn from exact targets.
//!
//! Such a run evaluates a [`KlEstimator`] fifty times per phase of flow matching, at fixed updates and at the end of the
//! phase; under a time limit, at fiftieths of the seconds of the phase. It has no solve: it costs as much as a few
//! updates. Its points are fixed and have random numbers of their own, so the weights do not depend on it. A run that has
//! only flow matching ends with the averaged weights of the least estimate. The estimate never chooses times or weights
//! of the loss: of runs with different times, the one with the lower estimate may have the higher KL divergence.

use super::best::{Checks, MEASURES};
use super::{Objective, RunInfo, TargetKind, TrainConfig, TrainingData};
use crate::cnf::{ExactVelocity, FlowPath, KlEstimate, KlEstimator};
use crate::tensor::{Key, Tensor};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Estimates per phase.
pub(super) const ESTIMATES: u64 = 50;
/// Points of an estimate.
const POINTS: usize = 4096;
/// Combined with a run's seed, so that the points have their own random numbers.
const STREAM: u64 = 0x70f5_0f7e_57da_7a21;

/// What a flow of a toy density learned from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LearnedFrom {
    /// The formula of the density: its scores are no comparison for flows that learned from samples.
    Formula,
    /// Samples of the density.
    Samples,
}

/// The exact velocity of the data, and their smallest standard deviation in the coordinates of the flow.
#[derive(Clone)]
pub(super) struct Exact {
    pub velocity: Arc<dyn ExactVelocity>,
    pub scale: f64,
}

impl Exact {
    /// The estimator of a run.
    ///
    /// # Panics
    /// When the density of the data is not known.
    pub(super) fn estimator(&self, data: &TrainingData, header: &RunInfo) -> KlEstimator {
        let [points, noise] = Key::new(header.config.seed ^ STREAM).split();
        let mut rng = points.rng();
        let x1: Vec<f32> = match data {
            TrainingData::Image(image) => image.sample(POINTS, &mut rng).into_flattened(),
            TrainingData::Toy(toy) => {
                let x1 = header.standard().transform(toy.sample(POINTS, &mut rng).as_flattened());
                x1.into_iter().map(|x| x as f32).collect()
            }
            TrainingData::Points(..) | TrainingData::Images(..) => {
                unreachable!("invariant: exact targets need a known density")
            }
        };
        let x1 = Tensor::from_vec([POINTS, self.velocity.dim()], x1);
        KlEstimator::new(self.velocity.clone(), FlowPath::Straight, self.scale, &x1, &noise)
    }
}

/// An estimate as `metrics.csv` has it.
pub(super) fn to_row(estimate: KlEstimate) -> [f64; 10] {
    let mut row = [estimate.nats; 10];
    row[1] = estimate.stderr;
    row[2..].copy_from_slice(&estimate.loss_by_t);
    row
}

impl TrainConfig {
    fn has(&self, objective: Objective) -> bool {
        self.phases.iter().any(|phase| phase.objective == objective)
    }

    /// Whether a run learns from exact targets, at least in a phase.
    pub(super) fn estimates(&self) -> bool {
        self.target == TargetKind::Exact && self.has(Objective::FlowMatching)
    }

    /// Whether a run learns from exact targets alone. Maximum likelihood moves the flow off the paths on which the
    /// estimate is defined.
    pub(super) fn selects_by_estimate(&self) -> bool {
        self.estimates() && !self.has(Objective::MaximumLikelihood)
    }

    /// What a flow of a toy density learns from.
    pub(super) fn learned_from(&self) -> LearnedFrom {
        if self.estimates() { LearnedFrom::Formula } else { LearnedFrom::Samples }
    }
}

impl RunInfo {
    /// Whether the run ends with the weights of the least estimate.
    pub(super) fn selects_by_estimate(&self) -> bool {
        self.kl_estimate && self.config.selects_by_estimate()
    }

    /// The checks of a phase for the best weights.
    pub(super) fn checks(&self) -> Checks {
        match self.rising_checks {
            true => Checks::Rising,
            false => Checks::Equal(if self.kl_estimate { ESTIMATES } else { MEASURES }),
        }
    }
}
