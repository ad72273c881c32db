//! `TrainConfig`: the model, the phases and the learning rates of a run.
//!
//! A configuration is complete, without defaults, and is written into every checkpoint; its values come from
//! `presets`. It divides updates between phases; `step` computes an update.

use super::presets::MAXIMUM_LIKELIHOOD_TIME;
use super::{
    DivergenceKind, FieldConfig, InitialFlowKind, Kept, ModelConfig, ModelKind, ObjectiveKind, OptimizerKind,
    PixelTransformKind, Preset, Steps, TargetKind, TimesKind,
};
use crate::cnf::config::is_default;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The shape of the data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DataShape {
    /// Number of columns.
    pub dim: usize,
    /// Height, width and channels, if the rows are images.
    pub image: Option<[usize; 3]>,
    /// Number of classes, 0 without labels.
    pub classes: usize,
    /// The smallest standard deviation of the points, in the coordinates of the flow, if they have the density of one
    /// image.
    pub smallest_scale: Option<f64>,
    /// Whether the rows are those of a table.
    pub is_table: bool,
}

impl DataShape {
    /// The shape of points in the plane.
    pub(super) const PLANE: DataShape =
        DataShape { dim: 2, image: None, classes: 0, smallest_scale: None, is_table: false };
}

/// Everything that, with the data, determines the final weights of a run without a time limit that starts from
/// random weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TrainConfig {
    /// The preset from which the configuration was created.
    pub preset: Preset,
    /// The model.
    pub model: ModelConfig,
    /// The seed of the initial weights and of all random numbers.
    pub seed: u64,
    /// The optimizer of every phase; each phase starts with a new optimizer state.
    pub optimizer: OptimizerKind,
    /// The decoupled weight decay of any optimizer. If an option sets the optimizer, it is 0 except for AdamW
    /// and Lion.
    pub weight_decay: f64,
    /// The maximum global norm of a gradient; `None` does not clip.
    pub clip_norm: Option<f64>,
    /// Whether the learning rate decays to 0 by a cosine in each phase.
    pub cosine: bool,
    /// The law of the times of flow matching. Runs of earlier versions have uniform times.
    #[serde(default, skip_serializing_if = "is_default")]
    pub times: TimesKind,
    /// The target of flow matching. Runs of earlier versions have drawn targets.
    #[serde(default, skip_serializing_if = "is_default")]
    pub target: TargetKind,
    /// The density from which the flow starts. Runs of earlier versions start from a normal density or random weights.
    #[serde(default, skip_serializing_if = "is_default")]
    pub start: InitialFlowKind,
    /// How pixel values are transformed; `None` unless the data are image sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pixels: Option<PixelTransformKind>,
    /// Whether columns of points that are rounded to a step get uniform noise of one step.
    #[serde(default, skip_serializing_if = "is_default")]
    pub dequantize: bool,
    /// Whether the coordinates of a table are decorrelated ([`Standardizer::factor`](crate::data::Standardizer::factor)).
    /// Runs of earlier versions and of a given flow have standardized columns.
    #[serde(default, skip_serializing_if = "is_default")]
    pub decorrelate: bool,
    /// Early stopping on points and image sets: validation checks in a row without improvement after which
    /// the run ends. Without effect on other data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience: Option<u64>,
    /// Number of parts of a batch, each with its own random numbers, so that up to this many ranks can share
    /// an update. The weights depend on the number of shards, but not on the number of ranks.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub shards: usize,
    /// The phases, in order.
    pub phases: Vec<Phase>,
}

fn one() -> usize {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_one(shards: &usize) -> bool {
    *shards == 1
}

/// One objective for a number of updates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// The objective.
    pub objective: Objective,
    /// The number of updates; under a time limit, the number made so far.
    pub updates: u64,
    /// Points or images per update.
    pub batch: usize,
    /// The peak learning rate.
    pub lr: f64,
    /// Decay of the exponential moving average of the weights; 0 uses the last weights.
    pub ema_decay: f64,
}

/// The objective of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Objective {
    /// Flow matching: the squared error of the velocity against `x1 - x0` on straight lines from base to data.
    #[default]
    FlowMatching,
    /// The negative log-likelihood, through the solver.
    MaximumLikelihood,
}

