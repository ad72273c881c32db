//! `--preset diffrax`: the image example of the diffrax documentation on continuous normalizing flows.
//!
//! It is a training configuration with the sampling rule [`SamplingRule::Uniform`]. The library parses its names but does not
//! contain the configuration.

use super::error::Result;
use flowline::__internal::{FieldConfig, ObjectiveKind, OptimizerKind, SamplingRule, TrainConfig};
use flowline::train::{Preset, TrainError, TrainOptions, Trainer, TrainingData};

const T1: f64 = 0.5;
/// Samples the pixels with a gray value below 254 equally often, and weights each by its darkness.
const RULE: SamplingRule = SamplingRule::Uniform { below: 254 };

/// Two blocks of concat-squash layers, solved in ten equal steps, trained by maximum likelihood at one learning rate.
fn config() -> TrainConfig {
    let mut config = TrainConfig::new(&TrainOptions {
        objective: Some(ObjectiveKind::MaximumLikelihood),
        optimizer: Some(OptimizerKind::AdamW),
        updates: Some(10_000),
        batch: Some(1000),
        lr: Some(1e-3),
        width: Some(64),
        depth: Some(3),
        blocks: Some(2),
        fixed_steps: Some(10),
        ..TrainOptions::default()
    });
    config.preset = Preset::from(DiffraxExample::NAMES[0].to_owned());
    config.model.field = FieldConfig::ConcatSquash;
    config.model.t1 = T1;
    config.clip_norm = None;
    config.cosine = false;
    config.phases.iter_mut().for_each(|phase| phase.ema_decay = 0.0);
    config
}

/// The preset.
pub struct DiffraxExample;

impl DiffraxExample {
    /// The name, and the older name. Run folders store the older name.
    pub const NAMES: [&str; 2] = ["diffrax", "documented"];

    /// A trainer of this flow on an image, with the sampling rule.
    ///
    /// # Errors
    /// Data that are not an image; an image without a pixel that the rule samples.
    pub fn trainer<'a>(data: TrainingData) -> Result<Trainer<'a>> {
        let config = config();
        let value = config.preset.name().to_owned();
        let refused = |range| Err(TrainError::Option { option: "preset", value, range }.into());
        match data {
            TrainingData::Image(image) => Ok(Trainer::new(image.with_rule(RULE)?).config(config)),
            TrainingData::Images(..) => refused("images for a set of images; diffrax needs a single image"),
            _ => refused("default or points for points; diffrax needs a single image"),
        }
    }
}
