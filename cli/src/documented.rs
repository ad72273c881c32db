//! `--preset documented`: the widely read example of a flow that learns an image, as it is documented.
//!
//! A recipe like any other, and a rule by which points are drawn; only its name is known elsewhere.

use flowline::__internal::{FieldConfig, ObjectiveKind, OptimizerKind, Rule, TrainConfig};
use flowline::Result;
use flowline::train::{Preset, TrainError, TrainOptions, Trainer, TrainingData};

/// Its name.
pub const NAME: &str = "documented";
const T1: f64 = 0.5;
/// Every pixel that is not white is drawn equally often, and weighs as much as it is dark.
const RULE: Rule = Rule::Uniform { below: 254 };

/// Two blocks of concat-squash layers, solved in ten equal steps, by maximum likelihood alone at one learning rate.
fn recipe() -> TrainConfig {
    let mut recipe = TrainConfig::new(&TrainOptions {
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
    recipe.preset = Preset::Given(NAME.to_owned());
    recipe.model.field = FieldConfig::ConcatSquash;
    recipe.model.t1 = T1;
    recipe.clip_norm = None;
    recipe.cosine = false;
    recipe.phases.iter_mut().for_each(|phase| phase.ema_decay = 0.0);
    recipe
}

/// The example's flow and rule on an image, changed by options.
///
/// # Errors
/// Options out of range; data that are no picture; a picture that the rule leaves nothing of.
pub fn density<'a>(options: &TrainOptions, data: TrainingData) -> Result<Trainer<'a>> {
    let refused = |range| TrainError::Option { option: "--preset", value: NAME.to_owned(), range }.into();
    match data {
        TrainingData::Image(image) => Trainer::from_recipe(recipe(), options, image.with_rule(RULE)?),
        TrainingData::Images(..) => Err(refused("images, for sets of images")),
        _ => Err(refused("default or points, for points")),
    }
}