impl Objective {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Objective::FlowMatching => "flow_matching",
            Objective::MaximumLikelihood => "maximum_likelihood",
        }
    }

    /// Its human-readable name.
    pub fn title(self) -> &'static str {
        match self {
            Objective::FlowMatching => "flow matching",
            Objective::MaximumLikelihood => "maximum likelihood",
        }
    }

    /// The unit of its loss.
    pub fn unit(self) -> &'static str {
        match self {
            Objective::FlowMatching => "MSE",
            Objective::MaximumLikelihood => "nats",
        }
    }
}

impl TrainConfig {
    /// Refuses a model of a table that has another number of classes than the table.
    ///
    /// # Errors
    /// [`Error::Model`].
    pub(super) fn check_classes(&self, of_data: usize) -> Result<()> {
        let classes = |field: &FieldConfig| match *field {
            FieldConfig::Fourier { classes, .. } | FieldConfig::Mlp { classes, .. } => classes,
            _ => 0,
        };
        let is_other = |field: &FieldConfig| {
            classes(field) != of_data || of_data > 0 && !matches!(field, FieldConfig::Fourier { .. })
        };
        let fields =
            std::iter::once(&self.model.field).chain(self.model.unlike.iter().map(|(field, _)| field));
        let Some(field) = fields.into_iter().find(|field| is_other(field)) else { return Ok(()) };
        let reason = format!(
            "the points have {of_data} classes, but a field of the flow has {}; a table with classes needs fields `FourierMlp::with_classes`, also preconditioned",
            classes(field)
        );
        Err(Error::Model { reason })
    }

    /// Updates of all phases together.
    pub fn updates(&self) -> u64 {
        self.phases.iter().map(|p| p.updates).sum()
    }

    /// Steps per solve in training (1 where they are adaptive and their number is unknown), and the maximum.
    pub(super) fn steps(&self) -> (usize, usize) {
        match self.model.solve.steps {
            Steps::Fixed { steps } => (steps, steps),
            Steps::Adaptive { .. } => (1, self.model.solve.max_steps as usize),
        }
    }

    /// The phase of an update; updates are counted from 1.
    pub(super) fn phase_of(&self, update: u64) -> &Phase {
        let mut end = 0;
        let of = |p: &&Phase| {
            end += p.updates;
            update <= end
        };
        self.phases.iter().find(of).unwrap_or(&self.phases[self.phases.len() - 1])
    }

    /// Changes the total number of updates. The phases keep their proportions, with at least one update each
    /// if there are enough.
    pub fn with_updates(mut self, updates: u64) -> TrainConfig {
        let (mut left, mut weight) = (updates, self.updates().max(1));
        let mut after = self.phases.len() as u64;
        for phase in &mut self.phases {
            after -= 1;
            let share = (left as f64 * phase.updates as f64 / weight as f64).round() as u64;
            weight -= phase.updates;
            phase.updates = share.clamp(left.min(1), left.saturating_sub(after).max(left.min(1)));
            left -= phase.updates;
        }
        self
    }

    /// Copies the updates per phase from another configuration, if it has the same number of phases.
    pub(super) fn with_updates_of(mut self, other: &TrainConfig) -> TrainConfig {
        if self.phases.len() == other.phases.len() {
            self.phases.iter_mut().zip(&other.phases).for_each(|(a, b)| a.updates = b.updates);
        }
        self
    }

    /// Each phase's share of the training time under a time limit.
    pub(super) fn time_shares(&self) -> Vec<f64> {
        match self.phases.len() {
            2 => vec![1.0 - MAXIMUM_LIKELIHOOD_TIME, MAXIMUM_LIKELIHOOD_TIME],
            n => vec![1.0 / n as f64; n],
        }
    }

    /// The objectives of the phases, as the value of an option.
    pub(super) fn objective(&self) -> String {
        let objectives: Vec<Objective> = self.phases.iter().map(|phase| phase.objective).collect();
        match &objectives[..] {
            [Objective::FlowMatching] => ObjectiveKind::FlowMatching.name().to_owned(),
            [Objective::MaximumLikelihood] => ObjectiveKind::MaximumLikelihood.name().to_owned(),
            [Objective::FlowMatching, Objective::MaximumLikelihood] => ObjectiveKind::Both.name().to_owned(),
            others => format!("{} phases", others.len()),
        }
    }

    /// The batches of the phases, separated by `/`.
    pub(super) fn batches(&self) -> String {
        self.phases.iter().map(|p| p.batch.to_string()).collect::<Vec<_>>().join("/")
    }

    /// The network of image sets, as the value of an option.
    pub(super) fn field(&self) -> &'static str {
        match self.model.field {
            FieldConfig::UNet { .. } => ModelKind::UNet.name(),
            FieldConfig::Mlp { .. } => ModelKind::Mlp.name(),
            FieldConfig::ConcatSquash => ModelKind::ConcatSquash.name(),
            FieldConfig::Fourier { .. } => "none",
        }
    }

    /// The number of probes, as the value of an option.
    pub(super) fn probes(&self) -> Value {
        match self.model.solve.divergence {
            DivergenceKind::Exact => "none (exact divergence)".into(),
            DivergenceKind::Hutchinson => self.model.solve.probes.into(),
        }
    }

    /// One of the tolerances, `pick(rtol, atol)`, as the value of an option.
    pub(super) fn tolerance(&self, pick: fn(f64, f64) -> f64) -> Value {
        match self.model.solve.steps {
            Steps::Adaptive { rtol, atol } => pick(rtol, atol).into(),
            Steps::Fixed { .. } => "none (fixed steps)".into(),
        }
    }

    /// The number of equal steps, as the value of an option.
    pub(super) fn fixed_steps(&self) -> Value {
        match self.model.solve.steps {
            Steps::Fixed { steps } => steps.into(),
            Steps::Adaptive { .. } => "none (tolerances)".into(),
        }
    }

    /// The number of stored states, as the value of an option.
    pub(super) fn checkpoints(&self) -> Value {
        match self.model.solve.kept {
            Kept::Count(n) => n.into(),
            Kept::Automatic | Kept::Bytes(_) | Kept::All => "automatic".into(),
            Kept::Nothing { .. } => "none (solved backward)".into(),
            Kept::Last { .. } => "the last (run backward)".into(),
            Kept::Forward => "none (forward derivatives)".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::presets::{FLOW_MATCHING, MAXIMUM_LIKELIHOOD};
    use super::*;
    use crate::train::TrainOptions;

    fn default_config() -> TrainConfig {
        let objective = Some(ObjectiveKind::Both);
        TrainConfig::new(&TrainOptions { objective, ..TrainOptions::default() })
    }

    fn split(updates: u64) -> Vec<u64> {
        default_config().with_updates(updates).phases.iter().map(|p| p.updates).collect()
    }

    #[test]
    fn a_method_without_an_error_estimate_takes_equal_steps() {
        let steps = |preset, solver: &str| {
            let options =
                TrainOptions { preset: Some(preset), solver: Some(solver.into()), ..TrainOptions::default() };
            TrainConfig::new(&options).model.solve.steps
        };
        assert_eq!(steps(Preset::Default, "dopri5"), Steps::Adaptive { rtol: 1e-3, atol: 1e-3 });
        assert_eq!(steps(Preset::Default, "rk4"), Steps::Fixed { steps: 16 });
        let given = TrainConfig::new(&TrainOptions { fixed_steps: Some(10), ..TrainOptions::default() });
        let with = given.with(&TrainOptions { solver: Some("rk4".into()), ..TrainOptions::default() });
        assert_eq!(with.model.solve.steps, Steps::Fixed { steps: 10 });
    }

    #[test]
    fn updates_are_divided_as_before_and_every_phase_has_one() {
        let total = default_config().updates();
        assert_eq!(split(total), [FLOW_MATCHING.updates, MAXIMUM_LIKELIHOOD.updates]);
        assert_eq!(split(2), [1, 1]);
        assert_eq!(split(1), [1, 0]);
        for n in [3, 17, 1000, 12_345, 100_000] {
            assert_eq!(split(n).iter().sum::<u64>(), n);
            assert!(split(n).iter().all(|&u| u > 0));
        }
    }
}
